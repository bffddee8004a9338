//! A claim that asks for a volume: a place is found, a LogicalVolume made there, and a PersistentVolume published for it.

use super::place::{self, NoPlace};
use super::size;
use super::source::{Filling, SourceView, Unfilled, filling};
use crate::provision::desk::Failure;
use crate::provision::make::{logical_volume, parameter, persistent_volume};
use crate::provision::status::ClaimWhy;
use crate::provision::words::{
    annotation, claim_noted, claim_of, device_class, failure, has_finalizer, is_going, mode_of, name,
    provisioner_of, storage, uid, volume_id, volume_name, volume_of, wanted_size,
};
use crate::provision::world::ClaimWorld;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, TopologySelectorTerm};
use k8s_openapi::api::storage::v1::StorageClass;
use lifeboat_api::annotations::{self, parameters};
use lifeboat_api::finalizers;
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_engine::{Decision, ObjectKey};
use std::collections::BTreeSet;

/// gRPC: there is no room.
pub const RESOURCE_EXHAUSTED: i32 = 8;
/// gRPC: what was asked of is not there.
pub const UNAVAILABLE: i32 = 14;

/// What can be done about a claim that asks for a volume.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum ClaimEffect {
    /// Makes its LogicalVolume, if the room is still there.
    Make(Box<LogicalVolume>),
    /// Takes a LogicalVolume away that cannot be made, and remembers why.
    Discard {
        /// The LogicalVolume.
        volume: Box<LogicalVolume>,
        /// gRPC code.
        code: i32,
        /// What was said.
        message: String,
    },
    /// Takes the chosen node off the claim, so that the scheduler chooses again.
    Reschedule {
        /// The claim without it.
        claim: Box<PersistentVolumeClaim>,
        /// Why.
        because: String,
    },
    /// Makes its PersistentVolume.
    Publish(Box<PersistentVolume>),
}

/// What is decided about such a claim. Its status is the binder's business.
pub type ClaimDecision = Decision<ClaimEffect, ClaimWhy, ()>;

/// Every rule about claims that ask for a volume.
pub fn decide(world: &ClaimWorld, now: Timestamp) -> ClaimDecision {
    let claim = &*world.claim;
    if let Some(volume) = world.volume.as_deref() {
        return published(claim, volume);
    }
    let asks = provisioner_of(claim) == Some(&world.driver);
    if is_going(&claim.metadata) || !volume_of(claim).is_empty() || !asks {
        return Decision::settled();
    }
    let Some(class) = world.class.as_deref() else {
        return Decision::wait(ClaimWhy::ClassMissing(crate::provision::words::class_of(claim).to_owned()));
    };
    if class.provisioner != world.driver {
        return Decision::settled();
    }
    match world.logical.as_deref() {
        Some(logical) => made(world, class, logical),
        None => place(world, class, now),
    }
}

/// Names of the nodes whose room a decision looks at; `None` for all of them. What is on a node is looked through for every claim that
/// asks, so those that do not matter are left out.
pub fn nodes_that_matter(
    claim: &PersistentVolumeClaim,
    class: Option<&StorageClass>,
    logical: Option<&LogicalVolume>,
    source: &SourceView,
) -> Option<BTreeSet<String>> {
    if let Some(logical) = logical {
        return Some([logical.spec.node_name.clone()].into());
    }
    let delays = |class: &StorageClass| class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer");
    if class.is_some_and(|class| !delays(class)) {
        return None;
    }
    let selected = annotation(&claim.metadata, annotations::SELECTED_NODE).map(str::to_owned);
    let source = source.logical.as_ref().map(|source| source.spec.node_name.clone());
    Some(selected.into_iter().chain(source).collect())
}

/// A volume of the claim's name is there: all is done, unless it is a stranger's.
fn published(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> ClaimDecision {
    let ours = claim_of(volume).is_some_and(|(key, of)| key == ObjectKey::of(claim) && of == uid(claim));
    if ours || !volume_of(claim).is_empty() {
        return Decision::settled();
    }
    Decision::wait(ClaimWhy::NameTaken(format!("PersistentVolume {}", name(volume))))
}

/// The LogicalVolume of the claim's name is there: it may be ours, failed, being made, or ready.
fn made(world: &ClaimWorld, class: &StorageClass, logical: &LogicalVolume) -> ClaimDecision {
    let claim = &*world.claim;
    if is_going(&logical.metadata) {
        return Decision::wait(ClaimWhy::Discarding(name(logical).to_owned()));
    }
    if let Some(why) = strange(claim, class, logical) {
        return Decision::wait(ClaimWhy::NameTaken(format!("LogicalVolume {}, {why},", name(logical))));
    }
    if volume_id(logical).is_some() {
        let volume = persistent_volume(claim, class, logical, &world.driver);
        return Decision::act([ClaimEffect::Publish(Box::new(volume))]);
    }
    if let Some((code, message)) = failure(logical) {
        let (volume, message) = (Box::new(logical.clone()), message.to_owned());
        return Decision::act([ClaimEffect::Discard { volume, code, message }]);
    }
    let node = &logical.spec.node_name;
    if !world.rooms.iter().any(|room| room.name() == node) {
        // Without the node's finalizer nothing was ever made there, so nothing is lost with the object.
        if !has_finalizer(&logical.metadata, finalizers::LOGICAL_VOLUME) {
            let message = format!("node {node} does not exist any more");
            return Decision::act([ClaimEffect::Discard {
                volume: Box::new(logical.clone()),
                code: UNAVAILABLE,
                message,
            }]);
        }
        return Decision::wait(ClaimWhy::NodeGone(node.clone()));
    }
    Decision::wait(ClaimWhy::Making { claim: ObjectKey::of(claim).to_string(), node: node.clone() })
}

/// What is strange about a LogicalVolume of the right name.
fn strange(
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    logical: &LogicalVolume,
) -> Option<&'static str> {
    if claim_noted(logical).is_some_and(|noted| noted != ObjectKey::of(claim)) {
        return Some("which is another claim's");
    }
    if !logical.spec.name.eq_ignore_ascii_case(&volume_name(claim)) {
        return Some("which is named otherwise in its spec");
    }
    if wanted(claim, class).is_ok_and(|size| size != wanted_size(logical)) {
        return Some("which is of another size");
    }
    None
}

fn wanted(claim: &PersistentVolumeClaim, class: &StorageClass) -> Result<u64, size::SizeError> {
    let resources = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref());
    let request = storage(resources.and_then(|resources| resources.requests.as_ref()));
    let limit = storage(resources.and_then(|resources| resources.limits.as_ref()));
    let block = mode_of(claim) == "Block";
    size::size(
        request.unwrap_or_default(),
        limit.unwrap_or_default(),
        block,
        parameter(class, parameters::FS_TYPE),
    )
}

/// What makes no sense in a claim, whatever the cluster has.
fn refusal(claim: &PersistentVolumeClaim) -> Option<String> {
    let spec = claim.spec.as_ref()?;
    let modes = spec.access_modes.iter().flatten();
    let mut unserved = modes.filter(|mode| !matches!(mode.as_str(), "ReadWriteOnce" | "ReadWriteOncePod"));
    if let Some(mode) = unserved.next() {
        return Some(format!(
            "access mode {mode} is not supported: a volume of one node's disk is ReadWriteOnce or ReadWriteOncePod"
        ));
    }
    spec.selector.as_ref().map(|_| "claim Selector is not supported".to_owned())
}

fn place(world: &ClaimWorld, class: &StorageClass, now: Timestamp) -> ClaimDecision {
    let claim = &*world.claim;
    let delays = class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer");
    let selected = annotation(&claim.metadata, annotations::SELECTED_NODE).filter(|node| !node.is_empty());
    if delays && selected.is_none() {
        return Decision::wait(ClaimWhy::FirstConsumer);
    }
    if let Some(failure) = &world.failure {
        if delays && reschedules(failure) && selected == Some(&failure.node) {
            return reschedule(claim, failure.message.clone());
        }
        if now < failure.until {
            let why = ClaimWhy::Failed { code: failure.code, message: failure.message.clone() };
            return Decision::wait_until(why, failure.until);
        }
    }
    if let Some(why) = refusal(claim) {
        return Decision::wait(ClaimWhy::Refused(why));
    }
    let size = match wanted(claim, class) {
        Ok(size) => size,
        Err(error) => return Decision::wait(ClaimWhy::Refused(error.to_string())),
    };
    let filling = match filling(claim, &world.source, &world.driver) {
        Ok(filling) => filling,
        Err(Unfilled::Elsewhere(kind)) => return Decision::wait(ClaimWhy::Populator(kind)),
        Err(Unfilled::NotReady(what)) => return Decision::wait(ClaimWhy::SourceNotReady(what)),
        Err(Unfilled::Refused(why)) => return Decision::wait(ClaimWhy::Refused(why)),
    };
    if let Filling::Copy { least, .. } | Filling::Backup { least, .. } = &filling
        && size < *least
    {
        return Decision::wait(ClaimWhy::Refused(format!(
            "requested volume size {size} is less than the size {least} of the data source"
        )));
    }
    let topologies = class.allowed_topologies.as_deref().unwrap_or_default();
    match node_for(world, class, topologies, size, &filling, selected.filter(|_| delays), now) {
        Ok(node) => {
            let logical = logical_volume(claim, class, &node, size, &filling);
            Decision::act([ClaimEffect::Make(Box::new(logical))])
        }
        Err(Misplaced::Here(why)) => Decision::wait(why),
        Err(Misplaced::ChooseAgain(because)) => reschedule(claim, because),
    }
}

fn reschedules(failure: &Failure) -> bool {
    matches!(failure.code, RESOURCE_EXHAUSTED | UNAVAILABLE)
}

fn reschedule(claim: &PersistentVolumeClaim, because: String) -> ClaimDecision {
    let mut claim = claim.clone();
    if let Some(notes) = &mut claim.metadata.annotations {
        notes.remove(annotations::SELECTED_NODE);
    }
    Decision::act([ClaimEffect::Reschedule { claim: Box::new(claim), because }])
}

enum Misplaced {
    Here(ClaimWhy),
    ChooseAgain(String),
}

fn node_for(
    world: &ClaimWorld,
    class: &StorageClass,
    topologies: &[TopologySelectorTerm],
    size: u64,
    filling: &Filling,
    selected: Option<&str>,
    now: Timestamp,
) -> Result<String, Misplaced> {
    let device = parameter(class, annotations::DEVICE_CLASS);
    let room = |node: &str| world.rooms.iter().find(|room| room.name() == node);
    let no_place =
        |found: NoPlace, device: &str| ClaimWhy::NoPlace { device: device.to_owned(), size, found };
    if let Filling::Copy { of, .. } = filling {
        // A copy shares the blocks of its source: only its node and class can have it, whatever the scheduler thought.
        if !device.is_empty() && device != device_class(of) {
            let why = format!(
                "device class {device:?} of the StorageClass is not {:?}, that of the data source",
                device_class(of)
            );
            return Err(Misplaced::Here(ClaimWhy::Refused(why)));
        }
        let node = &of.spec.node_name;
        return match place::fits(room(node), topologies, device_class(of), size, now) {
            Ok(()) => Ok(node.clone()),
            Err(found) => Err(Misplaced::Here(no_place(found, device_class(of)))),
        };
    }
    if let Some(node) = selected {
        return match place::fits(room(node), topologies, device, size, now) {
            Ok(()) => Ok(node.to_owned()),
            Err(found) => Err(Misplaced::ChooseAgain(format!("node {node}: {}", no_place(found, device)))),
        };
    }
    let avoid = world.failure.as_ref().map(|failure| failure.node.as_str());
    match place::choose(&world.rooms, topologies, device, size, avoid, now) {
        Ok(room) => Ok(room.name().to_owned()),
        Err(found) => Err(Misplaced::Here(no_place(found, device))),
    }
}
