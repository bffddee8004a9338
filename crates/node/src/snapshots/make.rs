//! The objects that snapshots are made of, field by field as the snapshot controller and TopoLVM write them.

use crate::provision::words::{annotation, current_size, mode_of, quantity, reference, uid, wanted_size};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::ObjectMeta;
use lifeboat_api::annotations::{self, parameters};
use lifeboat_api::finalizers;
use lifeboat_api::snapshot::{
    VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent, VolumeSnapshotContentSource,
    VolumeSnapshotContentSpec,
};
use lifeboat_api::topolvm::{AccessType, LogicalVolume, LogicalVolumeSpec};
use lifeboat_engine::ObjectKey;

/// What the content of a VolumeSnapshot is called.
pub fn content_name(snapshot: &VolumeSnapshot) -> String {
    format!("snapcontent-{}", uid(snapshot))
}

/// What the LogicalVolume of a VolumeSnapshot of this UID is called.
pub fn logical_name(snapshot_uid: &str) -> String {
    format!("snapshot-{}", snapshot_uid.to_lowercase())
}

/// The content for a snapshot of a claim's volume.
pub fn content(
    snapshot: &VolumeSnapshot,
    class: &VolumeSnapshotClass,
    claim: &PersistentVolumeClaim,
    volume: &PersistentVolume,
) -> VolumeSnapshotContent {
    let csi = volume.spec.as_ref().and_then(|spec| spec.csi.as_ref());
    VolumeSnapshotContent {
        metadata: ObjectMeta {
            name: Some(content_name(snapshot)),
            finalizers: Some(vec![finalizers::SNAPSHOT_CONTENT_BOUND.to_owned()]),
            ..ObjectMeta::default()
        },
        spec: VolumeSnapshotContentSpec {
            volume_snapshot_ref: reference(snapshot),
            deletion_policy: class.spec.deletion_policy.clone(),
            driver: class.spec.driver.clone(),
            volume_snapshot_class_name: class.metadata.name.clone(),
            source: VolumeSnapshotContentSource {
                volume_handle: csi.map(|csi| csi.volume_handle.clone()),
                snapshot_handle: None,
            },
            source_volume_mode: Some(mode_of(claim).to_owned()),
        },
        status: None,
    }
}

/// Where a snapshot of a class is backed up to: the store's namespace and name.
///
/// A class that names no namespace means the one that the controller runs in; it is written down with the snapshot, so that no node
/// has to guess.
///
/// # Errors
/// When the class wants a backup and names no store.
pub fn backup_place(
    class: &VolumeSnapshotClass,
    default_namespace: &str,
) -> Result<Option<ObjectKey>, String> {
    let given =
        |key: &str| class.spec.parameters.get(key).map(String::as_str).filter(|text| !text.is_empty());
    if given(parameters::SNAPSHOT_MODE) != Some(parameters::SNAPSHOT_MODE_ONLINE) {
        return Ok(None);
    }
    let name = given(parameters::SNAPSHOT_STORAGE_NAME).ok_or_else(|| {
        let class = class.metadata.name.as_deref().unwrap_or_default();
        format!(
            "VolumeSnapshotClass {class:?} wants online snapshots and has no parameter {}",
            parameters::SNAPSHOT_STORAGE_NAME
        )
    })?;
    let namespace = given(parameters::SNAPSHOT_STORAGE_NAMESPACE).unwrap_or(default_namespace);
    Ok(Some(ObjectKey::new(namespace, name)))
}

/// The LogicalVolume of a snapshot.
pub fn logical_volume(
    content: &VolumeSnapshotContent,
    source: &LogicalVolume,
    claim: Option<ObjectKey>,
    backup: Option<&ObjectKey>,
) -> LogicalVolume {
    let snapshot_uid = content.spec.volume_snapshot_ref.uid.as_deref().unwrap_or_default();
    let name = logical_name(snapshot_uid);
    let mut notes: Vec<(&str, String)> = Vec::new();
    for key in [annotations::CLAIM, annotations::VOLUME_MODE, parameters::FS_TYPE] {
        if let Some(value) = annotation(&source.metadata, key) {
            notes.push((key, value.to_owned()));
        }
    }
    // Volumes that TopoLVM made say neither; their PersistentVolume and the content do.
    if !notes.iter().any(|(key, _)| *key == annotations::CLAIM) {
        notes.extend(claim.map(|claim| (annotations::CLAIM, claim.to_string())));
    }
    if !notes.iter().any(|(key, _)| *key == annotations::VOLUME_MODE) {
        notes.extend(content.spec.source_volume_mode.clone().map(|mode| (annotations::VOLUME_MODE, mode)));
    }
    if let Some(place) = backup {
        notes.push((parameters::SNAPSHOT_MODE, parameters::SNAPSHOT_MODE_ONLINE.to_owned()));
        notes.push((parameters::SNAPSHOT_STORAGE_NAME, place.name.clone()));
        notes.push((parameters::SNAPSHOT_STORAGE_NAMESPACE, place.namespace.clone()));
    }
    LogicalVolume {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            annotations: Some(notes.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
            finalizers: backup.map(|_| vec![finalizers::REMOTE_SNAPSHOT.to_owned()]),
            ..ObjectMeta::default()
        },
        spec: LogicalVolumeSpec {
            name,
            node_name: source.spec.node_name.clone(),
            size: quantity(current_size(source).unwrap_or_default().max(wanted_size(source))),
            device_class: source.spec.device_class.clone(),
            source: source.metadata.name.clone(),
            access_type: Some(AccessType::ReadOnly),
            ..LogicalVolumeSpec::default()
        },
        status: None,
    }
}
