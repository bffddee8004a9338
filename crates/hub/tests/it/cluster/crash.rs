//! A death at every effect, with what must hold looked at after every single write.

use crate::cluster::player::State;
use crate::cluster::scene::{CANARY, Proofs, Scene as Stage, definitions, furnished, run_hub, said};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, PostParams};
use lifeboat_api::ramen::{DRCluster, DRPolicy};
use lifeboat_api::view::ManagedClusterView;
use lifeboat_api::work::ManifestWork;
use lifeboat_hub::cluster::Setup;
use lifeboat_hub::cluster::manifests::{CONFIG_WORK, OPERATOR_WORK, STORES_WORK};
use lifeboat_hub::words::Words as _;
use lifeboat_testbed::{Cluster, CrashStory, Kind, Process, Scene, Task};
use parking_lot::Mutex;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const SPACE: &str = "hub";

#[derive(Clone)]
struct Ground {
    east: Arc<Mutex<State>>,
    west: Arc<Mutex<State>>,
    folder: Arc<tempfile::TempDir>,
    tasks: Arc<Mutex<Vec<Task>>>,
    /// The process that dies starts when this is opened: what comes before is not what the story is about.
    gate: CancellationToken,
    proofs: Proofs,
}

impl Ground {
    fn new() -> Self {
        Self {
            east: Arc::new(Mutex::new(furnished("s1"))),
            west: Arc::new(Mutex::new(furnished("s2"))),
            folder: Arc::new(tempfile::tempdir().unwrap()),
            tasks: Arc::default(),
            gate: CancellationToken::new(),
            proofs: Proofs::default(),
        }
    }

    /// The hub with two played clusters, which outlive every death.
    async fn stage(&self, cluster: &Cluster) -> Stage {
        let spaces: Api<Namespace> = Api::all(cluster.client());
        let space = json!({ "metadata": { "name": SPACE } });
        spaces.create(&PostParams::default(), &serde_json::from_value(space).unwrap()).await.unwrap();
        let states = [self.east.clone(), self.west.clone()];
        let mut stage = Stage::bare(cluster, SPACE, states, self.folder.clone()).await;
        (stage.east, stage.west) = (stage.east.patient(), stage.west.patient());
        self.tasks.lock().extend(stage.players());
        stage
    }

    /// The same with a pair that is in use, made by a process that nobody kills.
    async fn in_use(&self, cluster: &Cluster) -> Stage {
        let stage = self.stage(cluster).await;
        self.made(&stage, cluster, async |stage: &Stage| {
            stage.pair().await;
            stage.says("east", "Validated", "True", "Succeeded").await;
            stage.says("west", "Validated", "True", "Succeeded").await;
            stage.policy_is(|policy| policy.status.as_ref().is_some_and(|all| all.async_.is_some())).await;
        })
        .await;
        stage
    }

    /// What a process makes that nobody kills; then the one that dies may start.
    async fn made(&self, stage: &Stage, cluster: &Cluster, make: impl AsyncFnOnce(&Stage)) {
        let setup = Setup { namespace: SPACE.into(), only: None };
        let maker =
            Task::spawn(run_hub(cluster.client(), cluster.clock(), setup, Arc::new(self.proofs.clone())));
        make(stage).await;
        maker.kill().await.unwrap();
        self.gate.cancel();
    }
}

async fn run(process: Process<Ground>) {
    process.world.gate.cancelled().await;
    let setup = Setup { namespace: SPACE.into(), only: None };
    run_hub(process.client, process.clock, setup, Arc::new(process.world.proofs.counted(process.points)))
        .await;
}

fn holds(cluster: &DRCluster, type_: &str) -> bool {
    let shown = cluster.status.as_ref().map(|status| &status.conditions[..]).unwrap_or_default();
    said(shown, type_, cluster.metadata.generation).is_some_and(|said| said.0 == "True")
}

/// S13: who says that a cluster is cut off has a storage that says so; who says that it is clean has nothing standing.
fn fences_are_true(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let fence = scene
        .world
        .west
        .lock()
        .objects
        .iter()
        .find(|(place, _)| place.0 == "NetworkFence")
        .map(|one| one.1.clone());
    for cluster in scene.list::<DRCluster>().iter().filter(|cluster| cluster.name() == "east") {
        let up = fence.as_ref().is_some_and(|fence| {
            fence["spec"]["fenceState"] == "Fenced" && fence["status"]["result"] == "Succeeded"
        });
        if holds(cluster, "Fenced")
            && !up
            && cluster.spec.cluster_fence == Some(lifeboat_api::ramen::ClusterFence::Fenced)
        {
            return Err(format!("east is said to be fenced and {fence:?}"));
        }
        if holds(cluster, "Clean") && fence.is_some() {
            return Err(format!("east is said to be clean and {fence:?}"));
        }
    }
    Ok(())
}

/// S13: a validated cluster has everything that it needs.
fn validated_has_everything(scene: &Scene<'_, Ground>) -> Result<(), String> {
    for cluster in scene.list::<DRCluster>().iter().filter(|cluster| holds(cluster, "Validated")) {
        if cluster.is_going() {
            continue;
        }
        if !scene.world.proofs.has(cluster.name()) {
            return Err(format!("{} is validated and nobody tried its store", cluster.name()));
        }
        for name in [CONFIG_WORK, OPERATOR_WORK, STORES_WORK] {
            if scene.get::<ManifestWork>(cluster.name(), name).is_none() {
                return Err(format!("{} is validated without {name}", cluster.name()));
            }
        }
    }
    Ok(())
}

/// S24: what is forgotten has left nothing behind.
fn forgotten_without_a_trace(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let clusters = scene.list::<DRCluster>();
    if clusters.len() == 2 {
        return Ok(());
    }
    let known = |name: &str| clusters.iter().any(|cluster| cluster.name() == name);
    let of = "drcluster.ramendr.openshift.io/drcluster-name";
    for work in scene.list::<ManifestWork>() {
        if work.note(of).is_some_and(|name| !known(name)) {
            return Err(format!("{} is left", work.name()));
        }
    }
    for view in scene.list::<ManagedClusterView>() {
        if view.note(of).is_some_and(|name| !known(name)) {
            return Err(format!("the view {} is left", view.name()));
        }
    }
    Ok(())
}

/// S34: keys are in secrets and in what carries them, and nowhere else.
fn no_secret_is_told(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let clusters = serde_json::to_string(&scene.list::<DRCluster>()).unwrap();
    let policies = serde_json::to_string(&scene.list::<DRPolicy>()).unwrap();
    match clusters.contains(CANARY) || policies.contains(CANARY) {
        true => Err("a key is shown".into()),
        false => Ok(()),
    }
}

fn story(name: &str) -> CrashStory<Ground> {
    CrashStory::with(name, Ground::new)
        .install(definitions())
        .controller(run)
        .expects(Kind::Api)
        .quiet_for(Duration::from_secs(8))
        .invariant("S13 fences are true", fences_are_true)
        .invariant("S13 validated has everything", validated_has_everything)
        .invariant("S24 forgotten without a trace", forgotten_without_a_trace)
        .invariant("S34 no secret is told", no_secret_is_told)
        .ends_may_differ()
}

fn cluster_of(scene: &Scene<'_, Ground>, name: &str) -> Result<DRCluster, String> {
    scene.get::<DRCluster>("", name).ok_or(format!("{name} is gone"))
}

fn valid(scene: &Scene<'_, Ground>) -> Result<(), String> {
    for name in ["east", "west"] {
        if !holds(&cluster_of(scene, name)?, "Validated") {
            return Err(format!("{name} is not validated"));
        }
    }
    let policy = scene.list::<DRPolicy>().into_iter().next().ok_or("no policy")?;
    let peers = policy.status.as_ref().and_then(|status| status.async_.as_ref());
    match peers.map(|peers| peers.peer_classes.len()) {
        Some(1) => Ok(()),
        other => Err(format!("{other:?} peer classes")),
    }
}

#[test]
fn making_a_pair_survives_a_death_at_every_effect() {
    let points = story("pair")
        .expects(Kind::ObjectStore)
        .story(|cluster, ground| async move {
            let stage = ground.stage(&cluster).await;
            // West is there already: what happens for one cluster happens for another.
            ground
                .made(&stage, &cluster, async |stage: &Stage| {
                    stage.dr_cluster("west").await;
                    stage.says("west", "Validated", "True", "Succeeded").await;
                })
                .await;
            stage.dr_cluster("east").await;
            stage.policy().await;
        })
        .converges(valid)
        .run();
    assert!(points.len() >= 15, "{points:#?}");
}

#[test]
fn fencing_and_unfencing_survive_a_death_at_every_effect() {
    let points = story("fence")
        .story(|cluster, ground| async move {
            let stage = ground.in_use(&cluster).await;
            stage.fence("east", Some("Fenced")).await;
            stage.says("east", "Fenced", "True", "Fenced").await;
            stage.fence("east", Some("Unfenced")).await;
            stage.says("east", "Clean", "True", "Clean").await;
        })
        .converges(|scene| {
            let fences =
                scene.list::<ManifestWork>().into_iter().filter(|work| work.label("app") == Some("NF"));
            match (fences.count(), holds(&cluster_of(scene, "east")?, "Clean")) {
                (0, true) => valid(scene),
                other => Err(format!("{other:?}")),
            }
        })
        .run();
    assert!(points.len() >= 8, "{points:#?}");
}

#[test]
fn deleting_survives_a_death_at_every_effect() {
    story("delete")
        .story(|cluster, ground| async move {
            let stage = ground.in_use(&cluster).await;
            stage.delete(&stage.policies, &stage.policy_name()).await;
            stage.delete(&stage.clusters, "east").await;
            stage.gone(&stage.clusters, "east").await;
        })
        .converges(|scene| {
            let gone = scene.list::<DRPolicy>().is_empty() && scene.get::<DRCluster>("", "east").is_none();
            match gone && holds(&cluster_of(scene, "west")?, "Validated") {
                true => Ok(()),
                false => Err("something is left".into()),
            }
        })
        .run();
}
