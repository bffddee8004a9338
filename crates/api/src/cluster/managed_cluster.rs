//! ManagedCluster: a cluster that has joined a hub.

use super::TaintEffect;
use crate::conditions::fleet::CLAIM_ID;
use crate::schema;
use crate::wire::{is_false, or_default, spec_or_default};
use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How the hub treats the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "cluster.open-cluster-management.io",
    version = "v1",
    kind = "ManagedCluster",
    plural = "managedclusters",
    shortname = "mcl",
    shortname = "mcls",
    doc = "A cluster that has joined, or wants to join, this hub.",
    status = "ManagedClusterStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Hub Accepted", type_ = "boolean", json_path = ".spec.hubAcceptsClient"),
    printcolumn(
        name = "Managed Cluster URLs",
        type_ = "string",
        json_path = ".spec.managedClusterClientConfigs[*].url"
    ),
    printcolumn(
        name = "Joined",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"ManagedClusterJoined\")].status"
    ),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"ManagedClusterConditionAvailable\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct ManagedClusterSpec {
    /// Ways to reach the cluster's API server.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub managed_cluster_client_configs: Vec<ClientConfig>,

    /// Whether the hub lets the cluster in.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hub_accepts_client: bool,

    /// How long the cluster may be silent before it counts as unavailable.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = 60))]
    pub lease_duration_seconds: Option<i32>,

    /// Marks that keep placements away from the cluster.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
}

impl ManagedCluster {
    /// The identity that the cluster claims: the UID of its namespace `kube-system`.
    pub fn id(&self) -> Option<&str> {
        let claims = self.status.iter().flat_map(|status| &status.cluster_claims);
        let id = claims.into_iter().find(|claim| claim.name.as_deref() == Some(CLAIM_ID));
        id.and_then(|claim| claim.value.as_deref()).filter(|id| !id.is_empty())
    }
}

/// A way to reach a cluster's API server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ClientConfig {
    /// Address of the API server.
    pub url: String,

    /// Certificates to trust it by.
    #[serde(rename = "caBundle", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("format" = "byte"))]
    pub ca_bundle: Option<ByteString>,
}

/// A mark that keeps placements away from a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct Taint {
    /// Key of the mark.
    #[schemars(length(max = 316), regex(pattern = schema::QUALIFIED_NAME))]
    pub key: String,

    /// Value of the mark.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub value: Option<String>,

    /// What it does to placements that do not tolerate it.
    pub effect: TaintEffect,

    /// When it was put on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_added: Option<Time>,
}

/// What the cluster says of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ManagedClusterStatus {
    /// Observations about the cluster.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,

    /// Resources of all its nodes.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, schema::Quantity>")]
    pub capacity: BTreeMap<String, Quantity>,

    /// Resources that workloads may use.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, schema::Quantity>")]
    pub allocatable: BTreeMap<String, Quantity>,

    /// Versions that it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<ManagedClusterVersion>,

    /// Facts that it states about itself, such as its id.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub cluster_claims: Vec<ClusterClaim>,

    /// Namespaces that are managed through cluster sets.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["clusterSet".into(), "name".into()]))]
    pub managed_namespaces: Vec<ManagedNamespace>,
}

/// Versions that a cluster runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ManagedClusterVersion {
    /// Version of Kubernetes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<String>,
}

/// A fact that a cluster states about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ClusterClaim {
    /// Name of the fact, such as id.k8s.io.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,

    /// The fact.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub value: Option<String>,
}

/// A namespace that is managed through a cluster set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ManagedNamespace {
    /// The namespace.
    #[schemars(length(max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,

    /// The cluster set.
    pub cluster_set: String,

    /// Observations about the namespace.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

spec_or_default!(ManagedClusterSpec);
