//! What objects say, in words that rules use.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, PodCondition, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use lifeboat_engine::ObjectKey;
use lifeboat_engine::conditions::{Holds, whole_seconds};
use std::collections::BTreeSet;

pub(crate) fn uid(meta: &ObjectMeta) -> &str {
    meta.uid.as_deref().unwrap_or_default()
}

pub(crate) fn name(meta: &ObjectMeta) -> &str {
    meta.name.as_deref().unwrap_or_default()
}

pub(crate) fn is_going(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some()
}

pub(crate) fn label<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.labels.as_ref()?.get(key).map(String::as_str)
}

pub(crate) fn annotation<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(key).map(String::as_str)
}

/// Who controls an object.
pub(crate) fn controller(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.as_ref()?.iter().find(|owner| owner.controller == Some(true))
}

pub(crate) fn spec(pod: &Pod) -> Option<&PodSpec> {
    pod.spec.as_ref()
}

pub(crate) fn status(pod: &Pod) -> Option<&PodStatus> {
    pod.status.as_ref()
}

pub(crate) fn phase(pod: &Pod) -> &str {
    status(pod).and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}

/// Whether all its containers have ended and none will start again.
pub(crate) fn is_over(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

pub(crate) fn node_of(pod: &Pod) -> Option<&str> {
    spec(pod)?.node_name.as_deref().filter(|node| !node.is_empty())
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = status(pod).and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True")
}

/// Names of the claims that a pod's volumes are of: the volume's name, then the claim's. Those that live with the pod have a claim of
/// their own, whose name follows from both.
pub(crate) fn claims(pod: &Pod) -> Vec<(&str, String)> {
    let volumes = spec(pod).and_then(|spec| spec.volumes.as_ref());
    let of = |volume: &'_ k8s_openapi::api::core::v1::Volume| match (
        &volume.persistent_volume_claim,
        &volume.ephemeral,
    ) {
        (Some(source), _) => Some(source.claim_name.clone()),
        (None, Some(_)) => Some(format!("{}-{}", name(&pod.metadata), volume.name)),
        (None, None) => None,
    };
    volumes
        .into_iter()
        .flatten()
        .filter_map(|volume| of(volume).map(|claim| (volume.name.as_str(), claim)))
        .collect()
}

/// Keys of the claims that a pod's volumes are of.
pub(crate) fn claim_keys(pod: &Pod) -> BTreeSet<ObjectKey> {
    let namespace = pod.metadata.namespace.clone().unwrap_or_default();
    claims(pod).into_iter().map(|(_, claim)| ObjectKey::new(namespace.clone(), claim)).collect()
}

/// The volume that a claim is bound to, once both sides say so.
pub(crate) fn bound_to(claim: &PersistentVolumeClaim) -> Option<&str> {
    let bound = claim.status.as_ref()?.phase.as_deref() == Some("Bound");
    let volume = claim.spec.as_ref()?.volume_name.as_deref().filter(|volume| !volume.is_empty())?;
    bound.then_some(volume)
}

/// Sets a pod's condition; what says the same as before keeps its time.
pub(crate) fn set_condition(
    conditions: &mut Vec<PodCondition>,
    type_: &str,
    holds: Holds,
    told: Option<(&str, String)>,
    now: Timestamp,
) {
    let (reason, message) = told.unzip();
    let mut wanted = PodCondition {
        type_: type_.to_owned(),
        status: holds.as_str().to_owned(),
        reason: reason.map(str::to_owned),
        message,
        last_transition_time: Some(Time(whole_seconds(now))),
        ..PodCondition::default()
    };
    match conditions.iter_mut().find(|one| one.type_ == type_) {
        Some(known) => {
            wanted.observed_generation = known.observed_generation;
            wanted.last_probe_time = known.last_probe_time.clone();
            if known.status == wanted.status {
                wanted.last_transition_time = known.last_transition_time.clone();
            }
            *known = wanted;
        }
        None => conditions.push(wanted),
    }
}

/// A short name for a value, the same for the same value: eight letters and digits that names of objects may have.
pub(crate) fn short_hash(value: &impl serde::Serialize) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let text = serde_json::to_vec(value).unwrap_or_default();
    // FNV-1a: nobody attacks this name, it only has to tell templates apart.
    let mut hash = text.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mut name = String::new();
    for _ in 0..8 {
        let letters = LETTERS.len() as u64;
        name.push(char::from(LETTERS[usize::try_from(hash % letters).unwrap_or_default()]));
        hash /= letters;
    }
    name
}
