//! Every rule about snapshots: how they are asked for, taken, found, shown and deleted.

pub mod content;
pub mod snapshot;
pub mod source;
