//! Groups that are deleted without the order to end protection: by hand, or with their namespace.

use crate::scene::{Scene, condition, has_finalizer, note};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolume, PersistentVolumeClaim};
use kube::api::{Api, DeleteParams, PostParams};
use lifeboat_api::volsync::{ReplicationDestination, ReplicationSource};
use lifeboat_api::{annotations, finalizers};
use lifeboat_testbed::{Cluster, on_both};
use serde_json::{Value, json};

fn by_mover(group: &mut Value) {
    group["metadata"]["annotations"] = json!({
        annotations::USE_VOLSYNC: "true", annotations::EPOCH: "3",
    });
}

fn mirrored(group: &mut Value) {
    group["metadata"]["annotations"] = json!({ annotations::EPOCH: "3" });
}

/// The data of a claim is where it was, and says which group left it.
async fn is_left(scene: &Scene) {
    let volume = scene.volume("one").await;
    assert_eq!(volume.spec.unwrap().persistent_volume_reclaim_policy.as_deref(), Some("Retain"));
    assert!(volume.metadata.annotations.unwrap().contains_key(annotations::ORPHANED_FROM));
}

fn is_there<K>(found: Option<&K>) -> bool {
    found.is_some()
}

/// The group has its volume back. The mark goes once the status says that all is back, so it may outlast that status for a moment.
async fn is_taken_up(scene: &Scene) {
    let name = format!("{}-one", scene.mark);
    let taken = |volume: Option<&PersistentVolume>| {
        volume.is_some_and(|volume| note(volume, annotations::ORPHANED_FROM).is_none())
    };
    let volume = scene.cluster.until(&scene.volumes, &name, taken).await.unwrap();
    assert_eq!(volume.spec.unwrap().persistent_volume_reclaim_policy.as_deref(), Some("Retain"));
}

on_both!(
    async fn a_group_that_was_deleted_by_hand_is_protected_again_when_it_comes_back(cluster: &Cluster) {
        for (change, name) in [(mirrored as fn(&mut Value), "byhand"), (by_mover, "byhandmover")] {
            let scene = Scene::new(cluster, name).await;
            scene.claim("one").await;
            scene.key("web").await;
            scene.group("web", "primary", change).await;
            scene.recorded("web").await;
            scene.state("web", "Primary").await;
            scene.delete(&scene.groups, "web").await;
            scene.gone(&scene.groups, "web").await;
            is_left(&scene).await;
            let claim = scene.claims.get("one").await.unwrap();
            assert!(
                !has_finalizer(&claim, finalizers::PVC_VR) && !has_finalizer(&claim, finalizers::PVC_VOLSYNC)
            );
            for store in ["east", "west"] {
                assert_eq!(scene.stores.record(store, &scene.mark, "web").unwrap().epoch, 3, "records stay");
            }
            let marks = scene.stores.shelf.lock().orphans.clone();
            assert_eq!(marks.len(), 2, "{marks:?}");
            assert_eq!(marks.values().next().unwrap().volumes, [format!("{}-one", scene.mark)].into());
            // The fleet's agent makes it again, as the hub wants it: the same epoch, another uid.
            scene.group("web", "primary", change).await;
            let group = scene.recorded("web").await;
            assert_eq!(group.status.unwrap().primary_epoch, Some(3));
            scene.state("web", "Primary").await;
            is_taken_up(&scene).await;
            assert!(scene.stores.shelf.lock().orphans.is_empty(), "it has a group again");
            match name {
                "byhand" => drop(scene.cluster.until(&scene.replications, "one", is_there).await),
                _ => drop(scene.cluster.until(&scene.sources, "one", is_there).await),
            }
            // Told to end, it gives back what it took.
            scene.end("web").await;
            scene.gone(&scene.groups, "web").await;
            let volume = scene.volume("one").await;
            assert_eq!(volume.spec.unwrap().persistent_volume_reclaim_policy.as_deref(), Some("Delete"));
            assert!(scene.stores.record("east", &scene.mark, "web").is_none());
        }
    }
);

on_both!(
    async fn no_store_holds_up_a_group_that_is_deleted_by_hand(cluster: &Cluster) {
        let scene = Scene::new(cluster, "storesdown").await;
        scene.claim("one").await;
        scene.group("web", "primary", mirrored).await;
        scene.recorded("web").await;
        scene.stores.down("east", true);
        scene.stores.down("west", true);
        scene.delete(&scene.groups, "web").await;
        scene.gone(&scene.groups, "web").await;
        is_left(&scene).await;
        // Back, it does not wait for them either: its volumes say what it had.
        scene.group("web", "primary", mirrored).await;
        scene.state("web", "Primary").await;
        is_taken_up(&scene).await;
        scene.stores.down("east", false);
        scene.stores.down("west", false);
        scene.recorded("web").await;
    }
);

/// Deletes a namespace and waits until nothing of it is left.
async fn sweep(cluster: &Cluster, name: &str) {
    let namespaces: Api<Namespace> = Api::all(cluster.client());
    namespaces.delete(name, &DeleteParams::default()).await.unwrap();
    cluster.until(&namespaces, name, |found: Option<&Namespace>| found.is_none()).await;
}

async fn namespace(cluster: &Cluster, name: &str) {
    let namespaces: Api<Namespace> = Api::all(cluster.client());
    let metadata = kube::api::ObjectMeta { name: Some(name.into()), ..Default::default() };
    namespaces.create(&PostParams::default(), &Namespace { metadata, ..Default::default() }).await.unwrap();
}

/// A new claim of the old name, with a volume of its own: what an application makes that is started again.
async fn fresh(scene: &Scene) {
    let mut volume = scene.volume_json("one");
    volume.metadata.name = Some(format!("{}-empty", scene.mark));
    scene.volumes.create(&PostParams::default(), &volume).await.unwrap();
    scene.claims.create(&PostParams::default(), &scene.claim_json("one")).await.unwrap();
    scene.bound("one").await;
}

// A real API server empties namespaces only with its controller manager, which the test bed does not start.
#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_deleted_loses_no_data_and_sends_nothing_empty() {
    for (change, name) in [(mirrored as fn(&mut Value), "swept"), (by_mover, "sweptmover")] {
        let cluster = Cluster::embedded();
        let scene = Scene::apart(&cluster, name).await;
        scene.claim("one").await;
        scene.key("web").await;
        scene.group("web", "primary", change).await;
        scene.recorded("web").await;
        scene.state("web", "Primary").await;
        let uid = scene.claims.get("one").await.unwrap().metadata.uid;
        sweep(&cluster, &scene.mark).await;
        is_left(&scene).await;
        for store in ["east", "west"] {
            let record = scene.stores.record(store, &scene.mark, "web").expect("records stay");
            assert_eq!(record.claims.len(), usize::from(name == "swept"));
        }
        // Everything is made again, and the application begins with an empty claim.
        namespace(&cluster, &scene.mark).await;
        scene.key("web").await;
        fresh(&scene).await;
        scene.group("web", "primary", change).await;
        let group = scene.says("web", "ClusterDataReady", "False", "Orphaned").await;
        let said = condition(&group, "ClusterDataReady").unwrap().message.clone();
        assert!(said.contains(&format!("PV {}-one of PVC one", scene.mark)), "{said}");
        assert!(said.contains("lifeboat repair web --restore-here"), "{said}");
        scene.blocked("web", "Orphaned").await;
        let claim = scene.claims.get("one").await.unwrap();
        assert!(
            !has_finalizer(&claim, finalizers::PVC_VR) && !has_finalizer(&claim, finalizers::PVC_VOLSYNC)
        );
        assert!(scene.replications.list(&Default::default()).await.unwrap().items.is_empty());
        assert!(
            scene.sources.list(&Default::default()).await.unwrap().items.is_empty(),
            "nothing empty is sent"
        );
        // The hub takes the application away, and the user wants what was left here.
        scene.delete(&scene.claims, "one").await;
        scene.gone(&scene.claims, "one").await;
        let asked = json!({"metadata": {"annotations": {annotations::RESTORE_ORPHANS: "3"}}});
        scene.merge(&scene.groups, "web", asked).await;
        scene.recorded("web").await;
        scene.state("web", "Primary").await;
        let claim = scene.bound("one").await;
        assert_ne!(claim.metadata.uid, uid);
        assert_eq!(claim.spec.unwrap().volume_name, Some(format!("{}-one", scene.mark)));
        is_taken_up(&scene).await;
        match name {
            "swept" => drop(scene.cluster.until(&scene.replications, "one", is_there).await),
            _ => drop(scene.cluster.until(&scene.sources, "one", is_there).await),
        }
    }
}

on_both!(
    async fn a_secondary_that_is_deleted_by_hand_keeps_receivers_and_images(cluster: &Cluster) {
        let scene = Scene::new(cluster, "keeps").await;
        scene.key("web").await;
        let receives = |group: &mut Value| {
            by_mover(group);
            group["spec"]["volSync"] = json!({ "rdSpec": [{ "protectedPVC": { "name": "one", "namespace": group["metadata"]["namespace"],
                "protectedByVolSync": true, "storageClassName": group["metadata"]["namespace"], "labels": { "app": "web" },
                "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } } }] });
        };
        scene.group("web", "secondary", receives).await;
        scene.state("web", "Secondary").await;
        let listens = |receiver: Option<&ReplicationDestination>| {
            receiver
                .is_some_and(|one| one.status.as_ref().is_some_and(|status| status.latest_image.is_some()))
        };
        let before = cluster.until(&scene.destinations, "one", listens).await.unwrap();
        scene.delete(&scene.groups, "web").await;
        scene.gone(&scene.groups, "web").await;
        let left = scene.destinations.get("one").await.unwrap();
        assert_eq!(
            (left.metadata.uid.clone(), left.metadata.deletion_timestamp),
            (before.metadata.uid.clone(), None)
        );
        assert_eq!(scene.images.list(&Default::default()).await.unwrap().items.len(), 1);
        scene.group("web", "secondary", receives).await;
        scene.state("web", "Secondary").await;
        let kept = scene.destinations.get("one").await.unwrap();
        assert_eq!(kept.metadata.uid, before.metadata.uid, "it is taken up again");
    }
);

on_both!(
    async fn a_hub_that_knows_no_mark_ends_protection_where_it_is_configured(cluster: &Cluster) {
        let scene = Scene::new(cluster, "ramens").await;
        scene.configure("unmarkedDeletion: End\n").await;
        scene.claim("one").await;
        scene.group("web", "primary", |_| {}).await;
        scene.recorded("web").await;
        scene.delete(&scene.groups, "web").await;
        scene.gone(&scene.groups, "web").await;
        let volume = scene.volume("one").await;
        assert_eq!(volume.spec.unwrap().persistent_volume_reclaim_policy.as_deref(), Some("Delete"));
        assert!(scene.stores.record("east", &scene.mark, "web").is_none());
        let free = |claim: Option<&PersistentVolumeClaim>| {
            claim.is_some_and(|claim| !has_finalizer(claim, finalizers::PVC_VR))
        };
        cluster.until(&scene.claims, "one", free).await;
        let none = |found: Option<&ReplicationSource>| found.is_none();
        cluster.until(&scene.sources, "one", none).await;
    }
);
