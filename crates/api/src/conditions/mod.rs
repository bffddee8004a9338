//! Condition types and reasons, by the kind they stand on. All strings are wire strings.
//!
//! A type is a `TYPE_...` constant, a reason a `REASON_...` one; each module lists the reasons under
//! the type that uses them.

pub mod drcluster;
pub mod drpc;
pub mod drpolicy;
pub mod fleet;
pub mod logical_volume;
pub mod replication;
pub mod volsync;
pub mod vrg;
