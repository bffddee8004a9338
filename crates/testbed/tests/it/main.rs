//! The harness itself under test, with a controller of the one shape on it.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod both;
mod crash;
mod greeting;
mod greets;
mod real;
mod rules;
