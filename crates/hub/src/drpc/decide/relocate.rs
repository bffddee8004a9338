//! Relocation: nothing may be lost. The application is quiesced, a last copy is made, all volumes become secondary, and only then does the target
//! become primary. The epoch is given out once the last copy is complete: until then everything can be taken back, after it the move goes
//! forward.

use crate::drpc::commission::{Act, Commission, epoch_on};
use crate::drpc::decide::failover::is_fenced;
use crate::drpc::decide::{Effect, Peer, Report, Step, carry, commission, next_epoch, put};
use crate::drpc::group::{Builder, FinalSync};
use crate::drpc::status::told_by;
use crate::drpc::why::Wait;
use crate::drpc::world::{Chosen, GroupWords as _, Site, World};
use crate::views::Reach;
use crate::words::Words as _;
use jiff::{SignedDuration, Timestamp};
use lifeboat_api::conditions::vrg as words;
use lifeboat_api::ramen::{DRState, Progression, ProtectedPvc, VolumeReplicationGroup, VrgState};
use lifeboat_api::{Interval, annotations};
use lifeboat_engine::Why as _;
use std::sync::Arc;

/// Begins a relocation, or goes on with one that has not reached its point of no return.
pub fn begin(world: &World, now: Timestamp, known: &Commission, target: &str) -> Step {
    // A failover that has not given the role yet gives something up: it goes its way, and is not called a relocation before.
    if known.holder == target
        && known.act == Act::Failover
        && world.site(target).is_some_and(|site| !is_promoted(site, known))
    {
        return carry::carry(world, now, known);
    }
    if known.holder == target {
        let given = Commission { act: Act::Relocate, ..known.clone() };
        let report = Report::new(DRState::Relocating, Progression::WaitForReadiness, Peer::NotStarted);
        return Step::Do(vec![commission(world, given)], Some(report));
    }
    let (Some(source), Some(target)) = (world.site(&known.holder), world.site(target)) else {
        return initiating(Wait::Invalid(format!("cluster {target} or {} is not known", known.holder)));
    };
    // What was asked of it at an earlier epoch is not ours to go on with.
    let asked = match is_promoted(source, known) {
        true => FinalSync::asked(source.intent.as_ref()),
        false => FinalSync::None,
    };
    if asked == FinalSync::None {
        // What the last action left undone comes first.
        let waits = match carry::carry(world, now, known) {
            Step::Do(effects, _) => return Step::Do(effects, None),
            Step::Rest(under_way) => under_way.waits,
        };
        if let Err(why) = may_begin(world, now, known, source, target) {
            return initiating(why);
        }
        if world.chosen() != [Chosen::home(&source.name)] {
            let why = "what the last action left is not cleaned up yet".to_owned();
            let report = Report::new(DRState::Initiating, Progression::PreparingFinalSync, Peer::NotStarted);
            return Step::Rest(Report { waits, ..report }.waiting(Wait::CleanupPending(why)));
        }
        return ask(world, now, known, source, FinalSync::Prepare, Progression::PreparingFinalSync);
    }
    quiesce(world, now, known, source, target, asked)
}

/// How long a cluster that a relocation needs may be silent, while the application is stopped.
const SILENT_FOR: SignedDuration = SignedDuration::from_mins(5);
/// How long scheduled copies may take to stop, and a final sync to end, where the user does not say.
const SYNC_FOR: SignedDuration = SignedDuration::from_mins(30);

/// How long a wait may last before the relocation is called off; nothing for one that ends by itself or is the user's.
fn patience(world: &World, why: &Wait) -> Option<SignedDuration> {
    match why {
        Wait::ClusterSilent(_) | Wait::GroupNotSeen(_) => Some(SILENT_FOR),
        Wait::PreparingFinalSync(_) | Wait::RunningFinalSync(_) => {
            let text = world.drpc.note(annotations::FINAL_SYNC_WITHIN).unwrap_or_default();
            let said = Interval::of(text).map(|within| SignedDuration::from_secs(within.seconds()));
            Some(said.unwrap_or(SYNC_FOR))
        }
        _ => None,
    }
}

/// A wait before the point of no return, which ends: when it has lasted too long, the relocation is called off, and the application goes back to where
/// it was.
fn waits(world: &World, now: Timestamp, progression: Progression, why: Wait) -> Step {
    let report = relocating(progression);
    let Some(patience) = patience(world, &why) else { return Step::Rest(report.waiting(why)) };
    let shown = world.shown().blockers;
    let since = shown.iter().find(|one| one.reason == why.reason()).and_then(|one| one.since.as_ref());
    let until = since.map_or(now, |since| since.0).checked_add(patience).unwrap_or(Timestamp::MAX);
    if now < until {
        return Step::Rest(report.waiting(why).until(Some(until)));
    }
    let told = format!("{}: {why}", world.drpc.generation());
    Step::Do(vec![Effect::CallOff { why: told }], Some(report.waiting(why)))
}

/// What is said of a relocation that was called off and that nobody has asked for anew.
pub fn is_called_off(world: &World, known: &Commission) -> Option<Wait> {
    let (generation, why) = world.drpc.note(annotations::CALLED_OFF)?.split_once(": ")?;
    let same = generation.parse() == Ok(world.drpc.generation());
    let target = world.drpc.spec.preferred_cluster.as_deref().unwrap_or_default();
    (same && target != known.holder).then(|| {
        Wait::CalledOff(format!(
            "The relocation to {target} was called off before its point of no return: {why}. The application stays on {}. To try again, remove the \
             action and set it again.",
            known.holder
        ))
    })
}

fn initiating(why: Wait) -> Step {
    Step::Rest(
        Report::new(DRState::Initiating, Progression::PreparingFinalSync, Peer::NotStarted).waiting(why),
    )
}

fn relocating(progression: Progression) -> Report {
    Report::new(DRState::Relocating, progression, Peer::NotStarted)
}

/// What must hold before the application is touched.
pub fn may_begin(
    world: &World,
    now: Timestamp,
    known: &Commission,
    source: &Site,
    target: &Site,
) -> Result<(), Wait> {
    let here = heard(world, now, source, known.epoch)?;
    let there = heard(world, now, target, known.epoch)?;
    if there.is_primary() {
        return Err(Wait::CleanupPending(format!("the group on cluster {} is still primary", target.name)));
    }
    if !here.is_primary() {
        return Err(Wait::SourceNotReady(format!("the group on cluster {} is not primary", source.name)));
    }
    if world.is_metro() && is_fenced(target) {
        return Err(Wait::TargetFenced(format!(
            "cluster {} is fenced off: set clusterFence of its DRCluster to Unfenced first",
            target.name
        )));
    }
    for condition in [words::TYPE_DATA_READY, words::TYPE_CLUSTER_DATA_PROTECTED] {
        if !here.says(condition) {
            return Err(Wait::SourceNotReady(format!(
                "the group on cluster {} has not completed its protection: {condition} is not True{}",
                source.name,
                told_by(here)
            )));
        }
    }
    // Whoever takes the application off its cluster deletes PVCs that nobody protects.
    if let Some(why) = world.no_claims(here) {
        return Err(Wait::NotProtected(why));
    }
    if is_unsent(here) {
        return Err(Wait::SourceNotReady(never_copied(source)));
    }
    if there.state() != Some(&VrgState::Secondary) {
        return Err(Wait::CleanupPending(format!(
            "the group on cluster {} is not Secondary yet{}",
            target.name,
            told_by(there)
        )));
    }
    Ok(())
}

/// Whether a group names claims that movers copy and knows of no copy. Ramen's cluster operator calls the last copy complete where it copies
/// nothing, and lists claims that it does not copy.
fn is_uncopied(group: &VolumeReplicationGroup) -> bool {
    let told = group.status.as_ref().and_then(|status| status.last_group_sync_time.as_ref());
    told.is_none() && group.copied().next().is_some()
}

/// Whether it is not even set up that they are copied. That operator looks at copies only when it is told something new, so before it is told to
/// prepare it may know of a sender and of no copy.
fn is_unsent(group: &VolumeReplicationGroup) -> bool {
    let sent = |claim: &ProtectedPvc| {
        claim
            .conditions
            .iter()
            .any(|one| one.type_ == words::TYPE_REPLICATION_SOURCE_SETUP && one.status == "True")
    };
    is_uncopied(group) && !group.copied().all(sent)
}

fn never_copied(source: &Site) -> String {
    format!(
        "the group on cluster {} lists claims that are copied and knows of no copy: nothing shows that the other side has the data; \
         look at the group's ReplicationSources there",
        source.name
    )
}

/// The group of a cluster that answers, told of the present epoch.
fn heard<'a>(
    world: &World,
    now: Timestamp,
    site: &'a Site,
    epoch: i64,
) -> Result<&'a Arc<VolumeReplicationGroup>, Wait> {
    if let Reach::Silent(why) = site.reach(now) {
        return Err(Wait::ClusterSilent(format!("{why}; a relocation needs both clusters")));
    }
    let missing = || {
        Wait::GroupNotSeen(format!(
            "cluster {} does not show the group {} at epoch {epoch}",
            site.name,
            world.group_key()
        ))
    };
    site.group_at(epoch, now).ok_or_else(missing)
}

/// The application is taken off its cluster, and the last copy made.
fn quiesce(
    world: &World,
    now: Timestamp,
    known: &Commission,
    source: &Site,
    target: &Site,
    asked: FinalSync,
) -> Step {
    let progression =
        if asked == FinalSync::Run { Progression::RunningFinalSync } else { Progression::PreparingFinalSync };
    let here = match heard(world, now, source, known.epoch) {
        Ok(here) => here,
        Err(why) => return waits(world, now, progression, why),
    };
    let status = here.status.clone().unwrap_or_default();
    let waits = |why: Wait| waits(world, now, progression.clone(), why);
    // A last copy to a cluster that is gone never ends, and the application is stopped for it.
    if let Err(why) = heard(world, now, target, known.epoch) {
        return waits(why);
    }
    if asked == FinalSync::Prepare {
        if !(here.spec.prepare_for_final_sync && here.is_observed() && status.prepare_for_final_sync_complete)
        {
            let why =
                format!("cluster {} has not stopped its scheduled copies yet{}", source.name, told_by(here));
            return waits(Wait::PreparingFinalSync(why));
        }
        if !world.chosen().is_empty() {
            return Step::Do(
                vec![Effect::Place { chosen: vec![] }],
                Some(relocating(Progression::ClearingPlacement)),
            );
        }
        return ask(world, now, known, source, FinalSync::Run, Progression::RunningFinalSync);
    }
    if !world.chosen().is_empty() {
        return Step::one(Effect::Place { chosen: vec![] });
    }
    if !(here.spec.run_final_sync && here.is_observed() && status.final_sync_complete) {
        let why = format!("the last copy from cluster {} is not complete{}", source.name, told_by(here));
        return waits(Wait::RunningFinalSync(why));
    }
    if is_uncopied(here) {
        return waits(Wait::RunningFinalSync(never_copied(source)));
    }
    let given = Commission { epoch: next_epoch(world), holder: target.name.clone(), act: Act::Relocate };
    Step::Do(vec![commission(world, given)], Some(relocating(Progression::FinalSyncComplete)))
}

fn ask(
    world: &World,
    now: Timestamp,
    known: &Commission,
    source: &Site,
    last: FinalSync,
    progression: Progression,
) -> Step {
    let wanted = Builder::new(world, known, now).primary(source, last);
    match put(world, &source.name, wanted) {
        Some(effect) => Step::Do(vec![effect], Some(relocating(progression))),
        None => Step::Rest(relocating(progression)),
    }
}

/// Whether the holder of a commission was told to be primary at it.
pub fn is_promoted(holder: &Site, known: &Commission) -> bool {
    match &holder.intent {
        Some(intent) => intent.is_primary() && epoch_on(intent) == known.epoch,
        None => holder.seen.found().is_some_and(|seen| seen.is_primary() && epoch_on(&**seen) == known.epoch),
    }
}

/// After the point of no return: every volume becomes secondary, and all data is at the target, before it is promoted. Nothing where that is done.
pub fn give_up(world: &World, now: Timestamp, known: &Commission) -> Option<Step> {
    let builder = Builder::new(world, known, now);
    let report = relocating(Progression::EnsuringVolumesAreSecondary);
    let sites: Vec<&Site> = world.members().into_iter().filter_map(|name| world.site(name)).collect();
    let mut effects: Vec<Effect> =
        sites.iter().filter_map(|site| put(world, &site.name, builder.secondary(site))).collect();
    if !world.chosen().is_empty() {
        effects.push(Effect::Place { chosen: vec![] });
    }
    if !effects.is_empty() {
        return Some(Step::Do(effects, Some(report)));
    }
    for site in sites {
        if let Err(why) = has_given_up(world, now, known, site) {
            return Some(Step::Rest(report.waiting(why)));
        }
    }
    None
}

fn has_given_up(world: &World, now: Timestamp, known: &Commission, site: &Site) -> Result<(), Wait> {
    let group = heard(world, now, site, known.epoch)?;
    if !group.is_secondary() || group.state() != Some(&VrgState::Secondary) {
        let why = format!("the group on cluster {} is not Secondary yet{}", site.name, told_by(group));
        return Err(Wait::NotSecondary(why));
    }
    if site.name != known.holder && !group.says(words::TYPE_DATA_PROTECTED) {
        let why =
            format!("not all data of cluster {} is at {} yet{}", site.name, known.holder, told_by(group));
        return Err(Wait::NotProtected(why));
    }
    Ok(())
}
