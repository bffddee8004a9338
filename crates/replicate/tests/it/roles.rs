//! Keys, epochs, pauses and the way back; and what is left to others.

use crate::link::says;
use crate::site::*;
use crate::stories::pair;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use lifeboat_api::annotations::{ROLL_BACK_TO, ROLLED_BACK_TO};
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_api::volsync::ReplicationDestination;
use serde_json::{Value, json};
use std::fs;

async fn group(site: &Site, state: &str, status: Value) {
    let groups: Api<VolumeReplicationGroup> = Api::namespaced(site.cluster.client(), SPACE);
    if groups.get_opt("web").await.unwrap().is_none() {
        create(
            groups.clone(),
            json!({"metadata": {"name": "web", "namespace": SPACE}, "spec": {"pvcSelector": {}, "replicationState": state,
                   "s3Profiles": [], "async": {"schedulingInterval": "5m"}}}),
        )
        .await;
    }
    let patch = Patch::Merge(json!({ "status": status }));
    groups.patch_status("web", &PatchParams::default(), &patch).await.unwrap();
}

fn of_group(mut object: Value) -> Value {
    object["metadata"]["labels"] =
        json!({"volumereplicationgroups-owner": "web", "volumereplicationgroups-owner-namespace": SPACE});
    object
}

#[test]
fn a_wrong_key_learns_nothing_and_is_told() {
    crate::tell(false, async {
        let (east, west) = pair().await;
        east.key("other", "volsyncramen:ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f")
            .await;
        let files = east.claim("data").await;
        fs::write(files.join("f"), "secret").unwrap();
        let mut sender = sender_json("data", "data", json!({"manual": "first"}));
        sender["spec"]["rsyncTLS"]["keySecret"] = json!("other");
        create(east.sources.clone(), sender).await;
        let source = says(&east, "compare the key secrets of both sides").await;
        assert_eq!(
            source
                .status
                .as_ref()
                .unwrap()
                .latest_mover_status
                .as_ref()
                .unwrap()
                .result
                .as_ref()
                .unwrap()
                .as_str(),
            "Failed"
        );
        assert!(!format!("{source:?}").contains("0102030405"), "no key in a status");
        assert!(west.destinations.get("data").await.unwrap().status.unwrap().latest_image.is_none());
        assert!(tree(&west.files("volsync-data-dst").await).is_empty());
        // Put right, it goes on by itself.
        east.merge(&east.sources, "data", json!({"spec": {"rsyncTLS": {"keySecret": "web-vs-secret"}}}))
            .await;
        let source = east.served("data", "first").await;
        west.has("data", external(&source, "generation")).await;
    });
}

#[test]
fn a_lower_epoch_is_refused_by_the_receiver_and_told_on_both_sides() {
    crate::tell(false, async {
        let (east, west) = pair().await;
        west.destinations.delete("data", &DeleteParams::default()).await.unwrap();
        west.cluster.until(&west.destinations, "data", |found| found.is_none()).await;
        west.cluster.until(&west.claims, "volsync-data-dst", |found| found.is_none()).await;
        group(&east, "primary", json!({"epoch": 1, "primaryEpoch": 1})).await;
        group(&west, "secondary", json!({"epoch": 1})).await;
        create(west.destinations.clone(), of_group(receiver_json("data"))).await;
        west.listens("data").await;
        let files = east.claim("data").await;
        fs::write(files.join("f"), "one").unwrap();
        create(east.sources.clone(), of_group(sender_json("data", "data", json!({"manual": "first"})))).await;
        let source = east.served("data", "first").await;
        assert_eq!(external(&source, "epoch"), "1");
        west.has("data", external(&source, "generation")).await;
        // West has seen a later epoch; east, cut off, has not.
        group(&west, "secondary", json!({"epoch": 2})).await;
        fs::write(files.join("f"), "two").unwrap();
        east.merge(&east.sources, "data", json!({"spec": {"trigger": {"manual": "second"}}})).await;
        says(&east, "epoch 1 is over, epoch 2 was seen").await;
        let told = |receiver: Option<&ReplicationDestination>| {
            let status = receiver.and_then(|receiver| receiver.status.as_ref());
            status
                .and_then(|status| status.external.get("refused"))
                .is_some_and(|text| text.contains("epoch 1 is over"))
        };
        west.cluster.until(&west.destinations, "data", told).await;
        assert_eq!(tree(&west.files("volsync-data-dst").await).into_values().next().unwrap(), b"one");
        // Once east knows, it does not even try.
        group(&east, "primary", json!({"epoch": 2, "primaryEpoch": 1})).await;
        says(&east, "another cluster is primary now").await;
        // And the volume remembers, whatever the group says.
        let volumes = west.lvm.volumes("").await.unwrap();
        assert!(volumes.iter().any(|volume| volume.tags.contains("lifeboat.epoch=1")), "{volumes:?}");
    });
}

#[test]
fn a_claim_that_is_written_to_directly_is_brought_back_to_its_image() {
    crate::tell(false, async {
        let (east, west) = pair().await;
        west.destinations.delete("data", &DeleteParams::default()).await.unwrap();
        west.cluster.until(&west.destinations, "data", |found| found.is_none()).await;
        let landed = west.claim("data").await;
        let mut receiver = receiver_json("data");
        receiver["spec"]["rsyncTLS"]["destinationPVC"] = json!("data");
        create(west.destinations.clone(), receiver).await;
        west.listens("data").await;
        let files = east.claim("data").await;
        fs::create_dir(files.join("d")).unwrap();
        fs::write(files.join("d/a"), noise(1, 300_000)).unwrap();
        fs::write(files.join("b"), "b").unwrap();
        create(east.sources.clone(), sender_json("data", "data", json!({"manual": "first"}))).await;
        let source = east.served("data", "first").await;
        let receiver = west.has("data", external(&source, "generation")).await;
        let image = receiver.status.unwrap().latest_image.unwrap().name;
        assert_eq!(tree(&landed), tree(&files));
        // Half a copy came after it, as it were.
        west.merge(&west.destinations, "data", json!({"spec": {"paused": true}})).await;
        let hushed = |receiver: Option<&ReplicationDestination>| {
            let tls = receiver.and_then(|receiver| receiver.status.as_ref()?.rsync_tls.clone());
            tls.is_some_and(|tls| tls.address.is_none())
        };
        west.cluster.until(&west.destinations, "data", hushed).await;
        fs::write(landed.join("d/a"), noise(2, 200_000)).unwrap();
        fs::remove_file(landed.join("b")).unwrap();
        fs::write(landed.join("half"), "half").unwrap();
        let note = json!({"metadata": {"annotations": {ROLL_BACK_TO: image}}});
        west.merge(&west.destinations, "data", note).await;
        let answered = |receiver: Option<&ReplicationDestination>| {
            let notes = receiver.and_then(|receiver| receiver.metadata.annotations.as_ref());
            notes.and_then(|notes| notes.get(ROLLED_BACK_TO)) == Some(&image)
        };
        west.cluster.until(&west.destinations, "data", answered).await;
        assert_eq!(tree(&landed), tree(&files));
        // Taken up again, the sender's next copy fits what is there now.
        let back = json!({"metadata": {"annotations": {ROLL_BACK_TO: null}}, "spec": {"paused": false}});
        west.merge(&west.destinations, "data", back).await;
        fs::write(files.join("c"), "c").unwrap();
        let source = east.copy("data", "second").await;
        west.has("data", external(&source, "generation")).await;
        assert_eq!(tree(&landed), tree(&files));
        // It goes only when nothing can write any more, and the application's claim stays.
        west.destinations.delete("data", &DeleteParams::default()).await.unwrap();
        west.cluster.until(&west.destinations, "data", |found| found.is_none()).await;
        assert_eq!(tree(&landed), tree(&files));
    });
}

#[test]
fn a_last_copy_is_cut_from_a_claim_that_is_being_deleted() {
    crate::tell(false, async {
        let (east, west) = pair().await;
        let files = east.claim("data").await;
        fs::write(files.join("f"), "one").unwrap();
        create(east.sources.clone(), sender_json("data", "data", json!({"schedule": "*/5 * * * *"}))).await;
        let copied = |source: Option<&lifeboat_api::volsync::ReplicationSource>| {
            source.and_then(|source| source.status.as_ref()?.last_sync_time.clone()).is_some()
        };
        let source = east.cluster.until(&east.sources, "data", copied).await.unwrap();
        let status = source.status.as_ref().unwrap();
        assert_eq!(status.last_manual_sync, None);
        let held = json!({"metadata": {"finalizers": ["ramendr.openshift.io/pvc-volsync-protection"]}});
        east.merge(&east.claims, "data", held).await;
        east.claims.delete("data", &DeleteParams::default()).await.unwrap();
        let going = |claim: Option<&PersistentVolumeClaim>| {
            claim.is_some_and(|claim| claim.metadata.deletion_timestamp.is_some())
        };
        east.cluster.until(&east.claims, "data", going).await;
        fs::write(files.join("f"), "two").unwrap();
        let source = east.copy("data", "vrg-final-sync-1-7").await;
        assert_eq!(external(&source, "echo"), "vrg-final-sync-1-7");
        west.has("data", external(&source, "generation")).await;
        assert_eq!(tree(&west.files("volsync-data-dst").await), tree(&files));
    });
}

#[test]
fn what_a_running_volsync_does_is_left_to_it() {
    crate::tell(false, async {
        let (east, west) = pair().await;
        let deployments: Api<Deployment> = Api::namespaced(east.cluster.client(), SPACE);
        let labels = json!({"app.kubernetes.io/name": "volsync"});
        create(
            deployments.clone(),
            json!({"metadata": {"name": "volsync", "namespace": SPACE, "labels": labels}, "spec": {
                "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"containers": [{"name": "manager", "image": "volsync"}]}}}}),
        )
        .await;
        let ready = Patch::Merge(json!({"status": {"readyReplicas": 1, "replicas": 1}}));
        deployments.patch_status("volsync", &PatchParams::default(), &ready).await.unwrap();
        let files = east.claim("data").await;
        fs::write(files.join("f"), "one").unwrap();
        create(east.sources.clone(), sender_json("data", "data", json!({"manual": "first"}))).await;
        let before = east.cluster.clock().now();
        let stopped = Patch::Merge(json!({"status": {"readyReplicas": 0}}));
        deployments.patch_status("volsync", &PatchParams::default(), &stopped).await.unwrap();
        let source = east.served("data", "first").await;
        // Nothing was cut while it ran.
        let cut: jiff::Timestamp = external(&source, "cut").parse().unwrap();
        assert!(cut >= before, "cut at {cut}, before {before}");
        west.has("data", external(&source, "generation")).await;
    });
}

#[test]
fn an_image_that_somebody_keeps_outlives_its_receiver() {
    crate::tell(false, async {
        let (east, west) = pair().await;
        let files = east.claim("data").await;
        fs::write(files.join("f"), "one").unwrap();
        create(east.sources.clone(), sender_json("data", "data", json!({"manual": "first"}))).await;
        let source = east.served("data", "first").await;
        let first =
            west.has("data", external(&source, "generation")).await.status.unwrap().latest_image.unwrap();
        let kept = json!({"metadata": {"labels": {"volsync.backube/do-not-delete": "true"}}});
        west.merge(&west.snapshots, &first.name, kept).await;
        let source = east.copy("data", "second").await;
        let second =
            west.has("data", external(&source, "generation")).await.status.unwrap().latest_image.unwrap();
        west.destinations.delete("data", &DeleteParams::default()).await.unwrap();
        west.cluster.until(&west.snapshots, &second.name, |found| found.is_none()).await;
        assert!(west.snapshots.get_opt(&first.name).await.unwrap().is_some());
        west.cluster.until(&west.claims, "volsync-data-dst", |found| found.is_none()).await;
    });
}
