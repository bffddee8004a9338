//! Roles and epochs, and who a claim belongs to.

use crate::scene::{Scene, condition, has_finalizer, note};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_api::replication::VolumeReplication;
use lifeboat_api::{annotations, finalizers};
use lifeboat_testbed::on_both;
use serde_json::json;

on_both!(
    async fn a_lower_epoch_is_refused_and_a_missing_one_lowers_nothing(cluster: &Cluster) {
        let scene = Scene::new(cluster, "epoch").await;
        scene.claim("one").await;
        let epoch =
            |epoch: serde_json::Value| json!({"metadata": {"annotations": {annotations::EPOCH: epoch}}});
        scene
            .group("web", "primary", |group| {
                group["metadata"]["annotations"] = json!({annotations::EPOCH: "5"});
            })
            .await;
        let group = scene.state("web", "Primary").await;
        assert_eq!(group.status.unwrap().primary_epoch, Some(5));
        scene.merge(&scene.groups, "web", epoch(json!(null))).await;
        scene
            .merge(
                &scene.groups,
                "web",
                json!({"spec": {"replicationState": "secondary", "action": "Failover"}}),
            )
            .await;
        let group = scene.state("web", "Secondary").await;
        assert_eq!(
            (group.status.clone().unwrap().epoch, group.status.unwrap().primary_epoch),
            (Some(5), None)
        );
        let back = json!({"metadata": {"annotations": {annotations::EPOCH: "4"}}, "spec": {"replicationState": "primary"}});
        scene.merge(&scene.groups, "web", back).await;
        let group = scene.blocked("web", "EpochRefused").await;
        assert_eq!(condition(&group, "NoClusterDataConflict").unwrap().status, "False");
        let replication = scene.replications.get("one").await.unwrap();
        assert_eq!(replication.spec.replication_state.as_str(), "secondary", "nothing changes role");
        scene.merge(&scene.groups, "web", epoch(json!("6"))).await;
        let group = scene.state("web", "Primary").await;
        assert_eq!(group.status.unwrap().primary_epoch, Some(6));
    }
);

on_both!(
    async fn d6_a_cluster_that_was_passed_over_writes_no_record_any_more(cluster: &Cluster) {
        let scene = Scene::new(cluster, "passed").await;
        scene.claim("one").await;
        scene.group("web", "primary", |_| {}).await;
        scene.says("web", "ClusterDataProtected", "True", "Uploaded").await;
        // Another cluster became primary at epoch 9, and here nobody knows.
        let mut theirs = scene.stores.record("east", &scene.mark, "web").unwrap();
        theirs.epoch = 9;
        theirs.cluster = "theirs".into();
        scene.stores.put("east", &scene.mark, "web", theirs);
        scene.claim("two").await;
        let group = scene.blocked("web", "Superseded").await;
        assert_eq!(group.status.as_ref().unwrap().epoch, Some(9));
        assert_eq!(condition(&group, "ClusterDataProtected").unwrap().status, "False");
        assert_eq!(scene.stores.record("east", &scene.mark, "web").unwrap().cluster, "theirs");
        // Deleted, it leaves the other's records alone.
        scene.end("web").await;
        scene.gone(&scene.groups, "web").await;
        assert!(scene.stores.record("east", &scene.mark, "web").is_some());
    }
);

on_both!(
    async fn a_cluster_that_was_passed_over_and_is_primary_again_records_again(cluster: &Cluster) {
        let scene = Scene::new(cluster, "again").await;
        scene.claim("one").await;
        scene.group("web", "primary", |_| {}).await;
        scene.says("web", "ClusterDataProtected", "True", "Uploaded").await;
        let mut theirs = scene.stores.record("east", &scene.mark, "web").unwrap();
        theirs.epoch = 9;
        theirs.cluster = "theirs".into();
        scene.stores.put("east", &scene.mark, "web", theirs);
        scene.claim("two").await;
        scene.blocked("web", "Superseded").await;
        // The hub makes it primary once more: what was refused before is no reason now.
        let epoch = json!({"metadata": {"annotations": {"ramendr.openshift.io/epoch": "10"}}});
        let params = kube::api::PatchParams::default();
        scene.groups.patch("web", &params, &kube::api::Patch::Merge(epoch)).await.unwrap();
        scene.says("web", "ClusterDataProtected", "True", "Uploaded").await;
        assert_eq!(scene.stores.record("east", &scene.mark, "web").unwrap().epoch, 10);
    }
);

on_both!(
    async fn two_groups_that_want_one_claim_are_both_told_and_neither_touches_it(cluster: &Cluster) {
        let scene = Scene::new(cluster, "rivals").await;
        scene.group("web", "primary", |_| {}).await;
        scene.group("shop", "primary", |group| group["spec"]["pvcSelector"] = json!({})).await;
        scene.state("web", "Primary").await;
        scene.state("shop", "Primary").await;
        scene.claim("one").await;
        // D24: every group that a claim concerns is woken, not the first one found.
        for name in ["web", "shop"] {
            let group = scene.blocked(name, "Conflict").await;
            assert_eq!(condition(&group, "NoClusterDataConflict").unwrap().status, "False");
            assert_eq!(condition(&group, "DataReady").unwrap().reason, "Error");
        }
        let claim = scene.claims.get("one").await.unwrap();
        assert!(!has_finalizer(&claim, finalizers::PVC_VR));
        assert!(scene.replications.get_opt("one").await.unwrap().is_none());
        // One of them goes, and the other serves.
        scene.end("shop").await;
        scene.gone(&scene.groups, "shop").await;
        let made = |found: Option<&VolumeReplication>| found.is_some();
        cluster.until(&scene.replications, "one", made).await;
        scene.state("web", "Primary").await;
    }
);

on_both!(
    async fn claims_come_grow_leave_and_are_deleted_while_protected(cluster: &Cluster) {
        let scene = Scene::new(cluster, "change").await;
        for name in ["one", "two", "three"] {
            scene.claim(name).await;
        }
        scene.group("web", "primary", |_| {}).await;
        scene.says("web", "ClusterDataProtected", "True", "Uploaded").await;
        // Deselected: it is let go, and taken out of the records.
        scene.merge(&scene.claims, "two", json!({"metadata": {"labels": {"app": "other"}}})).await;
        let free = |claim: Option<&PersistentVolumeClaim>| {
            claim.is_some_and(|claim| {
                !has_finalizer(claim, finalizers::PVC_VR) && note(claim, annotations::VR_PROTECTED).is_none()
            })
        };
        cluster.until(&scene.claims, "two", free).await;
        scene.gone(&scene.replications, "two").await;
        // Deleted by its user: it goes, and takes its replication with it.
        scene.delete(&scene.claims, "three").await;
        scene.gone(&scene.claims, "three").await;
        assert!(scene.replications.get_opt("three").await.unwrap().is_none());
        let one = |group: &VolumeReplicationGroup| group.status.as_ref().unwrap().protected_pvcs.len() == 1;
        scene.group_is("web", one).await;
        let recorded = || async {
            let record = scene.stores.record("west", &scene.mark, "web").unwrap();
            let names: Vec<String> =
                record.claims.iter().filter_map(|claim| claim.metadata.name.clone()).collect();
            if names == ["one"] { Ok(()) } else { Err(lifeboat_testbed::NotYet(format!("{names:?}"))) }
        };
        cluster.eventually("a record of one claim", recorded).await;
        // Grown: recorded at the new size once the volume has it.
        let more = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
        scene.merge(&scene.claims, "one", more).await;
        let growing = |group: &VolumeReplicationGroup| {
            condition(group, "ClusterDataProtected").is_some_and(|said| said.message.contains("growing"))
        };
        scene.group_is("web", growing).await;
        let size = |claim: &PersistentVolumeClaim| {
            claim.spec.as_ref().unwrap().resources.as_ref().unwrap().requests.as_ref().unwrap()["storage"]
                .0
                .clone()
        };
        assert_eq!(size(&scene.stores.record("west", &scene.mark, "web").unwrap().claims[0]), "1Gi");
        let name = format!("{}-one", scene.mark);
        scene.merge(&scene.volumes, &name, json!({"spec": {"capacity": {"storage": "2Gi"}}})).await;
        let done = kube::api::Patch::Merge(json!({"status": {"capacity": {"storage": "2Gi"}}}));
        scene.claims.patch_status("one", &Default::default(), &done).await.unwrap();
        scene.says("web", "ClusterDataProtected", "True", "Uploaded").await;
        let record = scene.stores.record("west", &scene.mark, "web").unwrap();
        assert_eq!(size(&record.claims[0]), "2Gi");
        assert_eq!(record.volumes[0].spec.as_ref().unwrap().capacity.as_ref().unwrap()["storage"].0, "2Gi");
    }
);

on_both!(
    async fn what_the_volume_is_called_at_the_peer_gets_into_the_record(cluster: &Cluster) {
        let scene = Scene::new(cluster, "handle").await;
        scene.player.behave(|behaviour| behaviour.handles = true);
        scene.claim("one").await;
        scene.group("web", "primary", |_| {}).await;
        let look = || async {
            let record = scene.stores.record("east", &scene.mark, "web").ok_or("no record")?;
            let volume = record.volumes.first().ok_or("no volume")?;
            match note(volume, annotations::DESTINATION_VOLUME_HANDLE).as_deref() {
                Some("far-one") => Ok(()),
                other => Err(lifeboat_testbed::NotYet(format!("{other:?}"))),
            }
        };
        cluster.eventually("the handle in the record", look).await;
    }
);

on_both!(
    async fn one_bad_claim_delays_no_other(cluster: &Cluster) {
        let scene = Scene::new(cluster, "bad").await;
        scene.player.behave(|behaviour| behaviour.refuses = ["one".to_owned()].into());
        scene.claim("one").await;
        scene.claim("two").await;
        // D18: a claim without a class, and one that is not bound.
        let mut classless = scene.claim_json("none");
        classless.spec.as_mut().unwrap().storage_class_name = Some(String::new());
        scene.claims.create(&Default::default(), &classless).await.unwrap();
        scene.group("web", "primary", |_| {}).await;
        let served = |group: &VolumeReplicationGroup| {
            let status = group.status.clone().unwrap_or_default();
            let ready = |name: &str| {
                let entry = status.protected_pvcs.iter().find(|entry| entry.name.as_deref() == Some(name));
                entry.and_then(|entry| entry.conditions.iter().find(|one| one.type_ == "DataReady").cloned())
            };
            ready("two").is_some_and(|one| one.status == "True")
                && ready("one").is_some_and(|one| one.message.contains("PrerequisiteNotMet"))
                && ready("none").is_some_and(|one| one.reason == "Error")
        };
        let group = scene.group_is("web", served).await;
        assert_eq!(group.status.as_ref().unwrap().state.as_ref().unwrap().as_str(), "Unknown");
        assert_eq!(condition(&group, "Available").unwrap().reason, "Error");
        // R12: what the storage never took does not hold the group.
        scene.end("web").await;
        scene.gone(&scene.groups, "web").await;
    }
);

on_both!(
    async fn what_is_not_served_is_said(cluster: &Cluster) {
        let scene = Scene::new(cluster, "unserved").await;
        // R1: no such role.
        scene.group("odd", "maybe", |_| {}).await;
        let group = scene.says("odd", "DataReady", "False", "Error").await;
        for type_ in ["DataProtected", "ClusterDataReady", "ClusterDataProtected", "HooksReady"] {
            let said = condition(&group, type_).unwrap();
            assert_eq!((said.status.as_str(), said.reason.as_str()), ("Unknown", "Initializing"), "{type_}");
        }
        // R2: no mode at all.
        scene.group("modeless", "primary", |group| group["spec"]["async"] = json!(null)).await;
        let group = scene.says("modeless", "DataReady", "False", "Error").await;
        assert!(condition(&group, "DataReady").unwrap().message.contains("neither of sync or async"));
        // D27: trying a failover makes no images that others may own.
        scene.group("tried", "primary", |group| group["spec"]["dryRun"] = json!(true)).await;
        scene.blocked("tried", "Unsupported").await;
        // D26: addresses are not half rewritten.
        scene
            .group("ips", "primary", |group| {
                group["spec"]["staticIPTranslationSpec"] = json!({"ipTranslations": []});
                group["spec"]["s3Profiles"] = json!(["NoS3"]);
            })
            .await;
        scene.blocked("ips", "Unsupported").await;
        // D22, D31: hooks of a recipe are not run, and a recipe without parameters is none that stops us.
        scene
            .group("recipe", "primary", |group| {
                group["spec"]["kubeObjectProtection"] = json!({"recipeRef": {"name": "r", "namespace": "n"}});
                group["spec"]["s3Profiles"] = json!(["NoS3"]);
            })
            .await;
        let group = scene.says("recipe", "ClusterDataProtected", "False", "KubeObjectsCaptureError").await;
        assert!(condition(&group, "ClusterDataProtected").unwrap().message.contains("recipe r"));
        for name in ["odd", "modeless", "tried", "ips", "recipe"] {
            scene.end(name).await;
            scene.gone(&scene.groups, name).await;
        }
    }
);

on_both!(
    async fn r17_a_claim_that_is_bound_later_is_served_then(cluster: &Cluster) {
        let scene = Scene::new(cluster, "pending").await;
        // R17: the group first, then the claim, then its volume.
        scene.group("web", "primary", |_| {}).await;
        scene.state("web", "Primary").await;
        scene.claims.create(&Default::default(), &scene.claim_json("one")).await.unwrap();
        let group = scene.blocked("web", "NotBound").await;
        assert_eq!(condition(&group, "DataReady").unwrap().reason, "Progressing");
        assert!(scene.replications.get_opt("one").await.unwrap().is_none());
        scene.volumes.create(&Default::default(), &scene.volume_json("one")).await.unwrap();
        let made = |found: Option<&VolumeReplication>| found.is_some();
        cluster.until(&scene.replications, "one", made).await;
        scene.state("web", "Primary").await;
    }
);

on_both!(
    async fn d19_what_a_dead_store_missed_is_taken_out_of_it_later(cluster: &Cluster) {
        let scene = Scene::new(cluster, "missed").await;
        scene.claim("one").await;
        scene.claim("two").await;
        scene.group("web", "primary", |_| {}).await;
        scene.says("web", "ClusterDataProtected", "True", "Uploaded").await;
        scene.stores.down("west", true);
        scene.merge(&scene.claims, "two", json!({"metadata": {"labels": {"app": "other"}}})).await;
        scene.gone(&scene.replications, "two").await;
        let recorded = |store: &'static str, wanted: usize| {
            let stores = scene.stores.clone();
            let mark = scene.mark.clone();
            move || {
                let has = stores.record(store, &mark, "web").map_or(0, |record| record.claims.len());
                async move {
                    if has == wanted {
                        Ok(())
                    } else {
                        Err(lifeboat_testbed::NotYet(format!("{has} claims")))
                    }
                }
            }
        };
        cluster.eventually("the living store", recorded("east", 1)).await;
        assert_eq!(scene.stores.record("west", &scene.mark, "web").unwrap().claims.len(), 2);
        scene.stores.down("west", false);
        cluster.eventually("the store that was down", recorded("west", 1)).await;
        scene.says("web", "ClusterDataProtected", "True", "Uploaded").await;
    }
);
