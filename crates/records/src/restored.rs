//! What is created on the peer from a stored volume or claim. Pure: objects in, objects out.
//!
//! A volume keeps naming its claim, but not the claim's identity on the other cluster, and it gets the handle, the cluster id and the
//! secrets that are right here. A claim keeps naming its volume. What belongs to the other cluster's API server is dropped.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    CSIPersistentVolumeSource, PersistentVolume, PersistentVolumeClaim, SecretReference,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lifeboat_api::annotations;

/// How the two clusters share storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Each has its own, and data is copied: a volume here belongs to this cluster's storage.
    Copied,
    /// Both use one storage: a volume stays what it is.
    Shared,
}

const CLUSTER_ID: &str = "clusterID";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const DELETION_SECRET_NAME: &str = "volume.kubernetes.io/provisioner-deletion-secret-name";
const DELETION_SECRET_NAMESPACE: &str = "volume.kubernetes.io/provisioner-deletion-secret-namespace";

/// The volume to create here. `class` is this cluster's storage class of the volume's name, where there is one.
#[must_use]
pub fn volume(
    mut volume: PersistentVolume,
    class: Option<&StorageClass>,
    sharing: Sharing,
) -> PersistentVolume {
    clean(&mut volume.metadata);
    volume.status = None;
    let notes = volume.metadata.annotations.get_or_insert_default();
    // It was archived over there; whether it is archived from here is another matter.
    notes.remove(annotations::VR_ARCHIVED);
    // Without it a binder that lets the claim go keeps the volume reserved for the claim's name.
    notes.remove(BOUND_BY_CONTROLLER);
    let handle = notes.remove(annotations::DESTINATION_VOLUME_HANDLE).filter(|handle| !handle.is_empty());
    notes.insert(annotations::RESTORE.to_owned(), annotations::RESTORE_VALUE.to_owned());
    if let Some(class) = class {
        notes.insert(PROVISIONED_BY.to_owned(), class.provisioner.clone());
        if let Some(secret) = secret(class, "provisioner") {
            notes.insert(DELETION_SECRET_NAME.to_owned(), secret.name.unwrap_or_default());
            notes.insert(DELETION_SECRET_NAMESPACE.to_owned(), secret.namespace.unwrap_or_default());
        }
    }
    let Some(spec) = &mut volume.spec else { return volume };
    if let Some(claim) = &mut spec.claim_ref {
        claim.uid = None;
        claim.resource_version = None;
        claim.api_version = None;
    }
    let Some(csi) = &mut spec.csi else { return volume };
    if let Some(handle) = handle {
        csi.volume_handle = handle;
        // Another volume on other disks: the nodes that reach the one over there are not here.
        spec.node_affinity = None;
    }
    if let Some(class) = class {
        localise(csi, class, sharing);
    }
    volume
}

/// The claim to create here.
#[must_use]
pub fn claim(mut claim: PersistentVolumeClaim) -> PersistentVolumeClaim {
    clean(&mut claim.metadata);
    claim.status = None;
    let notes = claim.metadata.annotations.get_or_insert_default();
    notes.retain(|key, _| !annotations::NOT_CARRIED_OVER.iter().any(|prefix| key.starts_with(prefix)));
    notes.insert(annotations::RESTORE.to_owned(), annotations::RESTORE_VALUE.to_owned());
    claim
}

fn localise(csi: &mut CSIPersistentVolumeSource, class: &StorageClass, sharing: Sharing) {
    let cluster = parameters(class).and_then(|parameters| parameters.get(CLUSTER_ID));
    if let Some(cluster) = cluster.filter(|id| !id.is_empty() && sharing == Sharing::Copied) {
        csi.volume_attributes.get_or_insert_default().insert(CLUSTER_ID.to_owned(), cluster.clone());
    }
    // Each kind of secret goes to its own field.
    let fields: [(&str, &mut Option<SecretReference>); 5] = [
        ("node-stage", &mut csi.node_stage_secret_ref),
        ("node-publish", &mut csi.node_publish_secret_ref),
        ("node-expand", &mut csi.node_expand_secret_ref),
        ("controller-expand", &mut csi.controller_expand_secret_ref),
        ("controller-publish", &mut csi.controller_publish_secret_ref),
    ];
    for (kind, field) in fields {
        if let Some(secret) = secret(class, kind) {
            *field = Some(secret);
        }
    }
}

fn parameters(class: &StorageClass) -> Option<&BTreeMap<String, String>> {
    class.parameters.as_ref()
}

/// The secret of a kind that a class names.
fn secret(class: &StorageClass, kind: &str) -> Option<SecretReference> {
    let parameter = |what: &str| {
        let value = parameters(class)?.get(&format!("csi.storage.k8s.io/{kind}-secret-{what}"));
        value.filter(|value| !value.is_empty()).cloned()
    };
    let (name, namespace) = (parameter("name"), parameter("namespace"));
    (name.is_some() || namespace.is_some()).then_some(SecretReference { name, namespace })
}

/// Keeps what the user and the group said about an object; drops what one cluster's API server and controllers did.
fn clean(metadata: &mut ObjectMeta) {
    let kept = std::mem::take(metadata);
    *metadata = ObjectMeta {
        name: kept.name,
        namespace: kept.namespace,
        labels: kept.labels,
        annotations: kept.annotations,
        ..ObjectMeta::default()
    };
}

#[cfg(test)]
#[path = "restored_tests.rs"]
mod tests;
