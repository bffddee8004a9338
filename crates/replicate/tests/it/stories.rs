//! What users see: copies from one site to another, and what becomes of them.

use crate::site::*;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::DeleteParams;
use lifeboat_replicate::Clusters;
use serde_json::json;
use std::fs;
use std::sync::Arc;

/// East with a claim `data` and its sender, west with the receiver; both movers at work.
pub async fn pair() -> (Site, Site) {
    let (mut east, mut west) = (Site::bare().await, Site::bare().await);
    let clusters =
        Arc::new(Clusters { clients: vec![east.cluster.client(), west.cluster.client()], home: None });
    east.start(clusters.clone()).await;
    west.start(clusters).await;
    receive(&west, "data").await;
    (east, west)
}

/// A receiver that is exported and listens.
async fn receive(site: &Site, name: &str) {
    create(site.destinations.clone(), receiver_json(name)).await;
    create::<lifeboat_api::multicluster::ServiceExport>(
        kube::Api::namespaced(site.cluster.client(), SPACE),
        export_json(name),
    )
    .await;
    site.listens(name).await;
}

#[test]
fn a_claim_is_copied_changed_and_restored_elsewhere() {
    crate::tell(false, async {
        let (east, west) = pair().await;
        let files = east.claim("data").await;
        for number in 0..50_u64 {
            fs::create_dir_all(files.join(format!("d{}", number % 5))).unwrap();
            fs::write(files.join(format!("d{}/f{number}", number % 5)), noise(number + 1, 200_000)).unwrap();
        }
        create(east.sources.clone(), sender_json("data", "data", json!({"manual": "first"}))).await;
        let source = east.served("data", "first").await;
        assert_eq!(external(&source, "executor"), "lifeboat");
        assert_eq!(external(&source, "echo"), "first");
        let first = external(&source, "generation").to_owned();
        let receiver = west.has("data", &first).await;
        let image = receiver.status.as_ref().unwrap().latest_image.clone().unwrap();
        assert_eq!(image.kind, "VolumeSnapshot");
        // One hundredth changes: at most twice as much is on the wire.
        let path = files.join("d1/f1");
        let mut bytes = fs::read(&path).unwrap();
        bytes[50_000..150_000].copy_from_slice(&noise(99, 100_000));
        fs::write(&path, &bytes).unwrap();
        let source = east.copy("data", "second").await;
        let wire: u64 = external(&source, "bytesOnWire").parse().unwrap();
        assert!(wire <= 200_000, "{wire} bytes on the wire");
        let second = external(&source, "generation").to_owned();
        let receiver = west.has("data", &second).await;
        let newest = receiver.status.as_ref().unwrap().latest_image.clone().unwrap();
        assert_ne!(newest.name, image.name);
        // The one before is a point to go back to.
        assert!(west.snapshots.get_opt(&image.name).await.unwrap().is_some());
        // Failover: a claim is made from the image, and holds the same bytes.
        let mut claim = claim_json("data");
        claim["spec"]["dataSource"] =
            json!({"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": newest.name});
        create::<PersistentVolumeClaim>(west.claims.clone(), claim).await;
        let restored = west.files("data").await;
        assert_eq!(tree(&restored), tree(&files));
        // The snapshot that was sent is gone.
        let left = east.lvm.volumes("").await.unwrap();
        assert_eq!(left.len(), 1, "{left:?}");
    });
}

#[test]
fn a_claim_is_brought_back_to_an_image_by_a_copy_within_the_cluster() {
    crate::tell(false, async {
        // As Ramen's cluster operator does it before a failover, with the address of a service.
        let mut site = Site::bare().await;
        let client = site.cluster.client();
        site.start(Arc::new(Clusters { clients: vec![client.clone()], home: Some(client) })).await;
        let (image, claim) = (site.claim("image").await, site.claim("data").await);
        fs::write(image.join("kept"), "as it was").unwrap();
        fs::write(claim.join("half"), "a copy that never ended").unwrap();
        let mut receiver = receiver_json("data-local");
        receiver["spec"]["rsyncTLS"]["copyMethod"] = json!("Direct");
        receiver["spec"]["rsyncTLS"]["destinationPVC"] = json!("data");
        create(site.destinations.clone(), receiver).await;
        let listening = site.listens("data-local").await;
        let address = listening.status.unwrap().rsync_tls.unwrap().address.unwrap();
        assert!(address.parse::<std::net::IpAddr>().is_ok(), "{address}");
        let mut sender = sender_json("data-local", "", json!({"manual": "image"}));
        sender["spec"]["sourcePVC"] = json!("image");
        sender["spec"]["rsyncTLS"]["address"] = json!(address);
        create(site.sources.clone(), sender).await;
        site.served("data-local", "image").await;
        assert_eq!(tree(&claim), tree(&image));
    });
}

#[test]
fn claims_of_every_legal_name_are_copied_and_restored() {
    crate::tell(false, async {
        // The longest whose service keeps its name is 41; the longest of all is 253, and parts of it may be short.
        let dotted = format!("{}.{}", "c".repeat(212), "d".repeat(40));
        let (east, west) = pair().await;
        for name in ["a".repeat(42), "b".repeat(64), "e".repeat(242), dotted] {
            receive(&west, &name).await;
            let files = east.claim(&name).await;
            fs::write(files.join("f"), noise(1, 10_000)).unwrap();
            create(east.sources.clone(), sender_json(&name, &name, json!({"manual": "first"}))).await;
            let source = east.served(&name, "first").await;
            let receiver = west.has(&name, external(&source, "generation")).await;
            let image = receiver.status.unwrap().latest_image.unwrap();
            // A sender that was given the receiver's address, as where there are no names of services.
            let direct = west.address.unwrap();
            east.merge(&east.sources, &name, json!({"spec": {"rsyncTLS": {"address": direct.to_string()}}}))
                .await;
            let source = east.copy(&name, "second").await;
            west.has(&name, external(&source, "generation")).await;
            // A sender of another name has nothing but the name of the service.
            east.sources.delete(&name, &DeleteParams::default()).await.unwrap();
            let mut sender = sender_json(&format!("other-{}", name.len()), &name, json!({"manual": "third"}));
            sender["spec"]["sourcePVC"] = json!(name);
            create(east.sources.clone(), sender).await;
            let source = east.served(&format!("other-{}", name.len()), "third").await;
            west.has(&name, external(&source, "generation")).await;
            let mut claim = claim_json(&name);
            claim["spec"]["dataSource"] =
                json!({"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": image.name});
            create::<PersistentVolumeClaim>(west.claims.clone(), claim).await;
            assert_eq!(tree(&west.files(&name).await), tree(&files));
        }
    });
}

#[test]
fn a_key_that_is_changed_on_both_sides_is_used() {
    crate::tell(false, async {
        let (east, west) = pair().await;
        let files = east.claim("data").await;
        fs::write(files.join("a"), noise(1, 1_000)).unwrap();
        create(east.sources.clone(), sender_json("data", "data", json!({"manual": "first"}))).await;
        east.served("data", "first").await;
        for site in [&east, &west] {
            site.change_key("web-vs-secret", &format!("pair:{}", "ab".repeat(32))).await;
        }
        fs::write(files.join("b"), noise(2, 1_000)).unwrap();
        let source = east.copy("data", "second").await;
        west.has("data", external(&source, "generation")).await;
    });
}
