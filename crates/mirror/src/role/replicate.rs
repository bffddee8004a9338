//! What a primary does: finds its place at the peer once, then cuts and sends a copy at every interval.

use crate::calls::Word;
use crate::copies::{Copies, Cut, Kind, epoch_of};
use crate::failure::{Failure, Kind as Failed};
use crate::role::decide::{Effect, RoleDecision, act, every, not_before, refuse, rests};
use crate::role::status::{self, Flow};
use crate::role::why::RoleWhy;
use crate::role::world::{Here, World};
use crate::words::Words as _;
use jiff::Timestamp;
use lifeboat_api::annotations;
use lifeboat_engine::Decision;

/// The call by which the volume finds its place at the peer.
pub(super) const MEET: &str = "meet";

/// What the call that sends a generation is named by.
pub(super) fn sending(generation: &str) -> String {
    format!("send/{generation}")
}

/// The next step of a primary.
pub(super) fn decide(
    world: &World,
    here: &Here,
    copies: &Copies,
    epoch: u64,
    now: Timestamp,
) -> RoleDecision {
    let Some(live) = &copies.live else {
        let name = here.volume.name();
        return refuse(
            world,
            now,
            RoleWhy::Volume(format!("the LogicalVolume {name} has no volume on its node yet")),
        );
    };
    if epoch_of(live) < epoch {
        return act(world, now, Effect::Stamp { epoch });
    }
    if here.volume.note(annotations::MIRROR_PEER).is_none() {
        return meet(world, now);
    }
    match &copies.cut {
        Some(cut) => carry(world, cut, epoch, now),
        None => next(world, epoch, now),
    }
}

/// Nothing flows, and the volume is primary all the same.
pub(super) fn silent(world: &World, why: RoleWhy, until: Option<Timestamp>, now: Timestamp) -> RoleDecision {
    let shown = status::primary(world, &Flow::Stopped(why.to_string()), now);
    let decision = match until {
        Some(until) => Decision::wait_until(why, until),
        None => Decision::wait(why),
    };
    decision.showing(shown)
}

/// A failed call: when it is tried again, and what is said meanwhile.
fn failed(
    world: &World,
    failure: &Failure,
    ended: Timestamp,
    failures: u32,
    now: Timestamp,
) -> Option<RoleDecision> {
    not_before(ended, failure, failures, now).map(|again| {
        let why = match failure.kind {
            Failed::Superseded => RoleWhy::Superseded(failure.message.clone()),
            Failed::Link | Failed::Setup | Failed::Refused => RoleWhy::Peer(failure.message.clone()),
            _ => RoleWhy::Failed(failure.message.clone()),
        };
        silent(world, why, Some(again), now)
    })
}

fn meet(world: &World, now: Timestamp) -> RoleDecision {
    let call = world.call(MEET);
    match call.and_then(|call| Some((call.outcome.as_ref()?, call.failures))) {
        Some(((_, Ok(Word::Met(peer))), _)) => act(world, now, Effect::Pair { peer: peer.clone() }),
        Some(((ended, Err(failure)), failures)) => {
            failed(world, failure, *ended, failures, now).unwrap_or_else(|| Decision::act([Effect::Meet]))
        }
        None if call.is_some() => {
            let shown = status::primary(world, &Flow::Stopped(RoleWhy::Meeting.to_string()), now);
            Decision::wait(RoleWhy::Meeting).showing(shown)
        }
        _ if world.is_calling() => Decision::act([Effect::Stop]),
        _ => Decision::act([Effect::Meet]),
    }
}

/// Something was cut: it is sent, whatever is due meanwhile.
fn carry(world: &World, cut: &Cut, epoch: u64, now: Timestamp) -> RoleDecision {
    // Cut in an earlier role, or lost because more was written meanwhile than it could hold.
    if cut.image.epoch < epoch || cut.last || cut.volume.is_invalidated() {
        return act(world, now, Effect::Drop(vec![Kind::Cut]));
    }
    let call = world.call(&sending(&cut.image.generation));
    match call.and_then(|call| Some((call.outcome.as_ref()?, call.failures))) {
        Some(((ended, Ok(Word::Sent(sent))), _)) => {
            // The word about it comes first: if the process dies in between, it is only sent once more.
            let shown = status::sent(world, &cut.image, sent, *ended, now);
            Decision::act([Effect::Drop(vec![Kind::Cut])]).showing(shown)
        }
        Some(((_, Err(failure)), _)) if failure.kind == Failed::Source => {
            act(world, now, Effect::Drop(vec![Kind::Cut]))
        }
        Some(((_, Err(Failure { kind: Failed::Renamed(peer), .. })), _))
            if world
                .here()
                .is_some_and(|(here, _)| here.volume.note(annotations::MIRROR_PEER) != Some(peer)) =>
        {
            act(world, now, Effect::Pair { peer: peer.clone() })
        }
        Some(((ended, Err(failure)), failures)) => {
            failed(world, failure, *ended, failures, now).unwrap_or_else(|| start(world, now))
        }
        None if call.is_some() => {
            let shown = status::primary(world, &Flow::Moving, now);
            Decision::wait(RoleWhy::Sending).showing(shown)
        }
        _ => start(world, now),
    }
}

fn start(world: &World, now: Timestamp) -> RoleDecision {
    if world.is_calling() {
        return Decision::act([Effect::Stop]);
    }
    if !world.room {
        return Decision::wait(RoleWhy::Turn).showing(status::primary(world, &Flow::Moving, now));
    }
    Decision::act([Effect::Send]).showing(status::primary(world, &Flow::Moving, now))
}

/// Nothing is on its way: is a copy due?
fn next(world: &World, epoch: u64, now: Timestamp) -> RoleDecision {
    if let Some(call) = &world.job
        && let Some((ended, Err(failure))) = &call.outcome
        && let Some(waits) = failed(world, failure, *ended, call.failures, now)
    {
        return waits;
    }
    let last = world.replication.status.as_ref().and_then(|status| status.last_sync_time.as_ref());
    // A cut that lies in the future was made by a clock that has been corrected since: nobody knows how old it is.
    let due = last.and_then(|last| rests(last.0, every(world).unwrap_or_default(), now));
    match due {
        Some(at) => {
            Decision::wait_until(RoleWhy::Due(at), at).showing(status::primary(world, &Flow::Moving, now))
        }
        None => act(world, now, Effect::Cut { epoch, last: false }),
    }
}
