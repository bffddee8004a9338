//! Clusters that lack kinds: the protector starts, says what is missing to those who need it, and takes a kind up when its definition comes.

use crate::ledger::Shelves;
use crate::scene::{Scene, configuration, driver, run_binder};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, PostParams};
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_api::replication::VolumeReplication;
use lifeboat_api::volsync::{ReplicationDestination, ReplicationSource};
use lifeboat_engine::Settings;
use lifeboat_protect::run::serve;
use lifeboat_protect::settings::{CONFIG_KEY, CONFIG_MAP};
use lifeboat_protect::view::Setup;
use lifeboat_testbed::fixtures::{self, With};
use lifeboat_testbed::{Cluster, Task};
use serde_json::{Value, json};
use std::sync::Arc;

fn definitions(kinds: &[&str]) -> Vec<CustomResourceDefinition> {
    let mut all = lifeboat_api::crds();
    all.retain(|one| kinds.contains(&one.spec.names.kind.as_str()));
    all
}

/// A cluster with nothing but groups, a class, the configuration and the protector's own account.
async fn bare(more: &[&str]) -> (Scene, Vec<Task>) {
    let cluster = Cluster::embedded();
    let kinds: Vec<&str> = ["VolumeReplicationGroup"].iter().chain(more).copied().collect();
    cluster.install(&definitions(&kinds)).await;
    let mark = cluster.namespace("bare").await;
    let client = cluster.client();
    let class = fixtures::storage_class(&mark).with(|class| class.provisioner = driver(&mark));
    let classes: Api<StorageClass> = Api::all(client.clone());
    classes.create(&PostParams::default(), &class).await.unwrap();
    let mut config = ConfigMap::default();
    config.metadata.name = Some(CONFIG_MAP.into());
    config.data = Some([(CONFIG_KEY.to_owned(), configuration(""))].into());
    let configs: Api<ConfigMap> = Api::namespaced(client.clone(), &mark);
    configs.create(&PostParams::default(), &config).await.unwrap();
    let mut secret = Secret::default();
    secret.metadata.name = Some("s3".into());
    let pair = |key: &str| (key.to_owned(), "x".to_owned());
    secret.string_data = Some([pair("AWS_ACCESS_KEY_ID"), pair("AWS_SECRET_ACCESS_KEY")].into());
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &mark);
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    let scene = Scene::over(&cluster, &mark, Shelves::default());
    let setup = Setup { namespace: mark.clone(), cluster: "c".into(), only: Some(mark) };
    let ledger = Arc::new(scene.stores.clone());
    let account = cluster.account("protector").await;
    let tasks = vec![
        Task::spawn(run_binder(client, cluster.clock())),
        Task::spawn(scene.player.clone().run()),
        Task::spawn(serve(
            account,
            cluster.clock(),
            Settings::default(),
            ledger,
            setup,
            std::future::pending(),
        )),
    ];
    (scene, tasks)
}

fn told(group: &VolumeReplicationGroup, what: &str) -> bool {
    let blockers = group.status.iter().flat_map(|status| &status.blockers);
    blockers.into_iter().any(|blocker| blocker.reason == "Unsupported" && blocker.message.contains(what))
}

#[tokio::test(start_paused = true)]
async fn d25_a_mover_is_missed_by_those_who_need_it_and_taken_up_when_it_comes() {
    let (scene, _tasks) = bare(&[]).await;
    scene.claim("one").await;
    scene.key("web").await;
    scene.group("web", "primary", |_| {}).await;
    scene.group_is("web", |group| told(group, "volsync.backube")).await;
    // Who needs none is served.
    scene
        .group("none", "primary", |group| {
            group["spec"]["pvcSelector"] = json!({"matchLabels": {"app": "none"}});
        })
        .await;
    scene.state("none", "Primary").await;
    scene.group("recv", "secondary", |group| receives(group, &scene.mark)).await;
    scene.group_is("recv", |group| told(group, "volsync.backube")).await;
    scene.cluster.install(&definitions(&["ReplicationSource", "ReplicationDestination"])).await;
    let sends = |source: Option<&ReplicationSource>| source.is_some();
    scene.cluster.until(&scene.sources, "one", sends).await;
    scene.state("web", "Primary").await;
    // A receiver is set up without a ServiceExport, and says that it is not exported.
    scene.key("recv").await;
    let listens = |receiver: Option<&ReplicationDestination>| receiver.is_some();
    scene.cluster.until(&scene.destinations, "two", listens).await;
    // Without images nothing can be made of what was received, and that is said.
    let exported = |group: &VolumeReplicationGroup| {
        let entries = group.status.iter().flat_map(|status| &status.protected_pvcs);
        entries.flat_map(|entry| &entry.conditions).any(|one| one.message.contains("multicluster.x-k8s.io"))
    };
    scene.group_is("recv", exported).await;
    let failover =
        json!({"spec": {"replicationState": "primary", "action": "Failover", "s3Profiles": ["NoS3"]}});
    scene.merge(&scene.groups, "recv", failover).await;
    scene.group_is("recv", |group| told(group, "snapshot.storage.k8s.io")).await;
    scene.cluster.install(&definitions(&["VolumeSnapshot", "VolumeSnapshotClass"])).await;
    scene.player.image("two-20300101000000", "two").await;
    scene.says("recv", "ClusterDataReady", "True", "Restored").await;
}

fn receives(group: &mut Value, mark: &str) {
    group["spec"]["pvcSelector"] = json!({"matchLabels": {"app": "recv"}});
    group["spec"]["volSync"] = json!({ "rdSpec": [{ "protectedPVC": { "name": "two", "namespace": mark, "protectedByVolSync": true,
        "storageClassName": mark, "labels": { "app": "recv" }, "accessModes": ["ReadWriteOnce"],
        "resources": { "requests": { "storage": "1Gi" } } } }] });
}

#[tokio::test(start_paused = true)]
async fn d25_replication_by_storage_is_missed_and_taken_up_when_it_comes() {
    let (scene, _tasks) = bare(&["ReplicationSource", "ReplicationDestination"]).await;
    scene.claim("one").await;
    scene.group("web", "primary", |group| group["spec"]["volSync"] = json!({"disabled": true})).await;
    scene.group_is("web", |group| told(group, "replication.storage.openshift.io")).await;
    scene.cluster.install(&definitions(&["VolumeReplication", "VolumeReplicationClass"])).await;
    let class = json!({
        "apiVersion": "replication.storage.openshift.io/v1alpha1", "kind": "VolumeReplicationClass", "metadata": { "name": "c" },
        "spec": { "provisioner": driver(&scene.mark), "parameters": { "schedulingInterval": "1h" } },
    });
    let classes: Api<lifeboat_api::replication::VolumeReplicationClass> = Api::all(scene.cluster.client());
    classes.create(&PostParams::default(), &serde_json::from_value(class).unwrap()).await.unwrap();
    let made = |one: Option<&VolumeReplication>| one.is_some();
    scene.cluster.until(&scene.replications, "one", made).await;
    scene.state("web", "Primary").await;
}
