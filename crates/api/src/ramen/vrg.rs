//! VolumeReplicationGroup: one application's claims on one cluster, protected together.

use super::{
    DRAction, PeerClass, ProtectedPvc, PvcGroup, StaticIpDiscovery, StaticIpTranslation,
    VolSyncDestinationInfo, VolSyncSpec,
};
use crate::schema;
use crate::wire::{Duration, is_false, or_default, spec_or_default, wire_enum};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which claims to protect, how, and in which role.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "ramendr.openshift.io",
    version = "v1alpha1",
    kind = "VolumeReplicationGroup",
    plural = "volumereplicationgroups",
    shortname = "vrg",
    namespaced,
    doc = "The claims of one application on one cluster, protected together and in one role.",
    status = "VolumeReplicationGroupStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "desiredState", type_ = "string", json_path = ".spec.replicationState"),
    printcolumn(name = "currentState", type_ = "string", json_path = ".status.state")
)]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct VolumeReplicationGroupSpec {
    /// Selects the claims of the group; a recipe's volumes go before it.
    #[schemars(with = "schema::LabelSelector")]
    pub pvc_selector: LabelSelector,

    /// Role of the group: primary where the application runs, secondary where its data is kept.
    pub replication_state: ReplicationState,

    /// Object store profiles to keep records in; NoS3 for none.
    #[serde(rename = "s3Profiles", deserialize_with = "or_default")]
    pub s3_profiles: Vec<String>,

    /// Copy data at intervals.
    #[serde(rename = "async", skip_serializing_if = "Option::is_none")]
    pub async_: Option<AsyncMode>,

    /// Use storage that both clusters share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncMode>,

    /// What to copy with a mover.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vol_sync: Option<VolSyncSpec>,

    /// Stop scheduled copies so that a last one can run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub prepare_for_final_sync: bool,

    /// Run the last copy before the application moves.
    #[serde(default, skip_serializing_if = "is_false")]
    pub run_final_sync: bool,

    /// The action that this role follows from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<DRAction>,

    /// Only try a failover: keep snapshots, write no records.
    #[serde(default, skip_serializing_if = "is_false")]
    pub dry_run: bool,

    /// How to protect the application's Kubernetes objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kube_object_protection: Option<KubeObjectProtection>,

    /// Namespaces whose claims belong to the group; only from the operations namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protected_namespaces: Option<Vec<String>>,

    /// Static addresses to rewrite on restore.
    #[serde(rename = "staticIPTranslationSpec", skip_serializing_if = "Option::is_none")]
    pub static_ip_translation_spec: Option<StaticIpTranslation>,
}

wire_enum! {
    /// Role asked of a group.
    open ReplicationState {
        /// The application runs here; data flows out.
        Primary = "primary",
        /// Data flows in.
        Secondary = "secondary",
    }
}

/// Copying data at intervals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct AsyncMode {
    /// Which replication classes may be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LabelSelector>")]
    pub replication_class_selector: Option<LabelSelector>,

    /// Which snapshot classes may be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LabelSelector>")]
    pub volume_snapshot_class_selector: Option<LabelSelector>,

    /// Which group snapshot classes may be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LabelSelector>")]
    pub volume_group_snapshot_class_selector: Option<LabelSelector>,

    /// How often: a number and s, m, h or d. Upstream has no seconds.
    #[schemars(regex(pattern = r"^\d+[smhd]$"))]
    pub scheduling_interval: String,

    /// Storage classes that the clusters of the policy have in common.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub peer_classes: Vec<PeerClass>,
}

/// Using storage that both clusters share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct SyncMode {
    /// Storage classes that the clusters of the policy have in common.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub peer_classes: Vec<PeerClass>,
}

/// How to protect an application's Kubernetes objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct KubeObjectProtection {
    /// How often to capture them; five minutes where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "duration"))]
    pub capture_interval: Option<Duration>,

    /// The recipe that says what to capture, in which order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipe_ref: Option<RecipeRef>,

    /// Values for the recipe's parameters.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub recipe_parameters: BTreeMap<String, Vec<String>>,

    /// Selects the objects to capture where there is no recipe.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LabelSelector>")]
    pub kube_object_selector: Option<LabelSelector>,
}

/// Names a recipe.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct RecipeRef {
    /// Namespace of the recipe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,

    /// Name of the recipe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// How far the group is in its role, and how safe its data is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct VolumeReplicationGroupStatus {
    /// The role that the group has reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<VrgState>,

    /// The claims of the group.
    #[serde(
        rename = "protectedPVCs",
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub protected_pvcs: Vec<ProtectedPvc>,

    /// The claims by consistency group.
    #[serde(
        rename = "pvcgroups",
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub pvc_groups: Vec<PvcGroup>,

    /// Receivers that are ready, for the hub to tell the sender.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub rd_info: Vec<VolSyncDestinationInfo>,

    /// Observations about the group.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    pub conditions: Vec<Condition>,

    /// The generation of the spec that this status belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// When this status last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,

    /// How far the application's Kubernetes objects are protected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kube_object_protection: Option<KubeObjectProtectionStatus>,

    /// Scheduled copies have stopped; the last one can run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub prepare_for_final_sync_complete: bool,

    /// The last copy is complete.
    #[serde(default, skip_serializing_if = "is_false")]
    pub final_sync_complete: bool,

    /// When the oldest of the newest copies of all claims was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_group_sync_time: Option<Time>,

    /// The longest time that the newest copy of a claim took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_group_sync_duration: Option<Duration>,

    /// Bytes carried by the newest copies of all claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_group_sync_bytes: Option<i64>,

    /// Static addresses found on the group's resources.
    #[serde(rename = "staticIPDiscovery", skip_serializing_if = "Option::is_none")]
    pub static_ip_discovery: Option<StaticIpDiscovery>,

    /// The highest epoch that was seen here; it never falls. Ours, not known to peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<i64>,

    /// The epoch at which the group became primary here; absent while it is not. Ours, not known to peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary_epoch: Option<i64>,

    /// What is waited for, and since when. Ours, not known to peers.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub blockers: Vec<Blocker>,
}

/// Something that a group waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct Blocker {
    /// What, in one word.
    pub reason: String,

    /// What, as a sentence.
    pub message: String,

    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,

    /// The claim that waits; absent where it is the whole group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pvc: Option<String>,
}

wire_enum! {
    /// The role that a group has reached.
    open VrgState {
        /// Volumes are writable here and their data is ready.
        Primary = "Primary",
        /// Volumes only receive.
        Secondary = "Secondary",
        /// Between roles.
        Unknown = "Unknown",
    }
}

/// How far an application's Kubernetes objects are protected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct KubeObjectProtectionStatus {
    /// The newest complete capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture_to_recover_from: Option<CaptureToRecoverFrom>,
}

/// One capture of an application's Kubernetes objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct CaptureToRecoverFrom {
    /// Its slot number.
    pub number: i64,

    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,

    /// When it was complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_time: Option<Time>,

    /// The group's generation when it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_generation: Option<i64>,
}

spec_or_default!(VolumeReplicationGroupSpec);
