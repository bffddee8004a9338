//! `snapshot.storage.k8s.io/v1`: CSI snapshots.

#![allow(dead_code, reason = "the copies of specs by which validation rules are derived are never written")]

use crate::schema;
use crate::wire::{or_default, spec_or_default, wire_enum};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The API group of these kinds.
pub const GROUP: &str = "snapshot.storage.k8s.io";

/// What to take a snapshot of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "snapshot.storage.k8s.io",
    version = "v1",
    kind = "VolumeSnapshot",
    plural = "volumesnapshots",
    shortname = "vs",
    namespaced,
    doc = "A user's request for, or claim to, a snapshot of a volume.",
    status = "VolumeSnapshotStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "ReadyToUse", type_ = "boolean", json_path = ".status.readyToUse"),
    printcolumn(name = "SourcePVC", type_ = "string", json_path = ".spec.source.persistentVolumeClaimName"),
    printcolumn(
        name = "SourceSnapshotContent",
        type_ = "string",
        json_path = ".spec.source.volumeSnapshotContentName"
    ),
    printcolumn(name = "RestoreSize", type_ = "string", json_path = ".status.restoreSize"),
    printcolumn(name = "SnapshotClass", type_ = "string", json_path = ".spec.volumeSnapshotClassName"),
    printcolumn(
        name = "SnapshotContent",
        type_ = "string",
        json_path = ".status.boundVolumeSnapshotContentName"
    ),
    printcolumn(name = "CreationTime", type_ = "date", json_path = ".status.creationTime"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct VolumeSnapshotSpec {
    /// Where the snapshot comes from.
    pub source: VolumeSnapshotSource,

    /// The class; absent means the default class of the volume's driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = (
        "size(self) > 0",
        "volumeSnapshotClassName must not be the empty string when set"
    ))]
    pub volume_snapshot_class_name: Option<String>,
}

/// Where a snapshot comes from: exactly one of a claim and an existing snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[x_kube(
    validation = (
        "!has(oldSelf.persistentVolumeClaimName) || has(self.persistentVolumeClaimName)",
        "persistentVolumeClaimName is required once set"
    ),
    validation = (
        "!has(oldSelf.volumeSnapshotContentName) || has(self.volumeSnapshotContentName)",
        "volumeSnapshotContentName is required once set"
    ),
    validation = (
        "(has(self.volumeSnapshotContentName) && !has(self.persistentVolumeClaimName)) || (!has(self.volumeSnapshotContentName) && has(self.persistentVolumeClaimName))",
        "exactly one of volumeSnapshotContentName and persistentVolumeClaimName must be set"
    )
)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct VolumeSnapshotSource {
    /// Take a new snapshot of this claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self == oldSelf", "persistentVolumeClaimName is immutable"))]
    pub persistent_volume_claim_name: Option<String>,

    /// Claim this content, which stands for a snapshot that exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self == oldSelf", "volumeSnapshotContentName is immutable"))]
    pub volume_snapshot_content_name: Option<String>,
}

/// What is known about a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct VolumeSnapshotStatus {
    /// The content it is bound to; only both directions together make a binding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_volume_snapshot_content_name: Option<String>,

    /// When the storage took it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_time: Option<Time>,

    /// Whether a volume can be made from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_to_use: Option<bool>,

    /// Size that a volume made from it must have at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<RestoreSize>")]
    pub restore_size: Option<Quantity>,

    /// The last failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<VolumeSnapshotError>,

    /// The group snapshot it is part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_group_snapshot_name: Option<String>,
}

schema::stand_in! {
    /// A quantity as the snapshot CRD declares it: a string that may also be a number.
    RestoreSize => |_generator| json_schema!({
        "type": "string",
        "pattern": schema::QUANTITY_PATTERN,
        "x-kubernetes-int-or-string": true,
    })
}

/// A failure of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct VolumeSnapshotError {
    /// When it happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,

    /// What happened; readable by everybody who may read the snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

wire_enum! {
    /// What becomes of the storage's snapshot when its object is deleted.
    closed DeletionPolicy {
        /// It is deleted too.
        Delete = "Delete",
        /// It stays.
        Retain = "Retain",
    }
}

/// A snapshot at the storage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "snapshot.storage.k8s.io",
    version = "v1",
    kind = "VolumeSnapshotContent",
    plural = "volumesnapshotcontents",
    shortname = "vsc",
    shortname = "vscs",
    doc = "A snapshot as it exists at the storage.",
    status = "VolumeSnapshotContentStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "ReadyToUse", type_ = "boolean", json_path = ".status.readyToUse"),
    printcolumn(name = "RestoreSize", type_ = "integer", json_path = ".status.restoreSize"),
    printcolumn(name = "DeletionPolicy", type_ = "string", json_path = ".spec.deletionPolicy"),
    printcolumn(name = "Driver", type_ = "string", json_path = ".spec.driver"),
    printcolumn(name = "VolumeSnapshotClass", type_ = "string", json_path = ".spec.volumeSnapshotClassName"),
    printcolumn(name = "VolumeSnapshot", type_ = "string", json_path = ".spec.volumeSnapshotRef.name"),
    printcolumn(
        name = "VolumeSnapshotNamespace",
        type_ = "string",
        json_path = ".spec.volumeSnapshotRef.namespace"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(validation = (
    "!has(oldSelf.sourceVolumeMode) || has(self.sourceVolumeMode)",
    "sourceVolumeMode is required once set"
))]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct VolumeSnapshotContentSpec {
    /// The VolumeSnapshot that this content is bound to.
    #[schemars(with = "schema::ObjectReference")]
    #[x_kube(validation = (
        "has(self.name) && has(self.__namespace__)",
        "both spec.volumeSnapshotRef.name and spec.volumeSnapshotRef.namespace must be set"
    ))]
    pub volume_snapshot_ref: ObjectReference,

    /// What becomes of the storage's snapshot when this object is deleted.
    pub deletion_policy: DeletionPolicy,

    /// The CSI driver.
    pub driver: String,

    /// The class it was made with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_snapshot_class_name: Option<String>,

    /// Where the snapshot comes from.
    pub source: VolumeSnapshotContentSource,

    /// Filesystem or Block: how the source volume was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self == oldSelf", "sourceVolumeMode is immutable"))]
    pub source_volume_mode: Option<String>,
}

/// Where a snapshot comes from: exactly one of a volume and an existing snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[x_kube(
    validation = (
        "!has(oldSelf.volumeHandle) || has(self.volumeHandle)",
        "volumeHandle is required once set"
    ),
    validation = (
        "!has(oldSelf.snapshotHandle) || has(self.snapshotHandle)",
        "snapshotHandle is required once set"
    ),
    validation = (
        "(has(self.volumeHandle) && !has(self.snapshotHandle)) || (!has(self.volumeHandle) && has(self.snapshotHandle))",
        "exactly one of volumeHandle and snapshotHandle must be set"
    )
)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct VolumeSnapshotContentSource {
    /// Take a new snapshot of the volume with this id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self == oldSelf", "volumeHandle is immutable"))]
    pub volume_handle: Option<String>,

    /// The snapshot with this id exists already.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self == oldSelf", "snapshotHandle is immutable"))]
    pub snapshot_handle: Option<String>,
}

/// What the storage reports about a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct VolumeSnapshotContentStatus {
    /// Its id at the storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_handle: Option<String>,

    /// When the storage took it, in nanoseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_time: Option<i64>,

    /// Size in bytes that a volume made from it must have at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub restore_size: Option<i64>,

    /// Whether a volume can be made from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_to_use: Option<bool>,

    /// The last failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<VolumeSnapshotError>,

    /// Id of the group snapshot it is part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_group_snapshot_handle: Option<String>,
}

/// A way to take snapshots; on the wire these fields stand at the top of the object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "snapshot.storage.k8s.io",
    version = "v1",
    kind = "VolumeSnapshotClass",
    plural = "volumesnapshotclasses",
    shortname = "vsclass",
    shortname = "vsclasses",
    no_spec,
    doc = "A way to take snapshots: a driver and its parameters.",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Driver", type_ = "string", json_path = ".driver"),
    printcolumn(name = "DeletionPolicy", type_ = "string", json_path = ".deletionPolicy"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct VolumeSnapshotClassBody {
    /// The CSI driver.
    pub driver: String,

    /// Parameters for the driver.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,

    /// What becomes of the storage's snapshot when its object is deleted.
    pub deletion_policy: DeletionPolicy,
}

spec_or_default!(VolumeSnapshotSpec);
spec_or_default!(VolumeSnapshotContentSpec);
