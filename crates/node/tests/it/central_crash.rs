//! A death of the central half at every effect, over each of the ways that end in writes.

use crate::central::{CANARY, GIB, Scene, driver, filled, run_central, sized};
use crate::snapshots_stories::{back_up, backups, online, repository, tell};
use async_trait::async_trait;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use lifeboat_api::annotations;
use lifeboat_api::snapshot::{VolumeSnapshot, VolumeSnapshotContent};
use lifeboat_api::topolvm::{LogicalVolume, SnapshotBackupStorage, StoragePhase};
use lifeboat_mover::{
    BackedUp, Backup, Error, Mover, Progress, Repository, Restore, Restored, Rustic, Snapshot, Verified,
};
use lifeboat_node::provision::words::{UNPUBLISHED, annotation, is_restoring, uid, volume_id};
use lifeboat_testbed::{Cluster, CrashPoints, CrashStory, Kind, Process, Scene as Moment, Task};
use parking_lot::Mutex;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The mark of a story's first namespace, which is the same in every telling.
const MARK: &str = "crash-1";

/// What goes on beside the process that dies, and is still there after the story.
type Beside = Arc<Mutex<Vec<Box<dyn std::any::Any + Send>>>>;

/// A mover whose caller can die before and after it has removed something.
struct Mortal(Rustic, CrashPoints);

#[async_trait]
impl Mover for Mortal {
    async fn probe(&self, at: &Repository) -> Result<(), Error> {
        self.0.probe(at).await
    }
    async fn backup(
        &self,
        at: &Repository,
        what: Backup,
        told: watch::Sender<Progress>,
    ) -> Result<BackedUp, Error> {
        self.0.backup(at, what, told).await
    }
    async fn restore(
        &self,
        at: &Repository,
        what: Restore,
        told: watch::Sender<Progress>,
    ) -> Result<Restored, Error> {
        self.0.restore(at, what, told).await
    }
    async fn find(&self, at: &Repository, tags: &BTreeMap<String, String>) -> Result<Vec<Snapshot>, Error> {
        self.0.find(at, tags).await
    }
    async fn forget(&self, at: &Repository, ids: &BTreeSet<String>) -> Result<(), Error> {
        match self.1.effect(Kind::Mover, "forget", self.0.forget(at, ids)).await {
            Ok(done) => done,
            Err(_) => std::future::pending().await,
        }
    }
    async fn verify(&self, at: &Repository, read_data: bool) -> Result<Verified, Error> {
        self.0.verify(at, read_data).await
    }
}

async fn run(process: Process<Beside>) {
    let mover = Arc::new(Mortal(Rustic::new(), process.points.clone()));
    run_central(process.client, process.clock, MARK.to_owned(), mover).await;
}

/// Nodes, a binder and played agents beside the process that dies.
async fn scene(cluster: &Cluster, beside: &Beside, nodes: &[(&str, u64)]) -> Arc<Scene> {
    let scene = Scene::quiet(cluster, "crash").await;
    assert_eq!((scene.mark.as_str(), scene.driver.as_str()), (MARK, driver(MARK).as_str()));
    for (node, gib) in nodes {
        scene.add_node(node, gib * GIB).await;
    }
    let player = scene.player.clone();
    let scene = Arc::new(scene);
    beside.lock().push(Box::new(Task::spawn(player.run())));
    beside.lock().push(Box::new(scene.clone()));
    scene
}

/// What must hold after every write.
fn sound(moment: &Moment<'_, Beside>) -> Result<(), String> {
    let logical: Vec<LogicalVolume> = moment.list();
    for volume in moment.list::<PersistentVolume>() {
        let handle = &volume.spec.as_ref().unwrap().csi.as_ref().unwrap().volume_handle;
        let name = volume.metadata.name.clone().unwrap_or_default();
        let behind = logical.iter().find(|logical| uid(*logical) == handle);
        let phase = volume.status.as_ref().and_then(|status| status.phase.clone()).unwrap_or_default();
        match behind {
            Some(behind) if volume_id(behind).is_none() => {
                return Err(format!("{name} is published and not made"));
            }
            None if phase == "Bound" => return Err(format!("{name} is bound and has no storage")),
            _ => {}
        }
    }
    let mut used: BTreeMap<String, u64> = BTreeMap::new();
    for volume in &logical {
        *used.entry(volume.spec.node_name.clone()).or_default() +=
            lifeboat_node::provision::words::wanted_size(volume);
    }
    match used.iter().find(|(_, used)| **used > 6 * GIB) {
        Some((node, used)) => Err(format!("{used} bytes are promised on {node}")),
        None => Ok(()),
    }
}

fn story(name: &str) -> CrashStory<Beside> {
    CrashStory::with(name, Beside::default)
        .install(crate::definitions())
        .controller(run)
        .expects(Kind::Api)
        .invariant("sound", sound)
        .ends_may_differ()
        .order_may_differ()
        .quiet_for(Duration::from_secs(30))
}

fn nothing_left(moment: &Moment<'_, Beside>) -> Result<(), String> {
    let volumes = moment.list::<PersistentVolume>().len();
    let logical: Vec<String> =
        moment.list::<LogicalVolume>().into_iter().filter_map(|one| one.metadata.name).collect();
    let (snapshots, contents) =
        (moment.list::<VolumeSnapshot>().len(), moment.list::<VolumeSnapshotContent>().len());
    if (volumes, logical.len(), snapshots, contents) == (0, 0, 0, 0) {
        Ok(())
    } else {
        Err(format!("{volumes} volumes, {logical:?}, {snapshots} snapshots, {contents} contents"))
    }
}

#[test]
fn making_and_removing_a_volume_survives_a_death_at_every_effect() {
    let points = story("provision and reclaim")
        .story(|cluster, beside| async move {
            let scene = scene(&cluster, &beside, &[("a", 6)]).await;
            scene.claim("c", |claim| sized(claim, "4Gi")).await;
            let (_, volume, _) = scene.bound("c").await;
            scene.delete(&scene.claims, "c").await;
            scene.gone(&scene.volumes, volume.metadata.name.as_deref().unwrap()).await;
        })
        .converges(nothing_left)
        .run();
    // LogicalVolume, volume, seal; storage, volume, finalizer.
    assert!(points.len() >= 6, "{points:#?}");
}

#[test]
fn growing_survives_a_death_at_every_effect() {
    let points = story("expand")
        .story(|cluster, beside| async move {
            let scene = scene(&cluster, &beside, &[("a", 6)]).await;
            scene
                .claim("c", |claim| {
                    sized(claim, "2Gi");
                    claim.spec.as_mut().unwrap().volume_mode = Some("Block".into());
                })
                .await;
            scene.bound("c").await;
            let more = json!({"spec": {"resources": {"requests": {"storage": "5Gi"}}}});
            scene.merge(&scene.claims, "c", more).await;
        })
        .converges(|moment| {
            let claim: PersistentVolumeClaim = moment.get(MARK, "c").ok_or("no claim")?;
            let status = claim.status.unwrap_or_default();
            let shown = status.capacity.unwrap_or_default().get("storage").map(|size| size.0.clone());
            let sealed = moment
                .list::<LogicalVolume>()
                .iter()
                .all(|one| annotation(&one.metadata, UNPUBLISHED).is_none());
            if shown.as_deref() == Some("5Gi") && status.conditions.unwrap_or_default().is_empty() && sealed {
                Ok(())
            } else {
                Err(format!("{shown:?}"))
            }
        })
        .run();
    assert!(points.len() >= 7, "{points:#?}");
}

#[test]
fn snapshots_and_what_is_made_from_them_survive_a_death_at_every_effect() {
    let points = story("snapshot, restore and delete")
        .story(|cluster, beside| async move {
            let scene = scene(&cluster, &beside, &[("a", 6)]).await;
            scene.snapshot_class("plain", true, &[]).await;
            scene.claim("first", |claim| sized(claim, "1Gi")).await;
            scene.bound("first").await;
            scene.snapshot("s", "first", None).await;
            scene.ready("s").await;
            scene
                .claim("second", |claim| {
                    sized(claim, "2Gi");
                    filled(claim, "VolumeSnapshot", "s");
                })
                .await;
            scene.bound("second").await;
            scene.delete(&scene.snapshots, "s").await;
            scene.gone(&scene.snapshots, "s").await;
            for claim in ["first", "second"] {
                scene.delete(&scene.claims, claim).await;
                scene.gone(&scene.claims, claim).await;
            }
        })
        .converges(nothing_left)
        .run();
    assert!(points.len() >= 20, "{points:#?}");
}

#[test]
fn backups_restores_and_their_removal_survive_a_death_at_every_effect() {
    let points = story("backup, restore elsewhere and removal")
        .expects(Kind::Mover)
        .invariant("no volume that must be restored is there without its barrier", |moment| {
            let restores = |claim: &PersistentVolumeClaim| claim.metadata.name.as_deref() == Some("second");
            let Some(claim) = moment.list::<PersistentVolumeClaim>().into_iter().find(restores) else { return Ok(()) };
            let name = format!("pvc-{}", uid(&claim));
            let Some(logical) = moment.get::<LogicalVolume>("", &name) else { return Ok(()) };
            let barrier = annotation(&logical.metadata, annotations::SNAPSHOT_RESTORE_REQUIRED);
            if barrier.is_some() { Ok(()) } else { Err(format!("{name} has none")) }
        })
        .story(|cluster, beside| async move {
            let scene = scene(&cluster, &beside, &[("a", 6), ("b", 5)]).await;
            scene.offer_store(CANARY).await;
            // A store answers when it likes; the rest of the story must go the same way every time.
            let works = |found: Option<&SnapshotBackupStorage>| {
                let phase = found.and_then(|found| found.status.as_ref()?.phase.clone());
                phase == Some(StoragePhase::Ready)
            };
            cluster.until(&scene.storages(), "store", works).await;
            let parameters = online(&scene);
            let parameters: Vec<(&str, &str)> = parameters.iter().map(|(key, value)| (*key, value.as_str())).collect();
            scene.snapshot_class("online", true, &parameters).await;
            scene.claim("first", |claim| sized(claim, "2Gi")).await;
            scene.bound("first").await;
            let snapshot = scene.snapshot("s", "first", None).await.metadata.uid.unwrap();
            let name = format!("snapshot-{snapshot}");
            let made = |found: Option<&LogicalVolume>| found.is_some_and(|found| volume_id(found).is_some());
            let logical = cluster.until(&scene.logical, &name, made).await.unwrap();
            let volume = logical.metadata.uid.unwrap();
            let repository = repository(&scene);
            let id = back_up(&repository, &scene.folder.path().join("files"), &volume).await;
            let start = "2030-01-01T00:00:00Z";
            let done = json!({ "snapshot": { "operation": "Backup", "phase": "Succeeded", "startTime": start, "snapshotID": id } });
            tell(&scene, &name, done).await;
            scene.ready("s").await;
            scene
                .claim("second", |claim| {
                    sized(claim, "4Gi");
                    filled(claim, "VolumeSnapshot", "s");
                })
                .await;
            let (_, _, second) = scene.bound("second").await;
            assert!(is_restoring(&second));
            scene.delete(&scene.snapshots, "s").await;
            assert_eq!(backups(&repository, &volume).await, 1);
            let restored = json!({ "snapshot": { "operation": "Restore", "phase": "Succeeded", "startTime": start } });
            tell(&scene, second.metadata.name.as_deref().unwrap(), restored).await;
            scene.gone(&scene.snapshots, "s").await;
            scene.gone(&scene.logical, &name).await;
            assert_eq!(backups(&repository, &volume).await, 0);
            for claim in ["first", "second"] {
                scene.delete(&scene.claims, claim).await;
                scene.gone(&scene.claims, claim).await;
            }
        })
        .converges(nothing_left)
        .run();
    assert!(points.len() >= 20, "{points:#?}");
}
