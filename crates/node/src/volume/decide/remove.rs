//! Finalization: stop what runs, release the mount, remove what is on disk, and only then let the object go.

use super::{VolumeDecision, VolumeEffect, make, trouble, waiting};
use crate::volume::status::{Telling, VolumeWhy};
use crate::volume::words::VolumeWords;
use crate::volume::world::{Disk, Home, World};
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
    if let Disk::Unreadable(error @ Error::NoClass(_)) = &world.disk {
        return match world.home {
            // Another class of this node has it, or nothing has.
            Home::Served if world.volume.is_made() => shown(Decision::act([VolumeEffect::Release])),
            _ if world.volume.is_abandoned() => shown(Decision::act([VolumeEffect::Release])),
            // A class that is gone says nothing about the volume: dropping the finalizer now would leak it.
            _ => waiting(world, now, VolumeWhy::ClassMissing(error.to_string())),
        };
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
    // Looking at other storage than it was made in finds nothing, and says nothing.
    let may_be_there = world.volume.is_made() && !world.volume.is_cleaned() && !world.volume.is_abandoned();
    if let (Home::Unserved(storage), true) = (&world.home, may_be_there) {
        return waiting(world, now, VolumeWhy::Unserved(storage.clone()));
    }
    shown(Decision::act([VolumeEffect::Release]))
}
