//! A death of the mover at every effect: of the API server's writes and of the disks' changes, on the side that sends and on the side that
//! receives, which are one process here.

use crate::mortal::{Watch, Watched};
use crate::site::*;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use lifeboat_api::annotations::{ROLL_BACK_TO, ROLLED_BACK_TO};
use lifeboat_api::multicluster::ServiceExport;
use lifeboat_api::snapshot::{VolumeSnapshot, VolumeSnapshotContent};
use lifeboat_api::volsync::{ReplicationDestination, ReplicationSource};
use lifeboat_engine::Settings;
use lifeboat_lvm::Lvm;
use lifeboat_mortal::{Mortal, NoMounts};
use lifeboat_replicate::{Clusters, Config, Parts, controller};
use lifeboat_stream::Timing;
use lifeboat_testbed::{Cluster, CrashStory, Kind, Process, Scene, Task};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// What outlives the process: a folder with the disks, and whoever else runs on the cluster.
#[derive(Clone)]
struct Ground {
    folder: Arc<TempDir>,
    lvm: Arc<Mutex<Option<Arc<dyn Lvm>>>>,
    beside: Arc<Mutex<Vec<Task>>>,
    watch: Arc<Watch>,
}

impl Ground {
    fn new() -> Self {
        let folder = Arc::new(TempDir::new().unwrap());
        let watch = Arc::new(Watch::over(folder.path().join("disks/volumes")));
        Self { folder, lvm: Arc::default(), beside: Arc::default(), watch }
    }
}

async fn run(process: Process<Ground>) {
    let lvm = loop {
        if let Some(lvm) = process.world.lvm.lock().clone() {
            break lvm;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let clients = vec![process.client.clone()];
    let parts = Parts {
        lvm: Arc::new(Mortal {
            lvm,
            fate: Watched { points: process.points, watch: process.world.watch.clone() },
        }),
        filesystems: Arc::new(NoMounts),
        resolve: Arc::new(Clusters { clients, home: None }),
    };
    // Time jumps here whenever nobody computes, and a socket does not count as computing.
    let timing = Timing { handshake: Duration::from_secs(1 << 20), ..timing() };
    let state = process.world.folder.path().join("replicate");
    let config = Config { timing, ..Config::new(NODE, loopback(), loopback(), state) };
    let agent = controller(process.client, process.clock, Settings::default(), parts, config).await.unwrap();
    agent.run(std::future::pending()).await;
}

/// Whatever is told to be an image is one, and no told image is ever removed before the next is told.
fn what_is_told_is_there(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let images = scene.list::<VolumeSnapshot>();
    for receiver in scene.list::<ReplicationDestination>() {
        let Some(told) = receiver.status.and_then(|status| status.latest_image) else { continue };
        let ready = images.iter().any(|image| {
            image.metadata.name.as_deref() == Some(told.name.as_str())
                && image.metadata.deletion_timestamp.is_none()
                && image.status.as_ref().and_then(|status| status.ready_to_use) == Some(true)
        });
        if !ready {
            return Err(format!("{} is told and is not there", told.name));
        }
    }
    Ok(())
}

/// A word that is said to be served was echoed by the receiver.
fn what_is_served_was_echoed(scene: &Scene<'_, Ground>) -> Result<(), String> {
    for source in scene.list::<ReplicationSource>() {
        let status = source.status.unwrap_or_default();
        if status.last_manual_sync.is_some()
            && status.last_manual_sync.as_ref() != status.external.get("echo")
        {
            return Err(format!("{:?} is served and not echoed", status.last_manual_sync));
        }
    }
    Ok(())
}

/// S5, S16: an image that is ready holds a cut of the source, and not half of one.
fn images_are_whole(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let ready = |image: &&VolumeSnapshot| {
        image.status.as_ref().and_then(|status| status.ready_to_use) == Some(true)
            && image.metadata.deletion_timestamp.is_none()
    };
    let contents = scene.list::<VolumeSnapshotContent>();
    for image in scene.list::<VolumeSnapshot>().iter().filter(ready) {
        let of = |content: &&VolumeSnapshotContent| {
            content.spec.volume_snapshot_ref.name.as_deref() == image.metadata.name.as_deref()
        };
        let handle =
            contents.iter().find(of).and_then(|content| content.status.as_ref()?.snapshot_handle.clone());
        scene.world.watch.is_a_cut(&handle.unwrap_or_default())?;
    }
    Ok(())
}

/// S13, S14: what is told was so at some generation that there was, and times do not go back.
fn times_only_grow(scene: &Scene<'_, Ground>) -> Result<(), String> {
    for source in scene.list::<ReplicationSource>() {
        let status = source.status.unwrap_or_default();
        for condition in &status.conditions {
            if condition.observed_generation > source.metadata.generation {
                return Err(format!("{} tells of a generation that is not there", condition.type_));
            }
        }
        let Some(ended) = status.last_sync_time else { continue };
        scene.world.watch.not_before("lastSyncTime", ended.0)?;
        let cut = status.external.get("cut").and_then(|cut| cut.parse().ok());
        scene.world.watch.not_before("cut", cut.ok_or("a copy without its cut")?)?;
    }
    Ok(())
}

/// What was seen on the disks after every change of theirs, and is now.
fn disks_are_well(scene: &Scene<'_, Ground>) -> Result<(), String> {
    scene.world.watch.look();
    scene.world.watch.verdict()
}

fn told(name: &str) -> CrashStory<Ground> {
    let ours = |one: &CustomResourceDefinition| one.spec.group != lifeboat_api::ramen::GROUP;
    CrashStory::with(name, Ground::new)
        .install(definitions().into_iter().filter(ours).collect())
        .controller(run)
        .expects(Kind::Api)
        .expects(Kind::Lvm)
        .order_may_differ()
        .ends_may_differ()
        .invariant("what is told is there", what_is_told_is_there)
        .invariant("what is served was echoed", what_is_served_was_echoed)
        .invariant("images are whole", images_are_whole)
        .invariant("times only grow", times_only_grow)
        .invariant("disks are well", disks_are_well)
        .converges(|scene| {
            let images = scene.list::<VolumeSnapshot>().len();
            let volumes = fs::read_dir(scene.world.folder.path().join("disks/volumes")).unwrap().count();
            // The claim, the receiver's claim, and the newest images of it.
            if (1..=3).contains(&images) && volumes == 2 + images {
                Ok(())
            } else {
                Err(format!("{images} images, {volumes} volumes"))
            }
        })
}

/// At an epoch, as if a group had given it.
fn at_epoch(mut object: Value, epoch: u64) -> Value {
    object["metadata"]["annotations"] = json!({"ramendr.openshift.io/epoch": epoch.to_string()});
    object
}

async fn receives(cluster: Cluster, ground: &Ground, receiver: Value) -> Site {
    let site = Site::at(cluster, ground.folder.clone()).await;
    *ground.lvm.lock() = Some(site.lvm.clone());
    create(site.destinations.clone(), at_epoch(receiver, 1)).await;
    let exports: Api<ServiceExport> = Api::namespaced(site.cluster.client(), SPACE);
    create(exports, export_json("to")).await;
    site
}

#[test]
fn copies_survive_a_death_at_every_effect() {
    let points = told("two copies")
        .story(|cluster, ground| async move {
            let site = receives(cluster, &ground, receiver_json("to")).await;
            site.listens("to").await;
            let files = site.claim("data").await;
            fs::write(files.join("f"), noise(1, 100_000)).unwrap();
            let sender = sender_json("data", "to", json!({"manual": "first"}));
            create(site.sources.clone(), at_epoch(sender, 1)).await;
            let source = site.served("data", "first").await;
            site.has("to", external(&source, "generation")).await;
            fs::write(files.join("g"), noise(2, 100_000)).unwrap();
            site.merge(&site.sources, "data", at_epoch(json!({}), 2)).await;
            let source = site.copy("data", "second").await;
            site.has("to", external(&source, "generation")).await;
            assert_eq!(tree(&site.files("volsync-to-dst").await), tree(&files));
            ground.beside.lock().extend(site.into_tasks());
        })
        .run();
    assert!(points.len() >= 12, "{points:#?}");
}

#[test]
fn the_way_back_to_an_image_survives_a_death_at_every_effect() {
    let points = told("back to an image")
        .story(|cluster, ground| async move {
            let mut receiver = receiver_json("to");
            receiver["spec"]["rsyncTLS"]["destinationPVC"] = json!("landed");
            let site = receives(cluster, &ground, receiver).await;
            let landed = site.claim("landed").await;
            site.listens("to").await;
            let files = site.claim("data").await;
            fs::write(files.join("f"), noise(1, 100_000)).unwrap();
            let sender = sender_json("data", "to", json!({"manual": "first"}));
            create(site.sources.clone(), at_epoch(sender, 1)).await;
            let source = site.served("data", "first").await;
            let receiver = site.has("to", external(&source, "generation")).await;
            let image = receiver.status.unwrap().latest_image.unwrap().name;
            site.merge(&site.destinations, "to", json!({"spec": {"paused": true}})).await;
            site.cluster.until(&site.destinations, "to", is_hushed).await;
            // Half a copy came after it, as it were: from now on it is all of the one or all of the other.
            fs::write(landed.join("f"), noise(3, 50_000)).unwrap();
            fs::write(landed.join("half"), "half").unwrap();
            ground.watch.only(&landed, [tree(&landed), tree(&files)]);
            let note = json!({"metadata": {"annotations": {ROLL_BACK_TO: image}}});
            site.merge(&site.destinations, "to", note).await;
            let answered = |receiver: Option<&ReplicationDestination>| {
                let notes = receiver.and_then(|receiver| receiver.metadata.annotations.as_ref());
                notes.and_then(|notes| notes.get(ROLLED_BACK_TO)) == Some(&image)
            };
            site.cluster.until(&site.destinations, "to", answered).await;
            assert_eq!(tree(&landed), tree(&files));
            ground.watch.anything();
            let on = json!({"metadata": {"annotations": {ROLL_BACK_TO: null}}, "spec": {"paused": false}});
            site.merge(&site.destinations, "to", on).await;
            let receiver = site.listens("to").await;
            let notes = receiver.metadata.annotations.unwrap_or_default();
            assert!(!notes.contains_key(ROLLED_BACK_TO), "the answer is over: {notes:?}");
            ground.beside.lock().extend(site.into_tasks());
        })
        .run();
    let exchanged = points.iter().any(|point| format!("{point:?}").contains("exchange"));
    assert!(points.len() >= 15 && exchanged, "{points:#?}");
}

fn is_hushed(receiver: Option<&ReplicationDestination>) -> bool {
    let tls = receiver.and_then(|receiver| receiver.status.as_ref()?.rsync_tls.clone());
    tls.is_some_and(|tls| tls.address.is_none())
}
