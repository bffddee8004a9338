//! Both kinds of store under the same stories, and the S3 protocol under faults.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bucket;
mod server;
mod stories;
