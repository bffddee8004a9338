//! VolumeReplication and VolumeGroupReplication.

/// Whether the role asked for is reached.
pub const TYPE_COMPLETED: &str = "Completed";
/// Whether the two sides differ.
pub const TYPE_DEGRADED: &str = "Degraded";
/// Whether the peer's data is replacing what is here.
pub const TYPE_RESYNCING: &str = "Resyncing";
/// Whether the storage can replicate the volume at all.
pub const TYPE_VALIDATED: &str = "Validated";
/// Whether changes flow to the peer; on a primary only.
pub const TYPE_REPLICATING: &str = "Replicating";
/// Whether the storage has told the volume's id at the peer.
pub const TYPE_DESTINATION_INFO_AVAILABLE: &str = "DestinationInfoAvailable";
/// Whether the newest complete copy shows one moment; there only where it may not. Ours, not known to peers.
pub const TYPE_CONSISTENT: &str = "Consistent";

/// Completed: primary.
pub const REASON_PROMOTED: &str = "Promoted";
/// Completed: secondary.
pub const REASON_DEMOTED: &str = "Demoted";
/// Completed: it could not be made primary.
pub const REASON_FAILED_TO_PROMOTE: &str = "FailedToPromote";
/// Completed: it could not be made secondary.
pub const REASON_FAILED_TO_DEMOTE: &str = "FailedToDemote";
/// Consistent: files were copied while they may have been written.
pub const REASON_WRITTEN_MEANWHILE: &str = "WrittenMeanwhile";
/// Degraded: the two sides agree.
pub const REASON_HEALTHY: &str = "Healthy";
/// Degraded: they differ.
pub const REASON_VOLUME_DEGRADED: &str = "VolumeDegraded";
/// Degraded: something failed.
pub const REASON_ERROR: &str = "Error";
/// Resyncing: not needed.
pub const REASON_NOT_RESYNCING: &str = "NotResyncing";
/// Resyncing: under way.
pub const REASON_RESYNC_TRIGGERED: &str = "ResyncTriggered";
/// Completed and Resyncing: it failed.
pub const REASON_FAILED_TO_RESYNC: &str = "FailedToResync";
/// Validated: it can.
pub const REASON_PREREQUISITE_MET: &str = "PrerequisiteMet";
/// Validated: it cannot.
pub const REASON_PREREQUISITE_NOT_MET: &str = "PrerequisiteNotMet";
/// Replicating: they do.
pub const REASON_REPLICATING: &str = "Replicating";
/// Replicating: they do not.
pub const REASON_NOT_REPLICATING: &str = "NotReplicating";
/// DestinationInfoAvailable: it is known.
pub const REASON_DESTINATION_INFO_UPDATED: &str = "DestinationInfoUpdated";
/// DestinationInfoAvailable: not yet.
pub const REASON_DESTINATION_INFO_PENDING: &str = "DestinationInfoPending";
/// DestinationInfoAvailable: asking failed.
pub const REASON_FAILED_TO_GET_DESTINATION_INFO: &str = "FailedToGetDestinationInfo";
