//! A secondary becomes primary: only if the peer is not, only with a complete copy, and at an epoch that the peer's is below.

use crate::calls::Word;
use crate::copies::{Copies, Filling, Image, Kind, epoch_of};
use crate::failure::Kind as Failed;
use crate::replica::decide as replica;
use crate::role::decide::{Effect, RoleDecision, act, refuse, rests, until};
use crate::role::why::RoleWhy;
use crate::role::world::{Here, World};
use crate::talk::{Role, State};
use crate::words::{Words as _, is_secondary};
use jiff::{SignedDuration, Timestamp};
use lifeboat_api::annotations;
use lifeboat_engine::Decision;

/// How soon a peer that says no is asked again.
const ASK_AGAIN: SignedDuration = SignedDuration::from_secs(2);

/// The epoch at which the volume is primary, or becomes it: the group's, or without a group the next after the highest that any copy carries.
pub(super) fn epoch(world: &World, here: &Here, copies: &Copies) -> Result<u64, RoleWhy> {
    let seen = copies.epoch();
    match world.epochs {
        None | Some((0, _)) => {
            let begun = copies.live.as_ref().is_some_and(|live| Image::of(live).is_none());
            let fresh = is_secondary(&here.volume) && !begun;
            Ok(if fresh { seen + 1 } else { seen.max(1) })
        }
        Some((highest, None)) => Err(RoleWhy::Superseded(format!(
            "its group is not primary here (epoch {highest}): nothing is sent, and nothing is made primary"
        ))),
        Some((highest, Some(ours))) if ours < highest => Err(RoleWhy::Superseded(format!(
            "its group is primary at epoch {ours}, and epoch {highest} was seen: another cluster is primary now, make this group secondary"
        ))),
        Some((_, Some(ours))) if ours < seen => Err(RoleWhy::EpochRefused(format!(
            "its group is at epoch {ours}, and the volume was last written at epoch {seen}: an epoch never goes back"
        ))),
        Some((_, Some(ours))) => Ok(ours),
    }
}

/// The next step to a primary.
pub(super) fn decide(
    world: &World,
    here: &Here,
    copies: &Copies,
    epoch: u64,
    now: Timestamp,
) -> RoleDecision {
    let unprobed = |filling: &Filling| world.memory.probed.as_ref() != Some(&filling.incarnation);
    let open = copies.filling.as_ref().filter(|filling| filling.complete.is_none());
    if world.memory.expected.is_none() && open.is_some_and(unprobed) {
        return act(world, now, Effect::Probe);
    }
    if let Err(decision) = allowed(world, copies, epoch, now) {
        return *decision;
    }
    // Until here the peer may still send, and must be able to if it is to become secondary.
    if !world.memory.promoting {
        return act(world, now, Effect::Take);
    }
    if world.memory.expected.is_some() {
        return act(world, now, Effect::Close);
    }
    if copies.live.is_none()
        && let Some(step) = replica::arrived(&world.memory, copies)
    {
        return act(world, now, publishing(step));
    }
    if copies.filling.is_some() || (copies.live.is_some() && copies.spare.is_some()) {
        return act(world, now, Effect::Drop(vec![Kind::Filling, Kind::Spare]));
    }
    let Some(live) = &copies.live else {
        let whole = [
            (Kind::Replica, copies.replica.is_some()),
            (Kind::Spare, copies.spare.as_ref().is_some_and(|spare| Image::of(spare).is_some())),
            (Kind::Diverged, copies.diverged.is_some()),
        ];
        return match whole.into_iter().find(|(_, there)| *there) {
            Some((from, _)) => act(world, now, Effect::Rename { from, to: Kind::Live }),
            None => refuse(world, now, RoleWhy::NoCopy),
        };
    };
    if epoch_of(live) < epoch || Image::of(live).is_some() {
        return act(world, now, Effect::Stamp { epoch });
    }
    // What was kept aside has been replaced by what is live now.
    if copies.diverged.is_some() {
        return act(world, now, Effect::Drop(vec![Kind::Diverged]));
    }
    debug_assert!(is_secondary(&here.volume), "only a secondary becomes primary");
    act(world, now, Effect::Open)
}

fn publishing(step: replica::Effect) -> Effect {
    match step {
        replica::Effect::Probe => Effect::Probe,
        replica::Effect::Seal(image) => Effect::Seal(image),
        replica::Effect::MakeWay => Effect::MakeWay,
        replica::Effect::Drop(kinds) => Effect::Drop(kinds),
        _ => Effect::Rename { from: Kind::Filling, to: Kind::Replica },
    }
}

/// Whether the peer lets it. One that cannot be asked does not stand in the way: its cluster may be lost, and its epoch is over with this.
fn allowed(world: &World, copies: &Copies, epoch: u64, now: Timestamp) -> Result<(), Box<RoleDecision>> {
    if world.replication.note(annotations::FORCE_PROMOTE) == Some("true") {
        return Ok(());
    }
    let no = |decision: RoleDecision| Err(Box::new(decision));
    let asked = format!("promote/{}/{epoch}", world.replication.metadata.generation.unwrap_or_default());
    let Some(call) = world.call(&asked) else {
        let next = if world.is_calling() { Effect::Stop } else { Effect::Ask { of: asked } };
        return no(act(world, now, next));
    };
    let Some((ended, answer)) = &call.outcome else { return no(refuse(world, now, RoleWhy::Asking)) };
    let why = match answer {
        Ok(word) => objection(word, world, copies, epoch),
        Err(failure) if matches!(failure.kind, Failed::Link | Failed::Setup) => None,
        Err(failure) => Some(RoleWhy::Peer(failure.message.clone())),
    };
    let Some(why) = why else { return Ok(()) };
    no(match rests(*ended, ASK_AGAIN, now) {
        Some(again) => until(world, now, why, again),
        None => Decision::act([Effect::Ask { of: asked }]),
    })
}

fn objection(answer: &Word, world: &World, copies: &Copies, epoch: u64) -> Option<RoleWhy> {
    let Word::State(state) = answer else { return None };
    match state.role {
        Role::Primary if state.epoch >= epoch => Some(RoleWhy::PeerPrimary(format!(
            "the peer is primary at epoch {}, and this side would be at epoch {epoch}: make the peer secondary first, or set the annotation {}=true if what it has may be given up",
            state.epoch,
            annotations::FORCE_PROMOTE
        ))),
        Role::Secondary if state.newest > newest(world, copies) => Some(RoleWhy::PeerAhead(format!(
            "the peer has a newer copy than this side, which is on its way; set the annotation {}=true if it may be given up",
            annotations::FORCE_PROMOTE
        ))),
        _ => None,
    }
}

/// The newest complete copy here: what arrived last, the replica, or what is live already.
fn newest(world: &World, copies: &Copies) -> Option<(u64, Timestamp)> {
    let filling = copies.filling.as_ref();
    let arrived = world.memory.completed.as_ref().map(|done| (done.epoch, done.cut));
    let sealed = State::newest_of(filling.and_then(|filling| filling.complete.as_ref()));
    let replica = State::newest_of(copies.replica.as_ref().map(|(image, _)| image));
    // What is live holds at least what it was made of.
    let live = copies.live.as_ref().map(|live| (epoch_of(live), Timestamp::MAX));
    [arrived, sealed, replica, live].into_iter().flatten().max()
}
