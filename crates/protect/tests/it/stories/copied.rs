//! Claims that a mover copies.

use crate::scene::{Scene, condition, has_finalizer, note};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_api::snapshot::VolumeSnapshot;
use lifeboat_api::volsync::{ReplicationDestination, ReplicationSource};
use lifeboat_api::{annotations, finalizers, labels};
use lifeboat_testbed::on_both;
use serde_json::{Value, json};

fn by_mover(group: &mut Value) {
    group["metadata"]["annotations"] =
        json!({ "drplacementcontrol.ramendr.openshift.io/use-volsync-for-pvc-protection": "true" });
}

fn receives(group: &mut Value, mark: &str, claims: &[&str]) {
    let entries = claims.iter().map(|claim| {
        json!({ "protectedPVC": { "name": claim, "namespace": mark, "protectedByVolSync": true, "storageClassName": mark,
            "labels": { "app": "web" }, "accessModes": ["ReadWriteOnce"],
            "annotations": { "apps.open-cluster-management.io/hosting": "x" },
            "resources": { "requests": { "storage": "1Gi" } } } })
    });
    group["spec"]["volSync"] = json!({ "rdSpec": entries.collect::<Vec<_>>() });
}

on_both!(
    async fn a_primary_sends_on_schedule_and_says_since_when(cluster: &Cluster) {
        let scene = Scene::new(cluster, "send").await;
        scene.claim("one").await;
        scene.group("web", "primary", by_mover).await;
        scene.blocked("web", "KeyMissing").await;
        assert!(scene.sources.get_opt("one").await.unwrap().is_none());
        scene.key("web").await;
        let group = scene.says("web", "DataProtected", "True", "DataProtected").await;
        let status = group.status.clone().unwrap();
        let entry = &status.protected_pvcs[0];
        assert!(entry.protected_by_vol_sync);
        // The copy that ended a minute to midnight took a minute: it was cut two minutes to midnight (D29).
        assert_eq!(status.last_group_sync_time.unwrap().0.to_string(), "2029-12-31T23:58:00Z");
        let source = scene.sources.get("one").await.unwrap();
        let tls = source.spec.rsync_tls.clone().unwrap();
        assert_eq!(tls.key_secret.as_deref(), Some("web-vs-secret"));
        assert_eq!(
            tls.address.unwrap(),
            format!("volsync-rsync-tls-dst-one.{}.svc.clusterset.local", scene.mark)
        );
        assert_eq!(source.spec.trigger.unwrap().schedule.as_deref(), Some("0 */1 * * *"));
        let claim = scene.claims.get("one").await.unwrap();
        assert!(has_finalizer(&claim, finalizers::PVC_VOLSYNC) && !has_finalizer(&claim, finalizers::PVC_VR));
        assert!(claim.metadata.owner_references.is_none());
        assert_eq!(
            note(&scene.volume("one").await, annotations::VOLSYNC_RETAINED).as_deref(),
            Some("retained")
        );
        // Only the group is recorded: what is copied is restored from copies.
        scene.says("web", "ClusterDataProtected", "True", "DataProtected").await;
        let record = scene.stores.record("west", &scene.mark, "web").unwrap();
        assert_eq!((record.claims.len(), record.volumes.len()), (0, 0));
        scene.end("web").await;
        scene.gone(&scene.groups, "web").await;
        scene.gone(&scene.sources, "one").await;
        let claim = scene.claims.get("one").await.unwrap();
        assert!(!has_finalizer(&claim, finalizers::PVC_VOLSYNC));
        assert_eq!(
            scene.volume("one").await.spec.unwrap().persistent_volume_reclaim_policy.as_deref(),
            Some("Delete")
        );
    }
);

on_both!(
    async fn what_an_older_controller_left_on_a_claim_is_taken_off(cluster: &Cluster) {
        let scene = Scene::new(cluster, "older").await;
        scene.claim("one").await;
        scene.key("web").await;
        let group =
            scene.group("web", "primary", |group| group["spec"]["s3Profiles"] = json!(["NoS3"])).await;
        scene.state("web", "Primary").await;
        let old = json!({ "metadata": {
            "ownerReferences": [{ "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "VolumeReplicationGroup", "name": "web",
                "uid": group.metadata.uid }],
            "annotations": { annotations::OCM_DO_NOT_DELETE: "true" },
        } });
        scene.merge(&scene.claims, "one", old).await;
        let is = |claim: Option<&PersistentVolumeClaim>| {
            claim.is_some_and(|claim| {
                claim.metadata.owner_references.as_ref().is_none_or(Vec::is_empty)
                    && note(claim, annotations::OCM_DO_NOT_DELETE).is_none()
            })
        };
        cluster.until(&scene.claims, "one", is).await;
    }
);

async fn relocated(scene: &Scene) {
    scene.claim("one").await;
    scene.key("web").await;
    scene.group("web", "primary", by_mover).await;
    scene.says("web", "DataProtected", "True", "DataProtected").await;
    scene.pod("app", &["one"]).await;
    scene
        .merge(&scene.groups, "web", json!({"spec": {"prepareForFinalSync": true, "action": "Relocate"}}))
        .await;
    let prepared =
        |group: &VolumeReplicationGroup| group.status.as_ref().unwrap().prepare_for_final_sync_complete;
    scene.group_is("web", prepared).await;
    let source = scene.sources.get("one").await.unwrap();
    assert_eq!(
        source.spec.trigger.unwrap().manual.as_deref(),
        Some("PREPARE-FOR-FINAL-SYNC-STOP-SCHEDULING")
    );
    scene
        .merge(&scene.groups, "web", json!({"spec": {"prepareForFinalSync": false, "runFinalSync": true}}))
        .await;
    // D4, H7: nothing is cut while the application still writes.
    let group = scene.blocked("web", "InUse").await;
    assert!(!group.status.as_ref().unwrap().final_sync_complete);
    assert!(prepared(&group), "a Ramen hub that finds this gone prepares anew, for ever");
    // The claim is deleted while it is in use, and held.
    scene.delete(&scene.claims, "one").await;
    scene.unpod("app").await;
    let complete = |group: &VolumeReplicationGroup| group.status.as_ref().unwrap().final_sync_complete;
    let group = scene.group_is("web", complete).await;
    assert!(prepared(&group));
    let source = scene.sources.get("one").await.unwrap();
    let asked = source.spec.trigger.unwrap().manual.unwrap();
    let token = format!("vrg-final-sync-1-{}", group.metadata.generation.unwrap());
    assert_eq!(asked, token);
    let claim = scene.claims.get("one").await.unwrap();
    assert!(claim.metadata.deletion_timestamp.is_some(), "held until the group is secondary");
    // D33: no copy of the claim is made under another name.
    assert_eq!(scene.claims.list(&Default::default()).await.unwrap().items.len(), 1);
    scene
        .merge(
            &scene.groups,
            "web",
            json!({"spec": {"replicationState": "secondary", "runFinalSync": false}}),
        )
        .await;
    scene.gone(&scene.claims, "one").await;
    scene.gone(&scene.sources, "one").await;
    let group = scene.state("web", "Secondary").await;
    assert!(!group.status.unwrap().final_sync_complete);
    let volume = scene.volume("one").await;
    assert_eq!(
        volume.spec.unwrap().persistent_volume_reclaim_policy.as_deref(),
        Some("Retain"),
        "the data stays"
    );
}

on_both!(
    async fn d3_a_last_copy_counts_when_the_receiver_echoes_its_word(cluster: &Cluster) {
        let scene = Scene::new(cluster, "ours").await;
        relocated(&scene).await;
    }
);

on_both!(
    async fn d3_a_peers_mover_is_asked_twice_for_the_last_copy(cluster: &Cluster) {
        let scene = Scene::new(cluster, "peers").await;
        scene.player.behave(|behaviour| behaviour.foreign = true);
        scene.claim("one").await;
        scene.key("web").await;
        scene.group("web", "primary", by_mover).await;
        scene.says("web", "DataProtected", "True", "DataProtected").await;
        // A stock VolSync cannot copy a claim that is being deleted: it is said before the application is stopped.
        let prepare = json!({"spec": {"prepareForFinalSync": true, "action": "Relocate"}});
        scene.merge(&scene.groups, "web", prepare).await;
        let group = scene.blocked("web", "Unsupported").await;
        assert!(!group.status.unwrap().prepare_for_final_sync_complete);
        // One that stays it can copy. It may give the word to a copy that had begun before, so it is asked twice (D3).
        let run = json!({"spec": {"prepareForFinalSync": false, "runFinalSync": true}});
        scene.merge(&scene.groups, "web", run).await;
        let complete = |group: &VolumeReplicationGroup| group.status.as_ref().unwrap().final_sync_complete;
        let group = scene.group_is("web", complete).await;
        let asked = scene.sources.get("one").await.unwrap().spec.trigger.unwrap().manual.unwrap();
        assert_eq!(asked, format!("vrg-final-sync-1-{}-again", group.metadata.generation.unwrap()));
    }
);

on_both!(
    async fn d2_an_empty_list_removes_no_receiver_and_failover_takes_its_image(cluster: &Cluster) {
        let scene = Scene::new(cluster, "receive").await;
        scene.key("web").await;
        let mark = scene.mark.clone();
        scene
            .group("web", "secondary", |group| {
                by_mover(group);
                receives(group, &mark, &["one", "two"]);
            })
            .await;
        scene.state("web", "Secondary").await;
        let listens = |receiver: Option<&ReplicationDestination>| {
            receiver.is_some_and(|receiver| {
                receiver.status.as_ref().is_some_and(|status| status.latest_image.is_some())
            })
        };
        for name in ["one", "two"] {
            let receiver = cluster.until(&scene.destinations, name, listens).await.unwrap();
            assert_eq!(receiver.metadata.labels.unwrap()[labels::VRG_OWNER], "web");
        }
        let empty = json!({"spec": {"volSync": {"rdSpec": []}}});
        scene.merge(&scene.groups, "web", empty).await;
        scene.state("web", "Secondary").await;
        assert!(scene.destinations.get_opt("one").await.unwrap().is_some());
        // Promoted with the empty list, it says that something was received for nobody.
        scene
            .merge(
                &scene.groups,
                "web",
                json!({"spec": {"replicationState": "primary", "action": "Failover",
            "s3Profiles": ["NoS3"]}}),
            )
            .await;
        scene.blocked("web", "CannotRestore").await;
        assert!(scene.destinations.get_opt("one").await.unwrap().is_some());
        let mut wish = json!({ "spec": {} });
        receives(&mut wish, &mark, &["one", "two"]);
        scene.merge(&scene.groups, "web", wish).await;
        let is = |claim: Option<&PersistentVolumeClaim>| claim.is_some();
        for name in ["one", "two"] {
            let claim = cluster.until(&scene.claims, name, is).await.unwrap();
            let spec = claim.spec.clone().unwrap();
            let image = format!("{name}-20300101000000");
            assert_eq!(spec.data_source.unwrap().name, image);
            assert_eq!(
                spec.resources.unwrap().requests.unwrap()["storage"].0,
                "2Gi",
                "as large as the image"
            );
            assert!(
                claim
                    .metadata
                    .annotations
                    .as_ref()
                    .unwrap()
                    .contains_key("apps.open-cluster-management.io/hosting")
            );
            // D5: the image of every claim is kept.
            let image: VolumeSnapshot = scene.images.get(&image).await.unwrap();
            assert_eq!(image.metadata.labels.unwrap()[labels::VOLSYNC_DO_NOT_DELETE], "true");
        }
        let group = scene.says("web", "ClusterDataReady", "True", "Restored").await;
        assert!(condition(&group, "DataReady").is_some());
    }
);

on_both!(
    async fn d32_a_claim_that_was_received_into_is_rolled_back_and_not_lost(cluster: &Cluster) {
        let scene = Scene::new(cluster, "direct").await;
        scene.configure("volSync:\n  destinationCopyMethod: Direct\n").await;
        scene.key("web").await;
        let mark = scene.mark.clone();
        scene.volumes.create(&Default::default(), &scene.volume_json("one")).await.unwrap();
        scene
            .group("web", "secondary", |group| {
                by_mover(group);
                receives(group, &mark, &["one"]);
            })
            .await;
        let claim = scene.bound("one").await;
        // H5: nobody owns it, so that it outlives its receiver.
        assert!(claim.metadata.owner_references.is_none());
        let kept = |claim: Option<&PersistentVolumeClaim>| {
            claim.is_some_and(|claim| has_finalizer(claim, finalizers::PVC_VOLSYNC))
        };
        cluster.until(&scene.claims, "one", kept).await;
        let listens = |receiver: Option<&ReplicationDestination>| {
            receiver.is_some_and(|receiver| {
                receiver.status.as_ref().is_some_and(|status| status.latest_image.is_some())
            })
        };
        let receiver = cluster.until(&scene.destinations, "one", listens).await.unwrap();
        assert_eq!(receiver.spec.rsync_tls.unwrap().volume.destination_pvc.as_deref(), Some("one"));
        scene
            .merge(&scene.groups, "web", json!({"spec": {"replicationState": "primary", "action": "Failover", "s3Profiles": ["NoS3"]}}))
            .await;
        scene.says("web", "ClusterDataReady", "True", "Restored").await;
        // The claim is the same one, and a sender has taken the receiver's place.
        let sends = |source: Option<&ReplicationSource>| source.is_some();
        cluster.until(&scene.sources, "one", sends).await;
        scene.gone(&scene.destinations, "one").await;
        assert_eq!(scene.claims.get("one").await.unwrap().metadata.uid, claim.metadata.uid);
        // D32: deleting the group gives the volume its policy back and keeps the claim.
        scene.end("web").await;
        scene.gone(&scene.groups, "web").await;
        let volume = scene.volume("one").await;
        assert_eq!(volume.spec.unwrap().persistent_volume_reclaim_policy.as_deref(), Some("Delete"));
        assert_eq!(scene.bound("one").await.metadata.uid, claim.metadata.uid);
    }
);

on_both!(
    async fn an_export_that_is_lost_is_made_again(cluster: &Cluster) {
        let scene = Scene::new(cluster, "export").await;
        scene.key("web").await;
        let mark = scene.mark.clone();
        let long = "a-claim-whose-name-is-much-longer-than-a-service-may-be";
        scene
            .group("web", "secondary", |group| {
                by_mover(group);
                receives(group, &mark, &[long]);
            })
            .await;
        let exports: kube::Api<lifeboat_api::multicluster::ServiceExport> =
            kube::Api::namespaced(cluster.client(), &mark);
        let name = lifeboat_api::volsync::service_name(long);
        assert!(name.len() <= 63 && !name.contains(long));
        let is = |export: Option<&lifeboat_api::multicluster::ServiceExport>| export.is_some();
        let first = cluster.until(&exports, &name, is).await.unwrap();
        scene.delete(&exports, &name).await;
        let again = |export: Option<&lifeboat_api::multicluster::ServiceExport>| {
            export.is_some_and(|export| export.metadata.uid != first.metadata.uid)
        };
        cluster.until(&exports, &name, again).await;
    }
);
