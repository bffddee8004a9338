//! The central half of node storage on one engine: claims, volumes, snapshots and stores of the whole cluster. One process of a
//! cluster runs it; the nodes run `volume` and `capacity`.

use crate::{provision, snapshots, stores};
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Secret};
use k8s_openapi::api::storage::v1::StorageClass;
use lifeboat_api::snapshot::{VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent};
use lifeboat_api::topolvm::{LogicalVolume, SnapshotBackupStorage};
use lifeboat_engine::{Clock, Engine, Objects, Recorder, Selection, Settings};
use lifeboat_mover::Mover;
use std::sync::Arc;

/// The name that events and writes carry.
pub const NAME: &str = "lifeboat-provisioner";

/// The driver name that StorageClasses and volumes carry unless another is chosen.
pub const DRIVER: &str = "topolvm.io";

/// Who looks after snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Snapshots {
    /// All of it here: VolumeSnapshots and their contents.
    Here,
    /// The cluster has a snapshot controller of its own; here only what a CSI driver's sidecar does, the contents.
    ContentsOnly,
    /// Nothing here.
    Elsewhere,
}

/// What the central half needs to be told.
#[derive(Clone)]
pub struct Central {
    /// Driver name: of StorageClasses, VolumeSnapshotClasses and volumes.
    pub driver: String,
    /// Where a SnapshotBackupStorage is looked for when a snapshot class names no namespace.
    pub namespace: String,
    /// Who looks after snapshots.
    pub snapshots: Snapshots,
    /// Reaches the stores.
    pub mover: Arc<dyn Mover>,
}

/// Every kind that the central half looks at; clones share their caches.
#[derive(Clone)]
pub struct Kinds {
    /// Claims.
    pub claims: Objects<PersistentVolumeClaim>,
    /// Volumes.
    pub volumes: Objects<PersistentVolume>,
    /// Storage classes.
    pub classes: Objects<StorageClass>,
    /// Nodes.
    pub nodes: Objects<Node>,
    /// LogicalVolumes.
    pub logical: Objects<LogicalVolume>,
    /// VolumeSnapshots.
    pub snapshots: Objects<VolumeSnapshot>,
    /// Their contents.
    pub contents: Objects<VolumeSnapshotContent>,
    /// Snapshot classes.
    pub snapshot_classes: Objects<VolumeSnapshotClass>,
    /// Stores.
    pub storages: Objects<SnapshotBackupStorage>,
    /// Secrets, for the stores.
    pub secrets: Objects<Secret>,
    /// Writes events.
    pub recorder: Recorder,
}

impl Kinds {
    /// Watches every kind.
    pub fn watch(engine: &mut Engine) -> Self {
        Self {
            claims: engine.objects(Selection::all()),
            volumes: engine.objects(Selection::all()),
            classes: engine.objects(Selection::all()),
            nodes: engine.objects(Selection::all()),
            logical: engine.objects(Selection::all()),
            snapshots: engine.objects(Selection::all()),
            contents: engine.objects(Selection::all()),
            snapshot_classes: engine.objects(Selection::all()),
            storages: engine.objects(Selection::all()),
            // What other programs keep in great number is of no use here.
            secrets: engine.objects(
                Selection::all().fields("type!=helm.sh/release.v1,type!=kubernetes.io/service-account-token"),
            ),
            recorder: engine.recorder(),
        }
    }
}

/// The central half, ready to run.
pub fn engine(client: kube::Client, clock: Clock, settings: Settings, central: &Central) -> Engine {
    let mut engine = Engine::new(NAME, client, clock, settings);
    let kinds = Kinds::watch(&mut engine);
    let office = provision::controllers(&mut engine, &kinds, &central.driver);
    let stores = stores::controllers(&mut engine, &kinds, &office, central.mover.clone(), settings);
    snapshots::controllers(&mut engine, &office, central, &stores);
    engine
}
