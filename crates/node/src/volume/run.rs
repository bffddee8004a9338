//! Puts the controller of a node's volumes on an engine, with what runs beside it.

use crate::disks::Disks;
use crate::jobs::{Jobs, Worker};
use crate::mounts::{Filesystems, Mounts};
use crate::volume::view::Volumes;
use crate::volume::words::VolumeWords;
use k8s_openapi::api::core::v1::PersistentVolume;
use lifeboat_api::snapshot::{VolumeSnapshotClass, VolumeSnapshotContent};
use lifeboat_api::topolvm::{LogicalVolume, SnapshotBackupStorage};
use lifeboat_engine::{Change, Clock, Engine, Index, ObjectKey, Objects, Selection, Settings, Wiring};
use lifeboat_lvm::Lvm;
use lifeboat_mover::Mover;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The name that events and writes carry.
pub const NAME: &str = "lifeboat-node";

/// What the agent of a node is told.
#[derive(Debug, Clone)]
pub struct Config {
    /// The node.
    pub node: String,
    /// This process, told apart from every other, before and after it.
    pub process: String,
    /// Namespace of SnapshotBackupStorages that are named without one.
    pub namespace: String,
    /// Backups and restores at once.
    pub jobs_at_once: usize,
    /// Folder for mount points of our own.
    pub mounts: PathBuf,
}

/// What the agent of a node works with.
#[derive(Clone)]
pub struct Parts {
    /// The node's volumes.
    pub lvm: Arc<dyn Lvm>,
    /// Moves bytes.
    pub mover: Arc<dyn Mover>,
    /// Mounts.
    pub filesystems: Arc<dyn Filesystems>,
}

/// The agent of a node, ready to run.
pub struct Agent {
    engine: Engine,
    disks: Disks,
    worker: Worker,
    mounts: Mounts,
    wiring: Wiring<ObjectKey>,
    volumes: Objects<LogicalVolume>,
    by_uid: Index<String, LogicalVolume>,
    node: String,
}

/// Makes the agent of a node.
pub fn agent(client: kube::Client, clock: Clock, settings: Settings, parts: Parts, config: Config) -> Agent {
    let mut engine = Engine::new(NAME, client.clone(), clock.clone(), settings);
    let volumes = engine.objects::<LogicalVolume>(Selection::all());
    let persistent = engine.objects::<PersistentVolume>(Selection::all());
    let contents = engine.objects::<VolumeSnapshotContent>(Selection::all());
    let classes = engine.objects::<VolumeSnapshotClass>(Selection::all());
    let storages = engine.objects::<SnapshotBackupStorage>(Selection::all());
    let by_uid = volumes.index(|volume: &LogicalVolume| Some(volume.uid().to_owned()));
    let disks = Disks::new(parts.lvm);
    let (jobs, worker) = Jobs::new(config.jobs_at_once, clock);
    let mounts = Mounts::new(parts.filesystems, config.mounts);
    let controller = Volumes {
        node: config.node.clone(),
        process: config.process,
        namespace: config.namespace,
        volumes: volumes.clone(),
        by_uid: by_uid.clone(),
        persistent: persistent.clone(),
        contents: contents.clone(),
        classes: classes.clone(),
        storages: storages.clone(),
        client,
        disks: disks.clone(),
        jobs,
        mounts: mounts.clone(),
        mover: parts.mover,
        refused: parking_lot::Mutex::default(),
    };
    let wiring = engine.controller(controller);
    let wiring = wake(wiring, &volumes, &persistent, &contents, &storages);
    Agent { engine, disks, worker, mounts, wiring, volumes, by_uid, node: config.node }
}

fn wake(
    wiring: Wiring<ObjectKey>,
    volumes: &Objects<LogicalVolume>,
    persistent: &Objects<PersistentVolume>,
    contents: &Objects<VolumeSnapshotContent>,
    storages: &Objects<SnapshotBackupStorage>,
) -> Wiring<ObjectKey> {
    let copies = volumes.index(|volume: &LogicalVolume| volume.spec.source.clone());
    let restores = volumes.index(|volume: &LogicalVolume| {
        volume.barrier().and_then(Result::ok).map(|handle| handle.volume().to_owned())
    });
    let by_name = volumes.index(|volume: &LogicalVolume| Some(volume.spec.name.clone()));
    // Only those that have not ended wait for a storage.
    let moving = volumes.index(|volume: &LogicalVolume| {
        let ended =
            volume.is_backed_up() || volume.phase().is_some_and(|phase| phase.as_str() == "Succeeded");
        (!ended && (volume.is_read_only() || volume.barrier().is_some())).then_some(())
    });
    let of_content = by_name.clone();
    wiring
        .woken_by(volumes, move |change: &Change<LogicalVolume>| {
            let (key, uid) = (change.key(), change.latest().uid().to_owned());
            let dependants = copies.get(&key.name).into_iter().chain(restores.get(&uid));
            let mut keys: Vec<ObjectKey> = dependants.map(|volume| ObjectKey::of(&*volume)).collect();
            keys.push(key);
            keys
        })
        .woken_by(persistent, move |change: &Change<PersistentVolume>| {
            by_name.get(&change.key().name).iter().map(|volume| ObjectKey::of(&**volume)).collect::<Vec<_>>()
        })
        .woken_by(contents, move |change: &Change<VolumeSnapshotContent>| {
            let name = change.key().name.strip_prefix("snapcontent").map(|rest| format!("snapshot{rest}"));
            let volumes = name.map(|name| of_content.get(&name)).unwrap_or_default();
            volumes.iter().map(|volume| ObjectKey::of(&**volume)).collect::<Vec<_>>()
        })
        .woken_by(storages, move |_: &Change<SnapshotBackupStorage>| {
            moving.get(&()).iter().map(|volume| ObjectKey::of(&**volume)).collect::<Vec<_>>()
        })
}

impl Agent {
    /// The engine, so that more controllers can be put on it.
    pub fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// Runs until told to stop.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) {
        let Self { engine, disks, worker, mounts, wiring, volumes, by_uid, node } = self;
        if let Err(error) = mounts.learn().await {
            tracing::warn!(%error, "what an earlier process left mounted is not known");
        }
        let wake = |uid: &str| {
            let uid = uid.strip_prefix("staging-").unwrap_or(uid);
            if let Some(volume) = by_uid.first(&uid.to_owned()) {
                wiring.wake(ObjectKey::of(&*volume));
            }
        };
        let ended = |uid: &str| {
            wake(uid);
            // Whoever waits for its turn looks again.
            let waiting = volumes.all().into_iter().filter(|volume| {
                volume.spec.node_name == node
                    && volume.phase().is_some_and(|phase| phase.as_str() == "Pending")
            });
            waiting.for_each(|volume| wiring.wake(ObjectKey::of(&*volume)));
        };
        let strays = release_strays(&mounts, &volumes, &by_uid);
        tokio::select! {
            () = engine.run(stop) => {}
            () = strays => {}
            () = disks.follow(wake) => {}
            () = worker.run(ended) => {}
        }
    }
}

/// Mounts whose object is gone are nobody's: no decision would release them.
async fn release_strays(
    mounts: &Mounts,
    volumes: &Objects<LogicalVolume>,
    by_uid: &Index<String, LogicalVolume>,
) {
    // Before the first listing every mount looks like a stray.
    while !volumes.is_synced() {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    for uid in mounts.strays(|uid| by_uid.first(&uid.to_owned()).is_some()) {
        if let Err(error) = mounts.unmount(&uid).await {
            tracing::warn!(%error, uid, "a mount that an earlier process left cannot be released");
        }
    }
    std::future::pending::<()>().await;
}
