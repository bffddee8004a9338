//! Every rule about VolumeReplications: here what they have in common; how a volume becomes primary, what a primary does and how it
//! becomes secondary in files of their own.

use crate::copies::{Image, Kind, Seen};
use crate::failure::Failure;
use crate::role::status;
use crate::role::why::RoleWhy;
use crate::role::world::{Place, World};
use crate::role::{demote, promote, replicate};
use crate::words::{Words as _, is_secondary};
use jiff::{SignedDuration, Timestamp};
use lifeboat_api::annotations::parameters;
use lifeboat_api::replication::{ReplicationState, VolumeReplicationStatus};
use lifeboat_api::{Interval, finalizers};
use lifeboat_engine::Decision;
use lifeboat_lvm::Error;
use serde::Serialize;

/// What can be done about a VolumeReplication.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Effect {
    /// Looks at the disks of a class.
    List {
        /// The class.
        class: String,
    },
    /// Puts our finalizer on the VolumeReplication.
    Hold,
    /// Takes it off.
    Release,
    /// Asks the peer what the volume is there.
    Ask {
        /// For which wish.
        of: String,
    },
    /// Asks the peer for a place for the volume.
    Meet,
    /// Sends what was cut.
    Send,
    /// Stops what this process does about it.
    Stop,
    /// Notes the id of the volume at the peer.
    Pair {
        /// The id.
        peer: String,
    },
    /// Notes on the live volume at which epoch it is primary.
    Stamp {
        /// The epoch.
        epoch: u64,
    },
    /// Cuts a copy.
    Cut {
        /// The epoch that it is cut at.
        epoch: u64,
        /// Whether nobody can write any more.
        last: bool,
    },
    /// Forbids the use of the volume.
    Shut,
    /// Allows it.
    Open,
    /// Begins to make it primary: offers are refused from now on.
    Take,
    /// Lets no bytes in any more.
    Close,
    /// Finds out whether a copy that an earlier process left is whole.
    Probe,
    /// Notes on a copy that it is whole, and what it is.
    Seal(Image),
    /// Makes way for a whole copy.
    MakeWay,
    /// Gives a copy another place.
    Rename {
        /// What it is.
        from: Kind,
        /// What it becomes.
        to: Kind,
    },
    /// Removes copies.
    Drop(Vec<Kind>),
    /// Keeps what the live volume holds, and nobody else, aside.
    SetAside,
    /// The peer has all of the live volume: it becomes the replica of that generation.
    Retire(Image),
}

/// What is decided about a VolumeReplication.
pub type RoleDecision = Decision<Effect, RoleWhy, VolumeReplicationStatus>;

/// Every rule about VolumeReplications.
pub fn decide(world: &World, now: Timestamp) -> RoleDecision {
    let wants = &world.replication.spec.replication_state;
    if world.replication.is_going() {
        return remove(world, now);
    }
    if let Some(why) = unsupported(world) {
        return refuse(world, now, why);
    }
    if !world.replication.has_finalizer(finalizers::VOLUME_REPLICATION) {
        return Decision::act([Effect::Hold]);
    }
    match &world.place {
        Place::Here(here) => match &here.seen {
            Seen::Listed(_) => {}
            Seen::Unreadable(error @ Error::NoClass(_)) => {
                return refuse(world, now, RoleWhy::Volume(error.to_string()));
            }
            Seen::Unlisted | Seen::Unreadable(_) => {
                return act(world, now, Effect::List { class: here.class.clone() });
            }
        },
        Place::NoClaim | Place::Unbound | Place::Foreign(_) => return refuse(world, now, absent(world)),
    }
    match wants {
        ReplicationState::Primary => primary(world, now),
        ReplicationState::Secondary | ReplicationState::Resync => demote::decide(world, now),
        ReplicationState::Other(word) => {
            let why =
                format!("spec.replicationState {word:?} is no role: write primary, secondary or resync");
            refuse(world, now, RoleWhy::Unsupported(why))
        }
    }
}

fn primary(world: &World, now: Timestamp) -> RoleDecision {
    let Some((here, copies)) = world.here() else { return Decision::settled() };
    match promote::epoch(world, here, copies) {
        Ok(epoch) if is_secondary(&here.volume) => promote::decide(world, here, copies, epoch, now),
        Ok(epoch) => replicate::decide(world, here, copies, epoch, now),
        Err(_) if world.is_calling() => Decision::act([Effect::Stop]),
        Err(why) if is_secondary(&here.volume) => refuse(world, now, why),
        // It is still what it was; that it is over is said with it.
        Err(why) => replicate::silent(world, why, None, now),
    }
}

/// Nothing is done until something changes.
pub(super) fn refuse(world: &World, now: Timestamp, why: RoleWhy) -> RoleDecision {
    let shown = status::waiting(world, &why, now);
    Decision::wait(why).showing(shown)
}

/// The same, and it is looked again at a time.
pub(super) fn until(world: &World, now: Timestamp, why: RoleWhy, at: Timestamp) -> RoleDecision {
    let shown = status::waiting(world, &why, now);
    Decision::wait_until(why, at).showing(shown)
}

/// An effect, with the last failure shown while the engine tries it again.
pub(super) fn act(world: &World, now: Timestamp, effect: Effect) -> RoleDecision {
    let decision = Decision::act([effect]);
    match &world.trouble {
        Some(trouble) => {
            decision.showing(status::waiting(world, &RoleWhy::Failed(trouble.message.clone()), now))
        }
        None => decision,
    }
}

/// When something that failed is tried again, if not now.
pub(super) fn not_before(
    ended: Timestamp,
    failure: &Failure,
    failures: u32,
    now: Timestamp,
) -> Option<Timestamp> {
    rests(ended, failure.pause(failures), now)
}

/// Until when nothing is done after something that ended. What ended in the future was noted by a clock that has been corrected since: it
/// holds nobody up.
pub(super) fn rests(ended: Timestamp, by: SignedDuration, now: Timestamp) -> Option<Timestamp> {
    Some(later(ended, by)).filter(|again| now < *again && ended <= now)
}

/// A time after another.
pub(super) fn later(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.checked_add(by).unwrap_or(time)
}

/// How often the class wants copies.
pub(super) fn every(world: &World) -> Option<SignedDuration> {
    let said = &world.class.as_ref()?.spec.parameters;
    let text = said.get(parameters::MIRROR_EVERY).or_else(|| said.get(parameters::SCHEDULING_INTERVAL))?;
    Interval::of(text).map(|every| SignedDuration::from_secs(every.seconds()))
}

fn unsupported(world: &World) -> Option<RoleWhy> {
    let source = &world.replication.spec.data_source;
    if source.kind != "PersistentVolumeClaim" {
        let why = format!("node storage mirrors single claims; a {} cannot be mirrored as one", source.kind);
        return Some(RoleWhy::Unsupported(why));
    }
    if world.class.is_none() {
        let name = &world.replication.spec.volume_replication_class;
        let why =
            format!("the VolumeReplicationClass {name} does not exist, or is not of this storage: make it");
        return Some(RoleWhy::Unsupported(why));
    }
    if every(world).is_none() {
        let why = format!(
            "the parameter {} (or {}) of the VolumeReplicationClass is missing or no interval: write a number with s, m, h or d, such as 5m",
            parameters::SCHEDULING_INTERVAL,
            parameters::MIRROR_EVERY
        );
        return Some(RoleWhy::Unsupported(why));
    }
    None
}

fn absent(world: &World) -> RoleWhy {
    let name = &world.replication.spec.data_source.name;
    match &world.place {
        Place::NoClaim => RoleWhy::Claim(format!("the claim {name} does not exist")),
        Place::Foreign(why) => RoleWhy::Unsupported(why.clone()),
        Place::Unbound | Place::Here(_) => {
            RoleWhy::Claim(format!("the claim {name} is not bound to a volume yet"))
        }
    }
}

/// Mirroring ends: nothing is sent any more. What is here stays what it is, and so does the peer's copy.
fn remove(world: &World, now: Timestamp) -> RoleDecision {
    if world.job.is_some() {
        return Decision::act([Effect::Stop]);
    }
    if !world.replication.has_finalizer(finalizers::VOLUME_REPLICATION) {
        return Decision::settled();
    }
    if let Place::Here(here) = &world.place {
        match &here.seen {
            Seen::Listed(copies) if copies.cut.is_some() => {
                return act(world, now, Effect::Drop(vec![Kind::Cut]));
            }
            Seen::Unlisted => return act(world, now, Effect::List { class: here.class.clone() }),
            _ => {}
        }
    }
    act(world, now, Effect::Release)
}
