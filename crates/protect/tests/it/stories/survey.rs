//! What a cluster tells of itself, and what a store tells of groups. On embedded clusters: these objects belong to a whole cluster, which tests
//! on a real one share.

use crate::ledger::Shelves;
use crate::scene::{Scene, furnish};
use kube::api::{Api, PostParams};
use lifeboat_api::ramen::{DRClusterConfig, ProtectedVolumeReplicationGroupList};
use lifeboat_engine::Settings;
use lifeboat_protect::ledger::Record;
use lifeboat_protect::run::{kinds, protector};
use lifeboat_protect::view::Setup;
use lifeboat_testbed::{Cluster, Task};
use serde_json::json;
use std::sync::Arc;

async fn whole(cluster: &Cluster, stores: &Shelves) -> (Scene, Task) {
    cluster.install(&lifeboat_api::crds()).await;
    let mark = cluster.namespace("survey").await;
    furnish(cluster, &mark).await;
    let scene = Scene::over(cluster, &mark, stores.clone());
    let client = cluster.client();
    let setup = Setup { namespace: mark, cluster: "c".into(), only: None };
    let known = kinds(&client).await.unwrap();
    let made =
        protector(client, cluster.clock(), Settings::default(), known, Arc::new(stores.clone()), setup);
    (scene, Task::spawn(made.run(std::future::pending())))
}

#[tokio::test(start_paused = true)]
async fn d35_a_survey_is_in_order_and_written_once() {
    let cluster = Cluster::embedded();
    let (scene, _task) = whole(&cluster, &Shelves::default()).await;
    let configs: Api<DRClusterConfig> = Api::all(cluster.client());
    let config = |name: &str| -> DRClusterConfig {
        serde_json::from_value(json!({
            "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "DRClusterConfig", "metadata": { "name": name },
            "spec": { "clusterID": "c" },
        }))
        .unwrap()
    };
    configs.create(&PostParams::default(), &config("local")).await.unwrap();
    let processed = |config: Option<&DRClusterConfig>| {
        config.and_then(|config| config.status.as_ref()).is_some_and(|status| {
            status.conditions.iter().any(|one| one.type_ == "Processed" && one.status == "True")
        })
    };
    let told = cluster.until(&configs, "local", processed).await.unwrap();
    let status = told.status.clone().unwrap();
    assert_eq!(status.storage_classes, [scene.mark.as_str()]);
    assert_eq!(status.volume_replication_classes, [scene.mark.as_str()]);
    // Nothing has changed an hour later.
    tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
    let later = configs.get("local").await.unwrap();
    assert_eq!(later.metadata.resource_version, told.metadata.resource_version);
    // A second one is one too many.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    configs.create(&PostParams::default(), &config("another")).await.unwrap();
    let refused = |config: Option<&DRClusterConfig>| {
        config.and_then(|config| config.status.as_ref()).is_some_and(|status| {
            status.conditions.iter().any(|one| one.reason == "Failed" && one.message.contains("local"))
        })
    };
    cluster.until(&configs, "another", refused).await;
    scene.delete(&configs, "local").await;
    scene.gone(&configs, "local").await;
    cluster.until(&configs, "another", processed).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_tells_which_groups_it_has() {
    let cluster = Cluster::embedded();
    let stores = Shelves::default();
    let (scene, _task) = whole(&cluster, &stores).await;
    let group = serde_json::from_value(scene.group_json("web", "primary")).unwrap();
    stores.put("east", &scene.mark, "web", Record { epoch: 1, group, ..Record::default() });
    let lists: Api<ProtectedVolumeReplicationGroupList> = Api::all(cluster.client());
    let list: ProtectedVolumeReplicationGroupList = serde_json::from_value(json!({
        "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "ProtectedVolumeReplicationGroupList",
        "metadata": { "name": "l" }, "spec": { "s3ProfileName": "east" },
    }))
    .unwrap();
    lists.create(&PostParams::default(), &list).await.unwrap();
    let answered =
        |list: Option<&ProtectedVolumeReplicationGroupList>| list.is_some_and(|list| list.status.is_some());
    let status = cluster.until(&lists, "l", answered).await.unwrap().status.unwrap();
    assert_eq!(status.items.len(), 1);
    assert_eq!(status.items[0].metadata.name.as_deref(), Some("web"));
}
