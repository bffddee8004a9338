//! `topolvm.io/v1`: volumes carved out of a node's own disks, and where their backups go.
//!
//! [`legacy`] is the same LogicalVolume under the group that TopoLVM used before.

mod backup_storage;
pub mod legacy;
mod logical_volume;

pub use backup_storage::{
    AzureStorage, BackupEngine, GcsStorage, LocalStorage, S3Storage, SnapshotBackupStorage,
    SnapshotBackupStorageSpec, SnapshotBackupStorageStatus, StorageBackend, StoragePhase, StorageProvider,
};
pub use logical_volume::{
    AccessType, LogicalVolume, LogicalVolumeSpec, LogicalVolumeStatus, SnapshotError, SnapshotOperation,
    SnapshotPhase, SnapshotProgress, SnapshotStatus,
};

/// The API group of these kinds.
pub const GROUP: &str = "topolvm.io";
