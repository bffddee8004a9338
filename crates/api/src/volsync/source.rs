//! ReplicationSource: the sending side.

use super::{
    CustomCa, External, MoverConfig, MoverStatus, SourceVolumeOptions, Syncthing, SyncthingStatus, Trigger,
};
use crate::schema;
use crate::wire::{Duration, is_false, or_default, spec_or_default};
use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which claim to copy, when, and with which mover.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "volsync.backube",
    version = "v1alpha1",
    kind = "ReplicationSource",
    plural = "replicationsources",
    namespaced,
    doc = "Copies a claim to another place.",
    status = "ReplicationSourceStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Source", type_ = "string", json_path = ".spec.sourcePVC"),
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
pub struct ReplicationSourceSpec {
    /// The claim.
    #[serde(rename = "sourcePVC", skip_serializing_if = "Option::is_none")]
    pub source_pvc: Option<String>,

    /// When to copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Trigger>,

    /// Copy with rsync over ssh.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rsync: Option<RsyncSource>,

    /// Copy with rsync over TLS.
    #[serde(rename = "rsyncTLS", skip_serializing_if = "Option::is_none")]
    pub rsync_tls: Option<RsyncTlsSource>,

    /// Copy with rclone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rclone: Option<RcloneSource>,

    /// Back up with restic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restic: Option<ResticSource>,

    /// Keep in step with peers by syncthing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syncthing: Option<Syncthing>,

    /// Leave the copying to another controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<External>,

    /// Do not copy for now.
    #[serde(default, skip_serializing_if = "is_false")]
    pub paused: bool,
}

/// Copying with rsync over ssh.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct RsyncSource {
    /// How a stable image of the claim is made.
    #[serde(flatten)]
    pub volume: SourceVolumeOptions,

    /// Secret with the ssh keys; absent means: make them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_keys: Option<String>,

    /// Type of the service for incoming connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_type: Option<String>,

    /// Address of the receiver; absent means: wait to be connected to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,

    /// Port of the receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 65535))]
    pub port: Option<i32>,

    /// Directory at the receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,

    /// User at the receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_user: Option<String>,

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

/// Copying with rsync over TLS.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct RsyncTlsSource {
    /// How a stable image of the claim is made.
    #[serde(flatten)]
    pub volume: SourceVolumeOptions,

    /// How the mover's pod is made.
    #[serde(flatten)]
    pub mover: MoverConfig,

    /// Secret with the key that both sides share, under psk.txt; absent means: make it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_secret: Option<String>,

    /// Address of the receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,

    /// Port of the receiver; 8000 where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 65535))]
    pub port: Option<i32>,
}

/// Copying with rclone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct RcloneSource {
    /// How a stable image of the claim is made.
    #[serde(flatten)]
    pub volume: SourceVolumeOptions,

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

/// Backing up with restic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ResticSource {
    /// How a stable image of the claim is made.
    #[serde(flatten)]
    pub volume: SourceVolumeOptions,

    /// How the mover's pod is made.
    #[serde(flatten)]
    pub mover: MoverConfig,

    /// Secret with the repository's address and password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,

    /// Certificates to trust the store by.
    #[serde(rename = "customCA", skip_serializing_if = "Option::is_none")]
    pub custom_ca: Option<CustomCa>,

    /// Days between two prunings of the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prune_interval_days: Option<i32>,

    /// Remove stale locks once for each new value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unlock: Option<String>,

    /// Which backups to keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retain: Option<ResticRetain>,

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
}

/// Which backups to keep; one where nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ResticRetain {
    /// The last so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,

    /// One for each of the last so many hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hourly: Option<i32>,

    /// One for each of the last so many days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daily: Option<i32>,

    /// One for each of the last so many weeks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weekly: Option<i32>,

    /// One for each of the last so many months.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monthly: Option<i32>,

    /// One for each of the last so many years.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub yearly: Option<i32>,

    /// All that are younger than this, such as 3w1d.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
}

/// How far the copies are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ReplicationSourceStatus {
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

    /// Details of rsync over ssh.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rsync: Option<RsyncSourceStatus>,

    /// Details of rsync over TLS.
    #[serde(rename = "rsyncTLS", skip_serializing_if = "Option::is_none")]
    pub rsync_tls: Option<RsyncTlsSourceStatus>,

    /// Details of restic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restic: Option<ResticSourceStatus>,

    /// Details of syncthing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syncthing: Option<SyncthingStatus>,

    /// What another controller reports.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub external: BTreeMap<String, String>,

    /// Observations about the copies.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    pub conditions: Vec<Condition>,
}

/// Details of a sender with rsync over ssh.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct RsyncSourceStatus {
    /// Secret with the keys for the receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_keys: Option<String>,

    /// Address to connect to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,

    /// Port to connect to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
}

/// Details of a sender with rsync over TLS.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct RsyncTlsSourceStatus {
    /// Secret with the shared key, for the receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_secret: Option<String>,
}

/// Details of a restic repository.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ResticSourceStatus {
    /// When it was last pruned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_pruned: Option<Time>,

    /// The last unlock that was served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_unlocked: Option<String>,
}

spec_or_default!(ReplicationSourceSpec);
