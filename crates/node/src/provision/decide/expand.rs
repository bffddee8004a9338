//! A bound claim that asks for more: its LogicalVolume grows, then its volume says so, then the claim; files grow on the node, unless
//! they need nothing.
//!
//! The rule for the last step: block volumes and volumes that are directories need nothing, so the claim shows the new size at once;
//! a filesystem on a device is grown where it is mounted, so the claim shows FileSystemResizePending until the node has done that.

use super::size::PAGE;
use crate::provision::status::ExpandWhy;
use crate::provision::words::{
    claim_of, csi_of, current_size, device_class, failure, is_going, mode_of, name, quantity, storage, uid,
    wanted_size,
};
use crate::provision::world::ExpandWorld;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimCondition, PersistentVolumeClaimStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lifeboat_engine::Decision;
use lifeboat_engine::conditions::whole_seconds;

/// Condition of a claim: the storage is being grown.
pub const RESIZING: &str = "Resizing";
/// Condition of a claim: the storage has grown, the files have not.
pub const FILES_PENDING: &str = "FileSystemResizePending";

/// What can be done for a claim that asks for more.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum ExpandEffect {
    /// Asks the node for more.
    Grow {
        /// Name of the LogicalVolume.
        volume: String,
        /// Its UID.
        uid: String,
        /// Its node and device class, for the reservation.
        place: (String, String),
        /// Bytes it has been promised so far.
        from: u64,
        /// Bytes it shall have.
        to: u64,
        /// When this was asked.
        at: String,
    },
    /// Says on the volume how large it is now.
    ShowSize(Box<PersistentVolume>),
}

/// What is decided about a bound claim.
pub type ExpandDecision = Decision<ExpandEffect, ExpandWhy, PersistentVolumeClaimStatus>;

/// Every rule about growth.
pub fn decide(world: &ExpandWorld, now: Timestamp) -> ExpandDecision {
    let claim = &*world.claim;
    let Some(volume) = world.volume.as_deref() else { return Decision::settled() };
    let status = claim.status.clone().unwrap_or_default();
    let bound =
        status.phase.as_deref() == Some("Bound") && claim_of(volume).is_some_and(|(_, of)| of == uid(claim));
    let ours = csi_of(volume).is_some_and(|(driver, _)| driver == world.driver);
    if !bound || !ours || is_going(&claim.metadata) || is_going(&volume.metadata) {
        return Decision::settled();
    }
    let resources = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref());
    let request = storage(resources.and_then(|resources| resources.requests.as_ref())).unwrap_or_default();
    let has = storage(volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref())).unwrap_or_default();
    if request <= has {
        return finish(world, volume, status, has, now);
    }
    let resizing = conditioned(status, Some(RESIZING), now);
    if world.class.as_deref().and_then(|class| class.allow_volume_expansion) != Some(true) {
        return Decision::wait(ExpandWhy::NotAllowed);
    }
    let Some(logical) = world.logical.as_deref().filter(|logical| !is_going(&logical.metadata)) else {
        return Decision::wait(ExpandWhy::StorageMissing(name(volume).to_owned()));
    };
    let target = request.checked_next_multiple_of(PAGE).unwrap_or(request);
    if current_size(logical).is_some_and(|current| current >= target) {
        let mut volume = volume.clone();
        let size = quantity(current_size(logical).unwrap_or(target));
        volume
            .spec
            .get_or_insert_default()
            .capacity
            .get_or_insert_default()
            .insert("storage".to_owned(), size);
        return Decision::act([ExpandEffect::ShowSize(Box::new(volume))]).showing(resizing);
    }
    let node = &logical.spec.node_name;
    let promised = wanted_size(logical);
    if promised >= target {
        if let Some((_, message)) = failure(logical) {
            return Decision::wait(ExpandWhy::Failed(message.to_owned())).showing(resizing);
        }
        return Decision::wait(ExpandWhy::Growing { volume: name(logical).to_owned(), node: node.clone() })
            .showing(resizing);
    }
    let more = target - promised;
    let free = world.room.as_ref().and_then(|room| room.free(device_class(logical), now));
    match free {
        Some(free) if free >= more => {
            let grow = ExpandEffect::Grow {
                volume: name(logical).to_owned(),
                uid: uid(logical).to_owned(),
                place: (node.clone(), device_class(logical).to_owned()),
                from: promised,
                to: target,
                at: whole_seconds(now).to_string(),
            };
            Decision::act([grow]).showing(resizing)
        }
        free => {
            Decision::wait(ExpandWhy::NoRoom { node: node.clone(), more, free: free.unwrap_or_default() })
                .showing(resizing)
        }
    }
}

/// The storage is large enough; the claim says so, when its files are.
fn finish(
    world: &ExpandWorld,
    volume: &PersistentVolume,
    status: PersistentVolumeClaimStatus,
    has: u64,
    now: Timestamp,
) -> ExpandDecision {
    let shown = storage(status.capacity.as_ref()).unwrap_or_default();
    if shown >= has {
        let pending = status
            .conditions
            .iter()
            .flatten()
            .any(|condition| [RESIZING, FILES_PENDING].contains(&&*condition.type_));
        let settled = Decision::settled();
        return if pending { settled.showing(conditioned(status, None, now)) } else { settled };
    }
    let class = world.logical.as_deref().map(device_class).unwrap_or_default();
    let files = mode_of(&world.claim) == "Filesystem"
        && !world.room.as_ref().is_some_and(|room| room.is_directory(class));
    if files {
        let pending = conditioned(status, Some(FILES_PENDING), now);
        return Decision::wait(ExpandWhy::Files(name(volume).to_owned())).showing(pending);
    }
    let mut done = conditioned(status, None, now);
    done.capacity.get_or_insert_default().insert("storage".to_owned(), quantity(has));
    Decision::settled().showing(done)
}

/// A status with one of the two conditions of growth, or with none.
fn conditioned(
    mut status: PersistentVolumeClaimStatus,
    wanted: Option<&str>,
    now: Timestamp,
) -> PersistentVolumeClaimStatus {
    let mut conditions = status.conditions.take().unwrap_or_default();
    conditions.retain(|condition| {
        Some(&*condition.type_) == wanted || ![RESIZING, FILES_PENDING].contains(&&*condition.type_)
    });
    if let Some(wanted) = wanted
        && !conditions.iter().any(|condition| condition.type_ == wanted)
    {
        let message = match wanted {
            FILES_PENDING => Some(
                "Waiting for user to (re-)start a pod to finish file system resize of volume on node."
                    .to_owned(),
            ),
            _ => None,
        };
        conditions.push(PersistentVolumeClaimCondition {
            type_: wanted.to_owned(),
            status: "True".to_owned(),
            last_transition_time: Some(Time(whole_seconds(now))),
            message,
            ..PersistentVolumeClaimCondition::default()
        });
    }
    status.conditions = (!conditions.is_empty()).then_some(conditions);
    status
}

/// A claim showing a status.
pub fn showing(claim: &PersistentVolumeClaim, status: PersistentVolumeClaimStatus) -> PersistentVolumeClaim {
    PersistentVolumeClaim { status: Some(status), ..claim.clone() }
}
