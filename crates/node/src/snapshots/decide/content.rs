//! A VolumeSnapshotContent: its LogicalVolume is made on the node of its source, or what it stands for is found, and it goes as its
//! policy says. It is ready to use only when a volume can really be made from it: with a backup, only when the backup is complete.

use crate::handle::Handle;
use crate::provision::make::handle as handle_of;
use crate::provision::words::{
    current_size, drop_finalizer, failure, has_finalizer, is_going, is_online, is_restoring, made_at, name,
    uid, volume_id, wanted_size,
};
use crate::snapshots::make::{backup_place, logical_volume};
use crate::snapshots::status::{ContentWhy, error};
use crate::snapshots::world::ContentWorld;
use crate::stores::place_of;
use jiff::{SignedDuration, Timestamp};
use lifeboat_api::finalizers::SNAPSHOT_CONTENT_BOUND;
use lifeboat_api::snapshot::{DeletionPolicy, VolumeSnapshotContent, VolumeSnapshotContentStatus};
use lifeboat_api::topolvm::{AccessType, LogicalVolume, SnapshotOperation, SnapshotPhase};
use lifeboat_engine::{Decision, ObjectKey};

/// How long after a store had nothing it is looked at again.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(30);

/// What can be done about a content.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum ContentEffect {
    /// Keeps it from vanishing while it stands for something.
    Guard(Box<VolumeSnapshotContent>),
    /// Makes its LogicalVolume.
    Make(Box<LogicalVolume>),
    /// Takes a LogicalVolume away that cannot be made, and remembers why.
    Discard {
        /// The LogicalVolume.
        volume: Box<LogicalVolume>,
        /// gRPC code.
        code: i32,
        /// What was said.
        message: String,
    },
    /// Looks into a store for a snapshot that was not taken here.
    Find {
        /// The handle.
        handle: String,
    },
    /// Deletes its LogicalVolume; a backup goes with it.
    DeleteLogical(Box<LogicalVolume>),
    /// Removes the backup of a snapshot that was not taken here.
    Forget {
        /// The handle.
        handle: String,
    },
    /// Lets it go.
    Release(Box<VolumeSnapshotContent>),
}

/// What is decided about a content.
pub type ContentDecision = Decision<ContentEffect, ContentWhy, VolumeSnapshotContentStatus>;

/// Every rule about contents.
pub fn decide(world: &ContentWorld, now: Timestamp) -> ContentDecision {
    let content = &*world.content;
    if content.spec.driver != world.driver {
        return Decision::settled();
    }
    if is_going(&content.metadata) {
        return going(world, now);
    }
    if world.guards && !has_finalizer(&content.metadata, SNAPSHOT_CONTENT_BOUND) {
        let mut guarded = content.clone();
        guarded.metadata.finalizers.get_or_insert_default().push(SNAPSHOT_CONTENT_BOUND.to_owned());
        return Decision::act([ContentEffect::Guard(Box::new(guarded))]);
    }
    match (&content.spec.source.snapshot_handle, world.logical.as_deref()) {
        (Some(handle), logical) => existing(world, handle, logical, now),
        (None, Some(logical)) => taken(world, logical, now),
        (None, None) => take(world, now),
    }
}

/// A snapshot that is to be taken.
fn take(world: &ContentWorld, now: Timestamp) -> ContentDecision {
    let content = &*world.content;
    if content.status.as_ref().is_some_and(|status| status.snapshot_handle.is_some()) {
        return failed(
            world,
            "its LogicalVolume does not exist any more, and the snapshot with it".to_owned(),
            now,
        );
    }
    let wanted = content.spec.volume_snapshot_ref.uid.as_deref().unwrap_or_default();
    let asked = world
        .snapshot
        .as_deref()
        .is_some_and(|snapshot| uid(snapshot) == wanted && !is_going(&snapshot.metadata));
    if wanted.is_empty() || !asked {
        // Nobody wants it any more; who deletes the VolumeSnapshot deletes this too.
        return Decision::settled();
    }
    if let Some(failure) = world.failure.as_ref().filter(|failure| now < failure.until) {
        let why = ContentWhy::Failed(failure.message.clone());
        return Decision::wait_until(why, failure.until).showing(with_error(content, &failure.message, now));
    }
    let class = content.spec.volume_snapshot_class_name.as_deref().unwrap_or_default();
    let Some(class) = world.class.as_deref() else {
        return failed(world, format!("VolumeSnapshotClass {class:?} does not exist"), now);
    };
    let backup = match backup_place(class, &world.namespace) {
        Ok(backup) => backup,
        Err(why) => return failed(world, why, now),
    };
    let handle = content.spec.source.volume_handle.as_deref().unwrap_or_default();
    let Some(source) = world.source.as_deref() else {
        return failed(world, format!("the LogicalVolume {handle} does not exist"), now);
    };
    if volume_id(source).is_none() || is_restoring(source) {
        return failed(world, format!("LogicalVolume {} is not complete yet", name(source)), now);
    }
    let logical = logical_volume(content, source, world.claim.clone(), backup.as_ref());
    let decision = Decision::act([ContentEffect::Make(Box::new(logical))]);
    match &world.trouble {
        Some(trouble) => decision.showing(with_error(content, &trouble.message, now)),
        None => decision,
    }
}

/// A snapshot whose LogicalVolume is there.
fn taken(world: &ContentWorld, logical: &LogicalVolume, now: Timestamp) -> ContentDecision {
    let content = &*world.content;
    let shown = content.status.clone().unwrap_or_default();
    if is_going(&logical.metadata) {
        return Decision::wait(ContentWhy::LogicalGoing(name(logical).to_owned()));
    }
    let source = world.source.as_deref().and_then(|source| source.metadata.name.as_deref());
    if logical.spec.access_type != Some(AccessType::ReadOnly)
        || source.is_some_and(|source| logical.spec.source.as_deref() != Some(source))
    {
        return failed(
            world,
            format!(
                "LogicalVolume {} has the name of this snapshot and is none of it: rename or delete it",
                name(logical)
            ),
            now,
        );
    }
    let node = logical.spec.node_name.clone();
    if volume_id(logical).is_none() {
        if let Some((code, message)) = failure(logical) {
            let (volume, message) = (Box::new(logical.clone()), message.to_owned());
            return Decision::act([ContentEffect::Discard { volume, code, message }]);
        }
        let message = logical
            .status
            .as_ref()
            .and_then(|status| status.message.clone())
            .filter(|message| !message.is_empty());
        let mut status = shown.clone();
        status.ready_to_use = Some(false);
        status.error = message.map(|message| error(shown.error.as_ref(), &message, now));
        return Decision::wait(ContentWhy::Taking(node)).showing(status);
    }
    let status = VolumeSnapshotContentStatus {
        snapshot_handle: Some(handle_of(logical).to_string()),
        creation_time: i64::try_from(made_at(&logical.metadata).as_nanosecond()).ok(),
        restore_size: i64::try_from(current_size(logical).unwrap_or_default().max(wanted_size(logical))).ok(),
        ..shown.clone()
    };
    match stand(logical) {
        Stand::Ready => Decision::settled().showing(VolumeSnapshotContentStatus {
            ready_to_use: Some(true),
            error: None,
            ..status
        }),
        Stand::Under => {
            let status = VolumeSnapshotContentStatus { ready_to_use: Some(false), error: None, ..status };
            Decision::wait(ContentWhy::BackingUp(node)).showing(status)
        }
        Stand::Failed(message) => {
            let error = Some(error(shown.error.as_ref(), &message, now));
            let status = VolumeSnapshotContentStatus { ready_to_use: Some(false), error, ..status };
            Decision::wait(ContentWhy::Failed(message)).showing(status)
        }
    }
}

enum Stand {
    Ready,
    Under,
    Failed(String),
}

/// Whether a volume can be made from a snapshot that exists.
fn stand(logical: &LogicalVolume) -> Stand {
    if !is_online(logical) {
        return Stand::Ready;
    }
    let status = logical.status.clone().unwrap_or_default();
    let Some(snapshot) = status.snapshot else { return Stand::Under };
    let backup = matches!(snapshot.operation, None | Some(SnapshotOperation::Backup));
    let has_id = snapshot.snapshot_id.as_deref().is_some_and(|id| !id.is_empty());
    if backup && snapshot.phase == SnapshotPhase::Succeeded && has_id {
        return Stand::Ready;
    }
    let told = snapshot
        .error
        .and_then(|error| error.message)
        .or(snapshot.message.filter(|_| snapshot.phase == SnapshotPhase::Failed));
    match told.or(status.message).filter(|message| !message.is_empty()) {
        Some(message) => Stand::Failed(message),
        None if snapshot.phase == SnapshotPhase::Failed => Stand::Failed("the backup failed".to_owned()),
        None => Stand::Under,
    }
}

/// A snapshot that exists, here or in a store.
fn existing(
    world: &ContentWorld,
    text: &str,
    logical: Option<&LogicalVolume>,
    now: Timestamp,
) -> ContentDecision {
    let content = &*world.content;
    let handle: Handle = match text.parse() {
        Ok(handle) => handle,
        Err(error) => return failed(world, error.to_string(), now),
    };
    let shown = content.status.clone().unwrap_or_default();
    let ready = |restore_size: Option<u64>, taken: Timestamp| VolumeSnapshotContentStatus {
        snapshot_handle: Some(text.to_owned()),
        creation_time: shown.creation_time.or_else(|| i64::try_from(taken.as_nanosecond()).ok()),
        restore_size: restore_size.and_then(|size| i64::try_from(size).ok()).or(shown.restore_size),
        ready_to_use: Some(true),
        error: None,
        ..shown.clone()
    };
    let remote = matches!(handle, Handle::Remote { .. });
    if let Some(logical) = logical.filter(|logical| !is_going(&logical.metadata)) {
        if logical.spec.access_type != Some(AccessType::ReadOnly) {
            return failed(
                world,
                format!("LogicalVolume {} is a volume, not a snapshot", name(logical)),
                now,
            );
        }
        if volume_id(logical).is_some() && (!remote || is_online(logical)) {
            let size = current_size(logical).unwrap_or_default().max(wanted_size(logical));
            return match stand(logical) {
                Stand::Ready => Decision::settled().showing(ready(Some(size), made_at(&logical.metadata))),
                Stand::Under => {
                    let status = VolumeSnapshotContentStatus {
                        ready_to_use: Some(false),
                        ..ready(Some(size), made_at(&logical.metadata))
                    };
                    Decision::wait(ContentWhy::BackingUp(logical.spec.node_name.clone())).showing(status)
                }
                Stand::Failed(why) => failed(world, why, now),
            };
        }
    }
    if !remote {
        return failed(
            world,
            format!(
                "the LogicalVolume {text} does not exist in this cluster, and only backups can be found elsewhere"
            ),
            now,
        );
    }
    let find = Decision::act([ContentEffect::Find { handle: text.to_owned() }]);
    match world.sighting.as_ref().filter(|sighting| sighting.handle == text) {
        Some(sighting) => match sighting.found {
            Some(least) => {
                let least = Some(least).filter(|least| *least > 0);
                Decision::settled().showing(ready(least, made_at(&content.metadata)))
            }
            None if now < sighting.at + LOOK_AGAIN => {
                let why = format!("the store has no backup with the handle {text}");
                let shown = with_error(content, &why, now);
                Decision::wait_until(ContentWhy::Failed(why), sighting.at + LOOK_AGAIN).showing(shown)
            }
            None => find,
        },
        // A process that has just started believes what is shown: the bytes were seen once.
        None if shown.ready_to_use == Some(true) && shown.snapshot_handle.as_deref() == Some(text) => {
            Decision::settled()
        }
        None => match &world.trouble {
            Some(trouble) => find.showing(with_error(content, &trouble.message, now)),
            None => find,
        },
    }
}

fn with_error(content: &VolumeSnapshotContent, message: &str, now: Timestamp) -> VolumeSnapshotContentStatus {
    let mut status = content.status.clone().unwrap_or_default();
    status.ready_to_use = Some(false);
    status.error = Some(error(status.error.as_ref(), message, now));
    status
}

fn failed(world: &ContentWorld, why: String, now: Timestamp) -> ContentDecision {
    let shown = with_error(&world.content, &why, now);
    Decision::wait(ContentWhy::Failed(why)).showing(shown)
}

/// A content that is being deleted.
fn going(world: &ContentWorld, now: Timestamp) -> ContentDecision {
    let content = &*world.content;
    if !has_finalizer(&content.metadata, SNAPSHOT_CONTENT_BOUND) {
        return Decision::settled();
    }
    let wanted = content.spec.volume_snapshot_ref.uid.as_deref();
    if let Some(snapshot) = world
        .snapshot
        .as_deref()
        .filter(|snapshot| Some(uid(*snapshot)) == wanted && !is_going(&snapshot.metadata))
    {
        return Decision::wait(ContentWhy::Bound(ObjectKey::of(snapshot).to_string()));
    }
    let mut released = content.clone();
    drop_finalizer(&mut released.metadata, SNAPSHOT_CONTENT_BOUND);
    let release = Decision::act([ContentEffect::Release(Box::new(released))]);
    if content.spec.deletion_policy != DeletionPolicy::Delete {
        return release;
    }
    if !world.copies.is_empty() {
        return Decision::wait(ContentWhy::BeingCopied(world.copies.clone()));
    }
    match world.logical.as_deref() {
        // A volume that somebody named in a content is not a snapshot to be deleted.
        Some(logical) if logical.spec.access_type != Some(AccessType::ReadOnly) => release,
        Some(logical) if is_going(&logical.metadata) => {
            Decision::wait(ContentWhy::LogicalGoing(name(logical).to_owned()))
        }
        Some(logical) => Decision::act([ContentEffect::DeleteLogical(Box::new(logical.clone()))]),
        None => {
            let handle = content.spec.source.snapshot_handle.as_deref();
            let remote =
                handle.and_then(|text| text.parse::<Handle>().ok()).and_then(|handle| place_of(&handle));
            match (handle, remote) {
                (Some(handle), Some(_)) if !world.forgotten => {
                    let forget = Decision::act([ContentEffect::Forget { handle: handle.to_owned() }]);
                    match &world.trouble {
                        Some(trouble) => forget.showing(with_error(content, &trouble.message, now)),
                        None => forget,
                    }
                }
                _ => release,
            }
        }
    }
}
