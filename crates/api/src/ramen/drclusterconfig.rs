//! DRClusterConfig: what a managed cluster tells the hub about its storage and networks.

#![allow(dead_code, reason = "the copies of specs by which validation rules are derived are never written")]

use crate::schema;
use crate::wire::{or_default, spec_or_default};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the hub wants the cluster to know.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "ramendr.openshift.io",
    version = "v1alpha1",
    kind = "DRClusterConfig",
    plural = "drclusterconfigs",
    doc = "What a managed cluster has to offer for disaster recovery; one for each cluster.",
    status = "DRClusterConfigStatus",
    derive = "Default",
    derive = "PartialEq"
)]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct DRClusterConfigSpec {
    /// All intervals of the policies that name this cluster.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub replication_schedules: Vec<String>,

    /// The cluster's identity: the value of its id.k8s.io claim.
    #[serde(rename = "clusterID")]
    #[x_kube(validation = ("self == oldSelf", "ClusterID is immutable"))]
    pub cluster_id: String,
}

/// Classes and networks found on the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct DRClusterConfigStatus {
    /// Observations about the survey.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    pub conditions: Vec<Condition>,

    /// Storage classes with a storage identity.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub storage_classes: Vec<String>,

    /// Snapshot classes with a storage identity.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub volume_snapshot_classes: Vec<String>,

    /// Group snapshot classes with a storage identity.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub volume_group_snapshot_classes: Vec<String>,

    /// Replication classes with a replication identity.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub volume_replication_classes: Vec<String>,

    /// Group replication classes with a group replication identity.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub volume_group_replication_classes: Vec<String>,

    /// Network fence classes with a storage identity.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub network_fence_classes: Vec<String>,

    /// Addresses from which the cluster's nodes reach each storage.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub storage_access_details: Vec<StorageAccessDetail>,

    /// Networks offered for disaster recovery.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub network_attachments: Vec<NetworkAttachment>,

    /// Object stores that cannot be used from this cluster, by name, and why. Ours, not known to peers.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub store_failures: BTreeMap<String, String>,
}

/// Addresses from which the nodes reach one storage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct StorageAccessDetail {
    /// The CSI driver.
    pub storage_provisioner: String,

    /// Address ranges.
    #[serde(deserialize_with = "or_default")]
    pub cidrs: Vec<String>,
}

/// A network attachment definition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct NetworkAttachment {
    /// Its name.
    pub name: String,

    /// Its namespace.
    pub namespace: String,

    /// The CNI plugin type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cni_type: Option<String>,
}

spec_or_default!(DRClusterConfigSpec);
