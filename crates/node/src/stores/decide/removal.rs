//! The backup of a LogicalVolume that is being deleted: removed from its store first, by anybody who reaches the store. What is in the
//! way is named, never waited for in silence, and can be given up only by saying so.

use crate::provision::words::{annotation, has_finalizer, is_going};
use crate::stores::ABANDON_BACKUP;
use crate::stores::repository::{repository, secret_name};
use crate::stores::status::RemovalWhy;
use crate::stores::world::RemovalWorld;
use jiff::{SignedDuration, Timestamp};
use lifeboat_api::conditions::logical_volume::{
    REASON_DELETE_FAILED, REASON_DELETE_RUNNING, REASON_DELETE_SUCCEEDED, TYPE_DELETE_ENSURED,
};
use lifeboat_api::finalizers::{LOGICAL_VOLUME, REMOTE_SNAPSHOT};
use lifeboat_api::topolvm::{LogicalVolume, LogicalVolumeStatus, SnapshotPhase};
use lifeboat_engine::Decision;
use lifeboat_engine::conditions::{Conditions, Holds};

/// An executor that has said nothing for so long does not write any more.
const SILENT_AFTER: SignedDuration = SignedDuration::from_mins(2);

/// What can be done about such a backup.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub enum RemovalEffect {
    /// Removes every backup of the LogicalVolume from its store.
    Forget,
    /// Lets the LogicalVolume go.
    Release {
        /// The backup stays where it is, because somebody said so.
        abandoned: bool,
    },
}

/// What is decided about such a backup.
pub type RemovalDecision = Decision<RemovalEffect, RemovalWhy, LogicalVolumeStatus>;

/// Every rule about the removal of backups.
pub fn decide(world: &RemovalWorld, now: Timestamp) -> RemovalDecision {
    let logical = &*world.logical;
    if !is_going(&logical.metadata) || !has_finalizer(&logical.metadata, REMOTE_SNAPSHOT) {
        return Decision::settled();
    }
    let release = |abandoned| Decision::act([RemovalEffect::Release { abandoned }]);
    if annotation(&logical.metadata, ABANDON_BACKUP) == Some("true") {
        return release(true);
    }
    let Some(place) = &world.place else { return release(false) };
    if world.forgotten || is_done(logical) {
        let message = format!("nothing of it is left in {place}");
        return release(false).showing(status(world, Holds::True, REASON_DELETE_SUCCEEDED, message, now));
    }
    let blocked = blocked(world);
    if blocked.is_some() && !began(logical) {
        return release(false);
    }
    if !world.restores.is_empty() {
        return Decision::wait(RemovalWhy::BeingRestored(world.restores.clone()));
    }
    if let Some((executor, until)) = written(logical).filter(|(_, until)| now < *until) {
        return Decision::wait_until(RemovalWhy::BackupRunning(executor), until);
    }
    if let Some(why) = blocked {
        let why = RemovalWhy::Blocked(why);
        let shown = status(world, Holds::False, REASON_DELETE_FAILED, why.to_string(), now);
        return Decision::wait(why).showing(shown);
    }
    let forget = Decision::act([RemovalEffect::Forget]);
    match &world.trouble {
        Some(trouble) => {
            let message = RemovalWhy::Blocked(trouble.message.clone()).to_string();
            forget.showing(status(world, Holds::False, REASON_DELETE_FAILED, message, now))
        }
        None => {
            let message = format!("the backup is being removed from {place}");
            forget.showing(status(world, Holds::False, REASON_DELETE_RUNNING, message, now))
        }
    }
}

fn is_done(logical: &LogicalVolume) -> bool {
    let mut conditions = logical.status.iter().flat_map(|status| &status.conditions);
    conditions.any(|condition| {
        condition.type_ == TYPE_DELETE_ENSURED && condition.reason == REASON_DELETE_SUCCEEDED
    })
}

/// Whether anything can be in the store: a backup is recorded before its first byte is written.
fn began(logical: &LogicalVolume) -> bool {
    let snapshot = logical.status.as_ref().and_then(|status| status.snapshot.as_ref());
    snapshot.is_some_and(|snapshot| {
        let waits = matches!(snapshot.phase, SnapshotPhase::Pending) || snapshot.phase.as_str().is_empty();
        !waits || snapshot.attempt.unwrap_or_default() > 0 || snapshot.snapshot_id.is_some()
    })
}

/// Who is writing the backup, and until when that is believed.
fn written(logical: &LogicalVolume) -> Option<(String, Timestamp)> {
    let snapshot = logical.status.as_ref()?.snapshot.as_ref()?;
    if snapshot.phase != SnapshotPhase::Running || !has_finalizer(&logical.metadata, LOGICAL_VOLUME) {
        return None;
    }
    let heard = snapshot.heartbeat_time.as_ref()?.0;
    let executor = snapshot.executor.clone().unwrap_or_else(|| format!("node {}", logical.spec.node_name));
    Some((executor, heard + SILENT_AFTER))
}

/// What is in the way of reaching the store.
fn blocked(world: &RemovalWorld) -> Option<String> {
    let place = world.place.as_ref()?;
    let Some(storage) = world.storage.as_deref() else {
        return Some(format!("the SnapshotBackupStorage {place} does not exist"));
    };
    match (secret_name(storage), world.secret.as_deref()) {
        (Some(name), None) => Some(format!("the Secret {}/{name} does not exist", place.namespace)),
        (_, secret) => {
            repository(storage, &secret.cloned().unwrap_or_default()).err().map(|error| error.to_string())
        }
    }
}

fn status(
    world: &RemovalWorld,
    holds: Holds,
    reason: &str,
    message: String,
    now: Timestamp,
) -> LogicalVolumeStatus {
    let mut status = world.logical.status.clone().unwrap_or_default();
    let conditions = Conditions { generation: world.logical.metadata.generation, now };
    conditions.set(&mut status.conditions, TYPE_DELETE_ENSURED, holds, reason, message);
    status
}
