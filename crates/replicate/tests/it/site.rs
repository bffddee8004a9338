//! A site: an embedded cluster with node storage in a folder of its own, and the mover at work.

use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Secret};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use lifeboat_api::snapshot::{VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent};
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_api::volsync::{ReplicationDestination, ReplicationSource, service_name};
use lifeboat_binder::Neighbours;
use lifeboat_engine::Settings;
use lifeboat_lvm::{Directories, DirectoryClass, Lvm};
use lifeboat_mortal::NoMounts;
use lifeboat_mover::Rustic;
use lifeboat_node::Filesystems;
use lifeboat_node::central::{self, Central, DRIVER, Snapshots};
use lifeboat_node::volume::{self, agent};
use lifeboat_replicate::{Config, Parts, Resolve, controller};
use lifeboat_stream::Timing;
pub use lifeboat_testbed::fixtures::noise;
use lifeboat_testbed::{Cluster, Task};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

pub const SPACE: &str = "app";
pub const CLASS: &str = "topolvm-provisioner";
pub const NODE: &str = "n1";
pub const KEY: &str = "volsyncramen:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// The definitions that are needed here. A server reads every one of them with care.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    let ours = [
        "topolvm.io",
        "snapshot.storage.k8s.io",
        "volsync.backube",
        "ramendr.openshift.io",
        "multicluster.x-k8s.io",
    ];
    let all = lifeboat_api::crds().into_iter();
    all.filter(|one| ours.contains(&&*one.spec.group))
        .filter(|one| {
            one.spec.group != "ramendr.openshift.io" || one.spec.names.kind == "VolumeReplicationGroup"
        })
        .collect()
}

pub fn timing() -> Timing {
    Timing {
        keepalive: Duration::from_millis(500),
        silence: Duration::from_secs(10),
        handshake: Duration::from_secs(10),
    }
}

pub struct Site {
    pub cluster: Cluster,
    pub folder: Arc<TempDir>,
    pub lvm: Arc<dyn Lvm>,
    filesystems: Arc<dyn Filesystems>,
    pub sources: Api<ReplicationSource>,
    pub destinations: Api<ReplicationDestination>,
    pub claims: Api<PersistentVolumeClaim>,
    pub snapshots: Api<VolumeSnapshot>,
    /// Where the mover listens, once it runs.
    pub address: Option<SocketAddr>,
    mover: Option<Task>,
    _tasks: Vec<Task>,
}

pub fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// What a site keeps its volumes on.
#[derive(Clone)]
pub struct Disks {
    pub lvm: Arc<dyn Lvm>,
    pub filesystems: Arc<dyn Filesystems>,
    /// Storage classes by name, with their parameters.
    pub classes: Vec<(&'static str, Value)>,
}

impl Disks {
    /// In a folder.
    pub fn directories(folder: &Path) -> Self {
        let disks = folder.join("disks");
        std::fs::create_dir_all(&disks).unwrap();
        let class = DirectoryClass::new("dir", disks).default_class();
        let lvm: Arc<dyn Lvm> = Arc::new(Directories::new(vec![class]).unwrap());
        Self { lvm, filesystems: Arc::new(NoMounts), classes: vec![(CLASS, json!({}))] }
    }
}

/// Everything that makes and keeps volumes, but not the mover.
pub async fn storage(cluster: &Cluster, folder: &Path, disks: &Disks) -> Vec<Task> {
    let (client, clock) = (cluster.client(), cluster.clock());
    let lvm = disks.lvm.clone();
    create::<Node>(Api::all(client.clone()), json!({"metadata": {"name": NODE}})).await;
    for (name, parameters) in &disks.classes {
        create::<StorageClass>(
            Api::all(client.clone()),
            json!({"metadata": {"name": name}, "provisioner": DRIVER, "volumeBindingMode": "Immediate",
                   "allowVolumeExpansion": true, "parameters": parameters}),
        )
        .await;
    }
    create::<VolumeSnapshotClass>(
        Api::all(client.clone()),
        json!({"metadata": {"name": CLASS, "annotations": {"snapshot.storage.kubernetes.io/is-default-class": "true"}},
               "driver": DRIVER, "deletionPolicy": "Delete"}),
    )
    .await;
    let mover = Arc::new(Rustic::new());
    let parts =
        volume::Parts { lvm: lvm.clone(), mover: mover.clone(), filesystems: disks.filesystems.clone() };
    let config = volume::Config {
        node: NODE.to_owned(),
        process: "first".to_owned(),
        namespace: "default".to_owned(),
        jobs_at_once: 2,
        mounts: folder.join("node-mounts"),
    };
    let central = Central {
        driver: DRIVER.to_owned(),
        namespace: "default".to_owned(),
        snapshots: Snapshots::Here,
        mover,
    };
    let settings = Settings::default();
    let binder = lifeboat_binder::engine(client.clone(), clock.clone(), settings, Neighbours::Here);
    let reporter =
        lifeboat_node::capacity::reporter(client.clone(), clock.clone(), settings, lvm.clone(), NODE);
    let engine = central::engine(client.clone(), clock.clone(), settings, &central);
    let agent = agent(client, clock, settings, parts, config);
    let forever = std::future::pending::<()>;
    vec![
        Task::spawn(async move { binder.run(forever()).await }),
        Task::spawn(async move { reporter.run(forever()).await }),
        Task::spawn(async move { engine.run(forever()).await }),
        Task::spawn(async move { agent.run(forever()).await }),
    ]
}

pub async fn create<K>(api: Api<K>, object: Value) -> K
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    let object: K = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap()
}

impl Site {
    /// A site without a mover.
    pub async fn bare() -> Self {
        let cluster = Cluster::embedded();
        cluster.install(&definitions()).await;
        Self::on(cluster).await
    }

    pub async fn on(cluster: Cluster) -> Self {
        Self::at(cluster, Arc::new(TempDir::new().unwrap())).await
    }

    /// A site whose disks are in this folder.
    pub async fn at(cluster: Cluster, folder: Arc<TempDir>) -> Self {
        let disks = Disks::directories(folder.path());
        Self::with(cluster, folder, disks).await
    }

    /// A site on these disks.
    pub async fn with(cluster: Cluster, folder: Arc<TempDir>, disks: Disks) -> Self {
        let client = cluster.client();
        let space = json!({"metadata": {"name": SPACE}});
        create::<k8s_openapi::api::core::v1::Namespace>(Api::all(client.clone()), space).await;
        let tasks = storage(&cluster, folder.path(), &disks).await;
        let site = Self {
            sources: Api::namespaced(client.clone(), SPACE),
            destinations: Api::namespaced(client.clone(), SPACE),
            claims: Api::namespaced(client.clone(), SPACE),
            snapshots: Api::namespaced(client, SPACE),
            cluster,
            folder,
            lvm: disks.lvm,
            filesystems: disks.filesystems,
            address: None,
            mover: None,
            _tasks: tasks,
        };
        site.key("web-vs-secret", KEY).await;
        site
    }

    pub fn parts(&self, resolve: Arc<dyn Resolve>) -> Parts {
        Parts { lvm: self.lvm.clone(), filesystems: self.filesystems.clone(), resolve }
    }

    pub fn config(&self) -> Config {
        let state = self.folder.path().join("replicate");
        Config { timing: timing(), checkpoint: 1 << 20, ..Config::new(NODE, loopback(), loopback(), state) }
    }

    /// Starts the mover, or another one in its place.
    pub async fn start(&mut self, resolve: Arc<dyn Resolve>) {
        self.start_with(resolve, |_| {}).await;
    }

    pub async fn start_with(&mut self, resolve: Arc<dyn Resolve>, change: impl FnOnce(&mut Config)) {
        let mut config = self.config();
        change(&mut config);
        // The manifest that gives the account its rights is not in the machine.
        let client = match lifeboat_vm::step() {
            Some(_) => self.cluster.client(),
            None => self.cluster.account("node").await,
        };
        let clock = self.cluster.clock();
        let agent =
            controller(client, clock, Settings::default(), self.parts(resolve), config).await.unwrap();
        self.address = Some(agent.address());
        self.mover = Some(Task::spawn(async move { agent.run(std::future::pending()).await }));
    }

    /// What runs beside the mover, to outlive this.
    pub fn into_tasks(self) -> Vec<Task> {
        self._tasks
    }

    /// Kills the mover.
    pub async fn kill(&mut self) {
        if let Some(mover) = self.mover.take() {
            mover.kill().await.unwrap();
        }
    }

    pub async fn key(&self, name: &str, key: &str) {
        let secrets: Api<Secret> = Api::namespaced(self.cluster.client(), SPACE);
        let secret: Secret =
            serde_json::from_value(json!({"metadata": {"name": name}, "stringData": {"psk.txt": key}}))
                .unwrap();
        secrets.create(&PostParams::default(), &secret).await.unwrap();
    }

    /// Changes the key of a secret.
    pub async fn change_key(&self, name: &str, key: &str) {
        let secrets: Api<Secret> = Api::namespaced(self.cluster.client(), SPACE);
        let patch = Patch::Merge(json!({"stringData": {"psk.txt": key}}));
        secrets.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// A claim with a volume; says where its files are.
    pub async fn claim(&self, name: &str) -> PathBuf {
        create(self.claims.clone(), claim_json(name)).await;
        self.files(name).await
    }

    /// Where the files of a claim are, once it is bound.
    pub async fn files(&self, name: &str) -> PathBuf {
        self.folder.path().join("disks/volumes").join(self.volume(name).await).join("data")
    }

    /// Where the files of an image are, once it is ready.
    pub async fn image(&self, name: &str) -> PathBuf {
        let ready = |image: Option<&VolumeSnapshot>| {
            image.and_then(|image| image.status.as_ref()?.ready_to_use) == Some(true)
        };
        let image = self.cluster.until(&self.snapshots, name, ready).await.unwrap();
        let content = image.status.unwrap().bound_volume_snapshot_content_name.unwrap();
        let contents: Api<VolumeSnapshotContent> = Api::all(self.cluster.client());
        let handle = contents.get(&content).await.unwrap().status.unwrap().snapshot_handle.unwrap();
        self.folder.path().join("disks/volumes").join(handle).join("data")
    }

    /// The volume of a claim, once it is bound.
    pub async fn volume(&self, name: &str) -> String {
        let is = |claim: Option<&PersistentVolumeClaim>| {
            claim.and_then(|claim| claim.status.as_ref()?.phase.as_deref()) == Some("Bound")
        };
        let claim = self.cluster.until(&self.claims, name, is).await.unwrap();
        let logical: Api<LogicalVolume> = Api::all(self.cluster.client());
        let logical = logical.get(&claim.spec.unwrap().volume_name.unwrap()).await.unwrap();
        logical.metadata.uid.unwrap()
    }

    pub async fn merge<K>(&self, api: &Api<K>, name: &str, patch: Value)
    where
        K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
    {
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Waits until the receiver is reachable.
    pub async fn listens(&self, name: &str) -> ReplicationDestination {
        let is = |receiver: Option<&ReplicationDestination>| {
            receiver
                .and_then(|receiver| receiver.status.as_ref()?.rsync_tls.as_ref()?.address.as_deref())
                .is_some()
        };
        self.cluster.until(&self.destinations, name, is).await.unwrap()
    }

    /// Waits until the sender has served a manual trigger.
    pub async fn served(&self, name: &str, word: &str) -> ReplicationSource {
        let is = |source: Option<&ReplicationSource>| {
            source.and_then(|source| source.status.as_ref()?.last_manual_sync.as_deref()) == Some(word)
        };
        self.cluster.until(&self.sources, name, is).await.unwrap()
    }

    /// Waits until the receiver has an image of this generation.
    pub async fn has(&self, name: &str, generation: &str) -> ReplicationDestination {
        let is = |receiver: Option<&ReplicationDestination>| {
            let status = receiver.and_then(|receiver| receiver.status.as_ref());
            status.and_then(|status| status.external.get("generation")).map(String::as_str)
                == Some(generation)
        };
        self.cluster.until(&self.destinations, name, is).await.unwrap()
    }

    /// Asks the sender for a copy, and waits until the receiver has told of it.
    pub async fn copy(&self, name: &str, word: &str) -> ReplicationSource {
        self.merge(&self.sources, name, json!({"spec": {"trigger": {"manual": word, "schedule": null}}}))
            .await;
        self.served(name, word).await
    }
}

pub fn claim_json(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": SPACE},
        "spec": {"storageClassName": CLASS, "accessModes": ["ReadWriteOnce"],
                 "resources": {"requests": {"storage": "256Mi"}}},
    })
}

pub fn receiver_json(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": SPACE},
        "spec": {"rsyncTLS": {"keySecret": "web-vs-secret", "capacity": "256Mi", "accessModes": ["ReadWriteOnce"],
            "storageClassName": CLASS, "copyMethod": "Snapshot", "serviceType": "ClusterIP"}},
    })
}

pub fn sender_json(name: &str, receiver: &str, trigger: Value) -> Value {
    json!({
        "metadata": {"name": name, "namespace": SPACE},
        "spec": {"sourcePVC": name, "trigger": trigger, "rsyncTLS": {
            "keySecret": "web-vs-secret", "copyMethod": "Snapshot",
            "address": format!("{}.{SPACE}.svc.clusterset.local", service_name(receiver))}},
    })
}

pub fn export_json(receiver: &str) -> Value {
    json!({"metadata": {"name": service_name(receiver), "namespace": SPACE}})
}

pub fn external<'a>(source: &'a ReplicationSource, key: &str) -> &'a str {
    source.status.as_ref().unwrap().external.get(key).map(String::as_str).unwrap_or_default()
}

/// Every file below a folder with its bytes.
pub fn tree(folder: &Path) -> Tree {
    walk(folder).unwrap()
}

/// The same while others are at work: nothing where the folder went or became another meanwhile.
pub fn glimpse(folder: &Path) -> Option<Tree> {
    let which = || std::fs::metadata(folder).ok().map(|meta| meta.ino());
    let before = which()?;
    let seen = walk(folder).ok();
    seen.filter(|_| which() == Some(before))
}

pub type Tree = std::collections::BTreeMap<PathBuf, Vec<u8>>;

fn walk(root: &Path) -> std::io::Result<Tree> {
    let (mut all, mut folders) = (Tree::new(), vec![root.to_owned()]);
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(at)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                all.insert(path.strip_prefix(root).unwrap().to_owned(), std::fs::read(&path)?);
            }
        }
    }
    Ok(all)
}
