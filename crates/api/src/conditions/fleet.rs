//! ManagedCluster, Placement, ManifestWork and ManagedClusterView.

/// ManagedCluster: it has joined the hub.
pub const TYPE_JOINED: &str = "ManagedClusterJoined";
/// ManagedCluster: the hub has let it in.
pub const TYPE_HUB_ACCEPTED: &str = "HubAcceptedManagedCluster";
/// ManagedCluster: the hub has turned it away.
pub const TYPE_HUB_DENIED: &str = "HubDeniedManagedCluster";
/// ManagedCluster: it has been heard of lately.
pub const TYPE_CLUSTER_AVAILABLE: &str = "ManagedClusterConditionAvailable";
/// ManagedCluster: its clock agrees with the hub's.
pub const TYPE_CLOCK_SYNCED: &str = "ManagedClusterConditionClockSynced";
/// ManagedCluster claim with the identity of the cluster.
pub const CLAIM_ID: &str = "id.k8s.io";

/// Placement: enough clusters were chosen.
pub const TYPE_PLACEMENT_SATISFIED: &str = "PlacementSatisfied";
/// Placement: the request does not hold together.
pub const TYPE_PLACEMENT_MISCONFIGURED: &str = "PlacementMisconfigured";

/// ManifestWork and its objects: being applied.
pub const TYPE_WORK_PROGRESSING: &str = "Progressing";
/// ManifestWork and its objects: applied at the observed generation.
pub const TYPE_WORK_APPLIED: &str = "Applied";
/// ManifestWork and its objects: they exist on the cluster.
pub const TYPE_WORK_AVAILABLE: &str = "Available";
/// ManifestWork and its objects: they do not work as they should.
pub const TYPE_WORK_DEGRADED: &str = "Degraded";
/// ManifestWork and its objects: they have done what they are for.
pub const TYPE_WORK_COMPLETE: &str = "Complete";
/// ManifestWork: its objects are being removed.
pub const TYPE_WORK_DELETING: &str = "Deleting";
/// Applied, of one object: it was.
pub const REASON_APPLIED_MANIFEST_COMPLETE: &str = "AppliedManifestComplete";
/// Applied, of one object: it was not.
pub const REASON_APPLIED_MANIFEST_FAILED: &str = "AppliedManifestFailed";

/// ManagedClusterView: the object could be read.
pub const TYPE_VIEW_PROCESSING: &str = "Processing";
/// Processing: it was read.
pub const REASON_VIEW_GET_RESOURCE: &str = "GetResourceProcessing";
/// Processing: it could not be read.
pub const REASON_VIEW_GET_RESOURCE_FAILED: &str = "GetResourceFailed";
/// Processing: the view names no object.
pub const REASON_VIEW_NAME_INVALID: &str = "ResourceNameInvalid";
/// Processing: the view names no resource or kind.
pub const REASON_VIEW_TYPE_INVALID: &str = "ResourceTypeInvalid";
/// Processing: the cluster does not know the kind.
pub const REASON_VIEW_GVK_INVALID: &str = "ResourceGVKInvalid";
