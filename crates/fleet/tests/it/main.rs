//! The fleet's tests: rules as tables, stories on embedded and real clusters, crashes at every write, and what agents may not do.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod crash;
mod faults;
mod rights;
mod rules;
mod stories;
mod things;
