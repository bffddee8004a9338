//! What nobody asked for, what nobody can know, and what is not ours.

use super::{Asked, Before, Moment};
use lifeboat_api::annotations;
use lifeboat_api::conditions::{drpc as told, vrg};
use lifeboat_api::ramen::DRState;
use lifeboat_engine::conditions::holds;
use lifeboat_hub::drpc::commission::{Act, Commission};
use lifeboat_hub::drpc::world::GroupWords;
use lifeboat_hub::words::Words as _;
use lifeboat_hub::works;
use serde_json::json;

/// S28: drills are not served; while one is asked for, nothing of the living application changes.
pub fn drills_change_nothing(moment: &Moment<'_>, before: &mut Before) -> Result<(), String> {
    let drilling = moment.drpc.filter(|drpc| drpc.spec.dry_run && !moment.is_going());
    let Some(drpc) = drilling else {
        before.drill = None;
        return Ok(());
    };
    let sent = |work: &&lifeboat_api::work::ManifestWork| {
        json!([
            work.space(),
            work.name(),
            work.metadata.annotations,
            works::manifests(work).collect::<Vec<_>>()
        ])
    };
    let works: Vec<_> = moment.works.iter().map(sent).collect();
    let commission = Commission::on(drpc).map(|given| given.notes());
    let now = json!([works, moment.homes, commission]).to_string();
    match before.drill.get_or_insert_with(|| now.clone()) == &now {
        true => Ok(()),
        false => Err(format!("it was {:?} and is {now}", before.drill)),
    }
}

fn asked(drpc: &lifeboat_api::ramen::DRPlacementControl) -> Asked {
    let spec = &drpc.spec;
    let act = Act::asked(spec.action.as_ref());
    let target = match act {
        Some(Act::Failover) => spec.failover_cluster.clone(),
        _ => spec.preferred_cluster.clone(),
    };
    Asked { act, target: target.unwrap_or_default(), drill: spec.dry_run }
}

/// S29: a role changes hands only because somebody said so. Taking a field away, an action or a drill, says nothing.
pub fn nothing_by_omission(moment: &Moment<'_>, before: &mut Before) -> Result<(), String> {
    let Some(drpc) = moment.drpc else { return Ok(()) };
    let now = asked(drpc);
    let was = before.asked.replace(now.clone());
    if was.as_ref() != Some(&now) {
        let says = |now: &Asked| now.act.filter(|_| !now.drill).map(|act| (act, now.target.clone()));
        before.verb = match &was {
            None => says(&now),
            Some(was) if was.act == now.act && was.target == now.target => None,
            Some(_) => says(&now).filter(|(act, _)| *act != Act::Deploy),
        };
    }
    let Some(given) = Commission::on(drpc) else { return Ok(()) };
    let last = before.last();
    let moves = last.is_none_or(|last| given.epoch > last.epoch && given.holder != last.holder);
    // Whoever deletes amid a move wants the application to be somewhere.
    if !moves || moment.is_going() || before.verb == Some((given.act, given.holder.clone())) {
        return Ok(());
    }
    Err(format!("{given:?} follows {last:?}, and what was asked for is {:?}", before.verb))
}

/// S30: a hub that lost its memory changes and removes nothing, before every cluster that can be reached has told what it has, and the stores have
/// where none of them has anything.
pub fn amnesia_is_harmless(moment: &Moment<'_>, before: &mut Before) -> Result<(), String> {
    let Some(drpc) = moment.drpc else { return Ok(()) };
    let phase = moment.phase();
    let living = moment.places.iter().any(|place| place.group().is_some());
    let deaf = moment.places.iter().find(|place| !place.truth.dead && !place.answered);
    let forgot = phase.is_none() && living;
    before.lost = deaf.is_some() && (before.lost || forgot);
    let Some(deaf) = deaf.filter(|_| before.lost) else {
        let found = moment.places.iter().any(|place| place.seen.is_some());
        let begins = before.phase.is_none() && phase.is_some() && phase != Some(DRState::Deleting);
        return match begins && !found && moment.stores_read == Some(false) {
            true => Err("no group was seen, and no store was asked".into()),
            false => Ok(()),
        };
    };
    let unheard = |what: String| Err(format!("{what}, and {} has not been heard of", deaf.name));
    if before.phase.is_none() && phase.as_ref().is_some_and(|phase| *phase != DRState::Deleting) {
        return unheard(format!("it is {phase:?} again"));
    }
    for place in &moment.places {
        let (Some(intent), Some(group)) = (place.intent, place.group()) else { continue };
        if place.going {
            return unheard(format!("the group of {} is taken back", place.name));
        }
        if intent.is_primary() != group.is_primary() {
            return unheard(format!("{} is told another role than it has", place.name));
        }
    }
    for home in &moment.homes {
        let primary = |place: &super::Place<'_>| place.group().is_some_and(GroupWords::is_primary);
        if !moment.place(home).is_some_and(primary) {
            return unheard(format!("it is placed on {home}, which is not primary"));
        }
    }
    let given = Commission::on(drpc).filter(|given| !before.commissions.contains_key(&given.epoch));
    given.map_or(Ok(()), |given| unheard(format!("{given:?} is given out")))
}

/// S32, as far as a hub can break it: a group belongs to one DRPlacementControl for as long as it is asked for, and no application is called protected
/// whose primary says that another wants its claims.
pub fn one_owner(moment: &Moment<'_>, before: &mut Before) -> Result<(), String> {
    for place in &moment.places {
        let Some(owner) = place.owner.clone() else {
            before.owners.remove(place.name);
            continue;
        };
        let known = before.owners.entry(place.name.to_owned()).or_insert_with(|| owner.clone());
        if *known != owner {
            return Err(format!("the group of {} was {known}'s and is {owner}'s", place.name));
        }
    }
    let Some(drpc) = moment.drpc.filter(|_| moment.just_told) else { return Ok(()) };
    let said = drpc.status.as_ref().map(|status| &status.conditions[..]).unwrap_or_default();
    let protected = holds(said, told::TYPE_PROTECTED, drpc.metadata.generation);
    let holder = Commission::on(drpc).and_then(|given| moment.place(&given.holder)?.seen);
    let disputed = holder.and_then(|group| group.status.as_ref()).is_some_and(|status| {
        let mut said = status.conditions.iter();
        said.any(|one| one.type_ == vrg::TYPE_NO_CLUSTER_DATA_CONFLICT && one.status == "False")
    });
    match protected && disputed {
        true => Err("it is called protected, and its claims are another's".into()),
        false => Ok(()),
    }
}

/// S33: what is sent for an application is its namespace, and objects in it of three kinds; its group reaches no further.
pub fn within_the_namespace(moment: &Moment<'_>, _: &mut Before) -> Result<(), String> {
    let Some(drpc) = moment.drpc else { return Ok(()) };
    let space = drpc.note(annotations::APP_NAMESPACE).unwrap_or_else(|| drpc.space());
    for work in &moment.works {
        for manifest in works::manifests(work) {
            let text =
                |pointer: &str| manifest.pointer(pointer).and_then(|one| one.as_str()).unwrap_or_default();
            let (kind, name, within) = (text("/kind"), text("/metadata/name"), text("/metadata/namespace"));
            let ours = match kind {
                "Namespace" => name == space,
                "VolumeReplicationGroup" | "Secret" => within == space,
                _ => false,
            };
            if !ours {
                return Err(format!("{} is sent {kind} {within}/{name}", work.space()));
            }
        }
    }
    for place in &moment.places {
        let Some(intent) = place.intent else { continue };
        if intent.spec.protected_namespaces.iter().flatten().any(|named| named != space) {
            return Err(format!("the group of {} reaches other namespaces", place.name));
        }
        let volsync = intent.spec.vol_sync.iter();
        let named = volsync.flat_map(|volsync| {
            let received = volsync.rd_spec.iter().filter_map(|one| one.protected_pvc.as_ref());
            received.chain(volsync.rs_spec.iter().filter_map(|one| one.protected_pvc.as_ref()))
        });
        for claim in named {
            if claim.namespace.as_deref().is_some_and(|within| !within.is_empty() && within != space) {
                return Err(format!("the group of {} copies {claim:?}", place.name));
            }
        }
    }
    Ok(())
}
