//! What a backup and a restore have in common: PENDING, RUNNING with a heartbeat, SUCCEEDED or FAILED, and another try.

use super::{VolumeDecision, VolumeEffect};
use crate::volume::status::{Telling, VolumeWhy};
use crate::volume::words::{DEAD_AFTER, VolumeWords};
use crate::volume::world::{Moved, Storage, World};
use jiff::{SignedDuration, Timestamp};
use lifeboat_api::conditions::logical_volume as names;
use lifeboat_api::conditions::logical_volume::error_codes;
use lifeboat_api::topolvm::{SnapshotOperation, SnapshotPhase};
use lifeboat_engine::Decision;
use lifeboat_mover::{Error, Progress};

/// How often a running operation says that it is alive.
const HEARTBEAT: SignedDuration = SignedDuration::from_secs(10);
/// The longest pause between two tries.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(10);

/// Where an operation stands.
pub(super) enum Stand<'a> {
    /// This is the next step.
    Next(Box<VolumeDecision>),
    /// The bytes have moved; what follows is the operation's own business.
    Moved(&'a Moved, Timestamp, Progress),
}

/// The next step of an operation that has not succeeded yet. `consistency` is what its snapshot is worth, where it has one.
pub(super) fn advance<'a>(
    world: &'a World,
    operation: SnapshotOperation,
    told: Telling,
    consistency: Option<&str>,
    now: Timestamp,
) -> Stand<'a> {
    let volume = &*world.volume;
    let next = |decision: VolumeDecision| Stand::Next(Box::new(decision));
    match volume.phase() {
        Some(SnapshotPhase::Failed) if !volume.asks_for_retry() => return next(failed(world, told)),
        Some(SnapshotPhase::Pending | SnapshotPhase::Running) if volume.operation() == Some(&operation) => {}
        _ => {
            return next(
                Decision::wait(VolumeWhy::Recording).showing(told.pending(operation, consistency).done()),
            );
        }
    }
    let told = match stored(world, told) {
        Ok(told) => told,
        Err(decision) => return next(*decision),
    };
    if let Some(decision) = elsewhere(world, now) {
        return next(decision);
    }
    let Some(job) = world.job.as_ref().filter(|job| job.operation == operation) else {
        return next(begin(world, operation, told));
    };
    match &job.outcome {
        None => next(moving(world, operation, told, &job.progress, now)),
        Some((ended, Ok(moved))) => Stand::Moved(moved, *ended, job.progress),
        Some((ended, Err(error))) if error.is_transient() => next(again(world, told, error, *ended, now)),
        Some((_, Err(error))) => {
            let code = match operation {
                SnapshotOperation::Restore => error_codes::RESTORE_EXECUTION_FAILED,
                _ => error_codes::SNAPSHOT_EXECUTION_FAILED,
            };
            let shown = told.failed(code, &error.to_string()).done();
            next(Decision::wait(VolumeWhy::Failed(error.to_string())).showing(shown))
        }
    }
}

/// Bytes are moving: said at every heartbeat, and not more often.
fn moving(
    world: &World,
    operation: SnapshotOperation,
    told: Telling,
    progress: &Progress,
    now: Timestamp,
) -> VolumeDecision {
    let last = world.volume.snapshot().and_then(|snapshot| snapshot.heartbeat_time.as_ref());
    let why = VolumeWhy::Moving(operation);
    match last.map(|last| last.0 + HEARTBEAT).filter(|due| now < *due) {
        Some(due) => Decision::wait_until(why, due).showing(told.done()),
        None => Decision::wait_until(why, now + HEARTBEAT).showing(told.moving(progress).done()),
    }
}

/// Failed for good: nothing is held any more, and people are told how to try again.
fn failed(world: &World, told: Telling) -> VolumeDecision {
    if world.job.is_some() {
        return Decision::act([VolumeEffect::Stop]);
    }
    if world.mount.is_some() {
        return Decision::act([VolumeEffect::Unmount]);
    }
    let snapshot = world.volume.snapshot();
    let why =
        snapshot.and_then(|snapshot| snapshot.message.clone()).unwrap_or_else(|| "it failed".to_owned());
    Decision::wait(VolumeWhy::Failed(why)).showing(told.done())
}

/// Whether the storage can be used, told as a condition.
fn stored(world: &World, told: Telling) -> Result<Telling, Box<VolumeDecision>> {
    let why = match &world.storage {
        Storage::Ready(storage) => {
            let message = format!("{}/{} is used", storage.namespace, storage.name);
            return Ok(told.condition(
                names::TYPE_BACKUP_STORAGE_FOUND,
                true,
                names::REASON_BACKUP_STORAGE_FOUND,
                message,
            ));
        }
        Storage::Unnamed => VolumeWhy::StorageUnnamed,
        Storage::Missing(why) | Storage::Bad(why) => VolumeWhy::StorageMissing(why.clone()),
    };
    let (type_, reason) = (names::TYPE_BACKUP_STORAGE_FOUND, names::REASON_BACKUP_STORAGE_NOT_FOUND);
    let shown = told.condition(type_, false, reason, why.to_string()).done();
    Err(Box::new(Decision::wait(why).showing(shown)))
}

/// Another process of this node is at it. One that is silent for long is dead, and its work is taken over.
fn elsewhere(world: &World, now: Timestamp) -> Option<VolumeDecision> {
    let snapshot = world.volume.snapshot()?;
    let who = snapshot.executor.as_ref().filter(|who| **who != world.process)?;
    let alive_until = snapshot.heartbeat_time.as_ref()?.0 + DEAD_AFTER;
    (snapshot.phase == SnapshotPhase::Running && now < alive_until)
        .then(|| Decision::wait_until(VolumeWhy::OtherProcess(who.clone()), alive_until))
}

/// Mount, keep a place, write down who does it, begin: in this order, so that whoever finds a mount or a job finds its record too, and only
/// one that has a place is told to be running. A mount that keeps failing holds no place.
fn begin(world: &World, operation: SnapshotOperation, told: Telling) -> VolumeDecision {
    if !world.room && !world.reserved {
        let why = VolumeWhy::Queued;
        let shown = told.message(Some(why.to_string())).done();
        return Decision::wait(why).showing(shown);
    }
    if world.files && world.mount.is_none() {
        if let Some(why) = &world.unmountable {
            let code = match operation {
                SnapshotOperation::Restore => error_codes::VOLUME_BIND_MOUNT_FAILED,
                _ => error_codes::VOLUME_MOUNT_FAILED,
            };
            return Decision::wait(VolumeWhy::Failed(why.clone())).showing(told.failed(code, why).done());
        }
        return match &world.trouble {
            Some(trouble) => Decision::act([VolumeEffect::Mount { operation }])
                .showing(told.stumbled(&trouble.message).done()),
            None => Decision::act([VolumeEffect::Mount { operation }]).showing(told.done()),
        };
    }
    if !world.reserved {
        return Decision::act([VolumeEffect::Reserve]);
    }
    let snapshot = world.volume.snapshot();
    let ours = snapshot.is_some_and(|snapshot| {
        snapshot.phase == SnapshotPhase::Running && snapshot.executor.as_deref() == Some(&world.process)
    });
    if !ours {
        return Decision::wait(VolumeWhy::Recording).showing(told.running(&world.process).done());
    }
    let start = Decision::act([VolumeEffect::Start { operation }]);
    if world.trouble.is_some() { start.showing(told.done()) } else { start }
}

/// A try failed in a way that may pass: pause, longer each time, then begin again.
fn again(world: &World, told: Telling, error: &Error, ended: Timestamp, now: Timestamp) -> VolumeDecision {
    let tries = world.volume.snapshot().and_then(|snapshot| snapshot.attempt).unwrap_or(1).clamp(1, 10);
    let due = ended + SignedDuration::from_secs(1 << tries).min(LONGEST_PAUSE);
    if now < due {
        let shown = told.stumbled(&error.to_string()).done();
        return Decision::wait_until(VolumeWhy::Retrying(error.to_string()), due).showing(shown);
    }
    Decision::act([VolumeEffect::Stop])
}
