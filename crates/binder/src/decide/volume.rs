//! A volume: free, reserved, a claim's, or left behind by one.

use crate::decide::{matching, reclaim};
use crate::lean::{PersistentVolume, PersistentVolumeClaim};
use crate::status::{Phase, VolumeStatus, VolumeWhy};
use crate::words::{
    BOUND_BY_CONTROLLER, ClaimWords, PROVISIONED_BY, VolumeWords, annotation, text, unannotate,
};
use crate::world::VolumeWorld;
use jiff::{SignedDuration, Timestamp};
use lifeboat_engine::{Decision, ObjectKey};

/// How long a fresh volume waits for the claim it was offered to before it is shown as Available, once no claim takes anything any more:
/// as long as some do, its own claim may be in line behind them.
const TAKEN_WITHIN: SignedDuration = SignedDuration::from_secs(5);

/// How long it waits in all.
const SHOWN_WITHIN: SignedDuration = SignedDuration::from_secs(60);

/// How long to wait for a write of this process to end.
const HAND_WITHIN: SignedDuration = SignedDuration::from_secs(1);

/// What can be done about a volume.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum VolumeEffect {
    /// Puts finalizers and the note of a migration right.
    Tidy(Box<PersistentVolume>),
    /// Takes the claim off the volume.
    Unbind(Box<PersistentVolume>),
    /// Reads a claim from the server, before something that cannot be undone.
    ReadClaim(#[serde(serialize_with = "as_text")] ObjectKey),
    /// Wakes a claim that would take the volume. Writes nothing.
    Offer {
        /// The claim.
        #[serde(serialize_with = "as_text")]
        claim: ObjectKey,
        /// When it was decided.
        at: Timestamp,
    },
}

fn as_text<S: serde::Serializer>(key: &ObjectKey, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(key)
}

/// What is decided about a volume.
pub type VolumeDecision = Decision<VolumeEffect, VolumeWhy, VolumeStatus>;

/// Every rule about volumes.
pub fn decide(world: &VolumeWorld, now: Timestamp) -> VolumeDecision {
    if world.in_hand {
        // Whoever writes it wakes it again, unless the write fails.
        return Decision::wait_until(VolumeWhy::BeingTaken, now + HAND_WITHIN);
    }
    if let Some(volume) = reclaim::tidied(world) {
        return Decision::act([VolumeEffect::Tidy(Box::new(volume))]);
    }
    match world.volume.claim_ref() {
        Some(reference) if !text(reference.uid.as_ref()).is_empty() => {
            claimed(world, text(reference.uid.as_ref()))
        }
        _ => free(world, now),
    }
}

/// Unclaimed, or reserved by a person.
fn free(world: &VolumeWorld, now: Timestamp) -> VolumeDecision {
    let available = Phase::Available.plain();
    if let Some(why) = reclaim::storage_left(world) {
        return Decision::wait(why).showing(available);
    }
    let Some(taker) = &world.taker else {
        let born = world.volume.metadata.creation_timestamp.as_ref().map_or(Timestamp::MIN, |time| time.0);
        let until = taken_until(world, born);
        // Those who could take it are just being offered others; what they leave comes back here.
        if world.shown.is_none() && world.wanted && now < until {
            return Decision::wait_until(VolumeWhy::OthersOffered, until);
        }
        return Decision::settled().showing(available);
    };
    match &world.offer {
        Some(offer) if offer.claim == *taker => {
            let until = taken_until(world, offer.made);
            let fresh = world.shown.is_none() && now < until;
            let waits = VolumeWhy::Offered(taker.clone());
            // A claim that takes it at once spares the write.
            if fresh { Decision::wait_until(waits, until) } else { Decision::wait(waits).showing(available) }
        }
        _ => Decision::act([VolumeEffect::Offer { claim: taker.clone(), at: now }]),
    }
}

/// Until when a fresh volume that has been there for the taking since a time is not shown as Available.
fn taken_until(world: &VolumeWorld, since: Timestamp) -> Timestamp {
    let moved = world.taken.map_or(since, |taken| taken.max(since));
    let at_last = since.saturating_add(SHOWN_WITHIN).unwrap_or(since);
    moved.saturating_add(TAKEN_WITHIN).unwrap_or(moved).min(at_last)
}

/// With the uid of a claim.
fn claimed(world: &VolumeWorld, uid: &str) -> VolumeDecision {
    let volume = &*world.volume;
    let key = volume.claim_key().expect("invariant: a volume with a claim's uid names a claim");
    let Some(claim) = world.claim.as_deref().filter(|claim| claim.uid() == uid) else {
        return match world.shown.as_ref().map(|status| status.phase) {
            Some(Phase::Released | Phase::Failed) => reclaim::reclaim(world),
            _ => surely(world, key),
        };
    };
    match claim.volume_name() {
        "" if unlike(volume, claim) => Decision::wait(VolumeWhy::ClaimUnfit(key.name)),
        "" => Decision::wait(VolumeWhy::Claim(key)),
        name if name == volume.name() => Decision::settled().showing(Phase::Bound.plain()),
        // Two were provisioned for one claim: this is the one too many.
        _ if annotation(&volume.metadata, PROVISIONED_BY).is_some() && volume.policy() == "Delete" => {
            surely(world, key)
        }
        _ => Decision::act([VolumeEffect::Unbind(Box::new(unbound(volume)))]),
    }
}

/// Reclaims, once the server has confirmed what the cache says of the claim: others delete what is released.
fn surely(world: &VolumeWorld, claim: ObjectKey) -> VolumeDecision {
    if world.confirmed { reclaim::reclaim(world) } else { Decision::act([VolumeEffect::ReadClaim(claim)]) }
}

fn unlike(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    matching::cannot_serve(volume, claim) == Some(matching::Lack::VolumeMode)
}

/// What a controller reserved is free again; what a person reserved stays reserved, without the uid.
fn unbound(volume: &PersistentVolume) -> PersistentVolume {
    let mut volume = volume.clone();
    let by_controller = annotation(&volume.metadata, BOUND_BY_CONTROLLER).is_some();
    let spec = volume.spec.get_or_insert_default();
    if by_controller {
        spec.claim_ref = None;
        unannotate(&mut volume.metadata, BOUND_BY_CONTROLLER);
    } else if let Some(reference) = &mut spec.claim_ref {
        reference.uid = None;
    }
    volume
}
