//! Every rule about receivers that receive; [`super::paused`] has those about receivers that do not.

use super::make::{image_name, is_right_service, is_right_slice};
use super::paused::paused;
use super::status;
use super::world::{Lineage, World};
use crate::kinds::claim_of_receiver;
use crate::memory::Staging;
use crate::place::{FORMATTED_TAG, Here, Place, back_of, epoch_of, replica_of};
use crate::why::Wait;
use crate::words::Words as _;
use jiff::Timestamp;
use lifeboat_api::conditions::volsync as words;
use lifeboat_api::snapshot::VolumeSnapshot;
use lifeboat_api::volsync::{CopyMethod, ReplicationDestination, ReplicationDestinationStatus, service_name};
use lifeboat_api::{annotations, finalizers, labels};
use lifeboat_engine::Decision;
use lifeboat_stream::{Completed, Refusal};
use std::cmp::Reverse;

/// What can be done about a receiver.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum Effect {
    /// Looks at the disks of a class.
    List {
        /// The class.
        class: String,
    },
    /// Makes the claim to write to.
    MakeClaim,
    /// Has the claim's volume made on this node.
    SelectNode,
    /// Asks for more room in the claim that was made.
    Grow,
    /// Keeps the receiver from vanishing while something may write to the application's claim.
    Guard,
    /// Lets it go.
    Release,
    /// Mounts the volume.
    Mount,
    /// Finds out what is on a volume that nothing is known of.
    Begin,
    /// Gives up what is known of a volume: it is part of something that nobody sends any more, or others may write to it.
    Renew,
    /// Expects copies.
    Listen {
        /// Lower ones are refused.
        epoch: u64,
    },
    /// Stops expecting copies, and releases the volume.
    Hush,
    /// Makes or corrects the service.
    Serve,
    /// Makes or corrects where it leads.
    Lead,
    /// Keeps what arrived as an image.
    Image {
        /// What it is called.
        name: String,
    },
    /// What arrived is kept: the next copy starts from it.
    Advance,
    /// Keeps an image aside, because copies of another volume are about to come.
    KeepAside {
        /// Its name.
        name: String,
    },
    /// Removes an image that a newer one has replaced.
    DropImage {
        /// Its name.
        name: String,
    },
    /// Makes a copy of the image to go back to, beside the volume.
    Clone {
        /// The image.
        image: String,
    },
    /// Lets it take the volume's place, in one step.
    Swap {
        /// The image.
        image: String,
    },
    /// Removes what stands beside the volume: what it has replaced, or what is not wanted any more.
    DropClone,
    /// Forgets that the claim was brought back to an image, before anything is written to it.
    Forget,
    /// Mounts the image to go back to.
    MountBack,
    /// Begins to bring the claim back to it.
    StartBack,
    /// Says that the claim is as that image.
    Answer {
        /// The image.
        image: String,
    },
}

/// What is decided about a receiver.
pub type ReceiverDecision = Decision<Effect, Wait, ReplicationDestinationStatus>;

/// Every rule about receivers.
pub fn decide(world: &World, now: Timestamp) -> ReceiverDecision {
    let Some(receiver) = world.receiver.as_deref() else { return cleared(world) };
    if world.rival {
        return leave(world, receiver).unwrap_or_else(|| Decision::wait(Wait::OtherMover));
    }
    if receiver.is_going() {
        return leave(world, receiver).unwrap_or_else(|| {
            match receiver.has_finalizer(finalizers::RECEIVER) {
                true => Decision::act([Effect::Release]),
                false => Decision::settled(),
            }
        });
    }
    if receiver.spec.paused {
        return paused(world, receiver, now);
    }
    if let Some(why) = unsupported(world, receiver) {
        return wait(world, now, why);
    }
    if is_served(receiver) {
        return leave(world, receiver).unwrap_or_else(|| wait(world, now, Wait::Manual));
    }
    match &world.place {
        Place::Here(here) => receive(world, receiver, here, now),
        place => absent(world, receiver, place, now),
    }
}

/// Whether anything of this process may write to the volume or holds it mounted.
pub fn is_busy(world: &World) -> bool {
    world.expected.is_some() || world.mounts.0 || is_rolling_back(world)
}

/// Whether a job of this process brings the volume back to an image.
pub fn is_rolling_back(world: &World) -> bool {
    world.job.as_ref().is_some_and(|job| job.outcome.is_none())
}

/// Leaves the volume to others. What it holds is unknown, on disk, before anybody else can write to it, so that the next copy compares.
fn leave(world: &World, receiver: &ReplicationDestination) -> Option<ReceiverDecision> {
    if forgets(world, receiver) {
        return Some(Decision::act([Effect::Renew]));
    }
    is_busy(world).then(|| Decision::act([Effect::Hush]))
}

/// Whether something is still known about a volume that others may write to.
pub fn forgets(world: &World, receiver: &ReplicationDestination) -> bool {
    let others = is_direct(receiver) || world.rival || world.touched || !world.users.is_empty();
    others && world.staging.as_ref().is_some_and(Staging::is_known)
}

/// Whether a receiver writes into a claim of somebody else's.
pub fn is_direct(receiver: &ReplicationDestination) -> bool {
    let tls = receiver.spec.rsync_tls.as_ref();
    tls.and_then(|tls| tls.volume.destination_pvc.as_ref()).is_some_and(|name| !name.is_empty())
}

/// Waits, and says so.
pub fn wait(world: &World, now: Timestamp, why: Wait) -> ReceiverDecision {
    let shown = status::waiting(world, &why, now);
    Decision::wait(why).showing(shown)
}

/// An effect, with the last failure shown while the engine tries it again.
pub fn act(world: &World, now: Timestamp, effect: Effect) -> ReceiverDecision {
    let decision = Decision::act([effect]);
    match &world.trouble {
        Some(trouble) => {
            let why = Wait::Failed(trouble.message.clone());
            decision.showing(status::waiting(world, &why, now))
        }
        None => decision,
    }
}

/// The receiver is gone: so is what was made for it, but for images that somebody keeps.
fn cleared(world: &World) -> ReceiverDecision {
    if is_busy(world) {
        return Decision::act([Effect::Hush]);
    }
    let left = world.images.iter().filter(|image| !is_kept(image) && !image.is_going());
    Decision::act(left.map(|image| Effect::DropImage { name: image.name().to_owned() }))
}

fn is_kept(image: &VolumeSnapshot) -> bool {
    image.label(labels::VOLSYNC_DO_NOT_DELETE) == Some("true")
}

fn unsupported(world: &World, receiver: &ReplicationDestination) -> Option<Wait> {
    let tls = receiver.spec.rsync_tls.as_ref();
    let key = tls.and_then(|tls| tls.key_secret.as_deref()).unwrap_or_default();
    if key.is_empty() {
        let why =
            "spec.rsyncTLS.keySecret is missing: name a secret with the key (psk.txt) that both sides share";
        return Some(Wait::Key(why.to_owned()));
    }
    let name = service_name(receiver.name());
    let ours = |label: Option<&str>| label == Some(labels::CREATED_BY_MOVER);
    if world.service.as_ref().is_some_and(|found| !ours(found.label(labels::CREATED_BY))) {
        return Some(Wait::Unsupported(format!(
            "there is a service {name} that is not ours: delete or rename it"
        )));
    }
    // The names of services that stand for long names are checksums, and two names may have the same.
    let owners = world.service.iter().flat_map(|found| found.metadata.owner_references.iter().flatten());
    let other = owners.map(|owner| &owner.name).find(|owner| *owner != receiver.name());
    other.map(|other| {
        Wait::Unsupported(format!(
            "the Service {name} belongs to the ReplicationDestination {other}, whose name has the same checksum: give one of them another name"
        ))
    })
}

/// Whether a receiver takes single copies, each by a trigger of its own.
pub fn is_triggered(receiver: &ReplicationDestination) -> bool {
    let manual = receiver.spec.trigger.as_ref().and_then(|trigger| trigger.manual.as_deref());
    manual.is_some_and(|word| !word.is_empty())
}

/// A manual trigger is served by one copy.
fn is_served(receiver: &ReplicationDestination) -> bool {
    let manual = receiver.spec.trigger.as_ref().and_then(|trigger| trigger.manual.as_deref());
    let done = receiver.status.as_ref().and_then(|status| status.last_manual_sync.as_deref());
    manual.is_some_and(|word| !word.is_empty() && done == Some(word))
}

/// There is no volume to write to yet.
fn absent(
    world: &World,
    receiver: &ReplicationDestination,
    place: &Place,
    now: Timestamp,
) -> ReceiverDecision {
    let name = claim_of_receiver(receiver).name;
    // Disks that cannot be seen at this moment do not change hands.
    let unseen = matches!(place, Place::Unlisted(_) | Place::Unreadable(_));
    if is_busy(world) && !unseen {
        return Decision::act([Effect::Hush]);
    }
    let chosen = world.claim.as_ref().is_some_and(|claim| claim.note(annotations::SELECTED_NODE).is_some());
    match place {
        Place::Unlisted(class) => act(world, now, Effect::List { class: class.clone() }),
        Place::NoClaim if is_direct(receiver) => {
            wait(world, now, Wait::Claim(format!("the claim {name} to write to does not exist")))
        }
        Place::NoClaim => match missing(receiver) {
            Some(why) => wait(world, now, why),
            None => act(world, now, Effect::MakeClaim),
        },
        Place::Unbound if !chosen => act(world, now, Effect::SelectNode),
        Place::Unbound => {
            wait(world, now, Wait::Claim(format!("the claim {name} is not bound to a volume yet")))
        }
        Place::Foreign(why) => wait(world, now, Wait::Unsupported(why.clone())),
        Place::Unreadable(why) => wait(world, now, Wait::Failed(why.clone())),
        _ => wait(world, now, Wait::Volume(format!("the volume of the claim {name} is not on its node yet"))),
    }
}

fn missing(receiver: &ReplicationDestination) -> Option<Wait> {
    let volume = receiver.spec.rsync_tls.as_ref().map(|tls| &tls.volume);
    let whole = volume.is_some_and(|volume| volume.capacity.is_some() && !volume.access_modes.is_empty());
    (!whole).then(|| {
        let why = "without a destinationPVC, spec.rsyncTLS needs capacity and accessModes to make a claim by";
        Wait::Unsupported(why.to_owned())
    })
}

fn receive(
    world: &World,
    receiver: &ReplicationDestination,
    here: &Here,
    now: Timestamp,
) -> ReceiverDecision {
    if !world.users.is_empty() {
        let users = world.users.join(", ");
        let name = claim_of_receiver(receiver).name;
        let why = format!("the claim {name} is used by {users}: nothing is written to it");
        return leave(world, receiver).unwrap_or_else(|| wait(world, now, Wait::InUse(why)));
    }
    if is_rolling_back(world) {
        return Decision::act([Effect::Hush]);
    }
    if is_direct(receiver) && !receiver.has_finalizer(finalizers::RECEIVER) {
        return act(world, now, Effect::Guard);
    }
    // Whoever is asked to go back to the same image again must not take the last time for this one.
    if receiver.note(annotations::ROLLED_BACK_TO).is_some() || back_of(&here.volume).is_some() {
        return act(world, now, Effect::Forget);
    }
    if world.clone.is_some() {
        return act(world, now, Effect::DropClone);
    }
    // A filesystem that is mounted and not noted would be made anew by the next process.
    let noted = is_direct(receiver) || here.volume.tags.contains(FORMATTED_TAG);
    if here.needs_mount() && !(world.mounts.0 && noted) {
        return act(world, now, Effect::Mount);
    }
    let Some(staging) = &world.staging else { return act(world, now, Effect::Begin) };
    // Another receiver's word counts no more, and what somebody wrote to meanwhile is part of nothing.
    let written = world.touched && (staging.is_known() || world.expected.is_some());
    if staging.receiver.as_deref() != Some(receiver.uid()) || written {
        return act(world, now, Effect::Renew);
    }
    let completed = world.received.completed.as_ref();
    if let Some(completed) = completed.filter(|completed| completed.incarnation == staging.incarnation()) {
        return publish(world, receiver, completed, now);
    }
    if let Some((_, _, Refusal::Spoiled(_) | Refusal::BaseMismatch { .. })) = &world.received.refused {
        return act(world, now, Effect::Renew);
    }
    if !is_as_left(staging, here) {
        return act(world, now, Effect::Renew);
    }
    if world.orphan {
        let why = "its group is not there: which copies are too old cannot be told, so none is taken";
        return match is_busy(world) {
            true => Decision::act([Effect::Hush]),
            false => wait(world, now, Wait::Superseded(why.to_owned())),
        };
    }
    let lineage = lineage_of(world, receiver);
    let aside = aside(world, &lineage);
    if !aside.is_empty() {
        return Decision::act(aside);
    }
    let epoch = world.epoch.max(epoch_of(&here.volume));
    let as_wanted = world.expected.as_ref().is_some_and(|expected| {
        expected.volume == here.uid
            && expected.incarnation == staging.incarnation()
            && expected.epoch == epoch
            && expected.lineage == lineage
    });
    if !as_wanted {
        return act(world, now, Effect::Listen { epoch });
    }
    if !world.service.as_ref().is_some_and(|service| is_right_service(world, receiver, service)) {
        return act(world, now, Effect::Serve);
    }
    if !world.slice.as_ref().is_some_and(|slice| is_right_slice(world, receiver, slice)) {
        return act(world, now, Effect::Lead);
    }
    if !is_direct(receiver) && super::make::is_short(world, receiver) {
        return act(world, now, Effect::Grow);
    }
    let why = other_volume(world, receiver, &lineage).unwrap_or(Wait::Listening);
    let old = replaced(world, receiver);
    if !old.is_empty() {
        return Decision::act(old).showing(status::waiting(world, &why, now));
    }
    wait(world, now, why)
}

/// Which volume copies may descend from: that of the last complete one, and one that the user has accepted.
pub fn lineage_of(world: &World, receiver: &ReplicationDestination) -> Lineage {
    let told = receiver.status.as_ref().and_then(|status| status.external.get(words::EXTERNAL_LINEAGE));
    let staged = world.staging.as_ref().and_then(|staging| staging.lineage.as_ref());
    let held = staged.or(told).cloned();
    let accepted = receiver.note(annotations::ACCEPT_LINEAGE).map(str::to_owned);
    let accepted = accepted.filter(|accepted| held.is_some() && Some(accepted) != held.as_ref());
    Lineage { held, accepted }
}

/// Images of the volume that was copied so far are kept before copies of another one come.
fn aside(world: &World, lineage: &Lineage) -> Vec<Effect> {
    let Some(accepted) = &lineage.accepted else { return Vec::new() };
    let old = world.images.iter().filter(|image| {
        !is_kept(image) && !image.is_going() && image.note(annotations::LINEAGE) != Some(accepted)
    });
    old.map(|image| Effect::KeepAside { name: image.name().to_owned() }).collect()
}

/// A sender of another volume was turned away, and nobody has accepted it.
fn other_volume(world: &World, receiver: &ReplicationDestination, lineage: &Lineage) -> Option<Wait> {
    let (_, peer, refusal) = world.received.refused.as_ref()?;
    let Refusal::OtherLineage { have, offered } = refusal else { return None };
    if lineage.accepted.as_ref() == Some(offered) || lineage.held.as_ref() != Some(have) {
        return None;
    }
    let (space, name) = (receiver.space(), receiver.name());
    Some(Wait::Lineage(format!(
        "{} sends another volume (lineage {offered}) than the complete copy here descends from (lineage {have}), and nothing was overwritten. If the PVC was replaced there by mistake, fail over to this cluster. If its new data is right, run on this cluster `kubectl annotate replicationdestination {name} -n {space} --overwrite {}={offered}`: the old images are kept aside then",
        peer.ip(),
        annotations::ACCEPT_LINEAGE
    )))
}

/// Whether the volume itself says that it is the copy that it was left as.
fn is_as_left(staging: &Staging, here: &Here) -> bool {
    let Some(base) = staging.base.as_deref().filter(|_| staging.is_known()) else { return true };
    replica_of(&here.volume) == Some(base) && staging.epoch == Some(epoch_of(&here.volume))
}

/// The whole copy is there: it is kept first, then told, and only then may the next one touch the volume.
pub fn publish(
    world: &World,
    receiver: &ReplicationDestination,
    completed: &Completed,
    now: Timestamp,
) -> ReceiverDecision {
    let method = receiver.spec.rsync_tls.as_ref().and_then(|tls| tls.volume.copy_method.as_ref());
    let told = status::generation(receiver) == Some(completed.generation.as_str());
    let advance = |image: Option<&str>| match told {
        true => Decision::act([Effect::Advance]),
        false => Decision::act([Effect::Advance])
            .showing(status::published(world, receiver, completed, image, now)),
    };
    if matches!(method, Some(CopyMethod::Direct | CopyMethod::None)) {
        return advance(None);
    }
    let name = image_name(receiver, completed);
    let Some(image) = world.images.iter().find(|image| image.name() == name) else {
        // That it is there and not kept yet is told first: who takes an older image knows what it leaves behind.
        let why = match &world.trouble {
            Some(trouble) => Wait::Failed(trouble.message.clone()),
            None => Wait::Publishing(format!("the image {name} of what arrived is being made")),
        };
        return Decision::act([Effect::Image { name }]).showing(status::waiting(world, &why, now));
    };
    let state = image.status.clone().unwrap_or_default();
    if state.ready_to_use == Some(true) {
        return advance(Some(&name));
    }
    let why = match state.error.and_then(|error| error.message) {
        Some(error) => format!("the image {name} of what arrived cannot be made: {error}"),
        None => format!("the image {name} of what arrived is being made"),
    };
    wait(world, now, Wait::Publishing(why))
}

/// Images that newer ones have replaced: all but the newest few that are ready. As long as the newest is not ready, nothing is removed.
fn replaced(world: &World, receiver: &ReplicationDestination) -> Vec<Effect> {
    let latest = receiver.status.as_ref().and_then(|status| status.latest_image.as_ref());
    let latest = latest.and_then(|latest| world.images.iter().find(|image| image.name() == latest.name));
    let ready = |image: &VolumeSnapshot| {
        image.status.as_ref().and_then(|status| status.ready_to_use) == Some(true) && !image.is_going()
    };
    let Some(latest) = latest.filter(|latest| ready(latest)) else { return Vec::new() };
    let old = world.images.iter().filter(|image| {
        image.name() != latest.name()
            && !is_kept(image)
            && !image.is_going()
            && image.metadata.creation_timestamp <= latest.metadata.creation_timestamp
    });
    let (mut points, unready): (Vec<_>, Vec<_>) = old.partition(|image| ready(image));
    points.sort_by_key(|image| {
        let cut = image.note(annotations::IMAGE_CUT).and_then(|cut| cut.parse::<Timestamp>().ok());
        Reverse((image.metadata.creation_timestamp.clone(), cut, image.name().to_owned()))
    });
    let old = points.into_iter().skip(world.keeps.saturating_sub(1)).chain(unready);
    old.map(|image| Effect::DropImage { name: image.name().to_owned() }).collect()
}
