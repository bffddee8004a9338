//! VolumeGroupReplication, its class and its content: volumes replicated as one.

#![allow(dead_code, reason = "the copies of specs by which validation rules are derived are never written")]

use super::{ReplicationState, State};
use crate::schema;
use crate::wire::{Duration, or_default, spec_or_default};
use k8s_openapi::api::core::v1::{LocalObjectReference, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which claims to replicate as one, and in which role.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "replication.storage.openshift.io",
    version = "v1alpha1",
    kind = "VolumeGroupReplication",
    plural = "volumegroupreplications",
    shortname = "vgr",
    namespaced,
    doc = "Replicates a group of claims as one through their storage.",
    status = "VolumeGroupReplicationStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(
        name = "VolumeGroupReplicationClass",
        type_ = "string",
        json_path = ".spec.volumeGroupReplicationClassName"
    ),
    printcolumn(
        name = "VolumeGroupReplicationContent",
        type_ = "string",
        json_path = ".spec.volumeGroupReplicationContentName"
    ),
    printcolumn(name = "desiredState", type_ = "string", json_path = ".spec.replicationState"),
    printcolumn(name = "currentState", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct VolumeGroupReplicationSpec {
    /// Class of the group.
    #[x_kube(validation = ("self == oldSelf", "volumeGroupReplicationClassName is immutable"))]
    pub volume_group_replication_class_name: String,

    /// Class for the VolumeReplication of the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self == oldSelf", "volumeReplicationClassName is immutable"))]
    pub volume_replication_class_name: Option<String>,

    /// Name of the VolumeReplication of the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self == oldSelf", "volumeReplicationName is immutable"))]
    pub volume_replication_name: Option<String>,

    /// Name of the content that stands for the group at the storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self == oldSelf", "volumeGroupReplicationContentName is immutable"))]
    pub volume_group_replication_content_name: Option<String>,

    /// The claims of the group.
    #[x_kube(validation = ("self == oldSelf", "source is immutable"))]
    pub source: GroupSource,

    /// Role asked for.
    pub replication_state: ReplicationState,

    /// Resolve a split by throwing away what is here, without asking.
    #[schemars(extend("default" = false))]
    pub auto_resync: bool,

    /// Another controller serves this object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    #[x_kube(validation = ("self == oldSelf", "source is immutable"))]
    pub external: Option<bool>,
}

/// The claims of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct GroupSource {
    /// Selects the claims.
    #[schemars(with = "schema::LabelSelector")]
    #[x_kube(validation = ("self == oldSelf", "selector is immutable"))]
    pub selector: LabelSelector,
}

/// How far the group is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct VolumeGroupReplicationStatus {
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

    /// The group's id at the peer, where it differs.
    #[serde(rename = "destinationVolumeID", skip_serializing_if = "Option::is_none")]
    pub destination_volume_id: Option<String>,

    /// The claims in the group.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::LocalObjectReference>")]
    pub persistent_volume_claims_ref_list: Vec<LocalObjectReference>,
}

/// A driver that replicates groups, and how to call it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "replication.storage.openshift.io",
    version = "v1alpha1",
    kind = "VolumeGroupReplicationClass",
    plural = "volumegroupreplicationclasses",
    shortname = "vgrc",
    doc = "A way to replicate groups of volumes: a driver and its parameters.",
    status = "VolumeGroupReplicationClassStatus",
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
pub struct VolumeGroupReplicationClassSpec {
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
pub struct VolumeGroupReplicationClassStatus {}

/// A group as the storage knows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "replication.storage.openshift.io",
    version = "v1alpha1",
    kind = "VolumeGroupReplicationContent",
    plural = "volumegroupreplicationcontents",
    shortname = "vgrcontent",
    doc = "A replicated group of volumes as its storage knows it.",
    status = "VolumeGroupReplicationContentStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(
        name = "VolumeGroupReplicationClass",
        type_ = "string",
        json_path = ".spec.volumeGroupReplicationClassName"
    ),
    printcolumn(
        name = "VolumeGroupReplication",
        type_ = "string",
        json_path = ".spec.volumeGroupReplicationRef.name"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct VolumeGroupReplicationContentSpec {
    /// The VolumeGroupReplication that this content belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ObjectReference>")]
    #[x_kube(validation = (
        "self != null ? has(self.name) && has(self.__namespace__) && has(self.uid) : true",
        "volumeGroupReplicationRef.name, volumeGroupReplicationRef.namespace and volumeGroupReplicationRef.uid must be set if volumeGroupReplicationRef is defined"
    ))]
    pub volume_group_replication_ref: Option<ObjectReference>,

    /// The group's id at the storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_group_replication_handle: Option<String>,

    /// The CSI driver.
    pub provisioner: String,

    /// What the storage said about the group when it was made.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    #[x_kube(validation = ("self == oldSelf", "field is immutable"))]
    pub volume_group_attributes: BTreeMap<String, String>,

    /// The class of the group.
    pub volume_group_replication_class_name: String,

    /// The volumes of the group.
    pub source: GroupContentSource,
}

/// The volumes of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct GroupContentSource {
    /// Their ids at the storage.
    #[serde(deserialize_with = "or_default")]
    pub volume_handles: Vec<String>,
}

/// What the storage reports about a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct VolumeGroupReplicationContentStatus {
    /// The volumes in the group.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::LocalObjectReference>")]
    pub persistent_volume_ref_list: Vec<LocalObjectReference>,

    /// The group's id at the peer.
    #[serde(rename = "destinationVolumeGroupID", skip_serializing_if = "Option::is_none")]
    pub destination_volume_group_id: Option<String>,

    /// Ids of the volumes here and at the peer.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub persistent_volume_mapping_list: Vec<PersistentVolumeMapping>,
}

/// One volume's ids here and at the peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct PersistentVolumeMapping {
    /// Name of the persistent volume.
    pub name: String,

    /// Its id here.
    pub volume_handle: String,

    /// Its id at the peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination_volume_handle: Option<String>,
}

spec_or_default!(VolumeGroupReplicationSpec);
spec_or_default!(VolumeGroupReplicationClassSpec);
spec_or_default!(VolumeGroupReplicationContentSpec);
