//! The harness itself under test.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod real;
