//! A hub with two played clusters and stores in folders.

use crate::cluster::player::{Player, State};
use async_trait::async_trait;
use bytes::Bytes;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lifeboat_api::cluster::ManagedCluster;
use lifeboat_api::ramen::{DRCluster, DRPlacementControl, DRPolicy};
use lifeboat_api::view::ManagedClusterView;
use lifeboat_api::work::ManifestWork;
use lifeboat_engine::{Clock, Engine, Settings};
use lifeboat_hub::cluster::check::{Buckets, Failure, Opening, Prover};
use lifeboat_hub::cluster::settings::{CONFIG_KEY, CONFIG_MAP};
use lifeboat_hub::cluster::{Setup, Watched};
use lifeboat_testbed::{Cluster, CrashPoints, Kind, Task};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// What keys to stores are made of here; it must be nowhere but in secrets.
pub const CANARY: &str = "canary-word-51c7";

/// The kinds that these controllers need.
pub fn definitions()
-> Vec<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition> {
    let kinds = [
        "DRPlacementControl",
        "DRPolicy",
        "DRCluster",
        "ManagedCluster",
        "ManifestWork",
        "ManagedClusterView",
    ];
    let mut all = lifeboat_api::crds();
    all.retain(|one| kinds.contains(&one.spec.names.kind.as_str()));
    all
}

/// Stores that always work, and who tried them: for stories in which every run must go the same way.
#[derive(Clone, Default)]
pub struct Proofs {
    tried: Arc<Mutex<BTreeSet<String>>>,
    points: Option<CrashPoints>,
}

impl Proofs {
    /// The same, where the process can die at each try.
    pub fn counted(&self, points: CrashPoints) -> Self {
        Self { points: Some(points), ..self.clone() }
    }

    pub fn has(&self, store: &str) -> bool {
        self.tried.lock().contains(store)
    }
}

#[async_trait]
impl Prover for Proofs {
    async fn prove(&self, store: &Opening, _: &str, _: Bytes) -> Result<(), Failure> {
        let name = store.profile.name.clone();
        let tried = async { self.tried.lock().insert(name.clone()) };
        match &self.points {
            None => {
                tried.await;
                Ok(())
            }
            Some(points) => {
                let effect = points.effect(Kind::ObjectStore, format!("trying {name}"), tried);
                effect.await.map(drop).map_err(|died| Failure::unasked(died.to_string()))
            }
        }
    }
}

/// Runs both controllers for ever.
pub async fn run_hub(client: kube::Client, clock: Clock, setup: Setup, prover: Arc<dyn Prover>) {
    let mut engine = Engine::new("lifeboat-hub", client, clock, Settings::default());
    let watched = Watched::on(&mut engine, setup);
    let clusters = lifeboat_hub::cluster::controller(&mut engine, &watched, prover);
    lifeboat_hub::policy::controller(&mut engine, &watched);
    tokio::select! {
        biased;
        () = clusters.run() => {}
        () = engine.run(std::future::pending()) => {}
    }
}

pub struct Scene {
    pub cluster: Cluster,
    /// The hub's namespace, and the mark of everything that this test makes.
    pub mark: String,
    pub east: Player,
    pub west: Player,
    pub clusters: Api<DRCluster>,
    pub policies: Api<DRPolicy>,
    pub managed: Api<ManagedCluster>,
    pub drpcs: Api<DRPlacementControl>,
    pub folder: Arc<tempfile::TempDir>,
}

/// What a played cluster has: one storage class of its own that can be mirrored, and a way to fence.
pub fn furnished(storage: &str) -> State {
    let marks =
        json!({ "ramendr.openshift.io/storageid": storage, "ramendr.openshift.io/replicationid": "rep-1" });
    let notes = json!({ "ramendr.openshift.io/storageid": storage });
    let all = [
        json!({ "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": "fast", "labels": { "ramendr.openshift.io/storageid": storage } }, "provisioner": "csi" }),
        json!({ "apiVersion": "replication.storage.openshift.io/v1alpha1", "kind": "VolumeReplicationClass", "metadata": { "name": "mirror", "labels": marks }, "spec": { "provisioner": "csi", "parameters": { "schedulingInterval": "5m" } } }),
        json!({ "apiVersion": "csiaddons.openshift.io/v1alpha1", "kind": "NetworkFenceClass", "metadata": { "name": "wall", "annotations": notes }, "spec": { "provisioner": "csi" } }),
    ];
    let objects: BTreeMap<_, _> = all
        .into_iter()
        .map(|one| {
            let text =
                |pointer: &str| one.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            ((text("/kind"), String::new(), text("/metadata/name")), one)
        })
        .collect();
    State {
        objects,
        survey: json!({
            "storageClasses": ["fast"], "volumeReplicationClasses": ["mirror"], "networkFenceClasses": ["wall"],
        }),
        fences: Some("Succeeded".into()),
        maintains: true,
        dead: false,
    }
}

impl Scene {
    /// A hub with two joined clusters, stores and keys, and nothing running.
    pub async fn bare(
        cluster: &Cluster,
        mark: &str,
        states: [Arc<Mutex<State>>; 2],
        folder: Arc<tempfile::TempDir>,
    ) -> Self {
        let client = cluster.client();
        let names = match cluster.is_embedded() {
            true => ["east".to_owned(), "west".to_owned()],
            false => [format!("{mark}-e"), format!("{mark}-w")],
        };
        let spaces: Api<Namespace> = Api::all(client.clone());
        for name in &names {
            let space = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
            spaces.create(&PostParams::default(), &serde_json::from_value(space).unwrap()).await.unwrap();
        }
        let [one, two] = &names;
        let [first, second] = states;
        let player = |name: &str, state| Player::new(name, client.clone(), cluster.clock(), state);
        let scene = Self {
            east: player(one, first),
            west: player(two, second),
            cluster: cluster.clone(),
            mark: mark.to_owned(),
            clusters: Api::all(client.clone()),
            policies: Api::all(client.clone()),
            managed: Api::all(client.clone()),
            drpcs: Api::namespaced(client.clone(), mark),
            folder,
        };
        for name in &names {
            scene.join(name).await;
            scene.keys(name).await;
            std::fs::create_dir_all(scene.bucket(name)).unwrap();
        }
        scene.configure(&scene.config(&names)).await;
        scene
    }

    /// The same with everything running.
    pub async fn open(cluster: &Cluster) -> (Self, Vec<Task>) {
        cluster.install(&definitions()).await;
        let mark = cluster.namespace("pair").await;
        let states = [Arc::new(Mutex::new(furnished("s1"))), Arc::new(Mutex::new(furnished("s2")))];
        let scene = Self::bare(cluster, &mark, states, Arc::new(tempfile::tempdir().unwrap())).await;
        let mut tasks = scene.players();
        let hub = run_hub(cluster.client(), cluster.clock(), scene.setup(), Arc::new(Buckets));
        tasks.push(Task::spawn(hub));
        (scene, tasks)
    }

    pub fn players(&self) -> Vec<Task> {
        vec![Task::spawn(self.east.clone().run()), Task::spawn(self.west.clone().run())]
    }

    pub fn setup(&self) -> Setup {
        Setup { namespace: self.mark.clone(), only: Some(format!("test={}", self.mark)) }
    }

    pub fn bucket(&self, name: &str) -> std::path::PathBuf {
        Path::new(self.folder.path()).join(name)
    }

    fn config(&self, names: &[String]) -> String {
        let profiles: Vec<Value> = names
            .iter()
            .map(|name| {
                json!({
                    "s3ProfileName": name, "s3Bucket": name, "s3SecretRef": { "name": format!("keys-{name}") },
                    "s3CompatibleEndpoint": format!("file://{}", self.folder.path().display()),
                })
            })
            .collect();
        json!({ "ramenControllerType": "dr-hub", "s3StoreProfiles": profiles }).to_string()
    }

    pub async fn configure(&self, text: &str) {
        let maps: Api<ConfigMap> = Api::namespaced(self.cluster.client(), &self.mark);
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": CONFIG_MAP }, "data": { CONFIG_KEY: text },
        });
        maps.patch(CONFIG_MAP, &PatchParams::apply("test").force(), &Patch::Apply(map)).await.unwrap();
    }

    async fn join(&self, name: &str) {
        let cluster: ManagedCluster = serde_json::from_value(
            json!({ "metadata": { "name": name }, "spec": { "hubAcceptsClient": true } }),
        )
        .unwrap();
        self.managed.create(&PostParams::default(), &cluster).await.unwrap();
        self.heard(name, "True").await;
    }

    /// Whether the fleet hears of a cluster.
    pub async fn heard(&self, name: &str, available: &str) {
        let said = |type_: &str, status: &str| {
            json!({
                "type": type_, "status": status, "reason": "R", "message": "",
                "lastTransitionTime": "2030-01-01T00:00:00Z",
            })
        };
        let status = json!({
            "conditions": [
                said("ManagedClusterJoined", "True"),
                said("ManagedClusterConditionAvailable", available),
            ],
            "clusterClaims": [{ "name": "id.k8s.io", "value": format!("id-of-{name}") }],
        });
        let patch = Patch::Merge(json!({ "status": status }));
        self.managed.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    pub async fn keys(&self, name: &str) {
        let secrets: Api<Secret> = Api::namespaced(self.cluster.client(), &self.mark);
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": format!("keys-{name}") },
            "stringData": { "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": format!("{CANARY}-{name}") },
        });
        secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    }

    pub async fn dr_cluster(&self, name: &str) {
        let object = json!({
            "metadata": { "name": name, "labels": { "test": self.mark } },
            "spec": { "s3ProfileName": name, "region": "r1", "cidrs": ["10.0.0.0/24"] },
        });
        self.clusters.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    }

    pub fn policy_name(&self) -> String {
        format!("policy-of-{}", self.mark)
    }

    pub async fn policy(&self) {
        let object = json!({
            "metadata": { "name": self.policy_name(), "labels": { "test": self.mark } },
            "spec": { "schedulingInterval": "5m", "drClusters": [self.east.name, self.west.name] },
        });
        self.policies.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    }

    pub async fn pair(&self) {
        self.dr_cluster(&self.east.name).await;
        self.dr_cluster(&self.west.name).await;
        self.policy().await;
    }

    /// Waits until a DRCluster says this, of its spec as it is now.
    pub async fn says(&self, name: &str, type_: &str, status: &str, reason: &str) -> DRCluster {
        self.cluster_is(name, |cluster| {
            said(cluster_status(cluster), type_, cluster.metadata.generation) == Some((status, reason))
        })
        .await
    }

    pub async fn cluster_is(&self, name: &str, is: impl Fn(&DRCluster) -> bool) -> DRCluster {
        self.cluster
            .until(&self.clusters, name, |found: Option<&DRCluster>| found.is_some_and(&is))
            .await
            .unwrap()
    }

    pub async fn policy_is(&self, is: impl Fn(&DRPolicy) -> bool) -> DRPolicy {
        let name = self.policy_name();
        self.cluster
            .until(&self.policies, &name, |found: Option<&DRPolicy>| found.is_some_and(&is))
            .await
            .unwrap()
    }

    pub async fn fence(&self, name: &str, word: Option<&str>) {
        let patch = Patch::Merge(json!({ "spec": { "clusterFence": word } }));
        self.clusters.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    pub async fn delete<K>(&self, api: &Api<K>, name: &str)
    where
        K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
    {
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub async fn gone<K>(&self, api: &Api<K>, name: &str)
    where
        K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
    {
        self.cluster.until(api, name, |found: Option<&K>| found.is_none()).await;
    }

    pub fn works(&self, name: &str) -> Api<ManifestWork> {
        Api::namespaced(self.cluster.client(), name)
    }

    pub fn views(&self, name: &str) -> Api<ManagedClusterView> {
        Api::namespaced(self.cluster.client(), name)
    }
}

pub fn cluster_status(cluster: &DRCluster) -> &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition] {
    cluster.status.as_ref().map(|status| &status.conditions[..]).unwrap_or_default()
}

pub fn said<'a>(
    conditions: &'a [k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition],
    type_: &str,
    generation: Option<i64>,
) -> Option<(&'a str, &'a str)> {
    let found = conditions.iter().find(|one| one.type_ == type_ && one.observed_generation == generation)?;
    Some((&found.status, &found.reason))
}

pub fn policy_says(policy: &DRPolicy, type_: &str) -> Option<(String, String)> {
    let shown = policy.status.as_ref()?;
    let (status, reason) = said(&shown.conditions, type_, policy.metadata.generation)?;
    Some((status.to_owned(), reason.to_owned()))
}

impl Scene {
    /// Writes the configuration anew, so that everybody looks again though nothing is different.
    pub async fn configure_again(&self) {
        let maps: Api<ConfigMap> = Api::namespaced(self.cluster.client(), &self.mark);
        let patch = Patch::Merge(json!({ "metadata": { "annotations": { "touched": "yes" } } }));
        maps.patch(CONFIG_MAP, &PatchParams::default(), &patch).await.unwrap();
    }
}
