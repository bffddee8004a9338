//! Snapshots, restores and backups, on both clusters, with a real repository in a folder.

use crate::central::{CANARY, Scene, filled, sized};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use lifeboat_api::annotations::{self, parameters};
use lifeboat_api::snapshot::{VolumeSnapshot, VolumeSnapshotContent};
use lifeboat_api::topolvm::{LogicalVolume, SnapshotBackupStorage, StoragePhase};
use lifeboat_api::{conditions, finalizers};
use lifeboat_mover::{Backup, Content, Limits, Mover, Repository, Rustic, Secret, Store};
use lifeboat_node::provision::words::{annotation, has_finalizer};
use lifeboat_testbed::{Cluster, on_both};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The repository that a scene's storage names.
pub fn repository(scene: &Scene) -> Repository {
    Repository { store: Store::Local(scene.store()), password: Secret::new(CANARY) }
}

/// What a node's executor does: puts some bytes into the store under the volume's tag.
pub async fn back_up(repository: &Repository, files: &std::path::Path, uid: &str) -> String {
    std::fs::create_dir_all(files).unwrap();
    std::fs::write(files.join("data"), b"precious").unwrap();
    let backup = Backup {
        content: Content::Files(files.to_owned()),
        path: "/ns/claim".into(),
        host: "node".into(),
        tags: [("volume".to_owned(), uid.to_owned())].into(),
        limits: Limits::default(),
    };
    let (progress, _) = tokio::sync::watch::channel(Default::default());
    Rustic::new().backup(repository, backup, progress).await.unwrap().snapshot.id
}

pub async fn backups(repository: &Repository, uid: &str) -> usize {
    let tags: BTreeMap<String, String> = [("volume".to_owned(), uid.to_owned())].into();
    Rustic::new().find(repository, &tags).await.unwrap().len()
}

pub async fn tell(scene: &Scene, name: &str, status: Value) {
    let patch = Patch::Merge(json!({ "status": status }));
    scene.logical.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
}

pub fn online(scene: &Scene) -> Vec<(&'static str, String)> {
    vec![
        (parameters::SNAPSHOT_MODE, "online".to_owned()),
        (parameters::SNAPSHOT_STORAGE_NAME, "store".to_owned()),
        (parameters::SNAPSHOT_STORAGE_NAMESPACE, scene.mark.clone()),
    ]
}

async fn online_class(scene: &Scene) -> String {
    let name = format!("{}-online", scene.mark);
    let parameters = online(scene);
    let parameters: Vec<(&str, &str)> =
        parameters.iter().map(|(key, value)| (*key, value.as_str())).collect();
    scene.snapshot_class(&name, false, &parameters).await;
    name
}

on_both!(
    async fn a_snapshot_is_taken_restored_and_deleted(cluster: &Cluster) {
        let scene = Scene::with_nodes(cluster, "snap", &[("a", 6), ("b", 5)]).await;
        scene.snapshot_class(&scene.mark, true, &[]).await;
        scene.claim("first", |claim| sized(claim, "1Gi")).await;
        let (claim, _, first) = scene.bound("first").await;
        let made = scene.snapshot("s", "first", None).await;
        let ready = scene.ready("s").await;
        assert_eq!(ready.spec.volume_snapshot_class_name.as_deref(), Some(&*scene.mark), "the default class");
        let uid = made.metadata.uid.clone().unwrap();
        let status = ready.status.unwrap();
        assert_eq!(status.bound_volume_snapshot_content_name, Some(format!("snapcontent-{uid}")));
        assert_eq!(status.restore_size.unwrap().0, "1Gi");
        assert!(status.creation_time.is_some() && status.error.is_none());
        let logical = scene.logical.get(&format!("snapshot-{uid}")).await.unwrap();
        assert_eq!(
            (&logical.spec.source, &logical.spec.node_name),
            (&first.metadata.name, &first.spec.node_name)
        );
        assert_eq!(logical.spec.access_type.as_ref().map(ToString::to_string).as_deref(), Some("ro"));
        assert!(!has_finalizer(&logical.metadata, finalizers::REMOTE_SNAPSHOT));
        let content = scene.contents.get(&format!("snapcontent-{uid}")).await.unwrap();
        assert_eq!(content.spec.source.volume_handle, first.metadata.uid);
        assert_eq!(content.status.unwrap().snapshot_handle, logical.metadata.uid);
        assert_eq!(content.spec.volume_snapshot_ref.uid, Some(uid.clone()));
        // The claim is free to go again.
        let free = |claim: Option<&k8s_openapi::api::core::v1::PersistentVolumeClaim>| {
            claim.is_some_and(|claim| !has_finalizer(&claim.metadata, finalizers::PVC_AS_SOURCE))
        };
        cluster.until(&scene.claims, "first", free).await;
        scene
            .claim("second", |claim| {
                sized(claim, "2Gi");
                filled(claim, "VolumeSnapshot", "s");
            })
            .await;
        let (_, _, second) = scene.bound("second").await;
        assert_eq!(
            (&second.spec.source, &second.spec.node_name),
            (&logical.metadata.name, &first.spec.node_name)
        );
        assert_eq!(annotation(&second.metadata, annotations::SNAPSHOT_RESTORE_REQUIRED), None);
        scene.delete(&scene.snapshots, "s").await;
        scene.gone(&scene.snapshots, "s").await;
        scene.gone(&scene.contents, &format!("snapcontent-{uid}")).await;
        scene.gone(&scene.logical, &format!("snapshot-{uid}")).await;
        drop(claim);
    }
);

on_both!(
    async fn a_snapshot_with_a_backup_is_ready_when_that_is_and_takes_it_with_it(cluster: &Cluster) {
        let scene = Scene::with_nodes(cluster, "online", &[("a", 6), ("b", 9)]).await;
        scene.offer_store(CANARY).await;
        let class = online_class(&scene).await;
        scene.claim("first", |claim| sized(claim, "7Gi")).await;
        let (_, _, first) = scene.bound("first").await;
        assert_eq!(first.spec.node_name, scene.node("b"));
        let uid = scene.snapshot("s", "first", Some(&class)).await.metadata.uid.unwrap();
        let name = format!("snapshot-{uid}");
        let made = |found: Option<&LogicalVolume>| {
            found.is_some_and(|found| found.status.as_ref().is_some_and(|status| status.volume_id.is_some()))
        };
        let logical = cluster.until(&scene.logical, &name, made).await.unwrap();
        assert!(has_finalizer(&logical.metadata, finalizers::REMOTE_SNAPSHOT));
        assert_eq!(
            annotation(&logical.metadata, annotations::CLAIM),
            Some(&*format!("{}/first", scene.mark))
        );
        for (key, value) in online(&scene) {
            assert_eq!(annotation(&logical.metadata, key), Some(&*value));
        }
        // It exists, and is not ready: the backup is not complete.
        let handled = |found: Option<&VolumeSnapshotContent>| {
            found.is_some_and(|found| {
                found.status.as_ref().is_some_and(|status| status.snapshot_handle.is_some())
            })
        };
        let content = cluster.until(&scene.contents, &format!("snapcontent-{uid}"), handled).await.unwrap();
        let volume = logical.metadata.uid.clone().unwrap();
        let status = content.status.unwrap();
        assert_eq!(status.snapshot_handle, Some(format!("backup/{}/store/{volume}", scene.mark)));
        assert_eq!(status.ready_to_use, Some(false));
        let start = "2030-01-01T00:00:00Z";
        let failed = json!({ "snapshot": { "operation": "Backup", "phase": "Failed", "startTime": start,
            "error": { "code": "BackupFailed", "message": "the bucket is full" } } });
        tell(&scene, &name, failed).await;
        let wrong = |found: Option<&VolumeSnapshot>| {
            let error = found.and_then(|found| found.status.as_ref()?.error.as_ref()?.message.as_deref());
            error == Some("the bucket is full")
        };
        cluster.until(&scene.snapshots, "s", wrong).await;
        let repository = repository(&scene);
        let id = back_up(&repository, &scene.folder.path().join("files"), &volume).await;
        let succeeded = json!({ "snapshot": { "operation": "Backup", "phase": "Succeeded", "startTime": start,
            "snapshotID": id, "error": null } });
        tell(&scene, &name, succeeded).await;
        assert!(scene.ready("s").await.status.unwrap().error.is_none());
        // It is restored where there is room, behind a barrier that was there from the first moment.
        scene
            .claim("second", |claim| {
                sized(claim, "7Gi");
                filled(claim, "VolumeSnapshot", "s");
            })
            .await;
        scene.event("ProvisioningFailed").await;
        scene.add_node("c", 8 << 30).await;
        let (_, _, second) = scene.bound("second").await;
        assert_eq!(second.spec.node_name, scene.node("c"));
        assert_eq!(second.spec.source, None);
        let handle = format!("backup/{}/store/{volume}", scene.mark);
        assert_eq!(annotation(&second.metadata, annotations::SNAPSHOT_RESTORE_REQUIRED), Some(&*handle));
        // While a volume is restored from it the backup stays, though the snapshot is deleted.
        assert_eq!(backups(&repository, &volume).await, 1);
        scene.delete(&scene.snapshots, "s").await;
        let going = |found: Option<&VolumeSnapshotContent>| {
            found.is_some_and(|found| found.metadata.deletion_timestamp.is_some())
        };
        cluster.until(&scene.contents, &format!("snapcontent-{uid}"), going).await;
        let note = scene
            .event_saying("default", "SnapshotDeletePending", second.metadata.name.as_deref().unwrap())
            .await;
        assert!(note.contains("still being filled"), "{note}");
        assert_eq!(backups(&repository, &volume).await, 1);
        let restored =
            json!({ "snapshot": { "operation": "Restore", "phase": "Succeeded", "startTime": start } });
        tell(&scene, second.metadata.name.as_deref().unwrap(), restored).await;
        scene.gone(&scene.snapshots, "s").await;
        scene.gone(&scene.logical, &name).await;
        assert_eq!(backups(&repository, &volume).await, 0);
        no_secret(cluster, &scene).await;
    }
);

on_both!(
    async fn a_backup_is_removed_though_its_node_is_dead_and_blockers_are_named(cluster: &Cluster) {
        let scene = Scene::with_nodes(cluster, "dead", &[("a", 6)]).await;
        let class = online_class(&scene).await;
        scene.claim("first", |_| {}).await;
        scene.bound("first").await;
        let uid = scene.snapshot("s", "first", Some(&class)).await.metadata.uid.unwrap();
        let name = format!("snapshot-{uid}");
        let made = |found: Option<&LogicalVolume>| {
            found.is_some_and(|found| found.status.as_ref().is_some_and(|status| status.volume_id.is_some()))
        };
        let logical = cluster.until(&scene.logical, &name, made).await.unwrap();
        let volume = logical.metadata.uid.unwrap();
        let start = "2030-01-01T00:00:00Z";
        let done = json!({ "snapshot": { "operation": "Backup", "phase": "Succeeded", "startTime": start, "snapshotID": "x" } });
        tell(&scene, &name, done).await;
        scene.ready("s").await;
        scene.player.behave(|behaviour| behaviour.dead = true);
        scene.delete(&scene.snapshots, "s").await;
        let condition = |found: Option<&LogicalVolume>, part: &str| {
            let conditions = found.and_then(|found| Some(found.status.as_ref()?.conditions.clone()));
            conditions.unwrap_or_default().iter().any(|condition| {
                let ensured = condition.type_ == conditions::logical_volume::TYPE_DELETE_ENSURED;
                ensured && (condition.message.contains(part) || condition.reason == part)
            })
        };
        let blocked = |found: Option<&LogicalVolume>| condition(found, "does not exist; put that right");
        cluster.until(&scene.logical, &name, blocked).await;
        let note = scene.event_saying("default", "BackupRemovalBlocked", &scene.mark).await;
        assert!(note.contains("topolvm.io/abandon-backup=true"), "{note}");
        // The store comes back with the backup in it, and the backup goes; the object waits for its node alone.
        let repository = repository(&scene);
        std::fs::create_dir_all(scene.store()).unwrap();
        back_up(&repository, &scene.folder.path().join("files"), &volume).await;
        scene.offer_store(CANARY).await;
        let succeeded = |found: Option<&LogicalVolume>| {
            condition(found, "SnapshotDeleteSucceeded")
                && found.is_some_and(|found| !has_finalizer(&found.metadata, finalizers::REMOTE_SNAPSHOT))
        };
        cluster.until(&scene.logical, &name, succeeded).await;
        assert_eq!(backups(&repository, &volume).await, 0);
        scene.player.behave(|behaviour| behaviour.dead = false);
        scene.gone(&scene.logical, &name).await;
        scene.gone(&scene.snapshots, "s").await;
        no_secret(cluster, &scene).await;
    }
);

on_both!(
    async fn a_backup_can_be_given_up(cluster: &Cluster) {
        let scene = Scene::with_nodes(cluster, "give", &[("a", 6)]).await;
        let name = format!("{}-orphan", scene.mark);
        let logical: LogicalVolume = serde_json::from_value(json!({
            "apiVersion": "topolvm.io/v1", "kind": "LogicalVolume",
            "metadata": { "name": name, "finalizers": [finalizers::REMOTE_SNAPSHOT], "annotations": {
                parameters::SNAPSHOT_STORAGE_NAME: "gone", parameters::SNAPSHOT_STORAGE_NAMESPACE: scene.mark } },
            "spec": { "name": name, "nodeName": "elsewhere", "size": "1Gi" },
        }))
        .unwrap();
        scene.logical.create(&PostParams::default(), &logical).await.unwrap();
        let done = json!({ "snapshot": { "phase": "Succeeded", "startTime": "2030-01-01T00:00:00Z", "snapshotID": "x" } });
        tell(&scene, &name, done).await;
        scene.delete(&scene.logical, &name).await;
        let told = |found: Option<&LogicalVolume>| {
            found.is_some_and(|found| {
                found.status.as_ref().is_some_and(|status| !status.conditions.is_empty())
            })
        };
        cluster.until(&scene.logical, &name, told).await;
        let abandon = json!({ "metadata": { "annotations": { "topolvm.io/abandon-backup": "true" } } });
        scene.merge(&scene.logical, &name, abandon).await;
        scene.gone(&scene.logical, &name).await;
        scene.event_saying("default", "BackupAbandoned", &format!("{}/gone", scene.mark)).await;
    }
);

on_both!(
    async fn a_backup_of_another_cluster_is_restored_by_its_handle_alone(cluster: &Cluster) {
        let scene = Scene::with_nodes(cluster, "import", &[("a", 6)]).await;
        let volume = "0f3c2a4e-1111-4222-8333-444455556666";
        let repository = repository(&scene);
        std::fs::create_dir_all(scene.store()).unwrap();
        scene.offer_store(CANARY).await;
        let handle = format!("backup/{}/store/{volume}", scene.mark);
        let content: VolumeSnapshotContent = serde_json::from_value(json!({
            "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
            "metadata": { "name": scene.mark },
            "spec": { "driver": scene.driver, "deletionPolicy": "Retain", "source": { "snapshotHandle": handle },
                "volumeSnapshotRef": { "namespace": scene.mark, "name": "s" } },
        }))
        .unwrap();
        scene.contents.create(&PostParams::default(), &content).await.unwrap();
        let snapshot: VolumeSnapshot = serde_json::from_value(json!({
            "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot", "metadata": { "name": "s" },
            "spec": { "source": { "volumeSnapshotContentName": scene.mark } },
        }))
        .unwrap();
        scene.snapshots.create(&PostParams::default(), &snapshot).await.unwrap();
        // What is not in the store is not ready, whatever the handle says.
        let missing = |found: Option<&VolumeSnapshot>| {
            let error = found.and_then(|found| found.status.as_ref()?.error.as_ref()?.message.clone());
            error.is_some_and(|error| error.contains("has no backup with the handle"))
        };
        cluster.until(&scene.snapshots, "s", missing).await;
        back_up(&repository, &scene.folder.path().join("files"), volume).await;
        scene.ready("s").await;
        scene
            .claim("c", |claim| {
                sized(claim, "2Gi");
                filled(claim, "VolumeSnapshot", "s");
            })
            .await;
        let (_, _, logical) = scene.bound("c").await;
        assert_eq!(annotation(&logical.metadata, annotations::SNAPSHOT_RESTORE_REQUIRED), Some(&*handle));
        scene.delete(&scene.snapshots, "s").await;
        // Retain keeps the content, and the backup with it.
        assert_eq!(backups(&repository, volume).await, 1);
    }
);

on_both!(
    async fn a_store_says_whether_it_works(cluster: &Cluster) {
        let scene = Scene::with_nodes(cluster, "store", &[]).await;
        let repository = repository(&scene);
        std::fs::create_dir_all(scene.store()).unwrap();
        back_up(&repository, &scene.folder.path().join("files"), "someone").await;
        let wrong = "canary-word-5c1d-wrong";
        scene.offer_store(wrong).await;
        let shows = |phase: StoragePhase| {
            move |found: Option<&SnapshotBackupStorage>| {
                found.is_some_and(|found| {
                    found.status.as_ref().and_then(|status| status.phase.as_ref()) == Some(&phase)
                })
            }
        };
        let storages = scene.storages();
        let failed =
            cluster.until(&storages, "store", shows(StoragePhase::Error)).await.unwrap().status.unwrap();
        assert!(failed.message.as_deref().unwrap().contains("password"), "{failed:?}");
        assert!(failed.last_checked.is_some());
        scene.event("StorageCheckFailed").await;
        // The Secret is put right, and nobody has to touch the storage.
        let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(cluster.client(), &scene.mark);
        scene.merge(&secrets, "store-secret", json!({ "stringData": { "RESTIC_PASSWORD": CANARY } })).await;
        cluster.until(&storages, "store", shows(StoragePhase::Ready)).await;
        scene.delete(&secrets, "store-secret").await;
        let gone =
            cluster.until(&storages, "store", shows(StoragePhase::Error)).await.unwrap().status.unwrap();
        assert!(gone.message.unwrap().ends_with("store-secret does not exist"));
        no_secret(cluster, &scene).await;
    }
);

/// Nothing that anybody can read carries the password.
async fn no_secret(cluster: &Cluster, scene: &Scene) {
    let all = ListParams::default();
    let client = cluster.client();
    let events: Api<k8s_openapi::api::events::v1::Event> = Api::all(client.clone());
    let seen = [
        serde_json::to_string(&events.list(&all).await.unwrap().items).unwrap(),
        serde_json::to_string(&scene.storages().list(&all).await.unwrap().items).unwrap(),
        serde_json::to_string(&scene.logical.list(&all).await.unwrap().items).unwrap(),
        serde_json::to_string(&scene.contents.list(&all).await.unwrap().items).unwrap(),
        serde_json::to_string(&scene.snapshots.list(&all).await.unwrap().items).unwrap(),
    ];
    assert!(!seen.iter().any(|text| text.contains(CANARY)));
}
