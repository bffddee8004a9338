//! ReplicationDestination: the receiving side.

use super::{CustomCa, DestinationVolumeOptions, External, MoverConfig, MoverStatus, Trigger};
use crate::schema;
use crate::wire::{Duration, is_false, or_default, spec_or_default};
use k8s_openapi::api::core::v1::{ResourceRequirements, TypedLocalObjectReference};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What to receive, when, and with which mover.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "volsync.backube",
    version = "v1alpha1",
    kind = "ReplicationDestination",
    plural = "replicationdestinations",
    namespaced,
    doc = "Receives copies of a claim and keeps an image of the newest one.",
    status = "ReplicationDestinationStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(
        name = "Last sync",
        type_ = "string",
        format = "date-time",
        json_path = ".status.lastSyncTime"
    ),
    printcolumn(name = "Duration", type_ = "string", json_path = ".status.lastSyncDuration"),
    printcolumn(
        name = "Next sync",
        type_ = "string",
        format = "date-time",
        json_path = ".status.nextSyncTime"
    )
)]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct ReplicationDestinationSpec {
    /// When to receive; absent means always.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Trigger>,

    /// Receive with rsync over ssh.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rsync: Option<RsyncDestination>,

    /// Receive with rsync over TLS.
    #[serde(rename = "rsyncTLS", skip_serializing_if = "Option::is_none")]
    pub rsync_tls: Option<RsyncTlsDestination>,

    /// Fetch with rclone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rclone: Option<RcloneDestination>,

    /// Restore with restic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restic: Option<ResticDestination>,

    /// Leave the receiving to another controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<External>,

    /// Receive nothing for now; no pod holds the claim.
    #[serde(default, skip_serializing_if = "is_false")]
    pub paused: bool,
}

/// Receiving with rsync over ssh.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct RsyncDestination {
    /// Where to write and how to keep an image.
    #[serde(flatten)]
    pub volume: DestinationVolumeOptions,

    /// Secret with the ssh keys; absent means: make them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_keys: Option<String>,

    /// Type of the service for incoming connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_type: Option<String>,

    /// Annotations of that service.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub service_annotations: BTreeMap<String, String>,

    /// Address of the sender; absent means: wait to be connected to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,

    /// Port of the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 65535))]
    pub port: Option<i32>,

    /// Directory at the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,

    /// User at the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_user: Option<String>,

    /// Filesystem or Block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_mode: Option<String>,

    /// Service account of the mover's pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mover_service_account: Option<String>,

    /// Further labels of the mover's pod.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub mover_pod_labels: BTreeMap<String, String>,

    /// Resources of the mover's pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ResourceRequirements>")]
    pub mover_resources: Option<ResourceRequirements>,
}

/// Receiving with rsync over TLS.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct RsyncTlsDestination {
    /// Where to write and how to keep an image.
    #[serde(flatten)]
    pub volume: DestinationVolumeOptions,

    /// How the mover's pod is made.
    #[serde(flatten)]
    pub mover: MoverConfig,

    /// Secret with the key that both sides share, under psk.txt; absent means: make it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_secret: Option<String>,

    /// Type of the service for incoming connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_type: Option<String>,

    /// Annotations of that service.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub service_annotations: BTreeMap<String, String>,

    /// Filesystem or Block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_mode: Option<String>,
}

/// Fetching with rclone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct RcloneDestination {
    /// Where to write and how to keep an image.
    #[serde(flatten)]
    pub volume: DestinationVolumeOptions,

    /// How the mover's pod is made.
    #[serde(flatten)]
    pub mover: MoverConfig,

    /// Section of rclone's configuration to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rclone_config_section: Option<String>,

    /// Place at the remote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rclone_dest_path: Option<String>,

    /// Secret with rclone's configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rclone_config: Option<String>,

    /// Certificates to trust the remote by.
    #[serde(rename = "customCA", skip_serializing_if = "Option::is_none")]
    pub custom_ca: Option<CustomCa>,
}

/// Restoring with restic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ResticDestination {
    /// Where to write and how to keep an image.
    #[serde(flatten)]
    pub volume: DestinationVolumeOptions,

    /// How the mover's pod is made.
    #[serde(flatten)]
    pub mover: MoverConfig,

    /// Secret with the repository's address and password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,

    /// Certificates to trust the store by.
    #[serde(rename = "customCA", skip_serializing_if = "Option::is_none")]
    pub custom_ca: Option<CustomCa>,

    /// Restore the backup this many before the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<i32>,

    /// Restore the newest backup before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub restore_as_of: Option<String>,

    /// Delete files that the backup does not have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_file_deletion: Option<bool>,

    /// Size of the cache's claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Quantity>")]
    pub cache_capacity: Option<Quantity>,

    /// Storage class of the cache's claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_storage_class_name: Option<String>,

    /// Access modes of the cache's claim.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub cache_access_modes: Vec<String>,

    /// Delete the cache's claim after each restore.
    #[serde(rename = "cleanupCachePVC", skip_serializing_if = "Option::is_none")]
    pub cleanup_cache_pvc: Option<bool>,
}

/// What was received.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ReplicationDestinationStatus {
    /// When the newest complete copy ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_sync_time: Option<Time>,

    /// When the copy under way began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_sync_start_time: Option<Time>,

    /// How long the newest complete copy took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_sync_duration: Option<Duration>,

    /// When the next copy is due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_sync_time: Option<Time>,

    /// The last manual trigger that was served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_manual_sync: Option<String>,

    /// How the mover's last run went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_mover_status: Option<MoverStatus>,

    /// The image of the newest complete copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::TypedLocalObjectReference>")]
    pub latest_image: Option<TypedLocalObjectReference>,

    /// Details of rsync over ssh.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rsync: Option<RsyncDestinationStatus>,

    /// Details of rsync over TLS.
    #[serde(rename = "rsyncTLS", skip_serializing_if = "Option::is_none")]
    pub rsync_tls: Option<RsyncTlsDestinationStatus>,

    /// What another controller reports.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub external: BTreeMap<String, String>,

    /// Observations about the copies.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    pub conditions: Vec<Condition>,
}

/// Details of a receiver with rsync over ssh.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct RsyncDestinationStatus {
    /// Secret with the keys for the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_keys: Option<String>,

    /// Address to connect to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,

    /// Port to connect to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
}

/// Details of a receiver with rsync over TLS.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct RsyncTlsDestinationStatus {
    /// Secret with the shared key, for the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_secret: Option<String>,

    /// Address to connect to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,

    /// Port to connect to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
}

spec_or_default!(ReplicationDestinationSpec);
