//! A copy counts once it is published; and a copy of another volume overwrites nothing.

use crate::link::says;
use crate::site::*;
use crate::stories::pair;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use lifeboat_api::annotations;
use lifeboat_api::snapshot::VolumeSnapshotClass;
use lifeboat_api::volsync::{ReplicationDestination, ReplicationSource};
use lifeboat_node::central::DRIVER;
use lifeboat_replicate::Clusters;
use serde_json::json;
use std::fs;
use std::sync::Arc;

fn told<'a>(receiver: Option<&'a ReplicationDestination>, key: &str) -> Option<&'a str> {
    receiver?.status.as_ref()?.external.get(key).map(String::as_str)
}

fn is_uncounted(source: &ReplicationSource) -> bool {
    let status = source.status.clone().unwrap_or_default();
    status.last_sync_time.is_none()
        && status.last_manual_sync.is_none()
        && !status.external.contains_key("echo")
}

#[test]
fn a_copy_whose_image_is_not_ready_does_not_count_whoever_dies_meanwhile() {
    crate::tell(false, async {
        let (mut east, mut west) = pair().await;
        let late = json!({"spec": {"rsyncTLS": {"volumeSnapshotClassName": "late"}}});
        west.merge(&west.destinations, "data", late).await;
        let files = east.claim("data").await;
        fs::write(files.join("f"), noise(1, 50_000)).unwrap();
        create(east.sources.clone(), sender_json("data", "data", json!({"manual": "first"}))).await;
        let unpublished = |receiver: Option<&ReplicationDestination>| told(receiver, "unpublished").is_some();
        let receiver = west.cluster.until(&west.destinations, "data", unpublished).await.unwrap();
        assert!(told(Some(&receiver), "unpublishedCut").is_some());
        assert!(receiver.status.as_ref().unwrap().latest_image.is_none());
        // The sender hears that it has to wait, and does not count the copy.
        let waits = |source: Option<&ReplicationSource>| {
            let conditions = source.and_then(|source| Some(&source.status.as_ref()?.conditions));
            conditions
                .is_some_and(|all| all.iter().any(|one| one.message.contains("has not published it yet")))
        };
        let source = east.cluster.until(&east.sources, "data", waits).await.unwrap();
        assert!(is_uncounted(&source), "{source:?}");
        let clients = vec![east.cluster.client(), west.cluster.client()];
        let clusters = Arc::new(Clusters { clients, home: None });
        for _ in 0..2 {
            east.kill().await;
            west.kill().await;
            west.start(clusters.clone()).await;
            east.start(clusters.clone()).await;
            west.cluster.until(&west.destinations, "data", unpublished).await;
            assert!(is_uncounted(&east.sources.get("data").await.unwrap()));
        }
        create::<VolumeSnapshotClass>(
            Api::all(west.cluster.client()),
            json!({"metadata": {"name": "late"}, "driver": DRIVER, "deletionPolicy": "Delete"}),
        )
        .await;
        let source = east.served("data", "first").await;
        let receiver = west.destinations.get("data").await.unwrap();
        assert_eq!(told(Some(&receiver), "generation"), Some(external(&source, "generation")));
        assert_eq!(told(Some(&receiver), "unpublished"), None);
        let name = receiver.status.unwrap().latest_image.unwrap().name;
        assert_eq!(tree(&west.image(&name).await), tree(&files));
        let notes = west.snapshots.get(&name).await.unwrap().metadata.annotations.unwrap();
        let claim = east.claims.get("data").await.unwrap().metadata.uid.unwrap();
        assert_eq!(notes[annotations::IMAGE_CUT], external(&source, "cut"));
        assert_eq!(notes[annotations::IMAGE_GENERATION], external(&source, "generation"));
        assert_eq!(notes[annotations::IMAGE_EPOCH], external(&source, "epoch"));
        assert_eq!(notes[annotations::LINEAGE], claim);
        assert_eq!(external(&source, "lineage"), claim);
    });
}

#[test]
fn a_pause_publishes_what_is_complete_and_takes_nothing_more() {
    crate::tell(false, async {
        let (east, west) = pair().await;
        let late = json!({"spec": {"rsyncTLS": {"volumeSnapshotClassName": "late"}}});
        west.merge(&west.destinations, "data", late).await;
        let files = east.claim("data").await;
        fs::write(files.join("f"), "one").unwrap();
        create(east.sources.clone(), sender_json("data", "data", json!({"manual": "first"}))).await;
        let unpublished = |receiver: Option<&ReplicationDestination>| told(receiver, "unpublished").is_some();
        west.cluster.until(&west.destinations, "data", unpublished).await;
        west.merge(&west.destinations, "data", json!({"spec": {"paused": true}})).await;
        let hushed = |receiver: Option<&ReplicationDestination>| {
            let tls = receiver.and_then(|receiver| receiver.status.as_ref()?.rsync_tls.clone());
            tls.is_some_and(|tls| tls.address.is_none()) && unpublished(receiver)
        };
        west.cluster.until(&west.destinations, "data", hushed).await;
        create::<VolumeSnapshotClass>(
            Api::all(west.cluster.client()),
            json!({"metadata": {"name": "late"}, "driver": DRIVER, "deletionPolicy": "Delete"}),
        )
        .await;
        let published = |receiver: Option<&ReplicationDestination>| {
            let image = receiver.and_then(|receiver| receiver.status.as_ref()?.latest_image.clone());
            image.is_some() && !unpublished(receiver)
        };
        let receiver = west.cluster.until(&west.destinations, "data", published).await.unwrap();
        let name = receiver.status.unwrap().latest_image.unwrap().name;
        assert_eq!(tree(&west.image(&name).await), tree(&files));
        // Once it is taken up again, the sender hears what became of its copy.
        west.merge(&west.destinations, "data", json!({"spec": {"paused": false}})).await;
        east.served("data", "first").await;
    });
}

#[test]
fn a_claim_that_was_replaced_overwrites_no_copy_until_that_is_accepted() {
    crate::tell(false, async {
        let (east, west) = pair().await;
        let files = east.claim("data").await;
        fs::write(files.join("f"), "everything").unwrap();
        create(east.sources.clone(), sender_json("data", "data", json!({"manual": "first"}))).await;
        let source = east.served("data", "first").await;
        let first = external(&source, "lineage").to_owned();
        let receiver = west.has("data", external(&source, "generation")).await;
        assert_eq!(told(Some(&receiver), "lineage"), Some(first.as_str()));
        let image = receiver.status.unwrap().latest_image.unwrap().name;
        let before = tree(&west.image(&image).await);
        // Somebody deletes the claim, and the application makes it anew and starts empty.
        east.claims.delete("data", &DeleteParams::default()).await.unwrap();
        east.cluster.until(&east.claims, "data", |found| found.is_none()).await;
        let files = east.claim("data").await;
        fs::write(files.join("other"), "nothing yet").unwrap();
        let second = east.claims.get("data").await.unwrap().metadata.uid.unwrap();
        east.merge(&east.sources, "data", json!({"spec": {"trigger": {"manual": "second"}}})).await;
        let source = says(&east, &format!("{}={second}", annotations::ACCEPT_LINEAGE)).await;
        assert_eq!(source.status.as_ref().unwrap().last_manual_sync.as_deref(), Some("first"));
        let refused = |receiver: Option<&ReplicationDestination>| {
            let conditions = receiver.and_then(|one| Some(&one.status.as_ref()?.conditions));
            conditions.is_some_and(|all| {
                all.iter()
                    .any(|one| one.message.contains(annotations::ACCEPT_LINEAGE) && one.reason == "Error")
            })
        };
        west.cluster.until(&west.destinations, "data", refused).await;
        assert_eq!(tree(&west.files("volsync-data-dst").await), before, "the volume");
        assert_eq!(tree(&west.image(&image).await), before, "the image");
        // Accepted, it comes through, and what was there is kept aside.
        let accept = json!({"metadata": {"annotations": {annotations::ACCEPT_LINEAGE: second}}});
        west.merge(&west.destinations, "data", accept).await;
        let source = east.served("data", "second").await;
        let receiver = west.has("data", external(&source, "generation")).await;
        assert_eq!(told(Some(&receiver), "lineage"), Some(second.as_str()));
        assert_eq!(tree(&west.files("volsync-data-dst").await), tree(&files));
        assert_eq!(tree(&west.image(&image).await), before, "the image that was kept aside");
        let kept = west.snapshots.get(&image).await.unwrap();
        assert_eq!(kept.metadata.labels.unwrap()["volsync.backube/do-not-delete"], "true");
    });
}

#[test]
fn the_newest_three_images_are_kept() {
    crate::tell(false, async {
        let (east, west) = pair().await;
        let files = east.claim("data").await;
        let mut names = Vec::new();
        create(east.sources.clone(), sender_json("data", "data", json!({"manual": "none"}))).await;
        for number in 0..5 {
            fs::write(files.join("f"), format!("{number}")).unwrap();
            let source = east.copy("data", &format!("word-{number}")).await;
            let receiver = west.has("data", external(&source, "generation")).await;
            names.push(receiver.status.unwrap().latest_image.unwrap().name);
        }
        west.cluster.until(&west.snapshots, &names[1], |found| found.is_none()).await;
        let left = west.snapshots.list(&ListParams::default()).await.unwrap();
        let left: Vec<String> = left.into_iter().map(|image| image.metadata.name.unwrap()).collect();
        assert_eq!(left.iter().filter(|name| names[2..].contains(name)).count(), 3, "{left:?} of {names:?}");
    });
}
