//! A snapshot whose class asks for a backup: its bytes go to the store while the volume it was taken of is in use, then the local snapshot
//! is removed.

use super::operation::{Stand, advance};
use super::{VolumeDecision, VolumeEffect};
use crate::volume::status::{Telling, VolumeWhy};
use crate::volume::words::VolumeWords;
use crate::volume::world::{Disk, World};
use jiff::Timestamp;
use lifeboat_api::conditions::logical_volume as names;
use lifeboat_api::conditions::logical_volume::error_codes;
use lifeboat_api::finalizers;
use lifeboat_api::topolvm::{SnapshotOperation, SnapshotPhase};
use lifeboat_engine::Decision;
use lifeboat_lvm::Volume;

/// Says on a volume what its snapshot is worth.
pub const CONSISTENCY_TAG: &str = "lifeboat.consistency=";

pub(super) fn backup(world: &World, published: &Volume, told: Telling, now: Timestamp) -> VolumeDecision {
    match world.volume.phase() {
        Some(SnapshotPhase::Succeeded) => return tidy(world, told),
        // It slows its origin down and is worth nothing once it has overflowed, so it is not kept for another try.
        Some(SnapshotPhase::Failed) if published.is_copy_on_write() => return tidy(world, told),
        Some(SnapshotPhase::Pending | SnapshotPhase::Running) if published.is_invalidated() => {
            return told_overflowed(told);
        }
        _ => {}
    }
    let worth = published.tags.iter().find_map(|tag| tag.strip_prefix(CONSISTENCY_TAG));
    // A crash between the snapshot and its tag leaves the question open, and then the weaker answer is the true one.
    let worth = Some(worth.unwrap_or("Fuzzy"));
    match advance(world, SnapshotOperation::Backup, told, worth, now) {
        Stand::Next(decision) => *decision,
        Stand::Moved(..) if world.mount.is_some() => Decision::act([VolumeEffect::Unmount]),
        Stand::Moved(moved, ended, progress) => {
            let told = Telling::of(world, now)
                .made(world.volume.uid(), published)
                .succeeded(moved, ended, &progress);
            Decision::act([VolumeEffect::Stop]).showing(told.done())
        }
    }
}

/// The backup is complete: nothing local is needed any more.
fn tidy(world: &World, told: Telling) -> VolumeDecision {
    if world.job.is_some() {
        return Decision::act([VolumeEffect::Stop]);
    }
    if world.mount.is_some() {
        return Decision::act([VolumeEffect::Unmount]);
    }
    if let Disk::Seen { published: Some(_), .. } = &world.disk {
        return Decision::act([VolumeEffect::DropLocal]).showing(told.done());
    }
    Decision::settled()
}

/// The local snapshot is gone and said to be: the node has no more part in this object.
pub(super) fn cleaned(world: &World) -> VolumeDecision {
    let volume = &*world.volume;
    let kept_by_store = volume.has_finalizer(finalizers::REMOTE_SNAPSHOT);
    if kept_by_store && volume.has_finalizer(finalizers::LOGICAL_VOLUME) {
        return Decision::act([VolumeEffect::Release]);
    }
    Decision::settled()
}

fn told_overflowed(told: Telling) -> VolumeDecision {
    let why = "the volume changed more during its backup than the copy-on-write snapshot could hold; take a new snapshot, or use a thin class";
    let shown = told.failed(error_codes::BACKUP_FAILED, why).done();
    Decision::wait(VolumeWhy::Failed(why.to_owned())).showing(shown)
}

/// The backup is complete and the local snapshot is gone: say so.
pub(super) fn dropped(world: &World, now: Timestamp) -> VolumeDecision {
    let told = Telling::of(world, now);
    let shown = told.message(Some("LVM snapshot removed after backup completion".to_owned())).condition(
        names::TYPE_LVM_SNAPSHOT_CLEANED,
        true,
        names::REASON_LVM_SNAPSHOT_CLEANED,
        "the backup is complete, and the local snapshot was removed",
    );
    Decision::settled().showing(shown.done())
}
