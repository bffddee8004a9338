//! The mover, tried.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod site;
mod stories;
