//! Finalization: stop what runs, release the mount, remove what is on disk, and only then let the object go.

use super::{VolumeDecision, VolumeEffect, make, trouble, waiting};
use crate::volume::status::{Telling, VolumeWhy};
use crate::volume::words::VolumeWords;
use crate::volume::world::{Disk, World};
use jiff::Timestamp;
use lifeboat_api::finalizers;
use lifeboat_engine::Decision;
use lifeboat_lvm::Error;

pub(super) fn remove(world: &World, now: Timestamp) -> VolumeDecision {
    if !world.volume.has_finalizer(finalizers::LOGICAL_VOLUME) {
        return Decision::settled();
    }
    let shown = |decision: VolumeDecision| match trouble(world) {
        Some(trouble) => decision.showing(Telling::of(world, now).message(Some(trouble)).done()),
        None => decision,
    };
    if world.job.is_some() {
        return Decision::act([VolumeEffect::Stop]);
    }
    if world.mount.is_some() {
        return shown(Decision::act([VolumeEffect::Unmount]));
    }
    // A class that is gone says nothing about the volume: dropping the finalizer now would leak it.
    if let Disk::Unreadable(error @ Error::NoClass(_)) = &world.disk {
        return waiting(world, now, VolumeWhy::ClassMissing(error.to_string()));
    }
    let (published, staging) = match make::seen(world, now) {
        Ok(seen) => seen,
        Err(decision) => return *decision,
    };
    if let Disk::Seen { dependants, .. } = &world.disk
        && !dependants.is_empty()
    {
        return waiting(world, now, VolumeWhy::Needed(dependants.clone()));
    }
    if published.is_some() || staging.is_some() {
        return shown(Decision::act([VolumeEffect::Remove]));
    }
    shown(Decision::act([VolumeEffect::Release]))
}
