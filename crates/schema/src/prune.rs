//! Fields a schema does not know: finding and removing them.

use crate::Schema;
use serde_json::Value;

/// Removes what `schema` does not know and returns the paths of what went, such as `spec.list[0].bar`.
pub fn prune(_schema: &Schema, _object: &mut Value) -> Vec<String> {
    Vec::new()
}

/// The paths of what `schema` does not know, without removing anything.
pub fn unknown_fields(_schema: &Schema, _object: &Value) -> Vec<String> {
    Vec::new()
}
