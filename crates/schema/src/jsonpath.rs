//! The JSONPath of printer columns, selectable fields and scale paths.

use serde_json::Value;
use thiserror::Error;

/// Why a path could not be parsed.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct JsonPathError(pub String);

/// A parsed path; parse once, evaluate often.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {}

impl JsonPath {
    /// Parses `.spec.x`, `.status.conditions[?(@.type=="Ready")].status`, `.a[0].b`, `.metadata.labels['x/y']`, `.a[*].b`.
    pub fn parse(_text: &str) -> Result<Self, JsonPathError> {
        Ok(JsonPath {})
    }

    /// All values the path leads to, in document order; none where something on the way is missing.
    pub fn find<'a>(&self, _root: &'a Value) -> Vec<&'a Value> {
        Vec::new()
    }

    /// The first value the path leads to.
    pub fn first<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        self.find(root).into_iter().next()
    }
}
