//! Reading objects without saying `Option` at every step.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use lifeboat_api::ramen::{ReplicationState, VolumeReplicationGroup};
use lifeboat_api::volsync::ReplicationDestination;
use lifeboat_api::{annotations, labels};
use lifeboat_engine::ObjectKey;
pub use lifeboat_engine::{Words, difference};

/// The group that an object's owner labels name, where they do.
#[must_use]
pub fn group(object: &impl Resource) -> Option<ObjectKey> {
    let (namespace, name) = labels::group(object.meta().labels.as_ref()?)?;
    Some(ObjectKey::new(namespace, name))
}

/// Says on an object that it belongs to a receiver and goes with it.
#[must_use]
pub fn owned_by(receiver: &ReplicationDestination) -> OwnerReference {
    OwnerReference {
        api_version: ReplicationDestination::api_version(&()).into_owned(),
        kind: ReplicationDestination::kind(&()).into_owned(),
        name: receiver.name().to_owned(),
        uid: receiver.uid().to_owned(),
        controller: Some(true),
        ..OwnerReference::default()
    }
}

/// The volume that the data of a claim descends from: the one that it was restored from, or its own.
#[must_use]
pub fn lineage(claim: &PersistentVolumeClaim) -> &str {
    claim.note(annotations::LINEAGE).filter(|lineage| !lineage.is_empty()).unwrap_or_else(|| claim.uid())
}

/// Whether a claim is bound, as it says itself.
#[must_use]
pub fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound")
}

/// Whether a pod holds the volumes of a claim: from its creation to its end.
#[must_use]
pub fn uses(pod: &Pod, claim: &str) -> bool {
    let over = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let mut names = volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref());
    !matches!(over, Some("Succeeded" | "Failed")) && names.any(|source| source.claim_name == claim)
}

/// The epochs that a group knows: the highest, and the one at which it is primary here.
///
/// Ramen's cluster operator knows of no epochs and tells none: a group that it serves is primary at the epoch that the hub gave it, or at none.
#[must_use]
pub fn epochs(group: &VolumeReplicationGroup) -> (u64, Option<u64>) {
    let whole = |epoch: i64| u64::try_from(epoch).unwrap_or(0);
    let given = group.note(annotations::EPOCH).and_then(|text| text.parse::<i64>().ok()).map_or(0, whole);
    let status = group.status.as_ref();
    let told = status.and_then(|status| status.epoch.max(status.primary_epoch)).map(whole);
    let ours = match told {
        Some(_) => status.and_then(|status| status.primary_epoch).map(whole),
        // Somebody serves it, and does not speak of epochs.
        None => status
            .and_then(|status| status.observed_generation)
            .filter(|_| group.spec.replication_state == ReplicationState::Primary)
            .map(|_| given),
    };
    (told.unwrap_or(0).max(given), ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_group_that_ramen_serves_is_primary_at_the_hubs_epoch() {
        let check = |role: &str, given: Option<&str>, status: Value, expected| {
            let notes = given.map(|epoch| json!({ annotations::EPOCH: epoch }));
            let group = json!({
                "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "VolumeReplicationGroup",
                "metadata": { "name": "web", "annotations": notes.unwrap_or(json!({})) },
                "spec": { "replicationState": role, "pvcSelector": {}, "s3Profiles": [] }, "status": status,
            });
            let group = serde_json::from_value(group).unwrap();
            assert_eq!(epochs(&group), expected, "{role} {given:?}");
        };
        let ramens = || json!({ "observedGeneration": 4, "state": "Primary" });
        check("primary", Some("2"), ramens(), (2, Some(2)));
        check("primary", None, ramens(), (0, Some(0)));
        check("secondary", Some("2"), ramens(), (2, None));
        // Nobody has looked at it yet.
        check("primary", Some("2"), json!({}), (2, None));
        // Ours say at which epoch they became primary, and until then they are not.
        check(
            "primary",
            Some("3"),
            json!({ "observedGeneration": 4, "epoch": 2, "primaryEpoch": 2 }),
            (3, Some(2)),
        );
        check("primary", Some("3"), json!({ "observedGeneration": 4, "epoch": 3 }), (3, None));
    }
}
