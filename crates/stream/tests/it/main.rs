//! Real sockets, real files, links that are cut and slowed, and peers that die, lie or hold the wrong key.
#![expect(clippy::unwrap_used, reason = "a test that fails says where")]
#![expect(clippy::disallowed_methods, reason = "real sockets and processes, in real time")]

mod crash;
mod link;
mod pair;
mod processes;
mod property;
mod stories;
mod trees;
