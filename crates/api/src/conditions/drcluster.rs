//! DRCluster, DRClusterConfig and MaintenanceMode.

/// DRCluster: whether the cluster can be used.
pub const TYPE_VALIDATED: &str = "Validated";
/// DRCluster: whether the cluster is cut off from storage.
pub const TYPE_FENCED: &str = "Fenced";
/// DRCluster: whether nothing of a fence is left.
pub const TYPE_CLEAN: &str = "Clean";
/// DRCluster: whether the configured addresses are those of the nodes.
pub const TYPE_CIDRS_VALIDATED: &str = "CIDRsValidated";
/// DRCluster that is being deleted: what keeps it. Ours, not known to peers.
pub const TYPE_DELETED: &str = "Deleted";
/// DRClusterConfig: whether the survey of the cluster is done.
pub const TYPE_PROCESSED: &str = "Processed";
/// DRClusterConfig: whether the cluster reaches its object store.
pub const TYPE_REACHABLE: &str = "Reachable";
/// MaintenanceMode: whether the storage is ready for a failover.
pub const TYPE_FAILOVER_ACTIVATED: &str = "FailoverActivated";

/// Deleted: somebody uses it.
pub const REASON_IN_USE: &str = "InUse";
/// Deleted: what was put on clusters for it is being taken back.
pub const REASON_TAKING_BACK: &str = "TakingBack";
/// Not looked at yet.
pub const REASON_INITIALIZING: &str = "Initializing";
/// Validated, CIDRsValidated and Processed: all is well.
pub const REASON_SUCCEEDED: &str = "Succeeded";
/// Processed: it is not.
pub const REASON_FAILED: &str = "Failed";
/// Validated: the request does not hold together.
pub const REASON_VALIDATION_FAILED: &str = "ValidationFailed";
/// Validated: the configuration could not be read.
pub const REASON_CONFIG_MAP_GET_FAILED: &str = "ConfigMapGetFailed";
/// Validated: the finalizer could not be put on.
pub const REASON_FINALIZER_ADD_FAILED: &str = "FinalizerAddFailed";
/// Validated: what belongs on the cluster could not be sent.
pub const REASON_DEPLOY_FAILED: &str = "DrClustersDeployFailed";
/// Validated: whether it arrived could not be read.
pub const REASON_DEPLOY_STATUS_CHECK_FAILED: &str = "DrClustersDeployStatusCheckFailed";
/// Validated: the object store cannot be reached.
pub const REASON_S3_CONNECTION_FAILED: &str = "s3ConnectionFailed";
/// Validated: the bucket does not exist.
pub const REASON_S3_BUCKET_NOT_FOUND: &str = "s3BucketNotFound";
/// Validated: the bucket cannot be listed.
pub const REASON_S3_LIST_FAILED: &str = "s3ListFailed";
/// Validated: the survey of the cluster is under way.
pub const REASON_CONFIG_IN_PROGRESS: &str = "DRClusterConfigInProgress";
/// CIDRsValidated: an address range cannot be read.
pub const REASON_INVALID_CIDRS_FORMAT: &str = "InvalidCIDRsFormat";
/// CIDRsValidated: nodes have addresses that are not configured.
pub const REASON_DETECTED_CIDRS_UNCONFIGURED: &str = "DetectedCIDRsUnconfigured";
/// CIDRsValidated: addresses are configured that no node has.
pub const REASON_UNDETECTED_CIDRS_FOUND: &str = "UndetectedCIDRsFound";
/// Fenced: the fence is going up.
pub const REASON_FENCING: &str = "Fencing";
/// Fenced: the fence is up.
pub const REASON_FENCED: &str = "Fenced";
/// Fenced: the fence is coming down.
pub const REASON_UNFENCING: &str = "Unfencing";
/// Fenced: the fence is down.
pub const REASON_UNFENCED: &str = "Unfenced";
/// Clean: what is left of the fence is being removed.
pub const REASON_CLEANING: &str = "Cleaning";
/// Clean: nothing is left.
pub const REASON_CLEAN: &str = "Clean";
/// Fenced: the fence could not be put up.
pub const REASON_FENCE_ERROR: &str = "FenceError";
/// Fenced: the fence could not be taken down.
pub const REASON_UNFENCE_ERROR: &str = "UnfenceError";
/// Clean: what is left of the fence could not be removed.
pub const REASON_CLEAN_ERROR: &str = "CleanError";
/// Something failed.
pub const REASON_ERROR: &str = "Error";
/// Something failed in an unknown way.
pub const REASON_UNKNOWN_ERROR: &str = "UnknownError";
