//! The binder's tests: rules as tables, Kubernetes' cases, chance, and stories on clusters.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod cases;
mod crash;
mod explain;
mod model;
mod property;
mod rules;
mod stories;
mod things;
