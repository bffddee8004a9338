//! Which changes wake a group. Pure, so that every rule has a row in a test. What a group wrote itself wakes nobody, and no news is lost
//! because it came together with such a write.

use crate::pods::UsingPod;
use crate::words::{ClaimWords as _, Words as _};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, Pod};
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_api::{annotations, finalizers};
use lifeboat_engine::Change;
use std::sync::Arc;

/// Whether a change of a group concerns it: all but its status.
pub fn group(change: &Change<VolumeReplicationGroup>) -> bool {
    let (Some(old), Some(new)) = (&change.old, &change.new) else { return true };
    let (old, new) = (&old.metadata, &new.metadata);
    old.uid != new.uid
        || old.generation != new.generation
        || old.annotations != new.annotations
        || old.labels != new.labels
        || old.deletion_timestamp != new.deletion_timestamp
}

/// Whether a change of a claim concerns its groups.
pub fn claim(change: &Change<PersistentVolumeClaim>) -> bool {
    match (&change.old, &change.new) {
        (Some(old), Some(new)) if old.uid() == new.uid() => claim_update(old, new),
        _ => true,
    }
}

/// Whether an update of a claim concerns its groups. What always matters is asked first: a label that changes together with our own
/// finalizer is still news.
pub fn claim_update(old: &PersistentVolumeClaim, new: &PersistentVolumeClaim) -> bool {
    if old.metadata.labels != new.metadata.labels || old.spec != new.spec {
        // Our labels come with our finalizer, and after a watch was cut off others' changes may have come with them.
        return !only_our_labels(old, new) || old.spec != new.spec || without_ours(old) != without_ours(new);
    }
    if !old.is_bound() && new.is_bound() {
        return true;
    }
    if old.has_finalizer(finalizers::PVC_PROTECTION) && !new.has_finalizer(finalizers::PVC_PROTECTION) {
        return true;
    }
    let ours = |claim: &PersistentVolumeClaim| {
        (claim.has_finalizer(finalizers::PVC_VR), claim.has_finalizer(finalizers::PVC_VOLSYNC))
    };
    let added = |key: &str| old.note(key).is_none() && new.note(key).is_some();
    if ours(old) != ours(new) || added(annotations::VR_PROTECTED) || added(annotations::VR_ARCHIVED) {
        // After a watch was cut off several changes come as one, and others' may be among them.
        return without_ours(old) != without_ours(new);
    }
    if !new.is_bound() {
        return false;
    }
    !(new.is_going() && ours(new) == (false, false))
}

/// A claim without what a group writes on it.
fn without_ours(claim: &PersistentVolumeClaim) -> PersistentVolumeClaim {
    let mut bare = claim.clone();
    let meta = &mut bare.metadata;
    (meta.resource_version, meta.managed_fields) = (None, None);
    let written = [annotations::VR_PROTECTED, annotations::VR_ARCHIVED, annotations::RESTORE];
    let notes = meta.annotations.get_or_insert_default();
    notes.retain(|key, _| !written.contains(&key.as_str()));
    let held = meta.finalizers.get_or_insert_default();
    held.retain(|name| name != finalizers::PVC_VR && name != finalizers::PVC_VOLSYNC);
    let labels = meta.labels.get_or_insert_default();
    labels.remove(lifeboat_api::labels::OWNER_NAME);
    labels.remove(lifeboat_api::labels::OWNER_NAMESPACE_NAME);
    bare
}

/// The labels by which a group marks its claims, written together with its finalizer.
fn only_our_labels(old: &PersistentVolumeClaim, new: &PersistentVolumeClaim) -> bool {
    let bare = |claim: &PersistentVolumeClaim| {
        let mut all = claim.metadata.labels.clone().unwrap_or_default();
        all.remove(lifeboat_api::labels::OWNER_NAME);
        all.remove(lifeboat_api::labels::OWNER_NAMESPACE_NAME);
        all
    };
    bare(old) == bare(new)
}

/// Whether a namespace begins to be deleted, which its groups must know before their claims are let go.
pub fn namespace(change: &Change<Namespace>) -> bool {
    change.new.as_ref().is_some_and(|new| new.is_going())
        && change.old.as_ref().is_none_or(|old| !old.is_going())
}

/// Whether a pod's change is one of what it uses, or of whether it is ready: it comes, goes, ends, or says something else.
pub fn pod(change: &Change<Pod>) -> bool {
    let (Some(old), Some(new)) = (&change.old, &change.new) else { return true };
    let node = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    old.uid() != new.uid()
        || is_using(old) != is_using(new)
        || node(old) != node(new)
        || old.is_going() != new.is_going()
        || UsingPod::of(old) != UsingPod::of(new)
}

/// Whether a pod uses a claim. One without a node does not use a claim that is being deleted: no scheduler gives it a node any more, so that both
/// would wait for each other.
pub fn uses(pod: &Arc<Pod>, claim: &PersistentVolumeClaim) -> bool {
    let waits = pod.spec.as_ref().is_none_or(|spec| spec.node_name.as_deref().is_none_or(str::is_empty));
    is_using(pod) && !(waits && claim.is_going())
}

/// Whether a pod uses its claims: until it has ended for good.
pub fn is_using(pod: &Arc<Pod>) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    !matches!(phase, Some("Succeeded" | "Failed"))
}
