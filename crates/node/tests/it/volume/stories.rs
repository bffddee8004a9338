//! What a user sees: on the embedded server and on a real one, on real files and a real repository.

use super::ground::{
    CANARY, Ground, create, delete, gone, grown, in_phase, made, note, released_by_node, snapshot, stand_in,
    volumes,
};
use kube::api::{Patch, PatchParams, PostParams};
use lifeboat_api::annotations::{self, parameters};
use lifeboat_api::snapshot::{VolumeSnapshotClass, VolumeSnapshotContent};
use lifeboat_api::topolvm::{LogicalVolume, SnapshotPhase};
use lifeboat_testbed::{Cluster, CrashPoints, Task, on_both};
use serde_json::json;
use std::fs;

fn start(cluster: &Cluster, ground: &Ground, node: &'static str) -> Task {
    let (ground, cluster) = (ground.clone(), cluster.clone());
    Task::spawn(async move {
        let client = cluster.account("node").await;
        ground.run(client, cluster.clock(), CrashPoints::counting(), node).await;
    })
}

async fn prepare(cluster: &Cluster) -> Ground {
    let ground = Ground::on(cluster).await;
    ground.offer_store(cluster).await;
    ground
}

/// The central worker's part: what it does with the finalizer is its own story. On a shared cluster that of another story may have been
/// faster.
async fn forget_remote(cluster: &Cluster, name: &str) {
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    match volumes(cluster).patch(name, &PatchParams::default(), &patch).await {
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        other => drop(other.unwrap()),
    }
}

on_both!(
    /// A volume is made, grown and removed, and its object goes last.
    async fn a_volume_lives(cluster: &Cluster) {
        let ground = prepare(cluster).await;
        let _agent = start(cluster, &ground, "n1");
        create(cluster, &ground.plain("pvc-1", "n1")).await;
        create(cluster, &ground.plain("pvc-2", "n2")).await;
        let volume = made(cluster, &ground.name("pvc-1")).await;
        let uid = volume.metadata.uid.clone().unwrap();
        assert_eq!(volume.status.as_ref().unwrap().volume_id.as_deref(), Some(&*uid));
        assert!(ground.files("n1", &uid).is_some());
        let more = Patch::Merge(json!({"spec": {"size": "128Mi"}}));
        volumes(cluster).patch(&ground.name("pvc-1"), &PatchParams::default(), &more).await.unwrap();
        grown(cluster, &ground.name("pvc-1"), 128 << 20).await;
        delete(cluster, &ground.name("pvc-1")).await;
        gone(cluster, &ground.name("pvc-1")).await;
        assert!(ground.volumes("n1").is_empty());
        let other = volumes(cluster).get(&ground.name("pvc-2")).await.unwrap();
        assert_eq!(
            (other.metadata.finalizers, other.status),
            (None, None),
            "the volume of another node is none of ours"
        );
    }
);

on_both!(
    /// The class of a volume is pointed at another folder: what nobody can see is waited for, and never given up unasked.
    async fn a_volume_in_storage_that_no_class_names_is_not_given_up(cluster: &Cluster) {
        let ground = prepare(cluster).await;
        let mut elsewhere = ground.clone();
        elsewhere.class_folder = "other";
        let mut renamed = ground.clone();
        renamed.class_name = "renamed";
        let names = [ground.name("pvc-1"), ground.name("pvc-2")];
        let mut uids = Vec::new();
        {
            let _agent = start(cluster, &ground, "n1");
            for name in ["pvc-1", "pvc-2"] {
                let mut volume = ground.plain(name, "n1");
                volume.spec.device_class = Some(ground.class_name.to_owned());
                create(cluster, &volume).await;
                let volume = made(cluster, &ground.name(name)).await;
                let notes = volume.metadata.annotations.unwrap();
                assert_eq!(notes[annotations::STORED_IN], ground.disks("n1").display().to_string());
                uids.push(volume.metadata.uid.unwrap());
            }
        }
        {
            let _agent = start(cluster, &elsewhere, "n1");
            for name in &names {
                delete(cluster, name).await;
                let waits = |volume: Option<&LogicalVolume>| {
                    let status = volume.and_then(|volume| volume.status.as_ref());
                    status.and_then(|status| status.message.as_ref()).is_some_and(|message| {
                        message.contains("no device class of this node names")
                            && message.contains(annotations::ABANDON_VOLUME)
                    })
                };
                cluster.until(&volumes(cluster), name, waits).await;
            }
            let abandon = json!({"metadata": {"annotations": {annotations::ABANDON_VOLUME: "true"}}});
            let params = PatchParams::default();
            volumes(cluster).patch(&names[1], &params, &Patch::Merge(abandon)).await.unwrap();
            gone(cluster, &names[1]).await;
            let kept = volumes(cluster).get(&names[0]).await.unwrap();
            assert!(kept.metadata.finalizers.is_some_and(|finalizers| !finalizers.is_empty()));
            assert_eq!(ground.volumes("n1"), uids.iter().cloned().collect(), "both are where they were");
        }
        // Named again, by whatever class, it is found and removed; what was given up stays.
        let _agent = start(cluster, &renamed, "n1");
        gone(cluster, &names[0]).await;
        assert_eq!(ground.volumes("n1"), [uids[1].clone()].into());
    }
);

on_both!(
    /// Backed up on one node while it is written, restored on another from the handle alone.
    async fn what_was_backed_up_comes_back_on_another_node(cluster: &Cluster) {
        let ground = prepare(cluster).await;
        let _n1 = start(cluster, &ground, "n1");
        create(cluster, &ground.plain("pvc-1", "n1")).await;
        let origin = made(cluster, &ground.name("pvc-1")).await;
        let files = ground.files("n1", origin.metadata.uid.as_deref().unwrap()).unwrap();
        fs::write(files.join("ledger"), "ten").unwrap();
        let taken = create(cluster, &ground.online_snapshot("snapshot-1", &origin)).await;
        let uid = taken.metadata.uid.clone().unwrap();
        let taken = in_phase(cluster, &ground.name("snapshot-1"), SnapshotPhase::Succeeded).await;
        let told = snapshot(&taken);
        assert_eq!(told.snapshot_id.as_ref().map(String::len), Some(64));
        assert_eq!(told.path.as_deref(), Some("app/data"));
        assert_eq!(told.consistency.as_deref(), Some("Fuzzy"), "nobody held the writers");
        assert!(told.progress.unwrap().bytes_done.unwrap() > 0);
        fs::write(files.join("ledger"), "eleven").unwrap();
        released_by_node(cluster, &ground.name("snapshot-1")).await;
        assert_eq!(ground.volumes("n1").len(), 1);

        let _n2 = start(cluster, &ground, "n2");
        create(cluster, &ground.restored("pvc-2", "n2", &uid)).await;
        let waits = |volume: Option<&LogicalVolume>| {
            volume.is_some_and(|volume| snapshot(volume).phase == SnapshotPhase::Pending)
        };
        let pending = cluster.until(&volumes(cluster), &ground.name("pvc-2"), waits).await.unwrap();
        assert!(pending.status.as_ref().unwrap().volume_id.is_some());
        assert!(
            lifeboat_node::volume::may_publish(&pending).is_err(),
            "the gate is closed from the first moment"
        );
        assert!(
            ground.files("n2", pending.metadata.uid.as_deref().unwrap()).is_none(),
            "and there is nothing to mount"
        );
        stand_in(cluster, &ground.name("pvc-2")).await;
        let back = made(cluster, &ground.name("pvc-2")).await;
        let files = ground.files("n2", back.metadata.uid.as_deref().unwrap()).unwrap();
        assert_eq!(fs::read_to_string(files.join("ledger")).unwrap(), "ten");
        let shown =
            serde_json::to_string(&volumes(cluster).list(&Default::default()).await.unwrap().items).unwrap();
        assert!(!shown.contains(CANARY));
        forget_remote(cluster, &ground.name("snapshot-1")).await;
    }
);

/// A backup that never ends, in the only place there is, and another that waits for that place.
async fn one_that_hangs_and_one_that_waits(cluster: &Cluster) -> (Ground, Task) {
    let mut ground = prepare(cluster).await;
    ground.jobs_at_once = 1;
    ground.hangs.store(1, std::sync::atomic::Ordering::Relaxed);
    let agent = start(cluster, &ground, "n1");
    create(cluster, &ground.plain("pvc-1", "n1")).await;
    let origin = made(cluster, &ground.name("pvc-1")).await;
    create(cluster, &ground.online_snapshot("hangs", &origin)).await;
    in_phase(cluster, &ground.name("hangs"), SnapshotPhase::Running).await;
    create(cluster, &ground.online_snapshot("waits", &origin)).await;
    in_phase(cluster, &ground.name("waits"), SnapshotPhase::Pending).await;
    (ground, agent)
}

on_both!(
    /// A backup that is deleted while it runs gives its place to the next.
    async fn the_place_of_a_deleted_backup_is_taken(cluster: &Cluster) {
        let (ground, _agent) = one_that_hangs_and_one_that_waits(cluster).await;
        delete(cluster, &ground.name("hangs")).await;
        in_phase(cluster, &ground.name("waits"), SnapshotPhase::Succeeded).await;
        forget_remote(cluster, &ground.name("hangs")).await;
        forget_remote(cluster, &ground.name("waits")).await;
    }
);

on_both!(
    /// A backup whose object somebody removed by force is ended, and gives its place to the next.
    async fn what_is_removed_by_force_holds_up_nobody(cluster: &Cluster) {
        let (ground, _agent) = one_that_hangs_and_one_that_waits(cluster).await;
        // Kept as it is, so that nobody ends it the ordinary way.
        let kept = Patch::Merge(json!({"metadata": {"annotations": {annotations::PENDING_DELETION: "now"}}}));
        volumes(cluster).patch(&ground.name("hangs"), &PatchParams::default(), &kept).await.unwrap();
        delete(cluster, &ground.name("hangs")).await;
        forget_remote(cluster, &ground.name("hangs")).await;
        in_phase(cluster, &ground.name("waits"), SnapshotPhase::Succeeded).await;
        forget_remote(cluster, &ground.name("waits")).await;
    }
);

on_both!(
    /// A storage that is missing is waited for and said to be; then the backup runs without anybody asking again.
    async fn a_missing_storage_is_waited_for(cluster: &Cluster) {
        let ground = Ground::on(cluster).await;
        let _agent = start(cluster, &ground, "n1");
        create(cluster, &ground.plain("pvc-1", "n1")).await;
        let origin = made(cluster, &ground.name("pvc-1")).await;
        create(cluster, &ground.online_snapshot("snapshot-1", &origin)).await;
        let told = |volume: Option<&LogicalVolume>| {
            let conditions =
                volume.and_then(|volume| volume.status.as_ref()).map(|status| &status.conditions);
            conditions.is_some_and(|all| {
                all.iter().any(|one| one.type_ == "SnapshotBackupStorageFound" && one.status == "False")
            })
        };
        let waiting = cluster.until(&volumes(cluster), &ground.name("snapshot-1"), told).await.unwrap();
        assert_eq!(snapshot(&waiting).phase, SnapshotPhase::Pending);
        ground.offer_store(cluster).await;
        in_phase(cluster, &ground.name("snapshot-1"), SnapshotPhase::Succeeded).await;
        forget_remote(cluster, &ground.name("snapshot-1")).await;
    }
);

on_both!(
    /// A backup that cannot work fails with a reason, holds nothing, and runs when it is asked to again.
    async fn a_failed_backup_is_tried_again_when_asked(cluster: &Cluster) {
        let ground = prepare(cluster).await;
        let _agent = start(cluster, &ground, "n1");
        create(cluster, &ground.plain("pvc-1", "n1")).await;
        let origin = made(cluster, &ground.name("pvc-1")).await;
        let first = create(cluster, &ground.online_snapshot("snapshot-1", &origin)).await;
        in_phase(cluster, &ground.name("snapshot-1"), SnapshotPhase::Succeeded).await;
        // The repository is there now, and another password does not open it.
        let secrets: kube::Api<k8s_openapi::api::core::v1::Secret> =
            kube::Api::namespaced(cluster.client(), &ground.mark);
        let password = |word: &str| Patch::Merge(json!({"stringData": {"RESTIC_PASSWORD": word}}));
        secrets.patch("store-secret", &PatchParams::default(), &password("wrong-canary")).await.unwrap();
        create(cluster, &ground.online_snapshot("snapshot-2", &origin)).await;
        let failed = in_phase(cluster, &ground.name("snapshot-2"), SnapshotPhase::Failed).await;
        let error = snapshot(&failed).error.unwrap();
        assert_eq!(error.code.as_deref(), Some("SnapshotExecutionFailed"));
        let message = error.message.unwrap();
        assert!(message.contains("password") && !message.contains("canary"), "{message}");
        secrets.patch("store-secret", &PatchParams::default(), &password(CANARY)).await.unwrap();
        let at = cluster.clock().now() + jiff::SignedDuration::from_secs(2);
        let again = Patch::Merge(
            json!({"metadata": {"annotations": {annotations::SNAPSHOT_RETRY_REQUESTED_AT: at.to_string()}}}),
        );
        volumes(cluster).patch(&ground.name("snapshot-2"), &PatchParams::default(), &again).await.unwrap();
        in_phase(cluster, &ground.name("snapshot-2"), SnapshotPhase::Succeeded).await;
        assert!(first.metadata.uid.is_some());
        for name in ["snapshot-1", "snapshot-2"] {
            forget_remote(cluster, &ground.name(name)).await;
        }
    }
);

on_both!(
    /// A source that does not exist is waited for, and copied once it does.
    async fn a_source_that_is_missing_is_never_an_empty_volume(cluster: &Cluster) {
        let ground = prepare(cluster).await;
        let _agent = start(cluster, &ground, "n1");
        let mut copy = ground.plain("pvc-1", "n1");
        copy.spec.source = Some(ground.name("nowhere"));
        copy.spec.access_type = Some("rw".into());
        note(&mut copy, parameters::FS_TYPE, "ext4");
        create(cluster, &copy).await;
        let told = |volume: Option<&LogicalVolume>| {
            let message = volume.and_then(|volume| volume.status.as_ref()?.message.clone());
            message.is_some_and(|message| message.contains("does not exist"))
        };
        cluster.until(&volumes(cluster), &ground.name("pvc-1"), told).await;
        assert!(ground.volumes("n1").is_empty());
        let source = create(cluster, &ground.plain("nowhere", "n1")).await;
        made(cluster, &ground.name("pvc-1")).await;
        assert!(source.metadata.uid.is_some());
        assert_eq!(ground.volumes("n1").len(), 2);
    }
);

on_both!(
    /// Whoever waits for a place gets one, however many see the same one free.
    async fn more_backups_than_places_all_end(cluster: &Cluster) {
        let mut ground = prepare(cluster).await;
        ground.jobs_at_once = 1;
        create(cluster, &ground.plain("pvc-1", "n1")).await;
        let names: Vec<String> = (0..5).map(|n| format!("snapshot-{n}")).collect();
        {
            let _agent = start(cluster, &ground, "n1");
            let origin = made(cluster, &ground.name("pvc-1")).await;
            for name in &names {
                create(cluster, &ground.online_snapshot(name, &origin)).await;
            }
            in_phase(cluster, &ground.name(&names[0]), SnapshotPhase::Succeeded).await;
        }
        // Another process finds what the first had begun and what it had not.
        let _agent = start(cluster, &ground, "n1");
        for name in &names {
            in_phase(cluster, &ground.name(name), SnapshotPhase::Succeeded).await;
            forget_remote(cluster, &ground.name(name)).await;
        }
    }
);

on_both!(
    /// What a peer made carries no annotations: the class of its content says that it is backed up, and may come last.
    async fn a_snapshot_class_that_comes_last_is_noticed(cluster: &Cluster) {
        let ground = prepare(cluster).await;
        let _agent = start(cluster, &ground, "n1");
        create(cluster, &ground.plain("pvc-1", "n1")).await;
        let origin = made(cluster, &ground.name("pvc-1")).await;
        let class = ground.name("online");
        let contents: kube::Api<VolumeSnapshotContent> = kube::Api::all(cluster.client());
        let content: VolumeSnapshotContent = serde_json::from_value(json!({
            "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
            "metadata": { "name": ground.name("snapcontent-1") },
            "spec": { "deletionPolicy": "Delete", "driver": "topolvm.io", "volumeSnapshotClassName": class,
                "source": { "volumeHandle": "v" },
                "volumeSnapshotRef": { "name": "s", "namespace": ground.mark } },
        }))
        .unwrap();
        contents.create(&PostParams::default(), &content).await.unwrap();
        let mut copy = ground.online_snapshot("snapshot-1", &origin);
        copy.metadata.annotations = None;
        create(cluster, &copy).await;
        made(cluster, &ground.name("snapshot-1")).await;
        let classes: kube::Api<VolumeSnapshotClass> = kube::Api::all(cluster.client());
        let class: VolumeSnapshotClass = serde_json::from_value(json!({
            "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass",
            "metadata": { "name": class }, "driver": "topolvm.io", "deletionPolicy": "Delete",
            "parameters": { parameters::SNAPSHOT_MODE: parameters::SNAPSHOT_MODE_ONLINE,
                parameters::SNAPSHOT_STORAGE_NAME: "store", parameters::SNAPSHOT_STORAGE_NAMESPACE: ground.mark },
        }))
        .unwrap();
        classes.create(&PostParams::default(), &class).await.unwrap();
        in_phase(cluster, &ground.name("snapshot-1"), SnapshotPhase::Succeeded).await;
        forget_remote(cluster, &ground.name("snapshot-1")).await;
    }
);
