//! `apps.open-cluster-management.io/v1`: the older way to say on which clusters an application runs.

use crate::schema;
use crate::wire::{or_default, spec_or_default};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The API group of this kind.
pub const GROUP: &str = "apps.open-cluster-management.io";

/// The `schedulerName` that leaves the decision to the hub's own controller.
pub const SCHEDULER_NAME_RAMEN: &str = "ramen";

/// Which clusters to choose.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "apps.open-cluster-management.io",
    version = "v1",
    kind = "PlacementRule",
    plural = "placementrules",
    namespaced,
    doc = "Chooses clusters for an application; superseded by Placement.",
    status = "PlacementRuleStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".spec.clusterReplicas")
)]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct PlacementRuleSpec {
    /// Who decides; a name other than the default scheduler's leaves the decision to somebody else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler_name: Option<String>,

    /// Choose among these clusters only.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<ClusterReference>,

    /// Choose among clusters with these labels only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LabelSelector>")]
    pub cluster_selector: Option<LabelSelector>,

    /// How many clusters to choose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_replicas: Option<i32>,

    /// Choose among clusters in these conditions only.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub cluster_conditions: Vec<ClusterCondition>,

    /// Which resource to sort clusters by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_hint: Option<ResourceHint>,

    /// Further policies to honour.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::ObjectReference>")]
    pub policies: Vec<ObjectReference>,
}

/// Names a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ClusterReference {
    /// The cluster's name.
    pub name: String,
}

/// A condition that a cluster must be in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ClusterCondition {
    /// Type of the condition.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,

    /// Status that it must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

/// Which resource to sort clusters by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ResourceHint {
    /// The resource, such as cpu or memory.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,

    /// asc or desc.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
}

/// Which clusters were chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct PlacementRuleStatus {
    /// One entry for each chosen cluster.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<PlacementRuleDecision>,
}

/// A chosen cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct PlacementRuleDecision {
    /// The cluster's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_name: Option<String>,

    /// The cluster's namespace on the hub.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_namespace: Option<String>,
}

spec_or_default!(PlacementRuleSpec);
