//! Letting go of an application. It keeps running where it is: only what protects it is taken back, the secondary's first. A move under way is
//! brought to rest before, for in its middle the application is nowhere. A cluster that does not answer holds nothing up: what is to go from it goes when
//! it returns.

use crate::drpc::commission::{Act, Commission};
use crate::drpc::decide::{Effect, Peer, Report, Step, carry, commission, next_epoch, orphan, put};
use crate::drpc::group::{Builder, FinalSync};
use crate::drpc::why::Wait;
use crate::drpc::world::{Chosen, GroupWords as _, Site, World};
use crate::views::Seen;
use crate::words::Words as _;
use jiff::Timestamp;
use lifeboat_api::ramen::{DRState, Progression};
use lifeboat_api::{annotations, finalizers};

/// Whether protection is to be removed: because the DRPlacementControl goes, or the placement it moves.
pub fn is_going(world: &World) -> bool {
    world.drpc.is_going() || is_placement_going(world)
}

fn is_placement_going(world: &World) -> bool {
    world.placement.as_ref().is_some_and(|one| one.is_going())
        || world.rule.as_ref().is_some_and(|one| one.is_going())
}

fn report() -> Report {
    Report::new(
        DRState::Deleting,
        Progression::Deleting,
        Peer::Progressing("protection is being removed".into()),
    )
}

/// Lets go. People are told before the first thing is taken back.
pub fn delete(world: &World, now: Timestamp) -> Step {
    match next(world, now) {
        Step::Do(effects, None) if world.phase() != Some(DRState::Deleting) => {
            Step::Do(effects, Some(report()))
        }
        step => step,
    }
}

fn next(world: &World, now: Timestamp) -> Step {
    if !world.drpc.has_finalizer(finalizers::DRPC) {
        return match is_placement_held(world) {
            true => Step::one(Effect::ReleasePlacement),
            false => Step::Rest(report()),
        };
    }
    if !is_placement_going(world)
        && let Some(step) = come_to_rest(world, now)
    {
        return step;
    }
    if let Some(step) = take_back(world, now) {
        return step;
    }
    if is_placement_held(world) {
        return Step::one(Effect::ReleasePlacement);
    }
    match world.drpc.is_going() {
        true => Step::one(Effect::Release),
        false => {
            let why = "the placement is being deleted, and its DRPlacementControl goes with it".to_owned();
            Step::Rest(report().waiting(Wait::Removing(why)))
        }
    }
}

/// An application that was taken off its cluster is put back, or arrives, before anything else.
fn come_to_rest(world: &World, now: Timestamp) -> Option<Step> {
    let known = world.commission();
    // Where it was, it would start empty.
    if known.as_ref().is_some_and(|known| orphan::is_orphaned(world, now, known)) {
        return None;
    }
    let holder = known.as_ref().and_then(|known| world.site(&known.holder));
    if let (Some(known), Some(holder)) = (&known, holder)
        && FinalSync::asked(holder.intent.as_ref()) != FinalSync::None
    {
        // Nothing has changed its role yet: the application goes back to where it was.
        let wanted = Builder::new(world, known, now).primary(holder, FinalSync::None);
        return put(world, &holder.name, wanted).map(Step::one);
    }
    let deployed = world.drpc.note(annotations::LAST_APP_DEPLOYMENT_CLUSTER).is_some();
    if !deployed || world.is_placed() || world.policy.is_none() {
        return None;
    }
    if let Some(step) = look_again(world) {
        return Some(step);
    }
    // What the hub remembers may be of an older day: nothing changes its role before everybody who can has told what he has.
    if let Some(step) = unheard(world, now) {
        return Some(step);
    }
    let Some(known) = known else { return by_sight(world, now) };
    let holder = holder?;
    if holder.is_meant_primary() && holder.intended_epoch() == known.epoch && known.act == Act::Deploy {
        return Some(Step::one(Effect::Place { chosen: vec![Chosen::home(&known.holder)] }));
    }
    let other = world.peer_of(&known.holder);
    if !holder.is_fresh(now)
        && let Some(other) = other.filter(|other| other.is_fresh(now) && known.act != Act::Deploy)
    {
        // The target died on the way: what it left has everything.
        let given = Commission { epoch: next_epoch(world), holder: other.name.clone(), act: Act::Failover };
        return Some(Step::one(commission(world, given)));
    }
    if holder.managed.is_none() && other.is_none_or(|other| other.managed.is_none()) {
        return None;
    }
    match carry::carry(world, now, &known) {
        Step::Do(effects, _) => Some(Step::Do(effects, None)),
        Step::Rest(under_way) => Some(unfinished(under_way.waits)),
    }
}

fn unfinished(waits: Vec<Wait>) -> Step {
    let mut report = report();
    let why =
        "the application is between two clusters; it is placed before its protection is removed".to_owned();
    report.waits.push(Wait::FinishingMove(why));
    report.waits.extend(waits);
    Step::Rest(report)
}

/// A hub that lost its memory while it was letting go has to look before it can place anything.
fn look_again(world: &World) -> Option<Step> {
    // Views that are all gone were taken back by us, once we had said that we are deleting.
    if world.phase() == Some(DRState::Deleting) && world.sites.values().all(|site| site.view.is_none()) {
        return None;
    }
    let unseen =
        world.members().into_iter().filter(|name| world.site(name).is_some_and(|site| site.view.is_none()));
    let effects: Vec<Effect> = unseen.map(|name| Effect::Watch { cluster: name.to_owned() }).collect();
    (!effects.is_empty()).then_some(Step::Do(effects, None))
}

/// Clusters that were asked, can be reached and have not told yet what they have.
fn unheard(world: &World, now: Timestamp) -> Option<Step> {
    let sites = world.members().into_iter().filter_map(|name| world.site(name));
    let pending = sites.filter(|site| site.view.is_some() && site.is_fresh(now) && site.seen == Seen::NotYet);
    let waits: Vec<Wait> = pending
        .map(|site| {
            Wait::ViewPending(format!("cluster {} has not told yet whether it has the group", site.name))
        })
        .collect();
    (!waits.is_empty()).then(|| unfinished(waits))
}

/// Nobody remembers where the application was: it is where the only primary is.
fn by_sight(world: &World, now: Timestamp) -> Option<Step> {
    let sites: Vec<&Site> = world.members().into_iter().filter_map(|name| world.site(name)).collect();
    let primaries: Vec<&&Site> =
        sites.iter().filter(|site| site.group(now).is_some_and(|group| group.is_primary())).collect();
    match primaries[..] {
        [site] => Some(Step::one(Effect::Place { chosen: vec![Chosen::home(&site.name)] })),
        _ => None,
    }
}

/// The order to end protection goes to every cluster that answers, before anything is deleted: a group that is deleted without it is orphaned and
/// keeps everything. Nothing where all that answer have it.
fn order(world: &World, now: Timestamp) -> Option<Step> {
    let mut effects = Vec::new();
    let mut waits = Vec::new();
    let there = world.sites.values().filter(|site| site.is_fresh(now));
    for site in there.filter(|site| site.work.as_ref().is_some_and(|work| !work.is_going())) {
        let (Some(work), Some(intent)) = (&site.work, &site.intent) else { continue };
        if !intent.ends_protection() {
            let mut group = intent.clone();
            let notes = group.metadata.annotations.get_or_insert_default();
            notes.insert(annotations::END_PROTECTION.to_owned(), "true".to_owned());
            effects.push(Effect::EndProtection {
                cluster: site.name.clone(),
                over: work.metadata.resource_version.clone(),
                group: Box::new(group),
            });
        }
        if site.view.is_none() {
            effects.push(Effect::Watch { cluster: site.name.clone() });
        }
        let told = match &site.seen {
            Seen::Found(group) => group.ends_protection(),
            // Whatever is made of the work from now on has the order.
            Seen::Absent | Seen::NotYet | Seen::Failed(_) => {
                crate::works::is_applied(work) || crate::works::refusal(work).is_some()
            }
        };
        if !told {
            let refused = crate::works::refusal(work).map(|why| format!(": {why}")).unwrap_or_default();
            waits.push(Wait::EndingProtection(format!(
                "Waiting for the VRG {} on cluster {} to show the order to end protection{refused}.",
                world.group_key(),
                site.name
            )));
        }
    }
    if !effects.is_empty() {
        return Some(Step::Do(effects, None));
    }
    let mut report = report();
    report.waits = waits;
    (!report.waits.is_empty()).then_some(Step::Rest(report))
}

/// Takes back what was sent: the secondary's group, then the primary's, then everything else.
fn take_back(world: &World, now: Timestamp) -> Option<Step> {
    let chosen = world.chosen();
    // Nobody is left who would take the application off a failed cluster when it returns.
    if chosen.iter().any(|one| one.retained) && world.is_placed() && !is_placement_going(world) {
        let kept: Vec<Chosen> = chosen.into_iter().filter(|one| !one.retained).collect();
        return Some(Step::one(Effect::Place { chosen: kept }));
    }
    if let Some(step) = order(world, now) {
        return Some(step);
    }
    let (primaries, secondaries): (Vec<&Site>, Vec<&Site>) =
        world.sites.values().partition(|site| site.is_meant_primary());
    for round in [secondaries, primaries] {
        let there: Vec<&Site> = round.into_iter().filter(|site| site.has_group_work()).collect();
        let effects: Vec<Effect> = there.iter().filter_map(|site| withdraw(site)).collect();
        if !effects.is_empty() {
            return Some(Step::Do(effects, None));
        }
        let slow: Vec<Wait> = there
            .iter()
            .filter(|site| site.is_fresh(now))
            .map(|site| Wait::Removing(format!("the group is being removed from cluster {}", site.name)))
            .collect();
        if !slow.is_empty() {
            let mut report = report();
            report.waits = slow;
            return Some(Step::Rest(report));
        }
    }
    let rest = |site: &&Site| {
        let sent = [&site.space_work, &site.key_work].into_iter().flatten();
        sent.into_iter().any(|work| !work.is_going())
            || site.view.as_ref().is_some_and(|view| !view.is_going())
    };
    let effects: Vec<Effect> = world
        .sites
        .values()
        .filter(rest)
        .map(|site| Effect::TakeBackRest { cluster: site.name.clone() })
        .collect();
    (!effects.is_empty()).then_some(Step::Do(effects, None))
}

fn withdraw(site: &Site) -> Option<Effect> {
    let work = site.work.as_ref().filter(|work| !work.is_going())?;
    Some(Effect::TakeBackGroup { cluster: site.name.clone(), over: work.metadata.resource_version.clone() })
}

fn is_placement_held(world: &World) -> bool {
    let ours = |held: bool, named: Option<lifeboat_engine::ObjectKey>| {
        held && named.is_none_or(|key| key == world.key())
    };
    let placement = world.placement.as_ref().is_some_and(|one| {
        ours(
            one.has_finalizer(finalizers::DRPC),
            one.named_by(annotations::DRPC_NAMESPACE, annotations::DRPC_NAME),
        )
    });
    let rule = world.rule.as_ref().is_some_and(|one| {
        ours(
            one.has_finalizer(finalizers::DRPC),
            one.named_by(annotations::DRPC_NAMESPACE, annotations::DRPC_NAME),
        )
    });
    placement || rule
}
