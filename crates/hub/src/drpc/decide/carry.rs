//! Carrying out a commission: the old primary steps down on record, the holder is promoted, and when its data can be used the application is placed
//! there. The same steps whichever action it was; a steady application passes through all of them with nothing to do.

use crate::drpc::commission::{Act, Commission};
use crate::drpc::decide::{
    Effect, Peer, Report, Step, arrived, commission, obstacle, orphan, put, put_space, recover, relocate,
    settle, underway,
};
use crate::drpc::group::{Builder, FinalSync, is_ready};
use crate::drpc::status::told_by;
use crate::drpc::why::Wait;
use crate::drpc::world::{Chosen, GroupWords as _, Site, World};
use crate::views::Reach;
use crate::words::Words as _;
use jiff::Timestamp;
use lifeboat_api::annotations;
use lifeboat_api::conditions::vrg as words;
use lifeboat_api::ramen::Progression;

/// Carries a commission out.
pub fn carry(world: &World, now: Timestamp, known: &Commission) -> Step {
    if world.commission().as_ref() != Some(known) {
        let report = Report::new(underway(known.act), Progression::CreatingMW, Peer::NotStarted);
        return Step::Do(vec![commission(world, known.clone())], Some(report));
    }
    let Some(holder) = world.site(&known.holder) else {
        let why =
            format!("cluster {}, where the application is, does not belong to the policy", known.holder);
        let report = Report::new(underway(known.act), Progression::CreatingMW, Peer::NotStarted);
        return Step::Rest(report.waiting(Wait::Invalid(why)));
    };
    let peer = world.peer_of(&known.holder);
    if known.act == Act::Relocate
        && !relocate::is_promoted(holder, known)
        && let Some(step) = relocate::give_up(world, now, known)
    {
        return step;
    }
    if let Some(step) = step_down(world, now, known, peer) {
        return step;
    }
    if let Some(step) = promote(world, now, known, holder) {
        return step;
    }
    if let Some(step) = orphan::wait(world, now, known) {
        return step;
    }
    let ready = readiness(world, now, known, holder);
    let here = has_arrived(world, known);
    if let (Err((progression, why)), false) = (&ready, here || is_first(world, known)) {
        if let Some(effect) = take_off(world, now, known, peer) {
            return Step::one(effect);
        }
        let report = Report::new(underway(known.act), progression.clone(), Peer::NotStarted);
        return Step::Rest(report.waiting(why.clone()));
    }
    if let Some(effect) = place(world, now, known, peer) {
        let report = Report::new(underway(known.act), Progression::UpdatingPlRule, Peer::NotStarted);
        return Step::Do(vec![effect], (!here).then_some(report));
    }
    if !is_noted(world, known, holder) {
        let (cluster, id) = (holder.name.clone(), holder.id().map(str::to_owned));
        return Step::one(Effect::NotePlaced { cluster, id, act: known.act });
    }
    let restored =
        holder.intent.as_ref().filter(|_| here).and_then(|intent| intent.note(annotations::TO_POINT));
    if restored
        .is_some_and(|point| !point.is_empty() && world.drpc.note(annotations::TO_POINT) == Some(point))
    {
        return Step::one(Effect::ForgetPoint);
    }
    if ready.is_ok() && is_restored_here(world, holder) {
        return Step::one(Effect::ForgetRestore);
    }
    if let (Err((progression, why)), false) = (&ready, here) {
        let report = Report::new(underway(known.act), progression.clone(), Peer::NotStarted);
        return Step::Rest(report.waiting(why.clone()));
    }
    settle::settle(world, now, known, holder, peer, ready.err().map(|(_, why)| why))
}

/// The order to use volumes again that an accident left.
fn restore_order(world: &World) -> Option<&str> {
    world.drpc.note(annotations::RESTORE_ORPHANS).filter(|order| !order.is_empty())
}

/// Whether the application makes its PVCs itself, so that it is placed before there is anything to restore. After an accident the PVCs are restored first:
/// those that it would make are empty, and in the way.
fn is_first(world: &World, known: &Commission) -> bool {
    known.act == Act::Deploy && restore_order(world).is_none() && !was_taken_off(world, known)
}

/// Whether the application was placed on its holder before and is placed nowhere now: a relocation that does not happen took it off. Its PVCs come back
/// with their volumes first.
fn was_taken_off(world: &World, known: &Commission) -> bool {
    let placed = world.drpc.note(annotations::LAST_APP_DEPLOYMENT_CLUSTER) == Some(known.holder.as_str());
    placed && world.chosen().is_empty()
}

/// Whether the group has the order to use volumes again that an accident left, and has done so: the next accident is asked about anew.
fn is_restored_here(world: &World, holder: &Site) -> bool {
    let order = restore_order(world);
    let group = holder.seen.found().filter(|group| group.says(words::TYPE_CLUSTER_DATA_READY));
    order.is_some() && order == group.and_then(|group| group.note(annotations::RESTORE_ORPHANS))
}

/// Whether people were told that the application has arrived, by this very commission.
pub fn has_arrived(world: &World, known: &Commission) -> bool {
    world.phase() == Some(arrived(known.act)) && world.shown().epoch == Some(known.epoch)
}

/// Nobody else is meant to be primary when the holder is told to be.
fn step_down(world: &World, now: Timestamp, known: &Commission, peer: Option<&Site>) -> Option<Step> {
    let peer = peer.filter(|peer| peer.is_meant_primary())?;
    let mut effects: Vec<Effect> =
        put(world, &peer.name, Builder::new(world, known, now).secondary(peer)).into_iter().collect();
    // The application stays where it is, if it still is, until its group there has given up its role.
    let kept = retained(world, known, peer);
    // A work that is on its way out says primary until it is gone, and nobody obeys it any more.
    let moved = peer.is_work_deleting() && world.chosen().contains(&Chosen::home(&known.holder));
    if world.chosen() != kept && !moved {
        effects.push(Effect::Place { chosen: kept });
    }
    (!effects.is_empty()).then_some(Step::Do(effects, None))
}

/// What stays of the placement while the holder is not ready. A PlacementRule cannot mark anything, so it stays as it is.
fn retained(world: &World, known: &Commission, peer: &Site) -> Vec<Chosen> {
    let chosen = world.chosen();
    if world.placement.is_none() || known.act != Act::Failover {
        return chosen;
    }
    chosen
        .iter()
        .any(|one| one.cluster == peer.name)
        .then(|| Chosen::retained(&peer.name))
        .into_iter()
        .collect()
}

fn promote(world: &World, now: Timestamp, known: &Commission, holder: &Site) -> Option<Step> {
    if holder.work.as_ref().is_some_and(|work| work.is_going()) {
        let why = obstacle(world, &holder.name)?;
        return Some(Step::Rest(
            Report::new(underway(known.act), Progression::CreatingMW, Peer::NotStarted).waiting(why),
        ));
    }
    let builder = Builder::new(world, known, now);
    if builder.may_be_first(holder) {
        if world.books.is_wanting(now) {
            return Some(Step::one(Effect::ReadStores));
        }
        if let Some(why) = recover::unread(world) {
            let report = Report::new(underway(known.act), Progression::CreatingMW, Peer::NotStarted);
            return Some(Step::Rest(report.waiting(why).until(world.books.again())));
        }
    }
    let wanted = builder.primary(holder, FinalSync::None);
    let effects: Vec<Effect> =
        [put_space(world, &holder.name), put(world, &holder.name, wanted)].into_iter().flatten().collect();
    (!effects.is_empty()).then_some(Step::Do(effects, None))
}

/// Whether the holder can be used; where not, the step that it is at and what it waits for.
pub fn readiness(
    world: &World,
    now: Timestamp,
    known: &Commission,
    holder: &Site,
) -> Result<(), (Progression, Wait)> {
    let name = &holder.name;
    let first = match known.act {
        Act::Deploy => Progression::CreatingMW,
        Act::Failover | Act::Relocate => Progression::WaitingForResourceRestore,
    };
    if let Reach::Silent(why) = holder.reach(now) {
        return Err((first, Wait::ClusterSilent(why)));
    }
    if let Some(why) = obstacle(world, name) {
        return Err((first, why));
    }
    let Some(group) = holder.group_at(known.epoch, now).filter(|group| group.is_primary()) else {
        let why = format!("cluster {name} does not show the group {} as primary yet", world.group_key());
        return Err((first, Wait::GroupNotSeen(why)));
    };
    if !group.is_observed() {
        return Err((
            first,
            Wait::GroupNotSeen(format!("nobody on cluster {name} has taken up the group yet")),
        ));
    }
    // What is seen may be from before the relocation was taken back, and then it says nothing of PVCs that went since.
    if was_taken_off(world, known) && (group.spec.prepare_for_final_sync || group.spec.run_final_sync) {
        return Err((
            first,
            Wait::GroupNotSeen(format!("cluster {name} has not taken the final sync back yet")),
        ));
    }
    if is_first(world, known) || is_ready(group) {
        return Ok(());
    }
    if !group.says(words::TYPE_CLUSTER_DATA_READY) {
        let why = format!("volumes and claims are not restored on cluster {name} yet{}", told_by(group));
        return Err((first, Wait::Restoring(why)));
    }
    let why = format!("data is restored on cluster {name} and not ready for use yet{}", told_by(group));
    Err((Progression::WaitForReadiness, Wait::NotReady(why)))
}

/// Whether a cluster has given up its role, as far as the application may be taken off it.
pub fn has_yielded(site: &Site, epoch: i64, now: Timestamp) -> bool {
    site.group_at(epoch, now).is_some_and(|group| group.is_secondary() && group.is_observed())
}

/// A cluster that has given up its role is no longer asked to run the application, also while the holder is not ready: its claims are in use as long as
/// it does, and it could not take over again.
fn take_off(world: &World, now: Timestamp, known: &Commission, peer: Option<&Site>) -> Option<Effect> {
    let chosen = world.chosen();
    let yielded = |one: &Chosen| {
        one.retained
            && peer.is_some_and(|peer| peer.name == one.cluster && has_yielded(peer, known.epoch, now))
    };
    let left: Vec<Chosen> = chosen.iter().filter(|one| !yielded(one)).cloned().collect();
    (chosen != left).then_some(Effect::Place { chosen: left })
}

/// Points the placement at the holder; a failed cluster keeps its mark until it has given up its role.
fn place(world: &World, now: Timestamp, known: &Commission, peer: Option<&Site>) -> Option<Effect> {
    let mut wanted = vec![Chosen::home(&known.holder)];
    let chosen = world.chosen();
    let kept = |peer: &&Site| {
        world.placement.is_some()
            && chosen.iter().any(|one| one.cluster == peer.name)
            && !has_yielded(peer, known.epoch, now)
    };
    wanted.extend(peer.filter(kept).map(|peer| Chosen::retained(&peer.name)));
    (chosen != wanted).then_some(Effect::Place { chosen: wanted })
}

fn is_noted(world: &World, known: &Commission, holder: &Site) -> bool {
    let action = known.act.action().map_or(String::new(), |action| action.as_str().to_owned());
    let id = world.drpc.note(annotations::LAST_APP_DEPLOYMENT_CLUSTER_ID);
    if holder.id().is_some() && id != holder.id() {
        return false;
    }
    world.drpc.note(annotations::LAST_APP_DEPLOYMENT_CLUSTER) == Some(known.holder.as_str())
        && world.drpc.note(annotations::LAST_ACTION).unwrap_or_default() == action
}
