//! Reading a LogicalVolume without saying `Option` at every step.

use crate::handle::{Handle, NoHandle};
use jiff::{SignedDuration, Timestamp};
use lifeboat_api::conditions::logical_volume as conditions;
use lifeboat_api::topolvm::{AccessType, LogicalVolume, SnapshotOperation, SnapshotPhase, SnapshotStatus};
use lifeboat_api::{annotations, finalizers, labels};
use lifeboat_schema::quantity::Quantity;

/// A heartbeat older than this is that of a dead process.
pub const DEAD_AFTER: SignedDuration = SignedDuration::from_secs(45);

/// What is asked of a LogicalVolume all the time.
pub trait VolumeWords {
    /// Its UID, which its volume is called by.
    fn uid(&self) -> &str;
    /// An annotation.
    fn note(&self, key: &str) -> Option<&str>;
    /// Whether a finalizer is on it.
    fn has_finalizer(&self, name: &str) -> bool;
    /// Whether it carries the label that says who made it.
    fn is_labelled(&self) -> bool;
    /// Its device class; empty for the default one.
    fn class(&self) -> &str;
    /// Bytes it shall have.
    fn wanted_size(&self) -> u64;
    /// Whether people were told of its volume.
    fn is_made(&self) -> bool;
    /// What it is a snapshot operation of.
    fn operation(&self) -> Option<&SnapshotOperation>;
    /// How far that is.
    fn phase(&self) -> Option<&SnapshotPhase>;
    /// The operation's record.
    fn snapshot(&self) -> Option<&SnapshotStatus>;
    /// Whether its backup is complete and can be found.
    fn is_backed_up(&self) -> bool;
    /// Whether its local volume was removed after the backup.
    fn is_cleaned(&self) -> bool;
    /// Whether it is a snapshot, which is only read.
    fn is_read_only(&self) -> bool;
    /// The backup that it must be filled from before anybody may use it.
    fn barrier(&self) -> Option<Result<Handle, NoHandle>>;
    /// Whether somebody has said that it cannot be made, and it still asks for the same.
    fn was_refused(&self) -> bool;
    /// Whether its size is one that a volume can have.
    fn has_size(&self) -> bool;
    /// Whether another try was asked for after the last one ended.
    fn asks_for_retry(&self) -> bool;
    /// Whether it may go though nobody can see whether its volume is there.
    fn is_abandoned(&self) -> bool;
    /// Whether its bytes come from a peer cluster, so that nobody here may make, fill or use it.
    fn is_mirrored(&self) -> bool;
}

impl VolumeWords for LogicalVolume {
    fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    fn note(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    fn has_finalizer(&self, name: &str) -> bool {
        self.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == name)
    }

    fn is_labelled(&self) -> bool {
        let label = self.metadata.labels.as_ref().and_then(|labels| labels.get(labels::CREATED_BY));
        label.is_some_and(|by| by == labels::CREATED_BY_TOPOLVM)
    }

    fn class(&self) -> &str {
        self.spec.device_class.as_deref().unwrap_or_default()
    }

    fn wanted_size(&self) -> u64 {
        let size = Quantity::parse(&self.spec.size.0).map_or(0, |size| size.value());
        u64::try_from(size).unwrap_or(0)
    }

    fn is_made(&self) -> bool {
        let id = self.status.as_ref().and_then(|status| status.volume_id.as_deref());
        id.is_some_and(|id| !id.is_empty())
    }

    fn operation(&self) -> Option<&SnapshotOperation> {
        self.snapshot()?.operation.as_ref()
    }

    fn phase(&self) -> Option<&SnapshotPhase> {
        let phase = &self.snapshot()?.phase;
        (!phase.as_str().is_empty()).then_some(phase)
    }

    fn snapshot(&self) -> Option<&SnapshotStatus> {
        self.status.as_ref()?.snapshot.as_ref()
    }

    fn is_backed_up(&self) -> bool {
        let has_id = self
            .snapshot()
            .and_then(|snapshot| snapshot.snapshot_id.as_deref())
            .is_some_and(|id| !id.is_empty());
        // Peers leave the operation out of a backup's record.
        has_id
            && self.phase() == Some(&SnapshotPhase::Succeeded)
            && self.operation() != Some(&SnapshotOperation::Restore)
    }

    fn is_cleaned(&self) -> bool {
        let conditions = self.status.iter().flat_map(|status| &status.conditions);
        let mut cleaned =
            conditions.filter(|condition| condition.type_ == conditions::TYPE_LVM_SNAPSHOT_CLEANED);
        self.is_backed_up() && cleaned.any(|condition| condition.status == "True")
    }

    fn is_read_only(&self) -> bool {
        self.spec.access_type == Some(AccessType::ReadOnly)
    }

    fn barrier(&self) -> Option<Result<Handle, NoHandle>> {
        self.note(annotations::SNAPSHOT_RESTORE_REQUIRED).map(str::parse)
    }

    fn was_refused(&self) -> bool {
        let refused = self.status.as_ref().and_then(|status| status.code).unwrap_or(0) != 0;
        // Peers do not say which generation they refused.
        let mut conditions = self.status.iter().flat_map(|status| &status.conditions);
        let ours = conditions.find(|condition| condition.type_ == conditions::TYPE_REFUSED);
        let edited = ours.is_some_and(|ours| ours.observed_generation != self.metadata.generation);
        refused && !edited
    }

    fn has_size(&self) -> bool {
        Quantity::parse(&self.spec.size.0).is_ok_and(|size| size.value() >= 0)
    }

    fn asks_for_retry(&self) -> bool {
        let asked =
            self.note(annotations::SNAPSHOT_RETRY_REQUESTED_AT).and_then(|at| at.parse::<Timestamp>().ok());
        let ended = self.snapshot().and_then(|snapshot| snapshot.completion_time.as_ref()).map(|time| time.0);
        asked.is_some_and(|asked| ended.is_none_or(|ended| asked > ended))
    }

    fn is_abandoned(&self) -> bool {
        self.note(annotations::ABANDON_VOLUME) == Some("true")
    }

    fn is_mirrored(&self) -> bool {
        self.note(annotations::MIRROR_ROLE) == Some(annotations::MIRROR_SECONDARY)
    }
}

/// The finalizers that a volume needs while it is not being deleted.
#[must_use]
pub fn needed_finalizers(backs_up: bool) -> Vec<&'static str> {
    let remote = backs_up.then_some(finalizers::REMOTE_SNAPSHOT);
    [finalizers::LOGICAL_VOLUME].into_iter().chain(remote).collect()
}

/// Whether the volume may be handed to a workload.
///
/// # Errors
///
/// Says what has to come first.
pub fn may_publish(volume: &LogicalVolume) -> Result<(), String> {
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    if volume.is_mirrored() {
        return Err(format!(
            "logical volume {name} is the secondary of a mirror; it can be used when it is made primary here"
        ));
    }
    if !volume.is_made() {
        return Err(format!("logical volume {name} does not exist on its node yet"));
    }
    let restores = volume.barrier().is_some() || volume.operation() == Some(&SnapshotOperation::Restore);
    let restored = volume.operation() == Some(&SnapshotOperation::Restore)
        && volume.phase() == Some(&SnapshotPhase::Succeeded);
    if restores && !restored {
        let phase = volume.phase().map_or("not begun", SnapshotPhase::as_str);
        return Err(format!(
            "logical volume {name} is being restored from a backup ({phase}); it can be used when that has succeeded"
        ));
    }
    // Its local bytes go as soon as the backup is complete, so they are nobody's to use from then on.
    if volume.is_backed_up() {
        return Err(format!(
            "logical volume {name} is a snapshot that exists only in its backup; restore it into a new claim"
        ));
    }
    Ok(())
}
