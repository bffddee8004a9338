//! LogicalVolume: one LVM volume or snapshot on one node, and its backup or restore.

use crate::schema;
use crate::wire::{or_default, spec_or_default, wire_enum};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which volume to make, on which node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "topolvm.io",
    version = "v1",
    kind = "LogicalVolume",
    plural = "logicalvolumes",
    shortname = "lv",
    doc = "An LVM volume or snapshot on one node.",
    status = "LogicalVolumeStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.snapshot.phase"),
    printcolumn(name = "Progress", type_ = "string", json_path = ".status.snapshot.progress.percentDone"),
    printcolumn(name = "Node", type_ = "string", json_path = ".spec.nodeName", priority = 1),
    printcolumn(name = "Device class", type_ = "string", json_path = ".spec.deviceClass", priority = 1),
    printcolumn(name = "Size", type_ = "string", json_path = ".status.currentSize", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", priority = 1)
)]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct LogicalVolumeSpec {
    /// Name that the volume was asked for by, such as pvc-UID or snapshot-UID.
    pub name: String,

    /// The node that holds the volume.
    pub node_name: String,

    /// Size to have; it only grows.
    #[schemars(with = "schema::Quantity")]
    pub size: Quantity,

    /// Device class to carve from; absent means the node's default class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_class: Option<String>,

    /// Named set of lvcreate options to use in place of the device class's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lvcreate_option_class: Option<String>,

    /// Name of the LogicalVolume that this one is a snapshot or copy of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,

    /// How a volume with a source may be used: ro for a snapshot, rw for a restored volume or a clone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_type: Option<AccessType>,
}

wire_enum! {
    /// How a volume that has a source may be used.
    open AccessType {
        /// A snapshot: read only.
        ReadOnly = "ro",
        /// A restored volume or a clone.
        ReadWrite = "rw",
    }
}

/// What exists on the node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct LogicalVolumeStatus {
    /// Name of the LVM volume, once it exists: this object's UID.
    #[serde(rename = "volumeID", skip_serializing_if = "Option::is_none")]
    pub volume_id: Option<String>,

    /// gRPC code of the last failure; absent or 0 where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,

    /// Details of the last failure or step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,

    /// Size of the LVM volume, rounded up to whole extents.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Quantity>")]
    pub current_size: Option<Quantity>,

    /// Observations about backup, restore and removal.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    pub conditions: Vec<Condition>,

    /// The backup of this snapshot, or the restore into this volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotStatus>,
}

/// How far a backup or restore is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct SnapshotStatus {
    /// Backup or Restore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<SnapshotOperation>,

    /// How far the operation is.
    pub phase: SnapshotPhase,

    /// When the operation began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub start_time: Option<Time>,

    /// When the operation ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,

    /// How long the operation took, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,

    /// How much is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<SnapshotProgress>,

    /// What is going on, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,

    /// Why the operation failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<SnapshotError>,

    /// Place of the backup inside the store: claim namespace and name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,

    /// Address of the backup repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,

    /// Id of the backup inside the repository; present once there is one.
    #[serde(rename = "snapshotID", skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,

    /// The backup engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,

    /// Which process carries the operation out; not known to peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,

    /// When that process last said that it is alive; not known to peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat_time: Option<Time>,

    /// How many times the operation was begun; not known to peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<i32>,

    /// What the snapshot shows: Crash for one moment of the volume, Fuzzy where files may have changed while they were copied;
    /// not known to peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consistency: Option<String>,
}

wire_enum! {
    /// What is being done with a snapshot's data.
    open SnapshotOperation {
        /// Its data goes to the backup store.
        Backup = "Backup",
        /// Data comes back from the backup store.
        Restore = "Restore",
        /// Its backup is being removed from the store.
        Delete = "Delete",
    }
}

wire_enum! {
    /// How far a backup or restore is.
    open SnapshotPhase {
        /// Not begun.
        Pending = "Pending",
        /// Under way.
        Running = "Running",
        /// A backup is under way; known to peers, not written by them.
        BackingUp = "BackingUp",
        /// A restore is under way; known to peers, not written by them.
        Restoring = "Restoring",
        /// Done; known to peers, not written by them.
        Completed = "Completed",
        /// Done, and the data is complete.
        Succeeded = "Succeeded",
        /// Given up.
        Failed = "Failed",
    }
}

/// How much of a backup or restore is done; texts are for people.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct SnapshotProgress {
    /// Seconds since the operation began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_elapsed: Option<i64>,

    /// Share that is done, such as 42.10%.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent_done: Option<String>,

    /// Files there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_files: Option<i64>,

    /// Files that are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files_done: Option<i64>,

    /// Bytes moved, with a unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transfer_done: Option<String>,

    /// Bytes there are, with a unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<String>,

    /// Rate, with a unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<String>,

    /// Bytes there are, as far as known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<i64>,

    /// Bytes that are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_done: Option<i64>,
}

/// Why a backup or restore failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct SnapshotError {
    /// One word for programs; see `conditions::logical_volume::error_codes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,

    /// Details for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

spec_or_default!(LogicalVolumeSpec);
