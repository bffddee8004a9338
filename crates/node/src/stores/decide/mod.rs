//! Every rule about stores, and about backups that nobody needs any more.

pub mod prune;
pub mod removal;
pub mod storage;
