//! Tests of the runner: rules as tables, stories with real processes, deaths at every write.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod crash;
mod fake;
mod rules;
mod stories;
mod things;
