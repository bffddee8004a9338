//! Reading and writing the fields that the central half speaks of. No rules: only how to read and compare.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ObjectReference, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::Resource;
use kube::api::ObjectMeta;
use lifeboat_api::annotations;
use lifeboat_api::topolvm::{LogicalVolume, SnapshotOperation, SnapshotPhase};
use lifeboat_engine::ObjectKey;
use std::collections::BTreeMap;

/// On a LogicalVolume: set when it is made for a claim, taken off when its PersistentVolume exists. While it is there nobody can have
/// used the volume, so it may be removed when its claim is gone. Ours, not known to peers.
pub const UNPUBLISHED: &str = annotations::UNPUBLISHED_FOR_CLAIM;
/// On a node: names of the volumes that its report of free bytes has taken into account most recently, apart by commas. Ours, not
/// known to peers.
pub const COUNTED: &str = annotations::CAPACITY_COUNTED;
/// On a node: device classes whose volumes are directories, apart by commas: nothing has to be done to their files when they grow. Ours,
/// not known to peers.
pub const DIRECTORY_CLASSES: &str = annotations::DIRECTORY_CLASSES;

/// On a node: which device class is the default one, so that both ways to name it are one. Ours, not known to peers.
pub const DEFAULT_CLASS: &str = annotations::DEFAULT_DEVICE_CLASS_NAME;

/// An annotation.
pub fn annotation<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(key).map(String::as_str)
}

/// A text that may be missing, missing being empty.
pub fn text(text: Option<&String>) -> &str {
    text.map_or("", String::as_str)
}

/// Whether a finalizer is on an object.
pub fn has_finalizer(meta: &ObjectMeta, name: &str) -> bool {
    meta.finalizers.iter().flatten().any(|finalizer| finalizer == name)
}

/// Takes a finalizer off, and the list with the last one.
pub fn drop_finalizer(meta: &mut ObjectMeta, name: &str) {
    if let Some(finalizers) = &mut meta.finalizers {
        finalizers.retain(|finalizer| finalizer != name);
        if finalizers.is_empty() {
            meta.finalizers = None;
        }
    }
}

/// Whether an object is being deleted.
pub fn is_going(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some()
}

/// When an object was made.
pub fn made_at(meta: &ObjectMeta) -> Timestamp {
    meta.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0)
}

/// The bytes of a quantity; 0 where it is none.
pub fn bytes(quantity: &Quantity) -> u64 {
    let value =
        lifeboat_schema::quantity::Quantity::parse(&quantity.0).map_or(0, |quantity| quantity.value());
    u64::try_from(value).unwrap_or(0)
}

/// The `storage` entry of some amounts, in bytes.
pub fn storage(amounts: Option<&BTreeMap<String, Quantity>>) -> Option<u64> {
    amounts?.get("storage").map(bytes)
}

/// Bytes as Kubernetes writes them: with the largest binary unit that leaves a whole number.
pub fn quantity(bytes: u64) -> Quantity {
    let units = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let mut number = bytes;
    let mut unit = 0;
    while number != 0 && number.is_multiple_of(1024) && unit + 1 < units.len() {
        number /= 1024;
        unit += 1;
    }
    Quantity(format!("{number}{}", units[unit]))
}

/// A reference to an object, as events and claims carry it.
pub fn reference<K: Resource<DynamicType = ()>>(object: &K) -> ObjectReference {
    let meta = object.meta();
    ObjectReference {
        api_version: Some(K::api_version(&()).into_owned()),
        kind: Some(K::kind(&()).into_owned()),
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        field_path: None,
    }
}

/// The UID of an object; empty where there is none.
pub fn uid<K: Resource>(object: &K) -> &str {
    object.meta().uid.as_deref().unwrap_or_default()
}

/// The name of an object.
pub fn name<K: Resource>(object: &K) -> &str {
    object.meta().name.as_deref().unwrap_or_default()
}

/// The class that a claim names, in either way.
pub fn class_of(claim: &PersistentVolumeClaim) -> &str {
    annotation(&claim.metadata, annotations::BETA_STORAGE_CLASS)
        .unwrap_or_else(|| text(claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_ref())))
}

/// The volume that a claim names; empty for none.
pub fn volume_of(claim: &PersistentVolumeClaim) -> &str {
    text(claim.spec.as_ref().and_then(|spec| spec.volume_name.as_ref()))
}

/// `Block` or `Filesystem`.
pub fn mode_of(claim: &PersistentVolumeClaim) -> &'static str {
    let mode = claim.spec.as_ref().and_then(|spec| spec.volume_mode.as_deref());
    if mode == Some("Block") { "Block" } else { "Filesystem" }
}

/// Who is asked to make a volume for a claim.
pub fn provisioner_of(claim: &PersistentVolumeClaim) -> Option<&str> {
    let now = annotation(&claim.metadata, annotations::STORAGE_PROVISIONER);
    now.or_else(|| annotation(&claim.metadata, annotations::BETA_STORAGE_PROVISIONER))
}

/// What the LogicalVolume and the PersistentVolume of a claim are called.
pub fn volume_name(claim: &PersistentVolumeClaim) -> String {
    format!("pvc-{}", uid(claim).to_lowercase())
}

/// The driver and the handle of a CSI volume.
pub fn csi_of(volume: &PersistentVolume) -> Option<(&str, &str)> {
    let csi = volume.spec.as_ref()?.csi.as_ref()?;
    Some((csi.driver.as_str(), csi.volume_handle.as_str()))
}

/// Whether a volume was made by a driver and is served by it.
pub fn is_ours(volume: &PersistentVolume, driver: &str) -> bool {
    csi_of(volume).is_some_and(|(by, _)| by == driver)
        && annotation(&volume.metadata, annotations::PROVISIONED_BY) == Some(driver)
}

/// The claim that a volume is for: where it is, and its UID.
pub fn claim_of(volume: &PersistentVolume) -> Option<(ObjectKey, &str)> {
    let claim = volume.spec.as_ref()?.claim_ref.as_ref()?;
    let key = ObjectKey::new(text(claim.namespace.as_ref()), text(claim.name.as_ref()));
    Some((key, text(claim.uid.as_ref())))
}

/// The phase of a volume; empty for none.
pub fn phase_of(volume: &PersistentVolume) -> &str {
    text(volume.status.as_ref().and_then(|status| status.phase.as_ref()))
}

/// The claim whose bytes a LogicalVolume holds.
pub fn claim_noted(volume: &LogicalVolume) -> Option<ObjectKey> {
    let (namespace, name) = annotation(&volume.metadata, annotations::CLAIM)?.split_once('/')?;
    Some(ObjectKey::new(namespace, name))
}

/// The id under which a LogicalVolume exists on its node.
pub fn volume_id(volume: &LogicalVolume) -> Option<&str> {
    volume.status.as_ref()?.volume_id.as_deref().filter(|id| !id.is_empty())
}

/// A failure for good: its gRPC code and what was said.
pub fn failure(volume: &LogicalVolume) -> Option<(i32, &str)> {
    let status = volume.status.as_ref()?;
    let code = status.code.filter(|code| *code != 0)?;
    Some((code, text(status.message.as_ref())))
}

/// Bytes that a LogicalVolume shall have.
pub fn wanted_size(volume: &LogicalVolume) -> u64 {
    bytes(&volume.spec.size)
}

/// Bytes that a LogicalVolume has, where that is known.
pub fn current_size(volume: &LogicalVolume) -> Option<u64> {
    volume.status.as_ref()?.current_size.as_ref().map(bytes)
}

/// The device class of a LogicalVolume; empty for the default one.
pub fn device_class(volume: &LogicalVolume) -> &str {
    volume.spec.device_class.as_deref().unwrap_or_default()
}

/// Whether a snapshot is to be backed up to a store.
pub fn is_online(volume: &LogicalVolume) -> bool {
    annotation(&volume.metadata, annotations::parameters::SNAPSHOT_MODE)
        == Some(annotations::parameters::SNAPSHOT_MODE_ONLINE)
}

/// How far a backup or restore of a LogicalVolume is.
pub fn operation(volume: &LogicalVolume) -> Option<(Option<&SnapshotOperation>, &SnapshotPhase)> {
    let snapshot = volume.status.as_ref()?.snapshot.as_ref()?;
    Some((snapshot.operation.as_ref(), &snapshot.phase))
}

/// Whether a volume still has to be filled from a backup.
pub fn is_restoring(volume: &LogicalVolume) -> bool {
    let done = (Some(&SnapshotOperation::Restore), &SnapshotPhase::Succeeded);
    annotation(&volume.metadata, annotations::SNAPSHOT_RESTORE_REQUIRED).is_some()
        && operation(volume) != Some(done)
}

/// Whether a backup is under way or still to come.
pub fn is_backing_up(volume: &LogicalVolume) -> bool {
    let ended = |phase: &SnapshotPhase| matches!(phase, SnapshotPhase::Succeeded | SnapshotPhase::Failed);
    is_online(volume) && !operation(volume).is_some_and(|(_, phase)| ended(phase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_as_kubernetes_does() {
        let check = |number: u64, expected: &str| {
            assert_eq!(quantity(number).0, expected);
            assert_eq!(bytes(&quantity(number)), number);
        };
        check(0, "0");
        check(1, "1");
        check(4096, "4Ki");
        check(1 << 30, "1Gi");
        check(3 << 29, "1536Mi");
        check((1 << 30) + 4096, "1048580Ki");
        check(1 << 60, "1Ei");
    }
}
