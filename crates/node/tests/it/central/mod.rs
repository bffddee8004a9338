//! What the central half is tried on: a cluster with a binder, nodes whose agents are played or real, and a store in a folder.

mod player;

pub use player::Player;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Secret};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use lifeboat_api::annotations;
use lifeboat_api::snapshot::{VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent};
use lifeboat_api::topolvm::{LogicalVolume, SnapshotBackupStorage};
use lifeboat_binder::Neighbours;
use lifeboat_engine::{Clock, Settings};
use lifeboat_mover::{Mover, Rustic};
use lifeboat_node::central::{Central, Snapshots, engine};
use lifeboat_node::provision::words::COUNTED;
use lifeboat_testbed::fixtures::{self, With};
use lifeboat_testbed::{Cluster, NotYet, Task};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// The value that nobody may ever see.
pub const CANARY: &str = "canary-word-5c1d";
pub const GIB: u64 = 1 << 30;

/// A cluster with the central half at work, and what tells its objects from those of others.
pub struct Scene {
    pub cluster: Cluster,
    /// Namespace, StorageClass, device class, beginning of node names.
    pub mark: String,
    pub driver: String,
    pub claims: Api<PersistentVolumeClaim>,
    pub volumes: Api<PersistentVolume>,
    pub logical: Api<LogicalVolume>,
    pub snapshots: Api<VolumeSnapshot>,
    pub contents: Api<VolumeSnapshotContent>,
    pub player: Player,
    pub folder: Arc<TempDir>,
    _tasks: Vec<Task>,
}

pub fn central(mark: &str, mover: Arc<dyn Mover>) -> Central {
    Central { driver: driver(mark), namespace: mark.to_owned(), snapshots: Snapshots::Here, mover }
}

/// A driver name of its own, so that tests on one cluster leave each other alone.
pub fn driver(mark: &str) -> String {
    format!("{mark}.topolvm.io")
}

/// Runs the central half.
pub async fn run_central(client: kube::Client, clock: Clock, mark: String, mover: Arc<dyn Mover>) {
    engine(client, clock, Settings::default(), &central(&mark, mover)).run(std::future::pending()).await;
}

/// Runs the binder.
pub async fn run_binder(client: kube::Client, clock: Clock) {
    let engine = lifeboat_binder::engine(client, clock, Settings::default(), Neighbours::Here);
    engine.run(std::future::pending()).await;
}

impl Scene {
    /// The central half and a played node agent on nodes of these sizes in GiB.
    pub async fn with_nodes(cluster: &Cluster, prefix: &str, nodes: &[(&str, u64)]) -> Self {
        let scene = Self::quiet(cluster, prefix).await;
        for (node, gib) in nodes {
            scene.add_node(node, gib * GIB).await;
        }
        let player = scene.player.clone();
        let playing = Task::spawn(async move { player.run().await });
        let central = Task::spawn(run_central(
            cluster.account("provisioner").await,
            cluster.clock(),
            scene.mark.clone(),
            Arc::new(Rustic::new()),
        ));
        Self { _tasks: scene._tasks.into_iter().chain([playing, central]).collect(), ..scene }
    }

    /// Only a binder and a StorageClass.
    pub async fn quiet(cluster: &Cluster, prefix: &str) -> Self {
        cluster.install(&crate::definitions()).await;
        let mark = cluster.namespace(prefix).await;
        let client = cluster.client();
        let binder = Task::spawn(run_binder(cluster.client(), cluster.clock()));
        let scene = Self {
            cluster: cluster.clone(),
            driver: driver(&mark),
            claims: Api::namespaced(client.clone(), &mark),
            volumes: Api::all(client.clone()),
            logical: Api::all(client.clone()),
            snapshots: Api::namespaced(client.clone(), &mark),
            contents: Api::all(client.clone()),
            player: Player::new(client, &mark),
            folder: Arc::new(TempDir::new().unwrap()),
            mark,
            _tasks: vec![binder],
        };
        scene.class(&scene.mark, |_| {}).await;
        scene
    }

    pub async fn add_node(&self, name: &str, bytes: u64) {
        let node = fixtures::node(&self.node(name)).with(|node| {
            let report = (format!("capacity.topolvm.io/{}", self.mark), bytes.to_string());
            // As every reporter of ours does, it says which volumes it has counted: none so far.
            node.metadata.annotations = Some([report, (COUNTED.to_owned(), String::new())].into());
        });
        let nodes: Api<Node> = Api::all(self.cluster.client());
        nodes.create(&PostParams::default(), &node).await.unwrap();
        self.player.has(&self.node(name), bytes);
    }

    pub fn node(&self, name: &str) -> String {
        format!("{}-{name}", self.mark)
    }

    /// A class that volumes are made with.
    pub async fn class(&self, name: &str, change: impl FnOnce(&mut StorageClass)) {
        let class = fixtures::storage_class(name).with(|class| {
            class.provisioner = self.driver.clone();
            class.reclaim_policy = Some("Delete".into());
            class.allow_volume_expansion = Some(true);
            class.parameters = Some([(annotations::DEVICE_CLASS.to_owned(), self.mark.clone())].into());
        });
        let class = class.with(change);
        let classes: Api<StorageClass> = Api::all(self.cluster.client());
        classes.create(&PostParams::default(), &class).await.unwrap();
    }

    /// A class to take snapshots with.
    pub async fn snapshot_class(&self, name: &str, default: bool, parameters: &[(&str, &str)]) {
        let parameters: BTreeMap<&str, &str> = parameters.iter().copied().collect();
        let class: VolumeSnapshotClass = serde_json::from_value(json!({
            "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass",
            "metadata": { "name": name, "annotations": { annotations::IS_DEFAULT_SNAPSHOT_CLASS: default.to_string() } },
            "driver": self.driver, "deletionPolicy": "Delete", "parameters": parameters,
        }))
        .unwrap();
        let classes: Api<VolumeSnapshotClass> = Api::all(self.cluster.client());
        classes.create(&PostParams::default(), &class).await.unwrap();
    }

    pub async fn claim(
        &self,
        name: &str,
        change: impl FnOnce(&mut PersistentVolumeClaim),
    ) -> PersistentVolumeClaim {
        let claim = fixtures::claim(&self.mark, name).with(|claim| {
            claim.spec.as_mut().unwrap().storage_class_name = Some(self.mark.clone());
        });
        self.claims.create(&PostParams::default(), &claim.with(change)).await.unwrap()
    }

    pub async fn bound(&self, name: &str) -> (PersistentVolumeClaim, PersistentVolume, LogicalVolume) {
        let is = |claim: Option<&PersistentVolumeClaim>| {
            claim.and_then(|claim| claim.status.as_ref()?.phase.as_deref()) == Some("Bound")
        };
        let claim = self.cluster.until(&self.claims, name, is).await.unwrap();
        let volume = claim.spec.as_ref().unwrap().volume_name.clone().unwrap();
        let volume = self.volumes.get(&volume).await.unwrap();
        let logical = self.logical.get(volume.metadata.name.as_deref().unwrap()).await.unwrap();
        (claim, volume, logical)
    }

    pub async fn gone<K>(&self, api: &Api<K>, name: &str)
    where
        K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
    {
        self.cluster.until(api, name, |found: Option<&K>| found.is_none()).await;
    }

    pub async fn delete<K>(&self, api: &Api<K>, name: &str)
    where
        K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
    {
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub async fn merge<K>(&self, api: &Api<K>, name: &str, patch: Value)
    where
        K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
    {
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// The notes of an event with this reason.
    pub async fn event(&self, reason: &str) -> String {
        self.event_saying(&self.mark, reason, "").await
    }

    /// The note of an event with this reason that says this.
    pub async fn event_saying(&self, namespace: &str, reason: &str, part: &str) -> String {
        let events: Api<Event> = Api::namespaced(self.cluster.client(), namespace);
        let look = || async {
            let all = events.list(&ListParams::default()).await?.items;
            let says = |event: &&Event| event.note.as_deref().unwrap_or_default().contains(part);
            let found = all.iter().filter(says).find(|event| event.reason.as_deref() == Some(reason));
            found.and_then(|event| event.note.clone()).ok_or(NotYet(format!("{all:?}")))
        };
        self.cluster.eventually(reason, look).await
    }

    /// A snapshot of a claim.
    pub async fn snapshot(&self, name: &str, claim: &str, class: Option<&str>) -> VolumeSnapshot {
        let mut snapshot: VolumeSnapshot = serde_json::from_value(json!({
            "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
            "metadata": { "name": name, "namespace": self.mark },
            "spec": { "source": { "persistentVolumeClaimName": claim } },
        }))
        .unwrap();
        snapshot.spec.volume_snapshot_class_name = class.map(str::to_owned);
        self.snapshots.create(&PostParams::default(), &snapshot).await.unwrap()
    }

    pub async fn ready(&self, name: &str) -> VolumeSnapshot {
        let is = |snapshot: Option<&VolumeSnapshot>| {
            snapshot.and_then(|snapshot| snapshot.status.as_ref()?.ready_to_use) == Some(true)
        };
        self.cluster.until(&self.snapshots, name, is).await.unwrap()
    }

    pub fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// A storage object named `store` for the folder, and its Secret.
    pub async fn offer_store(&self, password: &str) {
        std::fs::create_dir_all(self.store()).unwrap();
        let mut secret = Secret::default();
        secret.metadata.name = Some("store-secret".into());
        secret.string_data = Some([("RESTIC_PASSWORD".to_owned(), password.to_owned())].into());
        let secrets: Api<Secret> = Api::namespaced(self.cluster.client(), &self.mark);
        secrets.create(&PostParams::default(), &secret).await.unwrap();
        let storage: SnapshotBackupStorage = serde_json::from_value(json!({
            "apiVersion": "topolvm.io/v1", "kind": "SnapshotBackupStorage", "metadata": { "name": "store" },
            "spec": { "engine": "restic", "storage": {
                "provider": "local", "local": { "path": self.store(), "secretName": "store-secret" } } },
        }))
        .unwrap();
        self.storages().create(&PostParams::default(), &storage).await.unwrap();
    }

    pub fn storages(&self) -> Api<SnapshotBackupStorage> {
        Api::namespaced(self.cluster.client(), &self.mark)
    }
}

/// Asks for so many bytes.
pub fn sized(claim: &mut PersistentVolumeClaim, size: &str) {
    let requests = [("storage".to_owned(), Quantity(size.to_owned()))].into();
    claim.spec.as_mut().unwrap().resources.as_mut().unwrap().requests = Some(requests);
}

/// Fills a claim from something.
pub fn filled(claim: &mut PersistentVolumeClaim, kind: &str, name: &str) {
    let group = (kind == "VolumeSnapshot").then(|| "snapshot.storage.k8s.io".to_owned());
    claim.spec.as_mut().unwrap().data_source = Some(k8s_openapi::api::core::v1::TypedLocalObjectReference {
        api_group: group,
        kind: kind.to_owned(),
        name: name.to_owned(),
    });
}

pub fn capacity(volume: &PersistentVolume) -> String {
    volume.spec.as_ref().unwrap().capacity.as_ref().unwrap()["storage"].0.clone()
}
