//! A claim: not bound yet, or bound once. Binding is four writes in a fixed order, each left out where nothing would change;
//! the first, which puts the claim into the volume, settles who has it.

use crate::decide::matching;
use crate::decide::provision;
use crate::lean::{PersistentVolume, PersistentVolumeClaim};
use crate::status::{self, ClaimStatus, ClaimWhy, Phase, claim_reference};
use crate::words::{
    BIND_COMPLETED, BOUND_BY_CONTROLLER, ClaimWords, SELECTED_NODE, VolumeWords, annotate, annotation,
    delays_binding, text,
};
use crate::world::{ClaimWorld, Found};
use jiff::{SignedDuration, Timestamp};
use lifeboat_engine::Decision;

/// How long to wait for another claim of this process to have chosen.
const OTHERS_CHOOSE_WITHIN: SignedDuration = SignedDuration::from_millis(50);

/// What can be done about a claim. Each carries the object to write.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum ClaimEffect {
    /// Says which CSI driver has taken over from the claim's in-tree provisioner, or that none has.
    NoteMigration(Box<PersistentVolumeClaim>),
    /// Write 1 of a binding: the claim into the volume.
    Reserve(Box<PersistentVolume>),
    /// Write 2: the volume's phase.
    ShowVolumeBound(Box<PersistentVolume>),
    /// Write 3: the volume into the claim. Write 4 is the claim's status.
    Complete(Box<PersistentVolumeClaim>),
    /// Gives the default class to a claim that says nothing about its class.
    AssignClass(Box<PersistentVolumeClaim>),
    /// Asks an external provisioner for a volume.
    AskProvisioner(Box<PersistentVolumeClaim>),
    /// Tells which free volumes nearly fit, once for each change. Writes an event only.
    TellNearMisses(String),
}

/// What is decided about a claim.
pub type ClaimDecision = Decision<ClaimEffect, ClaimWhy, ClaimStatus>;

/// Every rule about claims.
pub fn decide(world: &ClaimWorld, now: Timestamp) -> ClaimDecision {
    if let Some(claim) = provision::noting_migration(world) {
        return Decision::act([ClaimEffect::NoteMigration(Box::new(claim))]);
    }
    match (world.claim.bind_completed(), world.claim.volume_name()) {
        (false, "") => looking(world, now),
        (false, name) => naming(world, name),
        (true, "") => lost(world, ClaimWhy::LostName),
        (true, _) => bound(world),
    }
}

/// A claim that takes any volume that fits.
fn looking(world: &ClaimWorld, now: Timestamp) -> ClaimDecision {
    let claim = &*world.claim;
    match &world.found {
        Found::Reserved(volume) | Found::Free(volume) => return bind(claim, volume),
        Found::InHand => return Decision::wait_until(ClaimWhy::OthersChoose, now + OTHERS_CHOOSE_WITHIN),
        Found::Nothing => {}
    }
    if let Some(class) = world.default_class.as_ref().filter(|_| !claim.names_class()) {
        let mut claim = claim.clone();
        claim.spec.get_or_insert_default().storage_class_name = Some(class.clone());
        return Decision::act([ClaimEffect::AssignClass(Box::new(claim))]);
    }
    if let Some(near) = world.near.as_ref().filter(|near| world.told.as_ref() != Some(*near)) {
        return Decision::act([ClaimEffect::TellNearMisses(near.clone())]);
    }
    let delays = world.class.as_deref().is_some_and(delays_binding);
    if delays && annotation(&claim.metadata, SELECTED_NODE).is_none() {
        return pending(
            world,
            match world.unscheduled.as_slice() {
                [] => ClaimWhy::FirstConsumer,
                pods => ClaimWhy::PodsScheduled(pods.to_vec()),
            },
        );
    }
    if !claim.class().is_empty() {
        return provision::provision(world);
    }
    pending(
        world,
        match &world.unfit {
            Some(volume) => ClaimWhy::ReservedUnfit(volume.name().to_owned()),
            None => ClaimWhy::NothingFits,
        },
    )
}

/// A claim that names its volume and was not bound yet.
fn naming(world: &ClaimWorld, name: &str) -> ClaimDecision {
    let claim = &*world.claim;
    let Some(volume) = world.named.as_deref() else {
        return pending(world, ClaimWhy::VolumeMissing(name.to_owned()));
    };
    if volume.claim_ref().is_none() {
        return match matching::lack(volume, claim) {
            Some(lack) => pending(world, ClaimWhy::VolumeUnfit(name.to_owned(), lack)),
            None => bind(claim, volume),
        };
    }
    if volume.is_for(claim) {
        // Who reserved it has the last word about whether it fits.
        return bind(claim, volume);
    }
    if annotation(&claim.metadata, BOUND_BY_CONTROLLER).is_some() {
        return Decision::wait(ClaimWhy::VolumeTakenFromUs(name.to_owned()));
    }
    pending(world, ClaimWhy::VolumeTaken(name.to_owned()))
}

/// A claim that was bound once.
fn bound(world: &ClaimWorld) -> ClaimDecision {
    let Some(volume) = world.named.as_deref() else { return lost(world, ClaimWhy::LostVolume) };
    match volume.claim_ref() {
        // A cache that lags behind looks like this as well as a person's edit; binding again is right for both.
        None => bind(&world.claim, volume),
        Some(reference) if text(reference.uid.as_ref()) == world.claim.uid() => bind(&world.claim, volume),
        Some(_) => lost(world, ClaimWhy::Misbound),
    }
}

/// The next of the four writes.
fn bind(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> ClaimDecision {
    if let Some(volume) = reserving(volume, claim) {
        return Decision::act([ClaimEffect::Reserve(Box::new(volume))]);
    }
    if volume.phase() != Phase::Bound.as_str() {
        let shown = status::volume_showing(volume, &Phase::Bound.plain());
        return Decision::act([ClaimEffect::ShowVolumeBound(Box::new(shown))]);
    }
    if let Some(claim) = completing(claim, volume) {
        return Decision::act([ClaimEffect::Complete(Box::new(claim))]);
    }
    Decision::settled().showing(status::bound_to(claim, volume))
}

fn reserving(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Option<PersistentVolume> {
    let was_ours = volume.is_for(claim);
    let has_uid = volume.claim_ref().is_some_and(|reference| reference.uid.as_deref() == Some(claim.uid()));
    let noted = annotation(&volume.metadata, BOUND_BY_CONTROLLER).is_some();
    if was_ours && has_uid {
        return None;
    }
    let mut volume = volume.clone();
    volume.spec.get_or_insert_default().claim_ref = Some(claim_reference(claim));
    if !was_ours && !noted {
        annotate(&mut volume.metadata, BOUND_BY_CONTROLLER, "yes");
    }
    Some(volume)
}

fn completing(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Option<PersistentVolumeClaim> {
    let named = claim.volume_name() == volume.name();
    if named && claim.bind_completed() {
        return None;
    }
    let mut claim = claim.clone();
    if !named {
        claim.spec.get_or_insert_default().volume_name = Some(volume.name().to_owned());
        annotate(&mut claim.metadata, BOUND_BY_CONTROLLER, "yes");
    }
    if !claim.bind_completed() {
        annotate(&mut claim.metadata, BIND_COMPLETED, "yes");
    }
    Some(claim)
}

fn pending(world: &ClaimWorld, why: ClaimWhy) -> ClaimDecision {
    Decision::wait(why).showing(status::without_volume(&world.claim, "Pending"))
}

fn lost(world: &ClaimWorld, why: ClaimWhy) -> ClaimDecision {
    Decision::wait(why).showing(status::without_volume(&world.claim, "Lost"))
}
