//! Reading objects without saying `Option` at every step.

use k8s_openapi::api::core::v1::Pod;
use kube::Resource;
use lifeboat_api::annotations;
use lifeboat_api::topolvm::LogicalVolume;
pub use lifeboat_engine::Words;
use lifeboat_engine::{Class, EffectError, ObjectKey, difference};
pub use lifeboat_replicate::words::{epochs, group, is_bound};
use serde::Serialize;
use serde_json::{Value, json};

/// The metadata that puts a finalizer on an object, or takes it off.
#[must_use]
pub fn with_finalizer(object: &impl Resource, name: &str, on: bool) -> Value {
    let others = object.meta().finalizers.iter().flatten().filter(|finalizer| *finalizer != name).cloned();
    let finalizers: Vec<String> = others.chain(on.then(|| name.to_owned())).collect();
    let mut metadata = object.guard();
    metadata["finalizers"] = json!(finalizers);
    metadata
}

/// The world has changed since the decision.
pub(crate) fn stale(what: impl Into<String>) -> EffectError {
    EffectError::new(Class::Stale, what)
}

/// Whether a LogicalVolume is the secondary of a mirror.
#[must_use]
pub fn is_secondary(volume: &LogicalVolume) -> bool {
    volume.note(annotations::MIRROR_ROLE) == Some(annotations::MIRROR_SECONDARY)
}

/// The claims that a pod holds: from its creation to its end.
#[must_use]
pub fn claims_of(pod: &Pod) -> Vec<ObjectKey> {
    let over = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    if matches!(over, Some("Succeeded" | "Failed")) {
        return Vec::new();
    }
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let names = volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref());
    names.map(|source| ObjectKey::new(pod.space(), source.claim_name.clone())).collect()
}

/// A status as a patch that touches only what changes.
pub(crate) fn shown<T: Serialize>(
    object: &impl Resource,
    before: Option<&T>,
    after: &T,
) -> Result<Value, EffectError> {
    Ok(json!({ "metadata": object.guard(), "status": difference(&before, after)? }))
}
