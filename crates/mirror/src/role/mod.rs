//! VolumeReplications: making volumes primary and secondary, and sending what a primary writes.
//!
//! Woken by the VolumeReplication, its class, claim, volumes and group, the pods that use the claim, the disks, its own calls and its interval.

pub mod decide;
mod demote;
mod effects;
mod promote;
mod replicate;
pub mod status;
pub mod why;
pub mod world;

pub use effects::Roles;
