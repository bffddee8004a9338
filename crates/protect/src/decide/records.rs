//! What is recorded of a group, where, and when. A record names every claim that is protected or was restored; one that leaves is taken out
//! because it was released, never because it was not looked at.

use crate::books::StoreState;
use crate::decide::plan::{Path, Plan, Said};
use crate::decide::{Effect, Sorted, epoch, restore, undo};
use crate::ledger::{LedgerError, Record, Tried, digest, shape, substance};
use crate::restored;
use crate::why::Wait;
use crate::words::{ClaimWords as _, GroupWords as _, Words as _, storage};
use crate::world::{Claim, World};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use lifeboat_api::annotations;
use lifeboat_api::conditions::vrg as words;
use lifeboat_api::ramen::VolumeReplicationGroupStatus;

/// How often it is looked whether stores still have what they were given: a bucket may be emptied, or let its objects expire.
pub const CHECK_AGAIN: SignedDuration = SignedDuration::from_mins(10);

/// Whether a claim belongs into the record: protected by us, or restored and on its way there.
fn is_recorded(claim: &Claim) -> bool {
    let marked = claim.claim.note(annotations::VR_PROTECTED).is_some() && claim.is_replicated();
    let restored =
        claim.claim.note(annotations::RESTORE).is_some() && !restored::is_of_an_image(&claim.claim);
    // What a mover copies is made anew from its copy: the volume here means nothing to the peer.
    !claim.is_copied() && (marked || restored)
}

/// Whether what is recorded of a claim stays, though nothing of it is recorded now. What a mover has copied is restored from its copy, so that a record
/// from before would only be in the way.
fn is_member(world: &World, claim: &Claim) -> bool {
    let source = world.sources.get(claim.name()).and_then(|source| source.status.as_ref());
    !claim.is_copied() || source.is_none_or(|status| status.last_sync_time.is_none())
}

/// A claim whose size is on its way up is recorded at the size that its volume has: one that asks for more would find no volume.
fn settled(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> PersistentVolumeClaim {
    let mut claim = claim.clone();
    let capacity = volume.spec.as_ref().and_then(|spec| spec.capacity.clone());
    if claim.asked() > storage(capacity.as_ref())
        && let Some(has) = capacity.as_ref().and_then(|capacity| capacity.get("storage")).cloned()
        && let Some(requests) =
            claim.spec.as_mut().and_then(|spec| spec.resources.as_mut()).and_then(|all| all.requests.as_mut())
    {
        requests.insert("storage".to_owned(), Quantity(has.0));
    }
    claim
}

/// The record as it would be written now.
pub fn record(world: &World) -> Record {
    let mut record = Record {
        epoch: epoch::primary_epoch(world).unwrap_or(0),
        fleet: world.group.fleet().map(str::to_owned),
        group: (*world.group).clone(),
        ..Record::default()
    };
    record.group.metadata.managed_fields = None;
    // One that leaves is out of the record before its volume may go.
    let stays = |claim: &&Claim| !undo::is_leaving(world, claim);
    let members = world.claims.iter().filter(stays).filter(|claim| is_member(world, claim));
    record.members = members.map(|claim| claim.name().to_owned()).collect();
    for claim in world.claims.iter().filter(stays).filter(|claim| is_recorded(claim)) {
        let Some(volume) = &claim.volume else { continue };
        record.volumes.push(bare_volume(volume));
        let mut claim = settled(&claim.claim, volume);
        claim.metadata.managed_fields = None;
        record.claims.push(claim);
    }
    record
}

fn bare_volume(volume: &PersistentVolume) -> PersistentVolume {
    let mut volume = volume.clone();
    volume.metadata.managed_fields = None;
    volume
}

/// How one store stands to a substance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It has it.
    Has,
    /// It is being written, or will be.
    Writing,
    /// It was tried and failed.
    Failed(String),
    /// A later epoch has written there.
    Superseded(i64),
    /// It has another fleet's records of a group of this name.
    OtherFleet(String),
    /// It is not known in the configuration.
    Unknown(String),
}

/// How every store of the group stands.
pub fn standings(world: &World, substance: &str) -> Vec<(String, Standing)> {
    let names = world.store_names().into_iter();
    names.map(|name| (name.clone(), standing(world, &name, substance))).collect()
}

fn standing(world: &World, name: &str, substance: &str) -> Standing {
    if let Some(why) = world.config.missing(name) {
        return Standing::Unknown(why);
    }
    let state = world.stores.get(name).cloned().unwrap_or_default();
    match (&state.kept, &state.failed) {
        // Whose it is was found out since it was last written, or the user has said since that it is ours.
        (_, Some(failed @ Tried { why: LedgerError::OtherFleet { why, .. }, .. })) => {
            if is_past(world, failed) { Standing::Writing } else { Standing::OtherFleet(why.clone()) }
        }
        // What it had is gone, whatever it said before.
        (_, Some(Tried { why: LedgerError::Gone(why), .. })) => Standing::Failed(why.clone()),
        (Some((kept, _)), _) if kept == substance => Standing::Has,
        (_, Some(failed)) if is_past(world, failed) => Standing::Writing,
        (_, Some(failed)) => match &failed.why {
            LedgerError::Superseded(epoch) => Standing::Superseded(*epoch),
            taken @ LedgerError::Taken { .. } => Standing::Failed(taken.to_string()),
            LedgerError::OtherFleet { why, .. } => Standing::OtherFleet(why.clone()),
            // A failure with an older substance still says that the store does not work.
            LedgerError::Failed(why) | LedgerError::Gone(why) => Standing::Failed(why.clone()),
        },
        _ => Standing::Writing,
    }
}

/// Whether a store refused what was written at an earlier epoch than we are primary at now: that says nothing about now.
fn is_past(world: &World, failed: &Tried) -> bool {
    let ours = epoch::primary_epoch(world);
    match &failed.why {
        LedgerError::Superseded(theirs) => ours >= Some(*theirs),
        // Our own epoch is not over because somebody else has it: asking again at once would ask for ever.
        LedgerError::Taken { epoch, .. } => ours > Some(*epoch),
        // Who is of no fleet, or of theirs by now, is not refused.
        LedgerError::OtherFleet { fleet, .. } => world.group.fleet().is_none_or(|ours| ours == fleet),
        LedgerError::Failed(_) | LedgerError::Gone(_) => false,
    }
}

/// Whether every store was tried with this substance, so that a replication may begin: recorded first, as far as stores let us.
pub fn tried(world: &World, substance: &str) -> bool {
    standings(world, substance).iter().all(|(name, standing)| match standing {
        Standing::Writing => false,
        Standing::Failed(_) => world
            .stores
            .get(name)
            .and_then(|state| state.failed.as_ref())
            .is_some_and(|failed| failed.substance == substance || failed.tries > 1),
        _ => true,
    })
}

/// Why a claim that leaves is not let go yet: a store may still name its volume.
pub fn still_names(world: &World, claim: &str, substance: &str) -> Option<Wait> {
    let how = format!("to leave it there, name the store in the annotation {}", annotations::ABANDON_STORES);
    let standings = standings(world, substance).into_iter();
    let mut open = standings.filter(|(name, standing)| !names_none(standing) && !is_abandoned(world, name));
    open.next().map(|(name, standing)| match standing {
        Standing::Failed(why) | Standing::Unknown(why) => Wait::StoreFailed(format!(
            "PVC {claim} is let go once store {name} has no record of it: {why}; {how}"
        )),
        _ => Wait::WritingStore(format!("PVC {claim} is taken out of the record in store {name}")),
    })
}

/// Whether a store has nothing of ours but the record of now: what another fleet has there names none of our volumes.
fn names_none(standing: &Standing) -> bool {
    matches!(standing, Standing::Has | Standing::OtherFleet(_))
}

/// Whether the user gave up what a store has of the group.
pub fn is_abandoned(world: &World, name: &str) -> bool {
    let abandoned = world.group.note(annotations::ABANDON_STORES).unwrap_or_default();
    abandoned.split(',').map(str::trim).any(|one| one == name || one == "*")
}

fn due(world: &World, name: &str, now: Timestamp) -> bool {
    let may = |failed: &Tried| failed.retry_at <= now || is_past(world, failed);
    let state = world.stores.get(name);
    state.is_none_or(|state| state.busy.is_none() && state.failed.as_ref().is_none_or(may))
}

/// Writes the record where it is not up to date. While claims are on their way into protection it waits for them: a record never loses a
/// claim for a moment.
pub fn keep(world: &World, now: Timestamp, plan: &mut Plan, sorted: &Sorted<'_>, wanted: &str) {
    let mut probe = Plan::default();
    let on_the_way = sorted.replicated.iter().any(|(claim, way)| {
        claim.claim.is_bound() && !undo::protect(world, now, &mut probe, claim, way.path)
    });
    if on_the_way && !probe.effects.is_empty() {
        return;
    }
    if let Some(epoch) = epoch::superseded(world) {
        plan.wait(Wait::Superseded(epoch));
        return;
    }
    let standings = standings(world, wanted);
    let checks = standings.iter().filter(|(_, standing)| *standing == Standing::Has);
    let checks = checks.filter_map(|(name, _)| {
        let state = world.stores.get(name)?;
        let check = state.checked?.0.checked_add(CHECK_AGAIN).ok()?;
        // One that did not answer is asked when it is its turn again.
        Some(state.failed.as_ref().map_or(check, |failed| check.max(failed.retry_at)))
    });
    let check = checks.min();
    let needed = check.is_some_and(|check| check <= now)
        || standings.iter().any(|(name, standing)| {
            let open = matches!(standing, Standing::Writing | Standing::Failed(_) | Standing::OtherFleet(_));
            open && due(world, name, now)
        });
    check.filter(|check| *check > now).into_iter().for_each(|check| plan.look_at(check));
    if needed && !world.stores.values().any(|state| state.busy.is_some()) {
        // All that work are written together, so that one that lagged behind learns what was removed meanwhile.
        let usable = |(name, standing): &(String, Standing)| {
            !matches!(standing, Standing::Unknown(_) | Standing::Superseded(_)) && due(world, name, now)
        };
        let stores = standings.iter().filter(|entry| usable(entry)).map(|(name, _)| name.clone());
        plan.effects.push(written(world, now, stores.collect()));
    }
    for (name, standing) in standings {
        let state = world.stores.get(&name);
        match standing {
            Standing::Has => {}
            Standing::Superseded(epoch) => plan.wait(Wait::Superseded(epoch)),
            Standing::Unknown(why) => plan.wait(Wait::StoreFailed(why)),
            Standing::Writing => {
                plan.wait(Wait::WritingStore(format!("records are being written to {name}")));
            }
            Standing::OtherFleet(why) => {
                plan.wait(Wait::OtherFleet(why));
                again(state, plan);
            }
            Standing::Failed(why) => {
                plan.wait(Wait::StoreFailed(format!("records cannot be written to {name}: {why}")));
                again(state, plan);
            }
        }
    }
}

/// The record is written to stores. What is written is always read back; everything in them only where there is a reason, so that a change of
/// one claim does not cost as many requests as the group has claims.
fn written(world: &World, now: Timestamp, stores: Vec<String>) -> Effect {
    let verify = !stores.iter().all(|name| is_proven(world, name, now));
    Effect::Keep { stores, verify }
}

/// Whether everything in a store was read back lately, at the epoch of now, and nothing has failed since.
fn is_proven(world: &World, name: &str, now: Timestamp) -> bool {
    let Some(state) = world.stores.get(name).filter(|state| state.kept.is_some() && state.failed.is_none())
    else {
        return false;
    };
    let ours = epoch::primary_epoch(world).unwrap_or(0);
    state.checked.is_some_and(|(at, epoch)| epoch == ours && now.duration_since(at) < CHECK_AGAIN)
}

/// A store that failed is tried again. What is being tried at this moment wakes us when it is done.
fn again(state: Option<&StoreState>, plan: &mut Plan) {
    let idle = state.filter(|state| state.busy.is_none());
    if let Some(failed) = idle.and_then(|state| state.failed.as_ref()) {
        plan.look_at(failed.retry_at);
    }
}

/// What is said about the records of one claim.
pub fn said(world: &World, claim: &Claim, substance: &str) -> Said {
    if world.wants_no_store() {
        return Said::yes(words::REASON_UPLOADED, "no store is asked for (NoS3)");
    }
    let standings = standings(world, substance);
    if standings.is_empty() {
        return Said::no(words::REASON_UPLOAD_ERROR, "the group names no store: nothing is recorded");
    }
    if claim.claim.asked() > claim.claim.has() {
        return Said::no(
            words::REASON_UPLOADING,
            "the claim is growing: it is recorded at its new size when it has it",
        );
    }
    let mut writing = false;
    for (name, standing) in standings {
        match standing {
            Standing::Has => {}
            Standing::Writing => writing = true,
            Standing::Failed(why) => {
                return Said::no(words::REASON_UPLOAD_ERROR, format!("error uploading to {name}: {why}"));
            }
            Standing::Unknown(why) | Standing::OtherFleet(why) => {
                return Said::no(words::REASON_UPLOAD_ERROR, why);
            }
            Standing::Superseded(epoch) => {
                return Said::no(words::REASON_UPLOAD_ERROR, Wait::Superseded(epoch).to_string());
            }
        }
    }
    match writing {
        // Before this process has looked, what an earlier one noted on the claim is the best there is.
        true if !is_archived(claim) || world.stores.values().any(|state| state.kept.is_some()) => {
            Said::no(words::REASON_UPLOADING, "PV and PVC cluster data are being recorded")
        }
        _ => Said::yes(words::REASON_UPLOADED, "PV and PVC cluster data are recorded in every store"),
    }
}

/// What is noted on a claim that is recorded: which version of it.
pub fn archive_mark(claim: &PersistentVolumeClaim) -> String {
    digest(&claim.spec)
}

/// What is noted on a volume that is recorded.
pub fn volume_mark(volume: &PersistentVolume) -> String {
    format!("{}-{}", annotations::VR_ARCHIVED_V1, volume.metadata.generation.unwrap_or_default())
}

fn is_archived(claim: &Claim) -> bool {
    let mark = archive_mark(&claim.claim);
    let volume = claim
        .volume
        .as_ref()
        .is_some_and(|volume| volume.note(annotations::VR_ARCHIVED) == Some(volume_mark(volume).as_str()));
    claim.claim.note(annotations::VR_ARCHIVED) == Some(mark.as_str()) && volume
}

/// Notes on claims and volumes that they are recorded, once every store has them.
pub fn archive(world: &World, now: Timestamp, plan: &mut Plan, sorted: &Sorted<'_>, wanted: &str) {
    if !plan.effects.is_empty() || world.store_names().is_empty() {
        return;
    }
    if !standings(world, wanted).iter().all(|(_, standing)| *standing == Standing::Has) {
        return;
    }
    for (claim, way) in &sorted.replicated {
        let recordable = way.path != Path::Copied && is_recorded(claim) && !claim.claim.is_going();
        if recordable && claim.volume.is_some() && !is_archived(claim) {
            let mark = archive_mark(&claim.claim);
            plan.act_for(world, now, claim.name(), Effect::Archive { claim: claim.name().to_owned(), mark });
        }
    }
}

/// Writes the record again where only how the group stands has changed, so that whoever reads it elsewhere sees the status of now.
pub fn copies(
    world: &World,
    now: Timestamp,
    status: &VolumeReplicationGroupStatus,
    restored: Option<&restore::Outcome>,
) -> Vec<Effect> {
    if !restored.is_some_and(restore::Outcome::is_done) || epoch::superseded(world).is_some() {
        return Vec::new();
    }
    let mut record = record(world);
    record.group.status = Some(status.clone());
    let (wanted, now_shape) = (substance(&record), shape(&record));
    let lags = |name: &String| {
        let state = world.stores.get(name);
        let kept = state.and_then(|state| state.kept.as_ref());
        kept.is_some_and(|(kept, shape)| *kept == wanted && *shape != now_shape) && due(world, name, now)
    };
    let stores: Vec<String> = world.store_names();
    if !stores.iter().any(lags) || world.stores.values().any(|state| state.busy.is_some()) {
        return Vec::new();
    }
    let known = |name: &String| world.config.missing(name).is_none() && due(world, name, now);
    vec![written(world, now, stores.into_iter().filter(known).collect())]
}
