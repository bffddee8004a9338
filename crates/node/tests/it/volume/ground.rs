//! What a story stands on: a node with a folder for disks, a repository in another, and an agent that can die at every effect.

use async_trait::async_trait;
use k8s_openapi::api::core::v1::{PersistentVolume, Secret};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use lifeboat_api::annotations::{self, parameters};
use lifeboat_api::finalizers;
use lifeboat_api::topolvm::{
    AccessType, LocalStorage, LogicalVolume, SnapshotBackupStorage, SnapshotPhase, SnapshotStatus,
};
use lifeboat_engine::{Clock, Settings};
use lifeboat_lvm::{Directories, DirectoryClass};
use lifeboat_mortal::{Mortal, NoMounts};
use lifeboat_mover::{BackedUp, Backup, Mover, Progress, Repository, Restore, Restored, Rustic, Verified};
use lifeboat_node::volume::{Config, Parts, agent};
use lifeboat_testbed::fixtures;
use lifeboat_testbed::{Cluster, CrashPoints, Kind};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;
use tokio::sync::watch;

/// The value that nobody may ever see.
pub const CANARY: &str = "canary-password";

/// Disks and a store; they outlive every process.
#[derive(Clone)]
pub struct Ground {
    folder: Arc<TempDir>,
    lives: Arc<AtomicU32>,
    /// How many of the next backups never end.
    pub hangs: Arc<AtomicU32>,
    /// Backups and restores at once.
    pub jobs_at_once: usize,
    /// What the device class is carved from on a node: `disks`, or another folder that an administrator has put in its place.
    pub class_folder: &'static str,
    /// What the device class is called.
    pub class_name: &'static str,
    /// Namespace of the storage, and what tells the story's objects from those of others on the same cluster.
    pub mark: String,
}

impl Ground {
    /// A ground on a cluster that nobody else uses.
    pub fn alone() -> Self {
        Self {
            folder: Arc::new(TempDir::new().unwrap()),
            lives: Arc::default(),
            hangs: Arc::default(),
            jobs_at_once: 4,
            class_folder: "disks",
            class_name: "dir",
            mark: "default".to_owned(),
        }
    }

    /// A ground on a cluster that others use too.
    pub async fn on(cluster: &Cluster) -> Self {
        cluster.install(&crate::definitions()).await;
        Self { mark: cluster.namespace("node").await, ..Self::alone() }
    }

    /// A name of this story.
    pub fn name(&self, name: &str) -> String {
        format!("{name}-{}", self.mark)
    }

    /// The handle of a snapshot in this story's store.
    pub fn handle(&self, uid: &str) -> String {
        format!("backup/{}/store/{uid}", self.mark)
    }

    pub fn disks(&self, node: &str) -> PathBuf {
        self.folder.path().join(self.class_folder).join(self.name(node))
    }

    pub fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// The files of a volume, wherever the back end keeps them.
    pub fn files(&self, node: &str, uid: &str) -> Option<PathBuf> {
        find(&self.disks(node), uid).map(|volume| volume.join("data"))
    }

    /// Names of everything on a node's disks.
    pub fn volumes(&self, node: &str) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        collect(&self.disks(node), &mut names);
        names
    }

    /// The agent of a node, in a process of its own.
    pub async fn run(self, client: kube::Client, clock: Clock, points: CrashPoints, node: &str) {
        std::fs::create_dir_all(self.disks(node)).unwrap();
        let class = DirectoryClass::new(self.class_name, self.disks(node)).default_class();
        let lvm = Mortal { lvm: Arc::new(Directories::new(vec![class]).unwrap()), fate: points.clone() };
        let mover = MortalMover { rustic: Rustic::new(), hangs: self.hangs.clone(), points };
        let parts = Parts { lvm: Arc::new(lvm), mover: Arc::new(mover), filesystems: Arc::new(NoMounts) };
        let life = self.lives.fetch_add(1, Ordering::Relaxed);
        let config = Config {
            node: self.name(node),
            process: format!("{node}/{life}"),
            namespace: self.mark.clone(),
            jobs_at_once: self.jobs_at_once,
            mounts: self.folder.path().join("mounts"),
        };
        agent(client, clock, Settings::default(), parts, config).run(std::future::pending()).await;
    }

    /// A storage object and its Secret, for the store of this ground.
    pub async fn offer_store(&self, cluster: &Cluster) {
        let mut secret = Secret::default();
        secret.metadata.name = Some("store-secret".into());
        secret.string_data = Some(BTreeMap::from([("RESTIC_PASSWORD".into(), CANARY.into())]));
        let secrets: Api<Secret> = Api::namespaced(cluster.client(), &self.mark);
        secrets.create(&PostParams::default(), &secret).await.unwrap();
        let mut storage = SnapshotBackupStorage::default();
        storage.metadata.name = Some("store".into());
        storage.spec.engine = "restic".into();
        storage.spec.storage.provider = Some("local".into());
        storage.spec.storage.local = Some(LocalStorage {
            path: Some(self.store().to_str().unwrap().to_owned()),
            secret_name: Some("store-secret".into()),
        });
        std::fs::create_dir_all(self.store()).unwrap();
        let storages: Api<SnapshotBackupStorage> = Api::namespaced(cluster.client(), &self.mark);
        storages.create(&PostParams::default(), &storage).await.unwrap();
    }
}

fn find(below: &Path, name: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(below).ok()?.flatten().filter(|entry| entry.path().is_dir());
    entries.map(|entry| entry.path()).find_map(|path| {
        let ours = path.file_name().is_some_and(|file| file == name) && path.join("data").is_dir();
        if ours { Some(path) } else { find(&path, name) }
    })
}

fn collect(below: &Path, names: &mut BTreeSet<String>) {
    for entry in
        std::fs::read_dir(below).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir())
    {
        if entry.path().join("data").is_dir() {
            names.insert(entry.file_name().to_string_lossy().into_owned());
        } else {
            collect(&entry.path(), names);
        }
    }
}

type Moving<T> = Result<T, lifeboat_mover::Error>;

/// A mover whose user can die at every change, and some of whose backups never end.
struct MortalMover {
    rustic: Rustic,
    hangs: Arc<AtomicU32>,
    points: CrashPoints,
}

impl MortalMover {
    async fn effect<R>(&self, what: &str, work: impl Future<Output = R>) -> R {
        match self.points.effect(Kind::Mover, what, work).await {
            Ok(done) => done,
            // Whoever has died does not go on.
            Err(_) => std::future::pending().await,
        }
    }
}

#[async_trait]
impl Mover for MortalMover {
    async fn probe(&self, repository: &Repository) -> Moving<()> {
        self.rustic.probe(repository).await
    }
    async fn backup(
        &self,
        at: &Repository,
        backup: Backup,
        progress: watch::Sender<Progress>,
    ) -> Moving<BackedUp> {
        let work = async {
            let one_less = |left: u32| left.checked_sub(1);
            if self.hangs.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok() {
                std::future::pending::<()>().await;
            }
            self.rustic.backup(at, backup, progress).await
        };
        self.effect("backup", work).await
    }
    async fn restore(
        &self,
        at: &Repository,
        restore: Restore,
        progress: watch::Sender<Progress>,
    ) -> Moving<Restored> {
        self.effect("restore", self.rustic.restore(at, restore, progress)).await
    }
    async fn find(
        &self,
        at: &Repository,
        tags: &BTreeMap<String, String>,
    ) -> Moving<Vec<lifeboat_mover::Snapshot>> {
        self.rustic.find(at, tags).await
    }
    async fn forget(&self, at: &Repository, snapshots: &BTreeSet<String>) -> Moving<()> {
        self.effect("forget", self.rustic.forget(at, snapshots)).await
    }
    async fn verify(&self, at: &Repository, read_data: bool) -> Moving<Verified> {
        self.rustic.verify(at, read_data).await
    }
}

pub fn volumes(cluster: &Cluster) -> Api<LogicalVolume> {
    Api::all(cluster.client())
}

impl Ground {
    /// A plain volume of 64 MiB.
    pub fn plain(&self, name: &str, node: &str) -> LogicalVolume {
        let mut volume = LogicalVolume::default();
        volume.metadata.name = Some(self.name(name));
        volume.spec.name = self.name(name);
        volume.spec.node_name = self.name(node);
        volume.spec.size = Quantity("64Mi".into());
        note(&mut volume, annotations::CLAIM, "app/data");
        volume
    }

    /// A snapshot of a volume that goes to the store.
    pub fn online_snapshot(&self, name: &str, source: &LogicalVolume) -> LogicalVolume {
        let mut volume = self.plain(name, "");
        volume.spec.node_name.clone_from(&source.spec.node_name);
        volume.spec.source = source.metadata.name.clone();
        volume.spec.access_type = Some(AccessType::ReadOnly);
        note(&mut volume, parameters::SNAPSHOT_MODE, parameters::SNAPSHOT_MODE_ONLINE);
        note(&mut volume, parameters::SNAPSHOT_STORAGE_NAME, "store");
        note(&mut volume, parameters::SNAPSHOT_STORAGE_NAMESPACE, &self.mark);
        volume
    }

    /// A volume that is filled from the backup of a snapshot.
    pub fn restored(&self, name: &str, node: &str, uid: &str) -> LogicalVolume {
        let mut volume = self.plain(name, node);
        note(&mut volume, annotations::SNAPSHOT_RESTORE_REQUIRED, &self.handle(uid));
        volume
    }
}

pub fn note(volume: &mut LogicalVolume, key: &str, value: &str) {
    volume.metadata.annotations.get_or_insert_default().insert(key.to_owned(), value.to_owned());
}

pub async fn create(cluster: &Cluster, volume: &LogicalVolume) -> LogicalVolume {
    volumes(cluster).create(&PostParams::default(), volume).await.unwrap()
}

pub async fn delete(cluster: &Cluster, name: &str) {
    volumes(cluster).delete(name, &DeleteParams::default()).await.unwrap();
}

pub async fn stand_in(cluster: &Cluster, name: &str) {
    Api::<PersistentVolume>::all(cluster.client())
        .create(&PostParams::default(), &fixtures::volume(name))
        .await
        .unwrap();
}

pub fn snapshot(volume: &LogicalVolume) -> SnapshotStatus {
    volume.status.as_ref().and_then(|status| status.snapshot.clone()).unwrap_or_default()
}

pub async fn made(cluster: &Cluster, name: &str) -> LogicalVolume {
    let is = |volume: Option<&LogicalVolume>| {
        volume.is_some_and(|volume| lifeboat_node::volume::may_publish(volume).is_ok())
    };
    cluster.until(&volumes(cluster), name, is).await.unwrap()
}

pub async fn in_phase(cluster: &Cluster, name: &str, phase: SnapshotPhase) -> LogicalVolume {
    let is = |volume: Option<&LogicalVolume>| volume.is_some_and(|volume| snapshot(volume).phase == phase);
    cluster.until(&volumes(cluster), name, is).await.unwrap()
}

pub async fn gone(cluster: &Cluster, name: &str) {
    cluster.until(&volumes(cluster), name, |volume: Option<&LogicalVolume>| volume.is_none()).await;
}

/// The local snapshot has gone, and the node's finalizer with it; the store's stays.
pub async fn released_by_node(cluster: &Cluster, name: &str) {
    let is = |volume: Option<&LogicalVolume>| {
        volume.is_some_and(|volume| {
            volume.metadata.finalizers == Some(vec![finalizers::REMOTE_SNAPSHOT.to_owned()])
        })
    };
    cluster.until(&volumes(cluster), name, is).await;
}

/// The volume has so many bytes, and says so.
pub async fn grown(cluster: &Cluster, name: &str, bytes: u64) {
    let size = Some(Quantity(bytes.to_string()));
    let is = |volume: Option<&LogicalVolume>| {
        volume.and_then(|volume| volume.status.as_ref()).is_some_and(|status| status.current_size == size)
    };
    cluster.until(&volumes(cluster), name, is).await;
}
