//! One of two clusters: an API server, a node with a folder for disks, its agent and its mirror.

use crate::mortal::Fate;
use crate::watch::Watch;
use k8s_openapi::api::core::v1::{
    CSIPersistentVolumeSource, ObjectReference, PersistentVolume, PersistentVolumeClaim, Secret,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use lifeboat_api::annotations::parameters;
use lifeboat_api::replication::{VolumeReplication, VolumeReplicationClass};
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_engine::{Clock, Settings};
use lifeboat_lvm::{Directories, DirectoryClass, Lvm};
use lifeboat_mirror::{Config, Parts};
use lifeboat_mortal::{Mortal, NoMounts};
use lifeboat_mover::Rustic;
use lifeboat_node::volume::agent;
use lifeboat_testbed::{Cluster, Task, fixtures};
use parking_lot::Mutex;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

pub const DRIVER: &str = "topolvm.io";
const KEY: &str = "mirror:00112233445566778899aabbccddeeff";

/// One of two clusters. Its disks and its address outlive every process.
#[derive(Clone)]
pub struct Side {
    pub cluster: Cluster,
    /// Namespace, and what tells the story's objects from those of others on the same cluster.
    pub mark: String,
    folder: Arc<TempDir>,
    /// Where its mirror listens, once it has.
    pub address: Arc<Mutex<Option<SocketAddr>>>,
    tasks: Arc<Mutex<Vec<Task>>>,
    /// When its next processes die.
    pub fate: Arc<Mutex<Fate>>,
    /// Who looks at its disks, after every change of theirs.
    pub watch: Arc<Watch>,
    /// Volumes of LVM, in place of folders.
    lvm: Option<Arc<dyn Lvm>>,
}

impl Side {
    /// A side on a cluster.
    pub async fn on(cluster: Cluster) -> Self {
        cluster.install(&crate::definitions()).await;
        Self::beside_others(cluster).await
    }

    /// A side on a cluster that has the definitions already, and maybe other sides.
    pub async fn beside_others(cluster: Cluster) -> Self {
        let folder = Arc::new(TempDir::new().unwrap());
        let watch = Arc::<Watch>::default();
        watch.add(folder.path().join("disks/volumes"));
        Self {
            mark: cluster.namespace("mirror").await,
            cluster,
            folder,
            address: Arc::default(),
            tasks: Arc::default(),
            fate: Arc::default(),
            watch,
            lvm: None,
        }
    }

    /// The same, with volumes of LVM.
    pub fn with_lvm(self, lvm: Arc<dyn Lvm>) -> Self {
        Self { lvm: Some(lvm), watch: Arc::default(), ..self }
    }

    /// Its volumes of LVM.
    pub fn storage(&self) -> &Arc<dyn Lvm> {
        self.lvm.as_ref().unwrap()
    }

    /// The same, with one who looks at the disks of both.
    pub fn watched_with(mut self, other: &Self) -> Self {
        other.watch.add(self.disks().join("volumes"));
        self.watch = other.watch.clone();
        self
    }

    pub fn node(&self) -> String {
        format!("node-{}", self.mark)
    }

    fn class(&self) -> String {
        format!("mirrored-{}", self.mark)
    }

    fn disks(&self) -> PathBuf {
        self.folder.path().join("disks")
    }

    /// What its processes are, until they end.
    pub async fn run(self, client: kube::Client, clock: Clock, fate: Fate) {
        let inner: Arc<dyn Lvm> = self.lvm.clone().unwrap_or_else(|| {
            std::fs::create_dir_all(self.disks()).unwrap();
            let class = DirectoryClass::new("dir", self.disks()).default_class();
            Arc::new(Directories::new(vec![class]).unwrap())
        });
        let lvm: Arc<dyn Lvm> = Arc::new(Mortal { lvm: inner, fate });
        // The mirror mounts nothing, whatever its volumes are.
        let parts = lifeboat_node::volume::Parts {
            lvm: lvm.clone(),
            mover: Arc::new(Rustic::new()),
            filesystems: Arc::new(NoMounts),
        };
        let config = lifeboat_node::volume::Config {
            node: self.node(),
            process: "test".to_owned(),
            namespace: self.mark.clone(),
            jobs_at_once: 4,
            mounts: self.folder.path().join("mounts"),
        };
        let node = agent(client.clone(), clock.clone(), Settings::default(), parts, config);
        let listen = self.address.lock().unwrap_or_else(|| "127.0.0.1:0".parse().unwrap());
        let state = self.folder.path().join("state");
        let config = Config::new(&self.node(), DRIVER, listen, listen, state);
        let mirror = lifeboat_mirror::controller(client, clock, Settings::default(), Parts { lvm }, config);
        let mirror = mirror.await.unwrap();
        *self.address.lock() = Some(mirror.address());
        tokio::select! {
            () = node.run(std::future::pending()) => {}
            () = mirror.run(std::future::pending()) => {}
        }
    }

    /// Starts its processes.
    pub async fn start(&self) {
        let fate = self.fate.lock().clone().watched(self.watch.clone());
        let side = self.clone();
        let living = async move {
            let clock = side.cluster.clock();
            if side.cluster.is_embedded() {
                let mortal = side.cluster.client_with(Arc::new(fate.clone()));
                tokio::select! {
                    biased;
                    () = fate.died.notified() => {}
                    () = side.clone().run(mortal, clock.clone(), fate.clone()) => {}
                }
            }
            // Whoever died is started again, and lives.
            let client = side.cluster.account("node").await;
            let fate = Fate::default().watched(side.watch.clone());
            side.run(client, clock, fate).await;
        };
        self.tasks.lock().push(Task::spawn(living));
        while self.address.lock().is_none() {
            tokio::task::yield_now().await;
        }
    }

    /// Kills its processes.
    pub async fn kill(&self) {
        let tasks: Vec<Task> = self.tasks.lock().drain(..).collect();
        for task in tasks {
            task.kill().await.unwrap();
        }
    }

    /// The class and its secret, leading to the peer.
    pub async fn know(&self, peer: &Self, interval: &str) {
        let mut secret = Secret::default();
        secret.metadata.name = Some("mirror-key".into());
        let address = peer.address.lock().unwrap().to_string();
        secret.string_data =
            Some(BTreeMap::from([("psk.txt".into(), KEY.into()), ("peers".into(), address)]));
        let secrets: Api<Secret> = Api::namespaced(self.cluster.client(), &self.mark);
        secrets.create(&PostParams::default(), &secret).await.unwrap();
        let mut class = VolumeReplicationClass::default();
        class.metadata.name = Some(self.class());
        class.metadata.labels =
            Some(BTreeMap::from([("ramendr.openshift.io/replicationid".into(), "pair-1".into())]));
        class.spec.provisioner = DRIVER.to_owned();
        class.spec.parameters = [
            (parameters::SCHEDULING_INTERVAL, "1m"),
            (parameters::MIRROR_EVERY, interval),
            (parameters::REPLICATION_SECRET_NAME, "mirror-key"),
            (parameters::REPLICATION_SECRET_NAMESPACE, &self.mark),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
        let classes: Api<VolumeReplicationClass> = Api::all(self.cluster.client());
        classes.create(&PostParams::default(), &class).await.unwrap();
    }

    /// Waits until an object is as wanted; it may be wanted gone.
    pub async fn wait<K>(&self, api: &Api<K>, name: &str, wanted: impl Fn(Option<&K>) -> bool) -> Option<K>
    where
        K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
    {
        self.cluster.until(api, name, wanted).await
    }

    pub fn logical(&self) -> Api<LogicalVolume> {
        Api::all(self.cluster.client())
    }

    pub fn replications(&self) -> Api<VolumeReplication> {
        Api::namespaced(self.cluster.client(), &self.mark)
    }

    /// Makes an empty volume as provisioning would, and gives its id.
    pub async fn make(&self, name: &str) -> String {
        self.make_of(name, None, "64Mi").await
    }

    /// The same, of a device class and a size.
    pub async fn make_of(&self, name: &str, class: Option<&str>, size: &str) -> String {
        let mut volume = LogicalVolume::default();
        volume.metadata.name = Some(name.to_owned());
        volume.spec.name = name.to_owned();
        volume.spec.node_name = self.node();
        volume.spec.size = Quantity(size.to_owned());
        volume.spec.device_class = class.map(str::to_owned);
        let made = self.logical().create(&PostParams::default(), &volume).await.unwrap();
        let is_made = |volume: Option<&LogicalVolume>| {
            volume.and_then(|volume| volume.status.as_ref()?.volume_id.clone()).is_some()
        };
        self.wait(&self.logical(), name, is_made).await;
        made.metadata.uid.unwrap()
    }

    /// A claim bound to a volume of this id.
    pub async fn bind(&self, claim: &str, handle: &str) {
        let name = format!("pv-{claim}-{}", self.mark);
        let mut volume = fixtures::volume(&name);
        let spec = volume.spec.as_mut().unwrap();
        spec.host_path = None;
        spec.csi = Some(CSIPersistentVolumeSource {
            driver: DRIVER.to_owned(),
            volume_handle: handle.to_owned(),
            ..CSIPersistentVolumeSource::default()
        });
        spec.claim_ref = Some(ObjectReference {
            namespace: Some(self.mark.clone()),
            name: Some(claim.to_owned()),
            ..ObjectReference::default()
        });
        let volumes: Api<PersistentVolume> = Api::all(self.cluster.client());
        volumes.create(&PostParams::default(), &volume).await.unwrap();
        let mut made = fixtures::claim(&self.mark, claim);
        made.spec.as_mut().unwrap().volume_name = Some(name);
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.cluster.client(), &self.mark);
        claims.create(&PostParams::default(), &made).await.unwrap();
        let bound = Patch::Merge(json!({ "status": { "phase": "Bound" } }));
        claims.patch_status(claim, &PatchParams::default(), &bound).await.unwrap();
    }

    /// Asks for a role: makes the VolumeReplication, or changes it.
    pub async fn wish(&self, claim: &str, role: &str, auto_resync: bool) {
        let spec = json!({ "replicationState": role, "autoResync": auto_resync });
        if self.replications().get_opt(claim).await.unwrap().is_some() {
            let patch = Patch::Merge(json!({ "spec": spec }));
            self.replications().patch(claim, &PatchParams::default(), &patch).await.unwrap();
            return;
        }
        let mut spec = spec;
        spec["volumeReplicationClass"] = json!(self.class());
        spec["dataSource"] = json!({ "apiGroup": "", "kind": "PersistentVolumeClaim", "name": claim });
        let made = json!({
            "apiVersion": "replication.storage.openshift.io/v1alpha1",
            "kind": "VolumeReplication",
            "metadata": { "name": claim, "namespace": self.mark },
            "spec": spec,
        });
        let made: VolumeReplication = serde_json::from_value(made).unwrap();
        self.replications().create(&PostParams::default(), &made).await.unwrap();
    }

    /// Waits until a VolumeReplication says what is wanted about its present generation.
    pub async fn says(
        &self,
        claim: &str,
        wanted: impl Fn(&VolumeReplication, &dyn Fn(&str) -> String) -> bool,
    ) -> VolumeReplication {
        let says = |one: Option<&VolumeReplication>| {
            one.is_some_and(|one| wanted(one, &|type_| condition(one, type_)))
        };
        self.wait(&self.replications(), claim, says).await.unwrap()
    }

    /// Waits until it is primary and a copy that was cut after `since` is at the peer.
    pub async fn synced(&self, claim: &str, since: jiff::Timestamp) -> VolumeReplication {
        self.says(claim, |one, _| {
            let status = one.status.clone().unwrap_or_default();
            status.last_sync_time.is_some_and(|time| time.0 >= since)
        })
        .await
    }

    /// Waits until it is primary.
    pub async fn primary(&self, claim: &str) -> VolumeReplication {
        self.says(claim, |one, is| state(one) == "Primary" && is("Completed") == "True Promoted").await
    }

    /// Waits until it is a secondary with all data.
    pub async fn secondary(&self, claim: &str) -> VolumeReplication {
        self.says(claim, |one, is| {
            state(one) == "Secondary"
                && is("Completed") == "True Demoted"
                && is("Degraded") == "False Healthy"
                && is("Resyncing") == "False NotResyncing"
        })
        .await
    }

    pub async fn delete(&self, claim: &str) {
        self.replications().delete(claim, &DeleteParams::default()).await.unwrap();
        self.wait(&self.replications(), claim, |one| one.is_none()).await;
    }

    /// The files of a copy by the name of its volume.
    pub fn files(&self, name: &str) -> PathBuf {
        self.disks().join("volumes").join(name).join("data")
    }

    /// Names of everything on the disks.
    pub fn volumes(&self) -> BTreeSet<String> {
        let entries = std::fs::read_dir(self.disks().join("volumes")).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    pub fn write(&self, uid: &str, file: &str, content: &str) {
        std::fs::write(self.files(uid).join(file), content).unwrap();
    }

    /// The content of a copy: its files by name.
    pub fn content(&self, name: &str) -> BTreeMap<String, String> {
        self.glimpse(name).unwrap()
    }

    /// The same, where it is there at this moment.
    pub fn glimpse(&self, name: &str) -> Option<BTreeMap<String, String>> {
        let entries = std::fs::read_dir(self.files(name)).ok()?.flatten();
        let read = |entry: std::fs::DirEntry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            Some((name, std::fs::read_to_string(entry.path()).ok()?))
        };
        entries.map(read).collect()
    }

    /// The content of the replica of a volume. While a whole copy takes the place of the one before, it is waited for.
    pub async fn replica(&self, uid: &str) -> BTreeMap<String, String> {
        let look = || async {
            let found = self.glimpse(&format!("replica-{uid}"));
            found.ok_or_else(|| lifeboat_testbed::NotYet(format!("{:?}", self.volumes())))
        };
        self.cluster.eventually("a replica is there", look).await
    }

    pub fn now(&self) -> jiff::Timestamp {
        self.cluster.clock().now()
    }
}

pub fn state(one: &VolumeReplication) -> String {
    let state = one.status.as_ref().and_then(|status| status.state.clone());
    state.map(|state| state.as_str().to_owned()).unwrap_or_default()
}

/// Status and reason of a condition, if it is of the present generation.
pub fn condition(one: &VolumeReplication, type_: &str) -> String {
    let conditions = one.status.iter().flat_map(|status| &status.conditions);
    let mut current =
        conditions.filter(|it| it.type_ == type_ && it.observed_generation == one.metadata.generation);
    current.next().map(|it| format!("{} {}", it.status, it.reason)).unwrap_or_default()
}
