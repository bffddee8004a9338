//! VolumeSnapshots of our volumes, without any other snapshot controller: a VolumeSnapshot gets a VolumeSnapshotContent, which gets a
//! LogicalVolume, or stands for a backup that is in a store already.
//!
//! Three controllers. `snapshots` (woken by a VolumeSnapshot, its content, its claim and volume, snapshot classes, and claims filled
//! from it) chooses the class, makes and binds contents and shows their state. `contents` (woken by a content, its VolumeSnapshot, its
//! LogicalVolume and that one's source, its class and its store) does what a CSI driver's sidecar does. `sources` (woken by a claim and
//! its VolumeSnapshots) lets a claim go when its snapshots are taken. Where the cluster has a snapshot controller of its own, only
//! `contents` runs; see [`Snapshots`](crate::central::Snapshots).
//!
//! Only VolumeSnapshots of our driver are touched.

pub mod decide;
mod desk;
mod effects;
pub mod make;
mod run;
pub mod status;
pub mod world;

pub use desk::Sighting;
pub use run::controllers;
