//! What is known about one protected claim; it travels from cluster to cluster inside other objects.

use super::MMode;
use crate::schema;
use crate::wire::{Duration, is_false, or_default};
use k8s_openapi::api::core::v1::VolumeResourceRequirements;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A protected claim and how far its data is protected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ProtectedPvc {
    /// Namespace of the claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,

    /// Name of the claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// Whether bytes are copied by a mover (VolSync) rather than mirrored by the storage.
    #[serde(default, skip_serializing_if = "is_false")]
    pub protected_by_vol_sync: bool,

    /// The CSI driver that provisions the claim's class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub csi_provisioner: Option<String>,

    /// Identity of the storage instance that holds the volume.
    #[serde(rename = "storageID", skip_serializing_if = "Option::is_none")]
    pub storage_id: Option<Identifier>,

    /// Identity of the replication relation that the volume is part of.
    #[serde(rename = "replicationID", skip_serializing_if = "Option::is_none")]
    pub replication_id: Option<Identifier>,

    /// Storage class of the claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,

    /// Annotations to put on the claim where it is restored.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,

    /// Labels to put on the claim where it is restored.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,

    /// Access modes of the claim.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub access_modes: Vec<String>,

    /// Size asked for by the claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::VolumeResourceRequirements>")]
    pub resources: Option<VolumeResourceRequirements>,

    /// Observations about this claim's protection.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    pub conditions: Vec<Condition>,

    /// When the newest complete copy at the peer was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_sync_time: Option<Time>,

    /// How long the newest complete copy took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_sync_duration: Option<Duration>,

    /// Bytes carried by the newest complete copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_sync_bytes: Option<i64>,

    /// Filesystem or Block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_mode: Option<String>,

    /// When the content that this claim was restored from was cut, by the clock of the cluster that cut it. Ours, not known to peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restored_until: Option<Time>,
}

/// An identity that storage gives itself, with the maintenance modes it needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct Identifier {
    /// The identity, as labelled on the storage or replication class.
    pub id: String,

    /// Modes that must be active on the storage for an action.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<MMode>,
}

/// Claims that are captured at one point in time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct PvcGroup {
    /// Names of the claims.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub grouped: Vec<String>,
}
