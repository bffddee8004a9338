//! A whole group: protected on east, failed over to west, and moved home, with the real protector on both sides.

use crate::site::*;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_api::volsync::ReplicationDestination;
use lifeboat_engine::Settings;
use lifeboat_protect::run::{kinds, protector};
use lifeboat_protect::settings::{CONFIG_KEY, CONFIG_MAP};
use lifeboat_protect::stores::Stores;
use lifeboat_protect::view::Setup;
use lifeboat_replicate::Clusters;
use lifeboat_testbed::Task;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::Arc;

async fn protect(site: &Site, name: &str, store: &Path) -> Task {
    let client = site.cluster.client();
    let text = format!(
        "s3StoreProfiles:\n- s3ProfileName: shared\n  s3Bucket: bucket\n  s3CompatibleEndpoint: file://{}\n  s3Region: r\n  s3SecretRef:\n    name: s3\n",
        store.display()
    );
    let configs: Api<ConfigMap> = Api::namespaced(client.clone(), SPACE);
    create(
        configs,
        json!({"metadata": {"name": CONFIG_MAP, "namespace": SPACE}, "data": {CONFIG_KEY: text}}),
    )
    .await;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), SPACE);
    let keys = json!({"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "word"});
    create(secrets, json!({"metadata": {"name": "s3", "namespace": SPACE}, "stringData": keys})).await;
    let setup = Setup { namespace: SPACE.to_owned(), cluster: name.to_owned(), only: Some(SPACE.to_owned()) };
    let (clock, known) = (site.cluster.clock(), kinds(&client).await.unwrap());
    let ledger = Arc::new(Stores::new(clock.clone()));
    let protector = protector(client, clock, Settings::default(), known, ledger, setup);
    Task::spawn(async move { protector.run(std::future::pending()).await })
}

fn group_json(role: &str, epoch: u64) -> Value {
    json!({
        "metadata": {"name": "web", "namespace": SPACE, "annotations": {
            "ramendr.openshift.io/epoch": epoch.to_string(),
            "drplacementcontrol.ramendr.openshift.io/use-volsync-for-pvc-protection": "true"}},
        "spec": {"pvcSelector": {"matchLabels": {"app": "web"}}, "replicationState": role, "s3Profiles": ["shared"],
                 "async": {"schedulingInterval": "5m"}, "volSync": receives(role)},
    })
}

/// What a secondary is told to receive.
fn receives(role: &str) -> Value {
    match role {
        "secondary" => {
            json!({"rdSpec": [{"protectedPVC": {"name": "data", "namespace": SPACE, "protectedByVolSync": true,
            "storageClassName": CLASS, "labels": {"app": "web"}, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "256Mi"}}}}]})
        }
        _ => json!({}),
    }
}

fn groups(site: &Site) -> Api<VolumeReplicationGroup> {
    Api::namespaced(site.cluster.client(), SPACE)
}

async fn become_(site: &Site, role: &str, epoch: u64, more: Value) {
    let note = json!({"annotations": {"ramendr.openshift.io/epoch": epoch.to_string()}});
    let mut patch = json!({"metadata": note, "spec": {"replicationState": role}});
    let (spec, more) = (patch["spec"].as_object_mut().unwrap(), more.as_object().unwrap().clone());
    spec.extend(more);
    groups(site).patch("web", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

async fn group_is(site: &Site, wanted: impl Fn(&VolumeReplicationGroup) -> bool) -> VolumeReplicationGroup {
    let is = |group: Option<&VolumeReplicationGroup>| group.is_some_and(&wanted);
    site.cluster.until(&groups(site), "web", is).await.unwrap()
}

fn status(group: &VolumeReplicationGroup) -> lifeboat_api::ramen::VolumeReplicationGroupStatus {
    group.status.clone().unwrap_or_default()
}

async fn labelled(site: &Site) -> std::path::PathBuf {
    let mut claim = claim_json("data");
    claim["metadata"]["labels"] = json!({"app": "web"});
    create::<PersistentVolumeClaim>(site.claims.clone(), claim).await;
    site.files("data").await
}

/// Waits until a receiver has an image that is newer than another.
async fn imaged(site: &Site, other: Option<&str>) -> String {
    let is = |receiver: Option<&ReplicationDestination>| {
        let image = receiver.and_then(|receiver| receiver.status.as_ref()?.latest_image.clone());
        image.is_some_and(|image| other != Some(image.name.as_str()))
    };
    let receiver = site.cluster.until(&site.destinations, "data", is).await.unwrap();
    receiver.status.unwrap().latest_image.unwrap().name
}

#[test]
fn a_group_fails_over_and_comes_home_with_every_byte() {
    crate::tell(false, async {
        let store = tempfile::TempDir::new().unwrap();
        let (mut east, mut west) = (Site::bare().await, Site::bare().await);
        let clusters =
            Arc::new(Clusters { clients: vec![east.cluster.client(), west.cluster.client()], home: None });
        east.start(clusters.clone()).await;
        west.start(clusters).await;
        let _protectors =
            [protect(&east, "east", store.path()).await, protect(&west, "west", store.path()).await];
        let files = labelled(&east).await;
        fs::write(files.join("ledger"), "ten\n").unwrap();
        create(groups(&west), group_json("secondary", 1)).await;
        create(groups(&east), group_json("primary", 1)).await;
        let first = imaged(&west, None).await;
        // The time of the group is that of the cut.
        let group = group_is(&east, |group| status(group).last_group_sync_time.is_some()).await;
        let source = east.sources.get("data").await.unwrap();
        let cut: jiff::Timestamp = external(&source, "cut").parse().unwrap();
        assert_eq!(status(&group).last_group_sync_time.unwrap().0.as_second(), cut.as_second());
        assert_eq!(external(&source, "epoch"), "1");

        // East is lost with what it wrote last; west takes over at epoch 2.
        fs::write(files.join("ledger"), "ten\neleven, lost\n").unwrap();
        east.kill().await;
        become_(&west, "primary", 2, json!({"action": "Failover"})).await;
        let restored = west.files("data").await;
        assert_eq!(fs::read_to_string(restored.join("ledger")).unwrap(), "ten\n");
        assert!(
            west.snapshots.get_opt(&first).await.unwrap().is_some(),
            "the image is kept until all is done"
        );
        fs::write(restored.join("ledger"), "ten\nten and a half\n").unwrap();

        // East comes back as it was: nobody listens to it any more.
        let again =
            Arc::new(Clusters { clients: vec![east.cluster.client(), west.cluster.client()], home: None });
        east.start(again).await;
        east.claims.delete("data", &DeleteParams::default()).await.unwrap();
        become_(&east, "secondary", 2, json!({"action": "Failover", "volSync": receives("secondary")})).await;
        let second = imaged(&east, None).await;
        assert_eq!(fs::read_to_string(restored.join("ledger")).unwrap(), "ten\nten and a half\n");

        // Home again, with a last copy that was cut after the application had stopped.
        become_(&west, "primary", 2, json!({"action": "Relocate", "prepareForFinalSync": true})).await;
        group_is(&west, |group| status(group).prepare_for_final_sync_complete).await;
        fs::write(restored.join("ledger"), "ten\nten and a half\nthe last word\n").unwrap();
        west.claims.delete("data", &DeleteParams::default()).await.unwrap();
        become_(&west, "primary", 2, json!({"prepareForFinalSync": false, "runFinalSync": true})).await;
        group_is(&west, |group| status(group).final_sync_complete).await;
        imaged(&east, Some(&second)).await;
        let last = tree(&restored);
        become_(&west, "secondary", 3, json!({"runFinalSync": false, "volSync": receives("secondary")}))
            .await;
        west.cluster.until(&west.claims, "data", |claim| claim.is_none()).await;
        become_(&east, "primary", 3, json!({"action": "Relocate"})).await;
        let home = east.files("data").await;
        assert_eq!(tree(&home), last);
        assert_eq!(fs::read_to_string(home.join("ledger")).unwrap(), "ten\nten and a half\nthe last word\n");
        // And protected there again.
        imaged(&west, None).await;
    });
}
