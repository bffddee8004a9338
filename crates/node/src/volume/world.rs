//! Observe: what a decision about one LogicalVolume needs, read from caches.

use crate::disks::Look;
use jiff::Timestamp;
use lifeboat_api::topolvm::{LogicalVolume, SnapshotOperation};
use lifeboat_engine::Trouble;
use lifeboat_lvm::Volume;
use lifeboat_mover::{Progress, Snapshot};
use std::path::PathBuf;
use std::sync::Arc;

/// All that a decision about a LogicalVolume needs.
#[derive(Debug, Clone)]
pub struct World {
    /// The node whose disks this process has.
    pub node: String,
    /// This process, told apart from one that ran here before.
    pub process: String,
    /// The object.
    pub volume: Arc<LogicalVolume>,
    /// What is on disk under its names.
    pub disk: Disk,
    /// What the volumes of its class are carved from, where that is known.
    pub class_storage: Option<String>,
    /// Whether what has its volume is still served.
    pub home: Home,
    /// The object that it is a copy of.
    pub source: Source,
    /// Where its own snapshot class wants it backed up to, if anywhere.
    pub backup: Option<StorageRef>,
    /// The storage that its backup goes to or comes from.
    pub storage: Storage,
    /// Whether the PersistentVolume that stands for it exists.
    pub persistent_volume: bool,
    /// Whether its bytes are a filesystem that must be mounted to be read.
    pub files: bool,
    /// Where it is mounted by us.
    pub mount: Option<PathBuf>,
    /// What this process does with its bytes.
    pub job: Option<JobView>,
    /// Whether this process may begin another job.
    pub room: bool,
    /// Whether a place is kept for the job of this object.
    pub reserved: bool,
    /// Why it cannot be mounted as long as nobody changes it.
    pub unmountable: Option<String>,
    /// What the back end refused for good, for this generation.
    pub refused: Option<lifeboat_lvm::Error>,
    /// What failed last.
    pub trouble: Option<Trouble>,
}

/// What is known of the storage that an object's volume was made in, as its annotation says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Home {
    /// The object does not say, or nobody knows which storage is served.
    Unknown,
    /// Some device class of the node names it: a volume that no class has is gone.
    Served,
    /// No device class of the node names it, so nobody can see whether the volume is there.
    Unserved(String),
}

/// How far a backup or a restore is.
#[derive(Debug, Clone, PartialEq)]
pub struct JobView {
    /// Which of them it is.
    pub operation: SnapshotOperation,
    /// How far it is.
    pub progress: Progress,
    /// What came of it and when, once it has ended.
    pub outcome: Option<(Timestamp, Result<Moved, lifeboat_mover::Error>)>,
}

/// What a backup or a restore has done.
#[derive(Debug, Clone, PartialEq)]
pub struct Moved {
    /// The snapshot in the repository.
    pub snapshot: Snapshot,
    /// Where the repository is, without secrets.
    pub repository: String,
}

/// What is on disk under the names of an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Disk {
    /// Nobody has looked yet.
    Unlisted,
    /// It cannot be told.
    Unreadable(lifeboat_lvm::Error),
    /// This is there.
    Seen {
        /// The volume under the object's UID: complete, and usable.
        published: Option<Box<Volume>>,
        /// The volume that is still being filled.
        staging: Option<Box<Volume>>,
        /// Copy-on-write snapshots that would die with the volume.
        dependants: Vec<String>,
    },
}

impl Disk {
    /// What a listing says of one object.
    #[must_use]
    pub fn of(uid: &str, look: Look) -> Self {
        match look {
            Look::Unlisted => Self::Unlisted,
            Look::Failed(error) => Self::Unreadable(error),
            Look::Listed(mut volumes) => {
                let dies_with =
                    |volume: &&Volume| volume.origin.as_deref() == Some(uid) && volume.is_copy_on_write();
                let dependants =
                    volumes.values().filter(dies_with).map(|volume| volume.name.clone()).collect();
                let mut take = |name: &str| volumes.remove(name).map(Box::new);
                Self::Seen { published: take(uid), staging: take(&staging_name(uid)), dependants }
            }
        }
    }
}

/// The name of a volume that is still being filled. Only a complete one is called by the UID.
#[must_use]
pub fn staging_name(uid: &str) -> String {
    format!("staging-{uid}")
}

/// The object that another is a copy of.
#[derive(Debug, Clone)]
pub enum Source {
    /// None is asked for.
    None,
    /// One is asked for, and does not exist.
    Missing(String),
    /// It is there.
    Found {
        /// The object.
        volume: Arc<LogicalVolume>,
        /// Where its snapshot class wants it backed up to, if anywhere.
        backup: Option<StorageRef>,
    },
}

/// Names a SnapshotBackupStorage.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StorageRef {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Where backups are, as far as a decision needs to know; credentials are read when they are used.
#[derive(Debug, Clone, PartialEq)]
pub enum Storage {
    /// Nothing says which.
    Unnamed,
    /// It does not exist, or its secret does not.
    Missing(String),
    /// It cannot be used as it is written.
    Bad(String),
    /// It can be used.
    Ready(StorageRef),
}
