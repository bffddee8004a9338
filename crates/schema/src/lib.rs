//! What an object may look like, and how two objects become one.
//!
//! Everything here is a pure function of its arguments: no I/O, no clock, no async. The API server asks this crate
//! whether an object fits its schema, what its defaults are, which fields are unknown, and what a patch or an apply
//! makes of it. Storage, HTTP, versions and admission of particular kinds are left to others.
//!
//! Every entry point takes untrusted input: recursion, regular expressions and CEL are bounded, nothing panics.

mod cel;
mod default;
mod error;
pub mod json;
pub mod jsonpath;
pub mod managed;
mod node;
pub mod patch;
mod prune;
pub mod quantity;
pub mod selector;
mod structural;
mod types;
mod validate;

pub use default::apply_defaults;
pub use error::{ErrorKind, FieldError};
pub use node::{ListType, MapType, Schema};
pub use prune::{prune, unknown_fields};
pub use structural::check_structural;
pub use types::type_errors;
pub use validate::validate;

/// How deep objects and schemas may nest before they are refused; Kubernetes' own decoder stops at 10000, but no real
/// object comes near this and a bounded depth keeps recursion off the end of the stack.
pub const MAX_DEPTH: usize = 200;
