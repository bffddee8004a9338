//! An empty volume, or a copy of another of this node; and its growth.

use super::{VolumeDecision, VolumeEffect, Wanted, backup, refuse, trouble, waiting};
use crate::volume::status::{Telling, VolumeWhy, code};
use crate::volume::words::VolumeWords;
use crate::volume::world::{Disk, Home, Source, World};
use jiff::Timestamp;
use lifeboat_api::conditions::logical_volume::error_codes;
use lifeboat_api::topolvm::{AccessType, LogicalVolume, SnapshotPhase};
use lifeboat_engine::Decision;
use lifeboat_lvm::{Error, Volume};

/// The next step to the volume, or what to do now that it is there.
pub(super) fn make(world: &World, wanted: &Wanted, now: Timestamp) -> VolumeDecision {
    let volume = &*world.volume;
    if !volume.is_made()
        && let Some(error) = &world.refused
    {
        return refuse(world, now, code(error), error.to_string());
    }
    let (published, staging) = match seen(world, now) {
        Ok(seen) => seen,
        Err(decision) => return *decision,
    };
    match published {
        Some(published) => made(world, published, now),
        // Peers write a code for their own failures; the object's maker takes it away.
        None if !volume.is_made() && volume.was_refused() => {
            let message = volume.status.as_ref().and_then(|status| status.message.clone());
            Decision::wait(VolumeWhy::Refused(message.unwrap_or_default()))
        }
        // A crash left it before it was wiped, or complete: nobody can tell, and nobody has written to it.
        None if staging.is_some() => Decision::act([VolumeEffect::DropStaging]),
        None if volume.is_backed_up() => backup::dropped(world, now),
        None if volume.is_made() => lost(world, now),
        None if *wanted == Wanted::Copy => copy(world, now),
        None => act(world, VolumeEffect::Create { size: volume.wanted_size() }, now),
    }
}

/// What is on disk, or the step that shows it.
pub(super) fn seen(
    world: &World,
    now: Timestamp,
) -> Result<(Option<&Volume>, Option<&Volume>), Box<VolumeDecision>> {
    match &world.disk {
        Disk::Seen { published, staging, .. } => Ok((published.as_deref(), staging.as_deref())),
        Disk::Unreadable(error @ Error::NoClass(_)) if world.volume.is_made() => {
            Err(Box::new(waiting(world, now, VolumeWhy::ClassMissing(error.to_string()))))
        }
        Disk::Unreadable(error @ Error::NoClass(_)) => {
            Err(Box::new(refuse(world, now, code(error), error.to_string())))
        }
        Disk::Unlisted | Disk::Unreadable(_) => {
            let shown = Telling::of(world, now).message(trouble(world)).done();
            let list = Decision::act([VolumeEffect::List]);
            // Before the first failure there is nothing to tell.
            Err(Box::new(if world.trouble.is_some() { list.showing(shown) } else { list }))
        }
    }
}

/// An effect that makes something, with the last failure in the message while it is retried.
pub(super) fn act(world: &World, effect: VolumeEffect, now: Timestamp) -> VolumeDecision {
    let decision = Decision::act([effect]);
    match trouble(world) {
        Some(trouble) => decision.showing(Telling::of(world, now).message(Some(trouble)).done()),
        None => decision,
    }
}

fn made(world: &World, published: &Volume, now: Timestamp) -> VolumeDecision {
    let volume = &*world.volume;
    let backs_up = volume.is_read_only() && world.backup.is_some();
    let told = Telling::of(world, now).made(volume.uid(), published).message(trouble(world));
    if volume.wanted_size() > published.size && !backs_up {
        return Decision::act([VolumeEffect::Grow { size: volume.wanted_size() }]).showing(told.done());
    }
    if backs_up {
        return backup::backup(world, published, told, now);
    }
    Decision::settled().showing(told.done())
}

/// People were told of a volume that is not there any more.
pub(super) fn lost(world: &World, now: Timestamp) -> VolumeDecision {
    let volume = &*world.volume;
    if let Home::Unserved(storage) = &world.home {
        return waiting(world, now, VolumeWhy::Unserved(storage.clone()));
    }
    if volume.phase() == Some(&SnapshotPhase::Failed) {
        let message = volume.snapshot().and_then(|snapshot| snapshot.message.clone());
        return Decision::wait(VolumeWhy::Failed(message.unwrap_or_default()));
    }
    let what = if volume.is_read_only() { "snapshot" } else { "volume" };
    let why = format!(
        "the {what} {} is not on this node any more: it was removed by hand, or its disk is gone",
        volume.uid()
    );
    if matches!(volume.phase(), Some(SnapshotPhase::Pending | SnapshotPhase::Running)) {
        // What was to be backed up is gone: nobody may go on waiting for it.
        let shown = Telling::of(world, now).failed(error_codes::BACKUP_FAILED, &why).done();
        return Decision::wait(VolumeWhy::Failed(why)).showing(shown);
    }
    waiting(world, now, VolumeWhy::Failed(why))
}

fn copy(world: &World, now: Timestamp) -> VolumeDecision {
    let volume = &*world.volume;
    let Source::Found { volume: source, .. } = &world.source else {
        return waiting(world, now, VolumeWhy::SourceMissing(volume.spec.source.clone().unwrap_or_default()));
    };
    if let Some(why) = unfit(volume, source) {
        return refuse(world, now, 3, why);
    }
    if !source.is_made() {
        return waiting(
            world,
            now,
            VolumeWhy::SourceNotMade(source.metadata.name.clone().unwrap_or_default()),
        );
    }
    let read_only = volume.is_read_only();
    act(
        world,
        VolumeEffect::Copy {
            source: source.uid().to_owned(),
            size: volume.wanted_size(),
            read_only,
            short_lived: read_only && world.backup.is_some(),
        },
        now,
    )
}

fn unfit(volume: &LogicalVolume, source: &LogicalVolume) -> Option<String> {
    if !matches!(volume.spec.access_type, Some(AccessType::ReadOnly | AccessType::ReadWrite)) {
        return Some("a volume with a source needs accessType ro (a snapshot) or rw (a clone)".to_owned());
    }
    if source.spec.node_name != volume.spec.node_name {
        return Some(format!(
            "the source is on node {}, and only a backed-up snapshot can be restored on another node",
            source.spec.node_name
        ));
    }
    if source.class() != volume.class() {
        return Some(format!(
            "the source is in device class {:?}, not in {:?}",
            source.class(),
            volume.class()
        ));
    }
    None
}
