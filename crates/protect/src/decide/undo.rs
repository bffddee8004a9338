//! Claims that leave a group, and those that several groups want. The undo has one order: the replication gone, the volume's policy back if we
//! changed it, then annotations, labels and the finalizer, in one write.

use crate::decide::plan::{Path, Plan};
use crate::decide::{Effect, Sorted, epoch, records, restore, returning};
use crate::why::Wait;
use crate::words::{GroupWords as _, OwnedWords as _, VolumeWords as _, Words as _};
use crate::world::{Claim, World};
use jiff::Timestamp;
use lifeboat_api::annotations;

/// Why a claim is left alone: other groups want it, or it belongs to one.
pub fn conflict(world: &World, claim: &Claim) -> Option<Wait> {
    let owner = claim.claim.owner().filter(|owner| *owner != world.key());
    let others: Vec<String> = claim.rivals.iter().chain(&owner).map(ToString::to_string).collect();
    (!others.is_empty()).then(|| {
        Wait::Conflict(format!(
            "PVC {} is wanted by more than one group, and none of them touches it: also by {}",
            claim.name(),
            others.join(", ")
        ))
    })
}

/// Whether a claim is on its way out of a primary group: deselected, or deleted by its user.
pub fn is_leaving(world: &World, claim: &Claim) -> bool {
    let group = &world.group;
    let out = !claim.selected || claim.claim.is_going();
    let ours = claim.claim.is_owned_by(&world.key());
    // One that goes with its namespace was given up by nobody. The group goes too, and keeps the volume.
    let swept = claim.claim.is_going() && world.namespace_is_deleting;
    // One that is deleted and still mounted is still written to. And whose role was taken demotes its claims, it does not end them.
    let used = claim.claim.is_going() && !claim.users.is_empty();
    let superseded = epoch::superseded(world).is_some();
    let returning = returning::is_returning(world, claim);
    let kept =
        group.in_final_sync() || world.config.keep_deselected || swept || used || superseded || returning;
    out && ours && claim.rivals.is_empty() && !kept
}

/// Ends the protection of claims that leave; those that leave unprotected are nobody's business.
pub fn leavers<'a>(world: &'a World, now: Timestamp, plan: &mut Plan, sorted: &mut Sorted<'a>, wanted: &str) {
    for claim in world.claims.iter().filter(|claim| is_leaving(world, claim)) {
        let mut step = Plan::default();
        unprotect(world, now, &mut step, claim, false);
        let lets_go = |effect: &Effect| matches!(effect, Effect::Unretain { .. } | Effect::Unprotect { .. });
        // A record that names a volume that is gone would stop a failover.
        if claim.is_replicated()
            && step.effects.iter().any(lets_go)
            && let Some(why) = records::still_names(world, claim.name(), wanted)
        {
            plan.wait_for(claim.name(), why);
            continue;
        }
        plan.effects.extend(step.effects);
        plan.waits.extend(step.waits);
        step.until.into_iter().for_each(|until| plan.look_at(until));
    }
    // A claim that was being deleted before it was protected is skipped.
    let unprotected = |claim: &Claim| claim.claim.is_going() && !claim.is_replicated() && !claim.is_copied();
    sorted.replicated.retain(|(claim, _)| !unprotected(claim));
    sorted.copied.retain(|(claim, _)| !unprotected(claim));
}

/// The next step of the undo. With `keep_volume` the volume stays one that is kept: it is the replica, or may be the last copy.
pub fn unprotect(world: &World, now: Timestamp, plan: &mut Plan, claim: &Claim, keep_volume: bool) {
    let name = claim.name();
    let (key, mut act) = (world.key(), |effect| plan.act_for(world, now, name, effect));
    if let Some(replication) =
        world.replications.get(name).filter(|replication| replication.is_owned_by(&key))
    {
        if !replication.is_going() {
            return act(Effect::EndReplication { claim: name.to_owned() });
        }
        let why = format!("the storage has not ended the replication of {name} yet");
        return plan.wait_for(name, Wait::Removing(why));
    }
    if let Some(source) = world.sources.get(name).filter(|source| source.is_owned_by(&key)) {
        if !source.is_going() {
            return act(Effect::StopSending { claim: name.to_owned() });
        }
        return plan.wait_for(name, Wait::Removing(format!("the sender of {name} is not gone yet")));
    }
    if let (Some(volume), false) = (&claim.volume, keep_volume) {
        for (marker, path) in
            [(annotations::VR_RETAINED, Path::Replicated), (annotations::VOLSYNC_RETAINED, Path::Copied)]
        {
            if volume.note(marker).is_some() {
                let volume = volume.name().to_owned();
                return act(Effect::Unretain { claim: name.to_owned(), volume, path });
            }
        }
    }
    if claim.claim.is_owned_by(&key) || claim.is_replicated() || claim.is_copied() || is_owned(claim) {
        act(Effect::Unprotect { claim: name.to_owned() });
    }
}

/// The next step of bringing a claim under our protection; `true` once nothing is left to do.
pub fn protect(world: &World, now: Timestamp, plan: &mut Plan, claim: &Claim, path: Path) -> bool {
    let name = claim.name();
    let (has, otherwise) = match path {
        Path::Copied => (claim.is_copied(), claim.is_replicated()),
        _ => (claim.is_replicated(), claim.is_copied()),
    };
    let at_rest = !claim.claim.is_going() && !world.group.in_final_sync();
    if otherwise && at_rest && claim.claim.is_owned_by(&world.key()) {
        // Its way has changed, as when classes of the peer became known later: two ways at once would restore it twice. Not while it
        // is deleted or copied for the last time: letting go of it then would take the claim away before its data is safe.
        unprotect(world, now, plan, claim, true);
        return false;
    }
    let burdened = carries_old_ways(claim);
    if !has || !claim.claim.is_owned_by(&world.key()) || burdened {
        plan.act_for(world, now, name, Effect::Protect { claim: name.to_owned(), path });
        return false;
    }
    let Some(volume) = &claim.volume else {
        plan.wait_for(name, Wait::NotBound);
        return false;
    };
    // One that its user keeps anyway is left as it is, without a mark, so that it is never "given back" as one to delete.
    if !volume.is_retained() {
        let volume = volume.name().to_owned();
        plan.act_for(world, now, name, Effect::Retain { claim: name.to_owned(), volume, path });
        return false;
    }
    // By this note the group knows what it had, so it stays until the status says that all is back.
    let back = world.group.wants_secondary() || restore::was_done(world).is_some();
    if back && volume.note(annotations::ORPHANED_FROM).is_some() {
        let volume = volume.name().to_owned();
        plan.act_for(world, now, name, Effect::Unorphan { claim: name.to_owned(), volume });
        return false;
    }
    if path != Path::Copied
        && !claim.claim.is_going()
        && claim.claim.note(annotations::VR_PROTECTED) != Some(annotations::VR_PROTECTED_VALUE)
    {
        plan.act_for(world, now, name, Effect::Mark { claim: name.to_owned() });
        return false;
    }
    true
}

/// Whether older controllers own the claim, or keep it from being deleted in their way.
fn carries_old_ways(claim: &Claim) -> bool {
    is_owned(claim) || claim.claim.note(annotations::OCM_DO_NOT_DELETE).is_some()
}

/// Whether older controllers own the claim: it would go with them.
pub fn is_owned(claim: &Claim) -> bool {
    let mut owners = claim.claim.metadata.owner_references.iter().flatten();
    owners.any(|owner| OLD_OWNERS.contains(&owner.kind.as_str()))
}

/// Kinds that older controllers made owners of claims, which would take the claim with them.
pub const OLD_OWNERS: &[&str] = &["VolumeReplicationGroup", "ReplicationSource", "ReplicationDestination"];
