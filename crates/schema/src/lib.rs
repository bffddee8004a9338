//! What an object may look like, and how two objects become one.
//!
//! Everything here is a pure function of its arguments: no I/O, no clock, no async. The API server asks this crate
//! whether an object fits its schema, what its defaults are, which fields are unknown, and what a patch or an apply
//! makes of it. Storage, HTTP, versions and admission of particular kinds are left to others.
//!
//! Every entry point takes untrusted input: recursion, regular expressions and CEL are bounded, nothing panics.

mod cel;
mod correlate;
mod default;
mod equal;
mod error;
mod formats;
pub mod json;
pub mod jsonpath;
pub mod managed;
mod node;
mod objectmeta;
mod parse;
pub mod patch;
mod path;
mod pattern;
pub mod pointer;
mod prune;
pub mod quantity;
pub mod selector;
mod structural;
mod types;
mod validate;

pub use default::apply_defaults;
pub use error::{ErrorKind, FieldError};
pub use node::{ListType, MapType, Schema, SchemaDefinitions};
pub use pointer::Reach;
pub use prune::{prune, unknown_fields};
pub use structural::{check_structural, check_structural_at};
pub use types::type_errors;
pub use validate::validate;

/// How deep objects and schemas may nest: the JSON reader stops here, and so does everything that recurses. No real
/// object comes near it.
pub const MAX_DEPTH: usize = 128;
