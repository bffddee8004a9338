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

/// Key of `status.external` of a sender or receiver: who carries it out. Ours, not known to peers.
pub const EXTERNAL_EXECUTOR: &str = "executor";
/// Value of [`EXTERNAL_EXECUTOR`]: our own mover.
pub const EXECUTOR_LIFEBOAT: &str = "lifeboat";
/// Key of `status.external` of a sender: the manual trigger whose copy the receiver has confirmed as complete and cut after the trigger.
/// Ours, not known to peers.
pub const EXTERNAL_ECHO: &str = "echo";
/// Key of `status.external` of a sender or receiver: the newest complete copy, by a name that no other has. Ours, not known to peers.
pub const EXTERNAL_GENERATION: &str = "generation";
/// Key of `status.external` of a sender or receiver: when the newest complete copy was cut, by the sender's clock. Ours, not known to
/// peers.
pub const EXTERNAL_CUT: &str = "cut";
/// Key of `status.external` of a sender or receiver: the epoch of the newest complete copy. Ours, not known to peers.
pub const EXTERNAL_EPOCH: &str = "epoch";
/// Key of `status.external` of a sender: bytes that crossed the wire for the newest complete copy. Ours, not known to peers.
pub const EXTERNAL_BYTES_ON_WIRE: &str = "bytesOnWire";
/// Key of `status.external` of a sender: bytes that had changed for the newest complete copy. Ours, not known to peers.
pub const EXTERNAL_BYTES_CHANGED: &str = "bytesChanged";
/// Key of `status.external` of a receiver: who was turned away since the newest complete copy, and why. Ours, not known to peers.
pub const EXTERNAL_REFUSED: &str = "refused";

/// Key of `status.external` of a sender or receiver: which volume the newest complete copy descends from. Ours, not known to peers.
pub const EXTERNAL_LINEAGE: &str = "lineage";
/// Key of `status.external` of a receiver: a copy that is complete and not kept as an image yet, by its generation. Ours, not known to peers.
pub const EXTERNAL_UNPUBLISHED: &str = "unpublished";
/// Key of `status.external` of a receiver: when the copy of [`EXTERNAL_UNPUBLISHED`] was cut. Ours, not known to peers.
pub const EXTERNAL_UNPUBLISHED_CUT: &str = "unpublishedCut";
/// Key of `status.external` of a sender: the newest complete copy may hold writes of different moments, and why. Ours, not known to peers.
pub const EXTERNAL_FUZZY: &str = "fuzzy";

/// Manual trigger of a sender that stops its schedule.
pub const TRIGGER_PREPARE: &str = "PREPARE-FOR-FINAL-SYNC-STOP-SCHEDULING";
/// How the manual trigger of a last copy begins.
pub const TRIGGER_FINAL: &str = "vrg-final-sync";
