//! The rules of the schema crate, one row each, and the laws that hold for any input.

#![allow(clippy::needless_pass_by_value, reason = "rows of a table read best with plain values")]
#![allow(clippy::unwrap_used, reason = "a test that finds nothing to unwrap has failed")]

mod cel;
mod defaults;
mod errors;
mod json;
mod jsonpath;
mod laws;
mod managed;
mod patch;
mod prune;
mod quantity;
mod selector;
mod structural;
mod types;
mod validate;

use lifeboat_schema::Schema;
use serde_json::Value;

/// A schema that must parse.
fn schema(value: &Value) -> Schema {
    Schema::parse(value).expect("the schema of a test parses")
}
