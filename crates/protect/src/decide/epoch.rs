//! Epochs: every change of role has a number that only grows. The hub gives it, or it is one more than the highest that can be seen. A
//! lower one than was seen is refused, and one that goes missing lowers nothing.

use crate::decide::{Effect, orphan, restore};
use crate::ledger::Reading;
use crate::why::Wait;
use crate::words::{GroupWords as _, Words as _};
use crate::world::World;
use jiff::{SignedDuration, Timestamp};

/// How soon stores that could not be read are read again.
pub const READ_AGAIN: SignedDuration = SignedDuration::from_secs(10);

/// What the epoch comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Judged {
    /// The group has its role at this epoch.
    Holds(i64),
    /// First this.
    Act(Effect),
    /// The role is not taken.
    Waits(Wait, Option<Timestamp>),
}

/// The highest epoch seen here.
pub fn highest(world: &World) -> i64 {
    let status = world.group.status.as_ref();
    let kept = status.and_then(|status| status.epoch.max(status.primary_epoch)).unwrap_or(0);
    let read = answer(world).map_or(0, |reading| reading.epoch);
    let superseded = world.stores.values().filter_map(|state| match state.failed.as_ref()?.why {
        crate::ledger::LedgerError::Superseded(epoch) => Some(epoch),
        _ => None,
    });
    superseded.fold(kept.max(read), i64::max)
}

/// The epoch at which the group is primary here.
pub fn primary_epoch(world: &World) -> Option<i64> {
    world.group.status.as_ref().and_then(|status| status.primary_epoch)
}

/// A later epoch than ours, where one was seen: another cluster is primary now.
pub fn superseded(world: &World) -> Option<i64> {
    let ours = primary_epoch(world)?;
    Some(highest(world)).filter(|highest| *highest > ours)
}

/// What the stores are asked: anew for every change of what the group shall be.
pub fn question(world: &World) -> String {
    let group = &world.group;
    let generation = group.metadata.generation.unwrap_or_default();
    format!("{}/{generation}/{}", group.uid(), group.spec.s3_profiles.join(","))
}

/// What the stores said to the present question.
pub fn answer(world: &World) -> Option<&Reading> {
    let (asked, reading, _) = world.read.answer.as_ref()?;
    (*asked == question(world)).then_some(reading)
}

/// Asks the stores, unless that is under way.
pub fn ask(world: &World) -> Judged {
    if world.read.busy.is_some() {
        return Judged::Waits(Wait::ReadingStores, None);
    }
    Judged::Act(Effect::ReadStores { question: question(world) })
}

/// Whether the role that is asked for may be held, and at which epoch.
pub fn judge(world: &World, _now: Timestamp) -> Judged {
    let group = &world.group;
    let held = primary_epoch(world);
    let given = match group.given_epoch() {
        Some(Err(text)) => return Judged::Waits(Wait::EpochUnreadable(text), None),
        Some(Ok(given)) => Some(given),
        None => None,
    };
    if group.wants_secondary() {
        let highest = highest(world);
        return match given {
            Some(given) if given < highest => Judged::Waits(Wait::EpochRefused { given, highest }, None),
            _ => {
                let seen = given.unwrap_or(0).max(highest);
                let known = group.status.as_ref().and_then(|status| status.epoch).unwrap_or(0);
                match held.is_some() || seen > known {
                    true => Judged::Act(Effect::YieldEpoch(seen)),
                    false => Judged::Holds(seen),
                }
            }
        };
    }
    if held.is_none() && answer(world).is_none() && !world.store_names().is_empty() {
        return ask(world);
    }
    let highest = highest(world);
    match (given, held) {
        (Some(given), _) if given < highest => Judged::Waits(Wait::EpochRefused { given, highest }, None),
        (Some(given), Some(held)) if given == held => Judged::Holds(held),
        (Some(given), _) => Judged::Act(Effect::TakeEpoch(given)),
        // Taken when not every store could be read, and nothing was done with it yet.
        (None, Some(held)) if highest > held && restore::was_done(world).is_none() => {
            Judged::Act(Effect::TakeEpoch(highest + 1))
        }
        (None, Some(held)) => Judged::Holds(held),
        // The same group as before, whose object was lost: nobody else was primary since.
        (None, None) => Judged::Act(Effect::TakeEpoch(orphan::returns(world).unwrap_or(highest + 1))),
    }
}
