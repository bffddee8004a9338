//! DRPlacementControl.

/// Whether the application runs where it should; the reason is the phase, or one of these.
pub const TYPE_AVAILABLE: &str = "Available";
/// Whether the peer cluster is ready for the next action.
pub const TYPE_PEER_READY: &str = "PeerReady";
/// Whether the application's data is safe at the peer.
pub const TYPE_PROTECTED: &str = "Protected";
/// Whether all applications of a global group ask for the same action; only on such groups.
pub const TYPE_GLOBAL_ACTION: &str = "GlobalAction";
/// Whether the policy's network mapping could be read; only where there is one.
pub const TYPE_NETWORK_MAPPING_LOADED: &str = "NetworkMappingLoaded";

/// Available: the request does not hold together.
pub const REASON_VALIDATION_FAILED: &str = "ValidationFailed";
/// Available: waiting for something outside.
pub const REASON_WAITING: &str = "Waiting";
/// Available and Protected: something failed.
pub const REASON_ERROR: &str = "Error";
/// Available and PeerReady: a user must decide.
pub const REASON_PAUSED: &str = "Paused";
/// Available and PeerReady: done.
pub const REASON_SUCCESS: &str = "Success";
/// PeerReady: the object is new.
pub const REASON_INITIATING: &str = "Initiating";
/// PeerReady: the action has not reached the peer.
pub const REASON_NOT_STARTED: &str = "NotStarted";
/// PeerReady and Protected: under way.
pub const REASON_PROGRESSING: &str = "Progressing";
/// PeerReady: the peer is being cleaned up; known to peers, not written by them.
pub const REASON_CLEANING: &str = "Cleaning";
/// Protected: nothing is known yet.
pub const REASON_UNKNOWN: &str = "Unknown";
/// Protected: data is safe.
pub const REASON_PROTECTED: &str = "Protected";
/// Protected: the group has found no claim. Ours, not known to peers.
pub const REASON_NO_CLAIMS: &str = "NoClaims";
/// GlobalAction: all ask for the same.
pub const REASON_CONSENSUS_REACHED: &str = "ConsensusReached";
/// GlobalAction: they do not.
pub const REASON_CONSENSUS_NOT_REACHED: &str = "ConsensusNotReached";
/// NetworkMappingLoaded: it was read.
pub const REASON_NETWORK_MAPPING_LOADED: &str = "NetworkMappingLoaded";
/// NetworkMappingLoaded: it was not; actions go on without it.
pub const REASON_NETWORK_MAPPING_LOAD_FAILED: &str = "NetworkMappingLoadFailed";

/// Reason of a PlacementDecision that is kept for the failed cluster until it has given up its role.
pub const DECISION_RETAINED_FOR_FAILOVER: &str = "RetainedForFailover";

/// Reasons of Events.
pub mod events {
    /// The application is being deployed.
    pub const DEPLOYING: &str = "DRPCDeploying";
    /// It could not be deployed.
    pub const DEPLOY_FAILED: &str = "DRPCDeployFailed";
    /// It is deployed.
    pub const DEPLOY_SUCCESS: &str = "DRPCDeploySuccess";
    /// It is failing over.
    pub const FAILING_OVER: &str = "DRPCFailingOver";
    /// It has failed over.
    pub const FAILOVER_SUCCESS: &str = "DRPCFailoverSuccess";
    /// It is being relocated.
    pub const RELOCATING: &str = "DRPCRelocating";
    /// It is relocated.
    pub const RELOCATION_SUCCESS: &str = "DRPCRelocationSuccess";
    /// It could not be moved.
    pub const CLUSTER_SWITCH_FAILED: &str = "DRPCClusterSwitchFailed";
}
