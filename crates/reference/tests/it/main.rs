//! Starts the real programs, where they are built.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod plane;
