//! Field ownership: server-side apply and `metadata.managedFields`.
//!
//! Who wrote which field is kept in the object itself. An apply takes what it names, gives back what it no longer
//! names, and is refused where someone else owns what it would change; any other write takes what it changes.
//!
//! Entries of other versions of a kind are read against the schema at hand: there is no conversion between versions here.

mod apply;
mod entries;
mod set;
mod typed;
mod walk;
mod write;

pub use apply::apply;
pub use write::update;

use serde_json::{Value, json};
use std::collections::BTreeMap;
use thiserror::Error;

/// Fields that identify an object or that the server keeps: nobody owns them.
const STRIPPED: &[&str] = &[
    "apiVersion",
    "kind",
    "metadata",
    "metadata.name",
    "metadata.namespace",
    "metadata.creationTimestamp",
    "metadata.selfLink",
    "metadata.uid",
    "metadata.clusterName",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.resourceVersion",
];

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
    /// What this endpoint resets and so nobody can own through it, as dotted paths: `["status"]` for the main resource of a
    /// kind with a status subresource, `["spec", "metadata.labels", ...]` for the status subresource.
    pub reset_fields: &'a [&'a str],
}

/// One field that someone else owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The other manager, as Kubernetes prints it: `"kubectl" using apps/v1`, with its subresource where it has one.
    pub manager: String,
    /// The field, such as `.spec.replicas`.
    pub field: String,
    path: Vec<String>,
}

/// Why an apply was refused.
#[derive(Debug, Error, PartialEq)]
pub enum ApplyError {
    /// Others own fields that the configuration sets to other values: 409, forceable.
    #[error("{}", conflict_message(.0))]
    Conflict(Vec<Conflict>),
    /// The configuration does not fit the schema: Kubernetes answers 500.
    #[error("{0}")]
    Invalid(String),
    /// The configuration is not one for this request: 400.
    #[error("{0}")]
    BadRequest(String),
}

impl ApplyError {
    /// The `StatusCause`s of a conflict, one per field, with reason `FieldManagerConflict`.
    pub fn causes(&self) -> Vec<Value> {
        let ApplyError::Conflict(conflicts) = self else { return Vec::new() };
        let cause = |c: &Conflict| {
            json!({
                "reason": "FieldManagerConflict",
                "message": format!("conflict with {}", c.manager),
                "field": c.field,
            })
        };
        conflicts.iter().map(cause).collect()
    }
}

fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [only] = conflicts {
        return format!("Apply failed with 1 conflict: conflict with {}: {}", only.manager, only.field);
    }
    let mut by_manager: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for conflict in conflicts {
        by_manager.entry(&conflict.manager).or_default().push(&conflict.field);
    }
    let mut lines = Vec::new();
    for (manager, fields) in by_manager {
        lines.push(format!("conflicts with {manager}:"));
        lines.extend(fields.iter().map(|field| format!("- {field}")));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}
