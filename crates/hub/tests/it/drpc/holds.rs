//! What must hold after every single write of a story, whoever made it.

use crate::drpc::crash::Ground;
use crate::drpc::fleet::DRPC;
use lifeboat_api::cluster::PlacementDecision;
use lifeboat_api::conditions::vrg as words;
use lifeboat_api::ramen::{DRPlacementControl, DRState, VolumeReplicationGroup};
use lifeboat_api::work::ManifestWork;
use lifeboat_hub::drpc::commission::{Commission, epoch_on};
use lifeboat_hub::drpc::world::GroupWords as _;
use lifeboat_hub::words::Words as _;
use lifeboat_hub::works;
use lifeboat_testbed::Scene;
use std::collections::BTreeMap;

type Rule = fn(&Sight<'_>) -> Result<(), String>;

/// All that must hold.
pub fn holds(scene: &Scene<'_, Ground>) -> Result<(), String> {
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
}

/// What was seen before.
#[derive(Default)]
pub struct Before {
    epochs: BTreeMap<String, i64>,
    commissions: BTreeMap<i64, Commission>,
    phase: Option<DRState>,
}

/// One moment of a story, read once for all that must hold.
pub struct Sight<'a> {
    drpc: Option<DRPlacementControl>,
    works: Vec<(ManifestWork, VolumeReplicationGroup)>,
    pub chosen: Vec<String>,
    world: &'a Ground,
}

impl<'a> Sight<'a> {
    pub fn of(scene: &Scene<'a, Ground>) -> Self {
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
    // One that says nothing is new, or came back from a backup; its groups may have been taken up as they are.
    if on_record == 0 {
        return Ok(());
    }
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
    // One without a phase is new, or came back from a backup.
    if phase == was || phase.is_none() {
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
