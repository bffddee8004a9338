//! LogicalVolume: backup, restore and removal of a snapshot.

/// The backup store exists.
pub const TYPE_BACKUP_STORAGE_FOUND: &str = "SnapshotBackupStorageFound";
/// Who runs the backup exists.
pub const TYPE_BACKUP_EXECUTOR_ENSURED: &str = "SnapshotBackupExecutorEnsured";
/// Who runs the restore exists.
pub const TYPE_RESTORE_EXECUTOR_ENSURED: &str = "SnapshotRestoreExecutorEnsured";
/// What the backup needed is removed.
pub const TYPE_BACKUP_EXECUTOR_CLEANED: &str = "SnapshotBackupExecutorCleaned";
/// What the restore needed is removed.
pub const TYPE_RESTORE_EXECUTOR_CLEANED: &str = "SnapshotRestoreExecutorCleaned";
/// The local snapshot is removed after its backup.
pub const TYPE_LVM_SNAPSHOT_CLEANED: &str = "LVMSnapshotCleaned";
/// Who deletes the backup exists.
pub const TYPE_DELETE_EXECUTOR_ENSURED: &str = "SnapshotDeleteExecutorEnsured";
/// The backup is deleted; the reason says how far, the status is always True.
pub const TYPE_DELETE_ENSURED: &str = "SnapshotDeleteEnsured";
/// Who ran the operation was lost.
pub const TYPE_EXECUTOR_POD_MISSING: &str = "SnapshotExecutorPodMissing";
/// Reserved by peers for the backup as a whole.
pub const TYPE_BACKUP_READY: &str = "BackupReady";
/// Reserved by peers for the restore as a whole.
pub const TYPE_RESTORE_READY: &str = "RestoreReady";

/// The volume cannot be made as this generation asks for it; `status.code` says why. Ours alone.
pub const TYPE_REFUSED: &str = "Refused";
/// Refused: the node said no.
pub const REASON_REFUSED: &str = "RefusedByNode";

/// SnapshotBackupStorageFound: it does.
pub const REASON_BACKUP_STORAGE_FOUND: &str = "SnapshotBackupStorageFound";
/// SnapshotBackupStorageFound: it does not.
pub const REASON_BACKUP_STORAGE_NOT_FOUND: &str = "SnapshotBackupStorageNotFound";
/// SnapshotBackupExecutorEnsured: it does.
pub const REASON_BACKUP_EXECUTOR_ENSURED: &str = "SuccessfullyEnsuredSnapshotBackupExecutor";
/// SnapshotBackupExecutorEnsured: it could not be made.
pub const REASON_BACKUP_EXECUTOR_FAILED: &str = "FailedToEnsureSnapshotBackupExecutor";
/// SnapshotRestoreExecutorEnsured: it does.
pub const REASON_RESTORE_EXECUTOR_ENSURED: &str = "SuccessfullyEnsuredSnapshotRestoreExecutor";
/// SnapshotRestoreExecutorEnsured: it could not be made.
pub const REASON_RESTORE_EXECUTOR_FAILED: &str = "FailedToEnsureSnapshotRestoreExecutor";
/// SnapshotBackupExecutorCleaned: it is.
pub const REASON_BACKUP_EXECUTOR_CLEANED: &str = "SuccessfullyCleanedSnapshotBackupExecutor";
/// SnapshotBackupExecutorCleaned: it could not be.
pub const REASON_BACKUP_EXECUTOR_CLEAN_FAILED: &str = "FailedToCleanedSnapshotBackupExecutor";
/// SnapshotRestoreExecutorCleaned: it is.
pub const REASON_RESTORE_EXECUTOR_CLEANED: &str = "SuccessfullyCleanedSnapshotRestoreExecutor";
/// SnapshotRestoreExecutorCleaned: it could not be.
pub const REASON_RESTORE_EXECUTOR_CLEAN_FAILED: &str = "FailedToCleanedSnapshotRestoreExecutor";
/// LVMSnapshotCleaned: it is.
pub const REASON_LVM_SNAPSHOT_CLEANED: &str = "SuccessfullyCleanedLVMSnapshot";
/// LVMSnapshotCleaned: it could not be.
pub const REASON_LVM_SNAPSHOT_CLEAN_FAILED: &str = "FailedToCleanLVMSnapshot";
/// SnapshotDeleteExecutorEnsured: it does.
pub const REASON_DELETE_EXECUTOR_ENSURED: &str = "SuccessfullyEnsuredSnapshotDeleteExecutor";
/// SnapshotDeleteExecutorEnsured: it could not be made.
pub const REASON_DELETE_EXECUTOR_FAILED: &str = "FailedToEnsureSnapshotDeleteExecutor";
/// SnapshotDeleteEnsured: under way.
pub const REASON_DELETE_RUNNING: &str = "SnapshotDeleteRunning";
/// SnapshotDeleteEnsured: done.
pub const REASON_DELETE_SUCCEEDED: &str = "SnapshotDeleteSucceeded";
/// SnapshotDeleteEnsured: it failed.
pub const REASON_DELETE_FAILED: &str = "SnapshotDeleteFailed";
/// SnapshotExecutorPodMissing: it was.
pub const REASON_EXECUTOR_POD_MISSING: &str = "ExecutorPodMissing";

/// Values of `status.snapshot.error.code`.
pub mod error_codes {
    /// The volume could not be mounted.
    pub const VOLUME_MOUNT_FAILED: &str = "VolumeMountFailed";
    /// The volume could not be mounted for a restore.
    pub const VOLUME_BIND_MOUNT_FAILED: &str = "VolumeBindMountFailed";
    /// The operation could not be started.
    pub const SNAPSHOT_EXECUTION_FAILED: &str = "SnapshotExecutionFailed";
    /// The restore could not be started; named by older documents.
    pub const RESTORE_EXECUTION_FAILED: &str = "RestoreExecutionFailed";
    /// The backup store does not exist.
    pub const SNAPSHOT_STORAGE_NOT_FOUND: &str = "SnapshotStorageNotFound";
    /// The backup failed.
    pub const BACKUP_FAILED: &str = "BackupFailed";
    /// The restore failed.
    pub const RESTORE_FAILED: &str = "RestoreFailed";
    /// Who ran the operation was lost.
    pub const EXECUTOR_POD_MISSING: &str = "ExecutorPodMissing";
}
