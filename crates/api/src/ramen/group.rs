//! ReplicationGroupSource and -Destination: copying a consistency group with movers.

use super::{VolSyncDestination, VolSyncSource};
use crate::schema;
use crate::wire::{Duration, is_false, or_default, spec_or_default};
use k8s_openapi::api::core::v1::{ObjectReference, TypedLocalObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which claims to capture together and send.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "ramendr.openshift.io",
    version = "v1alpha1",
    kind = "ReplicationGroupSource",
    plural = "replicationgroupsources",
    shortname = "rgs",
    namespaced,
    doc = "Sends a consistency group: one group snapshot, one copy for each claim.",
    status = "ReplicationGroupSourceStatus",
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
    ),
    printcolumn(name = "Source", type_ = "string", json_path = ".spec.volumeGroupSnapshotSource"),
    printcolumn(
        name = "Last sync start",
        type_ = "string",
        format = "date-time",
        json_path = ".status.lastSyncStartTime"
    )
)]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct ReplicationGroupSourceSpec {
    /// When to copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<GroupTrigger>,

    /// Class of the group snapshot.
    pub volume_group_snapshot_class_name: String,

    /// Selects the claims of the group.
    #[schemars(with = "schema::LabelSelector")]
    pub volume_group_snapshot_source: LabelSelector,

    /// One sender for each claim.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub rs_specs: Vec<VolSyncSource>,
}

/// When to copy a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct GroupTrigger {
    /// At these times: a cron line.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = schema::CRON))]
    pub schedule: Option<String>,

    /// Once for each new value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manual: Option<String>,
}

/// How far the copies are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ReplicationGroupSourceStatus {
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

    /// Observations about the copies.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    pub conditions: Vec<Condition>,

    /// The senders made for the claims.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::ObjectReference>")]
    pub replication_sources: Vec<ObjectReference>,
}

/// Which claims to receive together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "ramendr.openshift.io",
    version = "v1alpha1",
    kind = "ReplicationGroupDestination",
    plural = "replicationgroupdestinations",
    shortname = "rgd",
    namespaced,
    doc = "Receives a consistency group: images of all claims are published at once.",
    status = "ReplicationGroupDestinationStatus",
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
        name = "Last sync start",
        type_ = "string",
        format = "date-time",
        json_path = ".status.lastSyncStartTime"
    )
)]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct ReplicationGroupDestinationSpec {
    /// Which snapshot classes may be used for images.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::LabelSelector>")]
    pub volume_snapshot_class_selector: Option<LabelSelector>,

    /// One receiver for each claim.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub rd_specs: Vec<VolSyncDestination>,

    /// Receive nothing for now.
    #[serde(default, skip_serializing_if = "is_false")]
    pub paused: bool,
}

/// What was received.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ReplicationGroupDestinationStatus {
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

    /// Observations about the copies.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    pub conditions: Vec<Condition>,

    /// The newest image of each claim, by claim name; all of one point in time.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, schema::TypedLocalObjectReference>")]
    pub latest_image: BTreeMap<String, TypedLocalObjectReference>,

    /// The receivers made for the claims.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::ObjectReference>")]
    pub replication_destinations: Vec<ObjectReference>,
}

spec_or_default!(ReplicationGroupSourceSpec);
spec_or_default!(ReplicationGroupDestinationSpec);
