//! A death at every write of every flow, with what must hold looked at after every single write, whoever made it.

use crate::drpc::fleet::{DRPC, Names, Stage, Stores, run_hub};
use crate::drpc::kinds::bare_definitions;
use crate::drpc::law::{Before, Sight, holds};
use crate::drpc::spoke::Spoke;
use crate::drpc::witness::Witness;
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::api::DeleteParams;
use lifeboat_api::ramen::DRPlacementControl;
use lifeboat_api::work::ManifestWork;
use lifeboat_engine::Clock;
use lifeboat_testbed::{Cluster, CrashStory, Kind, Process, Scene};
use parking_lot::Mutex;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What outlives every death: the clusters, and what was seen before.
#[derive(Clone)]
pub struct Ground {
    stores: Stores,
    stage: Arc<Mutex<Option<Stage>>>,
    pub spokes: Arc<Mutex<Vec<Spoke>>>,
    pub before: Arc<Mutex<Before>>,
    pub witness: Witness,
    clock: Arc<Mutex<Option<Clock>>>,
    /// Whether the process that dies may begin.
    begins: Arc<AtomicBool>,
}

impl Ground {
    fn new() -> Self {
        let spokes: Arc<Mutex<Vec<Spoke>>> = Arc::default();
        Self {
            stores: Stores::default(),
            stage: Arc::default(),
            before: Arc::default(),
            witness: Witness::over(spokes.clone()),
            spokes,
            clock: Arc::default(),
            begins: Arc::default(),
        }
    }

    /// The time on the cluster.
    pub fn now(&self) -> Timestamp {
        self.clock.lock().as_ref().map_or(Timestamp::MIN, Clock::now)
    }

    /// Two clusters, and a hub that has nothing to do yet.
    async fn empty(&self, cluster: &Cluster) -> Stage {
        self.stage(cluster).await;
        self.begin();
        self.take()
    }

    /// The process that dies may begin.
    fn begin(&self) {
        self.begins.store(true, Ordering::SeqCst);
    }

    /// An application that another life of the hub has deployed, so that only what comes next is tried.
    async fn deployed(&self, cluster: &Cluster) -> Stage {
        let stage = self.prepared(cluster, |_| Box::pin(async {})).await;
        self.begin();
        stage
    }

    /// The same, after something more.
    async fn prepared(&self, cluster: &Cluster, more: impl FnOnce(&Stage) -> BoxFuture<'_, ()>) -> Stage {
        self.stage(cluster).await;
        let mut stage = self.take();
        stage.west.with(|state| state.copied = vec!["data".into()]);
        stage.start_hub();
        stage.protect(|_| {}).await;
        stage.is("Deployed", "Completed").await;
        more(&stage).await;
        stage.stop_hub();
        stage
    }

    async fn stage(&self, cluster: &Cluster) {
        *self.clock.lock() = Some(cluster.clock());
        let mut stage = Stage::over(cluster, Names::fixed(), self.stores.clone());
        stage.spaces().await;
        stage.furnish().await;
        stage.start_spokes();
        *self.spokes.lock() = vec![stage.east.clone(), stage.west.clone()];
        *self.stage.lock() = Some(stage);
    }

    fn take(&self) -> Stage {
        self.stage.lock().take().unwrap()
    }

    fn put(&self, stage: Stage) {
        *self.stage.lock() = Some(stage);
    }
}

async fn run(process: Process<Ground>) {
    while !process.world.begins.load(Ordering::SeqCst) {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let client = process.world.witness.watch(process.client);
    run_hub(client, process.clock, Names::fixed().space, process.world.stores.clone()).await;
}

fn story(name: &str) -> CrashStory<Ground> {
    CrashStory::with(name, Ground::new)
        .install(bare_definitions())
        .controller(run)
        .account("hub")
        .expects(Kind::Api)
        .quiet_for(std::time::Duration::from_secs(3))
        .invariant("what must hold", holds)
        .ends_may_differ()
}

fn drpc(scene: &Scene<'_, Ground>) -> Option<DRPlacementControl> {
    scene.get("shop", DRPC)
}

fn chosen(scene: &Scene<'_, Ground>) -> Vec<String> {
    Sight::of(scene).chosen
}

fn ends(scene: &Scene<'_, Ground>, phase: &str, epoch: i64, home: &str) -> Result<(), String> {
    let drpc = drpc(scene).ok_or("no DRPlacementControl")?;
    let status = drpc.status.clone().unwrap_or_default();
    let shown = (
        status.phase.as_ref().map_or("", |phase| phase.as_str()),
        status.progression.as_ref().map_or("", |step| step.as_str()),
        status.epoch,
        chosen(scene),
    );
    match shown == (phase, "Completed", Some(epoch), vec![home.to_owned()]) {
        true => Ok(()),
        false => Err(format!("{shown:?} {:?}", status.blockers)),
    }
}

#[test]
fn a_deployment_survives_a_death_at_every_write() {
    let points = story("deploy")
        .story(|cluster, ground| async move {
            let stage = ground.empty(&cluster).await;
            stage.east.with(|state| state.copied = vec!["data".into()]);
            stage.protect(|_| {}).await;
            ground.put(stage);
        })
        .converges(|scene| ends(scene, "Deployed", 1, "east"))
        .run();
    assert!(points.len() >= 12, "{points:#?}");
}

#[test]
fn a_failover_survives_a_death_at_every_write() {
    let points = story("failover")
        .story(|cluster, ground| async move {
            let stage = ground.deployed(&cluster).await;
            stage.kill(&stage.east).await;
            stage.failover(&stage.west).await;
            stage.is("FailedOver", "Cleaning Up").await;
            stage.wake(&stage.east).await;
            ground.put(stage);
        })
        .converges(|scene| ends(scene, "FailedOver", 2, "west"))
        .run();
    assert!(points.len() >= 10, "{points:#?}");
}

#[test]
fn a_relocation_survives_a_death_at_every_write() {
    let points = story("relocate")
        .story(|cluster, ground| async move {
            let stage = ground.deployed(&cluster).await;
            stage.relocate(&stage.west).await;
            ground.put(stage);
        })
        .converges(|scene| {
            ends(scene, "Relocated", 2, "west")?;
            let copies: u32 =
                scene.world.spokes.lock().iter().map(|spoke| spoke.state.lock().last_copies).sum();
            if copies == 1 { Ok(()) } else { Err(format!("{copies} last copies")) }
        })
        .run();
    assert!(points.len() >= 12, "{points:#?}");
}

#[test]
fn a_deletion_survives_a_death_at_every_write() {
    story("delete")
        .story(|cluster, ground| async move {
            let stage = ground.deployed(&cluster).await;
            stage.drpcs.delete(DRPC, &DeleteParams::default()).await.unwrap();
            stage.gone().await;
            ground.put(stage);
        })
        .converges(|scene| {
            let left = scene.list::<ManifestWork>();
            match (drpc(scene), left.is_empty(), chosen(scene)) {
                (None, true, home) if home == ["east"] => Ok(()),
                (_, _, home) => Err(format!("{} works are left, and it is on {home:?}", left.len())),
            }
        })
        .run();
}

#[test]
fn a_recovery_of_memory_survives_a_death_at_every_write() {
    story("recovery")
        .story(|cluster, ground| async move {
            let mut stage = ground
                .prepared(&cluster, |stage| {
                    Box::pin(async move {
                        stage.failover(&stage.west).await;
                        stage.is("FailedOver", "Completed").await;
                    })
                })
                .await;
            stage.lose_memory(false, |_| {}).await;
            ground.begin();
            ground.put(stage);
        })
        .converges(|scene| ends(scene, "FailedOver", 2, "west"))
        .run();
}

#[test]
fn a_second_claim_to_an_application_survives_a_death_at_every_write() {
    story("rival")
        .story(|cluster, ground| async move {
            let stage = ground.deployed(&cluster).await;
            stage.protect(|drpc| drpc["metadata"]["name"] = json!("rival")).await;
            ground.put(stage);
        })
        .converges(|scene| {
            let rival: DRPlacementControl = scene.get("shop", "rival").ok_or("no rival")?;
            let status = rival.status.unwrap_or_default();
            let said = status.conditions.iter().find(|one| one.type_ == "Protected");
            match status.blockers.iter().any(|one| one.reason == "Conflict")
                && said.is_some_and(|one| one.status == "False")
            {
                true => ends(scene, "Deployed", 1, "east"),
                false => Err(format!("{:?} {said:?}", status.blockers)),
            }
        })
        .run();
}

#[test]
fn a_drill_that_is_asked_for_and_taken_back_survives_a_death_at_every_write() {
    story("drill")
        .story(|cluster, ground| async move {
            let stage = ground.deployed(&cluster).await;
            stage
                .ask(json!({ "dryRun": true, "action": "Failover", "failoverCluster": stage.names.west }))
                .await;
            stage.waits("Unsupported").await;
            stage.ask(json!({ "dryRun": false })).await;
            stage.waits("DrillLeft").await;
            ground.put(stage);
        })
        .converges(|scene| {
            ends(scene, "Deployed", 1, "east")?;
            let reigns: usize =
                scene.world.spokes.lock().iter().map(|spoke| spoke.state.lock().reigns.len()).sum();
            if reigns == 1 { Ok(()) } else { Err(format!("{reigns} reigns")) }
        })
        .run();
}

#[test]
fn a_deleted_namespace_survives_a_death_at_every_write() {
    story("orphan")
        .story(|cluster, ground| async move {
            let stage = ground.deployed(&cluster).await;
            stage.east.with(crate::drpc::spoke::State::delete);
            stage.waits("Orphaned").await;
            stage.failover(&stage.west).await;
            ground.put(stage);
        })
        .converges(|scene| {
            ends(scene, "FailedOver", 2, "west")?;
            let ended: u32 = scene.world.spokes.lock().iter().map(|spoke| spoke.state.lock().ended).sum();
            if ended == 0 { Ok(()) } else { Err(format!("protection was ended {ended} times")) }
        })
        .run();
}
