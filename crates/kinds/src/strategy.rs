//! What a write may change: the fields that each way of writing keeps, drops or carries over, and the generation.

use crate::Kind;
use serde_json::Value;

impl Kind {
    /// Drops what a client may not set at creation and starts the generation.
    pub fn prepare_create(&self, _obj: &mut Value) {}

    /// Puts back what this way of writing may not change and moves the generation on. `subresource` is empty for the
    /// object itself.
    pub fn prepare_update(&self, _new: &mut Value, _old: &Value, _subresource: &str) {}
}
