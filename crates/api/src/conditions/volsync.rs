//! ReplicationSource and -Destination, and the consistency groups built on them.

/// Whether a copy is under way.
pub const TYPE_SYNCHRONIZING: &str = "Synchronizing";

/// A copy is under way.
pub const REASON_SYNC_IN_PROGRESS: &str = "SyncInProgress";
/// Waiting for the schedule.
pub const REASON_WAITING_FOR_SCHEDULE: &str = "WaitingForSchedule";
/// Waiting for a new manual trigger.
pub const REASON_WAITING_FOR_MANUAL: &str = "WaitingForManual";
/// What a copy needed is being removed.
pub const REASON_CLEANING_UP: &str = "CleaningUp";
/// A copy failed.
pub const REASON_ERROR: &str = "Error";

/// Value of the claim annotation for the state of a copy: it waits for its trigger.
pub const COPY_STATUS_WAITING_FOR_TRIGGER: &str = "WaitingForTrigger";
