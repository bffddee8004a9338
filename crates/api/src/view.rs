//! `view.open-cluster-management.io/v1beta1`: reading one object of a managed cluster from the hub.

use crate::schema;
use crate::wire::{or_default, spec_or_default};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The API group of this kind.
pub const GROUP: &str = "view.open-cluster-management.io";

/// Which object to look at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "view.open-cluster-management.io",
    version = "v1beta1",
    kind = "ManagedClusterView",
    plural = "managedclusterviews",
    namespaced,
    doc = "A copy of one object of the managed cluster in whose namespace it stands.",
    status = "ManagedClusterViewStatus",
    derive = "Default",
    derive = "PartialEq"
)]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct ManagedClusterViewSpec {
    /// The object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<ViewScope>,
}

/// Names the object to look at, by resource or by kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ViewScope {
    /// API group; absent means the core group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,

    /// Kind of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,

    /// API version of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,

    /// Resource name of the object, such as pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,

    /// Name of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// Namespace of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,

    /// How often to look again; 30 seconds where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_interval_seconds: Option<i32>,
}

/// What was seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ManagedClusterViewStatus {
    /// Observations about the view itself.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    pub conditions: Vec<Condition>,

    /// The object as it was when it was last seen; how long ago is not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::EmbeddedResource>")]
    pub result: Option<RawExtension>,
}

spec_or_default!(ManagedClusterViewSpec);
