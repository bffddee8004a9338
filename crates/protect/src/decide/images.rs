//! Which image a claim is restored from: the newest one that is ready, or the newest before the time that a failover shall go back to. What is
//! complete and not published yet is waited for: by a relocation as long as it takes, by a failover for a while.

use crate::decide::plan::Plan;
use crate::why::Wait;
use crate::words::{GroupWords as _, Words as _};
use crate::world::World;
use jiff::{SignedDuration, Timestamp};
use lifeboat_api::annotations;
use lifeboat_api::conditions::volsync::{EXTERNAL_UNPUBLISHED, EXTERNAL_UNPUBLISHED_CUT};
use lifeboat_api::labels;
use lifeboat_api::ramen::DRAction;
use lifeboat_api::snapshot::VolumeSnapshot;
use lifeboat_api::volsync::ReplicationDestination;
use lifeboat_engine::Why as _;
use lifeboat_engine::conditions::whole_seconds;

/// How long a failover waits for a copy that is complete and not published yet.
pub const PUBLISH_WITHIN: SignedDuration = SignedDuration::from_secs(60);

fn is_ready(image: &VolumeSnapshot) -> bool {
    image.status.as_ref().and_then(|status| status.ready_to_use) == Some(true) && !image.is_going()
}

/// When the content of an image was cut, where its mover tells.
fn cut(image: &VolumeSnapshot) -> Option<Timestamp> {
    image.note(annotations::IMAGE_CUT)?.parse().ok()
}

/// Whether an image was cut by then. Status shows whole seconds, and who gives back what it shows means that very copy.
fn is_by(image: &VolumeSnapshot, point: Timestamp) -> bool {
    cut(image).is_some_and(|cut| whole_seconds(cut) <= point)
}

/// Images by age: by their cuts, and where those are not told by when they were made.
fn age(image: &VolumeSnapshot) -> Option<Timestamp> {
    cut(image).or_else(|| Some(image.metadata.creation_timestamp.as_ref()?.0))
}

/// All images that a receiver made, oldest first. What an earlier receiver of the same name made is from before this cluster was last primary.
fn of_claim<'a>(world: &'a World, name: &str, receiver: &ReplicationDestination) -> Vec<&'a VolumeSnapshot> {
    let latest = latest(receiver);
    let mine = |image: &&VolumeSnapshot| {
        let made = image.note(annotations::RECEIVER) == Some(name)
            && image.label(labels::RECEIVER_UID) == receiver.metadata.uid.as_deref();
        made || latest == Some(image.name())
    };
    let mut all: Vec<&VolumeSnapshot> = world.images.values().map(|image| &**image).filter(mine).collect();
    all.sort_by_key(|image| age(image));
    all
}

/// The image that a receiver names.
fn latest(receiver: &ReplicationDestination) -> Option<&str> {
    let image = receiver.status.as_ref()?.latest_image.as_ref()?;
    (image.kind == "VolumeSnapshot").then_some(image.name.as_str())
}

/// The time that a failover shall go back to.
fn point(world: &World) -> Result<Option<Timestamp>, Wait> {
    if world.group.action() == Some(&DRAction::Relocate) {
        return Ok(None);
    }
    let Some(text) = world.group.note(annotations::TO_POINT).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    text.parse().map(Some).map_err(|_| {
        let key = annotations::TO_POINT;
        Wait::PointMissing(format!(
            "{key} is {text:?}, which is no time such as 2030-01-01T12:00:00Z: correct it"
        ))
    })
}

/// The image to restore a claim from.
pub fn chosen<'a>(
    world: &'a World,
    now: Timestamp,
    plan: &mut Plan,
    name: &str,
    receiver: &ReplicationDestination,
) -> Result<&'a VolumeSnapshot, Wait> {
    let all = of_claim(world, name, receiver);
    let point = point(world)?;
    if !world.kinds.snapshots && (latest(receiver).is_some() || !all.is_empty()) {
        return Err(Wait::Unsupported(format!(
            "the cluster has no VolumeSnapshot, as which {name} was received: install the definitions of snapshot.storage.k8s.io"
        )));
    }
    let fits = |image: &&&VolumeSnapshot| is_ready(image) && point.is_none_or(|point| is_by(image, point));
    let best = match (point, latest(receiver)) {
        // What the receiver names is the newest, whatever clocks say.
        (None, Some(named)) => all.iter().find(|image| image.name() == named && is_ready(image)),
        _ => all.iter().rev().find(fits),
    };
    let pending = pending(name, receiver, &all, point);
    let Some(why) = pending else {
        return best.copied().ok_or_else(|| nothing(name, receiver, &all, point));
    };
    // Of what is left, the newest that can be used.
    let next = best.or_else(|| all.iter().rev().find(fits)).copied();
    if world.group.action() == Some(&DRAction::Relocate) {
        return Err(Wait::Unpublished(format!("{why}; a relocation takes nothing older")));
    }
    let until = since(world, name).unwrap_or(now).checked_add(PUBLISH_WITHIN).unwrap_or(now);
    match next {
        Some(next) if now >= until => Ok(next),
        Some(_) => {
            plan.look_at(until);
            Err(Wait::Unpublished(format!(
                "{why}; until {until} it is waited for, then the newest image that is ready is taken"
            )))
        }
        None => Err(Wait::Unpublished(format!("{why}, and there is no other image that is ready"))),
    }
}

/// What is complete, or named by the receiver, and cannot be used yet.
fn pending(
    name: &str,
    receiver: &ReplicationDestination,
    all: &[&VolumeSnapshot],
    point: Option<Timestamp>,
) -> Option<String> {
    let told =
        |key: &str| receiver.status.as_ref()?.external.get(key).cloned().filter(|text| !text.is_empty());
    let wanted =
        |cut: Option<Timestamp>| point.is_none_or(|point| cut.is_none_or(|cut| whole_seconds(cut) <= point));
    if told(EXTERNAL_UNPUBLISHED).is_some() {
        let text = told(EXTERNAL_UNPUBLISHED_CUT);
        if wanted(text.as_deref().and_then(|text| text.parse().ok())) {
            let when = text.map_or_else(String::new, |text| format!(", cut at {text},"));
            return Some(format!("a complete copy of PVC {name}{when} is not published as an image yet"));
        }
    }
    let named = latest(receiver)?;
    match all.iter().find(|image| image.name() == named) {
        Some(image) if !is_ready(image) && wanted(cut(image)) => {
            Some(format!("the image {named} of PVC {name} is not ready yet"))
        }
        // Another one may be there.
        None if all.iter().any(|image| is_ready(image)) => {
            Some(format!("the image {named} of PVC {name} does not exist"))
        }
        _ => None,
    }
}

/// Why there is no image.
fn nothing(
    name: &str,
    receiver: &ReplicationDestination,
    all: &[&VolumeSnapshot],
    point: Option<Timestamp>,
) -> Wait {
    if let Some(point) = point {
        let cuts: Vec<String> = all
            .iter()
            .filter(|image| is_ready(image))
            .filter_map(|image| Some(cut(image)?.to_string()))
            .collect();
        let there = if cuts.is_empty() {
            "there is none".to_owned()
        } else {
            format!("there are {}", cuts.join(", "))
        };
        return Wait::PointMissing(format!(
            "PVC {name} has no image that was cut at or before {point} ({there}): choose another time, or take the annotation {} off",
            annotations::TO_POINT
        ));
    }
    match latest(receiver) {
        Some(named) => Wait::CannotRestore(format!("the image {named} of {name} does not exist")),
        None => Wait::CannotRestore(format!(
            "no complete copy of PVC {name} was received here since this cluster was last primary: move back to the cluster that has its data, and wait until `lifeboat status` says that a failover is possible"
        )),
    }
}

/// Since when a copy is waited for: it is told in status.
fn since(world: &World, name: &str) -> Option<Timestamp> {
    let reason = Wait::Unpublished(String::new()).reason();
    let blockers = world.group.status.iter().flat_map(|status| &status.blockers);
    let mut mine = blockers.filter(|one| one.reason == reason && one.pvc.as_deref() == Some(name));
    mine.find_map(|one| Some(one.since.as_ref()?.0))
}

/// An image that is newer than the one that a failover goes back to, and that its mover may still delete.
pub fn newer(
    world: &World,
    name: &str,
    receiver: &ReplicationDestination,
    chosen: &VolumeSnapshot,
) -> Option<String> {
    point(world).ok()??;
    let all = of_claim(world, name, receiver);
    let mut later = all.iter().filter(|image| age(image) > age(chosen) && !image.is_going());
    later
        .find(|image| image.label(labels::VOLSYNC_DO_NOT_DELETE) != Some("true"))
        .map(|image| image.name().to_owned())
}
