//! What node storage promises, tried on every back end that can run here.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![expect(clippy::disallowed_methods, reason = "a test is the outside: it starts processes and tasks")]

mod dir;
mod exchange;
mod fake;
mod go_client;
mod lvm2;
mod lvmd;
mod mounts;
mod power;
mod real;
mod reflink;
mod suite;
mod trees;
