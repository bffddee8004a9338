//! VolumeReplicationGroup, and each of its claims.

/// Whether volumes are in the group's role and their data can be used.
pub const TYPE_DATA_READY: &str = "DataReady";
/// Whether all data is at the peer.
pub const TYPE_DATA_PROTECTED: &str = "DataProtected";
/// Whether volumes and claims are restored.
pub const TYPE_CLUSTER_DATA_READY: &str = "ClusterDataReady";
/// Whether the application's Kubernetes objects are restored.
pub const TYPE_KUBE_OBJECTS_READY: &str = "KubeObjectsReady";
/// Whether records of volumes, claims, the group and Kubernetes objects are in the stores.
pub const TYPE_CLUSTER_DATA_PROTECTED: &str = "ClusterDataProtected";
/// Whether nothing here contradicts the records of another cluster.
pub const TYPE_NO_CLUSTER_DATA_CONFLICT: &str = "NoClusterDataConflict";
/// Whether what is left of virtual machines is being removed without a user.
pub const TYPE_AUTO_CLEANUP: &str = "AutoCleanup";
/// Whether the recipe's hooks went well.
pub const TYPE_HOOKS_READY: &str = "HooksReady";
/// Whether all groups of a global relation ask for the same role.
pub const TYPE_GLOBAL_STATE: &str = "GlobalState";
/// Whether a global relation may become secondary.
pub const TYPE_GLOBAL_SECONDARY: &str = "GlobalSecondary";
/// Whether the storage has told the volumes' ids at the peer.
pub const TYPE_DESTINATION_INFO_AVAILABLE: &str = "DestinationInfoAvailable";
/// Whether the pods that use a primary's claims are ready. Ours, not known to peers.
pub const TYPE_PODS_READY: &str = "PodsReady";
/// The four conditions of old in one word: whether the group does all that it is asked to.
pub const TYPE_AVAILABLE: &str = "Available";

/// On a claim: whether its sender is set up.
pub const TYPE_REPLICATION_SOURCE_SETUP: &str = "ReplicationSourceSetup";
/// On a claim: whether its last copy is running.
pub const TYPE_FINAL_SYNC_IN_PROGRESS: &str = "FinalSyncInProgress";
/// On a claim: whether its receiver is set up.
pub const TYPE_REPLICATION_DESTINATION_SETUP: &str = "ReplicationDestinationSetup";
/// On a claim: whether its data is restored from the newest image.
pub const TYPE_PVS_RESTORED: &str = "PVsRestored";

/// The group was deleted without the order to end protection, and came back: what its volumes and records hold waits for the user's choice. Ours,
/// not known to peers.
pub const REASON_ORPHANED: &str = "Orphaned";
/// PodsReady: all pods that use the claims are ready.
pub const REASON_PODS_READY: &str = "PodsReady";
/// PodsReady: a pod that uses a claim is not ready.
pub const REASON_PODS_NOT_READY: &str = "PodsNotReady";
/// PodsReady: no pod uses any of the claims.
pub const REASON_NO_PODS: &str = "NoPods";
/// There is nothing of this kind in the group.
pub const REASON_UNUSED: &str = "Unused";
/// Not looked at yet.
pub const REASON_INITIALIZING: &str = "Initializing";
/// DataReady: a secondary is receiving. DataProtected: a primary is sending, so never all is there.
pub const REASON_REPLICATING: &str = "Replicating";
/// DataReady: a secondary has all.
pub const REASON_REPLICATED: &str = "Replicated";
/// DataReady: a primary can be used. DestinationInfoAvailable: the ids are known.
pub const REASON_READY: &str = "Ready";
/// DataProtected and ClusterDataProtected: all is at the peer.
pub const REASON_DATA_PROTECTED: &str = "DataProtected";
/// Under way.
pub const REASON_PROGRESSING: &str = "Progressing";
/// ClusterDataReady and PVsRestored: restored.
pub const REASON_RESTORED: &str = "Restored";
/// KubeObjectsReady: restored.
pub const REASON_KUBE_OBJECTS_RESTORED: &str = "KubeObjectsRestored";
/// Something failed.
pub const REASON_ERROR: &str = "Error";
/// Something failed in an unknown way.
pub const REASON_UNKNOWN_ERROR: &str = "UnknownError";
/// DataReady: the claim's storage class is not common to both clusters.
pub const REASON_PEER_CLASS_NOT_FOUND: &str = "PeerClassNotFound";
/// DataReady: the claim's storage class has no identity.
pub const REASON_STORAGE_ID_NOT_FOUND: &str = "StorageIDNotFound";
/// ClusterDataProtected: records are being written.
pub const REASON_UPLOADING: &str = "Uploading";
/// ClusterDataProtected: records are written.
pub const REASON_UPLOADED: &str = "Uploaded";
/// ClusterDataProtected: records could not be written.
pub const REASON_UPLOAD_ERROR: &str = "UploadError";
/// ClusterDataProtected: the claim could not be marked.
pub const REASON_ANNOTATION_FAILED: &str = "AnnotationFailed";
/// ClusterDataProtected: the group itself could not be recorded.
pub const REASON_VRG_CAPTURE_ERROR: &str = "VolumeReplicationGroupObjectCaptureError";
/// ClusterDataProtected: no capture of Kubernetes objects has begun.
pub const REASON_KUBE_OBJECTS_CAPTURE_NOT_STARTED: &str = "KubeObjectsCaptureNotStarted";
/// ClusterDataProtected: a capture of Kubernetes objects failed.
pub const REASON_KUBE_OBJECTS_CAPTURE_ERROR: &str = "KubeObjectsCaptureError";
/// ClusterDataProtected: captures could not be listed.
pub const REASON_KUBE_OBJECTS_CAPTURE_REQUESTS_QUERY_ERROR: &str = "KubeObjectsCaptureRequestsQueryError";
/// ClusterDataProtected: captures could not be deleted.
pub const REASON_KUBE_OBJECTS_CAPTURE_REQUESTS_DELETE_ERROR: &str = "KubeObjectsCaptureRequestsDeleteError";
/// ClusterDataProtected: an old capture could not be deleted from the store.
pub const REASON_KUBE_OBJECTS_REPLICA_DELETE_ERROR: &str = "KubeObjectsReplicaDeleteError";
/// ClusterDataProtected: the recipe's workflow failed.
pub const REASON_KUBE_OBJECTS_WORKFLOW_ERROR: &str = "KubeObjectsWorkflowError";
/// NoClusterDataConflict: nothing contradicts.
pub const REASON_NO_CONFLICT_DETECTED: &str = "NoConflictDetected";
/// NoClusterDataConflict: a primary here differs from the records.
pub const REASON_CLUSTER_DATA_CONFLICT_PRIMARY: &str = "ClusterDataConflictPrimary";
/// NoClusterDataConflict: a secondary here differs from the records.
pub const REASON_CLUSTER_DATA_CONFLICT_SECONDARY: &str = "ClusterDataConflictSecondary";
/// AutoCleanup: it cannot be done without a user.
pub const REASON_NOT_FEASIBLE: &str = "NotFeasible";
/// AutoCleanup: done.
pub const REASON_COMPLETED: &str = "Completed";
/// HooksReady: they went well.
pub const REASON_HOOK_EXECUTED: &str = "HookExecuted";
/// HooksReady: one failed.
pub const REASON_HOOK_FAILED: &str = "HookFailed";
/// GlobalState: all ask for the same.
pub const REASON_CONSENSUS_REACHED: &str = "ConsensusReached";
/// GlobalState: they do not.
pub const REASON_CONSENSUS_NOT_REACHED: &str = "ConsensusNotReached";
/// GlobalSecondary: no pod uses the claims.
pub const REASON_PVCS_NOT_IN_USE: &str = "PVCsNotInUse";
/// GlobalSecondary: a pod uses a claim.
pub const REASON_PVCS_IN_USE: &str = "PVCsInUse";
/// ReplicationSourceSetup: the sender exists.
pub const REASON_SOURCE_INITIALIZED: &str = "SourceInitialized";
/// ReplicationDestinationSetup: the receiver exists.
pub const REASON_DESTINATION_INITIALIZED: &str = "DestinationInitialized";
/// FinalSyncInProgress: the last copy is running.
pub const REASON_SYNCING: &str = "Syncing";
/// FinalSyncInProgress: the last copy is complete.
pub const REASON_SYNCED: &str = "Synced";

/// Reasons of Events.
pub mod events {
    /// The request does not hold together.
    pub const FAILED_VALIDATION: &str = "FailedValidation";
    /// Claims could not be listed.
    pub const PVC_LIST_FAILED: &str = "PVCListFailed";
    /// A VolumeReplication could not be made.
    pub const VR_CREATE_FAILED: &str = "VRCreateFailed";
    /// A VolumeReplication could not be changed.
    pub const VR_UPDATE_FAILED: &str = "VRUpdateFailed";
    /// A claim could not be protected.
    pub const PROTECT_PVC_FAILED: &str = "ProtectPVCFailed";
    /// A volume's record could not be written.
    pub const UPLOAD_FAILED: &str = "UploadFailed";
    /// The group's own record could not be written.
    pub const VRG_UPLOAD_FAILED: &str = "VrgUploadFailed";
    /// The group is primary.
    pub const PRIMARY_SUCCESS: &str = "PrimaryVRGProcessSuccess";
    /// The group is secondary.
    pub const SECONDARY_SUCCESS: &str = "SecondaryVRGProcessSuccess";
    /// The group is gone.
    pub const DELETE_SUCCESS: &str = "VRGDeleteSuccess";
}
