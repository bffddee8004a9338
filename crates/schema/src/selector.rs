//! Label and field selectors.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use thiserror::Error;

/// Why a selector could not be parsed; worded as Kubernetes words it.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct SelectorError(pub String);

/// A parsed label selector; the default one selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {}

impl LabelSelector {
    /// Parses the query-string form: `a=b,c in (d,e),!f`.
    pub fn parse(_text: &str) -> Result<Self, SelectorError> {
        Ok(Self::default())
    }

    /// Parses the object form: `{matchLabels: {...}, matchExpressions: [...]}`; an empty one selects everything.
    pub fn from_json(_selector: &Value) -> Result<Self, SelectorError> {
        Ok(Self::default())
    }

    /// Whether it selects everything.
    pub fn is_everything(&self) -> bool {
        true
    }

    /// Whether `labels` (a JSON object of strings, or null) are selected.
    pub fn matches(&self, _labels: &Value) -> bool {
        true
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

/// A parsed field selector; the default one selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    /// The terms, all of which must hold.
    pub terms: Vec<FieldTerm>,
}

/// One term of a field selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    /// The field's path, such as `metadata.name`.
    pub field: String,
    /// The value compared with.
    pub value: String,
    /// Whether the term asks for inequality.
    pub negated: bool,
}

impl FieldSelector {
    /// Parses `metadata.name=x,status.phase!=Running`.
    pub fn parse(_text: &str) -> Result<Self, SelectorError> {
        Ok(Self::default())
    }

    /// Whether it selects everything.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether `fields` are selected; a missing field counts as empty.
    pub fn matches(&self, fields: &BTreeMap<String, String>) -> bool {
        self.matches_with(|name| fields.get(name).cloned().unwrap_or_default())
    }

    /// Whether the fields that `get` yields are selected.
    pub fn matches_with(&self, get: impl Fn(&str) -> String) -> bool {
        self.terms.iter().all(|t| (get(&t.field) == t.value) != t.negated)
    }

    /// The value that `field` must equal, where a term says so.
    pub fn required(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|t| !t.negated && t.field == field).map(|t| t.value.as_str())
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}
