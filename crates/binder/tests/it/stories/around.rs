//! What stands around binding: guards, growing, volumes that live with a pod.

use super::{Scene, scene};
use crate::things::{VolumeThings, with_scratch};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use lifeboat_binder::lean::{PersistentVolume, PersistentVolumeClaim};
use lifeboat_binder::protect::CLAIM_FINALIZER;
use lifeboat_binder::words::{ClaimWords, IN_TREE_FINALIZER, PROVISIONED_BY, STORAGE_RESIZER, annotation};
use lifeboat_testbed::fixtures::{self, With};
use lifeboat_testbed::{NotYet, on_both};
use serde_json::json;

/// A pod on a node that does not exist, so that nobody starts it.
async fn start_pod(scene: &Scene<'_>, pod: Pod) -> Api<Pod> {
    let pods: Api<Pod> = Api::namespaced(scene.cluster.client(), &scene.namespace);
    let accounts: Api<ServiceAccount> = Api::namespaced(scene.cluster.client(), &scene.namespace);
    scene.cluster.until(&accounts, "default", |account| account.is_some()).await;
    let pod = pod.with(|pod| pod.spec.as_mut().unwrap().node_name = Some("somewhere".into()));
    pods.create(&PostParams::default(), &pod).await.unwrap();
    pods
}

/// Waits until a controller waits with a claim for this reason.
async fn waits(scene: &Scene<'_>, controller: &str, name: &str, reason: &str) {
    let key = format!("{}/{name}", scene.namespace);
    let look = || async {
        let waits = scene.waits.of(controller, &key);
        match waits {
            Some(waits) if waits.reason == reason => Ok(()),
            other => Err(NotYet(format!("{other:?}"))),
        }
    };
    scene.cluster.eventually(reason, look).await;
}

fn now() -> DeleteParams {
    DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() }
}

on_both!(
    async fn a_claim_in_use_is_kept_until_its_pod_is_gone(cluster: &Cluster) {
        let scene = scene(cluster, "used").await;
        scene.create_volume(scene.volume("v")).await;
        scene.create_volume(scene.volume("w")).await;
        for name in ["c", "unused"] {
            scene.create_claim(scene.claim(name)).await;
            scene.claim_in(name, "Bound").await;
        }
        let volume = scene.claims.get("c").await.unwrap().volume_name().to_owned();
        let pods = start_pod(&scene, fixtures::pod(&scene.namespace, "p", &["c"])).await;
        for name in ["c", "unused"] {
            scene.claims.delete(name, &DeleteParams::default()).await.unwrap();
        }
        // The guard has looked at it and waits for the pod; a claim that nobody uses, deleted after it, is gone by now.
        waits(&scene, "pvc-protection", "c", "ByPods").await;
        cluster.until(&scene.claims, "unused", |claim| claim.is_none()).await;
        let kept = scene.claims.get("c").await.unwrap();
        assert!(kept.metadata.deletion_timestamp.is_some());
        assert_eq!(kept.metadata.finalizers, Some(vec![CLAIM_FINALIZER.to_owned()]));
        assert_eq!(kept.status.unwrap().phase.as_deref(), Some("Bound"), "and its volume with it");
        pods.delete("p", &now()).await.unwrap();
        cluster.until(&scene.claims, "c", |claim| claim.is_none()).await;
        let released = |found: Option<&PersistentVolume>| {
            let status = found.and_then(|found| found.status.as_ref());
            status.and_then(|status| status.phase.as_deref()) == Some("Released")
        };
        cluster.until(&scene.volumes, &volume, released).await;
        scene.volumes.delete(&volume, &DeleteParams::default()).await.unwrap();
        cluster.until(&scene.volumes, &volume, |volume| volume.is_none()).await;
    }
);

on_both!(
    async fn a_claim_that_asks_for_more_waits_for_the_resizer(cluster: &Cluster) {
        let scene = scene(cluster, "grown").await;
        scene.create_growing_class("none.example.io").await;
        scene.create_volume(scene.volume("v")).await;
        scene.create_claim(scene.claim("c")).await;
        scene.claim_in("c", "Bound").await;
        let more = Patch::Merge(json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}}));
        scene.claims.patch("c", &PatchParams::default(), &more).await.unwrap();
        assert_eq!(
            scene.event("ExternalExpanding").await,
            "waiting for an external controller to expand this PVC"
        );
        waits(&scene, "volume-expand", "c", "ExternalExpanding").await;
        let untouched = scene.claims.get("c").await.unwrap();
        assert_eq!(annotation(&untouched.metadata, STORAGE_RESIZER), None, "its driver finds it by itself");
        assert_eq!(
            untouched.status.unwrap().capacity.unwrap().get("storage").unwrap().0,
            "1Gi",
            "nobody else shows a size"
        );
        // What the resizer does.
        let grown = Patch::Merge(json!({"spec": {"capacity": {"storage": "2Gi"}}}));
        scene.volumes.patch(&scene.named("v"), &PatchParams::default(), &grown).await.unwrap();
        let shown = Patch::Merge(json!({"status": {"capacity": {"storage": "2Gi"}}}));
        scene.claims.patch_status("c", &PatchParams::default(), &shown).await.unwrap();
        let key = format!("{}/c", scene.namespace);
        let rests = || async {
            match scene.waits.of("volume-expand", &key) {
                None => Ok(()),
                Some(waits) => Err(NotYet(format!("{waits:?}"))),
            }
        };
        cluster.eventually("nothing to wait for any more", rests).await;
        let claim = scene.claims.get("c").await.unwrap();
        assert_eq!(claim.status.unwrap().capacity.unwrap().get("storage").unwrap().0, "2Gi");
    }
);

on_both!(
    async fn a_claim_of_a_migrated_volume_names_its_resizer(cluster: &Cluster) {
        let scene = scene(cluster, "migrated").await;
        scene.create_growing_class("kubernetes.io/gce-pd").await;
        let volume = scene.volume("v").stored("gcePersistentDisk", &json!({"pdName": "disk"}));
        scene.create_volume(volume).await;
        scene.create_claim(scene.claim("c")).await;
        scene.claim_in("c", "Bound").await;
        let more = Patch::Merge(json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}}));
        scene.claims.patch("c", &PatchParams::default(), &more).await.unwrap();
        let named = |claim: Option<&PersistentVolumeClaim>| {
            let driver = claim.and_then(|claim| annotation(&claim.metadata, STORAGE_RESIZER));
            driver == Some("pd.csi.storage.gke.io")
        };
        cluster.until(&scene.claims, "c", named).await;
        assert_eq!(
            scene.event("ExternalExpanding").await,
            "CSI migration enabled for kubernetes.io/gce-pd; waiting for external resizer to expand the pvc"
        );
    }
);

on_both!(
    async fn a_volume_that_lives_with_a_pod_gets_a_claim_and_goes_with_it(cluster: &Cluster) {
        let scene = scene(cluster, "scratch").await;
        scene.create_volume(scene.volume("v")).await;
        let pod = with_scratch(fixtures::pod(&scene.namespace, "p", &[]), &scene.claim("template"));
        let pods = start_pod(&scene, pod).await;
        let bound = scene.claim_in("p-scratch", "Bound").await;
        assert_eq!(bound.volume_name(), scene.named("v"));
        let owner = bound.metadata.owner_references.unwrap().remove(0);
        assert_eq!(owner.uid, pods.get("p").await.unwrap().metadata.uid.unwrap());
        assert_eq!((owner.controller, owner.block_owner_deletion), (Some(true), Some(true)));
        pods.delete("p", &now()).await.unwrap();
        cluster.until(&scene.claims, "p-scratch", |claim| claim.is_none()).await;
        scene.volume_in("v", "Released").await;
        // A claim of that name that is somebody's is left alone, and the pod told.
        scene.create_claim(scene.claim("p-scratch")).await;
        let pod = with_scratch(fixtures::pod(&scene.namespace, "p", &[]), &scene.claim("template"));
        start_pod(&scene, pod).await;
        let (namespace, volume) = (&scene.namespace, "ephemeral volume scratch");
        assert_eq!(
            scene.event_about("Pod", "FailedBinding").await,
            format!(
                "{volume}: PVC {namespace}/p-scratch was not created for pod {namespace}/p (pod is not owner)"
            )
        );
        let theirs = scene.claims.get("p-scratch").await.unwrap();
        assert_eq!(theirs.metadata.owner_references, None);
    }
);

on_both!(
    async fn a_volume_whose_storage_nobody_deletes_says_what_lets_it_go(cluster: &Cluster) {
        let scene = scene(cluster, "left").await;
        let volume = scene.volume("v").policy("Delete").noted(PROVISIONED_BY, "kubernetes.io/old");
        scene.create_volume(volume).await;
        let name = scene.named("v");
        let kept = |volume: Option<&PersistentVolume>| {
            let finalizers = volume.and_then(|volume| volume.metadata.finalizers.clone()).unwrap_or_default();
            finalizers.iter().any(|name| name == IN_TREE_FINALIZER)
        };
        cluster.until(&scene.volumes, &name, kept).await;
        scene.volumes.delete(&name, &DeleteParams::default()).await.unwrap();
        let events: Api<Event> = Api::all(cluster.client());
        let look = || async {
            let all = events.list(&ListParams::default()).await?.items;
            let told = |event: &&Event| {
                event.regarding.as_ref().and_then(|volume| volume.name.as_deref()) == Some(name.as_str())
            };
            let told = all.iter().find(told).and_then(|event| event.reason.clone());
            if told.as_deref() == Some("StorageLeftBehind") {
                Ok(())
            } else {
                Err(NotYet(format!("{told:?}")))
            }
        };
        cluster.eventually("a word of what is to be done", look).await;
        let retain = Patch::Merge(json!({"spec": {"persistentVolumeReclaimPolicy": "Retain"}}));
        scene.volumes.patch(&name, &PatchParams::default(), &retain).await.unwrap();
        cluster.until(&scene.volumes, &name, |volume| volume.is_none()).await;
    }
);
