//! What people are told of a LogicalVolume: its size, the failure if there is one, and how far its backup or restore is.

use crate::volume::words::VolumeWords;
use crate::volume::world::{Moved, World};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lifeboat_api::annotations;
use lifeboat_api::conditions::logical_volume as names;
use lifeboat_api::topolvm::{
    LogicalVolumeStatus, SnapshotError, SnapshotOperation, SnapshotPhase, SnapshotProgress, SnapshotStatus,
};
use lifeboat_engine::conditions::{Conditions, Holds, whole_seconds};
use lifeboat_engine::{Level, Why};
use lifeboat_lvm::{Error, Volume};
use lifeboat_mover::Progress;
use serde::Serialize;
use std::fmt;

/// What a LogicalVolume can wait for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum VolumeWhy {
    /// The node is being taken out of the cluster.
    PendingDeletion,
    /// It failed for good and its maker has to act.
    Refused(String),
    /// A peer cluster has the primary, and its bytes are received here.
    Mirrored,
    /// Its source does not exist.
    SourceMissing(String),
    /// Its source has no volume yet.
    SourceNotMade(String),
    /// Its source is not backed up yet.
    SourceNotBackedUp(String, String),
    /// Its device class is gone while its volume may still be there.
    ClassMissing(String),
    /// No device class names the storage that has its volume.
    Unserved(String),
    /// No PersistentVolume stands for it yet.
    PersistentVolumeMissing(String),
    /// Where the backup is cannot be used.
    StorageMissing(String),
    /// Nothing says where the backup is.
    StorageUnnamed,
    /// Other backups and restores of this node come first.
    Queued,
    /// What was decided is being written down.
    Recording,
    /// Another process does it.
    OtherProcess(String),
    /// Bytes are moving.
    Moving(SnapshotOperation),
    /// It failed and will be tried again.
    Retrying(String),
    /// It failed, and somebody has to ask for another try.
    Failed(String),
    /// Snapshots would die with it.
    Needed(Vec<String>),
}

impl Why for VolumeWhy {
    fn event(&self) -> Option<Level> {
        match self {
            Self::Recording
            | Self::Moving(_)
            | Self::Queued
            | Self::Mirrored
            | Self::OtherProcess(_)
            | Self::PersistentVolumeMissing(_) => None,
            Self::SourceNotMade(_) | Self::SourceNotBackedUp(..) | Self::PendingDeletion => {
                Some(Level::Normal)
            }
            _ => Some(Level::Warning),
        }
    }
}

impl fmt::Display for VolumeWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PendingDeletion => f.write_str("the node is being taken out of the cluster; the volume is left as it is"),
            Self::Refused(why) => write!(f, "the volume cannot be made as it is asked for: {why}"),
            Self::Mirrored => f.write_str(
                "it is the secondary of a mirror: its bytes come from the peer cluster, and it can be used when it is made primary here",
            ),
            Self::SourceMissing(name) => write!(
                f,
                "the source LogicalVolume {name} does not exist; an empty volume in its place would be taken for its data"
            ),
            Self::SourceNotMade(name) => write!(f, "the source LogicalVolume {name} has no volume yet"),
            Self::SourceNotBackedUp(name, phase) => write!(f, "the backup of {name} is not complete yet ({phase})"),
            Self::ClassMissing(why) => write!(
                f,
                "{why}; the volume may still exist, so it is not given up; to delete the object and leave its volume where it is, set the annotation {} to true",
                annotations::ABANDON_VOLUME
            ),
            Self::Unserved(storage) => write!(
                f,
                "no device class of this node names {storage}, which the volume was made in: name it in lvmd's configuration again; to delete the object and leave its volume where it is, set the annotation {} to true",
                annotations::ABANDON_VOLUME
            ),
            Self::PersistentVolumeMissing(name) => write!(f, "the PersistentVolume {name} does not exist yet"),
            Self::StorageMissing(why) => f.write_str(why),
            Self::StorageUnnamed => f.write_str(
                "nothing says where the backup goes: the snapshot class needs the parameter topolvm.io/snapshot-storage-name",
            ),
            Self::Queued => f.write_str("other backups and restores of this node come first"),
            Self::Recording => f.write_str("what was decided is being written down"),
            Self::OtherProcess(who) => write!(f, "{who} is at it and was alive a moment ago"),
            Self::Moving(operation) => write!(f, "the {} is under way", operation.as_str().to_lowercase()),
            Self::Retrying(why) => write!(f, "the last try failed and will be repeated: {why}"),
            Self::Failed(why) => write!(
                f,
                "{why}; to try again, set the annotation {} to the present time",
                annotations::SNAPSHOT_RETRY_REQUESTED_AT
            ),
            Self::Needed(snapshots) => {
                write!(f, "snapshots that are being backed up still need it: {}", snapshots.join(", "))
            }
        }
    }
}

/// The gRPC code that stands for a refusal, as lvmd's clients know it.
#[must_use]
pub fn code(error: &Error) -> i32 {
    match error {
        Error::Invalid(_) => 3,
        Error::NoClass(_) | Error::NoVolume { .. } => 5,
        Error::Exists { .. } => 6,
        Error::NoRoom { .. } => 8,
        Error::Unsupported(_) => 12,
        Error::Busy { .. } | Error::Transient(_) => 14,
    }
}

/// Computes the status of one object at one moment.
pub struct Telling {
    status: LogicalVolumeStatus,
    conditions: Conditions,
    now: Timestamp,
}

impl Telling {
    /// Begins with what is shown.
    #[must_use]
    pub fn of(world: &World, now: Timestamp) -> Self {
        let conditions = Conditions { generation: world.volume.metadata.generation, now };
        Self { status: world.volume.status.clone().unwrap_or_default(), conditions, now: whole_seconds(now) }
    }

    /// The status.
    #[must_use]
    pub fn done(self) -> LogicalVolumeStatus {
        self.status
    }

    /// The volume exists.
    #[must_use]
    pub fn made(mut self, uid: &str, volume: &Volume) -> Self {
        self.status.volume_id = Some(uid.to_owned());
        self.status.current_size = Some(Quantity(volume.size.to_string()));
        self.status.code = None;
        self.status.conditions.retain(|condition| condition.type_ != names::TYPE_REFUSED);
        self
    }

    /// Nothing is wrong, or this is, and it is being retried.
    #[must_use]
    pub fn message(mut self, message: Option<String>) -> Self {
        self.status.message = message;
        self
    }

    /// The volume cannot be made. Told by a code only here: whoever asked for it takes the object away then.
    #[must_use]
    pub fn refused(mut self, code: i32, message: String) -> Self {
        self.status.code = Some(code);
        self.status.message = Some(message.clone());
        self.condition(names::TYPE_REFUSED, true, names::REASON_REFUSED, message)
    }

    /// Sets a condition.
    #[must_use]
    pub fn condition(mut self, type_: &str, holds: bool, reason: &str, message: impl Into<String>) -> Self {
        self.conditions.set(&mut self.status.conditions, type_, Holds::from(holds), reason, message);
        self
    }

    fn snapshot(&mut self) -> &mut SnapshotStatus {
        self.status.snapshot.get_or_insert_default()
    }

    /// An operation will begin. What an earlier try left is taken back.
    #[must_use]
    pub fn pending(mut self, operation: SnapshotOperation, consistency: Option<&str>) -> Self {
        let now = self.now;
        let snapshot = self.snapshot();
        let (attempt, known) = (snapshot.attempt, snapshot.consistency.take());
        *snapshot = SnapshotStatus {
            message: Some(format!("the {} will begin", operation.as_str().to_lowercase())),
            operation: Some(operation),
            phase: SnapshotPhase::Pending,
            start_time: Some(Time(now)),
            attempt,
            consistency: consistency.map(str::to_owned).or(known),
            ..SnapshotStatus::default()
        };
        self
    }

    /// An operation begins, by this process.
    #[must_use]
    pub fn running(mut self, process: &str) -> Self {
        let now = self.now;
        let snapshot = self.snapshot();
        snapshot.phase = SnapshotPhase::Running;
        snapshot.executor = Some(process.to_owned());
        snapshot.heartbeat_time = Some(Time(now));
        snapshot.start_time.get_or_insert(Time(now));
        snapshot.attempt = Some(snapshot.attempt.unwrap_or(0) + 1);
        snapshot.message = snapshot
            .operation
            .as_ref()
            .map(|operation| format!("the {} is under way", operation.as_str().to_lowercase()));
        snapshot.error = None;
        self
    }

    /// An operation is alive and so far.
    #[must_use]
    pub fn moving(mut self, progress: &Progress) -> Self {
        let now = self.now;
        let snapshot = self.snapshot();
        let elapsed =
            snapshot.start_time.as_ref().map_or(SignedDuration::ZERO, |start| now.duration_since(start.0));
        snapshot.heartbeat_time = Some(Time(now));
        snapshot.progress = Some(told(progress, elapsed));
        self
    }

    /// An operation failed, for now.
    #[must_use]
    pub fn stumbled(mut self, why: &str) -> Self {
        let snapshot = self.snapshot();
        snapshot.phase = SnapshotPhase::Pending;
        snapshot.executor = None;
        snapshot.heartbeat_time = None;
        snapshot.message = Some(format!("failed and will be tried again: {why}"));
        self
    }

    /// A restore was complete before the process that did it could say so.
    #[must_use]
    pub fn restored_earlier(mut self) -> Self {
        let now = self.now;
        let snapshot = self.snapshot();
        snapshot.operation = Some(SnapshotOperation::Restore);
        snapshot.phase = SnapshotPhase::Succeeded;
        snapshot.start_time.get_or_insert(Time(now));
        snapshot.completion_time = Some(Time(now));
        snapshot.message = Some("the restore is complete".to_owned());
        snapshot.error = None;
        self
    }

    /// An operation failed for good.
    #[must_use]
    pub fn failed(mut self, code: &str, why: &str) -> Self {
        let now = self.now;
        let snapshot = self.snapshot();
        snapshot.phase = SnapshotPhase::Failed;
        snapshot.completion_time = Some(Time(now));
        snapshot.message = Some(why.to_owned());
        snapshot.error = Some(SnapshotError { code: Some(code.to_owned()), message: Some(why.to_owned()) });
        self
    }

    /// An operation is done.
    #[must_use]
    pub fn succeeded(mut self, moved: &Moved, ended: Timestamp, progress: &Progress) -> Self {
        let ended = whole_seconds(ended);
        let snapshot = self.snapshot();
        let took =
            snapshot.start_time.as_ref().map_or(SignedDuration::ZERO, |start| ended.duration_since(start.0));
        let operation = snapshot.operation.clone();
        snapshot.phase = SnapshotPhase::Succeeded;
        snapshot.completion_time = Some(Time(ended));
        snapshot.duration = Some(format!("{}s", took.as_secs()));
        snapshot.progress = Some(told(progress, took));
        snapshot.error = None;
        snapshot.message =
            operation.map(|operation| format!("the {} is complete", operation.as_str().to_lowercase()));
        snapshot.path = Some(moved.snapshot.path.trim_start_matches('/').to_owned());
        snapshot.repository = Some(moved.repository.clone());
        snapshot.version = Some("restic".to_owned());
        if snapshot.operation == Some(SnapshotOperation::Backup) {
            snapshot.snapshot_id = Some(moved.snapshot.id.clone());
        }
        self
    }
}

fn told(progress: &Progress, elapsed: SignedDuration) -> SnapshotProgress {
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let (done, total) = (progress.bytes_done, progress.bytes_total.max(progress.bytes_done));
    let seconds = elapsed.as_secs().max(0);
    // An empty volume is done as soon as it is begun.
    let percent = if total == 0 { 100.0 } else { done as f64 * 100.0 / total as f64 };
    let rate = done / u64::try_from(seconds.max(1)).unwrap_or(1);
    SnapshotProgress {
        seconds_elapsed: Some(seconds),
        percent_done: Some(format!("{percent:.2}%")),
        total_files: Some(number(progress.files_total.max(progress.files_done))),
        files_done: Some(number(progress.files_done)),
        transfer_done: Some(bytes(done)),
        total: Some(bytes(total)),
        speed: Some(format!("{}/s", bytes(rate))),
        total_bytes: Some(number(total)),
        bytes_done: Some(number(done)),
    }
}

/// Bytes with a unit that keeps the number short.
fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{count} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// Where the object is told of in events.
#[must_use]
pub fn reference(world: &World) -> k8s_openapi::api::core::v1::ObjectReference {
    use lifeboat_api::topolvm::LogicalVolume;
    let meta = &world.volume.metadata;
    k8s_openapi::api::core::v1::ObjectReference {
        api_version: Some(<LogicalVolume as kube::Resource>::api_version(&()).into_owned()),
        kind: Some(<LogicalVolume as kube::Resource>::kind(&()).into_owned()),
        name: meta.name.clone(),
        uid: Some(world.volume.uid().to_owned()),
        resource_version: meta.resource_version.clone(),
        ..Default::default()
    }
}
