//! What all movers share: when they run, which volumes they use, and how their pods are made.

use super::{CopyMethod, MoverResult};
use crate::schema;
use crate::wire::or_default;
use k8s_openapi::api::core::v1::{
    Affinity, NFSVolumeSource, PersistentVolumeClaimVolumeSource, PodSecurityContext, ResourceRequirements,
    SecretVolumeSource,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// When to copy; without one, again as soon as the last copy is done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct Trigger {
    /// At these times: a cron line.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = schema::CRON))]
    pub schedule: Option<String>,

    /// Once for each new value; status.lastManualSync tells when it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manual: Option<String>,
}

/// Leaves the copying to another controller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct External {
    /// Name of that controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,

    /// Parameters for it.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
}

/// How a sender gets a stable image of its claim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct SourceVolumeOptions {
    /// How the image is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy_method: Option<CopyMethod>,

    /// Size of the image; absent means the claim's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Quantity>")]
    pub capacity: Option<Quantity>,

    /// Storage class of the image; absent means the claim's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,

    /// Access modes of the image; absent means the claim's.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub access_modes: Vec<String>,

    /// Snapshot class; absent means the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_snapshot_class_name: Option<String>,
}

/// Where a receiver writes, and how it keeps an image of what it received.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct DestinationVolumeOptions {
    /// How the image is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy_method: Option<CopyMethod>,

    /// Size of the claim to make.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Quantity>")]
    pub capacity: Option<Quantity>,

    /// Storage class of the claim to make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,

    /// Access modes of the claim to make.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub access_modes: Vec<String>,

    /// Snapshot class; absent means the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_snapshot_class_name: Option<String>,

    /// Write to this claim instead of making one.
    #[serde(rename = "destinationPVC", skip_serializing_if = "Option::is_none")]
    pub destination_pvc: Option<String>,

    /// Delete the claim that was made as soon as its image exists.
    #[serde(rename = "cleanupTempPVC", skip_serializing_if = "Option::is_none")]
    pub cleanup_temp_pvc: Option<bool>,
}

/// How a mover's pod is made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct MoverConfig {
    /// Security context of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::PodSecurityContext>")]
    pub mover_security_context: Option<PodSecurityContext>,

    /// Service account of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mover_service_account: Option<String>,

    /// Further labels of the pod.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub mover_pod_labels: BTreeMap<String, String>,

    /// Resources of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ResourceRequirements>")]
    pub mover_resources: Option<ResourceRequirements>,

    /// Where the pod may run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Affinity>")]
    pub mover_affinity: Option<Affinity>,

    /// Further volumes of the pod.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub mover_volumes: Vec<MoverVolume>,
}

/// A further volume of a mover's pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct MoverVolume {
    /// Name of the directory under /mnt to mount it at.
    pub mount_path: String,

    /// The volume.
    pub volume_source: MoverVolumeSource,
}

/// A volume that a mover's pod can mount.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct MoverVolumeSource {
    /// A secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::SecretVolumeSource>")]
    pub secret: Option<SecretVolumeSource>,

    /// A claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::PersistentVolumeClaimVolumeSource>")]
    pub persistent_volume_claim: Option<PersistentVolumeClaimVolumeSource>,

    /// A directory of an NFS server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::NfsVolumeSource>")]
    pub nfs: Option<NFSVolumeSource>,
}

/// Certificates to trust a server by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct CustomCa {
    /// Secret that holds them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,

    /// ConfigMap that holds them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map_name: Option<String>,

    /// Key under which they stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// How the last run of a mover went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct MoverStatus {
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<MoverResult>,

    /// The lines of its log that matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logs: Option<String>,
}
