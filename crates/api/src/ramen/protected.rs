//! ProtectedVolumeReplicationGroupList: which groups an object store has records of.

use super::VolumeReplicationGroup;
use crate::schema;
use crate::wire::{or_default, spec_or_default};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which object store to read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "ramendr.openshift.io",
    version = "v1alpha1",
    kind = "ProtectedVolumeReplicationGroupList",
    plural = "protectedvolumereplicationgrouplists",
    doc = "Lists the groups that an object store has records of, as they were when it was read.",
    status = "ProtectedVolumeReplicationGroupListStatus",
    derive = "Default",
    derive = "PartialEq"
)]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct ProtectedVolumeReplicationGroupListSpec {
    /// The object store profile.
    #[serde(rename = "s3ProfileName")]
    pub s3_profile_name: String,
}

/// What the store holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ProtectedVolumeReplicationGroupListStatus {
    /// When the store was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_time: Option<Time>,

    /// The groups found.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Embedded<VolumeReplicationGroup>>")]
    pub items: Vec<VolumeReplicationGroup>,
}

spec_or_default!(ProtectedVolumeReplicationGroupListSpec);
