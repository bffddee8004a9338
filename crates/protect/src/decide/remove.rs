//! A group that is deleted: every claim gets back what we took, what we made is removed, records go where the group was primary. Nothing here
//! depends on whether the group's wishes hold together, or on classes, or for ever on a store.

use crate::decide::plan::Plan;
use crate::decide::records::is_abandoned;
use crate::decide::replicated::{Word, take_over, word};
use crate::decide::{Effect, GroupDecision, demote, epoch, undo, waiting};
use crate::ledger::{LedgerError, Tried};
use crate::status::Telling;
use crate::why::Wait;
use crate::words::{GroupWords as _, OwnedWords as _, Words as _};
use crate::world::{Claim, World};
use jiff::Timestamp;
use lifeboat_api::ramen::VrgState;
use lifeboat_api::replication::ReplicationState;
use lifeboat_api::{annotations, finalizers, labels};
use lifeboat_engine::Decision;

/// The next step of a group that is being deleted.
pub fn remove(world: &World, now: Timestamp) -> GroupDecision {
    if !world.group.has_finalizer(finalizers::VRG) {
        return Decision::settled();
    }
    let mut plan = Plan::default();
    for claim in &world.claims {
        // One that an older controller made the group's own would be deleted with it.
        let owned = claim.claim.owner().is_none() && undo::is_owned(claim);
        if owned || claim.claim.is_owned_by(&world.key()) {
            let_go(world, now, &mut plan, claim);
        }
    }
    leftovers(world, now, &mut plan);
    if plan.effects.is_empty() && plan.waits.is_empty() {
        records(world, now, &mut plan);
    }
    if plan.effects.is_empty() && plan.waits.is_empty() {
        return Decision::act([Effect::Release]);
    }
    if !plan.effects.is_empty() {
        return Decision::act(plan.effects);
    }
    let status = Telling::of(world, now).leaving(&plan).done();
    waiting(plan).showing(status)
}

/// A claim is let go in the role that the group has: a primary's volume must be primary before its replication ends, a secondary's demoted.
fn let_go(world: &World, now: Timestamp, plan: &mut Plan, claim: &Claim) {
    let name = claim.name();
    if take_over(world, now, plan, name) {
        return;
    }
    let secondary = world.group.wants_secondary();
    let replication =
        world.replications.get(name).filter(|one| one.is_owned_by(&world.key()) && !one.is_going());
    if let Some(replication) = replication {
        let role = if secondary { ReplicationState::Secondary } else { ReplicationState::Primary };
        if replication.spec.replication_state != role {
            if secondary && let Err(why) = demote::may_demote(world, claim) {
                return plan.wait_for(name, why);
            }
            let class = replication.spec.volume_replication_class.clone();
            let effect = Effect::Replicate { claim: name.to_owned(), class, role, auto_resync: false };
            return plan.act_for(world, now, name, effect);
        }
        // One that the storage has refused never was anything.
        if let Word::NotYet(why) = word(replication, &role) {
            return plan.wait_for(name, Wait::Storage(why));
        }
    }
    // What is the replica, or was about to move when the group was deleted, may be the last copy: its volume stays.
    let moving = claim.claim.is_going() && (secondary || world.group.in_final_sync());
    undo::unprotect(world, now, plan, claim, secondary && claim.is_replicated() || moving);
}

/// Senders, receivers and images that the group made.
fn leftovers(world: &World, now: Timestamp, plan: &mut Plan) {
    let key = world.key();
    let has_claim =
        |name: &str| world.claims.iter().any(|claim| claim.name() == name && claim.claim.is_owned_by(&key));
    for source in
        world.sources.values().filter(|source| source.is_owned_by(&key) && !has_claim(source.name()))
    {
        let name = source.name();
        match source.is_going() {
            true => plan.wait_for(name, Wait::Removing(format!("the sender of {name} is not gone yet"))),
            false => plan.act_for(world, now, name, Effect::StopSending { claim: name.to_owned() }),
        }
    }
    for receiver in world.destinations.values().filter(|receiver| receiver.is_owned_by(&key)) {
        let name = receiver.name();
        match receiver.is_going() {
            true => plan.wait_for(name, Wait::Removing(format!("the receiver of {name} is not gone yet"))),
            false => plan.act_for(world, now, name, Effect::StopReceiving { claim: name.to_owned() }),
        }
    }
    for replication in
        world.replications.values().filter(|one| one.is_owned_by(&key) && !has_claim(one.name()))
    {
        let name = replication.name();
        match replication.is_going() {
            true => plan.wait_for(name, Wait::Removing(format!("the replication of {name} is not gone yet"))),
            false => plan.act_for(world, now, name, Effect::EndReplication { claim: name.to_owned() }),
        }
    }
    // What a primary restored from is not needed any more; a secondary's images are its copy.
    let images = world.images.values().filter(|image| {
        image.is_owned_by(&key)
            && image.label(labels::VOLSYNC_DO_NOT_DELETE) == Some("true")
            && !image.is_going()
    });
    for image in images.filter(|_| world.group.wants_primary()) {
        let claim = image.note(annotations::IMAGE_OF).unwrap_or_default().to_owned();
        let effect = Effect::DropImage { claim: claim.clone(), image: image.name().to_owned() };
        plan.act_for(world, now, &claim, effect);
    }
}

/// The epoch at which the group's records may be removed. What a Ramen recorded that was primary here, and knows no epochs, is below all of them.
fn erases_at(world: &World) -> Option<i64> {
    let ramens = || {
        let status = world.group.status.as_ref()?;
        (status.state == Some(VrgState::Primary) && status.epoch.is_none()).then_some(0)
    };
    epoch::primary_epoch(world).or_else(ramens)
}

/// Records go only where the group is deleted as primary, at an epoch that nobody has passed.
fn records(world: &World, now: Timestamp, plan: &mut Plan) {
    let Some(ours) = erases_at(world) else { return };
    if !world.group.wants_primary() || epoch::highest(world) > ours {
        return;
    }
    for name in world.store_names().into_iter().filter(|name| !is_abandoned(world, name)) {
        let state = world.stores.get(&name).cloned().unwrap_or_default();
        let how =
            format!("to leave them there, name the store in the annotation {}", annotations::ABANDON_STORES);
        if state.erased {
            continue;
        }
        if let Some(why) = world.config.missing(&name) {
            plan.wait(Wait::StoreFailed(format!("records cannot be removed: {why}; {how}")));
            continue;
        }
        match &state.failed {
            _ if state.busy.is_some() => {
                plan.wait(Wait::WritingStore(format!("records are being removed from {name}")));
            }
            // Nothing of ours is there.
            Some(Tried { why: LedgerError::OtherFleet { .. }, .. }) => {}
            Some(failed) if failed.retry_at > now => {
                plan.wait(Wait::StoreFailed(format!(
                    "records cannot be removed from {name}: {}; {how}",
                    failed.why
                )));
                plan.look_at(failed.retry_at);
            }
            _ => plan.effects.push(Effect::Erase { store: name, epoch: ours }),
        }
    }
}
