//! Every rule about a LogicalVolume: what it is to become, and the next step there.

mod backup;
mod make;
mod operation;
mod remove;
mod restore;

use crate::handle::Handle;
use crate::volume::status::{Telling, VolumeWhy};
use crate::volume::words::{VolumeWords, needed_finalizers};
use crate::volume::world::{Disk, Source, World};
use jiff::Timestamp;
use lifeboat_api::annotations;
use lifeboat_api::topolvm::{LogicalVolumeStatus, SnapshotOperation};
use lifeboat_engine::{Decision, Next};
use lifeboat_lvm::{AccessMode, Consistency};
use serde::Serialize;

/// What can be done about a LogicalVolume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum VolumeEffect {
    /// Puts our finalizers and label on it, and the restore barrier where one is needed.
    Claim {
        /// Finalizers to add.
        finalizers: Vec<String>,
        /// The barrier to write, in the same write.
        barrier: Option<String>,
        /// What has its volume, or is about to: to write too.
        stored_in: Option<String>,
    },
    /// Lists what is on disk.
    List,
    /// Makes a volume under its staging name and publishes it.
    Create {
        /// Bytes.
        size: u64,
    },
    /// Takes a snapshot of its source, or clones it.
    Copy {
        /// UID of the source.
        source: String,
        /// Bytes.
        size: u64,
        /// Whether the copy is only read.
        read_only: bool,
        /// It serves one backup and may be one that dies when its origin changes much.
        short_lived: bool,
    },
    /// Makes the volume that a restore fills.
    Stage {
        /// Bytes.
        size: u64,
    },
    /// Removes what a crash left half-made.
    DropStaging,
    /// Grows the volume.
    Grow {
        /// Bytes.
        size: u64,
    },
    /// Keeps a place for its backup or restore among those that run at once.
    Reserve,
    /// Makes its files reachable.
    Mount {
        /// For which operation.
        operation: SnapshotOperation,
    },
    /// Begins to move bytes.
    Start {
        /// Which way.
        operation: SnapshotOperation,
    },
    /// Forgets what this process did with its bytes, and stops it if it goes on.
    Stop,
    /// Releases its mount.
    Unmount,
    /// Gives the restored volume its real name.
    Publish,
    /// Removes the local snapshot after its backup.
    DropLocal,
    /// Removes what is on disk.
    Remove,
    /// Takes our finalizer off.
    Release,
}

/// What is decided about a LogicalVolume.
pub type VolumeDecision = Decision<VolumeEffect, VolumeWhy, LogicalVolumeStatus>;

/// What a LogicalVolume is to become.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wanted {
    /// An empty volume.
    Empty,
    /// A snapshot or clone of another volume of this node.
    Copy,
    /// A volume filled from a backup.
    Restored(Handle),
}

/// Every rule.
pub fn decide(world: &World, now: Timestamp) -> VolumeDecision {
    let decision = next(world, now);
    // Whoever waits for something else gives the place to another.
    let waits = !matches!(decision.next, Next::Do(_) | Next::Wait { why: VolumeWhy::Recording, .. });
    if world.reserved && waits { Decision::act([VolumeEffect::Stop]) } else { decision }
}

fn next(world: &World, now: Timestamp) -> VolumeDecision {
    let volume = &*world.volume;
    if volume.spec.node_name != world.node {
        return Decision::settled();
    }
    if volume.note(annotations::PENDING_DELETION).is_some() {
        return waiting(world, now, VolumeWhy::PendingDeletion);
    }
    if volume.metadata.deletion_timestamp.is_some() {
        return remove::remove(world, now);
    }
    if volume.is_mirrored() {
        return mirrored(world, now);
    }
    if volume.is_cleaned() {
        return backup::cleaned(world);
    }
    let wanted = match wanted(world, now) {
        Ok(wanted) => wanted,
        Err(decision) => return *decision,
    };
    if let Some(claim) = claiming(world, &wanted) {
        return Decision::act([claim]);
    }
    if !volume.has_size() && !volume.is_made() {
        let why = format!("{:?} is no size of a volume: correct spec.size", volume.spec.size.0);
        return refuse(world, now, 3, why);
    }
    match wanted {
        Wanted::Restored(handle) => restore::restore(world, &handle, now),
        Wanted::Empty | Wanted::Copy => make::make(world, &wanted, now),
    }
}

/// A peer's bytes are being received for it: nothing is made here, for an empty volume would be taken for them.
fn mirrored(world: &World, now: Timestamp) -> VolumeDecision {
    match claiming(world, &Wanted::Empty) {
        Some(claim) => Decision::act([claim]),
        None => waiting(world, now, VolumeWhy::Mirrored),
    }
}

/// What it is to become. A source that is missing never turns into an empty volume.
fn wanted(world: &World, now: Timestamp) -> Result<Wanted, Box<VolumeDecision>> {
    let volume = &*world.volume;
    match volume.barrier() {
        Some(Ok(handle @ Handle::Remote { .. })) => return Ok(Wanted::Restored(handle)),
        Some(Ok(Handle::Local(_))) => {
            let why = "the restore barrier names no backup; expected backup/NAMESPACE/STORAGE/UID".to_owned();
            return Err(Box::new(refuse(world, now, 3, why)));
        }
        Some(Err(error)) => return Err(Box::new(refuse(world, now, 3, error.to_string()))),
        None => {}
    }
    if volume.spec.source.is_none() {
        return Ok(Wanted::Empty);
    }
    match &world.source {
        // Once it exists it stands on its own, whatever became of the source.
        _ if volume.is_made() => Ok(Wanted::Copy),
        Source::None => Ok(Wanted::Empty),
        Source::Missing(name) => {
            let why = VolumeWhy::SourceMissing(name.clone());
            Err(Box::new(waiting(world, now, why)))
        }
        Source::Found { volume: source, backup: Some(storage) } if !volume.is_read_only() => {
            Ok(Wanted::Restored(Handle::Remote {
                namespace: storage.namespace.clone(),
                storage: storage.name.clone(),
                volume: source.uid().to_owned(),
            }))
        }
        Source::Found { .. } => Ok(Wanted::Copy),
    }
}

/// Finalizer, label and barrier come before anything is made.
fn claiming(world: &World, wanted: &Wanted) -> Option<VolumeEffect> {
    let volume = &*world.volume;
    let backs_up = world.backup.is_some() && volume.is_read_only();
    let missing = needed_finalizers(backs_up).into_iter().filter(|name| !volume.has_finalizer(name));
    let finalizers: Vec<String> = missing.map(str::to_owned).collect();
    let barrier = match wanted {
        Wanted::Restored(handle) if volume.barrier().is_none() => Some(handle.to_string()),
        _ => None,
    };
    let stored_in = stored_in(world);
    let complete = finalizers.is_empty() && barrier.is_none() && stored_in.is_none() && volume.is_labelled();
    (!complete).then_some(VolumeEffect::Claim { finalizers, barrier, stored_in })
}

/// What to write down of the storage that has its volume: a class can be pointed at other storage later. What was written stays where the
/// volume is not found, for it tells where to look.
fn stored_in(world: &World) -> Option<String> {
    let volume = &*world.volume;
    let is_here = match &world.disk {
        Disk::Seen { published, staging, .. } => published.is_some() || staging.is_some(),
        Disk::Unlisted | Disk::Unreadable(_) => false,
    };
    let storage = world.class_storage.clone().filter(|_| is_here || !volume.is_made())?;
    (volume.note(annotations::STORED_IN) != Some(&*storage)).then_some(storage)
}

/// It cannot be made as asked for. Only an object without a volume is ever told so.
fn refuse(world: &World, now: Timestamp, code: i32, why: String) -> VolumeDecision {
    let shown = Telling::of(world, now).refused(code, why.clone()).done();
    Decision::wait(VolumeWhy::Refused(why)).showing(shown)
}

/// It waits, and says so in its message too: that is what `kubectl describe` shows.
fn waiting(world: &World, now: Timestamp, why: VolumeWhy) -> VolumeDecision {
    let shown = Telling::of(world, now).message(Some(why.to_string())).done();
    Decision::wait(why).showing(shown)
}

/// What the last failure is told as, while it is retried.
fn trouble(world: &World) -> Option<String> {
    world.trouble.as_ref().map(|trouble| format!("will be tried again: {}", trouble.message))
}

/// How a copy may be used.
pub(crate) fn mode(read_only: bool) -> AccessMode {
    if read_only { AccessMode::ReadOnly } else { AccessMode::ReadWrite }
}

/// The tag that says what a snapshot is worth.
pub(crate) fn backup_tag(consistency: Consistency) -> String {
    format!("{}{consistency:?}", backup::CONSISTENCY_TAG)
}
