//! Looks: puts the world of a LogicalVolume together from the caches.

use crate::disks::Disks;
use crate::handle::Handle;
use crate::jobs;
use crate::lease::Leases;
use crate::mounts::Mounts;
use crate::volume::words::VolumeWords;
use crate::volume::world::{Disk, Home, JobView, Moved, Source, Storage, StorageRef, World, staging_name};
use k8s_openapi::api::core::v1::PersistentVolume;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lifeboat_api::annotations::{self, parameters};
use lifeboat_api::snapshot::{VolumeSnapshotClass, VolumeSnapshotContent};
use lifeboat_api::topolvm::{LogicalVolume, SnapshotBackupStorage, SnapshotOperation};
use lifeboat_engine::{Clock, Index, ObjectKey, Objects, Trouble};
use lifeboat_lvm::{Access, Error, Volume};
use lifeboat_mover::{Mover, Progress};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::{Notify, watch};

/// What a job is about, and how far it is.
#[derive(Clone)]
pub(super) struct Copying {
    pub(super) operation: SnapshotOperation,
    pub(super) progress: watch::Receiver<Progress>,
}

/// Backups and restores under way.
pub(super) type Jobs = jobs::Jobs<Copying, Moved, lifeboat_mover::Error>;

/// The controller of this node's LogicalVolumes.
pub struct Volumes {
    pub(super) node: String,
    pub(super) process: String,
    pub(super) namespace: String,
    pub(super) volumes: Objects<LogicalVolume>,
    pub(super) by_uid: Index<String, LogicalVolume>,
    pub(super) persistent: Objects<PersistentVolume>,
    pub(super) contents: Objects<VolumeSnapshotContent>,
    pub(super) classes: Objects<VolumeSnapshotClass>,
    pub(super) storages: Objects<SnapshotBackupStorage>,
    pub(super) client: kube::Client,
    pub(super) clock: Clock,
    pub(super) disks: Disks,
    pub(super) jobs: Jobs,
    pub(super) mounts: Mounts,
    pub(super) mover: Arc<dyn Mover>,
    pub(super) refused: Mutex<BTreeMap<ObjectKey, Refused>>,
    /// UIDs of objects whose volume this process has removed.
    pub(super) removed: Mutex<BTreeSet<String>>,
    pub(super) unmountable: Mutex<BTreeMap<String, Unmountable>>,
    /// When this process last said of an operation that it is alive.
    pub(super) leases: Leases,
    /// Told when an object is gone; what this process still does for it is ended then.
    pub(super) gone: Arc<Notify>,
}

/// What the back end refused for good, and for which wish.
#[derive(Debug, Clone)]
pub(super) struct Refused {
    pub(super) uid: String,
    pub(super) generation: Option<i64>,
    pub(super) error: Error,
}

/// A device that cannot be mounted, and in which try that was found.
#[derive(Debug, Clone)]
pub(super) struct Unmountable {
    /// When the try before it ended.
    pub(super) after: Option<Time>,
    pub(super) why: String,
}

impl Volumes {
    /// The world of one object of this node.
    pub(super) fn world(&self, key: &ObjectKey, trouble: Option<&Trouble>) -> Option<World> {
        let volume = self.volumes.get(key).filter(|volume| volume.spec.node_name == self.node)?;
        let uid = volume.uid();
        let disk = self.disk(&volume);
        let found = match &disk {
            Disk::Seen { published, staging, .. } => published.as_deref().or(staging.as_deref()),
            _ => None,
        };
        let refused = self.refused.lock().get(key).cloned();
        Some(World {
            node: self.node.clone(),
            process: self.process.clone(),
            class_storage: self.disks.storage_of(volume.class()),
            home: self.home(&volume),
            source: self.source(&volume),
            backup: self.backup_of(&volume),
            storage: self.storage(self.storage_ref(&volume)),
            persistent_volume: self.persistent.get(&ObjectKey::cluster_wide(&*volume.spec.name)).is_some(),
            files: self.is_files(&volume, found),
            mount: self.mounts.of(uid),
            job: self.jobs.of(uid).map(|job| JobView {
                operation: job.of.operation,
                progress: *job.of.progress.borrow(),
                outcome: job.outcome,
            }),
            room: self.jobs.has_room(),
            reserved: self.jobs.is_reserved(uid),
            unmountable: self.unmountable.lock().get(uid).cloned().and_then(|found| {
                let ended = volume.snapshot().and_then(|snapshot| snapshot.completion_time.clone());
                (found.after == ended).then_some(found.why)
            }),
            refused: refused
                .filter(|refused| refused.uid == uid && refused.generation == volume.metadata.generation)
                .map(|refused| refused.error),
            trouble: trouble.cloned(),
            disk,
            volume,
        })
    }

    /// What is on disk of one object; a node has many volumes, and few concern it.
    fn disk(&self, volume: &LogicalVolume) -> Disk {
        let (uid, staging) = (volume.uid(), staging_name(volume.uid()));
        let concerns = |found: &Volume| {
            found.name == uid || found.name == staging || found.origin.as_deref() == Some(uid)
        };
        Disk::of(uid, self.disks.look(volume.class(), concerns))
    }

    /// Whether what has the volume of an object is still served.
    pub(super) fn home(&self, volume: &LogicalVolume) -> Home {
        let Some(storage) = volume.note(annotations::STORED_IN) else { return Home::Unknown };
        match self.disks.serves(storage) {
            // What this process removed was there, whatever its storage is called now.
            _ if self.removed.lock().contains(volume.uid()) => Home::Served,
            None => Home::Unknown,
            Some(true) => Home::Served,
            Some(false) => Home::Unserved(storage.to_owned()),
        }
    }

    fn source(&self, volume: &LogicalVolume) -> Source {
        let named = volume.spec.source.as_deref().filter(|name| !name.is_empty());
        let by_name = named.and_then(|name| self.volumes.get(&ObjectKey::cluster_wide(name)));
        let handle = volume.barrier().and_then(Result::ok);
        let by_handle = handle.and_then(|handle| self.by_uid.first(&handle.volume().to_owned()));
        match (by_handle.or(by_name), named) {
            (Some(source), _) => Source::Found { backup: self.backup_of(&source), volume: source },
            (None, Some(name)) => Source::Missing(name.to_owned()),
            (None, None) => Source::None,
        }
    }

    /// Where the snapshot class of a volume wants it backed up to: said by annotations, or, where a peer made the object, by the class of
    /// the content whose name the peers derive from the volume's.
    fn backup_of(&self, volume: &LogicalVolume) -> Option<StorageRef> {
        let from = |get: &dyn Fn(&str) -> Option<String>| {
            (get(parameters::SNAPSHOT_MODE)? == parameters::SNAPSHOT_MODE_ONLINE).then(|| StorageRef {
                namespace: get(parameters::SNAPSHOT_STORAGE_NAMESPACE)
                    .unwrap_or_else(|| self.namespace.clone()),
                name: get(parameters::SNAPSHOT_STORAGE_NAME).unwrap_or_default(),
            })
        };
        if !volume.is_read_only() {
            return None;
        }
        from(&|key| volume.note(key).map(str::to_owned)).or_else(|| {
            let content = format!("snapcontent{}", volume.spec.name.strip_prefix("snapshot")?);
            let content = self.contents.get(&ObjectKey::cluster_wide(content))?;
            let class = content.spec.volume_snapshot_class_name.clone()?;
            let class = self.classes.get(&ObjectKey::cluster_wide(class))?;
            from(&|key| class.spec.parameters.get(key).cloned())
        })
    }

    fn storage(&self, wanted: Option<StorageRef>) -> Storage {
        let Some(wanted) = wanted else { return Storage::Unnamed };
        if wanted.name.is_empty() {
            return Storage::Unnamed;
        }
        let key = ObjectKey::new(wanted.namespace.clone(), wanted.name.clone());
        match self.storages.get(&key) {
            None => Storage::Missing(format!(
                "the SnapshotBackupStorage {key} does not exist: create it, or correct the snapshot class"
            )),
            Some(storage) => match crate::stores::plain(&storage) {
                Err(error) => {
                    Storage::Bad(format!("the SnapshotBackupStorage {key} cannot be used: {error}"))
                }
                Ok(_) => Storage::Ready(wanted),
            },
        }
    }

    pub(super) fn on_disk(&self, volume: &LogicalVolume) -> (Option<Volume>, Option<Volume>) {
        match self.disk(volume) {
            Disk::Seen { published, staging, .. } => {
                (published.map(|found| *found), staging.map(|found| *found))
            }
            _ => (None, None),
        }
    }

    pub(super) fn storage_ref(&self, volume: &LogicalVolume) -> Option<StorageRef> {
        match volume.barrier() {
            Some(Ok(Handle::Remote { namespace, storage, .. })) => {
                Some(StorageRef { namespace, name: storage })
            }
            _ => self.backup_of(volume),
        }
    }

    fn is_files(&self, volume: &LogicalVolume, found: Option<&Volume>) -> bool {
        let on_device = found.is_some_and(|found| matches!(found.access, Access::Device(_)));
        let said = volume.note(annotations::VOLUME_MODE).map(str::to_owned);
        let of_volume = |name: &str| {
            let spec = self.persistent.get(&ObjectKey::cluster_wide(name))?.spec.clone()?;
            Some(spec.volume_mode.unwrap_or_else(|| "Filesystem".to_owned()))
        };
        let source = || volume.spec.source.as_deref().and_then(of_volume);
        on_device && said.or_else(|| of_volume(&volume.spec.name)).or_else(source).as_deref() != Some("Block")
    }
}
