//! A death of the mover at every effect: of the API server's writes and of the disks' changes, on the side that sends and on the side that
//! receives, which are one process here.

use crate::site::*;
use async_trait::async_trait;
use kube::Api;
use lifeboat_api::multicluster::ServiceExport;
use lifeboat_api::snapshot::VolumeSnapshot;
use lifeboat_api::volsync::{ReplicationDestination, ReplicationSource};
use lifeboat_engine::Settings;
use lifeboat_lvm::{Capacity, Change, Create, DeviceClass, Error, Lvm, Snapped, Snapshot, Volume};
use lifeboat_replicate::{Clusters, Config, Parts, controller};
use lifeboat_stream::Timing;
use lifeboat_testbed::{CrashPoints, CrashStory, Kind, Process, Scene, Task};
use parking_lot::Mutex;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::watch;

/// What outlives the process: a folder with the disks, and whoever else runs on the cluster.
#[derive(Clone)]
struct Ground {
    folder: Arc<TempDir>,
    lvm: Arc<Mutex<Option<Arc<dyn Lvm>>>>,
    beside: Arc<Mutex<Vec<Task>>>,
}

impl Ground {
    fn new() -> Self {
        Self { folder: Arc::new(TempDir::new().unwrap()), lvm: Arc::default(), beside: Arc::default() }
    }
}

/// Disks whose user can die at every change.
struct Mortal(Arc<dyn Lvm>, CrashPoints);

impl Mortal {
    async fn effect<R>(&self, what: String, work: impl Future<Output = R>) -> R {
        match self.1.effect(Kind::Lvm, what, work).await {
            Ok(done) => done,
            // Whoever has died does not go on.
            Err(_) => std::future::pending().await,
        }
    }
}

#[async_trait]
impl Lvm for Mortal {
    async fn classes(&self) -> Result<Vec<DeviceClass>, Error> {
        self.0.classes().await
    }
    async fn volumes(&self, class: &str) -> Result<Vec<Volume>, Error> {
        self.0.volumes(class).await
    }
    async fn capacity(&self, class: &str) -> Result<Capacity, Error> {
        self.0.capacity(class).await
    }
    async fn create(&self, wanted: Create) -> Result<Volume, Error> {
        self.0.create(wanted).await
    }
    async fn snapshot(&self, wanted: Snapshot) -> Result<Snapped, Error> {
        self.effect("snapshot".to_owned(), self.0.snapshot(wanted)).await
    }
    async fn resize(&self, class: &str, name: &str, size: u64) -> Result<u64, Error> {
        self.0.resize(class, name, size).await
    }
    async fn rename(&self, class: &str, from: &str, to: &str) -> Result<(), Error> {
        self.0.rename(class, from, to).await
    }
    async fn retag(
        &self,
        class: &str,
        name: &str,
        add: &BTreeSet<String>,
        remove: &BTreeSet<String>,
    ) -> Result<(), Error> {
        self.effect("retag".to_owned(), self.0.retag(class, name, add, remove)).await
    }
    async fn remove(&self, class: &str, name: &str) -> Result<(), Error> {
        self.effect("remove".to_owned(), self.0.remove(class, name)).await
    }
    fn changes(&self) -> watch::Receiver<Change> {
        self.0.changes()
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
        lvm: Arc::new(Mortal(lvm, process.points)),
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

#[test]
fn copies_survive_a_death_at_every_effect() {
    crate::tell(true, async {
        let points = CrashStory::with("two copies", Ground::new)
            .install(
                definitions()
                    .into_iter()
                    .filter(|one| one.spec.group != lifeboat_api::ramen::GROUP)
                    .collect(),
            )
            .controller(run)
            .story(|cluster, ground| async move {
                let site = Site::at(cluster, ground.folder.clone()).await;
                *ground.lvm.lock() = Some(site.lvm.clone());
                create(site.destinations.clone(), receiver_json("to")).await;
                let exports: Api<ServiceExport> = Api::namespaced(site.cluster.client(), SPACE);
                create(exports, export_json("to")).await;
                site.listens("to").await;
                let files = site.claim("data").await;
                fs::write(files.join("f"), noise(1, 100_000)).unwrap();
                create(site.sources.clone(), sender_json("data", "to", json!({"manual": "first"}))).await;
                let source = site.served("data", "first").await;
                site.has("to", external(&source, "generation")).await;
                fs::write(files.join("g"), noise(2, 100_000)).unwrap();
                let source = site.copy("data", "second").await;
                site.has("to", external(&source, "generation")).await;
                assert_eq!(tree(&site.files("volsync-to-dst").await), tree(&files));
                ground.beside.lock().extend(site.into_tasks());
            })
            .expects(Kind::Api)
            .expects(Kind::Lvm)
            .order_may_differ()
            .ends_may_differ()
            .invariant("what is told is there", what_is_told_is_there)
            .invariant("what is served was echoed", what_is_served_was_echoed)
            .converges(|scene| {
                let images = scene.list::<VolumeSnapshot>().len();
                let volumes = fs::read_dir(scene.world.folder.path().join("disks/volumes")).unwrap().count();
                // The claim, the receiver's claim, and the one image of it.
                if (images, volumes) == (1, 3) {
                    Ok(())
                } else {
                    Err(format!("{images} images, {volumes} volumes"))
                }
            })
            .run()
            .await;
        assert!(points.len() >= 12, "{points:#?}");
    });
}
