//! The objects that provisioning makes, field by field as TopoLVM and the CSI provisioner write them.

use crate::handle::Handle;
use crate::provision::decide::source::Filling;
use crate::provision::words::{
    UNPUBLISHED, class_of, current_size, mode_of, quantity, reference, uid, volume_name, wanted_size,
};
use k8s_openapi::api::core::v1::{
    CSIPersistentVolumeSource, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PersistentVolume,
    PersistentVolumeClaim, PersistentVolumeSpec, VolumeNodeAffinity,
};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::ObjectMeta;
use lifeboat_api::annotations::{self, parameters};
use lifeboat_api::topolvm::{AccessType, LogicalVolume, LogicalVolumeSpec};
use lifeboat_api::{finalizers, labels};
use lifeboat_engine::ObjectKey;

/// A parameter of a class; empty where there is none.
pub fn parameter<'a>(class: &'a StorageClass, key: &str) -> &'a str {
    class.parameters.as_ref().and_then(|parameters| parameters.get(key)).map_or("", String::as_str)
}

fn given(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// The LogicalVolume for a claim, on a node.
pub fn logical_volume(
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    node: &str,
    size: u64,
    filling: &Filling,
) -> LogicalVolume {
    let name = volume_name(claim);
    let mut notes = vec![
        (annotations::CLAIM, ObjectKey::of(claim).to_string()),
        (annotations::VOLUME_MODE, mode_of(claim).to_owned()),
        (UNPUBLISHED, uid(claim).to_owned()),
    ];
    if let Some(fs_type) = given(parameter(class, parameters::FS_TYPE)).filter(|_| mode_of(claim) != "Block")
    {
        notes.push((parameters::FS_TYPE, fs_type));
    }
    let mut spec = LogicalVolumeSpec {
        name: name.clone(),
        node_name: node.to_owned(),
        size: quantity(size),
        device_class: given(parameter(class, annotations::DEVICE_CLASS)),
        lvcreate_option_class: given(parameter(class, parameters::LVCREATE_OPTION_CLASS)),
        ..LogicalVolumeSpec::default()
    };
    match filling {
        Filling::Empty => {}
        Filling::Copy { of, .. } => {
            spec.device_class = of.spec.device_class.clone();
            spec.source = of.metadata.name.clone();
            spec.access_type = Some(AccessType::ReadWrite);
        }
        // The barrier comes in the same write as the volume: there is no moment in which it could be used empty.
        Filling::Backup { handle, .. } => {
            notes.push((annotations::SNAPSHOT_RESTORE_REQUIRED, handle.to_string()));
        }
    }
    let notes = notes.into_iter().map(|(key, value)| (key.to_owned(), value));
    let metadata =
        ObjectMeta { name: Some(name), annotations: Some(notes.collect()), ..ObjectMeta::default() };
    LogicalVolume { metadata, spec, status: None }
}

/// The PersistentVolume for a claim, once its LogicalVolume has an id.
pub fn persistent_volume(
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    logical: &LogicalVolume,
    driver: &str,
) -> PersistentVolume {
    let block = mode_of(claim) == "Block";
    let size = current_size(logical).unwrap_or_default().max(wanted_size(logical));
    let metadata = ObjectMeta {
        name: Some(volume_name(claim)),
        annotations: Some([(annotations::PROVISIONED_BY.to_owned(), driver.to_owned())].into()),
        // Until its LogicalVolume is marked as published it must not vanish, whatever its policy.
        finalizers: Some(vec![finalizers::EXTERNAL_PROVISIONER.to_owned()]),
        ..ObjectMeta::default()
    };
    let requirement = NodeSelectorRequirement {
        key: labels::TOPOLOGY_NODE.to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![logical.spec.node_name.clone()]),
    };
    let term = NodeSelectorTerm { match_expressions: Some(vec![requirement]), match_fields: None };
    let spec = PersistentVolumeSpec {
        access_modes: claim.spec.as_ref().and_then(|spec| spec.access_modes.clone()),
        capacity: Some([("storage".to_owned(), quantity(size))].into()),
        claim_ref: Some(reference(claim)),
        csi: Some(CSIPersistentVolumeSource {
            driver: driver.to_owned(),
            volume_handle: uid(logical).to_owned(),
            fs_type: given(parameter(class, parameters::FS_TYPE)).filter(|_| !block),
            ..CSIPersistentVolumeSource::default()
        }),
        mount_options: class.mount_options.clone().filter(|_| !block),
        node_affinity: Some(VolumeNodeAffinity {
            required: Some(NodeSelector { node_selector_terms: vec![term] }),
        }),
        persistent_volume_reclaim_policy: Some(
            class.reclaim_policy.clone().unwrap_or_else(|| "Delete".to_owned()),
        ),
        storage_class_name: Some(class_of(claim).to_owned()),
        volume_mode: Some(mode_of(claim).to_owned()),
        ..PersistentVolumeSpec::default()
    };
    PersistentVolume { metadata, spec: Some(spec), status: None }
}

/// The handle of a snapshot: its LogicalVolume alone, or where its backup is.
pub fn handle(logical: &LogicalVolume) -> Handle {
    let note = |key: &str| logical.metadata.annotations.as_ref().and_then(|notes| notes.get(key)).cloned();
    let volume = uid(logical).to_owned();
    match (note(parameters::SNAPSHOT_STORAGE_NAMESPACE), note(parameters::SNAPSHOT_STORAGE_NAME)) {
        (Some(namespace), Some(storage)) if crate::provision::words::is_online(logical) => {
            Handle::Remote { namespace, storage, volume }
        }
        _ => Handle::Local(volume),
    }
}
