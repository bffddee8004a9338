//! Field ownership: server-side apply and `metadata.managedFields`.

use crate::Schema;
use serde_json::{Value, json};
use thiserror::Error;

/// Who writes, and when.
#[derive(Clone, Copy, Debug)]
pub struct Manager<'a> {
    /// The field manager's name.
    pub name: &'a str,
    /// The apiVersion of the request, such as `apps/v1`.
    pub api_version: &'a str,
    /// The subresource written to; empty for the object itself.
    pub subresource: &'a str,
    /// The time of the write, RFC 3339 in UTC with seconds.
    pub time: &'a str,
    /// What this endpoint resets and so nobody can own through it, as dotted paths: `["status"]` for the main resource
    /// of a kind with a status subresource, `["spec", "metadata"]`-like for the status subresource.
    pub reset_fields: &'a [&'a str],
}

/// One field that someone else owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The other manager, as Kubernetes prints it: `"kubectl" using apps/v1`, with subresource and time where set.
    pub manager: String,
    /// The field, such as `.spec.replicas`.
    pub field: String,
}

/// Why an apply was refused.
#[derive(Debug, Error, PartialEq)]
pub enum ApplyError {
    /// Others own fields that the configuration sets to other values: 409, forceable.
    #[error("{}", conflict_message(.0))]
    Conflict(Vec<Conflict>),
    /// The configuration cannot be applied at all: 400.
    #[error("{0}")]
    Invalid(String),
}

impl ApplyError {
    /// The `StatusCause`s of a conflict, one per field, with reason `FieldManagerConflict`.
    pub fn causes(&self) -> Vec<Value> {
        match self {
            ApplyError::Conflict(conflicts) => conflicts
                .iter()
                .map(|c| json!({ "reason": "FieldManagerConflict", "message": format!("conflict with {}", c.manager), "field": c.field }))
                .collect(),
            ApplyError::Invalid(_) => Vec::new(),
        }
    }
}

fn conflict_message(_conflicts: &[Conflict]) -> String {
    String::new()
}

/// Applies `config` to `live` (nothing, on creation) and returns the new object with its managedFields.
pub fn apply(
    _schema: &Schema,
    _live: Option<&Value>,
    config: &Value,
    _manager: &Manager<'_>,
    _force: bool,
) -> Result<Value, ApplyError> {
    Ok(config.clone())
}

/// Recomputes the managedFields of `new` for a write that is not an apply: create, update or patch.
pub fn update(_schema: &Schema, _live: Option<&Value>, _new: &mut Value, _manager: &Manager<'_>) {}
