//! Node storage, tried.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod central;
mod central_crash;
mod provision_rules;
mod provision_stories;
mod snapshots_stories;
mod volume;
