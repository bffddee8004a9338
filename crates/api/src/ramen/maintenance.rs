//! MaintenanceMode: asks the storage of a cluster to get ready for an action.

use crate::schema;
use crate::wire::{or_default, spec_or_default, wire_enum};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which storage should enter which modes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "ramendr.openshift.io",
    version = "v1alpha1",
    kind = "MaintenanceMode",
    plural = "maintenancemodes",
    doc = "Asks a storage back end to prepare for an action; answered by the storage's own operator.",
    status = "MaintenanceModeStatus",
    derive = "Default",
    derive = "PartialEq"
)]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct MaintenanceModeSpec {
    /// The CSI driver of the storage.
    pub storage_provisioner: String,

    /// The storage or replication identity meant.
    #[serde(rename = "targetID", skip_serializing_if = "Option::is_none")]
    pub target_id: Option<String>,

    /// Modes to enter.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<MMode>,
}

wire_enum! {
    /// What storage must be ready for.
    closed MMode {
        /// Volumes are about to be made primary without their peer.
        Failover = "Failover",
    }
}

/// How far the storage is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct MaintenanceModeStatus {
    /// How far all modes are, taken together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<MModeState>,

    /// The generation of the spec that the state belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// One observation for each mode.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    pub conditions: Vec<Condition>,
}

wire_enum! {
    /// How far a storage is in entering a mode.
    closed MModeState {
        /// Not known.
        Unknown = "Unknown",
        /// It failed.
        Error = "Error",
        /// On its way.
        Progressing = "Progressing",
        /// All modes are active.
        Completed = "Completed",
    }
}

spec_or_default!(MaintenanceModeSpec);
