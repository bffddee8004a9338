//! A receiver that is paused: nobody writes to its claim, but for the way back to an image where that is asked for.

use super::decide::{
    Effect, ReceiverDecision, act, forgets, is_busy, is_direct, is_rolling_back, publish, wait,
};
use super::status;
use super::world::World;
use crate::place::{Place, back_of};
use crate::why::Wait;
use crate::words::Words as _;
use jiff::Timestamp;
use lifeboat_api::volsync::ReplicationDestination;
use lifeboat_api::{annotations, finalizers};
use lifeboat_engine::Decision;

/// Every rule about receivers that are paused.
pub fn paused(world: &World, receiver: &ReplicationDestination, now: Timestamp) -> ReceiverDecision {
    // Nobody knows yet which volume others may write to from now on, nor what it holds.
    if let Place::Unlisted(class) = &world.place {
        return act(world, now, Effect::List { class: class.clone() });
    }
    let asked = receiver.note(annotations::ROLL_BACK_TO).filter(|image| !image.is_empty());
    let arrived = status::unpublished(world).filter(|_| {
        let ours = world.staging.as_ref().is_some_and(|one| one.receiver.as_deref() == Some(receiver.uid()));
        ours && asked.is_none() && world.users.is_empty() && !world.touched
    });
    if arrived.is_none() && forgets(world, receiver) {
        return Decision::act([Effect::Renew]);
    }
    if world.expected.is_some() {
        return Decision::act([Effect::Hush]);
    }
    // What is complete is kept as an image all the same: whoever asked for the pause may want the newest one.
    if let (Some(completed), Place::Here(_)) = (arrived, &world.place) {
        return publish(world, receiver, completed, now);
    }
    match asked.filter(|image| receiver.note(annotations::ROLLED_BACK_TO) != Some(image)) {
        Some(image) if is_direct(receiver) => back(world, receiver, image, now),
        // Its claim is made from the image itself.
        Some(image) => Decision::act([Effect::Answer { image: image.to_owned() }]),
        None if is_busy(world) => Decision::act([Effect::Hush]),
        // Who asked has the answer: what was replaced is not needed any more.
        None if world.clone.is_some() => Decision::act([Effect::DropClone]),
        None => wait(world, now, Wait::Paused),
    }
}

fn back(world: &World, receiver: &ReplicationDestination, image: &str, now: Timestamp) -> ReceiverDecision {
    let failed = |why: String| wait(world, now, Wait::Failed(why));
    let here = match &world.place {
        Place::Here(here) => here,
        Place::Unlisted(class) => return act(world, now, Effect::List { class: class.clone() }),
        _ => return failed(format!("the volume to bring back to the image {image} is not on its node")),
    };
    if !world.users.is_empty() {
        let users = world.users.join(", ");
        let why = format!(
            "the claim is used by {users}: it is brought back to the image {image} when nobody uses it"
        );
        let why = Wait::InUse(why);
        return match is_rolling_back(world) {
            true => Decision::act([Effect::Hush]),
            false => wait(world, now, why),
        };
    }
    // Without it, the receiver could vanish while something of it still writes.
    if !receiver.has_finalizer(finalizers::RECEIVER) {
        return act(world, now, Effect::Guard);
    }
    match &world.back {
        Some(Place::Here(_)) => {}
        Some(Place::Unlisted(class)) => return act(world, now, Effect::List { class: class.clone() }),
        _ => return failed(format!("the image {image} is not on this node: nothing was changed")),
    }
    let job = world.job.as_ref().filter(|job| job.of == image);
    if job.is_none() && is_rolling_back(world) {
        return Decision::act([Effect::Hush]);
    }
    match job.and_then(|job| job.outcome.as_ref().map(|outcome| (outcome, job.failures))) {
        None if job.is_some() => {
            let why = Wait::RollingBack(format!("the claim is being brought back to the image {image}"));
            return wait(world, now, why);
        }
        Some(((_, Ok(())), _)) => return Decision::act([Effect::Answer { image: image.to_owned() }]),
        Some(((ended, Err(failure)), failures)) => {
            if let Some(until) = failure.not_before(*ended, failures, now) {
                let why = failure.wait(failures);
                let shown = status::waiting(world, &why, now);
                return Decision::wait_until(why, until).showing(shown);
            }
        }
        None => {}
    }
    if back_of(&here.volume) == Some(image) {
        return Decision::act([Effect::Answer { image: image.to_owned() }]);
    }
    if !world.uncloned {
        return swap(world, image, now);
    }
    if here.needs_mount() && !world.mounts.0 {
        return act(world, now, Effect::Mount);
    }
    if here.needs_mount() && !world.mounts.1 {
        return act(world, now, Effect::MountBack);
    }
    act(world, now, Effect::StartBack)
}

/// A copy of the image takes the volume's place in one step, so that there is never half of the one and half of the other.
fn swap(world: &World, image: &str, now: Timestamp) -> ReceiverDecision {
    let image = image.to_owned();
    match &world.clone {
        None => act(world, now, Effect::Clone { image }),
        Some(clone) if back_of(clone) != Some(image.as_str()) => act(world, now, Effect::DropClone),
        Some(_) if world.mounts.0 || world.mounts.1 => Decision::act([Effect::Hush]),
        Some(_) => act(world, now, Effect::Swap { image }),
    }
}
