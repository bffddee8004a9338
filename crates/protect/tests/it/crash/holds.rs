//! What must hold after every single write, as far as one cluster and its stores can show it. Each is a look at one moment; what compares moments is
//! in `history`. Named by the invariant that it stands for.

use super::{Ground, SPACE, claims, group, ours, volume_of};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use lifeboat_api::ramen::{DRAction, VolumeReplicationGroup, VolumeReplicationGroupStatus, VrgState};
use lifeboat_api::replication::{ReplicationState, State, VolumeReplication};
use lifeboat_api::snapshot::VolumeSnapshot;
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_api::volsync::{ReplicationDestination, ReplicationSource};
use lifeboat_api::{Interval, annotations, finalizers, labels};
use lifeboat_protect::words::{ClaimWords as _, GroupWords as _, VolumeWords as _, Words as _, storage};
use lifeboat_testbed::{CrashStory, Scene};

/// Puts all of them on a story.
pub fn all(story: CrashStory<Ground>) -> CrashStory<Ground> {
    story
        .invariant("S4 a secondary sends nothing", a_secondary_sends_nothing)
        .invariant("S5 S16 ready is whole", ready_is_whole)
        .invariant("S6 the last copy is the last", the_last_copy_is_the_last)
        .invariant("S9 what a receiver has is there", images_are_there)
        .invariant("S10 nobody owns claims", nobody_owns_claims)
        .invariant("S11 protected is retained", protected_is_retained)
        .invariant("S12 recorded is recorded", recorded_is_recorded)
        .invariant("S13 conditions are honest", conditions_are_honest)
        .invariant("S14 the group's sync is the oldest", the_oldest_sync_counts)
        .invariant("S15 protected is in time", protected_is_in_time)
        .invariant("S20 as large as what is in it", large_enough)
        .invariant("S22 bound both ways", bound_both_ways)
        .invariant("S23 a volume is where its bytes are", where_the_bytes_are)
        .invariant("S24 held until it is undone", held_until_undone)
        .invariant("S29 S31 demoted at rest", demoted_at_rest)
}

/// The group and its status, where that speaks of what is wished now.
fn current(scene: &Scene<'_, Ground>) -> Option<(VolumeReplicationGroup, VolumeReplicationGroupStatus)> {
    let group = group(scene)?;
    let status = group.status.clone().unwrap_or_default();
    (status.observed_generation == group.metadata.generation && !group.is_going()).then_some((group, status))
}

/// The reason of a condition that is true of what is wished now.
fn says(group: &VolumeReplicationGroup, type_: &str) -> Option<String> {
    let said = group.status.as_ref()?.conditions.iter().find(|one| one.type_ == type_)?;
    let holds = said.status == "True" && said.observed_generation == group.metadata.generation;
    holds.then(|| said.reason.clone())
}

fn a_secondary_sends_nothing(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let Some((_, status)) = current(scene) else { return Ok(()) };
    if status.state != Some(VrgState::Secondary) {
        return Ok(());
    }
    if let Some(sender) = ours::<ReplicationSource>(scene).first() {
        return Err(format!("{} still sends", sender.name()));
    }
    let primary = |one: &&VolumeReplication| one.spec.replication_state == ReplicationState::Primary;
    match ours::<VolumeReplication>(scene).iter().find(primary) {
        Some(one) => Err(format!("{} is still primary", one.name())),
        None => Ok(()),
    }
}

fn ready_is_whole(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let Some((group, status)) = current(scene) else { return Ok(()) };
    let acted = group.wants_primary() && group.action().is_some() && !group.in_final_sync();
    if !acted || says(&group, "ClusterDataReady").is_none() || status.primary_epoch.is_none() {
        return Ok(());
    }
    let promised = scene.world.promised.lock().clone();
    if promised.is_empty() {
        return Err("there was nothing to restore, and it says that all is there".into());
    }
    for (claim, what) in promised {
        let found = scene.get::<PersistentVolumeClaim>(SPACE, &claim).ok_or(format!("{claim} is missing"))?;
        let image =
            found.spec.as_ref().and_then(|spec| spec.data_source.as_ref()).map(|source| source.name.clone());
        let handle =
            volume_of(scene, &found).and_then(|volume| volume.handle().map(|(_, handle)| handle.to_owned()));
        if image.as_ref() != Some(&what) && handle.as_ref() != Some(&what) {
            return Err(format!("{claim} is made of {image:?} and {handle:?}, not of {what}"));
        }
    }
    Ok(())
}

fn the_last_copy_is_the_last(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let Some((group, status)) = current(scene) else { return Ok(()) };
    if !status.final_sync_complete {
        return Ok(());
    }
    let token = format!(
        "vrg-final-sync-{}-{}",
        status.primary_epoch.unwrap_or(0),
        group.metadata.generation.unwrap_or(0)
    );
    let senders = ours::<ReplicationSource>(scene);
    if senders.is_empty() {
        return Err("nobody sends".into());
    }
    for sender in senders {
        let said = sender.status.clone().unwrap_or_default();
        let echo = said.external.get("echo").cloned();
        if said.last_manual_sync.as_ref() != Some(&token) || echo.as_ref() != Some(&token) {
            return Err(format!(
                "{} was copied for {:?}, not for {token}",
                sender.name(),
                said.last_manual_sync
            ));
        }
    }
    match scene.list::<Pod>().iter().find(|pod| pod.space() == SPACE) {
        Some(pod) => Err(format!("{} still writes", pod.name())),
        None => Ok(()),
    }
}

fn images_are_there(scene: &Scene<'_, Ground>) -> Result<(), String> {
    for receiver in ours::<ReplicationDestination>(scene) {
        let image = receiver.status.as_ref().and_then(|status| status.latest_image.as_ref());
        let Some(image) = image else { continue };
        if scene.get::<VolumeSnapshot>(SPACE, &image.name).is_none() {
            return Err(format!("the image {} of {} is gone", image.name, receiver.name()));
        }
        // Brought back only to an image that nobody deletes meanwhile, and only because somebody asked for a failover.
        let Some(back) = receiver.note(annotations::ROLL_BACK_TO) else { continue };
        let kept = scene.get::<VolumeSnapshot>(SPACE, back);
        if kept.is_none_or(|kept| kept.label(labels::VOLSYNC_DO_NOT_DELETE) != Some("true")) {
            return Err(format!("{} is brought back to {back}, which nobody keeps", receiver.name()));
        }
    }
    Ok(())
}

fn nobody_owns_claims(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let owned = |claim: &&PersistentVolumeClaim| {
        claim.metadata.owner_references.as_ref().is_some_and(|all| !all.is_empty())
    };
    match claims(scene).iter().find(owned) {
        Some(claim) => Err(format!("{} has an owner", claim.name())),
        None => Ok(()),
    }
}

/// What is marked as protected is kept, and a volume of ours is never marked without being kept.
fn protected_is_retained(scene: &Scene<'_, Ground>) -> Result<(), String> {
    for claim in claims(scene).iter().filter(|claim| claim.note(annotations::VR_PROTECTED).is_some()) {
        let going = group(scene).is_none_or(|group| group.is_going());
        let volume = volume_of(scene, claim).ok_or("no volume")?;
        // The undo gives the policy back before it takes the mark off the claim.
        if !volume.is_retained() && !going && !claim.is_going() && claim.label("app") == Some("web") {
            return Err(format!("{} is protected and its volume is not kept", claim.name()));
        }
    }
    for volume in scene.list::<PersistentVolume>() {
        let marked = volume.note(annotations::VR_RETAINED).is_some()
            || volume.note(annotations::VOLSYNC_RETAINED).is_some();
        if marked && !volume.is_retained() {
            return Err(format!("{} is marked and not kept", volume.name()));
        }
    }
    Ok(())
}

/// Who says that all is recorded has it in every store, at its epoch and as it is.
fn recorded_is_recorded(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let Some((group, status)) = current(scene) else { return Ok(()) };
    if says(&group, "ClusterDataProtected").is_none_or(|reason| reason == "Unused") {
        return Ok(());
    }
    let stores = group.spec.s3_profiles.iter().filter(|name| *name != lifeboat_api::ramen::NO_S3);
    for store in stores {
        let record =
            scene.world.stores.record(store, SPACE, "web").ok_or(format!("{store} has no record"))?;
        if Some(record.epoch) != status.primary_epoch {
            return Err(format!(
                "{store} has epoch {} and the group {:?}",
                record.epoch, status.primary_epoch
            ));
        }
        for entry in status.protected_pvcs.iter().filter(|entry| !entry.protected_by_vol_sync) {
            let name = entry.name.as_deref().unwrap_or_default();
            let Some(claim) = scene.get::<PersistentVolumeClaim>(SPACE, name) else { continue };
            let recorded = record.claims.iter().find(|one| one.name() == name);
            let recorded = recorded.ok_or(format!("{store} has no record of {name}"))?;
            if recorded.spec != claim.spec {
                return Err(format!("{store} has {name} as it was"));
            }
            let volume = record.volumes.iter().find(|one| Some(one.name()) == claim.volume_name());
            let handle = volume.and_then(|volume| volume.handle().map(|(_, handle)| handle.to_owned()));
            let has = volume_of(scene, &claim)
                .and_then(|volume| volume.handle().map(|(_, handle)| handle.to_owned()));
            if handle != has {
                return Err(format!("{store} has the volume {handle:?} for {name}, not {has:?}"));
            }
        }
    }
    Ok(())
}

/// No condition speaks of a wish to come, and who says that he has a role has volumes that have it.
fn conditions_are_honest(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let Some(group) = group(scene) else { return Ok(()) };
    let status = group.status.clone().unwrap_or_default();
    let of_claims = status.protected_pvcs.iter().flat_map(|entry| &entry.conditions);
    if let Some(one) = status
        .conditions
        .iter()
        .chain(of_claims)
        .find(|one| one.observed_generation > group.metadata.generation)
    {
        return Err(format!("{} speaks of what is not wished yet", one.type_));
    }
    let failed = ["Error", "UploadError", "UnknownError"];
    if let Some(one) =
        status.conditions.iter().find(|one| one.status == "True" && failed.contains(&one.reason.as_str()))
    {
        return Err(format!("{} is true for the reason {}", one.type_, one.reason));
    }
    let Some((_, status)) = current(scene) else { return Ok(()) };
    let wanted = match status.state {
        Some(VrgState::Primary) => State::Primary,
        Some(VrgState::Secondary) => State::Secondary,
        _ => return Ok(()),
    };
    if says(&group, "DataReady").is_none() {
        return Err("it has its role and its data is not ready".into());
    }
    for entry in status.protected_pvcs.iter().filter(|entry| !entry.protected_by_vol_sync) {
        let name = entry.name.as_deref().unwrap_or_default();
        let claim = scene.get::<PersistentVolumeClaim>(SPACE, name);
        if claim.is_none_or(|claim| claim.is_going() || claim.label("app") != Some("web")) {
            continue;
        }
        let one = scene.get::<VolumeReplication>(SPACE, name).ok_or(format!("{name} has no replication"))?;
        if one.status.as_ref().and_then(|status| status.state.clone()).as_ref() != Some(&wanted) {
            return Err(format!("{name} is not {wanted:?}"));
        }
    }
    Ok(())
}

fn the_oldest_sync_counts(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let Some((group, status)) = current(scene) else { return Ok(()) };
    let times: Option<Vec<_>> =
        status.protected_pvcs.iter().map(|entry| entry.last_sync_time.clone()).collect();
    let oldest = times.and_then(|times| times.into_iter().min()).filter(|_| group.wants_primary());
    let shown = (status.last_group_sync_time, status.last_update_time);
    match shown {
        (time, _) if time != oldest => {
            Err(format!("the group was synced at {time:?}, its claims at {oldest:?}"))
        }
        (Some(time), Some(written)) if time > written => Err("it was synced in the future".into()),
        _ => Ok(()),
    }
}

fn protected_is_in_time(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let Some((group, status)) = current(scene) else { return Ok(()) };
    if !group.wants_primary() || says(&group, "DataProtected").is_none_or(|reason| reason == "Unused") {
        return Ok(());
    }
    let every = group
        .spec
        .async_
        .as_ref()
        .and_then(|mode| Interval::of(&mode.scheduling_interval))
        .ok_or("no interval")?;
    let every = SignedDuration::from_secs(every.seconds());
    let synced = status.last_group_sync_time.ok_or("protected, and never synced")?;
    let written = status.last_update_time.ok_or("never written")?;
    match written.0.duration_since(synced.0) > every * 2 {
        true => Err(format!("protected, with a copy of {}", synced.0)),
        false => Ok(()),
    }
}

/// A claim that is made of an image has room for it, and one that is made of a volume asks for no more than that has.
fn large_enough(scene: &Scene<'_, Ground>) -> Result<(), String> {
    for claim in claims(scene) {
        let spec = claim.spec.clone().unwrap_or_default();
        let asked = storage(spec.resources.as_ref().and_then(|all| all.requests.as_ref()));
        let image = spec.data_source.and_then(|source| scene.get::<VolumeSnapshot>(SPACE, &source.name));
        let least = image
            .and_then(|image| image.status?.restore_size)
            .map(|size| [("storage".to_owned(), size)].into());
        if asked < storage(least.as_ref()) {
            return Err(format!("{} is smaller than the image it is made of", claim.name()));
        }
        let has = volume_of(scene, &claim).and_then(|volume| volume.spec?.capacity);
        if claim.note(annotations::RESTORE).is_some() && has.is_some() && asked > storage(has.as_ref()) {
            return Err(format!("{} asks for more than its volume has", claim.name()));
        }
    }
    Ok(())
}

fn bound_both_ways(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let volumes = scene.list::<PersistentVolume>();
    for claim in claims(scene).iter().filter(|claim| claim.is_bound()) {
        let mut named = volumes.iter().filter(|volume| volume.claim_uid() == claim.uid());
        let mine = named.next().ok_or(format!("{} is bound, and no volume is to it", claim.name()))?;
        if Some(mine.name()) != claim.volume_name() || named.next().is_some() {
            return Err(format!("{} is not bound to one volume", claim.name()));
        }
    }
    Ok(())
}

fn where_the_bytes_are(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let local = scene.list::<LogicalVolume>();
    for volume in scene.list::<PersistentVolume>() {
        let Some((_, handle)) = volume.handle() else { continue };
        let Some(bytes) = local.iter().find(|one| one.uid() == handle) else { continue };
        let affinity = volume.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref()?.required.as_ref());
        let terms = affinity.into_iter().flat_map(|required| &required.node_selector_terms);
        let named = terms.flat_map(|term| term.match_expressions.iter().flatten());
        let nodes: Vec<String> = named.flat_map(|one| one.values.clone().unwrap_or_default()).collect();
        if nodes != [bytes.spec.node_name.clone()] {
            return Err(format!(
                "{} is tied to {nodes:?}, its bytes are on {}",
                volume.name(),
                bytes.spec.node_name
            ));
        }
    }
    Ok(())
}

/// Our finalizer stays on a claim until its replication is gone, and on the group until nothing of it is left; a stranger's is never touched.
fn held_until_undone(scene: &Scene<'_, Ground>) -> Result<(), String> {
    // What a group leaves that was deleted without the order to end protection goes on until it comes back.
    let left = |name: &str| {
        let marked = |volume: &PersistentVolume| {
            volume.note(annotations::ORPHANED_FROM).is_some()
                && volume.claim_key().is_some_and(|claim| claim.name == name)
        };
        scene.list::<PersistentVolume>().iter().any(marked)
    };
    for one in ours::<VolumeReplication>(scene).iter().filter(|one| !left(one.name())) {
        let claim = scene.get::<PersistentVolumeClaim>(SPACE, one.name());
        if claim.is_none_or(|claim| !claim.has_finalizer(finalizers::PVC_VR)) {
            return Err(format!("{} is replicated, and its claim is not held", one.name()));
        }
    }
    for claim in claims(scene).iter().filter(|claim| claim.label("held") == Some("elsewhere")) {
        if !claim.has_finalizer("example.com/held") {
            return Err(format!("somebody else's finalizer was taken off {}", claim.name()));
        }
    }
    if group(scene).is_some() {
        return Ok(());
    }
    let held = |claim: &&PersistentVolumeClaim| {
        claim.has_finalizer(finalizers::PVC_VR) || claim.has_finalizer(finalizers::PVC_VOLSYNC)
    };
    if let Some(claim) = claims(scene).iter().find(held) {
        return Err(format!("{} is held by nobody", claim.name()));
    }
    let left = [
        ours::<VolumeReplication>(scene)
            .iter()
            .find(|one| !left(one.name()))
            .map(|one| one.name().to_owned()),
        ours::<ReplicationSource>(scene).first().map(|one| one.name().to_owned()),
        ours::<ReplicationDestination>(scene).first().map(|one| one.name().to_owned()),
    ];
    match left.into_iter().flatten().next() {
        Some(left) => Err(format!("{left} is left")),
        None => Ok(()),
    }
}

/// Only a group that asks for it is demoted, and only while nobody uses the claim.
fn demoted_at_rest(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let Some(group) = group(scene) else { return Ok(()) };
    for replication in ours::<VolumeReplication>(scene) {
        if replication.spec.replication_state != ReplicationState::Secondary {
            continue;
        }
        if scene.list::<Pod>().iter().any(|pod| pod.space() == SPACE) {
            return Err(format!("{} was demoted while it is in use", replication.name()));
        }
        if group.metadata.generation == Some(1) && group.wants_primary() {
            return Err(format!("{} was demoted and nobody asked", replication.name()));
        }
        let claim = scene.get::<PersistentVolumeClaim>(SPACE, replication.name());
        let listed = claim.is_some_and(|claim| !claim.is_going());
        if listed && group.wants_secondary() && group.action() != Some(&DRAction::Failover) {
            return Err(format!("{} was demoted, and its user has not let go of it", replication.name()));
        }
    }
    Ok(())
}
