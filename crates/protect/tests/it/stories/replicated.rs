//! Claims whose storage replicates.

use crate::scene::{Scene, condition, has_finalizer, note};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::PostParams;
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_api::replication::VolumeReplication;
use lifeboat_api::{annotations, finalizers, labels};
use lifeboat_testbed::{NotYet, on_both};
use serde_json::json;

fn policy(volume: &k8s_openapi::api::core::v1::PersistentVolume) -> &str {
    volume.spec.as_ref().unwrap().persistent_volume_reclaim_policy.as_deref().unwrap()
}

on_both!(
    async fn a_primary_protects_records_replicates_and_lets_go(cluster: &Cluster) {
        let scene = Scene::new(cluster, "life").await;
        scene.claim("one").await;
        scene.claim("two").await;
        scene.group("web", "primary", |_| {}).await;
        scene.says("web", "ClusterDataProtected", "True", "Uploaded").await;
        let group = scene.state("web", "Primary").await;
        let status = group.status.clone().unwrap();
        assert_eq!((status.epoch, status.primary_epoch), (Some(1), Some(1)));
        assert_eq!(condition(&group, "DataReady").unwrap().reason, "Ready");
        assert_eq!(condition(&group, "DataProtected").unwrap().reason, "Replicating");
        assert_eq!(condition(&group, "ClusterDataReady").unwrap().reason, "Restored");
        assert_eq!(condition(&group, "Available").unwrap().status, "True");
        assert_eq!(status.last_group_sync_bytes, Some(8192));
        assert_eq!(status.last_group_sync_time.unwrap().0.to_string(), "2029-12-31T23:50:00Z");
        for name in ["one", "two"] {
            let claim = scene.claims.get(name).await.unwrap();
            assert!(has_finalizer(&claim, finalizers::PVC_VR));
            assert!(claim.metadata.owner_references.is_none());
            assert_eq!(claim.metadata.labels.as_ref().unwrap()[labels::OWNER_NAME], "web");
            assert_eq!(note(&claim, annotations::VR_PROTECTED).as_deref(), Some("protected"));
            assert_eq!(note(&claim, annotations::VR_ARCHIVED).unwrap().len(), 64);
            let volume = scene.volume(name).await;
            assert_eq!(
                (policy(&volume), note(&volume, annotations::VR_RETAINED).as_deref()),
                ("Retain", Some("retained"))
            );
            let replication = scene.replications.get(name).await.unwrap();
            assert_eq!(replication.spec.volume_replication_class, scene.mark);
            for store in ["east", "west"] {
                let record = scene.stores.record(store, &scene.mark, "web").unwrap();
                assert_eq!((record.claims.len(), record.volumes.len(), record.epoch), (2, 2, 1));
                // R15: the group itself is recorded, as lists of groups show it.
                // The copy follows what is shown, a moment after it (D16).
                let shown = || async {
                    let group = scene.stores.record(store, &scene.mark, "web").unwrap().group;
                    let state = group.status.unwrap().state.unwrap();
                    if state.as_str() == "Primary" { Ok(()) } else { Err(NotYet(state.to_string())) }
                };
                scene.cluster.eventually("a record of now", shown).await;
            }
        }
        scene.end("web").await;
        scene.gone(&scene.groups, "web").await;
        for name in ["one", "two"] {
            let claim = scene.claims.get(name).await.unwrap();
            assert!(!has_finalizer(&claim, finalizers::PVC_VR));
            assert!(
                note(&claim, annotations::VR_PROTECTED).is_none()
                    && note(&claim, annotations::VR_ARCHIVED).is_none()
            );
            assert_eq!(claim.status.unwrap().phase.as_deref(), Some("Bound"));
            let volume = scene.volume(name).await;
            assert_eq!((policy(&volume), note(&volume, annotations::VR_RETAINED)), ("Delete", None));
            assert!(scene.replications.get_opt(name).await.unwrap().is_none());
            assert!(scene.stores.record("east", &scene.mark, "web").is_none());
        }
    }
);

on_both!(
    async fn a_volume_that_its_user_keeps_is_never_given_up(cluster: &Cluster) {
        let scene = Scene::new(cluster, "keep").await;
        scene.claim("one").await;
        let name = format!("{}-one", scene.mark);
        scene
            .merge(&scene.volumes, &name, json!({"spec": {"persistentVolumeReclaimPolicy": "Retain"}}))
            .await;
        scene.group("web", "primary", |_| {}).await;
        scene.state("web", "Primary").await;
        assert_eq!(note(&scene.volume("one").await, annotations::VR_RETAINED), None);
        scene.end("web").await;
        scene.gone(&scene.groups, "web").await;
        assert_eq!(policy(&scene.volume("one").await), "Retain");
    }
);

on_both!(
    async fn a_strangers_replication_is_reported_and_left_alone(cluster: &Cluster) {
        let scene = Scene::new(cluster, "foreign").await;
        let stranger: VolumeReplication = serde_json::from_value(json!({
            "apiVersion": "replication.storage.openshift.io/v1alpha1", "kind": "VolumeReplication",
            "metadata": { "name": "one", "namespace": scene.mark },
            "spec": { "volumeReplicationClass": "theirs", "replicationState": "secondary", "autoResync": false,
                "dataSource": { "kind": "PersistentVolumeClaim", "name": "one" } },
        }))
        .unwrap();
        let made = scene.replications.create(&PostParams::default(), &stranger).await.unwrap();
        scene.claim("one").await;
        scene.claim("two").await;
        scene.group("web", "primary", |_| {}).await;
        let group = scene.blocked("web", "Foreign").await;
        assert_eq!(condition(&group, "DataReady").unwrap().reason, "Error");
        // The other claim is served all the same.
        let is = |found: Option<&VolumeReplication>| found.is_some();
        cluster.until(&scene.replications, "two", is).await;
        let left = scene.replications.get("one").await.unwrap();
        assert_eq!((left.metadata.uid, left.spec), (made.metadata.uid, made.spec));
        // Gone, the group takes its place.
        scene.delete(&scene.replications, "one").await;
        scene.state("web", "Primary").await;
    }
);

on_both!(
    async fn a_secondary_demotes_only_what_is_at_rest_and_deleted(cluster: &Cluster) {
        let scene = Scene::new(cluster, "demote").await;
        scene.claim("one").await;
        scene.group("web", "primary", |_| {}).await;
        scene.state("web", "Primary").await;
        scene.pod("app", &["one"]).await;
        scene
            .merge(
                &scene.groups,
                "web",
                json!({"spec": {"replicationState": "secondary", "action": "Relocate"}}),
            )
            .await;
        let group = scene.blocked("web", "InUse").await;
        assert_eq!(group.status.as_ref().unwrap().primary_epoch, None);
        let replication = scene.replications.get("one").await.unwrap();
        assert_eq!(replication.spec.replication_state.as_str(), "primary");
        scene.unpod("app").await;
        scene.blocked("web", "NotDeleted").await;
        scene.delete(&scene.claims, "one").await;
        scene.gone(&scene.claims, "one").await;
        scene.gone(&scene.replications, "one").await;
        scene.state("web", "Secondary").await;
        // The replica's volume stays.
        let volume = scene.volume("one").await;
        assert_eq!(policy(&volume), "Retain");
        assert!(scene.stores.record("east", &scene.mark, "web").is_some());
        // And is taken up again when the group becomes primary.
        scene
            .merge(
                &scene.groups,
                "web",
                json!({"spec": {"replicationState": "primary", "action": "Relocate"}}),
            )
            .await;
        let group = scene.state("web", "Primary").await;
        assert_eq!(group.status.unwrap().primary_epoch, Some(2));
        let claim: PersistentVolumeClaim = scene.bound("one").await;
        assert_eq!(note(&claim, annotations::RESTORE).as_deref(), Some("True"));
    }
);

on_both!(
    async fn a_change_of_mind_while_a_claim_is_being_deleted_ends_by_itself(cluster: &Cluster) {
        let scene = Scene::new(cluster, "mind").await;
        scene.claim("one").await;
        scene.group("web", "primary", |_| {}).await;
        scene.says("web", "ClusterDataProtected", "True", "Uploaded").await;
        scene.pod("app", &["one"]).await;
        // Away, which takes the application off; and home again before its pod has ended.
        scene
            .merge(
                &scene.groups,
                "web",
                json!({"spec": {"replicationState": "secondary", "action": "Failover"}}),
            )
            .await;
        scene.delete(&scene.claims, "one").await;
        let before = scene.claims.get("one").await.unwrap();
        scene.blocked("web", "InUse").await;
        scene.merge(&scene.groups, "web", json!({"spec": {"replicationState": "primary"}})).await;
        let restoring = |group: &VolumeReplicationGroup| {
            condition(group, "ClusterDataReady").is_some_and(|said| {
                said.status == "False" && said.observed_generation == group.metadata.generation
            })
        };
        let group = scene.group_is("web", restoring).await;
        assert!(condition(&group, "ClusterDataReady").unwrap().message.contains("pod app"), "{group:?}");
        scene.unpod("app").await;
        let again = |claim: Option<&PersistentVolumeClaim>| {
            claim.is_some_and(|claim| claim.metadata.uid != before.metadata.uid)
        };
        cluster.until(&scene.claims, "one", again).await;
        let claim = scene.bound("one").await;
        assert_eq!(claim.spec.unwrap().volume_name, before.spec.unwrap().volume_name, "on the same volume");
        scene.state("web", "Primary").await;
    }
);
