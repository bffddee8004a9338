//! A primary becomes secondary: nobody uses it, everything that was ever written is at the peer, and only then it is a replica. If the peer
//! went on without it, what only this side has is kept aside until the peer's data has replaced it.

use crate::calls::Word;
use crate::copies::{Copies, Cut, Image, Kind, epoch_of};
use crate::failure::Kind as Failed;
use crate::role::decide::{Effect, RoleDecision, act, not_before, refuse, rests, until};
use crate::role::replicate::sending;
use crate::role::status;
use crate::role::why::RoleWhy;
use crate::role::world::World;
use crate::talk::{Role, State};
use crate::words::{Words as _, is_secondary};
use jiff::{SignedDuration, Timestamp};
use lifeboat_api::replication::ReplicationState;
use lifeboat_engine::Decision;
use lifeboat_lvm::Volume;

/// How soon a peer that stands in the way is asked again.
const ASK_AGAIN: SignedDuration = SignedDuration::from_secs(5);

/// The next step to a secondary.
pub(super) fn decide(world: &World, now: Timestamp) -> RoleDecision {
    let Some((here, copies)) = world.here() else { return Decision::settled() };
    let Some(live) = &copies.live else { return received(world, copies, now) };
    if !world.users.is_empty() {
        return refuse(world, now, RoleWhy::InUse(world.users.join(", ")));
    }
    if !is_secondary(&here.volume) {
        return act(world, now, Effect::Shut);
    }
    let ask = || Effect::Ask { of: question(world) };
    let last = copies.cut.as_ref().filter(|cut| cut.last);
    let sent = last.and_then(|cut| world.call(&sending(&cut.image.generation)));
    if let (Some(cut), Some(call)) = (last, sent) {
        match &call.outcome {
            None => return waits(world, now, RoleWhy::Sending),
            Some((_, Ok(Word::Sent(_)))) => return act(world, now, Effect::Retire(cut.image.clone())),
            // The peer has taken over meanwhile: it is asked what it is.
            Some((_, Err(failure))) if failure.kind == Failed::Superseded => {
                return Decision::act([ask()]);
            }
            Some((_, Err(failure))) if failure.kind == Failed::Source => {
                return act(world, now, Effect::Drop(vec![Kind::Cut]));
            }
            Some((ended, outcome)) => {
                let pause = outcome
                    .as_ref()
                    .err()
                    .and_then(|failure| Some((not_before(*ended, failure, call.failures, now)?, failure)));
                return match pause {
                    Some((again, failure)) => {
                        until(world, now, RoleWhy::Peer(failure.message.clone()), again)
                    }
                    None => Decision::act([ask()]),
                };
            }
        }
    }
    let Some(call) = world.call(&question(world)) else {
        let next = if world.is_calling() { Effect::Stop } else { ask() };
        return act(world, now, next);
    };
    match &call.outcome {
        None => waits(world, now, RoleWhy::Asking),
        Some((ended, Ok(Word::State(state)))) => match objection(world, live, state) {
            Some(Objection::Diverged) => act(world, now, Effect::SetAside),
            Some(Objection::Waits(why)) => match rests(*ended, ASK_AGAIN, now) {
                Some(again) => until(world, now, why, again),
                None => Decision::act([ask()]),
            },
            None => finish(world, live, last, copies, now),
        },
        Some((ended, outcome)) => {
            let failure = outcome.as_ref().err();
            let pause =
                failure.and_then(|failure| Some((not_before(*ended, failure, call.failures, now)?, failure)));
            match pause {
                Some((again, failure)) => until(world, now, RoleWhy::Peer(failure.message.clone()), again),
                None => Decision::act([ask()]),
            }
        }
    }
}

/// The question that is put to the peer before a volume is made secondary: once for each wish.
pub(super) fn question(world: &World) -> String {
    format!("demote/{}", world.replication.metadata.generation.unwrap_or_default())
}

fn waits(world: &World, now: Timestamp, why: RoleWhy) -> RoleDecision {
    let shown = status::waiting(world, &why, now);
    Decision::wait(why).showing(shown)
}

/// Why not everything can be brought to the peer.
enum Objection {
    /// The peer has gone on without this side, and what this side has may be given up.
    Diverged,
    /// Somebody has to decide.
    Waits(RoleWhy),
}

fn objection(world: &World, live: &Volume, state: &State) -> Option<Objection> {
    let (spec, ours) = (&world.replication.spec, epoch_of(live));
    let gives_up = spec.auto_resync || spec.replication_state == ReplicationState::Resync;
    match state.role {
        Role::Primary | Role::Secondary if state.epoch > ours => Some(match gives_up {
            true => Objection::Diverged,
            false => Objection::Waits(RoleWhy::SplitBrain(format!(
                "the peer went on at epoch {}, and this side was written at epoch {ours}: set spec.autoResync to take the peer's data; what only this side has is kept until that is complete",
                state.epoch
            ))),
        }),
        Role::Primary => Some(Objection::Waits(RoleWhy::PeerPrimary(format!(
            "the peer is primary at epoch {} too, and not later than this side at epoch {ours}: make it secondary first, so that it can take what was written here",
            state.epoch
        )))),
        Role::Secondary | Role::Absent => None,
    }
}

/// The peer waits for the last copy: it is cut now that nobody writes, and sent.
fn finish(world: &World, live: &Volume, last: Option<&Cut>, copies: &Copies, now: Timestamp) -> RoleDecision {
    match (last, &copies.cut) {
        (Some(cut), _) if cut.image.epoch < epoch_of(live) || cut.volume.is_invalidated() => {
            act(world, now, Effect::Drop(vec![Kind::Cut]))
        }
        (Some(_), _) => Decision::act([Effect::Send]).showing(status::waiting(world, &RoleWhy::Sending, now)),
        // What was cut while somebody could still write is not all.
        (None, Some(_)) => act(world, now, Effect::Drop(vec![Kind::Cut])),
        (None, None) => act(world, now, Effect::Cut { epoch: epoch_of(live), last: true }),
    }
}

/// It is a secondary: what the peer sends is applied by the rules about replicas.
fn received(world: &World, copies: &Copies, now: Timestamp) -> RoleDecision {
    let Some((here, _)) = world.here() else { return Decision::settled() };
    if world.is_calling() {
        return Decision::act([Effect::Stop]);
    }
    if copies.cut.is_some() {
        return act(world, now, Effect::Drop(vec![Kind::Cut]));
    }
    if !is_secondary(&here.volume) {
        let there = copies.replica.is_some() || copies.diverged.is_some() || copies.filling.is_some();
        if there {
            return act(world, now, Effect::Shut);
        }
        let name = here.volume.name();
        return refuse(
            world,
            now,
            RoleWhy::Volume(format!("the LogicalVolume {name} has no volume on its node")),
        );
    }
    match whole(copies) {
        Some(image) => Decision::settled().showing(status::secondary(world, Some(image), now)),
        None => {
            let why = RoleWhy::Filling("the peer's data is on its way; until it is complete this side cannot be made primary with it".to_owned());
            Decision::wait(why).showing(status::secondary(world, None, now))
        }
    }
}

/// The complete copy of the peer's data, where there is one.
fn whole(copies: &Copies) -> Option<&Image> {
    copies.replica.as_ref().map(|(image, _)| image)
}
