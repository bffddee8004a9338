//! The hub's tests: rules as tables, stories with played clusters, a death at every write.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod cluster;
mod drpc;
mod policy;
mod whole;
