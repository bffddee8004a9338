//! A secondary whose storage replicates: claims are demoted once it is shown that nobody uses them, and let go when the peer's data is in
//! place and their user has deleted them.

use crate::decide::plan::{Path, Plan, Said};
use crate::decide::replicated::{TAKEN_OVER, Word, foreign, take_over, word};
use crate::decide::{Effect, classify, undo};
use crate::status;
use crate::why::Wait;
use crate::words::{GroupWords as _, OwnedWords as _, VolumeWords as _, Words as _};
use crate::world::{Claim, World};
use jiff::Timestamp;
use lifeboat_api::conditions::vrg as words;
use lifeboat_api::ramen::DRAction;
use lifeboat_api::replication::ReplicationState;

/// A secondary's claims that were protected through their storage. What was never protected by us is not ours to demote.
pub fn secondary(world: &World, now: Timestamp, plan: &mut Plan) {
    // One that an earlier group let go when it was deleted, and whose replication it left, is taken up again.
    let left = |claim: &Claim| {
        let one = world.replications.get(claim.name());
        claim.selected && one.is_some_and(|one| one.is_owned_by(&world.key()) && !one.is_going())
    };
    for claim in world.claims.iter().filter(|claim| claim.is_replicated() || left(claim)) {
        if let Some(why) = undo::conflict(world, claim) {
            status::claim_refused(plan, claim.name(), &why);
            plan.wait_for(claim.name(), why);
            continue;
        }
        one(world, now, plan, claim);
    }
    // One that nobody has protected yet is not ours to demote, and who writes to it is no secondary.
    let bare = |claim: &&Claim| claim.selected && !claim.is_replicated() && !claim.is_copied();
    for claim in world.claims.iter().filter(bare).filter(|claim| !claim.users.is_empty()) {
        let why = Wait::InUse(claim.users.join(", "));
        if !plan.verdicts.contains_key(claim.name()) {
            status::claim_progressing(plan, claim.name(), &why.to_string());
            plan.wait_for(claim.name(), why);
        }
    }
}

/// A claim that is being deleted, or that nothing replicates any more, is let go once nobody uses it. Its volume stays: it is made one that is kept
/// first.
pub fn let_go(world: &World, now: Timestamp, plan: &mut Plan, claim: &Claim, path: Path) {
    let name = claim.name();
    let mut waits = |why: Wait| {
        status::claim_progressing(plan, name, &why.to_string());
        plan.wait_for(name, why);
    };
    if let Some(why) = undo::conflict(world, claim) {
        return waits(why);
    }
    if !claim.users.is_empty() {
        return waits(Wait::InUse(claim.users.join(", ")));
    }
    let held = claim.is_replicated() || claim.is_copied();
    if !held && !claim.claim.is_owned_by(&world.key()) {
        let others = claim.claim.metadata.finalizers.clone().unwrap_or_default().join(", ");
        return waits(Wait::Removing(format!(
            "PVC {name} is being deleted, and is held by others ({others}): it is made again once it is gone"
        )));
    }
    if let Some(volume) = claim.volume.as_ref().filter(|volume| held && !volume.is_retained()) {
        let volume = volume.name().to_owned();
        return plan.act_for(world, now, name, Effect::Retain { claim: name.to_owned(), volume, path });
    }
    undo::unprotect(world, now, plan, claim, true);
}

/// Whether the claim may be demoted: not in use, and for a relocation also being deleted by its user. After a failover the application may
/// still be listed on the old side.
pub fn may_demote(world: &World, claim: &Claim) -> Result<(), Wait> {
    if !claim.users.is_empty() {
        return Err(Wait::InUse(claim.users.join(", ")));
    }
    let failed_over = world.group.action() == Some(&DRAction::Failover);
    if !failed_over && !claim.claim.is_going() {
        return Err(Wait::NotDeleted);
    }
    Ok(())
}

fn one(world: &World, now: Timestamp, plan: &mut Plan, claim: &Claim) {
    let name = claim.name();
    let way = classify::classify(world, &claim.claim).ok();
    if let Some(way) = &way {
        status::claim_known(plan, name, way, false);
    }
    if world.group.spec.sync.is_some() || way.as_ref().is_some_and(|way| way.path == Path::Shared) {
        return shared(world, now, plan, claim);
    }
    if !undo::protect(world, now, plan, claim, Path::Replicated) {
        return status::claim_progressing(plan, name, "the claim is being protected");
    }
    let Some(replication) = world.replications.get(name) else {
        // Nothing mirrors it: an earlier pass let it go and died before it could say so.
        status::claim_progressing(plan, name, "the claim is being let go");
        return let_go(world, now, plan, claim, Path::Replicated);
    };
    if take_over(world, now, plan, name) {
        return status::claim_progressing(plan, name, TAKEN_OVER);
    }
    if let Some(why) = foreign(world, &**replication, "VolumeReplication", name) {
        status::claim_refused(plan, name, &why);
        return plan.wait_for(name, why);
    }
    if replication.is_going() {
        status::claim_progressing(plan, name, "the claim is being let go");
        return let_go(world, now, plan, claim, Path::Replicated);
    }
    let auto_resync = world.group.action() == Some(&DRAction::Failover);
    let spec = &replication.spec;
    if spec.replication_state != ReplicationState::Secondary || spec.auto_resync != auto_resync {
        if spec.replication_state != ReplicationState::Secondary
            && let Err(why) = may_demote(world, claim)
        {
            status::claim_progressing(plan, name, &why.to_string());
            return plan.wait_for(name, why);
        }
        status::claim_progressing(plan, name, "the claim is being made secondary");
        let class = spec.volume_replication_class.clone();
        let effect = Effect::Replicate {
            claim: name.to_owned(),
            class,
            role: ReplicationState::Secondary,
            auto_resync,
        };
        return plan.act_for(world, now, name, effect);
    }
    match word(replication, &ReplicationState::Secondary) {
        Word::Done => {
            said(plan, name, true);
            if claim.claim.is_going() {
                undo::unprotect(world, now, plan, claim, true);
            }
        }
        Word::Filling => said(plan, name, false),
        Word::NotYet(why) => {
            status::claim_progressing(plan, name, &why);
            plan.wait_for(name, Wait::Storage(why));
        }
        Word::Refused(why) => {
            let why = Wait::StorageRefused(why);
            status::claim_refused(plan, name, &why);
            plan.wait_for(name, why);
        }
    }
}

fn said(plan: &mut Plan, name: &str, all: bool) {
    let (ready, protected) = match all {
        true => (
            Said::yes(words::REASON_REPLICATED, "PVC has all data of the primary"),
            Said::yes(words::REASON_DATA_PROTECTED, "PVC data is at the peer"),
        ),
        false => (
            Said::yes(words::REASON_REPLICATING, "PVC is being filled from the primary"),
            Said::no(words::REASON_REPLICATING, "PVC is being filled from the primary"),
        ),
    };
    plan.verdict(name).say(words::TYPE_DATA_READY, ready).say(words::TYPE_DATA_PROTECTED, protected);
}

/// Both clusters see the same storage: the claim is only let go, once nobody uses it.
fn shared(world: &World, now: Timestamp, plan: &mut Plan, claim: &Claim) {
    let name = claim.name();
    match may_demote(world, claim) {
        Ok(()) if claim.claim.is_going() => {
            said(plan, name, true);
            undo::unprotect(world, now, plan, claim, true);
        }
        Ok(()) => said(plan, name, true),
        Err(why) => {
            status::claim_progressing(plan, name, &why.to_string());
            plan.wait_for(name, why);
        }
    }
}
