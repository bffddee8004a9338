//! AppliedManifestWork: what a managed cluster's agent has put there on behalf of one work.

use super::ResourceIdentifier;
use crate::wire::{or_default, spec_or_default};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which work the record is about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "work.open-cluster-management.io",
    version = "v1",
    kind = "AppliedManifestWork",
    plural = "appliedmanifestworks",
    doc = "The agent's record, on the managed cluster, of what it made there for one ManifestWork of the hub.",
    status = "AppliedManifestWorkStatus",
    derive = "Default",
    derive = "PartialEq"
)]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct AppliedManifestWorkSpec {
    /// Tells hubs apart; the first part of the record's name.
    pub hub_hash: String,

    /// The agent that keeps the record.
    #[serde(rename = "agentID", default)]
    pub agent_id: String,

    /// Name of the work on the hub.
    pub manifest_work_name: String,
}

/// What was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct AppliedManifestWorkStatus {
    /// The objects that go when the work goes.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub applied_resources: Vec<AppliedResource>,

    /// Since when the record has no work on the hub.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eviction_start_time: Option<Time>,
}

/// One object that was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct AppliedResource {
    /// The object.
    #[serde(flatten)]
    pub identifier: ResourceIdentifier,

    /// The API version it was made in.
    #[serde(default)]
    pub version: String,

    /// Which object of that name it is; empty while it is being made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

spec_or_default!(AppliedManifestWorkSpec);
