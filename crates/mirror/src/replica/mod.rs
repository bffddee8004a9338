//! Secondaries: what the peer sends is applied to a copy beside the last complete one, and takes its place when it is whole.
//!
//! Woken by the LogicalVolume, its VolumeReplication, the disks, the stream, offers of the peer, maintenance modes and fences.

pub mod decide;
mod effects;

pub use effects::Replicas;
