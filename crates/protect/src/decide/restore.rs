//! A group that becomes primary gets back what the peer recorded and what movers received. That nothing was found is no success: it is
//! accepted for an application that never ran, and for nobody else.

use crate::decide::plan::{Path, Plan, Said};
use crate::decide::{Effect, demote, epoch, orphan, receive, received};
use crate::ledger::{Reading, Record, Seen};
use crate::restored;
use crate::why::Wait;
use crate::words::{ClaimWords as _, GroupWords as _, VolumeWords as _, Words as _};
use crate::world::World;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use lifeboat_api::annotations;
use lifeboat_api::conditions::vrg as words;
use lifeboat_api::ramen::DRAction;
use lifeboat_engine::ObjectKey;
use lifeboat_engine::conditions::find;
use std::collections::BTreeMap;

/// How far the restore is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All is there.
    Done(Said),
    /// Something is missing.
    Open(Said),
}

impl Outcome {
    /// Whether all is there.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }

    /// What is said about it.
    pub fn said(&self) -> &Said {
        match self {
            Self::Done(said) | Self::Open(said) => said,
        }
    }
}

/// Whether an earlier pass has told that all is there.
pub fn was_done(world: &World) -> Option<Said> {
    let status = world.group.status.as_ref()?;
    let shown = find(&status.conditions, words::TYPE_CLUSTER_DATA_READY)?;
    let current = shown.observed_generation == world.group.metadata.generation;
    // The word of a secondary is not about a restore.
    let restored = shown.reason == words::REASON_RESTORED;
    let held = status.primary_epoch.is_some();
    (shown.status == "True" && held && (restored || current && shown.reason != words::REASON_UNUSED))
        .then(|| Said::yes(words::REASON_RESTORED, shown.message.clone()))
}

/// Brings back what is missing.
pub fn restore(world: &World, now: Timestamp, plan: &mut Plan) -> Outcome {
    if let Some(said) = was_done(world) {
        return Outcome::Done(said);
    }
    if world.group.in_final_sync() {
        // A last copy of what was never restored would be a copy of something else.
        let why = Wait::Restoring(
            "a final sync is asked for, and the PVCs of the group were not restored here yet: nothing is sent. Take the request back, so that they are restored"
                .to_owned(),
        );
        let said = Said::no(words::REASON_PROGRESSING, why.to_string());
        plan.wait(why);
        return Outcome::Open(said);
    }
    let before = plan.waits.len();
    let (received, recorded) = match orphan::claims_from_volumes(world, now, plan) {
        Some(left)
            if orphan::tells_all(world, left) || plan.waits.len() > before || !plan.effects.is_empty() =>
        {
            (left, Some(0))
        }
        Some(left) => (left, from_stores(world, now, plan)),
        None => (received::claims_from_images(world, now, plan), from_stores(world, now, plan)),
    };
    if plan.waits.len() > before || !plan.effects.is_empty() || recorded.is_none() {
        let why = plan.waits.iter().skip(before).map(|(why, _)| why).max_by_key(|why| why.weight());
        let message =
            why.map_or_else(|| "volumes and claims are being restored".to_owned(), ToString::to_string);
        let reason = if why.is_some_and(|why| why.weight() >= 3) {
            words::REASON_ERROR
        } else {
            words::REASON_PROGRESSING
        };
        return Outcome::Open(Said::no(reason, message));
    }
    let message = match (recorded.unwrap_or(0), received) {
        (0, 0) => "Nothing to restore: the application never ran before, or had no volumes".to_owned(),
        (volumes, copies) => {
            format!("Restored {volumes} volumes with their claims, and {copies} claims from copies")
        }
    };
    Outcome::Done(Said::yes(words::REASON_RESTORED, message))
}

/// How many volumes the record names, once all of them are there; `None` while that is not so.
fn from_stores(world: &World, now: Timestamp, plan: &mut Plan) -> Option<usize> {
    if world.wants_no_store() {
        return Some(0);
    }
    if world.store_names().is_empty() {
        plan.wait(Wait::CannotRestore(
            "no S3 profiles are named: what was recorded cannot be read".to_owned(),
        ));
        return None;
    }
    let Some(reading) = epoch::answer(world) else {
        match epoch::ask(world) {
            epoch::Judged::Act(effect) => plan.effects.push(effect),
            _ => plan.wait(Wait::ReadingStores),
        }
        return None;
    };
    match judged(world, reading) {
        Ok(Some(record)) => members(world, now, plan, record),
        Ok(None) => Some(0),
        Err(why) => {
            // Others may mend the stores without a word to us.
            let at = world.read.answer.as_ref().map_or(now, |(_, _, at)| *at);
            let again = at.checked_add(epoch::READ_AGAIN).unwrap_or(now);
            match (world.read.busy.is_some(), now >= again) {
                // The answer that is on its way wakes us.
                (true, _) => plan.wait(why),
                (false, true) => plan.effects.push(Effect::ReadStores { question: epoch::question(world) }),
                (false, false) => {
                    plan.wait(why);
                    plan.look_at(again);
                }
            }
            None
        }
    }
}

/// Which record counts; `Ok(None)` where it is shown that there is none.
pub fn judged<'a>(world: &World, reading: &'a Reading) -> Result<Option<&'a Record>, Wait> {
    if let Some(record) = &reading.newest {
        return Ok(Some(record));
    }
    let first = world.group.note(annotations::FIRST_DEPLOYMENT) == Some("true");
    let something: Vec<&String> = reading
        .stores
        .iter()
        .filter(|(_, seen)| **seen == Ok(Seen::Something))
        .map(|(name, _)| name)
        .collect();
    if !something.is_empty() {
        return Err(Wait::CannotRestore(format!(
            "what is recorded in {} is not complete, so it cannot be told which volumes belong to the group",
            something.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ")
        )));
    }
    if !reading.foreign.is_empty() && !first {
        let told: Vec<&str> = reading.foreign.values().map(String::as_str).collect();
        return Err(Wait::OtherFleet(told.join("; ")));
    }
    let unread = |(name, seen): (&String, &Result<Seen, String>)| {
        seen.as_ref().err().map(|why| format!("{name} ({why})"))
    };
    let mut unread: Vec<String> = reading.stores.iter().filter_map(unread).collect();
    unread.extend(world.store_names().iter().filter_map(|name| {
        let asked = reading.stores.contains_key(name) || reading.foreign.contains_key(name);
        (!asked).then(|| world.config.missing(name).unwrap_or_else(|| format!("{name} (not read)")))
    }));
    if !unread.is_empty() && !first {
        return Err(Wait::StoresUnreachable(unread.join(", ")));
    }
    if world.group.action().is_some() && !first {
        return Err(Wait::NothingRecorded);
    }
    Ok(None)
}

/// Makes the volumes and claims of a record that are not there; all of them must be, and be the right ones.
fn members(world: &World, now: Timestamp, plan: &mut Plan, record: &Record) -> Option<usize> {
    let mut by_claim: BTreeMap<ObjectKey, Vec<&PersistentVolume>> = BTreeMap::new();
    for volume in &record.volumes {
        let Some(key) = volume.claim_key() else { continue };
        by_claim.entry(key).or_default().push(volume);
    }
    let mut complete = true;
    // A record from a time when its storage replicated the claim, or one that an earlier version left of a claim that was made from an image: what was
    // copied since is newer, and the only data that is here.
    let copied = |claim: &&PersistentVolumeClaim| {
        receive::is_named(world, claim.name()) || restored::is_of_an_image(claim)
    };
    for claim in record.claims.iter().filter(copied) {
        let name = claim.name();
        let nowhere = !receive::is_named(world, name) && world.claim(name).is_none();
        if nowhere && world.group.action().is_some() {
            complete = false;
            let why = format!(
                "PVC {name} was copied by a mover, and volSync.rdSpec does not name it: name it, so that it is restored from what was received"
            );
            plan.wait_for(name, Wait::CannotRestore(why));
        }
    }
    let recorded = || record.claims.iter().filter(|claim| !copied(claim));
    for claim in recorded() {
        let name = claim.name();
        let key = ObjectKey::new(world.group.space(), name);
        if let Some(there) = world.claim(name).filter(|there| there.claim.is_going()) {
            complete = false;
            demote::let_go(world, now, plan, there, Path::Replicated);
            continue;
        }
        let step = match volume_of(claim, by_claim.get(&key).map_or(&[][..], Vec::as_slice)) {
            _ if claim.space() != world.group.space() => {
                Err(Wait::CannotRestore(format!("the recorded claim {name} is of another namespace")))
            }
            Err(why) => Err(why),
            Ok(volume) => pair(world, claim, volume),
        };
        match step {
            Ok(None) => {}
            Ok(Some(effect)) => {
                complete = false;
                plan.act_for(world, now, name, effect);
            }
            Err(why) => {
                complete = false;
                plan.wait_for(name, why);
            }
        }
    }
    complete.then(|| recorded().count())
}

/// The volume that a recorded claim is bound to, of those that are recorded for its name.
fn volume_of<'a>(
    claim: &PersistentVolumeClaim,
    recorded: &[&'a PersistentVolume],
) -> Result<&'a PersistentVolume, Wait> {
    let name = claim.name();
    match recorded {
        [] => Err(Wait::CannotRestore(format!("the record has no volume for the claim {name}"))),
        [one] => Ok(one),
        several => {
            let own = several.iter().find(|volume| claim.volume_name() == Some(volume.name()));
            own.copied().ok_or_else(|| {
                let names: Vec<&str> = several.iter().map(|volume| volume.name()).collect();
                Wait::CannotRestore(format!(
                    "PVs {} are recorded for PVC {name}, which names none of them: remove the records of those that are not its own from the stores",
                    names.join(", ")
                ))
            })
        }
    }
}

/// The next step for one claim and its volume.
fn pair(
    world: &World,
    claim: &PersistentVolumeClaim,
    volume: &PersistentVolume,
) -> Result<Option<Effect>, Wait> {
    let class = claim.class_name().and_then(|name| world.classes.get(name));
    let wanted = restored::volume(volume, class.map(|class| &**class), world.group.spec.sync.is_some());
    let name = claim.name().to_owned();
    let there = world.claim(&name);
    match world.volumes.get(wanted.name()) {
        None => {
            let wanted = located(world, volume, wanted)?;
            return Ok(Some(Effect::MakeVolume { claim: name, volume: Box::new(wanted) }));
        }
        Some(has) => {
            // Under its own handle it is the very volume that was recorded, for this cluster recorded it.
            if !same_storage(has, &wanted) && !same_storage(has, volume) && !is_own(world, has, volume) {
                return Err(Wait::CannotRestore(format!(
                    "there is a volume {} with other storage than the recorded one: it is left alone",
                    has.name()
                )));
            }
            let uid = has.claim_uid();
            let bound_to_other = !uid.is_empty() && there.is_none_or(|there| there.claim.uid() != uid);
            if bound_to_other {
                // One that its user keeps anyway has no mark of ours but that it is recorded.
                if !restored::is_ours(has) && has.note(annotations::VR_ARCHIVED).is_none() {
                    return Err(Wait::CannotRestore(format!(
                        "the volume {} was released by a claim that is gone, and it is not one that a group kept: it is left alone",
                        has.name()
                    )));
                }
                return Ok(Some(Effect::Unclaim { claim: name, volume: has.name().to_owned() }));
            }
            if uid.is_empty() && there.is_none() && !restored::is_ours(has) {
                return Err(Wait::CannotRestore(format!(
                    "the volume {} exists and was not restored by us",
                    has.name()
                )));
            }
        }
    }
    match there {
        None => Ok(Some(Effect::MakeClaim { claim: Box::new(restored::claim(claim)) })),
        Some(there) if there.claim.volume_name() == Some(wanted.name()) => Ok(None),
        Some(_) => Err(Wait::CannotRestore(format!(
            "there is a claim {name} with another volume than the recorded one: it is left alone"
        ))),
    }
}

/// Whether a volume of this cluster is the one that a peer's record is about, though the peer never learned what it is called here: whoever changes
/// their mind at once comes home before the peer has. A failover takes it, for it may lose what only the peer has.
fn is_own(world: &World, has: &PersistentVolume, recorded: &PersistentVolume) -> bool {
    world.group.action() == Some(&DRAction::Failover)
        && recorded.note(annotations::DESTINATION_VOLUME_HANDLE).is_none()
        && has.claim_key() == recorded.claim_key()
        && has.handle().map(|(driver, _)| driver) == recorded.handle().map(|(driver, _)| driver)
        && (restored::is_ours(has) || has.note(annotations::VR_ARCHIVED).is_some())
}

/// A volume that is on the disks of one node is tied to the node that has it here: pods anywhere else could not use it.
fn located(
    world: &World,
    recorded: &PersistentVolume,
    mut wanted: PersistentVolume,
) -> Result<PersistentVolume, Wait> {
    if world.group.spec.sync.is_some() || !world.kinds.local || !restored::is_local(recorded) {
        return Ok(wanted);
    }
    // Its name at this side is looked for first; under its own it is here where this cluster recorded it.
    let known = [&wanted, recorded].map(|one| one.handle().map(|(_, handle)| handle.to_owned()));
    let found = known.iter().flatten().find_map(|handle| Some((handle, world.places.get(handle)?)));
    let Some((handle, node)) = found else {
        let handle = known.into_iter().flatten().next().unwrap_or_default();
        return Err(Wait::Restoring(format!(
            "no node of this cluster has the volume {handle}, as which {} is known here: its replication has not made it yet",
            recorded.name()
        )));
    };
    restored::put(&mut wanted, handle, node);
    Ok(wanted)
}

fn same_storage(has: &PersistentVolume, wanted: &PersistentVolume) -> bool {
    has.handle() == wanted.handle()
        && has.claim_key() == wanted.claim_key()
        && (has.handle().is_some()
            || has.spec.as_ref().map(|spec| (&spec.host_path, &spec.local, &spec.nfs))
                == wanted.spec.as_ref().map(|spec| (&spec.host_path, &spec.local, &spec.nfs)))
}
