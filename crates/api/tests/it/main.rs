//! Tests of the words: what is on the wire, what the CRDs say, and that the files are current.

#![allow(clippy::unwrap_used, reason = "a test that panics is a test that fails")]

mod current;
mod lenient;
mod names;
mod round_trip;
mod rules;
mod words;

use serde_json::Value;

/// Reads YAML as the JSON that an API server would hold.
fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}
