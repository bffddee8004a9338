//! What is promoted, what is lost, and what is said of it.

use super::{Before, Moment};
use lifeboat_api::annotations;
use lifeboat_api::conditions::vrg as words;
use lifeboat_api::ramen::{DRState, VrgState};
use lifeboat_hub::drpc::commission::{Act, Commission, epoch_on};
use lifeboat_hub::drpc::world::GroupWords as _;
use lifeboat_hub::words::Words as _;

/// S5, as far as a hub can break it: a cluster takes over only when its group has settled as secondary or is primary; no work lets a group begin
/// empty that was ever primary anywhere; and every group selects the whole application. Which point is restored, and whether it is complete and
/// verified, the protector there decides.
pub fn only_the_whole_is_promoted(moment: &Moment<'_>, before: &mut Before) -> Result<(), String> {
    for place in &moment.places {
        let Some(intent) = place.intent.filter(|_| !place.going) else { continue };
        for note in [annotations::MAY_BE_EMPTY, annotations::ROLL_BACK_TO] {
            if intent.note(note).is_some() {
                return Err(format!(
                    "the work of {} carries {note}, which only a user may ask for",
                    place.name
                ));
            }
        }
        if let Some(drpc) = moment.drpc
            && intent.spec.pvc_selector != drpc.spec.pvc_selector
        {
            return Err(format!("the group of {} selects {:?}", place.name, intent.spec.pvc_selector));
        }
        let Some(given) = Commission::on(intent) else { continue };
        let first = intent.note(annotations::FIRST_DEPLOYMENT) == Some("true");
        let reigned = moment
            .places
            .iter()
            .flat_map(|other| other.truth.reigns.iter().map(|epoch| (other.name, *epoch)))
            .any(|reign| reign != (place.name, given.epoch));
        if first && (given.act != Act::Deploy || reigned) {
            return Err(format!("{} is told that nothing was ever recorded", place.name));
        }
    }
    taken_over_by_the_settled(moment, before)
}

/// An epoch that moves the role is given out only to a cluster whose group has settled as secondary, or is primary still. What a cluster can be
/// promoted from later, when it is told, its protector decides.
fn taken_over_by_the_settled(moment: &Moment<'_>, before: &Before) -> Result<(), String> {
    let given = moment.drpc.and_then(Commission::on).filter(|given| given.act != Act::Deploy);
    let moves = |given: &Commission| {
        before.last().is_some_and(|last| given.epoch > last.epoch && given.holder != last.holder)
    };
    // Whoever deletes amid a move wants the application to be somewhere; and what was given out before a hub forgot it was judged then.
    let Some(given) = given.filter(|given| moves(given) && !moment.is_going() && moment.phase().is_some())
    else {
        return Ok(());
    };
    let Some(group) = moment.place(&given.holder).and_then(|place| place.group()) else {
        return Err(format!("{} takes over and has no group", given.holder));
    };
    let settled =
        group.status.as_ref().and_then(|status| status.state.as_ref()) == Some(&VrgState::Secondary);
    match settled || group.is_primary() {
        true => Ok(()),
        false => Err(format!("{} takes over from {:?}", given.holder, group.status)),
    }
}

/// S7, as far as a hub can break it: what a failover gives up is on record no later than the failover, and is what the old primary really has not
/// copied. Where nobody can know, no number is given.
pub fn losses_are_told(moment: &Moment<'_>, before: &mut Before) -> Result<(), String> {
    let Some(drpc) = moment.drpc else { return Ok(()) };
    let Some(given) = Commission::on(drpc).filter(|given| given.act == Act::Failover) else { return Ok(()) };
    let Some(last) = before.last().filter(|last| last.epoch < given.epoch && last.holder != given.holder)
    else {
        return Ok(());
    };
    // A relocation whose target died has its last copy; and a hub without memory gives out nothing that was not given out before.
    if moment.is_going() || moment.phase().is_none() {
        return Ok(());
    }
    let Some(old) = moment.place(&last.holder) else { return Ok(()) };
    let Some(told) = drpc.status.as_ref().and_then(|status| status.last_failover.as_ref()) else {
        return Err(format!(
            "{} takes over from {}, and nothing is said of what is lost",
            given.holder, old.name
        ));
    };
    let copied = old.group().and_then(|group| group.status.as_ref()?.last_group_sync_time.clone());
    // A group that came back without its PVCs knows of no copy; what it reported before its deletion counts.
    if old.truth.reigns.last() != Some(&last.epoch) || old.truth.orphaned {
        return Ok(());
    }
    // Nobody may know; then no number is given.
    if told.data_until.is_none() {
        return match told.at_most_seconds {
            None => Ok(()),
            Some(seconds) => Err(format!("{seconds} seconds are told, and nobody knows")),
        };
    }
    if told.data_until != copied {
        return Err(format!(
            "data is said to be there until {:?}, and it is until {copied:?}",
            told.data_until
        ));
    }
    let Some(time) = told.time.as_ref().map(|time| time.0).filter(|time| *time <= moment.now) else {
        return Err(format!("the loss is told for {:?}, and it is {}", told.time, moment.now));
    };
    let lost = copied.map(|until| time.duration_since(until.0).as_secs()).filter(|lost| *lost >= 0);
    // The time is told without the fraction of a second that may be lost too.
    match told.at_most_seconds == lost || told.at_most_seconds == lost.map(|lost| lost + 1) {
        true => Ok(()),
        false => Err(format!("{lost:?} seconds are lost, and {:?} are told", told.at_most_seconds)),
    }
}

/// S13: what is said to have arrived has arrived, where its data is ready.
pub fn phases_are_honest(moment: &Moment<'_>, before: &mut Before) -> Result<(), String> {
    let Some(drpc) = moment.drpc else { return Ok(()) };
    let phase = moment.phase();
    // One without a phase is new, or came back from a backup.
    if phase == before.phase || phase.is_none() {
        return Ok(());
    }
    legal(before.phase.as_ref(), phase.as_ref())?;
    let moved = matches!(phase, Some(DRState::FailedOver | DRState::Relocated));
    if !moved && phase != Some(DRState::Deployed) {
        return Ok(());
    }
    let Some(given) = Commission::on(drpc) else { return Err(format!("{phase:?} by nobody")) };
    if moment.homes != [given.holder.clone()] {
        return Err(format!("{phase:?} on {}, and it is placed on {:?}", given.holder, moment.homes));
    }
    let Some(place) = moment.place(&given.holder).filter(|place| moved && !place.truth.dead) else {
        return Ok(());
    };
    let Some(group) = place.group().filter(|group| epoch_on(*group) == given.epoch) else {
        return Err(format!("{phase:?} on {}, which has no group at epoch {}", place.name, given.epoch));
    };
    let said = group.status.as_ref().map(|status| &status.conditions[..]).unwrap_or_default();
    for type_ in [words::TYPE_CLUSTER_DATA_READY, words::TYPE_DATA_READY] {
        if !said.iter().any(|one| one.type_ == type_ && one.status == "True") {
            return Err(format!("{phase:?} on {}, where {type_} is not True", place.name));
        }
    }
    Ok(())
}

/// S27: phases follow each other as they are documented to.
fn legal(was: Option<&DRState>, is: Option<&DRState>) -> Result<(), String> {
    let text = |phase: Option<&DRState>| phase.map_or("", DRState::as_str).to_owned();
    let (was, is) = (text(was), text(is));
    let ok = match (was.as_str(), is.as_str()) {
        (_, "Deleting") | ("", _) => true,
        ("Initiating", next) => next != "WaitForUser",
        ("Deploying", "Deployed") | ("FailingOver", "FailedOver") | ("Relocating", "Relocated") => true,
        ("Deployed" | "FailedOver" | "Relocated", "Initiating" | "FailingOver" | "Relocating") => true,
        // An action that was changed on the way.
        ("Relocating", "Initiating" | "FailingOver" | "Deployed" | "FailedOver") => true,
        // One that was called off: the application is put back as its last action had it.
        ("Relocating", "Deploying") => true,
        ("FailingOver", "Initiating" | "Relocating") | ("Deploying", "Initiating") => true,
        ("WaitForUser", _) => true,
        // The group was deleted by accident, and its PVCs with it: the user must choose.
        (_, "WaitForUser") => true,
        _ => false,
    };
    if ok { Ok(()) } else { Err(format!("from {was:?} to {is:?}")) }
}
