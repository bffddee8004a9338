//! DRPlacementControl: the one object through which a user protects and moves an application.

#![allow(dead_code, reason = "the copies of specs by which validation rules are derived are never written")]

use super::{Blocker, DRAction, KubeObjectProtection, PvcGroup, ResourceStaticIps, VolSyncSpec};
use crate::schema;
use crate::wire::{Duration, is_false, or_default, spec_or_default, wire_enum};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which application to protect, under which policy, and where it should run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "ramendr.openshift.io",
    version = "v1alpha1",
    kind = "DRPlacementControl",
    plural = "drplacementcontrols",
    shortname = "drpc",
    namespaced,
    doc = "Protects an application and says on which cluster it runs.",
    status = "DRPlacementControlStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "preferredCluster", type_ = "string", json_path = ".spec.preferredCluster"),
    printcolumn(name = "failoverCluster", type_ = "string", json_path = ".spec.failoverCluster"),
    printcolumn(name = "desiredState", type_ = "string", json_path = ".spec.action"),
    printcolumn(name = "currentState", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "progression", type_ = "string", json_path = ".status.progression", priority = 2),
    printcolumn(name = "start time", type_ = "string", json_path = ".status.actionStartTime", priority = 2),
    printcolumn(name = "duration", type_ = "string", json_path = ".status.actionDuration", priority = 2),
    printcolumn(
        name = "peer ready",
        type_ = "string",
        json_path = ".status.conditions[1].status",
        priority = 2
    )
)]
#[serde(default, rename_all = "camelCase", remote = "Self")]
#[schemars(!default)]
pub struct DRPlacementControlSpec {
    /// The Placement or PlacementRule that deploys the application; same namespace as this object.
    #[schemars(with = "schema::ObjectReference")]
    #[x_kube(validation = ("self == oldSelf", "placementRef is immutable"))]
    pub placement_ref: ObjectReference,

    /// The DRPolicy to protect the application under.
    #[serde(rename = "drPolicyRef")]
    #[schemars(with = "schema::ObjectReference")]
    #[x_kube(validation = ("self == oldSelf", "drPolicyRef is immutable"))]
    pub dr_policy_ref: ObjectReference,

    /// Namespaces of an application that was not deployed by the placement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protected_namespaces: Option<Vec<String>>,

    /// The application's home cluster, for deployment and relocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preferred_cluster: Option<String>,

    /// The cluster to fail over to; needed when the action is Failover.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failover_cluster: Option<String>,

    /// Selects the application's claims.
    #[schemars(with = "schema::LabelSelector")]
    #[x_kube(validation = ("self == oldSelf", "pvcSelector is immutable"))]
    pub pvc_selector: LabelSelector,

    /// What to do; absent means: deploy on the preferred cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<DRAction>,

    /// Only try the failover: the application keeps running where it is.
    #[serde(default, skip_serializing_if = "is_false")]
    pub dry_run: bool,

    /// How to protect the application's Kubernetes objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kube_object_protection: Option<KubeObjectProtection>,

    /// Settings of mover pods; only moverConfig is read here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vol_sync_spec: Option<VolSyncSpec>,

    /// Keep the security ranges of the application's namespaces equal on both clusters.
    #[serde(rename = "retainNamespaceSCCAcrossPeers", default, skip_serializing_if = "is_false")]
    pub retain_namespace_scc_across_peers: bool,
}

/// Where the application is and what is being done with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct DRPlacementControlStatus {
    /// Where the application stands between deployed, failed over and relocated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<DRState>,

    /// The generation of the spec that the phase belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// When the current or last action began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_start_time: Option<Time>,

    /// How long the last action took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_duration: Option<Duration>,

    /// The step of the current action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progression: Option<Progression>,

    /// The cluster that the application was first deployed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preferred_decision: Option<PlacementDecisionRef>,

    /// Observations, in the order Available, PeerReady, Protected.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    pub conditions: Vec<Condition>,

    /// What the group on the cluster reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_conditions: Option<VrgConditions>,

    /// When this status was last written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,

    /// When the oldest of the newest copies of all claims was made: data before it is safe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_group_sync_time: Option<Time>,

    /// The longest time that the newest copy of a claim took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_group_sync_duration: Option<Duration>,

    /// Bytes carried by the newest copies of all claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_group_sync_bytes: Option<i64>,

    /// When the application's Kubernetes objects were last captured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_kube_object_protection_time: Option<Time>,

    /// The epoch of the present roles; it never falls. Ours, not known to peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<i64>,

    /// What the last failover gave up. Ours, not known to peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failover: Option<FailoverLoss>,

    /// The action that was refused as a drill and is still asked for; it counts only when it is asked for anew. Ours, not known to peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_drill: Option<String>,

    /// What is waited for, and since when. Ours, not known to peers.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub blockers: Vec<Blocker>,
}

/// What a failover gave up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct FailoverLoss {
    /// When the failed cluster lost its role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,

    /// Everything written before this is at the new cluster; absent where no copy was ever reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_until: Option<Time>,

    /// The longest span of writes that can be lost, in seconds; absent where nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most_seconds: Option<i64>,
}

wire_enum! {
    /// Where an application stands between deployed, failed over and relocated.
    open DRState {
        /// The hub lost its memory and cannot tell what is safe: a user must choose an action.
        WaitForUser = "WaitForUser",
        /// An action was accepted and is being checked.
        Initiating = "Initiating",
        /// Being deployed for the first time.
        Deploying = "Deploying",
        /// Deployed.
        Deployed = "Deployed",
        /// Moving to the failover cluster.
        FailingOver = "FailingOver",
        /// Runs on the failover cluster.
        FailedOver = "FailedOver",
        /// Moving to the preferred cluster.
        Relocating = "Relocating",
        /// Runs on the preferred cluster again.
        Relocated = "Relocated",
        /// Protection is being removed.
        Deleting = "Deleting",
    }
}

wire_enum! {
    /// The step of an action.
    open Progression {
        /// Nothing left to do.
        Completed = "Completed",
        /// The group is being sent to the cluster.
        CreatingMW = "CreatingMW",
        /// The placement is being pointed at the cluster.
        UpdatingPlRule = "UpdatingPlRule",
        /// Waiting until the storage is ready for the failover.
        WaitForStorageMaintenanceActivation = "WaitForStorageMaintenanceActivation",
        /// Waiting until the failed cluster is fenced off.
        WaitForFencing = "WaitForFencing",
        /// Checking what a failover needs.
        CheckingFailoverPrerequisites = "CheckingFailoverPrerequisites",
        /// The group on the failover cluster is being made primary.
        FailingOverToCluster = "FailingOverToCluster",
        /// Waiting until volumes and claims are restored.
        WaitingForResourceRestore = "WaitingForResourceRestore",
        /// Waiting until the restored data is ready for use.
        WaitForReadiness = "WaitForReadiness",
        /// The placement points at the cluster.
        UpdatedPlacement = "UpdatedPlacement",
        /// Receivers of copies are being set up.
        EnsuringVolSyncSetup = "EnsuringVolSyncSetup",
        /// Receivers of copies are being set up on the peer.
        SettingUpVolSyncDest = "SettingUpVolSyncDest",
        /// The last copy before a move is being prepared.
        PreparingFinalSync = "PreparingFinalSync",
        /// The application is being taken off its cluster.
        ClearingPlacement = "ClearingPlacement",
        /// The last copy before a move is running.
        RunningFinalSync = "RunningFinalSync",
        /// The last copy before a move is done.
        FinalSyncComplete = "FinalSyncComplete",
        /// Waiting until all volumes are secondary.
        EnsuringVolumesAreSecondary = "EnsuringVolumesAreSecondary",
        /// A user must remove the application from the old cluster.
        WaitOnUserToCleanUp = "WaitOnUserToCleanUp",
        /// Waiting until the old cluster may be cleaned up.
        CleanupReadiness = "CleanupReadiness",
        /// What is left on the old cluster is being removed.
        CleaningUp = "Cleaning Up",
        /// Waiting until all applications of a global group ask for the same action.
        WaitOnGlobalAction = "WaitOnGlobalAction",
        /// A failover is being tried without moving the application.
        TestingFailover = "TestingFailover",
        /// Protection is being removed.
        Deleting = "Deleting",
        /// Protection is removed.
        Deleted = "Deleted",
        /// Waiting for a user's decision.
        Paused = "Paused",
    }
}

/// A cluster chosen for an application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct PlacementDecisionRef {
    /// Name of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_name: Option<String>,

    /// Namespace of the cluster on the hub.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_namespace: Option<String>,
}

/// What the group on a cluster reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct VrgConditions {
    /// Which group was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_meta: Option<VrgResourceMeta>,

    /// The group's observations.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    pub conditions: Vec<Condition>,
}

/// Which group was read, and what it protects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct VrgResourceMeta {
    /// Kind of the object read.
    pub kind: String,

    /// Its name.
    pub name: String,

    /// Its namespace.
    pub namespace: String,

    /// Its generation.
    pub generation: i64,

    /// Its resource version on its own cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,

    /// Names of the claims it protects.
    #[serde(
        rename = "protectedpvcs",
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub protected_pvcs: Vec<String>,

    /// Its claims by consistency group.
    #[serde(
        rename = "pvcgroups",
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub pvc_groups: Vec<PvcGroup>,

    /// Virtual machines with static addresses.
    #[serde(
        rename = "protectedStaticIPVMs",
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub protected_static_ip_vms: Vec<ResourceStaticIps>,
}

spec_or_default!(DRPlacementControlSpec);
