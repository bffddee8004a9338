//! Default values.

use crate::Schema;
use serde_json::Value;

/// Fills in the defaults of `schema`; a null where null is not allowed and a default exists is replaced by it.
pub fn apply_defaults(_schema: &Schema, _object: &mut Value) {}
