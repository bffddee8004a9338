//! A death at every write of every flow, with what must hold looked at after every single write, whoever made it.

use crate::drpc::fleet::{DRPC, Names, Stage, Stores, bare_definitions, run_hub};
use crate::drpc::spoke::Spoke;
use kube::api::DeleteParams;
use lifeboat_api::cluster::PlacementDecision;
use lifeboat_api::conditions::vrg as words;
use lifeboat_api::ramen::{DRPlacementControl, DRState, VolumeReplicationGroup};
use lifeboat_api::work::ManifestWork;
use lifeboat_hub::drpc::commission::{Commission, epoch_on};
use lifeboat_hub::drpc::world::GroupWords as _;
use lifeboat_hub::words::Words as _;
use lifeboat_hub::works;
use lifeboat_testbed::{Cluster, CrashStory, Kind, Process, Scene};
use parking_lot::Mutex;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What outlives every death: the clusters, and what was seen before.
#[derive(Clone, Default)]
struct Ground {
    stores: Stores,
    stage: Arc<Mutex<Option<Stage>>>,
    spokes: Arc<Mutex<Vec<Spoke>>>,
    before: Arc<Mutex<Before>>,
    /// Whether the process that dies may begin.
    begins: Arc<AtomicBool>,
}

#[derive(Default)]
struct Before {
    epochs: BTreeMap<String, i64>,
    commissions: BTreeMap<i64, Commission>,
    phase: Option<DRState>,
}

impl Ground {
    /// Two clusters, and a hub that has nothing to do yet.
    async fn empty(&self, cluster: &Cluster) -> Stage {
        self.stage(cluster).await;
        self.begins.store(true, Ordering::SeqCst);
        self.take()
    }

    /// An application that another life of the hub has deployed, so that only what comes next is tried.
    async fn deployed(&self, cluster: &Cluster) -> Stage {
        self.stage(cluster).await;
        let mut stage = self.take();
        stage.west.with(|state| state.copied = vec!["data".into()]);
        stage.start_hub();
        stage.protect(|_| {}).await;
        stage.is("Deployed", "Completed").await;
        stage.stop_hub();
        self.begins.store(true, Ordering::SeqCst);
        stage
    }

    async fn stage(&self, cluster: &Cluster) {
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
    run_hub(process.client, process.clock, Names::fixed().space, process.world.stores.clone()).await;
}

/// One moment of a story, read once for all that must hold.
struct Sight<'a> {
    drpc: Option<DRPlacementControl>,
    works: Vec<(ManifestWork, VolumeReplicationGroup)>,
    chosen: Vec<String>,
    world: &'a Ground,
}

impl<'a> Sight<'a> {
    fn of(scene: &Scene<'a, Ground>) -> Self {
        let works = scene.list::<ManifestWork>().into_iter();
        let works = works.filter_map(|work| works::read(&work).map(|group| (work, group))).collect();
        let decisions = scene.list::<PlacementDecision>().into_iter().filter_map(|one| one.status);
        let chosen = decisions.flat_map(|status| status.decisions).filter(|one| one.reason.is_empty());
        let chosen = chosen.map(|one| one.cluster_name).collect();
        Self { drpc: scene.get("shop", DRPC), works, chosen, world: scene.world }
    }

    fn intents(&self) -> impl Iterator<Item = (&str, &VolumeReplicationGroup)> {
        self.works.iter().map(|(work, group)| (work.space(), group))
    }

    fn group(&self, cluster: &str) -> Option<VolumeReplicationGroup> {
        self.world.spokes.lock().iter().find(|spoke| spoke.name == cluster)?.group()
    }

    fn is_dead(&self, cluster: &str) -> bool {
        self.world.spokes.lock().iter().any(|spoke| spoke.name == cluster && spoke.state.lock().dead)
    }
}

/// S1: at most one cluster is meant to be primary, at any moment.
fn one_primary(sight: &Sight<'_>) -> Result<(), String> {
    let primaries: Vec<String> = sight
        .intents()
        .filter(|(_, group)| group.is_primary())
        .map(|(cluster, _)| cluster.to_owned())
        .collect();
    if primaries.len() > 1 { Err(format!("{primaries:?} are both meant to be primary")) } else { Ok(()) }
}

/// S2: whoever became primary did so at an epoch that nobody else had.
fn one_reign(sight: &Sight<'_>) -> Result<(), String> {
    let spokes = sight.world.spokes.lock();
    let reigns: Vec<i64> = spokes.iter().flat_map(|spoke| spoke.state.lock().reigns.clone()).collect();
    let mut once = reigns.clone();
    once.sort_unstable();
    once.dedup();
    if once.len() == reigns.len() { Ok(()) } else { Err(format!("reigns {reigns:?} overlap")) }
}

/// S3, S26: epochs only grow, everywhere, and mean one thing only; no work carries one that is not on record.
fn epochs_grow(sight: &Sight<'_>) -> Result<(), String> {
    let mut before = sight.world.before.lock();
    let mut grown = |name: String, epoch: i64| {
        let known = before.epochs.entry(name.clone()).or_insert(epoch);
        let fell = epoch < *known;
        let was = std::mem::replace(known, epoch);
        if fell { Err(format!("{name} fell from {was} to {epoch}")) } else { Ok(()) }
    };
    let Some(drpc) = &sight.drpc else { return Ok(()) };
    let on_record = epoch_on(drpc);
    grown("the commission".into(), on_record)?;
    for (cluster, group) in sight.intents() {
        let epoch = epoch_on(group);
        grown(format!("the work of {cluster}"), epoch)?;
        if epoch > on_record {
            return Err(format!("the work of {cluster} has epoch {epoch}, and on record is {on_record}"));
        }
    }
    if let Some(given) = Commission::on(drpc) {
        let known = before.commissions.entry(given.epoch).or_insert_with(|| given.clone());
        if known.holder != given.holder {
            return Err(format!("epoch {} was {}'s and is {}'s", given.epoch, known.holder, given.holder));
        }
    }
    Ok(())
}

/// S6: a relocation's target becomes primary only when the source has made its last copy and given up.
fn relocation_loses_nothing(sight: &Sight<'_>) -> Result<(), String> {
    for (cluster, group_) in sight.intents() {
        let Some(given) = Commission::on(group_) else { continue };
        let moved = format!("{:?}", given.act) == "Relocate" && group_.is_primary() && given.epoch > 1;
        let fresh = sight.world.before.lock().commissions.get(&(given.epoch - 1)).cloned();
        let Some(source) = fresh.map(|was| was.holder).filter(|source| moved && *source != cluster) else {
            continue;
        };
        let Some(left) = sight.group(&source) else { continue };
        if left.is_primary() && epoch_on(&left) < given.epoch && !sight.is_dead(&source) {
            return Err(format!("{cluster} was promoted while {source} is still primary"));
        }
    }
    Ok(())
}

/// S25: the application is meant to be in one place, and only where data can be used.
fn placed_well(sight: &Sight<'_>) -> Result<(), String> {
    let chosen = &sight.chosen;
    let [home] = &chosen[..] else {
        return if chosen.is_empty() { Ok(()) } else { Err(format!("it is placed on {chosen:?}")) };
    };
    let Some(drpc) = &sight.drpc else { return Ok(()) };
    let Some(given) = Commission::on(drpc) else { return Err(format!("it is placed on {home} by nobody")) };
    if given.holder != *home || format!("{:?}", given.act) == "Deploy" {
        return Ok(());
    }
    let ready = sight.group(home).is_some_and(|group| group.says(words::TYPE_CLUSTER_DATA_READY));
    if ready || sight.is_dead(home) {
        Ok(())
    } else {
        Err(format!("it is placed on {home}, which has no data"))
    }
}

/// S13: what is said to have arrived has arrived.
fn phases_are_honest(sight: &Sight<'_>) -> Result<(), String> {
    let Some(drpc) = &sight.drpc else { return Ok(()) };
    let phase = drpc.status.clone().unwrap_or_default().phase;
    let was = std::mem::replace(&mut sight.world.before.lock().phase, phase.clone());
    if phase == was {
        return Ok(());
    }
    legal(was.as_ref(), phase.as_ref())?;
    let arrived = matches!(phase, Some(DRState::FailedOver | DRState::Relocated | DRState::Deployed));
    let given = Commission::on(drpc);
    let home = given.as_ref().map(|given| given.holder.clone()).unwrap_or_default();
    if arrived && sight.chosen != [home.clone()] {
        return Err(format!("{phase:?} on {home}, and it is placed on {:?}", sight.chosen));
    }
    Ok(())
}

/// S27: phases follow each other as they are documented to.
fn legal(was: Option<&DRState>, is: Option<&DRState>) -> Result<(), String> {
    let text = |phase: Option<&DRState>| phase.map_or("", DRState::as_str).to_owned();
    let (was, is) = (text(was), text(is));
    let ok = match (was.as_str(), is.as_str()) {
        (_, "Deleting") | ("", _) => true,
        ("Initiating", next) => next != "WaitForUser",
        ("Deploying", "Deployed") | ("FailingOver", "FailedOver") | ("Relocating", "Relocated") => true,
        ("Deployed" | "FailedOver" | "Relocated", "Initiating" | "FailingOver" | "Relocating") => true,
        // An action that was changed on the way.
        ("Relocating", "Initiating" | "FailingOver" | "Deployed" | "FailedOver") => true,
        ("FailingOver", "Initiating" | "Relocating") | ("Deploying", "Initiating") => true,
        ("WaitForUser", _) => true,
        _ => false,
    };
    if ok { Ok(()) } else { Err(format!("from {was:?} to {is:?}")) }
}

/// S10: while protection is removed the application stays placed, and nobody takes back the primary's group before the others'.
fn deletion_keeps_the_application(sight: &Sight<'_>) -> Result<(), String> {
    let groups = &sight.works;
    let primary_goes = groups.iter().any(|(work, group)| group.is_primary() && work.is_going());
    let others = groups.iter().filter(|(work, group)| !group.is_primary() && !sight.is_dead(work.space()));
    if primary_goes && others.count() > 0 {
        return Err("the primary's group goes before the secondary's".into());
    }
    match primary_goes && sight.chosen.is_empty() {
        true => Err("protection is removed while the application is nowhere".into()),
        false => Ok(()),
    }
}

type Rule = fn(&Sight<'_>) -> Result<(), String>;

fn story(name: &str) -> CrashStory<Ground> {
    CrashStory::with(name, Ground::default)
        .install(bare_definitions())
        .controller(run)
        .expects(Kind::Api)
        .quiet_for(std::time::Duration::from_secs(3))
        .invariant("what must hold", |scene| {
            let sight = Sight::of(scene);
            let rules: [(&str, Rule); 7] = [
                ("S1 one primary", one_primary),
                ("S2 one reign", one_reign),
                ("S3 S26 epochs grow", epochs_grow),
                ("S6 relocation loses nothing", relocation_loses_nothing),
                ("S10 deletion keeps the application", deletion_keeps_the_application),
                ("S13 S27 phases are honest", phases_are_honest),
                ("S25 placed well", placed_well),
            ];
            rules.iter().try_for_each(|(name, rule)| rule(&sight).map_err(|why| format!("{name}: {why}")))
        })
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

#[tokio::test(start_paused = true)]
async fn a_deployment_survives_a_death_at_every_write() {
    let points = story("deploy")
        .story(|cluster, ground| async move {
            let stage = ground.empty(&cluster).await;
            stage.east.with(|state| state.copied = vec!["data".into()]);
            stage.protect(|_| {}).await;
            ground.put(stage);
        })
        .converges(|scene| ends(scene, "Deployed", 1, "east"))
        .run()
        .await;
    assert!(points.len() >= 12, "{points:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_failover_survives_a_death_at_every_write() {
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
        .run()
        .await;
    assert!(points.len() >= 10, "{points:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_relocation_survives_a_death_at_every_write() {
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
        .run()
        .await;
    assert!(points.len() >= 12, "{points:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_survives_a_death_at_every_write() {
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
        .run()
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_amid_a_relocation_survives_a_death_at_every_write() {
    story("delete amid a relocation")
        .story(|cluster, ground| async move {
            let stage = ground.deployed(&cluster).await;
            stage.east.with(|state| state.cannot_copy = true);
            stage.relocate(&stage.west).await;
            stage.is("Relocating", "RunningFinalSync").await;
            stage.drpcs.delete(DRPC, &DeleteParams::default()).await.unwrap();
            stage.gone().await;
            ground.put(stage);
        })
        .converges(|scene| match (drpc(scene), chosen(scene)) {
            (None, home) if home == ["east"] => Ok(()),
            (_, home) => Err(format!("it is on {home:?}")),
        })
        .run()
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_change_of_mind_survives_a_death_at_every_write() {
    story("relocate, then fail over back")
        .story(|cluster, ground| async move {
            let stage = ground.deployed(&cluster).await;
            stage.west.with(|state| state.cannot_restore = true);
            stage.relocate(&stage.west).await;
            stage.is("Relocating", "WaitingForResourceRestore").await;
            stage.ask(json!({ "action": "Failover", "failoverCluster": "east" })).await;
            ground.put(stage);
        })
        .converges(|scene| ends(scene, "FailedOver", 3, "east"))
        .run()
        .await;
}
