//! PlacementDecision: the clusters that were chosen.

use crate::wire::or_default;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A PlacementDecision has no spec: it only reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1beta1",
    kind = "PlacementDecision",
    plural = "placementdecisions",
    namespaced,
    no_spec,
    doc = "Clusters chosen for the Placement that its label names.",
    status = "PlacementDecisionStatus",
    derive = "Default",
    derive = "PartialEq"
)]
pub struct PlacementDecisionBody {}

/// Which clusters were chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct PlacementDecisionStatus {
    /// One entry for each chosen cluster.
    #[serde(deserialize_with = "or_default")]
    pub decisions: Vec<ClusterDecision>,
}

/// A chosen cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ClusterDecision {
    /// The cluster's name.
    pub cluster_name: String,

    /// Why it was chosen.
    pub reason: String,

    /// Its score among the candidates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<i64>,
}
