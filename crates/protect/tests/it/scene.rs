//! A cluster with a protector, a binder, played drivers and stores in memory.

use crate::ledger::Shelves;
use crate::player::Player;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume, PersistentVolumeClaim, Pod, Secret};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lifeboat_api::annotations;
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_api::replication::{VolumeReplication, VolumeReplicationClass};
use lifeboat_api::snapshot::VolumeSnapshot;
use lifeboat_api::volsync::{ReplicationDestination, ReplicationSource};
use lifeboat_apiserver::fault::Faults;
use lifeboat_binder::Neighbours;
use lifeboat_engine::{Clock, Settings};
use lifeboat_protect::ledger::Ledger;
use lifeboat_protect::run::{kinds, protector};
use lifeboat_protect::settings::{CONFIG_KEY, CONFIG_MAP};
use lifeboat_protect::view::Setup;
use lifeboat_testbed::fixtures::{self, With};
use lifeboat_testbed::{Cluster, Task};
use serde_json::{Value, json};
use std::sync::Arc;

pub const SECRET: &str = "canary-word-77e1";

pub struct Scene {
    pub cluster: Cluster,
    /// Namespace of the application and of the operator; storage class; beginning of volume names.
    pub mark: String,
    pub groups: Api<VolumeReplicationGroup>,
    pub claims: Api<PersistentVolumeClaim>,
    pub volumes: Api<PersistentVolume>,
    pub replications: Api<VolumeReplication>,
    pub sources: Api<ReplicationSource>,
    pub destinations: Api<ReplicationDestination>,
    pub images: Api<VolumeSnapshot>,
    pub stores: Shelves,
    pub player: Player,
    tasks: Vec<Task>,
}

pub fn driver(mark: &str) -> String {
    format!("{mark}.csi.example.com")
}

pub async fn run_protector(client: kube::Client, clock: Clock, mark: String, ledger: Arc<dyn Ledger>) {
    run_apart(client, clock, mark.clone(), mark, ledger).await;
}

/// With an operator whose own namespace is not the application's.
pub async fn run_apart(
    client: kube::Client,
    clock: Clock,
    operator: String,
    mark: String,
    ledger: Arc<dyn Ledger>,
) {
    let kinds = kinds(&client).await.expect("a cluster tells its kinds");
    let setup = Setup { namespace: operator, cluster: format!("uid-{mark}"), only: Some(mark) };
    protector(client, clock, Settings::default(), kinds, ledger, setup).run(std::future::pending()).await;
}

pub async fn run_binder(client: kube::Client, clock: Clock) {
    lifeboat_binder::engine(client, clock, Settings::default(), Neighbours::Here)
        .run(std::future::pending())
        .await;
}

/// Everything that a group needs, without anything that runs.
pub async fn furnish(cluster: &Cluster, mark: &str) {
    let client = cluster.client();
    let class = fixtures::storage_class(mark).with(|class| {
        class.provisioner = driver(mark);
        class.reclaim_policy = Some("Delete".into());
        class.allow_volume_expansion = Some(true);
        class.metadata.labels = Some([("ramendr.openshift.io/storageid".to_owned(), "s1".to_owned())].into());
    });
    let classes: Api<StorageClass> = Api::all(client.clone());
    classes.create(&PostParams::default(), &class).await.unwrap();
    let replication: VolumeReplicationClass = serde_json::from_value(json!({
        "apiVersion": "replication.storage.openshift.io/v1alpha1", "kind": "VolumeReplicationClass",
        "metadata": { "name": mark, "labels": { "ramendr.openshift.io/replicationid": "r1", "ramendr.openshift.io/storageid": "s1" } },
        "spec": { "provisioner": driver(mark), "parameters": { "schedulingInterval": "1h" } },
    }))
    .unwrap();
    let api: Api<VolumeReplicationClass> = Api::all(client.clone());
    api.create(&PostParams::default(), &replication).await.unwrap();
    furnish_operator(cluster, mark).await;
}

/// What the operator reads: its configuration and the keys of its stores.
pub async fn furnish_operator(cluster: &Cluster, mark: &str) {
    let client = cluster.client();
    let mut config = ConfigMap::default();
    config.metadata.name = Some(CONFIG_MAP.into());
    config.data = Some([(CONFIG_KEY.to_owned(), configuration(""))].into());
    let configs: Api<ConfigMap> = Api::namespaced(client.clone(), mark);
    configs.create(&PostParams::default(), &config).await.unwrap();
    let secrets: Api<Secret> = Api::namespaced(client, mark);
    let mut secret = Secret::default();
    secret.metadata.name = Some("s3".into());
    secret.string_data = Some(
        [
            ("AWS_ACCESS_KEY_ID".to_owned(), "id".to_owned()),
            ("AWS_SECRET_ACCESS_KEY".to_owned(), SECRET.to_owned()),
        ]
        .into(),
    );
    secrets.create(&PostParams::default(), &secret).await.unwrap();
}

pub fn configuration(more: &str) -> String {
    let profile = |name: &str| {
        format!(
            "- s3ProfileName: {name}\n  s3Bucket: bucket\n  s3CompatibleEndpoint: http://127.0.0.1:1\n  s3Region: r\n  s3SecretRef:\n    name: s3\n"
        )
    };
    format!("s3StoreProfiles:\n{}{}{more}", profile("east"), profile("west"))
}

impl Scene {
    pub async fn new(cluster: &Cluster, prefix: &str) -> Self {
        Self::sharing(cluster, prefix, Shelves::default()).await
    }

    pub async fn sharing(cluster: &Cluster, prefix: &str, stores: Shelves) -> Self {
        let client = cluster.account("protector").await;
        Self::with(cluster, prefix, stores, client).await
    }

    /// With a protector that sees through `faults`.
    pub async fn seeing(cluster: &Cluster, prefix: &str, faults: Arc<dyn Faults>) -> Self {
        Self::with(cluster, prefix, Shelves::default(), cluster.client_with(faults)).await
    }

    async fn with(cluster: &Cluster, prefix: &str, stores: Shelves, protector: kube::Client) -> Self {
        cluster.install(&lifeboat_api::crds()).await;
        let mark = cluster.namespace(prefix).await;
        furnish(cluster, &mark).await;
        let mut scene = Self::over(cluster, &mark, stores);
        scene.start(protector);
        scene
    }

    /// Only the handles, for a namespace that is furnished already.
    pub fn over(cluster: &Cluster, mark: &str, stores: Shelves) -> Self {
        let client = cluster.client();
        Self {
            cluster: cluster.clone(),
            groups: Api::namespaced(client.clone(), mark),
            claims: Api::namespaced(client.clone(), mark),
            volumes: Api::all(client.clone()),
            replications: Api::namespaced(client.clone(), mark),
            sources: Api::namespaced(client.clone(), mark),
            destinations: Api::namespaced(client.clone(), mark),
            images: Api::namespaced(client.clone(), mark),
            stores,
            player: Player::new(client, cluster.clock(), mark),
            mark: mark.to_owned(),
            tasks: Vec::new(),
        }
    }

    /// With an operator that outlives the application's namespace.
    pub async fn apart(cluster: &Cluster, prefix: &str) -> Self {
        cluster.install(&lifeboat_api::crds()).await;
        let operator = cluster.namespace("operator").await;
        let mark = cluster.namespace(prefix).await;
        furnish(cluster, &mark).await;
        furnish_operator(cluster, &operator).await;
        let mut scene = Self::over(cluster, &mark, Shelves::default());
        let client = cluster.account("protector").await;
        scene.tasks.push(Task::spawn(run_binder(cluster.client(), cluster.clock())));
        scene.tasks.push(Task::spawn(scene.player.clone().run()));
        let ledger: Arc<dyn Ledger> = Arc::new(scene.stores.clone());
        let run = run_apart(client, cluster.clock(), operator, mark, ledger);
        scene.tasks.push(Task::spawn(run));
        scene
    }

    fn start(&mut self, client: kube::Client) {
        self.tasks.push(Task::spawn(run_binder(self.cluster.client(), self.cluster.clock())));
        self.tasks.push(Task::spawn(self.player.clone().run()));
        let ledger: Arc<dyn Ledger> = Arc::new(self.stores.clone());
        self.tasks.push(Task::spawn(run_protector(client, self.cluster.clock(), self.mark.clone(), ledger)));
    }

    pub fn group_json(&self, name: &str, role: &str) -> Value {
        json!({
            "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "VolumeReplicationGroup",
            "metadata": { "name": name, "namespace": self.mark },
            "spec": {
                "pvcSelector": { "matchLabels": { "app": "web" } },
                "replicationState": role,
                "s3Profiles": ["east", "west"],
                "async": { "schedulingInterval": "1h" },
            },
        })
    }

    pub async fn group(
        &self,
        name: &str,
        role: &str,
        change: impl FnOnce(&mut Value),
    ) -> VolumeReplicationGroup {
        let mut group = self.group_json(name, role);
        change(&mut group);
        let group: VolumeReplicationGroup = serde_json::from_value(group).unwrap();
        self.groups.create(&PostParams::default(), &group).await.unwrap()
    }

    pub fn volume_json(&self, claim: &str) -> PersistentVolume {
        fixtures::volume(&format!("{}-{claim}", self.mark)).with(|volume| {
            let spec = volume.spec.as_mut().unwrap();
            spec.host_path = None;
            spec.csi = Some(k8s_openapi::api::core::v1::CSIPersistentVolumeSource {
                driver: driver(&self.mark),
                volume_handle: format!("handle-{claim}"),
                ..Default::default()
            });
            spec.persistent_volume_reclaim_policy = Some("Delete".into());
            spec.storage_class_name = Some(self.mark.clone());
            spec.claim_ref = Some(k8s_openapi::api::core::v1::ObjectReference {
                namespace: Some(self.mark.clone()),
                name: Some(claim.to_owned()),
                ..Default::default()
            });
        })
    }

    pub fn claim_json(&self, name: &str) -> PersistentVolumeClaim {
        fixtures::claim(&self.mark, name).with(|claim| {
            claim.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
            claim.spec.as_mut().unwrap().storage_class_name = Some(self.mark.clone());
        })
    }

    /// A claim and its volume, bound.
    pub async fn claim(&self, name: &str) -> PersistentVolumeClaim {
        self.volumes.create(&PostParams::default(), &self.volume_json(name)).await.unwrap();
        self.claims.create(&PostParams::default(), &self.claim_json(name)).await.unwrap();
        self.bound(name).await
    }

    pub async fn bound(&self, name: &str) -> PersistentVolumeClaim {
        let is = |claim: Option<&PersistentVolumeClaim>| {
            claim.and_then(|claim| claim.status.as_ref()?.phase.as_deref()) == Some("Bound")
        };
        self.cluster.until(&self.claims, name, is).await.unwrap()
    }

    pub async fn volume(&self, claim: &str) -> PersistentVolume {
        self.volumes.get(&format!("{}-{claim}", self.mark)).await.unwrap()
    }

    /// Waits until a condition of a group, for its present generation, has this status and reason.
    pub async fn says(&self, name: &str, type_: &str, status: &str, reason: &str) -> VolumeReplicationGroup {
        self.group_is(name, |group| {
            let said = condition(group, type_);
            said.is_some_and(|said| {
                said.status == status
                    && said.reason == reason
                    && said.observed_generation == group.metadata.generation
            })
        })
        .await
    }

    /// Waits until all of a group is recorded, however its claims are protected.
    pub async fn recorded(&self, name: &str) -> VolumeReplicationGroup {
        self.group_is(name, |group| {
            let said = condition(group, "ClusterDataProtected");
            said.is_some_and(|said| {
                said.status == "True" && said.observed_generation == group.metadata.generation
            })
        })
        .await
    }

    pub async fn state(&self, name: &str, state: &str) -> VolumeReplicationGroup {
        self.group_is(name, |group| {
            let status = group.status.clone().unwrap_or_default();
            status.state.is_some_and(|is| is.as_str() == state)
                && status.observed_generation == group.metadata.generation
        })
        .await
    }

    pub async fn group_is(
        &self,
        name: &str,
        is: impl Fn(&VolumeReplicationGroup) -> bool,
    ) -> VolumeReplicationGroup {
        self.cluster
            .until(&self.groups, name, |group: Option<&VolumeReplicationGroup>| group.is_some_and(&is))
            .await
            .unwrap()
    }

    pub async fn blocked(&self, name: &str, reason: &str) -> VolumeReplicationGroup {
        self.group_is(name, |group| {
            let status = group.status.clone().unwrap_or_default();
            status.blockers.iter().any(|blocker| blocker.reason == reason)
        })
        .await
    }

    pub async fn merge<K>(&self, api: &Api<K>, name: &str, patch: Value)
    where
        K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
    {
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub async fn delete<K>(&self, api: &Api<K>, name: &str)
    where
        K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
    {
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Ends the protection of a group, as a hub does: the order first, then the deletion.
    pub async fn end(&self, name: &str) {
        let order = json!({"metadata": {"annotations": {annotations::END_PROTECTION: "true"}}});
        self.merge(&self.groups, name, order).await;
        self.delete(&self.groups, name).await;
    }

    pub async fn gone<K>(&self, api: &Api<K>, name: &str)
    where
        K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
    {
        self.cluster.until(api, name, |found: Option<&K>| found.is_none()).await;
    }

    pub async fn pod(&self, name: &str, claims: &[&str]) -> Pod {
        let pods: Api<Pod> = Api::namespaced(self.cluster.client(), &self.mark);
        // A real API server puts the namespace's service account into pods, which has to exist.
        let pod = fixtures::pod(&self.mark, name, claims).with(|pod| {
            let spec = pod.spec.as_mut().unwrap();
            spec.automount_service_account_token = Some(false);
            // One that no node was found for uses nothing yet.
            spec.node_name = Some("n1".into());
        });
        let look = || async { Ok(pods.create(&PostParams::default(), &pod).await?) };
        self.cluster.eventually("the pod", look).await
    }

    pub async fn unpod(&self, name: &str) {
        let pods: Api<Pod> = Api::namespaced(self.cluster.client(), &self.mark);
        pods.delete(name, &DeleteParams::default().grace_period(0)).await.unwrap();
    }

    pub async fn key(&self, group: &str) {
        let secrets: Api<Secret> = Api::namespaced(self.cluster.client(), &self.mark);
        let mut secret = Secret::default();
        secret.metadata.name = Some(format!("{group}-vs-secret"));
        secret.string_data = Some([("psk.txt".to_owned(), "volsyncramen:00".to_owned())].into());
        secrets.create(&PostParams::default(), &secret).await.unwrap();
    }

    pub async fn configure(&self, more: &str) {
        let configs: Api<ConfigMap> = Api::namespaced(self.cluster.client(), &self.mark);
        self.merge(&configs, CONFIG_MAP, json!({"data": {CONFIG_KEY: configuration(more)}})).await;
    }
}

pub fn condition<'a>(
    group: &'a VolumeReplicationGroup,
    type_: &str,
) -> Option<&'a k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition> {
    group.status.as_ref()?.conditions.iter().find(|one| one.type_ == type_)
}

pub fn note<K: kube::Resource>(object: &K, key: &str) -> Option<String> {
    object.meta().annotations.as_ref()?.get(key).cloned()
}

pub fn has_finalizer<K: kube::Resource>(object: &K, name: &str) -> bool {
    object.meta().finalizers.iter().flatten().any(|one| one == name)
}
