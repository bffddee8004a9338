//! What a recorded volume or claim looks like where it is restored: without what belonged to the other cluster, with what this one's storage
//! class says.

use crate::words::Words as _;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, SecretReference};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::ObjectMeta;
use lifeboat_api::annotations;
use std::collections::BTreeMap;

type Notes = BTreeMap<String, String>;

/// A volume as it is made here: under its handle at this side, free to be bound by its claim.
pub fn volume(recorded: &PersistentVolume, class: Option<&StorageClass>) -> PersistentVolume {
    let mut notes: Notes = recorded.metadata.annotations.clone().unwrap_or_default();
    let handle = notes.remove(annotations::DESTINATION_VOLUME_HANDLE);
    notes.remove(annotations::VR_ARCHIVED);
    notes.remove(annotations::BOUND_BY_CONTROLLER);
    notes.insert(annotations::RESTORE.to_owned(), annotations::RESTORE_VALUE.to_owned());
    let mut spec = recorded.spec.clone().unwrap_or_default();
    if let Some(claim) = &mut spec.claim_ref {
        claim.uid = None;
        claim.resource_version = None;
    }
    if let Some(csi) = &mut spec.csi {
        if let Some(handle) = handle.filter(|handle| !handle.is_empty()) {
            csi.volume_handle = handle;
        }
        let parameters = class.and_then(|class| class.parameters.clone()).unwrap_or_default();
        let secret = |part: &str| {
            let of = |what: &str| {
                let key = format!("csi.storage.k8s.io/{part}-secret-{what}");
                // A name with a placeholder is filled in by whoever provisions, not by us.
                parameters.get(&key).filter(|text| !text.contains("${")).cloned()
            };
            Some(SecretReference { name: Some(of("name")?), namespace: of("namespace") })
        };
        let put = |field: &mut Option<SecretReference>, part: &str| {
            if let Some(found) = secret(part) {
                *field = Some(found);
            }
        };
        put(&mut csi.controller_publish_secret_ref, "controller-publish");
        put(&mut csi.controller_expand_secret_ref, "controller-expand");
        put(&mut csi.node_stage_secret_ref, "node-stage");
        put(&mut csi.node_publish_secret_ref, "node-publish");
        put(&mut csi.node_expand_secret_ref, "node-expand");
        if let (Some(id), Some(attributes)) = (parameters.get("clusterID"), &mut csi.volume_attributes)
            && attributes.contains_key("clusterID")
        {
            attributes.insert("clusterID".to_owned(), id.clone());
        }
    }
    PersistentVolume {
        metadata: ObjectMeta {
            name: recorded.metadata.name.clone(),
            labels: recorded.metadata.labels.clone(),
            annotations: Some(notes),
            ..ObjectMeta::default()
        },
        spec: Some(spec),
        status: None,
    }
}

/// A claim as it is made here, bound to its volume by name.
pub fn claim(recorded: &PersistentVolumeClaim) -> PersistentVolumeClaim {
    let mut notes = carried_over(recorded.metadata.annotations.as_ref());
    notes.insert(annotations::RESTORE.to_owned(), annotations::RESTORE_VALUE.to_owned());
    let mut spec = recorded.spec.clone().unwrap_or_default();
    // What it was once filled from need not exist here, and its volume has the data.
    spec.data_source = None;
    spec.data_source_ref = None;
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: recorded.metadata.name.clone(),
            namespace: recorded.metadata.namespace.clone(),
            labels: recorded.metadata.labels.clone(),
            annotations: Some(notes),
            ..ObjectMeta::default()
        },
        spec: Some(spec),
        status: None,
    }
}

/// Annotations that go with a claim to another cluster.
pub fn carried_over(notes: Option<&Notes>) -> Notes {
    let ours = |key: &String| annotations::NOT_CARRIED_OVER.iter().any(|prefix| key.starts_with(prefix));
    notes
        .into_iter()
        .flatten()
        .filter(|(key, _)| !ours(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Whether a volume is one that a group restored or kept, and so may be taken up again.
pub fn is_ours(volume: &PersistentVolume) -> bool {
    [annotations::RESTORE, annotations::VR_RETAINED, annotations::VOLSYNC_RETAINED]
        .iter()
        .any(|marker| volume.note(marker).is_some())
}
