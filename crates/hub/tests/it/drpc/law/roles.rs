//! Who is primary, at which epoch, and where the application is.

use super::{Before, Moment, Place};
use lifeboat_api::conditions::vrg as words;
use lifeboat_hub::drpc::commission::{Act, Commission, epoch_on};
use lifeboat_hub::drpc::world::GroupWords;

/// S1: at most one cluster is meant to be primary, at any moment.
pub fn one_primary(moment: &Moment<'_>, _: &mut Before) -> Result<(), String> {
    let primaries: Vec<&str> = moment
        .places
        .iter()
        .filter(|place| place.is_meant_primary() && !place.going)
        .map(|place| place.name)
        .collect();
    if primaries.len() > 1 { Err(format!("{primaries:?} are both meant to be primary")) } else { Ok(()) }
}

/// S2: whoever became primary did so at an epoch that nobody else had.
pub fn one_reign(moment: &Moment<'_>, _: &mut Before) -> Result<(), String> {
    let reigns: Vec<i64> = moment.places.iter().flat_map(|place| place.truth.reigns.clone()).collect();
    let mut once = reigns.clone();
    once.sort_unstable();
    once.dedup();
    if once.len() == reigns.len() { Ok(()) } else { Err(format!("reigns {reigns:?} overlap")) }
}

fn grown(before: &mut Before, name: String, epoch: i64) -> Result<(), String> {
    let known = before.epochs.entry(name.clone()).or_insert(epoch);
    let fell = epoch < *known;
    let was = std::mem::replace(known, epoch);
    if fell { Err(format!("{name} fell from {was} to {epoch}")) } else { Ok(()) }
}

/// S3, S26: epochs only grow, everywhere, and mean one thing only; no work carries one that is not on record.
pub fn epochs_grow(moment: &Moment<'_>, before: &mut Before) -> Result<(), String> {
    let Some(drpc) = moment.drpc else { return Ok(()) };
    let on_record = epoch_on(drpc);
    if on_record == 0 {
        // What was given out and reached no cluster is nobody's, once the hub has forgotten it.
        let groups = moment.places.iter().filter_map(|place| place.group());
        let highest = groups.map(GroupWords::epoch).max().unwrap_or(0);
        before.epochs.remove("the commission");
        before.commissions.retain(|epoch, _| *epoch <= highest);
    }
    for place in &moment.places {
        let Some(intent) = place.intent else {
            // One that was lost with the hub is asked for anew as it is.
            before.epochs.remove(&format!("the work of {}", place.name));
            continue;
        };
        let epoch = epoch_on(intent);
        // One that says nothing is new, or came back from a backup; its groups may have been taken up as they are.
        if on_record > 0 {
            grown(before, format!("the work of {}", place.name), epoch)?;
        }
        // What was given out and never sent is nobody's, should the hub forget it.
        let highest = before.commissions.keys().next_back().copied().unwrap_or(0);
        if on_record > 0 && epoch > on_record.max(highest) {
            return Err(format!(
                "the work of {} has epoch {epoch}, and on record is {on_record}",
                place.name
            ));
        }
        if let Some(sent) = Commission::on(intent) {
            let known = before.commissions.entry(sent.epoch).or_insert_with(|| sent.clone());
            if known.holder != sent.holder {
                return Err(format!("epoch {} was {}'s and is {}'s", sent.epoch, known.holder, sent.holder));
            }
        }
    }
    if on_record > 0 {
        grown(before, "the commission".into(), on_record)?;
    }
    if let Some(given) = Commission::on(drpc) {
        let sent =
            moment.places.iter().filter_map(|place| place.intent).any(|one| epoch_on(one) == given.epoch);
        let known = before.commissions.entry(given.epoch).or_insert_with(|| given.clone());
        // One that no group ever carried is given anew by a hub that forgot it.
        if known.holder != given.holder && sent {
            return Err(format!("epoch {} was {}'s and is {}'s", given.epoch, known.holder, given.holder));
        }
        *known = given;
    }
    Ok(())
}

/// S6: a relocation's target becomes primary only when the source has given up, and everything that the application wrote there is in its last copy.
pub fn relocation_loses_nothing(moment: &Moment<'_>, before: &mut Before) -> Result<(), String> {
    for place in moment.places.iter().filter(|place| place.is_meant_primary()) {
        let Some(given) = place.intent.and_then(Commission::on) else { continue };
        let fresh = before.promoted.get(place.name) != Some(&given.epoch);
        if given.act != Act::Relocate || !fresh {
            continue;
        }
        let earlier = before.commissions.range(..given.epoch).next_back();
        let source = earlier.map(|(_, was)| was.holder.clone()).filter(|source| source != place.name);
        let Some(source) = source.and_then(|source| moment.place(&source)) else { continue };
        // One that was taken up by a hub without memory was promoted before.
        if place.truth.reigns.contains(&given.epoch) {
            continue;
        }
        if let Some(left) = source.group().filter(|left| left.is_primary() && epoch_on(*left) < given.epoch) {
            return Err(format!("{} is promoted while {} is {:?}", place.name, source.name, left.state()));
        }
        let (written, cut) = (source.truth.written, source.truth.cut);
        if cut != Some(written) {
            return Err(format!(
                "{} is promoted, {} has {written} writes, and its last copy is {cut:?}",
                place.name, source.name
            ));
        }
    }
    Ok(())
}

fn has_data(place: &Place<'_>) -> bool {
    let said = place.group().and_then(|group| group.status.as_ref()).map(|status| &status.conditions);
    said.is_some_and(|all| {
        all.iter().any(|one| one.type_ == words::TYPE_CLUSTER_DATA_READY && one.status == "True")
    })
}

/// S25: the application is meant to be in one place, and only where data can be used.
pub fn placed_well(moment: &Moment<'_>, before: &mut Before) -> Result<(), String> {
    let [home] = &moment.homes[..] else {
        return if moment.homes.is_empty() {
            Ok(())
        } else {
            Err(format!("it is placed on {:?}", moment.homes))
        };
    };
    let Some(drpc) = moment.drpc else { return Ok(()) };
    let Some(given) = Commission::on(drpc) else {
        // A deletion that lost its memory goes by what it sees.
        let seen = moment.place(home).is_some_and(|place| place.group().is_some_and(GroupWords::is_primary));
        return match moment.is_going() && seen || before.lost {
            true => Ok(()),
            false => Err(format!("it is placed on {home} by nobody")),
        };
    };
    let place = moment.place(home);
    // What goes takes its words with it; and where the application was placed before, it stays.
    if given.holder != *home || moment.is_going() || before.homes == moment.homes {
        return Ok(());
    }
    if given.act == Act::Deploy || place.is_none_or(|place| place.truth.dead || has_data(place)) {
        return Ok(());
    }
    Err(format!("it is placed on {home}, which has no data"))
}

/// S10: while protection is removed the application stays placed, and nobody takes back the primary's group before the others'.
pub fn deletion_keeps_the_application(moment: &Moment<'_>, _: &mut Before) -> Result<(), String> {
    // What somebody deletes by hand is no deletion of ours.
    let primary_goes =
        moment.is_going() && moment.places.iter().any(|place| place.is_meant_primary() && place.going);
    let mut others = moment
        .places
        .iter()
        .filter(|place| place.intent.is_some() && !place.is_meant_primary() && !place.truth.dead);
    if primary_goes && let Some(other) = others.next() {
        return Err(format!("the primary's group goes before that of {}", other.name));
    }
    for place in &moment.places {
        let ordered = place.group().is_none_or(GroupWords::ends_protection);
        if place.going && moment.is_going() && !place.truth.dead && !ordered {
            return Err(format!(
                "the group of {} is taken back before it knows that this ends protection",
                place.name
            ));
        }
        if place.intent.is_some_and(GroupWords::ends_protection) && !moment.is_going() {
            return Err(format!(
                "the group of {} is told to end protection, and nobody deletes anything",
                place.name
            ));
        }
    }
    let was_placed = moment.places.iter().any(|place| place.truth.written > 0);
    let orphaned = moment.places.iter().any(|place| place.truth.orphaned);
    match primary_goes && moment.homes.is_empty() && was_placed && !orphaned {
        true => Err("protection is removed while the application is nowhere".into()),
        false => Ok(()),
    }
}
