//! The fields that a field selector may name.

use crate::Kind;
use serde_json::Value;

impl Kind {
    /// The selectable fields of an object with their values; a selector that names any other field is refused.
    #[must_use]
    pub fn selectable_fields(&self, _obj: &Value) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}
