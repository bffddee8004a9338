//! What Go's JSON decoder would say of an object of a built-in kind.

use crate::Schema;
use serde_json::Value;

/// The first type mismatch between `object` and `schema`, in the words of Go's decoder; `None` where all types fit.
pub fn type_errors(_schema: &Schema, _object: &Value) -> Option<String> {
    None
}
