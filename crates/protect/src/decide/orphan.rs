//! A group that is deleted without the order to end protection, and one that comes back after that. Its namespace was deleted, or somebody deleted
//! the group by hand: nobody said that the data may go. Volumes and records are kept and say whose they are; nothing waits for a person or for a
//! store. A group that comes back and finds all its claims goes on. One that does not is orphaned: an empty claim of the same name must not be
//! copied over what the peer has, so it waits for a choice.

use crate::decide::plan::{Plan, Said};
use crate::decide::{Effect, GroupDecision, epoch, restore, undo, waiting};
use crate::ledger::{LedgerError, Tried};
use crate::restored;
use crate::settings::UnmarkedDeletion;
use crate::status::Telling;
use crate::why::Wait;
use crate::words::{ClaimWords as _, GroupWords as _, OwnedWords as _, VolumeWords as _, Words as _};
use crate::world::{Claim, World};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::VolumeResourceRequirements;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec};
use kube::api::ObjectMeta;
use lifeboat_api::conditions::vrg as words;
use lifeboat_api::ramen::ProtectedPvc;
use lifeboat_api::{annotations, finalizers};
use lifeboat_engine::Decision;
use lifeboat_engine::conditions::find;
use std::collections::BTreeSet;

/// How long a group that is orphaned waits for stores and drivers before it goes without them.
const AT_MOST: SignedDuration = SignedDuration::from_secs(60);
/// How often a store is tried.
const TRIES: u32 = 3;

/// Whether the deletion of the group is not the end of its protection.
pub fn is_unmarked(world: &World) -> bool {
    let marked = world.group.note(annotations::END_PROTECTION) == Some("true");
    !marked && world.config.unmarked_deletion == UnmarkedDeletion::Orphan
}

/// The next step of a group that is deleted without the order to end protection.
pub fn orphan(world: &World, now: Timestamp) -> GroupDecision {
    if !world.group.has_finalizer(finalizers::VRG) {
        return Decision::settled();
    }
    let mut plan = Plan::default();
    // One that an older controller made the group's own would be deleted with it.
    let owned = |claim: &&Claim| {
        claim.claim.is_owned_by(&world.key()) || claim.claim.owner().is_none() && undo::is_owned(claim)
    };
    for claim in world.claims.iter().filter(owned) {
        leave(world, now, &mut plan, claim);
    }
    // What sends by the name of a claim would send whatever comes to have that name.
    for source in world.sources.values().filter(|source| source.is_owned_by(&world.key())) {
        if !source.is_going() && !plan.effects.iter().any(|effect| stops(effect, source.name())) {
            let claim = source.name().to_owned();
            plan.act_for(world, now, source.name(), Effect::StopSending { claim });
        }
    }
    if plan.effects.is_empty() && plan.waits.is_empty() {
        mark_stores(world, now, &mut plan);
    }
    match (plan.effects.is_empty(), plan.waits.is_empty()) {
        (true, true) => Decision::act([Effect::Release]),
        (false, _) => Decision::act(plan.effects),
        (true, false) => {
            let status = Telling::of(world, now).leaving(&plan).done();
            waiting(plan).showing(status)
        }
    }
}

fn stops(effect: &Effect, name: &str) -> bool {
    matches!(effect, Effect::StopSending { claim } if claim == name)
}

/// When nothing is waited for any more.
fn deadline(world: &World) -> Timestamp {
    let deleted = world.group.metadata.deletion_timestamp.as_ref().map_or(Timestamp::MIN, |time| time.0);
    deleted.checked_add(AT_MOST).unwrap_or(Timestamp::MIN)
}

/// A claim is let go. Its volume is kept and says who left it; its replication goes on unless the claim goes too; its sender stops.
fn leave(world: &World, now: Timestamp, plan: &mut Plan, claim: &Claim) {
    let name = claim.name();
    let held = |volume: &&std::sync::Arc<PersistentVolume>| volume.claim_uid() == claim.claim.uid();
    if let Some(volume) = claim.volume.as_ref().filter(held)
        && !is_left(world, volume)
    {
        let (claim, volume) = (name.to_owned(), volume.name().to_owned());
        let epoch = world.group.status.as_ref().and_then(|status| status.primary_epoch).unwrap_or(0);
        return plan.act_for(world, now, name, Effect::Orphan { claim, volume, epoch });
    }
    let source = world.sources.get(name).filter(|source| source.is_owned_by(&world.key()));
    if source.is_some_and(|source| !source.is_going()) {
        return plan.act_for(world, now, name, Effect::StopSending { claim: name.to_owned() });
    }
    if (claim.claim.is_going() || world.namespace_is_deleting)
        && let Some(replication) = world.replications.get(name).filter(|one| one.is_owned_by(&world.key()))
    {
        if !replication.is_going() {
            return plan.act_for(world, now, name, Effect::EndReplication { claim: name.to_owned() });
        }
        // Its driver still asks which volume it is of. A driver that is gone holds nobody.
        if now < deadline(world) {
            plan.look_at(deadline(world));
            let why = format!("the storage has not ended the replication of PVC {name} yet");
            return plan.wait_for(name, Wait::Removing(why));
        }
    }
    plan.act_for(world, now, name, Effect::Unprotect { claim: name.to_owned() });
}

/// Whether nothing is left to write on a volume. What a secondary has is a copy, which its receiver may take up again: that is only kept.
fn is_left(world: &World, volume: &PersistentVolume) -> bool {
    let marked = volume.note(annotations::ORPHANED_FROM) == Some(world.key().to_string().as_str());
    volume.is_retained() && (marked || world.group.wants_secondary())
}

/// Says in the stores that can be reached that the records have no group. One that does not answer holds nobody.
fn mark_stores(world: &World, now: Timestamp, plan: &mut Plan) {
    let Some(ours) = epoch::primary_epoch(world) else { return };
    if !world.group.wants_primary() || epoch::superseded(world).is_some() || now >= deadline(world) {
        return;
    }
    let volumes: BTreeSet<String> =
        left(world, ours).into_iter().map(|volume| volume.name().to_owned()).collect();
    for name in world.store_names() {
        let state = world.stores.get(&name).cloned().unwrap_or_default();
        if state.orphaned || world.config.missing(&name).is_some() {
            continue;
        }
        let waits = |plan: &mut Plan, until: Timestamp| {
            plan.look_at(until.min(deadline(world)));
            plan.wait(Wait::WritingStore(format!("store {name} is told that the group was orphaned")));
        };
        match &state.failed {
            _ if state.busy.is_some() => waits(plan, Timestamp::MAX),
            Some(Tried { why: LedgerError::OtherFleet { .. }, .. }) => {}
            Some(failed) if failed.tries >= TRIES => {}
            Some(failed) if failed.retry_at > now => waits(plan, failed.retry_at),
            _ => plan.effects.push(Effect::MarkOrphan { store: name, epoch: ours, volumes: volumes.clone() }),
        }
    }
}

/// Volumes that a group of this name left at an epoch.
fn left(world: &World, epoch: i64) -> Vec<&PersistentVolume> {
    let key = world.key().to_string();
    let ours = |volume: &&PersistentVolume| {
        volume.note(annotations::ORPHANED_FROM) == Some(key.as_str()) && epoch_of(volume) == Some(epoch)
    };
    world.volumes.values().map(|volume| &**volume).filter(ours).collect()
}

fn epoch_of(volume: &PersistentVolume) -> Option<i64> {
    volume.note(annotations::EPOCH)?.parse().ok()
}

/// The epoch at which an earlier group of this name was primary on this cluster and lost its object, where this group comes back at the very
/// same one. A later epoch is a new order, which is followed as any other.
pub fn returns(world: &World) -> Option<i64> {
    let group = &world.group;
    if !group.wants_primary() || group.in_final_sync() || restore::was_done(world).is_some() {
        return None;
    }
    let status = group.status.as_ref();
    let key = group.key().to_string();
    let marks = world.volumes.values().filter(|volume| volume.note(annotations::ORPHANED_FROM) == Some(&key));
    let marked = marks.filter_map(|volume| epoch_of(volume)).max();
    let shown = status.and_then(|status| find(&status.conditions, words::TYPE_CLUSTER_DATA_READY));
    // One that was secondary meanwhile has lost its role by an order, not its object by an accident.
    let new = status.is_none_or(|status| status.epoch.is_none())
        || shown.is_some_and(|shown| shown.reason == words::REASON_ORPHANED);
    let reading = epoch::answer(world).filter(|_| new);
    let written = reading
        .and_then(|reading| reading.newest.as_ref())
        .filter(|record| record.cluster == world.cluster)
        .map(|record| record.epoch);
    let told = reading
        .and_then(|reading| reading.orphan.as_ref())
        .filter(|orphan| orphan.cluster == world.cluster)
        .map(|orphan| orphan.epoch);
    let at = marked.max(written).max(told).filter(|at| *at > 0)?;
    let given = group.given_epoch().and_then(Result::ok);
    let current = epoch::primary_epoch(world).or(given).unwrap_or_else(|| epoch::highest(world));
    (at == current).then_some(at)
}

/// What of an earlier group is not here any more: claims that are gone, or that have another volume than they had.
fn lost(world: &World, at: i64) -> Vec<String> {
    let mut lost: BTreeSet<String> = BTreeSet::new();
    let has = |claim: &str, volume: &str| {
        world.claim(claim).is_some_and(|claim| {
            !claim.claim.is_going() && claim.claim.is_bound() && claim.claim.volume_name() == Some(volume)
        })
    };
    let mut known: BTreeSet<String> = BTreeSet::new();
    for volume in left(world, at) {
        let Some(claim) = volume.claim_key() else { continue };
        if !has(&claim.name, volume.name()) || volume.claim_uid().is_empty() {
            lost.insert(claim.name.clone());
        }
        known.insert(claim.name);
    }
    let record = epoch::answer(world).and_then(|reading| reading.newest.as_ref());
    let Some(record) = record.filter(|record| record.epoch == at) else { return lost.into_iter().collect() };
    for claim in &record.claims {
        let volume = claim.volume_name().unwrap_or_default();
        if !known.contains(claim.name()) && !has(claim.name(), volume) {
            lost.insert(claim.name().to_owned());
        }
    }
    // Of what a mover copies, records have no volume: the one that it has must be one that we kept for it.
    for name in copied(record).filter_map(|entry| entry.name.as_deref()).filter(|name| !known.contains(*name))
    {
        let same = world.claim(name).is_some_and(|claim| {
            let kept = claim.volume.as_ref().is_some_and(|volume| restored::is_ours(volume));
            let held = claim.is_copied() && claim.claim.is_owned_by(&world.key());
            !claim.claim.is_going() && claim.claim.is_bound() && (kept || held)
        });
        if !same {
            lost.insert(name.to_owned());
        }
    }
    lost.into_iter().collect()
}

fn copied(record: &crate::ledger::Record) -> impl Iterator<Item = &ProtectedPvc> {
    let all = record.group.status.iter().flat_map(|status| &status.protected_pvcs);
    all.filter(|entry| entry.protected_by_vol_sync)
}

/// Whether the user said that the volumes that were left here shall be used again, at this very epoch.
fn is_asked(world: &World, at: i64) -> bool {
    world.group.note(annotations::RESTORE_ORPHANS).and_then(|text| text.trim().parse().ok()) == Some(at)
}

/// What a group does that came back and is orphaned: nothing but to end what would send, and to say which choices there are. `None` where it is not
/// orphaned, goes on by itself, or was told to use what was left.
pub fn stranded(world: &World, now: Timestamp) -> Option<GroupDecision> {
    // The stores are asked first, as for every role that is taken.
    let asks = epoch::primary_epoch(world).is_none() && epoch::answer(world).is_none();
    if asks && !world.store_names().is_empty() {
        return None;
    }
    let at = returns(world)?;
    let lost = lost(world, at);
    if lost.is_empty() || is_asked(world, at) {
        return None;
    }
    let mut plan = Plan::default();
    for source in world.sources.values().filter(|one| one.is_owned_by(&world.key()) && !one.is_going()) {
        let claim = source.name().to_owned();
        plan.act_for(world, now, source.name(), Effect::StopSending { claim });
    }
    for one in world.replications.values().filter(|one| one.is_owned_by(&world.key()) && !one.is_going()) {
        if lost.iter().any(|name| name == one.name()) {
            let claim = one.name().to_owned();
            plan.act_for(world, now, one.name(), Effect::EndReplication { claim });
        }
    }
    if !plan.effects.is_empty() {
        return Some(Decision::act(plan.effects));
    }
    let why = Wait::Orphaned(choices(world, at, &lost));
    let status = Telling::of(world, now).orphaned(&why).done();
    plan.wait(why);
    Some(waiting(plan).showing(status))
}

fn choices(world: &World, at: i64, lost: &[String]) -> String {
    let (name, space) = (world.group.name(), world.group.space());
    let volumes: Vec<String> = left(world, at)
        .into_iter()
        .map(|volume| match volume.claim_key() {
            Some(claim) => format!("{} of PVC {}", volume.name(), claim.name),
            None => volume.name().to_owned(),
        })
        .collect();
    let kept = match volumes.is_empty() {
        true => "No PV of it was found on this cluster.".to_owned(),
        false => format!("Its data is kept in PV {}.", volumes.join(", ")),
    };
    format!(
        "VRG {space}/{name} was deleted without the order to end protection, and PVC {} is not as it was. {kept} Nothing is protected or sent until you choose: `lifeboat failover {name}` to run on the peer's copy, `lifeboat repair {name} --restore-here` to use these PVs again, or `lifeboat forget --of {space}/{name}` on this cluster to give them up.",
        lost.join(", ")
    )
}

/// How many claims were made again of volumes that were left here; `None` while that is not done, nothing where nobody comes back.
pub fn claims_from_volumes(world: &World, now: Timestamp, plan: &mut Plan) -> Option<usize> {
    let at = returns(world)?;
    let volumes = left(world, at);
    for volume in &volumes {
        let Some(key) = volume.claim_key() else { continue };
        match from_volume(world, volume, &key.name) {
            Ok(None) => {
                let said = Said::yes(words::REASON_RESTORED, "the PVC has the PV that an earlier group left");
                plan.verdict(&key.name).say(words::TYPE_PVS_RESTORED, said);
            }
            Ok(Some(effect)) => plan.act_for(world, now, &key.name, effect),
            Err(why) => plan.wait_for(&key.name, why),
        }
    }
    Some(volumes.len())
}

/// Whether the volumes that were left are all there is to know: they say by themselves what the group had, so that no store need answer.
pub fn tells_all(world: &World, left: usize) -> bool {
    left > 0 && epoch::answer(world).is_none_or(|reading| reading.newest.is_none())
}

fn from_volume(world: &World, volume: &PersistentVolume, name: &str) -> Result<Option<Effect>, Wait> {
    let there = world.claim(name);
    match there {
        Some(there) if there.claim.is_going() => {
            Err(Wait::Restoring(format!("an earlier PVC {name} is still being deleted")))
        }
        Some(there) if there.claim.volume_name() == Some(volume.name()) => match there.claim.is_bound() {
            true => Ok(None),
            false => Err(Wait::Restoring(format!("PVC {name} is not bound to PV {} yet", volume.name()))),
        },
        Some(_) => Err(Wait::CannotRestore(format!(
            "PVC {name} has another PV than {}, which an earlier group left: stop the application and delete the PVC if its data is not wanted",
            volume.name()
        ))),
        None if !volume.claim_uid().is_empty() => {
            Ok(Some(Effect::Unclaim { claim: name.to_owned(), volume: volume.name().to_owned() }))
        }
        None => Ok(Some(Effect::MakeClaim { claim: Box::new(claim_of(world, volume, name)) })),
    }
}

/// A claim for a volume that was left: as it was recorded, or as the volume and the group's selector tell.
fn claim_of(world: &World, volume: &PersistentVolume, name: &str) -> PersistentVolumeClaim {
    let record = epoch::answer(world).and_then(|reading| reading.newest.as_ref());
    let mut claim = record
        .and_then(|record| record.claims.iter().find(|claim| claim.name() == name))
        .map_or_else(|| unrecorded(world, volume, name), restored::claim);
    // Under another UID it is the same data: the peer would refuse it as a stranger's.
    if let Some(lineage) = volume.note(annotations::LINEAGE) {
        let notes = claim.metadata.annotations.get_or_insert_default();
        notes.insert(annotations::LINEAGE.to_owned(), lineage.to_owned());
    }
    let spec = claim.spec.get_or_insert_default();
    spec.volume_name = Some(volume.name().to_owned());
    claim
}

fn unrecorded(world: &World, volume: &PersistentVolume, name: &str) -> PersistentVolumeClaim {
    let record = epoch::answer(world).and_then(|reading| reading.newest.as_ref());
    let entry = record.and_then(|record| copied(record).find(|entry| entry.name.as_deref() == Some(name)));
    let of = volume.spec.clone().unwrap_or_default();
    let labels = match entry {
        Some(entry) => entry.labels.clone(),
        None => world.group.spec.pvc_selector.match_labels.clone().unwrap_or_default(),
    };
    let mut notes = restored::carried_over(entry.map(|entry| &entry.annotations));
    notes.insert(annotations::RESTORE.to_owned(), annotations::RESTORE_VALUE.to_owned());
    let size = entry.and_then(|entry| entry.resources.clone()).unwrap_or_else(|| {
        VolumeResourceRequirements { requests: of.capacity.clone(), ..VolumeResourceRequirements::default() }
    });
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(world.group.space().to_owned()),
            labels: Some(labels),
            annotations: Some(notes),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: of.access_modes,
            resources: Some(size),
            storage_class_name: of.storage_class_name,
            volume_mode: of.volume_mode,
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    }
}
