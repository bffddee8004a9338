//! Volumes for claims, on both clusters.

use crate::central::{GIB, Scene, capacity, filled, sized};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::{Api, ListParams};
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_api::{annotations, finalizers, labels};
use lifeboat_node::provision::words::{UNPUBLISHED, annotation, volume_id};
use lifeboat_testbed::{NotYet, on_both};
use serde_json::json;
use std::collections::BTreeMap;

on_both!(
    async fn a_claim_gets_a_volume_on_the_node_with_most_room_and_takes_it_with_it(cluster: &Cluster) {
        let scene = Scene::with_nodes(cluster, "most", &[("a", 3), ("b", 8), ("c", 5)]).await;
        scene
            .claim("c", |claim| {
                sized(claim, "2G");
                claim.spec.as_mut().unwrap().volume_mode = Some("Filesystem".into());
            })
            .await;
        let (claim, volume, logical) = scene.bound("c").await;
        let uid = claim.metadata.uid.clone().unwrap();
        assert_eq!(logical.metadata.name.as_deref(), Some(&*format!("pvc-{uid}")));
        assert_eq!(logical.spec.node_name, scene.node("b"));
        assert_eq!(logical.spec.device_class.as_deref(), Some(&*scene.mark));
        assert_eq!(logical.spec.size, Quantity("1953128Ki".into()), "2 G rounded up to whole pages");
        let note = |key: &str| annotation(&logical.metadata, key).map(str::to_owned);
        assert_eq!(note(annotations::CLAIM), Some(format!("{}/c", scene.mark)));
        assert_eq!(note(annotations::VOLUME_MODE).as_deref(), Some("Filesystem"));
        assert_eq!(note(annotations::SNAPSHOT_RESTORE_REQUIRED), None);
        let spec = volume.spec.clone().unwrap();
        let csi = spec.csi.clone().unwrap();
        assert_eq!((&csi.driver, Some(&csi.volume_handle)), (&scene.driver, logical.metadata.uid.as_ref()));
        assert_eq!(capacity(&volume), "1953128Ki");
        assert_eq!(spec.persistent_volume_reclaim_policy.as_deref(), Some("Delete"));
        assert_eq!(annotation(&volume.metadata, annotations::PROVISIONED_BY), Some(&*scene.driver));
        let affinity = &spec.node_affinity.unwrap().required.unwrap().node_selector_terms[0];
        let affinity = &affinity.match_expressions.as_ref().unwrap()[0];
        assert_eq!(
            (&*affinity.key, affinity.values.clone().unwrap()),
            (labels::TOPOLOGY_NODE, vec![scene.node("b")])
        );
        // Published, it goes only by its volume.
        let sealed = |logical: Option<&LogicalVolume>| {
            logical.is_some_and(|logical| annotation(&logical.metadata, UNPUBLISHED).is_none())
        };
        cluster.until(&scene.logical, logical.metadata.name.as_deref().unwrap(), sealed).await;
        assert!(scene.event("ProvisioningSucceeded").await.contains(&format!("pvc-{uid}")));
        scene.delete(&scene.claims, "c").await;
        scene.gone(&scene.logical, &format!("pvc-{uid}")).await;
        scene.gone(&scene.volumes, &format!("pvc-{uid}")).await;
    }
);

on_both!(
    async fn the_scheduler_chooses_and_chooses_again_when_it_does_not_fit(cluster: &Cluster) {
        let scene = Scene::with_nodes(cluster, "wait", &[("small", 1), ("large", 8)]).await;
        let delayed = format!("{}-delayed", scene.mark);
        scene.class(&delayed, |class| class.volume_binding_mode = Some("WaitForFirstConsumer".into())).await;
        scene
            .claim("c", |claim| {
                claim.spec.as_mut().unwrap().storage_class_name = Some(delayed.clone());
                sized(claim, "4Gi");
            })
            .await;
        let select = |node: String| json!({"metadata": {"annotations": {annotations::SELECTED_NODE: node}}});
        scene.merge(&scene.claims, "c", select(scene.node("small"))).await;
        let unselected = |claim: Option<&PersistentVolumeClaim>| {
            claim.is_some_and(|claim| annotation(&claim.metadata, annotations::SELECTED_NODE).is_none())
        };
        cluster.until(&scene.claims, "c", unselected).await;
        let note = scene.event("ProvisioningFailed").await;
        assert!(note.contains("4294967296 bytes are needed"), "{note}");
        scene.merge(&scene.claims, "c", select(scene.node("large"))).await;
        let (_, _, logical) = scene.bound("c").await;
        assert_eq!(logical.spec.node_name, scene.node("large"));
    }
);

on_both!(
    async fn a_burst_of_claims_never_gets_more_than_there_is(cluster: &Cluster) {
        let scene = Scene::with_nodes(cluster, "burst", &[("a", 5), ("b", 4)]).await;
        // The nodes make volumes and say nothing of it: what is promised must be known without them.
        scene.player.behave(|behaviour| behaviour.reports_nothing = true);
        for n in 0..12 {
            scene.claim(&format!("c{n}"), |claim| sized(claim, "1Gi")).await;
        }
        let all_said = || async {
            let claims: Vec<PersistentVolumeClaim> = scene.claims.list(&ListParams::default()).await?.items;
            let bound =
                claims.iter().filter(|claim| claim.spec.as_ref().unwrap().volume_name.is_some()).count();
            if bound == 9 { Ok(()) } else { Err(NotYet(format!("{bound} are bound"))) }
        };
        cluster.eventually("nine bound claims", all_said).await;
        scene.event("ProvisioningFailed").await;
        let mut used: BTreeMap<String, u32> = BTreeMap::new();
        let all: Vec<LogicalVolume> = scene.logical.list(&ListParams::default()).await.unwrap().items;
        for volume in all.iter().filter(|volume| volume.spec.node_name.starts_with(&scene.mark)) {
            *used.entry(volume.spec.node_name.clone()).or_default() += 1;
        }
        assert_eq!(used, [(scene.node("a"), 5), (scene.node("b"), 4)].into());
        // When one goes and the nodes report, one of those that wait takes its place.
        scene.player.behave(|behaviour| behaviour.reports_nothing = false);
        scene.delete(&scene.claims, "c0").await;
        let again = || async {
            let claims = scene.claims.list(&ListParams::default()).await?.items;
            let bound =
                claims.iter().filter(|claim| claim.spec.as_ref().unwrap().volume_name.is_some()).count();
            if bound == 9 && claims.len() == 11 { Ok(()) } else { Err(NotYet(format!("{bound} are bound"))) }
        };
        cluster.eventually("another in its place", again).await;
    }
);

on_both!(
    async fn what_a_node_refuses_is_told_and_taken_away(cluster: &Cluster) {
        let scene = Scene::with_nodes(cluster, "refuse", &[("a", 5)]).await;
        scene.player.behave(|behaviour| behaviour.refuses = Some((3, "no such option class".into())));
        let claim = scene.claim("c", |_| {}).await;
        let note = scene.event("ProvisioningFailed").await;
        assert!(note.contains("no such option class (code 3)"), "{note}");
        let name = format!("pvc-{}", claim.metadata.uid.unwrap());
        scene.gone(&scene.logical, &name).await;
        scene.player.behave(|behaviour| behaviour.refuses = None);
        scene.bound("c").await;
    }
);

on_both!(
    async fn a_claim_that_goes_before_its_volume_is_made_leaves_nothing(cluster: &Cluster) {
        let scene = Scene::with_nodes(cluster, "early", &[("a", 5)]).await;
        scene.player.behave(|behaviour| behaviour.dead = true);
        let claim = scene.claim("c", |_| {}).await;
        let name = format!("pvc-{}", claim.metadata.uid.unwrap());
        cluster.until(&scene.logical, &name, |found: Option<&LogicalVolume>| found.is_some()).await;
        scene.delete(&scene.claims, "c").await;
        scene.gone(&scene.logical, &name).await;
        assert!(scene.volumes.get_opt(&name).await.unwrap().is_none());
    }
);

on_both!(
    async fn what_is_to_be_kept_is_kept(cluster: &Cluster) {
        let scene = Scene::with_nodes(cluster, "keep", &[("a", 5)]).await;
        let keeping = format!("{}-keeping", scene.mark);
        scene.class(&keeping, |class| class.reclaim_policy = Some("Retain".into())).await;
        scene
            .claim("c", |claim| claim.spec.as_mut().unwrap().storage_class_name = Some(keeping.clone()))
            .await;
        let (_, volume, logical) = scene.bound("c").await;
        let name = volume.metadata.name.unwrap();
        let free = |volume: Option<&PersistentVolume>| {
            let held = |name: &String| name == finalizers::EXTERNAL_PROVISIONER;
            volume.is_some_and(|volume| !volume.metadata.finalizers.iter().flatten().any(held))
        };
        cluster.until(&scene.volumes, &name, free).await;
        scene.delete(&scene.claims, "c").await;
        scene.gone(&scene.claims, "c").await;
        scene.delete(&scene.volumes, &name).await;
        scene.gone(&scene.volumes, &name).await;
        // Another claim comes and goes; when its storage is gone, everything before it has been looked at.
        scene.claim("d", |_| {}).await;
        let (_, other, _) = scene.bound("d").await;
        scene.delete(&scene.claims, "d").await;
        scene.gone(&scene.volumes, other.metadata.name.as_deref().unwrap()).await;
        let kept = scene.logical.get(&name).await.unwrap();
        assert_eq!((kept.metadata.uid, kept.metadata.deletion_timestamp), (logical.metadata.uid, None));
    }
);

on_both!(
    async fn a_claim_grows(cluster: &Cluster) {
        let scene = Scene::with_nodes(cluster, "grow", &[("a", 5)]).await;
        scene.claim("files", |claim| sized(claim, "1Gi")).await;
        scene
            .claim("block", |claim| {
                sized(claim, "1Gi");
                claim.spec.as_mut().unwrap().volume_mode = Some("Block".into());
            })
            .await;
        scene.bound("files").await;
        scene.bound("block").await;
        let more = |size: &str| json!({"spec": {"resources": {"requests": {"storage": size}}}});
        scene.merge(&scene.claims, "block", more("2Gi")).await;
        let shows = |size: &'static str| {
            move |claim: Option<&PersistentVolumeClaim>| {
                let shown = claim.and_then(|claim| claim.status.as_ref()?.capacity.as_ref()?.get("storage"));
                shown.is_some_and(|shown| shown.0 == size)
            }
        };
        let block = cluster.until(&scene.claims, "block", shows("2Gi")).await.unwrap();
        assert_eq!(block.status.unwrap().conditions.unwrap_or_default().len(), 0);
        let (_, volume, logical) = scene.bound("block").await;
        assert_eq!((capacity(&volume).as_str(), logical.spec.size.0.as_str()), ("2Gi", "2Gi"));
        assert!(annotation(&logical.metadata, annotations::RESIZE_REQUESTED_AT).is_some());
        // A filesystem is grown by the node where it is mounted.
        scene.merge(&scene.claims, "files", more("2Gi")).await;
        let pending = |claim: Option<&PersistentVolumeClaim>| {
            let conditions = claim.and_then(|claim| claim.status.as_ref()?.conditions.as_ref());
            conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "FileSystemResizePending"))
        };
        let files = cluster.until(&scene.claims, "files", pending).await.unwrap();
        assert_eq!(files.status.unwrap().capacity.unwrap()["storage"].0, "1Gi");
        // As the node does when it has.
        let done = kube::api::Patch::Merge(json!({"status": {"capacity": {"storage": "2Gi"}}}));
        scene.claims.patch_status("files", &kube::api::PatchParams::default(), &done).await.unwrap();
        let over = |claim: Option<&PersistentVolumeClaim>| {
            claim.is_some_and(|claim| {
                claim.status.as_ref().unwrap().conditions.as_ref().is_none_or(Vec::is_empty)
            })
        };
        cluster.until(&scene.claims, "files", over).await;
        // What is not there cannot be had.
        scene.merge(&scene.claims, "files", more("4Gi")).await;
        let note = scene.event("VolumeResizeFailed").await;
        assert!(note.contains(&format!("{} bytes more are needed", 2 * GIB)), "{note}");
    }
);

on_both!(
    async fn a_claim_is_cloned_on_its_node(cluster: &Cluster) {
        let scene = Scene::with_nodes(cluster, "clone", &[("a", 4), ("b", 3)]).await;
        scene.claim("first", |claim| sized(claim, "2Gi")).await;
        let (_, _, first) = scene.bound("first").await;
        assert_eq!(first.spec.node_name, scene.node("a"));
        scene
            .claim("second", |claim| {
                sized(claim, "2Gi");
                filled(claim, "PersistentVolumeClaim", "first");
            })
            .await;
        let (_, _, second) = scene.bound("second").await;
        // There is more room elsewhere; a copy stays where its blocks are.
        assert_eq!(second.spec.node_name, scene.node("a"));
        assert_eq!(second.spec.source, first.metadata.name);
        assert_eq!(second.spec.access_type.as_ref().map(ToString::to_string).as_deref(), Some("rw"));
        scene
            .claim("third", |claim| {
                sized(claim, "1Gi");
                filled(claim, "PersistentVolumeClaim", "first");
            })
            .await;
        let note = scene.event("ProvisioningFailed").await;
        assert!(note.contains("is less than the size 2147483648 of the data source"), "{note}");
    }
);

on_both!(
    async fn what_has_the_name_and_is_not_ours_is_left_alone(cluster: &Cluster) {
        let scene = Scene::with_nodes(cluster, "taken", &[]).await;
        let claim = scene.claim("c", |_| {}).await;
        let name = format!("pvc-{}", claim.metadata.uid.unwrap());
        scene.event("ProvisioningFailed").await;
        let stranger: LogicalVolume = serde_json::from_value(json!({
            "apiVersion": "topolvm.io/v1", "kind": "LogicalVolume", "metadata": { "name": name },
            "spec": { "name": name, "nodeName": "nowhere", "size": "3Gi" },
        }))
        .unwrap();
        let all: Api<LogicalVolume> = Api::all(cluster.client());
        let made = all.create(&Default::default(), &stranger).await.unwrap();
        scene.add_node("a", 5 * GIB).await;
        scene.event_saying(&scene.mark, "VolumeNameTaken", "of another size").await;
        let left = all.get(&name).await.unwrap();
        assert_eq!((left.metadata.uid.clone(), volume_id(&left)), (made.metadata.uid, None));
        // When it goes the claim takes its name at once.
        scene.delete(&all, &name).await;
        scene.bound("c").await;
    }
);
