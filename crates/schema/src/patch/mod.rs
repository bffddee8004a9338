//! The three patches: JSON patch (RFC 6902), merge patch (RFC 7386) and Kubernetes' strategic merge patch.

use crate::Schema;
use serde_json::Value;
use thiserror::Error;

/// Why a patch could not be applied; the variants map to HTTP status codes.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PatchError {
    /// The patch itself is malformed: 400.
    #[error("{0}")]
    BadRequest(String),
    /// The patch is well formed but does not fit the object: 422.
    #[error("{0}")]
    Unprocessable(String),
    /// The patch has more operations than allowed: 413.
    #[error("{0}")]
    TooLarge(String),
}

/// Applies a JSON patch (RFC 6902).
pub fn json_patch(doc: &Value, _ops: &Value) -> Result<Value, PatchError> {
    Ok(doc.clone())
}

/// Applies a merge patch (RFC 7386).
pub fn merge_patch(doc: &Value, _patch: &Value) -> Value {
    doc.clone()
}

/// Applies a strategic merge patch, guided by the patch strategies and merge keys of `schema`.
pub fn strategic(_schema: &Schema, doc: &Value, _patch: &Value) -> Result<Value, PatchError> {
    Ok(doc.clone())
}
