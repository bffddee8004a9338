//! DRPolicy.

/// Whether the policy can be used.
pub const TYPE_VALIDATED: &str = "Validated";
/// Whether networks are alike on both clusters.
pub const TYPE_NETWORK_ATTACHMENTS_VALIDATED: &str = "NetworkAttachmentsValidated";

/// Policy that is being deleted: what keeps it. Ours, not known to peers.
pub const TYPE_DELETED: &str = "Deleted";
/// Deleted: somebody uses it.
pub const REASON_IN_USE: &str = "InUse";

/// Validated: it can.
pub const REASON_SUCCEEDED: &str = "Succeeded";
/// Validated: the request does not hold together.
pub const REASON_VALIDATION_FAILED: &str = "ValidationFailed";
/// Validated: a DRCluster does not exist.
pub const REASON_DRCLUSTER_NOT_FOUND: &str = "DRClusterNotFound";
/// Validated: no DRCluster is usable.
pub const REASON_DRCLUSTERS_UNAVAILABLE: &str = "DRClustersUnavailable";
/// Validated: another policy says otherwise about the same clusters.
pub const REASON_CONFLICT_FOUND: &str = "DRPolicyConflictFound";
/// Validated: the configuration could not be read.
pub const REASON_CONFIG_MAP_GET_FAILED: &str = "ConfigMapGetFailed";
/// Validated: the operations namespace could not be made.
pub const REASON_NAMESPACE_CREATE_FAILED: &str = "NamespaceCreateFailed";
/// Validated: the clusters could not be looked at.
pub const REASON_DRCLUSTER_DETAILS_FAILED: &str = "drClusterDetailsFailed";
/// Validated: the finalizer could not be put on.
pub const REASON_FINALIZER_ADD_FAILED: &str = "FinalizerAddFailed";
/// Validated and NetworkAttachmentsValidated: a network is missing on a cluster.
pub const REASON_NADS_MISSING: &str = "NADsMissing";
/// NetworkAttachmentsValidated: they are.
pub const REASON_VALIDATED: &str = "Validated";
