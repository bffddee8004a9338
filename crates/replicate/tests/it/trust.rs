//! What a receiver has is a base only if nobody else could have written to it: judged by the bytes on the disks.

use crate::site::*;
use crate::stories::pair;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use lifeboat_api::volsync::ReplicationDestination;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

fn direct() -> Value {
    let mut receiver = receiver_json("data");
    receiver["spec"]["rsyncTLS"]["destinationPVC"] = json!("data");
    receiver
}

/// Two sites, a receiver that writes to the claim `data` on west, and one whole copy there.
async fn landed() -> (Site, Site, PathBuf, PathBuf) {
    let (east, west) = pair().await;
    gone(&west).await;
    let landed = west.claim("data").await;
    create(west.destinations.clone(), direct()).await;
    west.listens("data").await;
    let files = east.claim("data").await;
    fs::write(files.join("big"), noise(1, 300_000)).unwrap();
    fs::write(files.join("small"), "one").unwrap();
    create(east.sources.clone(), sender_json("data", "data", json!({"manual": "first"}))).await;
    let source = east.served("data", "first").await;
    west.has("data", external(&source, "generation")).await;
    assert_eq!(tree(&landed), tree(&files));
    (east, west, files, landed)
}

async fn gone(west: &Site) {
    west.destinations.delete("data", &DeleteParams::default()).await.unwrap();
    west.cluster.until(&west.destinations, "data", |found| found.is_none()).await;
}

/// One block of a file and one file, as an application would.
fn written(folder: &Path) {
    let mut bytes = fs::read(folder.join("big")).unwrap();
    bytes[150_000..150_100].copy_from_slice(&[7; 100]);
    fs::write(folder.join("big"), bytes).unwrap();
    fs::write(folder.join("west-only"), "west").unwrap();
}

/// The next copy, and what the image of it holds.
async fn copied(east: &Site, west: &Site, files: &Path, landed: &Path) {
    fs::write(files.join("small"), "two").unwrap();
    let source = east.copy("data", "second").await;
    west.has("data", external(&source, "generation")).await;
    assert_eq!(tree(landed), tree(files), "the volume");
    let receiver = west.destinations.get("data").await.unwrap();
    let image = receiver.status.unwrap().latest_image.unwrap().name;
    assert_eq!(tree(&west.image(&image).await), tree(files), "the image");
}

#[test]
fn a_claim_that_was_used_between_two_receivers_is_compared() {
    crate::tell(false, async {
        let (east, west, files, landed) = landed().await;
        gone(&west).await;
        written(&landed);
        create(west.destinations.clone(), direct()).await;
        west.listens("data").await;
        copied(&east, &west, &files, &landed).await;
    });
}

#[test]
fn a_receiver_that_is_made_anew_while_the_mover_is_down_compares() {
    crate::tell(false, async {
        let (east, mut west, files, landed) = landed().await;
        west.kill().await;
        let free = json!({"metadata": {"finalizers": null}});
        west.merge(&west.destinations, "data", free).await;
        gone(&west).await;
        written(&landed);
        create(west.destinations.clone(), direct()).await;
        let clients = vec![east.cluster.client(), west.cluster.client()];
        west.start(std::sync::Arc::new(lifeboat_replicate::Clusters { clients, home: None })).await;
        west.listens("data").await;
        copied(&east, &west, &files, &landed).await;
    });
}

#[test]
fn a_claim_that_was_used_while_its_receiver_was_paused_is_compared() {
    crate::tell(false, async {
        let (east, west, files, landed) = landed().await;
        west.merge(&west.destinations, "data", json!({"spec": {"paused": true}})).await;
        let hushed = |receiver: Option<&ReplicationDestination>| {
            let tls = receiver.and_then(|receiver| receiver.status.as_ref()?.rsync_tls.clone());
            tls.is_some_and(|tls| tls.address.is_none())
        };
        west.cluster.until(&west.destinations, "data", hushed).await;
        written(&landed);
        west.merge(&west.destinations, "data", json!({"spec": {"paused": false}})).await;
        copied(&east, &west, &files, &landed).await;
    });
}

/// Runs a pod on a claim of west and says when it began and when it is over.
async fn a_pod_uses(west: &Site, claim: &str, during: impl FnOnce()) {
    let pods: Api<Pod> = Api::namespaced(west.cluster.client(), SPACE);
    let pod = json!({"metadata": {"name": "debug", "namespace": SPACE}, "spec": {
        "nodeName": NODE, "containers": [{"name": "sh", "image": "busybox"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}});
    create(pods.clone(), pod).await;
    during();
    let over = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
    pods.patch_status("debug", &PatchParams::default(), &over).await.unwrap();
    pods.delete("debug", &DeleteParams::default().grace_period(0)).await.unwrap();
    west.cluster.until(&pods, "debug", |found| found.is_none()).await;
}

#[test]
fn a_pod_that_came_and_went_makes_the_next_copy_compare() {
    crate::tell(false, async {
        let (east, west, files, landed) = landed().await;
        a_pod_uses(&west, "data", || written(&landed)).await;
        copied(&east, &west, &files, &landed).await;
    });
}

#[test]
fn so_does_a_pod_on_the_claim_that_the_receiver_made() {
    crate::tell(false, async {
        let (east, west) = pair().await;
        let files = east.claim("data").await;
        fs::write(files.join("big"), noise(1, 300_000)).unwrap();
        fs::write(files.join("small"), "one").unwrap();
        create(east.sources.clone(), sender_json("data", "data", json!({"manual": "first"}))).await;
        let source = east.served("data", "first").await;
        west.has("data", external(&source, "generation")).await;
        let landed = west.files("volsync-data-dst").await;
        a_pod_uses(&west, "volsync-data-dst", || written(&landed)).await;
        copied(&east, &west, &files, &landed).await;
    });
}
