//! DRCluster: a managed cluster that takes part in disaster recovery.

#![allow(dead_code, reason = "the copies of specs by which validation rules are derived are never written")]

use super::MModeState;
use crate::schema;
use crate::wire::{or_default, spec_or_default, wire_enum};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the cluster keeps its records, and whether it is fenced off.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "ramendr.openshift.io",
    version = "v1alpha1",
    kind = "DRCluster",
    plural = "drclusters",
    doc = "A managed cluster that applications are protected on; named like its ManagedCluster.",
    status = "DRClusterStatus",
    derive = "Default",
    derive = "PartialEq"
)]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct DRClusterSpec {
    /// Address ranges of the cluster's nodes, for network fencing.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub cidrs: Vec<String>,

    /// Fencing asked for; absent means none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_fence: Option<ClusterFence>,

    /// Region; clusters of one region may share synchronous storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self == oldSelf", "region is immutable"))]
    pub region: Option<String>,

    /// Object store profile for this cluster's records; NoS3 for none.
    #[serde(rename = "s3ProfileName")]
    #[x_kube(validation = ("self == oldSelf", "s3ProfileName is immutable"))]
    pub s3_profile_name: String,
}

wire_enum! {
    /// Whether a cluster is kept from its storage.
    closed ClusterFence {
        /// Lift the fence.
        Unfenced = "Unfenced",
        /// Cut the cluster off from storage through its peer.
        Fenced = "Fenced",
        /// An operator has cut it off by hand.
        ManuallyFenced = "ManuallyFenced",
        /// An operator has lifted the fence by hand.
        ManuallyUnfenced = "ManuallyUnfenced",
    }
}

/// What is known about the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct DRClusterStatus {
    /// Where the cluster stands between available and fenced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<DRClusterPhase>,

    /// Observations about the cluster.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    pub conditions: Vec<Condition>,

    /// Maintenance modes that storage of the cluster was asked to enter.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub maintenance_modes: Vec<ClusterMaintenanceMode>,
}

wire_enum! {
    /// Where a cluster stands between available and fenced.
    open DRClusterPhase {
        /// Being set up.
        Starting = "Starting",
        /// Ready for use.
        Available = "Available",
        /// The fence is going up.
        Fencing = "Fencing",
        /// Cut off from storage.
        Fenced = "Fenced",
        /// The fence is coming down.
        Unfencing = "Unfencing",
        /// The fence is down again.
        Unfenced = "Unfenced",
    }
}

/// The state of one storage's maintenance mode, copied from the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ClusterMaintenanceMode {
    /// The CSI driver.
    pub storage_provisioner: String,

    /// The storage or replication identity.
    #[serde(rename = "targetID")]
    pub target_id: String,

    /// How far the storage is.
    pub state: MModeState,

    /// Observations by the storage.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    pub conditions: Vec<Condition>,
}

spec_or_default!(DRClusterSpec);
