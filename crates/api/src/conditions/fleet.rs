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
/// Available: the cluster's lease is renewed.
pub const REASON_CLUSTER_AVAILABLE: &str = "ManagedClusterAvailable";
/// Available: the cluster's lease has run out, so nobody knows.
pub const REASON_LEASE_STOPPED: &str = "ManagedClusterLeaseUpdateStopped";
/// Joined: it has.
pub const REASON_JOINED: &str = "ManagedClusterJoined";
/// Accepted: an administrator of the hub let it in.
pub const REASON_ACCEPTED: &str = "HubClusterAdminAccepted";
/// Accepted: an administrator of the hub has not let it in, or not any more.
pub const REASON_DENIED: &str = "HubClusterAdminDenied";
/// The lease by which a cluster is known to be there, in its namespace on the hub.
pub const CLUSTER_LEASE: &str = "managed-cluster-lease";
/// A cluster counts as silent when its lease is older than this many times the duration that its ManagedCluster gives.
pub const LEASE_DURATIONS: i32 = 5;
/// Duration of a lease where the ManagedCluster gives none, in seconds.
pub const DEFAULT_LEASE_SECONDS: i32 = 60;
/// ManagedCluster: whether the cluster that answers by this name is the one that the hub knows. Ours, and only there once it was not.
pub const TYPE_SAME_CLUSTER: &str = "SameCluster";
/// Another cluster asked to join by the same name.
pub const REASON_OTHER_CLUSTER: &str = "OtherCluster";
/// A person said that the cluster was built in the place of the one that the hub knew: it has nothing that is older than this condition.
pub const REASON_REBUILT: &str = "Rebuilt";
/// ManagedCluster claim with the name it is known by.
pub const CLAIM_NAME: &str = "name";
/// The namespace of a cluster whose UID is the cluster's identity.
pub const IDENTITY_NAMESPACE: &str = "kube-system";
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
/// ManagedClusterView: when what it shows was read. Ours, not known to peers; its time is that of the last change seen.
pub const TYPE_VIEW_OBSERVED: &str = "Observed";
/// Observed: the cluster was looked at.
pub const REASON_VIEW_SEEN: &str = "Seen";

/// Applied, of a work: every object was.
pub const REASON_APPLIED_WORK_COMPLETE: &str = "AppliedManifestWorkComplete";
/// Applied, of a work: some object was not.
pub const REASON_APPLIED_WORK_FAILED: &str = "AppliedManifestWorkFailed";
/// Applied, of one object: the fields to leave alone cannot be told.
pub const REASON_IGNORE_FIELD_ERROR: &str = "AppliedManifestSSAIgnoreFieldError";
/// Available, of one object: it exists.
pub const REASON_RESOURCE_AVAILABLE: &str = "ResourceAvailable";
/// Available, of one object: it does not exist.
pub const REASON_RESOURCE_NOT_AVAILABLE: &str = "ResourceNotAvailable";
/// Available, of one object: the cluster could not be asked.
pub const REASON_FETCHING_FAILED: &str = "FetchingResourceFailed";
/// Available, of one object: the manifest does not say which object it is.
pub const REASON_INCOMPLETE_META: &str = "IncompleteResourceMeta";
/// Available, of a work: all objects exist.
pub const REASON_RESOURCES_AVAILABLE: &str = "ResourcesAvailable";
/// Available, of a work: some objects do not exist.
pub const REASON_RESOURCES_NOT_AVAILABLE: &str = "ResourcesNotAvailable";
/// Available, of a work: nobody knows.
pub const REASON_RESOURCES_UNKNOWN: &str = "ResourcesStatusUnknown";
/// ManifestWork's objects: the values that rules ask for are read back.
pub const TYPE_STATUS_FEEDBACK: &str = "StatusFeedbackSynced";
/// StatusFeedbackSynced: they are.
pub const REASON_FEEDBACK_SYNCED: &str = "StatusFeedbackSynced";
/// StatusFeedbackSynced: no rule asks for any.
pub const REASON_NO_FEEDBACK: &str = "NoStatusFeedbackSynced";
/// StatusFeedbackSynced: some could not be read.
pub const REASON_FEEDBACK_FAILED: &str = "StatusFeedbackSyncFailed";
/// Deleting: it is.
pub const REASON_WORK_DELETING: &str = "WorkDeleting";
