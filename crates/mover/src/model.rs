//! The words of backup and restore, and the trait that controllers call.

use async_trait::async_trait;
use lifeboat_store::{Secret, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use tokio::sync::watch;

/// A repository: a store and the password that opens it. Equal ones share one open handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// Where it is.
    pub store: Store,
    /// What opens it.
    pub password: Secret,
}

/// What is read or written on the volume's side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The tree under a directory.
    Files(PathBuf),
    /// The bytes of a block device or of one file.
    Device {
        /// The device.
        path: PathBuf,
        /// Bytes to read; the rest of the device is left out.
        size: u64,
    },
}

/// A backup to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// What to read.
    pub content: Content,
    /// Path that the snapshot shows, whatever the files' real place is: mostly `/namespace/claim`.
    pub path: String,
    /// Host that the snapshot shows.
    pub host: String,
    /// Facts to find the snapshot by, kept as tags `key=value`.
    pub tags: BTreeMap<String, String>,
    /// How fast.
    pub limits: Limits,
}

/// Bounds on what an operation may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes a second to or from the store, at most; 0 for no bound.
    pub bytes_per_second: u64,
}

/// A snapshot that a repository holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Its id, 64 hexadecimal digits.
    pub id: String,
    /// Facts it was stored with.
    pub tags: BTreeMap<String, String>,
    /// Path it shows.
    pub path: String,
    /// Bytes of all files.
    pub bytes: u64,
    /// How many files.
    pub files: u64,
    /// Whether it holds one device instead of a tree.
    pub device: bool,
}

/// A backup that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackedUp {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// Bytes that the repository did not have before, as stored.
    pub bytes_added: u64,
}

/// A restore to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restore {
    /// Id of the snapshot.
    pub snapshot: String,
    /// Where to: an empty or half-restored directory, or a device.
    pub content: Content,
    /// Recreate device nodes, sockets and pipes; without it they are left out and counted.
    pub special_files: bool,
    /// How fast.
    pub limits: Limits,
}

/// What was restored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Bytes of all files.
    pub bytes: u64,
    /// How many files.
    pub files: u64,
    /// Entries left out: special files, and names that would have led out of the target.
    pub left_out: u64,
}

/// What a verification found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Snapshots looked at.
    pub snapshots: u64,
    /// Bytes read back and compared with their checksums.
    pub bytes_read: u64,
    /// What is wrong, one line each; empty when all is well.
    pub faults: Vec<String>,
}

/// How far an operation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes to handle, as far as known.
    pub bytes_total: u64,
    /// Bytes handled.
    pub bytes_done: u64,
    /// Files to handle, as far as known.
    pub files_total: u64,
    /// Files handled.
    pub files_done: u64,
}

/// Why bytes did not move.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The store does not let us in.
    #[error("{0}")]
    Denied(String),
    /// The password does not open the repository.
    #[error("the password does not open the repository at {0}: check the secret, or use another prefix")]
    WrongPassword(String),
    /// There is no repository.
    #[error("there is no repository at {0}")]
    NoRepository(String),
    /// There is no such snapshot.
    #[error("the repository has no snapshot {0}")]
    NoSnapshot(String),
    /// The repository holds something that must not be.
    #[error("{0}")]
    Damaged(String),
    /// The target has not enough room.
    #[error("{0}")]
    NoRoom(String),
    /// The request makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// It did not work this time; trying again may.
    #[error("{0}")]
    Transient(String),
    /// The operation was asked to stop.
    #[error("the operation was stopped")]
    Stopped,
}

impl Error {
    /// Whether the same request may succeed later without anybody changing it.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Transient(_) | Self::Stopped)
    }
}

/// Moves bytes between volumes and repositories. A future that is dropped stops its work soon after; what a repository then holds
/// is complete snapshots and unreferenced data, never half a snapshot.
#[async_trait]
pub trait Mover: Send + Sync + 'static {
    /// Tries a store for real: reaches it, writes an object, reads it back, removes it; and, where there is a repository, opens it.
    async fn probe(&self, repository: &Repository) -> Result<(), Error>;

    /// Backs a volume up, making the repository if there is none, and reports how far it is.
    async fn backup(
        &self,
        repository: &Repository,
        backup: Backup,
        progress: watch::Sender<Progress>,
    ) -> Result<BackedUp, Error>;

    /// Writes a snapshot into a volume and checks what was written; going on over a half-restored target is safe.
    async fn restore(
        &self,
        repository: &Repository,
        restore: Restore,
        progress: watch::Sender<Progress>,
    ) -> Result<Restored, Error>;

    /// Snapshots that carry all of these tags, oldest first.
    async fn find(
        &self,
        repository: &Repository,
        tags: &BTreeMap<String, String>,
    ) -> Result<Vec<Snapshot>, Error>;

    /// Removes snapshots; the data that nothing uses any more then is removed by [`prune`](Self::prune). An id that is gone already is no error.
    async fn forget(&self, repository: &Repository, snapshots: &BTreeSet<String>) -> Result<(), Error>;

    /// Removes data that no snapshot uses. It may take long, can be cut off at any time and begun again by anybody. Where others
    /// are at work in the repository that is a passing failure.
    async fn prune(&self, repository: &Repository) -> Result<(), Error> {
        let _ = repository;
        Ok(())
    }

    /// Checks the repository; with `read_data` every byte of it.
    async fn verify(&self, repository: &Repository, read_data: bool) -> Result<Verified, Error>;
}
