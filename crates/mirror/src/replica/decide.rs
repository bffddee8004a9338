//! Every rule about secondaries.

use crate::copies::{Copies, Image, Kind, Seen};
use crate::desk::{Expected, Memory};
use crate::words::{Words as _, is_secondary};
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_api::{annotations, finalizers};
use lifeboat_engine::{Decision, Level, Trouble, Why};
use lifeboat_lvm::Error;
use lifeboat_node::provision::words::wanted_size;
use serde::Serialize;
use std::fmt;
use std::sync::Arc;

/// All that a decision about a secondary needs.
#[derive(Debug, Clone)]
pub struct World {
    /// The volume.
    pub volume: Arc<LogicalVolume>,
    /// Its copies.
    pub seen: Seen,
    /// What is remembered of it.
    pub memory: Memory,
    /// Whether it is being made primary here.
    pub promoting: bool,
    /// Why nothing may be received now.
    pub halted: Option<String>,
    /// What failed last.
    pub trouble: Option<Trouble>,
}

/// What can be done about a secondary.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Effect {
    /// Looks at its copies.
    List,
    /// Puts our finalizer on it.
    Hold,
    /// Finds out whether a copy that an earlier process left is whole.
    Probe,
    /// Notes on a copy that it is whole, and what it is.
    Seal(Image),
    /// Makes way for a whole copy: the one before becomes the spare, where it can be used again.
    MakeWay,
    /// Makes a whole copy the one that counts.
    Publish,
    /// Removes copies.
    Drop(Vec<Kind>),
    /// Makes room for more bytes, as the primary has.
    Grow {
        /// Bytes.
        size: u64,
    },
    /// Makes a copy that the next generation can be applied to.
    Prepare,
    /// Lets bytes in.
    Register,
    /// Lets no bytes in any more.
    Close,
    /// Takes our finalizer off.
    Release,
}

/// What a secondary waits for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum ReplicaWhy {
    /// Its device class cannot be looked at.
    Unreadable(String),
    /// It is being made primary.
    Promoting,
    /// It is being made secondary.
    Demoting,
    /// Nothing may be received now.
    Halted(String),
    /// Nobody has offered anything since this process began.
    Primary,
    /// Ready for the next generation.
    Receiving,
}

impl fmt::Display for ReplicaWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why) | Self::Halted(why) => f.write_str(why),
            Self::Promoting => f.write_str("it is being made primary"),
            Self::Demoting => f.write_str("it is being made secondary"),
            Self::Primary => f.write_str("waiting for the primary at the peer cluster to send"),
            Self::Receiving => f.write_str("ready: the next generation comes when the primary sends it"),
        }
    }
}

impl Why for ReplicaWhy {
    fn event(&self) -> Option<Level> {
        matches!(self, Self::Unreadable(_)).then_some(Level::Warning)
    }
}

/// What is decided about a secondary.
pub type ReplicaDecision = Decision<Effect, ReplicaWhy, ()>;

fn act(effect: Effect) -> ReplicaDecision {
    Decision::act([effect])
}

/// Every rule about secondaries.
pub fn decide(world: &World) -> ReplicaDecision {
    let volume = &*world.volume;
    let is_open = world.memory.expected.is_some();
    if volume.is_going() && is_open {
        return act(Effect::Close);
    }
    let concerned = is_secondary(volume)
        || is_open
        || volume.has_finalizer(finalizers::MIRROR)
        || volume.note(annotations::MIRROR_PEER).is_some();
    if !concerned {
        return Decision::settled();
    }
    let copies = match &world.seen {
        Seen::Listed(copies) => copies,
        Seen::Unreadable(error @ Error::NoClass(_)) => {
            return Decision::wait(ReplicaWhy::Unreadable(error.to_string()));
        }
        Seen::Unlisted | Seen::Unreadable(_) => return act(Effect::List),
    };
    if volume.is_going() {
        return remove(volume, copies);
    }
    if !is_secondary(volume) {
        return primary(copies, is_open);
    }
    if world.promoting {
        return Decision::wait(ReplicaWhy::Promoting);
    }
    if copies.live.is_some() {
        return Decision::wait(ReplicaWhy::Demoting);
    }
    if !volume.has_finalizer(finalizers::MIRROR) {
        return act(Effect::Hold);
    }
    settle(world, copies).unwrap_or_else(|| receive(world, copies))
}

/// Every copy of ours goes before the object does.
fn remove(volume: &LogicalVolume, copies: &Copies) -> ReplicaDecision {
    if !copies.are_gone() {
        let all = [Kind::Cut, Kind::Filling, Kind::Spare, Kind::Replica, Kind::Diverged];
        return act(Effect::Drop(all.to_vec()));
    }
    if volume.has_finalizer(finalizers::MIRROR) {
        return act(Effect::Release);
    }
    Decision::settled()
}

/// A primary receives nothing: what is left of its time as a secondary goes.
fn primary(copies: &Copies, is_open: bool) -> ReplicaDecision {
    if is_open {
        return act(Effect::Close);
    }
    // Without the live volume, nobody can tell what is needed.
    if copies.live.is_some() && (copies.filling.is_some() || copies.spare.is_some()) {
        return act(Effect::Drop(vec![Kind::Filling, Kind::Spare]));
    }
    Decision::settled()
}

/// What has arrived whole takes its place, whatever else is asked for.
pub(crate) fn settle(world: &World, copies: &Copies) -> Option<ReplicaDecision> {
    arrived(&world.memory, copies).map(act)
}

/// The next step to publish what has arrived; nothing where all of it is in place.
#[must_use]
pub fn arrived(memory: &Memory, copies: &Copies) -> Option<Effect> {
    let Some(filling) = &copies.filling else {
        // Its replacement is whole and in place.
        let replaced = copies.replica.is_some() && copies.diverged.is_some();
        return replaced.then(|| Effect::Drop(vec![Kind::Diverged]));
    };
    if filling.complete.is_some() {
        return Some(if copies.replica.is_some() { Effect::MakeWay } else { Effect::Publish });
    }
    if let Some(done) = memory.completed.as_ref().filter(|done| done.incarnation == filling.incarnation) {
        let generation = done.generation.clone();
        let image = Image { generation, cut: done.cut, epoch: done.epoch, fuzzy: done.fuzzy.is_some() };
        return Some(Effect::Seal(image));
    }
    if memory.probed.as_ref() != Some(&filling.incarnation) {
        return Some(Effect::Probe);
    }
    let replaced = copies.replica.is_some() && copies.diverged.is_some();
    replaced.then(|| Effect::Drop(vec![Kind::Diverged]))
}

/// Ready for what comes next.
fn receive(world: &World, copies: &Copies) -> ReplicaDecision {
    let (memory, is_open) = (&world.memory, world.memory.expected.is_some());
    let spoiled =
        copies.filling.as_ref().is_some_and(|one| memory.spoiled.as_ref() == Some(&one.incarnation));
    if spoiled {
        return act(if is_open { Effect::Close } else { Effect::Drop(vec![Kind::Filling]) });
    }
    if let Some(why) = &world.halted {
        return if is_open { act(Effect::Close) } else { Decision::wait(ReplicaWhy::Halted(why.clone())) };
    }
    let Some(offer) = &memory.offer else {
        return if is_open { act(Effect::Close) } else { Decision::wait(ReplicaWhy::Primary) };
    };
    if offer.size > wanted_size(&world.volume) {
        return act(if is_open { Effect::Close } else { Effect::Grow { size: offer.size } });
    }
    let Some(filling) = &copies.filling else { return act(Effect::Prepare) };
    if filling.volume.size < wanted_size(&world.volume) {
        return act(if is_open { Effect::Close } else { Effect::Grow { size: wanted_size(&world.volume) } });
    }
    let expected = Expected { incarnation: filling.incarnation.clone(), epoch: offer.epoch };
    if memory.expected.as_ref() != Some(&expected) {
        return act(if is_open { Effect::Close } else { Effect::Register });
    }
    Decision::wait(ReplicaWhy::Receiving)
}
