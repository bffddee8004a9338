//! What must hold from one write to the next: what only grows, what never goes, what is never thrown away unasked.

use super::{Ground, SPACE, claims, group, ours};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolume;
use lifeboat_api::annotations;
use lifeboat_api::ramen::{DRAction, VrgState};
use lifeboat_api::replication::VolumeReplication;
use lifeboat_api::volsync::ReplicationDestination;
use lifeboat_protect::words::{ClaimWords as _, GroupWords as _, VolumeWords as _, Words as _, storage};
use lifeboat_testbed::{CrashStory, Scene};
use std::collections::{BTreeMap, BTreeSet};

/// What was seen before.
#[derive(Default)]
pub struct Memory {
    epochs: BTreeMap<String, i64>,
    thrown: BTreeSet<String>,
    kept: BTreeSet<String>,
    receivers: BTreeSet<String>,
    bound: BTreeMap<String, String>,
    given_up: BTreeSet<String>,
    synced: Option<(i64, Timestamp)>,
    sizes: BTreeMap<String, i64>,
    reserved: BTreeMap<String, String>,
    primary: bool,
}

/// Puts all of them on a story.
pub fn all(story: CrashStory<Ground>) -> CrashStory<Ground> {
    story
        .invariant("S3 S4 epochs only grow", epochs_only_grow)
        .invariant("S7 never from an older record", never_from_an_older_record)
        .invariant("S8 nothing is thrown away unasked", nothing_is_thrown_away_unasked)
        .invariant("S9 the last copy stays", the_last_copy_stays)
        .invariant("S10 the application keeps its volumes", the_application_keeps_its_volumes)
        .invariant("S14 syncs do not go back", syncs_do_not_go_back)
        .invariant("S20 sizes never shrink", sizes_never_shrink)
        .invariant("S22 freed before it is bound anew", freed_before_bound_anew)
        .invariant("S24 records go before the group", records_go_before_the_group)
}

fn epochs_only_grow(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let mut seen: Vec<(String, i64)> = Vec::new();
    for store in ["east", "west"] {
        let record = scene.world.stores.record(store, SPACE, "web");
        seen.extend(record.map(|record| (store.to_owned(), record.epoch)));
    }
    if let Some(status) = group(scene).and_then(|group| group.status) {
        seen.extend(status.epoch.map(|epoch| ("the group".to_owned(), epoch)));
    }
    let mut memory = scene.world.memory.lock();
    for (what, epoch) in seen {
        let before = memory.epochs.insert(what.clone(), epoch).unwrap_or(0);
        if before > epoch {
            return Err(format!("{what} went from epoch {before} to {epoch}"));
        }
    }
    Ok(())
}

fn never_from_an_older_record(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let old = scene.world.old.lock();
    let volumes = scene.list::<PersistentVolume>();
    let handle = |volume: &PersistentVolume| volume.handle().map(|(_, handle)| handle.to_owned());
    match volumes.iter().filter_map(handle).find(|handle| old.contains(handle)) {
        Some(handle) => Err(format!("{handle} is of an older record than the newest")),
        None => Ok(()),
    }
}

fn nothing_is_thrown_away_unasked(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let mut now: BTreeSet<String> = BTreeSet::new();
    let resyncs = ours::<VolumeReplication>(scene).into_iter().filter(|one| one.spec.auto_resync);
    now.extend(resyncs.map(|one| format!("replication {}", one.name())));
    let back = ours::<ReplicationDestination>(scene).into_iter();
    now.extend(
        back.filter(|one| one.note(annotations::ROLL_BACK_TO).is_some())
            .map(|one| format!("receiver {}", one.name())),
    );
    let asked = group(scene).is_some_and(|group| group.action() == Some(&DRAction::Failover));
    let mut memory = scene.world.memory.lock();
    let new = now.difference(&memory.thrown).next().cloned();
    memory.thrown = now;
    match new {
        Some(new) if !asked => {
            Err(format!("{new} throws away what is there, and nobody asked for a failover"))
        }
        _ => Ok(()),
    }
}

fn the_last_copy_stays(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let volumes = scene.list::<PersistentVolume>();
    let receivers: BTreeSet<String> =
        ours::<ReplicationDestination>(scene).iter().map(|one| one.name().to_owned()).collect();
    let secondary = group(scene).is_some_and(|group| group.wants_secondary() && !group.is_going());
    let made = |name: &str| claims(scene).iter().any(|claim| claim.name() == name);
    let mut memory = scene.world.memory.lock();
    if let Some(gone) = memory.kept.iter().find(|name| !volumes.iter().any(|volume| volume.name() == *name)) {
        return Err(format!("the volume {gone} is gone"));
    }
    let marked = |volume: &&PersistentVolume| {
        [annotations::VR_RETAINED, annotations::VOLSYNC_RETAINED]
            .iter()
            .any(|mark| volume.note(mark).is_some())
    };
    memory.kept.extend(volumes.iter().filter(marked).map(|volume| volume.name().to_owned()));
    let gone: Vec<String> = memory.receivers.difference(&receivers).cloned().collect();
    memory.receivers = receivers;
    for name in gone {
        if secondary {
            return Err(format!("the receiver {name} went from a secondary"));
        }
        if group(scene).is_some_and(|group| !group.is_going()) && !made(&name) {
            return Err(format!("the receiver {name} went before there is a claim of its data"));
        }
    }
    Ok(())
}

/// From the deletion of a primary to its end, claims stay the same ones and bound.
fn the_application_keeps_its_volumes(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let ends = group(scene).is_none_or(|group| group.is_going());
    let mut memory = scene.world.memory.lock();
    memory.given_up = scene.world.given_up.lock().clone();
    if !ends {
        let bound = claims(scene).into_iter().filter(|claim| claim.is_bound() && !claim.is_going());
        memory.bound = bound.map(|claim| (claim.name().to_owned(), claim.uid().to_owned())).collect();
        return Ok(());
    }
    for (name, uid) in memory.bound.iter().filter(|(name, _)| !memory.given_up.contains(*name)) {
        let same = claims(scene).into_iter().find(|claim| claim.name() == name && claim.uid() == uid);
        if same.is_none_or(|claim| !claim.is_bound() || claim.is_going()) {
            return Err(format!("{name} was lost with its group"));
        }
    }
    Ok(())
}

fn syncs_do_not_go_back(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let Some(status) = group(scene).and_then(|group| group.status) else { return Ok(()) };
    let (Some(epoch), Some(time)) = (status.primary_epoch, status.last_group_sync_time) else {
        return Ok(());
    };
    let before = scene.world.memory.lock().synced.replace((epoch, time.0));
    match before {
        Some((known, before)) if known == epoch && before > time.0 => {
            Err(format!("synced at {before}, and then at {}", time.0))
        }
        _ => Ok(()),
    }
}

fn sizes_never_shrink(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let mut now: Vec<(String, i64)> = Vec::new();
    for volume in scene.list::<PersistentVolume>() {
        let size = storage(volume.spec.as_ref().and_then(|spec| spec.capacity.as_ref()));
        now.push((format!("volume {}", volume.name()), size));
    }
    for claim in claims(scene) {
        let size = storage(claim.status.as_ref().and_then(|status| status.capacity.as_ref()));
        now.push((format!("claim {}", claim.uid()), size));
    }
    let mut memory = scene.world.memory.lock();
    for (what, size) in now {
        let before = memory.sizes.insert(what.clone(), size).unwrap_or(0);
        if before > size {
            return Err(format!("{what} shrank from {before} to {size}"));
        }
    }
    Ok(())
}

fn freed_before_bound_anew(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let volumes = scene.list::<PersistentVolume>();
    let mut memory = scene.world.memory.lock();
    for volume in &volumes {
        let uid = volume.claim_uid().to_owned();
        let before = memory.reserved.insert(volume.name().to_owned(), uid.clone()).unwrap_or_default();
        if !before.is_empty() && !uid.is_empty() && before != uid {
            return Err(format!("{} went from one claim to another", volume.name()));
        }
    }
    Ok(())
}

/// Who goes as primary has removed its records first; who goes as anything else leaves them.
fn records_go_before_the_group(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let mut memory = scene.world.memory.lock();
    let recorded = !scene.world.stores.shelf.lock().records.is_empty();
    match group(scene) {
        Some(group) => {
            let status = group.status.clone().unwrap_or_default();
            let was = memory.primary;
            // Only who is told to end protection removes records.
            let unmarked = group.is_going() && group.note(annotations::END_PROTECTION) != Some("true");
            let primary = was || status.state == Some(VrgState::Primary);
            memory.primary = group.wants_primary() && primary && !unmarked;
            Ok(())
        }
        None if memory.primary && recorded => Err("the group went and left its records".into()),
        None => Ok(()),
    }
}
