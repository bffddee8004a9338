//! `csiaddons.openshift.io/v1alpha1`: cutting a cluster's nodes off from storage.

#![allow(dead_code, reason = "the copies of specs by which validation rules are derived are never written")]

use crate::schema;
use crate::wire::{or_default, spec_or_default, wire_enum};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The API group of these kinds.
pub const GROUP: &str = "csiaddons.openshift.io";

/// Which addresses to cut off, and through which driver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "csiaddons.openshift.io",
    version = "v1alpha1",
    kind = "NetworkFence",
    plural = "networkfences",
    doc = "Cuts addresses off from a storage, or lets them back in.",
    status = "NetworkFenceStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Driver", type_ = "string", json_path = ".spec.driver"),
    printcolumn(name = "Cidrs", type_ = "string", json_path = ".spec.cidrs"),
    printcolumn(name = "FenceState", type_ = "string", json_path = ".spec.fenceState"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Result", type_ = "string", json_path = ".status.result")
)]
#[x_kube(
    validation = (
        "has(self.driver) || has(self.networkFenceClassName)",
        "one of driver or networkFenceClassName must be present"
    ),
    validation = (
        "has(self.networkFenceClassName) || has(self.secret)",
        "secret must be present when networkFenceClassName is not specified"
    )
)]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct NetworkFenceSpec {
    /// Class that names the driver and its parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self == oldSelf", "networkFenceClassName is immutable"))]
    pub network_fence_class_name: Option<String>,

    /// The CSI driver, where there is no class.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self == oldSelf", "driver is immutable"))]
    pub driver: Option<String>,

    /// Whether the addresses are cut off.
    #[schemars(extend("default" = "Fenced"))]
    pub fence_state: FenceState,

    /// The address ranges.
    #[serde(deserialize_with = "or_default")]
    pub cidrs: Vec<String>,

    /// Secret for the driver, where there is no class.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self == oldSelf", "secret is immutable"))]
    pub secret: Option<FenceSecret>,

    /// Parameters for the driver.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    #[x_kube(validation = ("self == oldSelf", "parameters are immutable"))]
    pub parameters: BTreeMap<String, String>,
}

wire_enum! {
    /// Whether addresses are cut off.
    closed FenceState {
        /// Cut off.
        Fenced = "Fenced",
        /// Let in.
        Unfenced = "Unfenced",
    }
}

/// Names the secret for a driver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct FenceSecret {
    /// Name of the secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self == oldSelf", "name is immutable"))]
    pub name: Option<String>,

    /// Namespace of the secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self == oldSelf", "namespace is immutable"))]
    pub namespace: Option<String>,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct NetworkFenceStatus {
    /// Whether the last operation went well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<FenceResult>,

    /// Details for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,

    /// Observations about the fence.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    pub conditions: Vec<Condition>,
}

wire_enum! {
    /// Whether a fencing operation went well.
    open FenceResult {
        /// It did.
        Succeeded = "Succeeded",
        /// It did not.
        Failed = "Failed",
    }
}

/// A driver that can fence, and how to call it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "csiaddons.openshift.io",
    version = "v1alpha1",
    kind = "NetworkFenceClass",
    plural = "networkfenceclasses",
    doc = "A way to fence: a driver and its parameters.",
    status = "NetworkFenceClassStatus",
    derive = "Default",
    derive = "PartialEq"
)]
#[x_kube(validation = (
    "has(self.parameters) == has(oldSelf.parameters)",
    "parameters are immutable"
))]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct NetworkFenceClassSpec {
    /// The CSI driver.
    #[x_kube(validation = ("self == oldSelf", "provisioner is immutable"))]
    pub provisioner: String,

    /// Parameters for the driver.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    #[x_kube(validation = ("self == oldSelf", "parameters are immutable"))]
    pub parameters: BTreeMap<String, String>,
}

/// Nothing is reported about a class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkFenceClassStatus {}

spec_or_default!(NetworkFenceSpec);
spec_or_default!(NetworkFenceClassSpec);
