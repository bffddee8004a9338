//! Senders: a copy is cut when it is due, sent until the receiver has all of it, and told of.
//!
//! Woken by the sender itself, its claim and volume, its group, the disks, its own job, and its schedule.

pub mod decide;
mod effects;
pub mod failure;
mod send;
pub mod status;
pub mod world;

pub use effects::Senders;
