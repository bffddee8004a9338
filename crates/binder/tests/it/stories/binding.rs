//! Binding, losing, reserving, provisioning.

use super::scene;
use crate::things::{ClaimThings, VolumeThings};
use kube::api::{DeleteParams, Patch, PatchParams};
use lifeboat_binder::lean::{PersistentVolume, PersistentVolumeClaim};
use lifeboat_binder::words::{
    BIND_COMPLETED, BOUND_BY_CONTROLLER, ClaimWords, PROVISIONED_BY, SELECTED_NODE, STORAGE_PROVISIONER,
    VolumeWords, annotation,
};
use lifeboat_testbed::{Cluster, on_both};
use serde_json::json;

on_both!(
    async fn a_pair_is_bound_lost_and_released(cluster: &Cluster) {
        let scene = scene(cluster, "pair").await;
        scene.create_volume(scene.volume("v").sized("2Gi")).await;
        scene.volume_in("v", "Available").await;
        let claim = scene.create_claim(scene.claim("c")).await;
        let bound = scene.claim_in("c", "Bound").await;
        assert_eq!(bound.volume_name(), scene.named("v"));
        assert!(bound.bind_completed() && annotation(&bound.metadata, BOUND_BY_CONTROLLER).is_some());
        assert_eq!(bound.status.unwrap().capacity.unwrap().get("storage").unwrap().0, "2Gi");
        let volume = scene.volume_in("v", "Bound").await;
        assert_eq!(volume.claim_ref().unwrap().uid, claim.metadata.uid);
        // The claim goes, and the volume is released and kept.
        scene.claims.delete("c", &DeleteParams::default()).await.unwrap();
        scene.volume_in("v", "Released").await;
        // A namesake is not its claim; it says so, and takes the volume once somebody frees it.
        scene.create_claim(scene.claim("c")).await;
        let free = Patch::Merge(json!({"spec": {"claimRef": null}}));
        scene.volumes.patch(&scene.named("v"), &PatchParams::default(), &free).await.unwrap();
        scene.claim_in("c", "Bound").await;
        // The volume is not deleted while it is bound. Forced, it goes, and the claim is lost.
        scene.volumes.delete(&scene.named("v"), &DeleteParams::default()).await.unwrap();
        let going = |volume: Option<&PersistentVolume>| {
            volume.is_some_and(|volume| volume.metadata.deletion_timestamp.is_some())
        };
        cluster.until(&scene.volumes, &scene.named("v"), going).await;
        let force = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        scene.volumes.patch(&scene.named("v"), &PatchParams::default(), &force).await.unwrap();
        scene.claim_in("c", "Lost").await;
        assert_eq!(
            scene.event("ClaimLost").await,
            "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
        );
    }
);

on_both!(
    async fn a_claim_that_waits_is_bound_as_soon_as_a_volume_comes(cluster: &Cluster) {
        let scene = scene(cluster, "waits").await;
        scene.create_class("kubernetes.io/no-provisioner", "Immediate").await;
        for n in 0..5 {
            scene.create_claim(scene.claim(&format!("c{n}"))).await;
        }
        assert_eq!(
            scene.event("ProvisioningFailed").await,
            "no volume plugin matched name: kubernetes.io/no-provisioner"
        );
        for n in 0..5 {
            scene.create_volume(scene.volume(&format!("v{n}"))).await;
        }
        let mut taken = std::collections::BTreeSet::new();
        for n in 0..5 {
            taken.insert(scene.claim_in(&format!("c{n}"), "Bound").await.volume_name().to_owned());
        }
        assert_eq!(taken.len(), 5);
    }
);

on_both!(
    async fn reservations_are_kept_from_either_side(cluster: &Cluster) {
        let scene = scene(cluster, "reserved").await;
        let mut volume = scene.volume("for").sized("9Gi").for_claim("c", "");
        volume.spec.as_mut().unwrap().claim_ref.as_mut().unwrap().namespace = Some(scene.namespace.clone());
        scene.create_volume(volume).await;
        scene.create_volume(scene.volume("small")).await;
        scene.create_claim(scene.claim("c")).await;
        assert_eq!(scene.claim_in("c", "Bound").await.volume_name(), scene.named("for"));
        let volume = scene.volume_in("for", "Bound").await;
        assert!(annotation(&volume.metadata, BOUND_BY_CONTROLLER).is_none(), "a person chose it");
        // A claim that names its volume gets that one; a second that names it waits and says why.
        scene.create_claim(scene.claim("d").naming(&scene.named("small"))).await;
        scene.claim_in("d", "Bound").await;
        scene.create_claim(scene.claim("e").naming(&scene.named("small"))).await;
        let note = scene.event("FailedBinding").await;
        assert_eq!(note, format!("volume {:?} already bound to a different claim.", scene.named("small")));
    }
);

on_both!(
    async fn a_provisioner_is_asked_and_its_volume_bound(cluster: &Cluster) {
        let scene = scene(cluster, "made").await;
        scene.create_class("made.example.io", "WaitForFirstConsumer").await;
        let claim = scene.create_claim(scene.claim("c")).await;
        assert_eq!(
            scene.event("WaitForFirstConsumer").await,
            "waiting for first consumer to be created before binding"
        );
        let node = Patch::Merge(json!({"metadata": {"annotations": {SELECTED_NODE: "n1"}}}));
        scene.claims.patch("c", &PatchParams::default(), &node).await.unwrap();
        let asked = |claim: Option<&PersistentVolumeClaim>| {
            claim.is_some_and(|claim| {
                annotation(&claim.metadata, STORAGE_PROVISIONER) == Some("made.example.io")
            })
        };
        cluster.until(&scene.claims, "c", asked).await;
        scene.event("ExternalProvisioning").await;
        // What the provisioner does.
        let mut volume = scene
            .volume("made")
            .for_claim("c", claim.uid())
            .policy("Delete")
            .noted(PROVISIONED_BY, "made.example.io");
        volume.spec.as_mut().unwrap().claim_ref.as_mut().unwrap().namespace = Some(scene.namespace.clone());
        scene.create_volume(volume).await;
        let bound = scene.claim_in("c", "Bound").await;
        assert_eq!(bound.volume_name(), scene.named("made"));
        assert!(annotation(&bound.metadata, BIND_COMPLETED).is_some());
        // It deletes what is released.
        scene.claims.delete("c", &DeleteParams::default()).await.unwrap();
        scene.volume_in("made", "Released").await;
    }
);

/// A default class is everybody's, so only a cluster of one's own can have one.
#[tokio::test(start_paused = true)]
async fn a_claim_is_given_the_default_class_when_there_is_one() {
    let cluster = &Cluster::embedded();
    let scene = scene(cluster, "default").await;
    scene.create_claim(scene.claim("c").of_class(None)).await;
    scene.event("FailedBinding").await;
    scene.create_class("made.example.io", "Immediate").await;
    let default =
        Patch::Merge(json!({"metadata": {"annotations": {lifeboat_binder::words::DEFAULT_CLASS: "true"}}}));
    scene.classes.patch(&scene.namespace, &PatchParams::default(), &default).await.unwrap();
    let given = |claim: Option<&PersistentVolumeClaim>| {
        claim.is_some_and(|claim| annotation(&claim.metadata, STORAGE_PROVISIONER).is_some())
    };
    let claim = cluster.until(&scene.claims, "c", given).await.unwrap();
    assert_eq!(claim.class(), scene.namespace);
}
