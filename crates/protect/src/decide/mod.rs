//! Every rule about a group: which role it has, what its claims need, and the next step there. One file for each flow.

pub mod classify;
pub mod copied;
pub mod demote;
pub mod epoch;
pub mod images;
pub mod late;
pub mod orphan;
pub mod plan;
pub mod receive;
pub mod received;
pub mod records;
pub mod remove;
pub mod replicated;
pub mod restore;
pub mod returning;
pub mod undo;
pub mod unsupported;

use crate::decide::plan::{Path, Plan};
use crate::ledger::substance;
use crate::status::{self, Telling};
use crate::why::Wait;
use crate::words::{GroupWords as _, Words as _};
use crate::world::{Claim, World};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use lifeboat_api::finalizers;
use lifeboat_api::ramen::VolumeReplicationGroupStatus;
use lifeboat_api::replication::ReplicationState;
use lifeboat_api::volsync::{ReplicationDestinationSpec, ReplicationSourceSpec};
use lifeboat_engine::Decision;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What can be done about a group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Effect {
    /// Puts our finalizer on the group.
    Adopt,
    /// Takes our finalizer off the group.
    Release,
    /// Notes that the group is primary at an epoch.
    TakeEpoch(i64),
    /// Notes that the group is not primary any more, and the highest epoch seen.
    YieldEpoch(i64),
    /// Reads all stores.
    ReadStores {
        /// What is asked.
        question: String,
    },
    /// Looks for the key that movers share.
    FindKey,
    /// Writes the record of the group to stores, all of them together.
    Keep {
        /// The stores.
        stores: Vec<String>,
        /// Whether everything there is read back before it counts, and not only what is written now.
        verify: bool,
    },
    /// Removes the records of the group from a store.
    Erase {
        /// The store.
        store: String,
        /// The epoch at which we may.
        epoch: i64,
    },
    /// Says in a store that the group was deleted without the order to end protection.
    MarkOrphan {
        /// The store.
        store: String,
        /// The epoch at which the group was primary.
        epoch: i64,
        /// Volumes that it leaves here.
        volumes: BTreeSet<String>,
    },
    /// Keeps a volume, and notes on it which group left it.
    Orphan {
        /// The claim.
        claim: String,
        /// The volume.
        volume: String,
        /// The epoch at which the group was primary.
        epoch: i64,
    },
    /// Takes that note off.
    Unorphan {
        /// The claim.
        claim: String,
        /// The volume.
        volume: String,
    },
    /// Puts our finalizer and labels on a claim, and takes off what older controllers used in their place.
    Protect {
        /// The claim.
        claim: String,
        /// Which way it is protected.
        path: Path,
    },
    /// Makes a claim's volume one that is kept, and notes that we did.
    Retain {
        /// The claim.
        claim: String,
        /// The volume.
        volume: String,
        /// Which way the claim is protected.
        path: Path,
    },
    /// Notes on a claim that its protection is complete.
    Mark {
        /// The claim.
        claim: String,
    },
    /// Notes on a claim and its volume which version of them is recorded.
    Archive {
        /// The claim.
        claim: String,
        /// What to note on the claim.
        mark: String,
    },
    /// Notes on a volume what it is called at the peer.
    NoteHandle {
        /// The claim.
        claim: String,
        /// The volume.
        volume: String,
        /// The handle at the peer.
        handle: String,
    },
    /// Makes a VolumeReplication, or changes its role. A demotion looks once more, at the server itself, that nobody uses the claim.
    Replicate {
        /// The claim.
        claim: String,
        /// The class.
        class: String,
        /// The role.
        role: ReplicationState,
        /// Whether a split is resolved by throwing away what is here.
        auto_resync: bool,
    },
    /// Puts our labels on a VolumeReplication that an older controller made for this group, and takes off its owner reference.
    TakeOver {
        /// The claim.
        claim: String,
    },
    /// Deletes the VolumeReplication of a claim.
    EndReplication {
        /// The claim.
        claim: String,
    },
    /// Gives a volume its former policy back.
    Unretain {
        /// The claim.
        claim: String,
        /// The volume.
        volume: String,
        /// Which way the claim was protected.
        path: Path,
    },
    /// Takes our finalizer, labels and annotations off a claim.
    Unprotect {
        /// The claim.
        claim: String,
    },
    /// Lets a released volume be bound again by a claim of the same name.
    Unclaim {
        /// The claim.
        claim: String,
        /// The volume.
        volume: String,
    },
    /// Makes a sender, or changes it.
    Send {
        /// The claim.
        claim: String,
        /// What it shall be.
        spec: Box<ReplicationSourceSpec>,
        /// A last copy: looks once more, at the server itself, that nobody uses the claim.
        last: bool,
    },
    /// Has the mover wait with new copies.
    HoldCopies {
        /// The claim.
        claim: String,
        /// Whether it shall wait.
        hold: bool,
    },
    /// Deletes a sender.
    StopSending {
        /// The claim.
        claim: String,
    },
    /// Makes a receiver, or changes it.
    Receive {
        /// The claim.
        claim: String,
        /// What it shall be.
        spec: Box<ReplicationDestinationSpec>,
        /// The image that it shall bring its claim back to.
        roll_back_to: Option<String>,
    },
    /// Deletes a receiver.
    StopReceiving {
        /// The claim.
        claim: String,
    },
    /// Exports the service of a receiver.
    Export {
        /// The claim.
        claim: String,
        /// The service.
        service: String,
    },
    /// Keeps the mover from deleting an image.
    KeepImage {
        /// The claim.
        claim: String,
        /// The image.
        image: String,
    },
    /// Deletes an image that we kept.
    DropImage {
        /// The claim.
        claim: String,
        /// The image.
        image: String,
    },
    /// Makes a claim.
    MakeClaim {
        /// The claim.
        claim: Box<PersistentVolumeClaim>,
    },
    /// Makes a volume.
    MakeVolume {
        /// The claim that it is for.
        claim: String,
        /// The volume.
        volume: Box<PersistentVolume>,
    },
    /// Notes on a claim which epoch it is held at, and what it was restored from.
    Note {
        /// The claim.
        claim: String,
        /// The annotations.
        notes: BTreeMap<String, String>,
    },
    /// Takes the note of a relocation off a claim and its volume.
    Stays {
        /// The claim.
        claim: String,
    },
    /// Deletes a claim that we made from an image at an earlier epoch, and that nobody uses. Its volume is one that is kept.
    Discard {
        /// The claim.
        claim: String,
    },
    /// Keeps the mover from deleting an image that is newer than the one that is restored.
    SetAside {
        /// The claim.
        claim: String,
        /// The image.
        image: String,
    },
}

/// What is decided about a group.
pub type GroupDecision = Decision<Effect, Wait, VolumeReplicationGroupStatus>;

/// Every rule.
pub fn decide(world: &World, now: Timestamp) -> GroupDecision {
    let group = &world.group;
    if group.is_going() {
        return match orphan::is_unmarked(world) {
            true => orphan::orphan(world, now),
            false => remove::remove(world, now),
        };
    }
    if let Some(why) = unsupported::refused(world) {
        let status = Telling::of(world, now).refused(&why).done();
        return Decision::wait(why).showing(status);
    }
    if !group.has_finalizer(finalizers::VRG) {
        return Decision::act([Effect::Adopt]);
    }
    if let Some(decision) = orphan::stranded(world, now) {
        return decision;
    }
    match epoch::judge(world, now) {
        epoch::Judged::Holds(_) => {}
        epoch::Judged::Act(effect) => return Decision::act([effect]),
        epoch::Judged::Waits(why, until) => {
            let status = Telling::of(world, now).unsettled(&why).done();
            let decision = match until {
                Some(until) => Decision::wait_until(why, until),
                None => Decision::wait(why),
            };
            return decision.showing(status);
        }
    }
    let mut plan = Plan::default();
    let restored = if group.wants_primary() {
        primary(world, now, &mut plan)
    } else {
        secondary(world, now, &mut plan);
        None
    };
    unsupported::shortfalls(world, &mut plan);
    conclude(world, now, plan, restored)
}

/// A primary: first what was lost is brought back, then claims are protected, then all is recorded.
fn primary(world: &World, now: Timestamp, plan: &mut Plan) -> Option<restore::Outcome> {
    let outcome = restore::restore(world, now, plan);
    if !outcome.is_done() {
        return Some(outcome);
    }
    let mut sorted = Sorted::of(world, plan);
    // Taken once: it reads every claim of the group.
    let wanted = substance(&records::record(world));
    let all_noted = returning::note(world, now, plan, &sorted);
    undo::leavers(world, now, plan, &mut sorted, &wanted);
    records::keep(world, now, plan, &sorted, &wanted);
    replicated::primary(world, now, plan, &sorted.replicated, &wanted);
    copied::primary(world, now, plan, &sorted.copied);
    // The last word about a claim: that it could be used at this moment does not count where it may go in the next.
    returning::come_back(world, now, plan);
    if !all_noted && !world.group.spec.run_final_sync {
        plan.prepared = Some(false);
    }
    received::stop_as_primary(world, now, plan);
    records::archive(world, now, plan, &sorted, &wanted);
    late::judge(world, now, plan);
    Some(outcome)
}

fn secondary(world: &World, now: Timestamp, plan: &mut Plan) {
    demote::secondary(world, now, plan);
    receive::secondary(world, now, plan);
}

/// Claims by the way they are protected.
#[derive(Debug, Default)]
pub struct Sorted<'a> {
    /// By their storage, or shared.
    pub replicated: Vec<(&'a Claim, classify::Way)>,
    /// By a mover.
    pub copied: Vec<(&'a Claim, classify::Way)>,
}

impl<'a> Sorted<'a> {
    /// Sorts the claims that the group protects; one that cannot be sorted is told so and delays nobody.
    fn of(world: &'a World, plan: &mut Plan) -> Self {
        let mut sorted = Self::default();
        for claim in &world.claims {
            if undo::is_leaving(world, claim) || returning::is_returning(world, claim) {
                continue;
            }
            if let Some(why) = undo::conflict(world, claim) {
                status::claim_refused(plan, claim.name(), &why);
                plan.wait_for(claim.name(), why);
                continue;
            }
            match classify::classify(world, &claim.claim) {
                Ok(way) if way.path == Path::Copied => sorted.copied.push((claim, way)),
                Ok(way) => sorted.replicated.push((claim, way)),
                Err(why) => {
                    status::claim_refused(plan, claim.name(), &why);
                    plan.wait_for(claim.name(), why);
                }
            }
        }
        sorted
    }
}

/// Turns a plan into a decision: effects first; where nothing is left to do, the status, and the stores told of it.
fn conclude(
    world: &World,
    now: Timestamp,
    mut plan: Plan,
    restored: Option<restore::Outcome>,
) -> GroupDecision {
    // A record tells how the group stands, so that is told first; whatever else there is to do changes how it stands.
    let only_recorded = plan.effects.iter().all(|effect| matches!(effect, Effect::Keep { .. }));
    if !only_recorded {
        return Decision::act(plan.effects);
    }
    let effects = std::mem::take(&mut plan.effects);
    let status = Telling::of(world, now).told(&mut plan, restored.as_ref()).done();
    if !effects.is_empty() {
        return Decision::act(effects).showing(status);
    }
    let copies = records::copies(world, now, &status, restored.as_ref());
    if !copies.is_empty() {
        return Decision::act(copies).showing(status);
    }
    waiting(plan).showing(status)
}

/// Waits for the weightiest thing, or is settled.
pub(crate) fn waiting(plan: Plan) -> GroupDecision {
    let until = plan.until;
    let weightiest = plan.waits.into_iter().map(|(why, _)| why).rev().max_by_key(Wait::weight);
    match (weightiest, until) {
        (Some(why), Some(until)) => Decision::wait_until(why, until),
        (Some(why), None) => Decision::wait(why),
        // All is well; only the clock can change that.
        (None, Some(until)) => Decision::wait_until(Wait::InTime, until),
        (None, None) => Decision::settled(),
    }
}
