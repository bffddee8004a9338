//! The rules, without any I/O: what is newest, what is complete, who may write, what must be written.
//!
//! Listings and documents come in, decisions go out; the shell in `stores` asks and does.

pub(crate) mod admit;
pub(crate) mod fleet;
pub(crate) mod newest;
pub(crate) mod plan;
pub(crate) mod ramen;
pub(crate) mod shelf;
