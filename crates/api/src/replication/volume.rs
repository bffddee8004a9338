//! VolumeReplication and its class: one volume's replication.

#![allow(dead_code, reason = "the copies of specs by which validation rules are derived are never written")]

use super::{ReplicationState, State};
use crate::schema;
use crate::wire::{Duration, or_default, spec_or_default};
use k8s_openapi::api::core::v1::TypedLocalObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which volume to replicate, and in which role.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "replication.storage.openshift.io",
    version = "v1alpha1",
    kind = "VolumeReplication",
    plural = "volumereplications",
    shortname = "vr",
    namespaced,
    doc = "Replicates one volume, or one group of volumes, through its storage.",
    status = "VolumeReplicationStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "volumeReplicationClass",
        type_ = "string",
        json_path = ".spec.volumeReplicationClass"
    ),
    printcolumn(name = "SourceKind", type_ = "string", json_path = ".spec.dataSource.kind"),
    printcolumn(name = "SourceName", type_ = "string", json_path = ".spec.dataSource.name"),
    printcolumn(name = "desiredState", type_ = "string", json_path = ".spec.replicationState"),
    printcolumn(name = "currentState", type_ = "string", json_path = ".status.state")
)]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct VolumeReplicationSpec {
    /// The class.
    #[x_kube(validation = ("self == oldSelf", "volumeReplicationClass is immutable"))]
    pub volume_replication_class: String,

    /// Role asked for.
    pub replication_state: ReplicationState,

    /// The claim or group to replicate.
    #[schemars(with = "schema::TypedLocalObjectReference")]
    #[x_kube(validation = ("self == oldSelf", "dataSource is immutable"))]
    pub data_source: TypedLocalObjectReference,

    /// Resolve a split by throwing away what is here, without asking.
    #[schemars(extend("default" = false))]
    pub auto_resync: bool,

    /// An existing replication to join.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replication_handle: Option<String>,
}

/// How far the volume is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct VolumeReplicationStatus {
    /// Role reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,

    /// Details for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,

    /// Observations about the replication.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    pub conditions: Vec<Condition>,

    /// The generation of the spec that this status belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// When the last operation began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_start_time: Option<Time>,

    /// When the last operation ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_completion_time: Option<Time>,

    /// When the peer last had all that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_sync_time: Option<Time>,

    /// Bytes carried by the last synchronisation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_sync_bytes: Option<i64>,

    /// How long the last synchronisation took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_sync_duration: Option<Duration>,

    /// The volume's id at the peer, where it differs.
    #[serde(rename = "destinationVolumeID", skip_serializing_if = "Option::is_none")]
    pub destination_volume_id: Option<String>,
}

/// A driver that replicates volumes, and how to call it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "replication.storage.openshift.io",
    version = "v1alpha1",
    kind = "VolumeReplicationClass",
    plural = "volumereplicationclasses",
    shortname = "vrc",
    doc = "A way to replicate volumes: a driver and its parameters.",
    status = "VolumeReplicationClassStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "provisioner", type_ = "string", json_path = ".spec.provisioner"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(validation = (
    "has(self.parameters) == has(oldSelf.parameters)",
    "parameters are immutable"
))]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct VolumeReplicationClassSpec {
    /// The CSI driver.
    #[x_kube(validation = ("self == oldSelf", "provisioner is immutable"))]
    pub provisioner: String,

    /// Parameters for the driver; schedulingInterval is matched with the policy's.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    #[x_kube(validation = ("self == oldSelf", "parameters are immutable"))]
    pub parameters: BTreeMap<String, String>,
}

/// Nothing is reported about a class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VolumeReplicationClassStatus {}

spec_or_default!(VolumeReplicationSpec);
spec_or_default!(VolumeReplicationClassSpec);
