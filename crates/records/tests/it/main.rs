//! Records in real stores: directories and a server of the S3 protocol that does not always do as it should.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests measure time, run programs and serve buckets themselves"
)]

mod crash;
mod defects;
mod delete;
mod epochs;
mod faults;
mod fixture;
mod fleets;
mod orphans;
mod ramen;
#[path = "../../../store/tests/it/server.rs"]
mod server;
mod stories;
