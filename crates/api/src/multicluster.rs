//! `multicluster.x-k8s.io/v1alpha1`: making a service reachable from other clusters.

use crate::schema;
use crate::wire::or_default;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The API group of this kind.
pub const GROUP: &str = "multicluster.x-k8s.io";

/// The body of a ServiceExport: its wish is its existence, so the spec may be missing altogether.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "multicluster.x-k8s.io",
    version = "v1alpha1",
    kind = "ServiceExport",
    plural = "serviceexports",
    shortname = "svcex",
    shortname = "svcexport",
    namespaced,
    no_spec,
    doc = "Makes the service of the same name reachable from other clusters.",
    status = "ServiceExportStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ServiceExportBody {
    /// What to carry along with the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<ServiceExportSpec>,
}

/// What to carry along with the service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ServiceExportSpec {
    /// Labels for the imported service.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub exported_labels: BTreeMap<String, String>,

    /// Annotations for the imported service.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub exported_annotations: BTreeMap<String, String>,
}

/// How far the export is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ServiceExportStatus {
    /// Observations about the export.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}
