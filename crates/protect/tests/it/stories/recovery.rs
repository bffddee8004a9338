//! What is brought back, and when nothing is enough.

use crate::scene::{Scene, condition, note};
use k8s_openapi::api::core::v1::PersistentVolume;
use lifeboat_api::annotations;
use lifeboat_protect::ledger::Record;
use lifeboat_testbed::on_both;
use serde_json::json;

fn record(scene: &Scene, epoch: i64, claims: &[&str]) -> Record {
    let bound = |name: &str| {
        let mut claim = scene.claim_json(name);
        claim.spec.as_mut().unwrap().volume_name = Some(format!("{}-{name}", scene.mark));
        claim
    };
    let kept = |name: &str| {
        let mut volume = scene.volume_json(name);
        volume.spec.as_mut().unwrap().persistent_volume_reclaim_policy = Some("Retain".into());
        volume.metadata.annotations = Some(
            [
                (annotations::VR_RETAINED.to_owned(), "retained".to_owned()),
                (annotations::DESTINATION_VOLUME_HANDLE.to_owned(), format!("here-{name}")),
            ]
            .into(),
        );
        volume.spec.as_mut().unwrap().claim_ref.as_mut().unwrap().uid = Some("uid-over-there".into());
        volume
    };
    Record {
        epoch,
        volumes: claims.iter().map(|name| kept(name)).collect(),
        claims: claims.iter().map(|name| bound(name)).collect(),
        group: serde_json::from_value(scene.group_json("web", "primary")).unwrap(),
        ..Record::default()
    }
}

on_both!(
    async fn a_failover_brings_back_the_newest_record_though_a_store_is_dead(cluster: &Cluster) {
        let scene = Scene::new(cluster, "restore").await;
        scene.stores.put("west", &scene.mark, "web", record(&scene, 7, &["one", "two"]));
        scene.stores.down("east", true);
        scene.group("web", "primary", |group| group["spec"]["action"] = json!("Failover")).await;
        let group = scene.says("web", "ClusterDataReady", "True", "Restored").await;
        scene.bound("one").await;
        scene.bound("two").await;
        let volume: PersistentVolume = scene.volume("one").await;
        assert_eq!(volume.spec.as_ref().unwrap().csi.as_ref().unwrap().volume_handle, "here-one");
        assert_eq!(note(&volume, annotations::RESTORE).as_deref(), Some("True"));
        assert_eq!(group.status.unwrap().primary_epoch, Some(8), "one more than the highest seen");
        scene.state("web", "Primary").await;
        // R5: all of it is back. R10: an upload that fails holds up no replication.
        // D12: the healthy store has it all; the dead one is told of and delays nothing.
        let group = scene.blocked("web", "StoreFailed").await;
        assert_eq!(condition(&group, "ClusterDataProtected").unwrap().reason, "UploadError");
        assert_eq!(scene.stores.record("west", &scene.mark, "web").unwrap().epoch, 8);
        // D13: not protected before the second store has it too.
        scene.stores.down("east", false);
        scene.says("web", "ClusterDataProtected", "True", "Uploaded").await;
        assert_eq!(scene.stores.record("east", &scene.mark, "web").unwrap().claims.len(), 2);
    }
);

on_both!(
    async fn d1_nothing_recorded_is_no_success_after_an_action(cluster: &Cluster) {
        let scene = Scene::new(cluster, "empty").await;
        scene.group("web", "primary", |group| group["spec"]["action"] = json!("Failover")).await;
        let group = scene.blocked("web", "NothingRecorded").await;
        assert_eq!(condition(&group, "ClusterDataReady").unwrap().status, "False");
        assert!(
            scene.stores.record("east", &scene.mark, "web").is_none(),
            "nothing is written over the unknown"
        );
        // Whoever can tell says that there never was anything.
        let first = json!({"metadata": {"annotations": {annotations::FIRST_DEPLOYMENT: "true"}}});
        scene.merge(&scene.groups, "web", first).await;
        scene.says("web", "ClusterDataReady", "True", "Restored").await;
    }
);

on_both!(
    async fn d1_a_store_out_of_reach_may_hold_what_an_empty_one_lacks(cluster: &Cluster) {
        let scene = Scene::new(cluster, "unread").await;
        scene.stores.put("west", &scene.mark, "web", record(&scene, 3, &["one"]));
        scene.stores.down("west", true);
        scene.group("web", "primary", |_| {}).await;
        // R9: what cannot be read is not taken for nothing.
        scene.blocked("web", "StoresUnreachable").await;
        assert!(scene.claims.get_opt("one").await.unwrap().is_none());
        scene.stores.down("west", false);
        scene.bound("one").await;
        let group = scene.state("web", "Primary").await;
        assert_eq!(
            group.status.unwrap().primary_epoch,
            Some(4),
            "the epoch that was taken when it could not be known grows"
        );
    }
);

on_both!(
    async fn an_incomplete_record_is_no_record(cluster: &Cluster) {
        let scene = Scene::new(cluster, "broken").await;
        scene.stores.shelf.lock().broken.insert("east".into());
        scene.group("web", "primary", |_| {}).await;
        let group = scene.blocked("web", "CannotRestore").await;
        assert!(condition(&group, "ClusterDataReady").unwrap().message.contains("not complete"));
    }
);

on_both!(
    async fn d14_one_bad_profile_empties_no_list(cluster: &Cluster) {
        let scene = Scene::new(cluster, "profile").await;
        scene.claim("one").await;
        scene.group("web", "primary", |group| group["spec"]["s3Profiles"] = json!(["east", "nowhere"])).await;
        // It cannot be told that the unknown store is empty.
        scene.blocked("web", "StoresUnreachable").await;
        let first = json!({"metadata": {"annotations": {annotations::FIRST_DEPLOYMENT: "true"}}});
        scene.merge(&scene.groups, "web", first).await;
        scene.state("web", "Primary").await;
        let group = scene.says("web", "ClusterDataProtected", "False", "UploadError").await;
        assert!(condition(&group, "ClusterDataProtected").unwrap().message.contains("nowhere"));
        assert!(scene.stores.record("east", &scene.mark, "web").is_some());
    }
);

on_both!(
    async fn d17_deletion_asks_for_no_valid_wish_and_can_leave_a_dead_store(cluster: &Cluster) {
        let scene = Scene::new(cluster, "delete").await;
        scene.claim("one").await;
        scene.group("web", "primary", |_| {}).await;
        scene.says("web", "ClusterDataProtected", "True", "Uploaded").await;
        scene.stores.down("west", true);
        // The wish has become nonsense, the class is gone.
        scene.merge(&scene.groups, "web", json!({"spec": {"async": null}})).await;
        scene.end("web").await;
        let group = scene.blocked("web", "StoreFailed").await;
        let told =
            group.status.unwrap().blockers.iter().any(|blocker| blocker.message.contains("abandon-stores"));
        assert!(told, "how to go on is said");
        let give_up = json!({"metadata": {"annotations": {annotations::ABANDON_STORES: "west"}}});
        scene.merge(&scene.groups, "web", give_up).await;
        scene.gone(&scene.groups, "web").await;
        assert!(scene.stores.record("east", &scene.mark, "web").is_none());
        assert!(scene.stores.record("west", &scene.mark, "web").is_some());
    }
);
