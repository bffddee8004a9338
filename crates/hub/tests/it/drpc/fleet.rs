//! A hub with two played clusters and one application to protect.

use crate::drpc::kinds::definitions;
use crate::drpc::spoke::Spoke;
use async_trait::async_trait;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use lifeboat_api::apps::PlacementRule;
use lifeboat_api::cluster::{ManagedCluster, Placement, PlacementDecision};
use lifeboat_api::ramen::{DRCluster, DRPlacementControl, DRPolicy, VolumeReplicationGroup};
use lifeboat_api::view::ManagedClusterView;
use lifeboat_api::work::ManifestWork;
use lifeboat_engine::{Clock, ObjectKey, Settings};
use lifeboat_hub::drpc::stores::{Ledger, Reading};
use lifeboat_hub::drpc::{self, Kinds, Setup};
use lifeboat_hub::works;
use lifeboat_testbed::{Cluster, NotYet, Task};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;

pub const DRPC: &str = "web";

/// Object stores as a test wants them.
#[derive(Clone, Default)]
pub struct Stores {
    pub reading: Arc<Mutex<Reading>>,
}

#[async_trait]
impl Ledger for Stores {
    async fn read(&self, _: &[String], _: &ObjectKey, _: Option<&str>) -> Reading {
        self.reading.lock().clone()
    }
}

/// The names of one test's things; those of a shared real cluster must not meet.
#[derive(Clone, Debug)]
pub struct Names {
    pub space: String,
    pub east: String,
    pub west: String,
    pub policy: String,
}

impl Names {
    pub fn fixed() -> Self {
        Self { space: "shop".into(), east: "east".into(), west: "west".into(), policy: "both".into() }
    }
}

pub struct Stage {
    pub cluster: Cluster,
    pub names: Names,
    pub east: Spoke,
    pub west: Spoke,
    pub stores: Stores,
    pub drpcs: Api<DRPlacementControl>,
    pub placements: Api<Placement>,
    pub decisions: Api<PlacementDecision>,
    pub rules: Api<PlacementRule>,
    /// Whether the hub has the rights of its manifest only; one whose every write is looked at has all.
    plain: bool,
    tasks: Vec<Task>,
}

/// Runs the controller until dropped.
pub async fn run_hub(client: kube::Client, clock: Clock, space: String, stores: Stores) {
    let chance: lifeboat_hub::secrets::Chance = Arc::new(|bytes: &mut [u8]| bytes.fill(7));
    let setup = Setup { ledger: Arc::new(stores), chance, home: Some(space.clone()), only: Some(space) };
    let hub = drpc::serve(client, clock, Settings::default(), Kinds { placement_rules: true }, setup);
    hub.run(std::future::pending()).await;
}

async fn make<K>(api: &Api<K>, object: Value)
where
    K: kube::Resource + serde::de::DeserializeOwned + serde::Serialize + Clone + std::fmt::Debug,
{
    let object: K = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// Removes all objects of a kind as if they had never been.
async fn forget<K>(api: &Api<K>)
where
    K: kube::Resource + serde::de::DeserializeOwned + serde::Serialize + Clone + std::fmt::Debug,
{
    for one in api.list(&Default::default()).await.unwrap().items {
        let name = one.meta().name.clone().unwrap_or_default();
        let bare = Patch::Merge(json!({ "metadata": { "finalizers": [] } }));
        let _ = api.patch(&name, &PatchParams::default(), &bare).await;
        let _ = api.delete(&name, &Default::default()).await;
    }
}

impl Stage {
    /// A furnished hub whose controller runs.
    pub async fn new(cluster: &Cluster) -> Self {
        cluster.install(&definitions()).await;
        let names = Names {
            space: cluster.namespace("shop").await,
            east: cluster.namespace("east").await,
            west: cluster.namespace("west").await,
            policy: String::new(),
        };
        let names = Names { policy: format!("policy-{}", names.space), ..names };
        let mut stage = Self::over(cluster, names, Stores::default());
        stage.plain = true;
        stage.furnish().await;
        stage.start_spokes();
        stage.start_hub();
        stage
    }

    /// A hub over a cluster, with nothing in it and nobody at work.
    pub fn over(cluster: &Cluster, names: Names, stores: Stores) -> Self {
        let client = cluster.client();
        let space = names.space.as_str();
        let spoke = |name: &str| Spoke::new(name, space, client.clone(), cluster.clock());
        Self {
            east: spoke(&names.east),
            west: spoke(&names.west),
            stores,
            drpcs: Api::namespaced(client.clone(), space),
            placements: Api::namespaced(client.clone(), space),
            decisions: Api::namespaced(client.clone(), space),
            rules: Api::namespaced(client.clone(), space),
            plain: false,
            tasks: Vec::new(),
            cluster: cluster.clone(),
            names,
        }
    }

    pub fn start_spokes(&mut self) {
        self.tasks.push(Task::spawn(self.east.clone().run()));
        self.tasks.push(Task::spawn(self.west.clone().run()));
    }

    pub fn start_hub(&mut self) {
        let (cluster, plain) = (self.cluster.clone(), self.plain);
        let (space, stores) = (self.names.space.clone(), self.stores.clone());
        self.tasks.push(Task::spawn(async move {
            let client = if plain { cluster.account("hub").await } else { cluster.client() };
            run_hub(client, cluster.clock(), space, stores).await;
        }));
    }

    /// The hub's process ends; the clusters go on.
    pub fn stop_hub(&mut self) {
        drop(self.tasks.pop());
    }

    /// Namespaces of a hub that is not shared.
    pub async fn spaces(&self) {
        let api: Api<Namespace> = Api::all(self.cluster.client());
        for name in [&self.names.space, &self.names.east, &self.names.west] {
            let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
            api.create(&PostParams::default(), &Namespace { metadata, ..Namespace::default() })
                .await
                .unwrap();
        }
    }

    /// Clusters, a policy that is validated, a placement that is left to us.
    pub async fn furnish(&self) {
        let client = self.cluster.client();
        let managed: Api<ManagedCluster> = Api::all(client.clone());
        let drclusters: Api<DRCluster> = Api::all(client.clone());
        let policies: Api<DRPolicy> = Api::all(client.clone());
        for name in [&self.names.east, &self.names.west] {
            make(
                &managed,
                json!({
                    "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
                    "metadata": { "name": name }, "spec": { "hubAcceptsClient": true },
                }),
            )
            .await;
            self.available(name, "True").await;
            make(
                &drclusters,
                json!({
                    "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "DRCluster",
                    "metadata": { "name": name }, "spec": { "s3ProfileName": format!("s3-{name}") },
                }),
            )
            .await;
        }
        make(
            &policies,
            json!({
                "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "DRPolicy",
                "metadata": { "name": self.names.policy },
                "spec": { "drClusters": [self.names.east, self.names.west], "schedulingInterval": "1m" },
            }),
        )
        .await;
        let validated = self.condition("Validated", "True", "Succeeded");
        let status = json!({ "status": { "conditions": [validated] } });
        policies
            .patch_status(&self.names.policy, &PatchParams::default(), &Patch::Merge(status))
            .await
            .unwrap();
        make(&self.placements, json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": {
                "name": "web-placement", "namespace": self.names.space,
                "annotations": { "cluster.open-cluster-management.io/experimental-scheduling-disable": "true" },
            },
            "spec": { "numberOfClusters": 1 },
        })).await;
    }

    pub fn condition(&self, type_: &str, status: &str, reason: &str) -> Value {
        json!({
            "type": type_, "status": status, "reason": reason, "message": "", "observedGeneration": 1,
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        })
    }

    /// What the hub's registration says of a cluster.
    pub async fn available(&self, cluster: &str, status: &str) {
        let managed: Api<ManagedCluster> = Api::all(self.cluster.client());
        let said = self.condition("ManagedClusterConditionAvailable", status, "ManagedClusterAvailable");
        let patch = Patch::Merge(json!({ "status": { "conditions": [said] } }));
        managed.patch_status(cluster, &PatchParams::default(), &patch).await.unwrap();
    }

    /// A cluster dies, and the hub hears of it.
    pub async fn kill(&self, spoke: &Spoke) {
        spoke.with(|state| state.dead = true);
        self.available(&spoke.name, "Unknown").await;
    }

    /// A cluster comes back as it was.
    pub async fn wake(&self, spoke: &Spoke) {
        spoke.with(|state| state.dead = false);
        self.available(&spoke.name, "True").await;
    }

    pub async fn protect(&self, change: impl FnOnce(&mut Value)) {
        let mut drpc = json!({
            "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "DRPlacementControl",
            "metadata": { "name": DRPC, "namespace": self.names.space },
            "spec": {
                "placementRef": { "name": "web-placement", "kind": "Placement" },
                "drPolicyRef": { "name": self.names.policy },
                "pvcSelector": { "matchLabels": { "app": "web" } },
                "preferredCluster": self.names.east,
            },
        });
        change(&mut drpc);
        make(&self.drpcs, drpc).await;
    }

    pub async fn ask(&self, spec: Value) {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.drpcs.patch(DRPC, &PatchParams::default(), &patch).await.unwrap();
    }

    pub async fn failover(&self, to: &Spoke) {
        self.ask(json!({ "action": "Failover", "failoverCluster": to.name })).await;
    }

    pub async fn relocate(&self, to: &Spoke) {
        self.ask(json!({ "action": "Relocate", "preferredCluster": to.name })).await;
    }

    /// Waits until phase and progression are these.
    pub async fn is(&self, phase: &str, progression: &str) -> DRPlacementControl {
        self.cluster
            .eventually(&format!("{phase}/{progression}"), || async {
                let drpc = self.drpcs.get(DRPC).await?;
                let status = drpc.status.clone().unwrap_or_default();
                let shown = (
                    status.phase.as_ref().map_or("", |phase| phase.as_str()).to_owned(),
                    status.progression.as_ref().map_or("", |step| step.as_str()).to_owned(),
                );
                match shown == (phase.to_owned(), progression.to_owned()) {
                    true => Ok(drpc),
                    false => Err(NotYet(format!("{shown:?} {:#?}", status.blockers))),
                }
            })
            .await
    }

    /// Waits until something is waited for.
    pub async fn waits(&self, reason: &str) -> DRPlacementControl {
        self.cluster
            .eventually(&format!("a wait for {reason}"), || async {
                let drpc = self.drpcs.get(DRPC).await?;
                let blockers = drpc.status.clone().unwrap_or_default().blockers;
                match blockers.iter().any(|blocker| blocker.reason == reason) {
                    true => Ok(drpc),
                    false => Err(NotYet(format!("{blockers:#?}"))),
                }
            })
            .await
    }

    /// Where the application is placed, with a mark on what is only kept.
    pub async fn placed(&self) -> Vec<String> {
        let all = self.decisions.list(&Default::default()).await.unwrap();
        let all = all.items.into_iter().filter_map(|one| one.status).flat_map(|status| status.decisions);
        all.map(
            |one| if one.reason.is_empty() { one.cluster_name } else { format!("({})", one.cluster_name) },
        )
        .collect()
    }

    pub async fn intent(&self, spoke: &Spoke) -> Option<VolumeReplicationGroup> {
        let api: Api<ManifestWork> = Api::namespaced(self.cluster.client(), &spoke.name);
        let name = works::name(DRPC, &self.names.space, works::types::GROUP);
        works::read(&api.get_opt(&name).await.unwrap()?)
    }

    pub async fn works(&self, spoke: &Spoke) -> Vec<String> {
        let api: Api<ManifestWork> = Api::namespaced(self.cluster.client(), &spoke.name);
        let all = api.list(&Default::default()).await.unwrap();
        all.items.into_iter().filter_map(|one| one.metadata.name).collect()
    }

    pub async fn views(&self, spoke: &Spoke) -> Vec<String> {
        let api: Api<ManagedClusterView> = Api::namespaced(self.cluster.client(), &spoke.name);
        let all = api.list(&Default::default()).await.unwrap();
        all.items.into_iter().filter_map(|one| one.metadata.name).collect()
    }

    /// The hub is lost and comes back from a backup: the request is there as a new object, with or without our notes on it. Works, views and
    /// decisions are gone, and the clusters did not notice.
    pub async fn lose_hub(&mut self, keeps_notes: bool, change: impl FnOnce(&mut Value)) {
        self.stop_hub();
        self.lose_memory(keeps_notes, change).await;
        self.start_hub();
    }

    /// The same, without a process that would notice.
    pub async fn lose_memory(&mut self, keeps_notes: bool, change: impl FnOnce(&mut Value)) {
        let spokes = [self.east.clone(), self.west.clone()];
        let were_dead: Vec<bool> =
            spokes.iter().map(|spoke| std::mem::replace(&mut spoke.state.lock().dead, true)).collect();
        let client = self.cluster.client();
        for spoke in &spokes {
            forget(&Api::<ManifestWork>::namespaced(client.clone(), &spoke.name)).await;
            forget(&Api::<ManagedClusterView>::namespaced(client.clone(), &spoke.name)).await;
        }
        forget(&self.decisions).await;
        let drpc = self.drpcs.get(DRPC).await.unwrap();
        forget(&self.drpcs).await;
        let mut back = json!({
            "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "DRPlacementControl",
            "metadata": { "name": DRPC, "namespace": self.names.space }, "spec": drpc.spec,
        });
        if keeps_notes {
            back["metadata"]["annotations"] = json!(drpc.metadata.annotations);
        }
        change(&mut back);
        make(&self.drpcs, back).await;
        for (spoke, dead) in spokes.iter().zip(were_dead) {
            spoke.with(|state| state.dead = dead);
        }
    }

    pub async fn gone(&self) {
        self.cluster
            .eventually("the DRPlacementControl is gone", || async {
                match self.drpcs.get_opt(DRPC).await? {
                    None => Ok(()),
                    Some(left) => {
                        let works = [self.works(&self.east).await, self.works(&self.west).await];
                        let blockers = left.status.unwrap_or_default().blockers;
                        Err(NotYet(format!("{blockers:#?} {works:?} {:?}", left.metadata.finalizers)))
                    }
                }
            })
            .await;
    }
}

/// What a condition of a DRPlacementControl says: its status and reason.
pub fn said(drpc: &DRPlacementControl, type_: &str) -> (String, String) {
    let conditions = drpc.status.clone().unwrap_or_default().conditions;
    let one = conditions.iter().find(|one| one.type_ == type_).unwrap();
    (one.status.clone(), one.reason.clone())
}
