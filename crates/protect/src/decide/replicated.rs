//! A primary whose storage replicates: one VolumeReplication for each claim, made once the claim is protected and recorded, and believed
//! only when it speaks of the present wish.

use crate::decide::plan::{Path, Plan, Said};
use crate::decide::{Effect, classify::Way, records, undo};
use crate::status;
use crate::why::Wait;
use crate::words::{ClaimWords as _, OwnedWords as _, Words as _};
use crate::world::{Claim, World};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use lifeboat_api::conditions::{replication as driver, vrg as words};
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_api::replication::{ReplicationState, State, VolumeReplication};
use lifeboat_api::{annotations, labels};
use lifeboat_engine::conditions::find;

/// The kind that older controllers made the owner of a VolumeReplication.
pub const GROUP_KIND: &str = "VolumeReplicationGroup";

/// What a VolumeReplication says about a wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// It has not come to it yet.
    NotYet(String),
    /// The storage cannot.
    Refused(String),
    /// It has the role, and it is still being filled.
    Filling,
    /// It has the role, and all data.
    Done,
}

fn current<'a>(replication: &'a VolumeReplication, type_: &str) -> Option<&'a Condition> {
    let conditions = &replication.status.as_ref()?.conditions;
    find(conditions, type_).filter(|one| one.observed_generation == replication.metadata.generation)
}

fn is(condition: Option<&Condition>, status: &str) -> bool {
    condition.is_some_and(|condition| condition.status == status)
}

/// What a VolumeReplication says about having a role. A word about an earlier wish counts for nothing, and a role is reached only when the
/// driver names it.
pub fn word(replication: &VolumeReplication, role: &ReplicationState) -> Word {
    let status = replication.status.clone().unwrap_or_default();
    let message = |condition: Option<&Condition>, otherwise: &str| {
        condition
            .map(|one| one.message.clone())
            .filter(|text| !text.is_empty())
            .unwrap_or_else(|| otherwise.to_owned())
    };
    if status.observed_generation != replication.metadata.generation {
        return Word::NotYet("VolumeReplication generation not updated in status".to_owned());
    }
    let validated = current(replication, driver::TYPE_VALIDATED);
    if is(validated, "False") {
        return Word::Refused(message(validated, "the storage cannot replicate the volume"));
    }
    let completed = current(replication, driver::TYPE_COMPLETED);
    if !is(completed, "True") {
        return Word::NotYet(message(completed, "VolumeReplication is not completed yet"));
    }
    let wanted = if *role == ReplicationState::Primary { State::Primary } else { State::Secondary };
    let reached = status.state.as_ref() == Some(&wanted);
    if *role == ReplicationState::Primary {
        let state = status.state.map_or_else(|| "no state".to_owned(), |state| state.as_str().to_owned());
        return if reached {
            Word::Done
        } else {
            Word::NotYet(format!("the storage says {state}, not Primary"))
        };
    }
    let (degraded, resyncing) =
        (current(replication, driver::TYPE_DEGRADED), current(replication, driver::TYPE_RESYNCING));
    match (is(resyncing, "True"), is(degraded, "True"), is(resyncing, "False"), is(degraded, "False")) {
        (true, true, ..) => Word::Filling,
        (_, _, true, true) if reached => Word::Done,
        _ => Word::NotYet(message(degraded, "VolumeReplication is not secondary yet")),
    }
}

/// A primary's claims whose storage replicates, or is shared.
pub fn primary(world: &World, now: Timestamp, plan: &mut Plan, claims: &[(&Claim, Way)], wanted: &str) {
    let recorded = records::tried(world, wanted);
    for (claim, way) in claims {
        one(world, now, plan, claim, way, wanted, recorded);
    }
}

fn one(
    world: &World,
    now: Timestamp,
    plan: &mut Plan,
    claim: &Claim,
    way: &Way,
    substance: &str,
    recorded: bool,
) {
    let name = claim.name();
    status::claim_known(plan, name, way, false);
    if !claim.claim.is_bound() {
        status::claim_progressing(plan, name, &Wait::NotBound.to_string());
        return plan.wait_for(name, Wait::NotBound);
    }
    if !undo::protect(world, now, plan, claim, way.path) {
        return status::claim_progressing(plan, name, "the claim is being protected");
    }
    plan.verdict(name).say(words::TYPE_CLUSTER_DATA_PROTECTED, records::said(world, claim, substance));
    if way.path == Path::Shared {
        plan.verdict(name)
            .say(
                words::TYPE_DATA_READY,
                Said::yes(words::REASON_READY, "the volume is on storage that both clusters share"),
            )
            .say(
                words::TYPE_DATA_PROTECTED,
                Said::yes(words::REASON_DATA_PROTECTED, "PVC protected as both clusters share its storage"),
            );
        return;
    }
    let class = way.class.clone().unwrap_or_default();
    replicate(world, now, plan, claim, class, recorded);
}

fn replicate(world: &World, now: Timestamp, plan: &mut Plan, claim: &Claim, class: String, recorded: bool) {
    let name = claim.name();
    let wish = Effect::Replicate {
        claim: name.to_owned(),
        class,
        role: ReplicationState::Primary,
        auto_resync: false,
    };
    let Some(replication) = world.replications.get(name) else {
        status::claim_progressing(plan, name, "the replication of the claim is being set up");
        if !recorded {
            let why = format!("the claim {name} is recorded before its replication begins");
            return plan.wait_for(name, Wait::WritingStore(why));
        }
        return plan.act_for(world, now, name, wish);
    };
    if take_over(world, now, plan, name) {
        return status::claim_progressing(plan, name, TAKEN_OVER);
    }
    if let Some(why) = foreign(world, &**replication, "VolumeReplication", name) {
        status::claim_refused(plan, name, &why);
        return plan.wait_for(name, why);
    }
    if replication.is_going() {
        status::claim_progressing(plan, name, "an earlier replication of the claim is being ended");
        let why = format!("an earlier VolumeReplication {name} is being deleted");
        return plan.wait_for(name, Wait::Removing(why));
    }
    if replication.spec.replication_state != ReplicationState::Primary || replication.spec.auto_resync {
        status::claim_progressing(plan, name, "the claim is being made primary");
        return plan.act_for(world, now, name, wish);
    }
    match word(replication, &ReplicationState::Primary) {
        Word::Done | Word::Filling => primary_reached(world, now, plan, claim, replication),
        Word::NotYet(why) => {
            status::claim_progressing(plan, name, &why);
            plan.wait_for(name, Wait::Storage(why));
        }
        Word::Refused(why) => {
            let why = Wait::StorageRefused(why);
            status::claim_refused(plan, name, &why);
            plan.wait_for(name, why);
        }
    }
}

fn primary_reached(
    world: &World,
    now: Timestamp,
    plan: &mut Plan,
    claim: &Claim,
    replication: &VolumeReplication,
) {
    let name = claim.name();
    let status = replication.status.clone().unwrap_or_default();
    let verdict = plan.verdict(name);
    verdict
        .say(
            words::TYPE_DATA_READY,
            Said::yes(words::REASON_READY, "PVC in the VolumeReplicationGroup is ready for use"),
        )
        .say(words::TYPE_DATA_PROTECTED, flows(replication));
    verdict.last_sync = status.last_sync_time;
    verdict.duration = status.last_sync_duration;
    verdict.bytes = status.last_sync_bytes;
    if let Some(stopped) = stopped(replication) {
        plan.wait_for(name, Wait::Storage(format!("PVC {name} is not replicated now: {}", stopped.message)));
    }
    let Some(info) = current(replication, driver::TYPE_DESTINATION_INFO_AVAILABLE) else {
        return handle(world, now, plan, claim, status.destination_volume_id.as_deref());
    };
    if info.status == "True" {
        plan.verdict(name).say(
            words::TYPE_DESTINATION_INFO_AVAILABLE,
            Said::yes(words::REASON_READY, info.message.clone()),
        );
        return handle(world, now, plan, claim, status.destination_volume_id.as_deref());
    }
    plan.verdict(name).say(
        words::TYPE_DESTINATION_INFO_AVAILABLE,
        Said::no(words::REASON_PROGRESSING, info.message.clone()),
    );
    let why = format!("the storage has not told yet what the volume of {name} is called at the peer");
    plan.wait_for(name, Wait::Storage(why));
}

/// What the driver says where nothing is replicated now. Not every driver tells.
fn stopped(replication: &VolumeReplication) -> Option<&Condition> {
    current(replication, driver::TYPE_REPLICATING).filter(|one| one.status == "False")
}

/// Whether what a primary writes goes to the peer.
fn flows(replication: &VolumeReplication) -> Said {
    let synced = replication.status.as_ref().is_some_and(|status| status.last_sync_time.is_some());
    match stopped(replication) {
        Some(stopped) if !synced => Said::no(
            words::REASON_PROGRESSING,
            format!("nothing was replicated since the PVC is primary here: {}", stopped.message),
        ),
        _ => Said::no(
            words::REASON_REPLICATING,
            "PVC is replicating: what was written since the last sync is not at the peer",
        ),
    }
}

/// What the volume is called at the peer is noted on it, so that the record says so too.
fn handle(world: &World, now: Timestamp, plan: &mut Plan, claim: &Claim, handle: Option<&str>) {
    let (Some(handle), Some(volume)) = (handle.filter(|handle| !handle.is_empty()), &claim.volume) else {
        return;
    };
    if volume.note(annotations::DESTINATION_VOLUME_HANDLE) != Some(handle) {
        let effect = Effect::NoteHandle {
            claim: claim.name().to_owned(),
            volume: volume.name().to_owned(),
            handle: handle.to_owned(),
        };
        plan.act_for(world, now, claim.name(), effect);
    }
}

/// What is said of a claim whose replication an older controller made for this very group.
pub(super) const TAKEN_OVER: &str = "the replication that an older controller made is being taken over";

/// Takes over a VolumeReplication that an older controller made for this very group; `true` while there is one.
pub(super) fn take_over(world: &World, now: Timestamp, plan: &mut Plan, name: &str) -> bool {
    let left = world.replications.get(name).is_some_and(|one| is_left_to(&world.group, &**one));
    if left {
        plan.act_for(world, now, name, Effect::TakeOver { claim: name.to_owned() });
    }
    left
}

/// Whether an object without our labels is this group's all the same: older controllers made the group its owner, or named it in one label only.
pub fn is_left_to(group: &VolumeReplicationGroup, object: &impl kube::Resource) -> bool {
    let mut owners = object.meta().owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.kind == GROUP_KIND);
    object.owner().is_none()
        && match owner {
            Some(owner) => owner.uid == group.uid(),
            None => object.label(labels::VRG_OWNER) == Some(group.name()),
        }
}

/// Why an object of the name that we need is not ours to change.
pub fn foreign(world: &World, object: &impl kube::Resource, kind: &str, name: &str) -> Option<Wait> {
    let owner = object.owner();
    (owner.as_ref() != Some(&world.key())).then(|| {
        let whose = owner
            .map_or_else(|| "nobody says whose it is".to_owned(), |owner| format!("it belongs to {owner}"));
        Wait::Foreign(format!(
            "there is a {kind} {name} that this group did not make ({whose}): it is left alone"
        ))
    })
}
