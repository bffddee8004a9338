//! The three patches: JSON patch (RFC 6902), merge patch (RFC 7386) and Kubernetes' strategic merge patch.

mod json;
mod merge;
mod order;
mod strategic;

pub use json::json_patch;
pub use merge::merge_patch;
pub use strategic::strategic;

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
