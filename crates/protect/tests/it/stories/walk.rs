//! Two clusters and no hub: protect on east, promote on west by editing one field. Stores are folders in the format that Ramen reads.

use crate::ledger::Shelves;
use crate::scene::{Scene, note, run_binder};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use lifeboat_api::annotations;
use lifeboat_engine::Settings;
use lifeboat_protect::run::{kinds, protector};
use lifeboat_protect::settings::{CONFIG_KEY, CONFIG_MAP};
use lifeboat_protect::stores::Stores;
use lifeboat_protect::view::Setup;
use lifeboat_testbed::{Cluster, Task};
use serde_json::json;
use std::sync::Arc;

/// A cluster whose stores are two folders that both clusters see.
async fn side(name: &'static str, folder: &str) -> (Scene, Vec<Task>) {
    let cluster = Cluster::embedded();
    cluster.install(&lifeboat_api::crds()).await;
    let mark = cluster.namespace("walk").await;
    crate::scene::furnish(&cluster, &mark).await;
    let scene = Scene::over(&cluster, &mark, Shelves::default());
    let profile = |store: &str| {
        format!(
            "- s3ProfileName: {store}\n  s3Bucket: {store}\n  s3CompatibleEndpoint: file://{folder}\n  s3SecretRef: {{ name: s3 }}\n"
        )
    };
    let text = format!("s3StoreProfiles:\n{}{}", profile("east"), profile("west"));
    let configs: Api<ConfigMap> = Api::namespaced(cluster.client(), &mark);
    scene.merge(&configs, CONFIG_MAP, json!({"data": {CONFIG_KEY: text}})).await;
    let (client, clock) = (cluster.client(), cluster.clock());
    let ledger = Arc::new(Stores::new(clock.clone()));
    let setup = Setup { namespace: mark.clone(), cluster: name.to_owned(), only: None };
    let kinds = kinds(&client).await.unwrap();
    let protector = protector(client.clone(), clock.clone(), Settings::default(), kinds, ledger, setup);
    let tasks = vec![
        Task::spawn(run_binder(client, clock)),
        Task::spawn(scene.player.clone().run()),
        Task::spawn(protector.run(std::future::pending())),
    ];
    (scene, tasks)
}

#[tokio::test]
async fn without_a_hub_one_field_moves_the_application() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().display().to_string();
    let (east, _east) = side("east", &place).await;
    let (west, _west) = side("west", &place).await;
    assert_eq!(east.mark, west.mark, "the application has one name everywhere");
    east.claim("one").await;
    east.claim("two").await;
    east.group("web", "primary", |_| {}).await;
    east.says("web", "ClusterDataProtected", "True", "Uploaded").await;
    west.group("web", "secondary", |_| {}).await;
    west.state("web", "Secondary").await;
    // East burns down. On west, one field is edited.
    drop(_east);
    west.merge(&west.groups, "web", json!({"spec": {"replicationState": "primary"}})).await;
    let group = west.state("web", "Primary").await;
    assert_eq!(group.status.unwrap().primary_epoch, Some(2));
    for name in ["one", "two"] {
        let claim = west.bound(name).await;
        assert_eq!(note(&claim, annotations::RESTORE).as_deref(), Some("True"));
        let volume = west.volume(name).await;
        assert_eq!(volume.spec.unwrap().csi.unwrap().volume_handle, format!("handle-{name}"));
    }
    west.says("web", "ClusterDataProtected", "True", "Uploaded").await;
    // East returns as it was, and is told that it was passed over.
    let (client, clock) = (east.cluster.client(), east.cluster.clock());
    let setup = Setup { namespace: east.mark.clone(), cluster: "east".into(), only: None };
    let ledger = Arc::new(Stores::new(clock.clone()));
    let kinds = kinds(&client).await.unwrap();
    let again = protector(client, clock, Settings::default(), kinds, ledger, setup);
    let _again = Task::spawn(again.run(std::future::pending()));
    east.blocked("web", "Superseded").await;
    let secondary = json!({"spec": {"replicationState": "secondary", "action": "Failover"}});
    east.merge(&east.groups, "web", secondary).await;
    let status = east
        .group_is("web", |group| group.status.as_ref().unwrap().primary_epoch.is_none())
        .await
        .status
        .unwrap();
    assert_eq!(status.epoch, Some(2));
}
