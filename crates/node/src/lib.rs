//! Node storage on Kubernetes: LogicalVolumes carved out of local disks, provisioned for claims, snapshotted, backed up while they
//! are in use, and restored on any node.
//!
//! On each node runs `volume` (the LogicalVolumes of that node). Central are `provision` (claims and volumes of our class),
//! `snapshots` (VolumeSnapshots) and `stores` (SnapshotBackupStorages, and the removal of backups that nobody needs any more).

pub mod capacity;
pub mod central;
mod disks;
mod filesystems;
mod handle;
pub mod jobs;
mod lease;
mod mounts;
pub mod provision;
pub mod snapshots;
pub mod stores;
pub mod volume;

pub use disks::{Disks, Look};
pub use filesystems::LocalFilesystems;
pub use handle::{Handle, NoHandle};
pub use mounts::{CopyCare, Filesystems, Mounts, Purpose};
