//! Observe: what decisions about stores and about the removal of backups need.

use crate::stores::desk::Verdict;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use lifeboat_api::topolvm::{LogicalVolume, SnapshotBackupStorage};
use lifeboat_engine::{ObjectKey, Trouble};
use std::sync::Arc;

/// What a decision about a store needs.
#[derive(Clone)]
pub struct StorageWorld {
    /// The store.
    pub storage: Arc<SnapshotBackupStorage>,
    /// Its Secret.
    pub secret: Option<Arc<Secret>>,
    /// What came of trying it last.
    pub verdict: Option<Verdict>,
}

/// What a decision about unused data in a store needs.
#[derive(Clone)]
pub struct PruneWorld {
    /// The store.
    pub store: StorageWorld,
    /// When this process began.
    pub started: Timestamp,
    /// Whether backups were removed since the last run.
    pub owed: bool,
    /// What came of the last run of this process.
    pub last: Option<Verdict>,
}

/// What a decision about the backup of a LogicalVolume that is being deleted needs.
#[derive(Clone)]
pub struct RemovalWorld {
    /// The LogicalVolume.
    pub logical: Arc<LogicalVolume>,
    /// Which store its backup is in.
    pub place: Option<ObjectKey>,
    /// That store.
    pub storage: Option<Arc<SnapshotBackupStorage>>,
    /// Its Secret.
    pub secret: Option<Arc<Secret>>,
    /// LogicalVolumes that are still being filled from the backup.
    pub restores: Vec<String>,
    /// Whether this process has removed the backup.
    pub forgotten: bool,
    /// What failed last.
    pub trouble: Option<Trouble>,
}
