//! Backup and restore with real files, real repositories, a real S3 protocol and the real restic.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bucket;
mod corpus;
mod faults;
mod hostile;
mod local;
mod restic;
#[path = "../../../store/tests/it/server.rs"]
mod server;
