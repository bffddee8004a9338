//! A volume that is filled from a backup: into a staging volume, which gets its real name only when it is complete.

use super::operation::{Stand, advance};
use super::{VolumeDecision, VolumeEffect, make, refuse, trouble, waiting};
use crate::handle::Handle;
use crate::volume::status::{Telling, VolumeWhy, code};
use crate::volume::words::VolumeWords;
use crate::volume::world::{Home, Source, World};
use jiff::Timestamp;
use lifeboat_api::topolvm::{SnapshotOperation, SnapshotPhase};
use lifeboat_engine::Decision;

pub(super) fn restore(world: &World, handle: &Handle, now: Timestamp) -> VolumeDecision {
    let volume = &*world.volume;
    if !volume.is_made()
        && let Some(error) = &world.refused
    {
        return refuse(world, now, code(error), error.to_string());
    }
    let (published, staging) = match make::seen(world, now) {
        Ok(seen) => seen,
        Err(decision) => return *decision,
    };
    if let Some(published) = published {
        return complete(world, published, now);
    }
    // The backup is older than what was written to the volume since: it never takes its place unasked.
    let was_restored = volume.phase() == Some(&SnapshotPhase::Succeeded) && !volume.asks_for_retry();
    let is_unseen = staging.is_none() && volume.is_made() && matches!(world.home, Home::Unserved(_));
    if was_restored || is_unseen {
        return make::lost(world, now);
    }
    if let Some(decision) = source_not_ready(world, handle, now) {
        return decision;
    }
    let Some(staging) = staging else {
        return make::act(world, VolumeEffect::Stage { size: volume.wanted_size() }, now);
    };
    let told = Telling::of(world, now).made(volume.uid(), staging).message(trouble(world));
    if volume.phase().is_none() {
        // The record that it is being restored and the word that it exists are one write.
        return Decision::wait(VolumeWhy::Recording)
            .showing(told.pending(SnapshotOperation::Restore, None).done());
    }
    if volume.wanted_size() > staging.size {
        return Decision::act([VolumeEffect::Grow { size: volume.wanted_size() }]).showing(told.done());
    }
    if !world.persistent_volume {
        let why = VolumeWhy::PersistentVolumeMissing(volume.spec.name.clone());
        let shown = told.message(Some(why.to_string())).done();
        return Decision::wait(why).showing(shown);
    }
    match advance(world, SnapshotOperation::Restore, told, None, now) {
        Stand::Next(decision) => *decision,
        Stand::Moved(..) if world.mount.is_some() => Decision::act([VolumeEffect::Unmount]),
        Stand::Moved(..) => Decision::act([VolumeEffect::Publish]),
    }
}

/// Published means complete: only that is ever renamed to the UID.
fn complete(world: &World, published: &lifeboat_lvm::Volume, now: Timestamp) -> VolumeDecision {
    let volume = &*world.volume;
    let told = Telling::of(world, now).made(volume.uid(), published).message(trouble(world));
    if volume.phase() != Some(&SnapshotPhase::Succeeded) {
        let moved = world.job.as_ref().and_then(|job| Some((job.progress, job.outcome.as_ref()?)));
        let told = match moved {
            Some((progress, (ended, Ok(moved)))) => told.succeeded(moved, *ended, &progress),
            // It was published by a process that died before it could say so.
            _ => told.restored_earlier(),
        };
        return Decision::wait(VolumeWhy::Recording).showing(told.done());
    }
    if world.job.is_some() {
        return Decision::act([VolumeEffect::Stop]);
    }
    if world.mount.is_some() {
        return Decision::act([VolumeEffect::Unmount]);
    }
    if volume.wanted_size() > published.size {
        return Decision::act([VolumeEffect::Grow { size: volume.wanted_size() }]).showing(told.done());
    }
    Decision::settled().showing(told.done())
}

/// A restore begins only from a backup that is complete. One whose LogicalVolume is not in this cluster is found by its handle.
fn source_not_ready(world: &World, handle: &Handle, now: Timestamp) -> Option<VolumeDecision> {
    let Source::Found { volume: source, .. } = &world.source else { return None };
    if source.uid() != handle.volume() || source.is_backed_up() {
        return None;
    }
    let name = source.metadata.name.clone().unwrap_or_default();
    Some(match source.phase() {
        Some(SnapshotPhase::Failed) if world.volume.is_made() => {
            waiting(world, now, VolumeWhy::SourceNotBackedUp(name, "Failed".to_owned()))
        }
        Some(SnapshotPhase::Failed) => refuse(
            world,
            now,
            9,
            format!("the backup of {name} failed, so there is nothing complete to restore"),
        ),
        phase => {
            let phase = phase.map_or_else(|| "not begun".to_owned(), ToString::to_string);
            waiting(world, now, VolumeWhy::SourceNotBackedUp(name, phase))
        }
    })
}
