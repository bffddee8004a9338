//! Puts the controller of a node's volumes on an engine, with what runs beside it.

use crate::disks::Disks;
use crate::jobs::Worker;
use crate::lease::Leases;
use crate::mounts::{Filesystems, Mounts};
use crate::volume::view::{Copying, Jobs, Volumes};
use crate::volume::words::VolumeWords;
use crate::volume::world::Moved;
use k8s_openapi::api::core::v1::PersistentVolume;
use lifeboat_api::snapshot::{VolumeSnapshotClass, VolumeSnapshotContent};
use lifeboat_api::topolvm::{LogicalVolume, SnapshotBackupStorage, SnapshotPhase};
use lifeboat_engine::{
    Change, Clock, Engine, Index, Listed, ObjectKey, Objects, Selection, Settings, Wiring,
};
use lifeboat_lvm::Lvm;
use lifeboat_mover::Mover;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// The name that events and writes carry.
pub const NAME: &str = "lifeboat-node";

/// When a mount that could not be released is tried again: what was copying from it may take a moment to stop.
const AGAIN: Duration = Duration::from_secs(5);

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
    worker: Worker<Copying, Moved, lifeboat_mover::Error>,
    strays: Strays,
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
    let (jobs, worker) = Jobs::new(config.jobs_at_once, clock.clone());
    let mounts = Mounts::new(parts.filesystems, config.mounts);
    let gone = Arc::new(Notify::new());
    let replaced = gone.clone();
    volumes.listen(move |change: &Change<LogicalVolume>| {
        let old = change.old.as_ref().map(|volume| volume.uid());
        if old.is_some() && old != change.new.as_ref().map(|volume| volume.uid()) {
            replaced.notify_one();
        }
    });
    let strays = Strays {
        jobs: jobs.clone(),
        mounts: mounts.clone(),
        by_uid: by_uid.clone(),
        listed: engine.listed(),
        gone: gone.clone(),
    };
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
        clock: clock.clone(),
        disks: disks.clone(),
        jobs,
        mounts,
        mover: parts.mover,
        refused: parking_lot::Mutex::default(),
        removed: parking_lot::Mutex::default(),
        unmountable: parking_lot::Mutex::default(),
        leases: Leases::default(),
        gone,
    };
    let wiring = engine.controller(controller);
    let wiring = wake(wiring, &volumes, &persistent, &contents, &classes, &storages);
    Agent { engine, disks, worker, strays, wiring, volumes, by_uid, node: config.node }
}

fn wake(
    wiring: Wiring<ObjectKey>,
    volumes: &Objects<LogicalVolume>,
    persistent: &Objects<PersistentVolume>,
    contents: &Objects<VolumeSnapshotContent>,
    classes: &Objects<VolumeSnapshotClass>,
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
    let (of_class, contents_of) = (
        by_name.clone(),
        contents.index(|content: &VolumeSnapshotContent| content.spec.volume_snapshot_class_name.clone()),
    );
    let snapshot_of =
        |content: &str| content.strip_prefix("snapcontent").map(|rest| format!("snapshot{rest}"));
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
            let name = snapshot_of(&change.key().name);
            let volumes = name.map(|name| of_content.get(&name)).unwrap_or_default();
            volumes.iter().map(|volume| ObjectKey::of(&**volume)).collect::<Vec<_>>()
        })
        // The class says whether a snapshot is backed up, and may come last.
        .woken_by(classes, move |change: &Change<VolumeSnapshotClass>| {
            let contents = contents_of.get(&change.key().name);
            let names = contents.iter().filter_map(|content| snapshot_of(&ObjectKey::of(&**content).name));
            let volumes = names.flat_map(|name| of_class.get(&name));
            volumes.map(|volume| ObjectKey::of(&*volume)).collect::<Vec<_>>()
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
        let Self { engine, disks, worker, strays, wiring, volumes, by_uid, node } = self;
        if let Err(error) = strays.mounts.learn().await {
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
                // Also those that an earlier process of this node had begun.
                let waits =
                    |phase: &SnapshotPhase| matches!(phase, SnapshotPhase::Pending | SnapshotPhase::Running);
                volume.spec.node_name == node && volume.phase().is_some_and(waits)
            });
            waiting.for_each(|volume| wiring.wake(ObjectKey::of(&*volume)));
        };
        // What no class named may be named again.
        let classes_changed = || {
            let here = volumes.all().into_iter().filter(|volume| volume.spec.node_name == node);
            here.for_each(|volume| wiring.wake(ObjectKey::of(&*volume)));
        };
        tokio::select! {
            () = engine.run(stop) => {}
            () = strays.end() => {}
            () = disks.follow(wake, classes_changed) => {}
            () = worker.run(ended) => {}
        }
    }
}

/// Ends the job of an object. When this returns, no thread of it reads or writes any more: each holds an end of the progress.
pub(super) async fn end(jobs: &Jobs, uid: &str) {
    let seen = jobs.of(uid).map(|job| job.of.progress);
    jobs.end(uid).await;
    if let Some(mut seen) = seen {
        while seen.changed().await.is_ok() {}
    }
}

/// Jobs and mounts whose object is gone are nobody's: no decision would end them.
struct Strays {
    jobs: Jobs,
    mounts: Mounts,
    by_uid: Index<String, LogicalVolume>,
    listed: Listed,
    gone: Arc<Notify>,
}

impl Strays {
    /// Ends them once everything was listed, and again whenever an object has gone. Runs for ever.
    async fn end(mut self) {
        // Before the first listing everything looks like a stray.
        self.listed.wait().await;
        loop {
            if self.end_all().await {
                self.gone.notified().await;
            } else {
                tokio::time::sleep(AGAIN).await;
            }
        }
    }

    /// Whether nothing is left. What cannot be released holds up no other.
    async fn end_all(&self) -> bool {
        let has_object = |uid: &str| self.by_uid.first(&uid.to_owned()).is_some();
        for uid in self.jobs.strays(has_object) {
            end(&self.jobs, &uid).await;
        }
        let mut all = true;
        for uid in self.mounts.strays(has_object) {
            if let Err(error) = self.mounts.unmount(&uid).await {
                tracing::warn!(%error, uid, "a mount for a volume that is gone cannot be released yet");
                all = false;
            }
        }
        all
    }
}
