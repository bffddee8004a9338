//! Reading objects without saying `Option` at every step, and the intervals of replication classes.

use jiff::SignedDuration;
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

/// Reads an interval as replication classes write it: whole seconds, minutes, hours or days.
#[must_use]
pub fn interval(text: &str) -> Option<SignedDuration> {
    let (number, unit) = text.trim().split_at_checked(text.trim().len().checked_sub(1)?)?;
    let number: i64 = number.parse().ok().filter(|number| *number > 0)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86400,
        _ => return None,
    };
    number.checked_mul(seconds).map(SignedDuration::from_secs)
}

/// A status as a patch that touches only what changes.
pub(crate) fn shown<T: Serialize>(
    object: &impl Resource,
    before: Option<&T>,
    after: &T,
) -> Result<Value, EffectError> {
    Ok(json!({ "metadata": object.guard(), "status": difference(&before, after)? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_a_number_and_a_unit() {
        let check = |text: &str, seconds: Option<i64>| {
            assert_eq!(interval(text), seconds.map(SignedDuration::from_secs), "{text:?}");
        };
        check("30s", Some(30));
        check("1m", Some(60));
        check("90m", Some(5400));
        check("2h", Some(7200));
        check("1d", Some(86400));
        check("0m", None);
        check("-1m", None);
        check("m", None);
        check("1", None);
        check("1w", None);
        check("", None);
        check("1.5h", None);
    }
}
