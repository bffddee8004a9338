//! The rules an object must keep.

use crate::Kind;
use lifeboat_schema::FieldError;
use serde_json::Value;

impl Kind {
    /// What is wrong with a new object (after defaulting and [`Kind::prepare_create`]).
    #[must_use]
    pub fn validate_create(&self, _obj: &Value) -> Vec<FieldError> {
        Vec::new()
    }

    /// What is wrong with a changed object (after defaulting and [`Kind::prepare_update`]).
    #[must_use]
    pub fn validate_update(&self, _new: &Value, _old: &Value, _subresource: &str) -> Vec<FieldError> {
        Vec::new()
    }
}
