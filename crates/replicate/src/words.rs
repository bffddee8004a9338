//! Reading objects without saying `Option` at every step.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_api::volsync::ReplicationDestination;
use lifeboat_api::{annotations, labels};
use lifeboat_engine::ObjectKey;
use serde_json::{Map, Value, json};

/// What is asked of any object all the time.
pub trait Words: Resource {
    /// Its name.
    fn name(&self) -> &str {
        self.meta().name.as_deref().unwrap_or_default()
    }
    /// Its namespace, empty where it has none.
    fn space(&self) -> &str {
        self.meta().namespace.as_deref().unwrap_or_default()
    }
    /// Its UID.
    fn uid(&self) -> &str {
        self.meta().uid.as_deref().unwrap_or_default()
    }
    /// An annotation.
    fn note(&self, key: &str) -> Option<&str> {
        self.meta().annotations.as_ref()?.get(key).map(String::as_str)
    }
    /// A label.
    fn label(&self, key: &str) -> Option<&str> {
        self.meta().labels.as_ref()?.get(key).map(String::as_str)
    }
    /// Whether a finalizer is on it.
    fn has_finalizer(&self, name: &str) -> bool {
        self.meta().finalizers.iter().flatten().any(|finalizer| finalizer == name)
    }
    /// Whether it is being deleted.
    fn is_going(&self) -> bool {
        self.meta().deletion_timestamp.is_some()
    }
    /// The group that its owner labels name, where they do.
    fn group(&self) -> Option<ObjectKey> {
        let pair = |namespace: &str, name: &str| {
            Some(ObjectKey::new(self.label(namespace)?.to_owned(), self.label(name)?.to_owned()))
        };
        pair(labels::VRG_OWNER_NAMESPACE, labels::VRG_OWNER)
            .or_else(|| pair(labels::OWNER_NAMESPACE_NAME, labels::OWNER_NAME))
    }
    /// The version that a write is about.
    fn guard(&self) -> Value {
        json!({ "uid": self.meta().uid, "resourceVersion": self.meta().resource_version })
    }
}

impl<K: Resource> Words for K {}

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
#[must_use]
pub fn epochs(group: &VolumeReplicationGroup) -> (u64, Option<u64>) {
    let whole = |epoch: i64| u64::try_from(epoch).unwrap_or(0);
    let given = group.note(annotations::EPOCH).and_then(|text| text.parse::<i64>().ok()).map_or(0, whole);
    let status = group.status.as_ref();
    let seen = status.and_then(|status| status.epoch.max(status.primary_epoch)).map_or(0, whole);
    (seen.max(given), status.and_then(|status| status.primary_epoch).map(whole))
}

/// What has to be merged into one value to make it another, so that a writer touches only what it changes.
#[must_use]
pub fn difference(before: &Value, after: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (before, after) else { return after.clone() };
    let mut patch = Map::new();
    for (key, value) in after {
        match before.get(key) {
            Some(known) if known == value => {}
            Some(known) => drop(patch.insert(key.clone(), difference(known, value))),
            None => drop(patch.insert(key.clone(), value.clone())),
        }
    }
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    Value::Object(patch)
}
