//! PVCs that a relocation took away and that come back, because it was taken back or called off before its point of no return. Whoever stops the
//! application for a relocation deletes its PVCs too, and nobody gave their data up: each is made again with the volume that it had. Before the
//! application is stopped, the group notes on claim and volume what the claim was, so that a deletion for the relocation can be told from one by a
//! user, and so that no store need answer. The note goes once a pod uses the claim again.

use crate::decide::plan::{Path, Plan};
use crate::decide::{Effect, Sorted, demote, epoch};
use crate::restored;
use crate::status;
use crate::why::Wait;
use crate::words::{ClaimWords as _, GroupWords as _, OwnedWords as _, VolumeWords as _, Words as _};
use crate::world::{Claim, World};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use lifeboat_api::annotations;
use lifeboat_engine::ObjectKey;
use serde::{Deserialize, Serialize};

/// How long whoever stops the application may take to begin, after a relocation has told it to: until then nobody can tell whether a claim stays.
const SETTLES: SignedDuration = SignedDuration::from_secs(10);
/// How long it may go on deleting. A claim that is used by then is its user's to delete.
const SLOWEST: SignedDuration = SignedDuration::from_mins(10);

/// What is noted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct TakenOff {
    /// The group that was about to move.
    group: String,
    /// Its epoch. At a later one another cluster may have newer data.
    epoch: i64,
    /// The generation of the group then: each step of a relocation has its own.
    generation: i64,
    /// When that was.
    at: Timestamp,
    /// The claim as it is made again.
    claim: PersistentVolumeClaim,
}

impl TakenOff {
    /// When so much time has passed; nothing where it has, or where a clock was set back meanwhile.
    fn until(&self, now: Timestamp, patience: SignedDuration) -> Option<Timestamp> {
        let until = self.at.checked_add(patience).ok()?;
        (self.at <= now && now < until).then_some(until)
    }
}

fn read(world: &World, object: &impl kube::Resource) -> Option<TakenOff> {
    let note: TakenOff = serde_json::from_str(object.note(annotations::TAKEN_OFF)?).ok()?;
    let same = note.group == world.key().to_string() && Some(note.epoch) == epoch::primary_epoch(world);
    same.then_some(note)
}

fn of_claim(world: &World, claim: &Claim) -> Option<TakenOff> {
    read(world, &*claim.claim).or_else(|| read(world, &**claim.volume.as_ref()?))
}

/// Whether a claim's deletion is a relocation's doing, as far as anybody can tell.
pub fn is_taken_off(world: &World, claim: &Claim) -> bool {
    of_claim(world, claim).is_some()
}

/// Whether a claim is on its way out to come back.
pub fn is_returning(world: &World, claim: &Claim) -> bool {
    claim.claim.is_going() && !world.group.in_final_sync() && is_taken_off(world, claim)
}

/// Notes on the claims of a group that is about to move what they are, and tells whether all have their note: nothing is prepared before that.
pub fn note(world: &World, now: Timestamp, plan: &mut Plan, sorted: &Sorted<'_>) -> bool {
    let Some(epoch) = epoch::primary_epoch(world).filter(|_| world.group.in_final_sync()) else {
        return true;
    };
    let mut all_noted = true;
    let generation = world.group.metadata.generation.unwrap_or_default();
    let all = sorted.replicated.iter().chain(&sorted.copied).map(|(claim, _)| *claim);
    for claim in all.filter(|claim| claim.claim.is_owned_by(&world.key()) && claim.claim.is_bound()) {
        if of_claim(world, claim).is_some_and(|note| note.generation == generation) {
            continue;
        }
        all_noted = false;
        let mut again = restored::claim(&claim.claim);
        again
            .metadata
            .annotations
            .get_or_insert_default()
            .insert(annotations::HELD_AT_EPOCH.to_owned(), epoch.to_string());
        let note = TakenOff { group: world.key().to_string(), epoch, generation, at: now, claim: again };
        let note = serde_json::to_string(&note).expect("invariant: a claim is JSON");
        let (claim, notes) = (claim.name().to_owned(), [(annotations::TAKEN_OFF.to_owned(), note)].into());
        plan.act_for(world, now, &claim.clone(), Effect::Note { claim, notes });
    }
    all_noted
}

/// Brings back what a relocation that does not happen took away.
pub fn come_back(world: &World, now: Timestamp, plan: &mut Plan) {
    if world.group.in_final_sync() {
        return;
    }
    for claim in &world.claims {
        let Some(note) = of_claim(world, claim) else { continue };
        let name = claim.name();
        if claim.claim.is_going() {
            let path = if claim.is_copied() { Path::Copied } else { Path::Replicated };
            let why = "the relocation that deleted the PVC does not happen: it is made again with its PV";
            plan.verdict(name).copied = path == Path::Copied;
            status::claim_progressing(plan, name, why);
            demote::let_go(world, now, plan, claim, path);
        } else if let Some(until) = note.until(now, SETTLES) {
            let why =
                "the application was told to stop a moment ago: whether the PVC goes with it shows soon";
            status::claim_progressing(plan, name, why);
            plan.look_at(until);
        } else if claim.users.is_empty() || !claim.claim.is_bound() {
            // Nobody has begun to use it again.
        } else if let Some(until) = note.until(now, SLOWEST) {
            plan.look_at(until);
        } else {
            plan.act_for(world, now, name, Effect::Stays { claim: name.to_owned() });
        }
    }
    for volume in world.volumes.values() {
        let Some(note) = read(world, &**volume) else { continue };
        let Some(key) = volume.claim_key().filter(|key| key.namespace == world.group.space()) else {
            continue;
        };
        if let Err(why) = volume_back(world, now, plan, volume, &key, note.claim) {
            plan.verdict(&key.name).copied = volume.note(annotations::VOLSYNC_RETAINED).is_some();
            status::claim_progressing(plan, &key.name, &why.to_string());
            plan.wait_for(&key.name, why);
        }
    }
}

fn volume_back(
    world: &World,
    now: Timestamp,
    plan: &mut Plan,
    volume: &PersistentVolume,
    key: &ObjectKey,
    mut again: PersistentVolumeClaim,
) -> Result<(), Wait> {
    let (name, pv) = (&key.name, volume.name());
    match world.claim(name) {
        // It is let go above.
        Some(there) if there.claim.is_going() => Ok(()),
        Some(there) if there.claim.volume_name() == Some(pv) => match there.claim.is_bound() {
            true => Ok(()),
            false => Err(Wait::Restoring(format!("PVC {name} is not bound to PV {pv} yet"))),
        },
        // Whoever makes it gets the data, once the volume is free for it.
        Some(there) if there.claim.volume_name().is_none() => {
            if !volume.claim_uid().is_empty() {
                let effect = Effect::Unclaim { claim: name.clone(), volume: pv.to_owned() };
                plan.act_for(world, now, name, effect);
            }
            Err(Wait::Restoring(format!("PVC {name} is not bound to PV {pv} yet")))
        }
        Some(_) => Err(Wait::CannotRestore(format!(
            "PVC {name} was made anew while the relocation that had deleted it was taken back. Its data is kept in PV {pv}: stop the application and delete the PVC, and it is made again with that PV"
        ))),
        None => {
            let effect = match volume.claim_uid().is_empty() {
                false => Effect::Unclaim { claim: name.clone(), volume: pv.to_owned() },
                true => {
                    again.spec.get_or_insert_default().volume_name = Some(pv.to_owned());
                    Effect::MakeClaim { claim: Box::new(again) }
                }
            };
            plan.act_for(world, now, name, effect);
            Err(Wait::Restoring(format!("PVC {name} is made again with PV {pv}")))
        }
    }
}
