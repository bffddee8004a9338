//! DRPolicy: two clusters and how data flows between them.

#![allow(dead_code, reason = "the copies of specs by which validation rules are derived are never written")]

use crate::schema;
use crate::wire::{is_false, or_default, spec_or_default};
use k8s_openapi::api::core::v1::LocalObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which clusters protect each other, and how often data is copied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "ramendr.openshift.io",
    version = "v1alpha1",
    kind = "DRPolicy",
    plural = "drpolicies",
    doc = "A pair of clusters that protect each other's applications.",
    status = "DRPolicyStatus",
    derive = "Default",
    derive = "PartialEq"
)]
#[x_kube(
    validation = (
        "has(oldSelf.replicationClassSelector) == has(self.replicationClassSelector)",
        "replicationClassSelector is immutable"
    ),
    validation = (
        "has(oldSelf.volumeSnapshotClassSelector) == has(self.volumeSnapshotClassSelector)",
        "volumeSnapshotClassSelector is immutable"
    )
)]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct DRPolicySpec {
    /// How often data is copied: a number and s, m, h or d (upstream has no seconds). Empty means synchronous storage.
    #[schemars(regex(pattern = r"^(|\d+[smhd])$"))]
    #[x_kube(validation = ("self == oldSelf", "schedulingInterval is immutable"))]
    pub scheduling_interval: String,

    /// Which replication classes may be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LabelSelector>", extend("default" = {}))]
    #[x_kube(validation = ("self == oldSelf", "replicationClassSelector is immutable"))]
    pub replication_class_selector: Option<LabelSelector>,

    /// Which snapshot classes may be used for copying with a mover.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LabelSelector>", extend("default" = {}))]
    #[x_kube(validation = ("self == oldSelf", "volumeSnapshotClassSelector is immutable"))]
    pub volume_snapshot_class_selector: Option<LabelSelector>,

    /// Which group snapshot classes may be used for consistency groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LabelSelector>")]
    pub volume_group_snapshot_class_selector: Option<LabelSelector>,

    /// Names of the two DRClusters.
    #[serde(rename = "drClusters", deserialize_with = "or_default")]
    #[x_kube(
        validation = ("size(self) == 2", "drClusters requires a list of 2 clusters"),
        validation = ("self == oldSelf", "drClusters is immutable")
    )]
    pub dr_clusters: Vec<String>,

    /// ConfigMap with network mappings, looked up in the namespace of each DRPlacementControl.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LocalObjectReference>")]
    pub network_mapping_ref: Option<LocalObjectReference>,
}

/// What was found out about the pair of clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct DRPolicyStatus {
    /// Observations about the policy.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    pub conditions: Vec<Condition>,

    /// Storage classes that the clusters replicate asynchronously.
    #[serde(rename = "async", skip_serializing_if = "Option::is_none")]
    pub async_: Option<PeerClasses>,

    /// Storage classes that the clusters share synchronously.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<PeerClasses>,

    /// Networks that exist on both clusters.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub network_peers: Vec<NetworkPeer>,
}

/// Storage classes common to the clusters of a policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct PeerClasses {
    /// One entry for each storage class name.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub peer_classes: Vec<PeerClass>,
}

/// A storage class that both clusters have, and how its volumes reach the peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct PeerClass {
    /// Replication relation between the storage instances; absent where a mover copies.
    #[serde(rename = "replicationID", skip_serializing_if = "Option::is_none")]
    pub replication_id: Option<String>,

    /// Replication relation for groups of volumes.
    #[serde(rename = "groupreplicationID", skip_serializing_if = "Option::is_none")]
    pub group_replication_id: Option<String>,

    /// Storage identities: one where storage is shared, two where each cluster has its own.
    #[serde(
        rename = "storageID",
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub storage_id: Vec<String>,

    /// Name of the storage class on both clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,

    /// UIDs of the clusters' kube-system namespaces.
    #[serde(
        rename = "clusterIDs",
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub cluster_ids: Vec<String>,

    /// Whether volumes can be replicated as consistent groups.
    #[serde(default, skip_serializing_if = "is_false")]
    pub grouping: bool,

    /// Whether the storage schedules and runs replication by itself.
    #[serde(default, skip_serializing_if = "is_false")]
    pub offloaded: bool,

    /// Whether all volumes of the relation fail over together.
    #[serde(default, skip_serializing_if = "is_false")]
    pub global: bool,
}

/// A network that exists on both clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct NetworkPeer {
    /// Name of the network attachment definition.
    pub nad_name: String,

    /// Namespace of the network attachment definition.
    pub nad_namespace: String,

    /// CNI type by cluster name.
    #[serde(
        rename = "clusterCNITypes",
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub cluster_cni_types: BTreeMap<String, String>,
}

spec_or_default!(DRPolicySpec);
