//! What was received, turned into claims when the group becomes primary: from the newest complete image, or by stopping the receiver of a claim
//! that was written to directly. Only a primary that is ready ever removes a receiver.

use crate::decide::plan::{Plan, Said};
use crate::decide::receive::{empty_claim, is_direct, name_of, wished};
use crate::decide::replicated::foreign;
use crate::decide::{Effect, epoch};
use crate::why::Wait;
use crate::words::{GroupWords as _, OwnedWords as _, Words as _, storage};
use crate::world::World;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, TypedLocalObjectReference};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use lifeboat_api::conditions::vrg as words;
use lifeboat_api::ramen::{DRAction, ProtectedPvc, VrgState};
use lifeboat_api::volsync::ReplicationDestination;
use lifeboat_api::{annotations, labels};

/// Makes claims of what was received; says how many there are.
pub fn claims_from_images(world: &World, now: Timestamp, plan: &mut Plan) -> usize {
    let wishes = wished(world);
    let lonely: Vec<&str> = world
        .destinations
        .values()
        .filter(|receiver| receiver.is_owned_by(&world.key()) && world.claim(receiver.name()).is_none())
        .map(|receiver| receiver.name())
        .collect();
    if wishes.is_empty() && !lonely.is_empty() && world.group.action().is_some() {
        plan.wait(Wait::CannotRestore(format!(
            "volSync.rdSpec is empty, yet data was received here for {}: name the claims that shall be restored",
            lonely.join(", ")
        )));
    }
    for wish in &wishes {
        let name = name_of(wish);
        let said = match from_image(world, wish) {
            Ok(None) => Said::yes(words::REASON_RESTORED, "the claim is restored from the newest image"),
            Ok(Some(effect)) => {
                plan.act_for(world, now, name, effect);
                Said::no(words::REASON_PROGRESSING, "the claim is being restored")
            }
            Err(why) => {
                let said = Said::no(words::REASON_ERROR, why.to_string());
                plan.wait_for(name, why);
                said
            }
        };
        plan.verdict(name).copied = true;
        plan.verdict(name).say(words::TYPE_PVS_RESTORED, said);
    }
    wishes.len()
}

fn from_image(world: &World, wish: &ProtectedPvc) -> Result<Option<Effect>, Wait> {
    let name = name_of(wish);
    let claim = world.claim(name);
    let Some(receiver) = world.destinations.get(name) else {
        // It was turned into a claim before, and the receiver removed since.
        let restored = claim.is_some_and(|claim| {
            !claim.claim.is_going() && (claim.claim.note(annotations::RESTORE).is_some() || claim.is_copied())
        });
        let why = || {
            Wait::CannotRestore(format!("nothing was received for the claim {name}: there is no receiver"))
        };
        return restored.then_some(None).ok_or_else(why);
    };
    if let Some(why) = foreign(world, &**receiver, "ReplicationDestination", name) {
        return Err(why);
    }
    let image = receiver.status.as_ref().and_then(|status| status.latest_image.as_ref());
    let image = image
        .filter(|image| image.kind == "VolumeSnapshot")
        .ok_or_else(|| Wait::CannotRestore(format!("the receiver of {name} has no complete image yet")))?;
    if !world.kinds.snapshots {
        return Err(Wait::Unsupported(format!(
            "the cluster has no VolumeSnapshot, as which {name} was received: install the definitions of snapshot.storage.k8s.io"
        )));
    }
    let snapshot = world
        .images
        .get(&image.name)
        .ok_or_else(|| Wait::CannotRestore(format!("the image {} of {name} does not exist", image.name)))?;
    let status = snapshot.status.clone().unwrap_or_default();
    if status.ready_to_use != Some(true) {
        return Err(Wait::Restoring(format!("the image {} of {name} is not ready yet", image.name)));
    }
    let kept =
        snapshot.label(labels::VOLSYNC_DO_NOT_DELETE) == Some("true") && snapshot.is_owned_by(&world.key());
    if !kept {
        return Ok(Some(Effect::KeepImage { claim: name.to_owned(), image: image.name.clone() }));
    }
    if is_direct(receiver) {
        return direct(world, receiver, wish, &image.name);
    }
    let Some(claim) = claim else {
        return Ok(Some(Effect::MakeClaim {
            claim: Box::new(filled_claim(world, wish, &image.name, status.restore_size)),
        }));
    };
    if claim.claim.is_going() {
        return Err(Wait::CannotRestore(format!("an earlier claim {name} is still being deleted")));
    }
    let source = claim.claim.spec.as_ref().and_then(|spec| spec.data_source.as_ref());
    match source.is_some_and(|source| source.name == image.name) {
        true => Ok(None),
        false => Err(Wait::CannotRestore(format!(
            "there is a claim {name} that was not made from the newest image {}: delete it if its data is not wanted",
            image.name
        ))),
    }
}

/// The claim was written to directly: the receiver is stopped first, and after a failover brought back to its last complete image, for what
/// came after that may be half a copy.
fn direct(
    world: &World,
    receiver: &ReplicationDestination,
    wish: &ProtectedPvc,
    image: &str,
) -> Result<Option<Effect>, Wait> {
    let name = name_of(wish);
    let Some(claim) = world.claim(name) else {
        return Err(Wait::CannotRestore(format!("the claim {name} that was received into does not exist")));
    };
    let back = (world.group.action() == Some(&DRAction::Failover)).then(|| image.to_owned());
    let done = receiver.note(annotations::ROLLED_BACK_TO);
    let asked = receiver.note(annotations::ROLL_BACK_TO);
    if receiver.spec.paused && asked == back.as_deref() {
        return match back {
            Some(image) if done != Some(image.as_str()) => {
                Err(Wait::Restoring(format!("the claim {name} is being brought back to the image {image}")))
            }
            _ => Ok(None),
        };
    }
    if !claim.users.is_empty() {
        return Err(Wait::InUse(claim.users.join(", ")));
    }
    let mut spec = receiver.spec.clone();
    spec.paused = true;
    Ok(Some(Effect::Receive { claim: name.to_owned(), spec: Box::new(spec), roll_back_to: back }))
}

fn filled_claim(
    world: &World,
    wish: &ProtectedPvc,
    image: &str,
    least: Option<Quantity>,
) -> PersistentVolumeClaim {
    let mut claim = empty_claim(world, wish);
    claim
        .metadata
        .annotations
        .get_or_insert_default()
        .insert(annotations::RESTORE.to_owned(), annotations::RESTORE_VALUE.to_owned());
    let spec = claim.spec.get_or_insert_default();
    let source = TypedLocalObjectReference {
        api_group: Some("snapshot.storage.k8s.io".to_owned()),
        kind: "VolumeSnapshot".to_owned(),
        name: image.to_owned(),
    };
    spec.data_source = Some(source);
    let resources = spec.resources.get_or_insert_default();
    let requests = resources.requests.get_or_insert_default();
    if let Some(least) = least {
        let needed = [("storage".to_owned(), least.clone())].into();
        if storage(Some(&needed)) > storage(Some(requests)) {
            requests.insert("storage".to_owned(), least);
        }
    }
    claim
}

/// A primary that is ready removes receivers whose claims it does not have and nobody names any more; those of its own claims go before they
/// send.
pub fn stop_as_primary(world: &World, now: Timestamp, plan: &mut Plan) {
    let ready = world.group.status.as_ref().is_some_and(|status| {
        status.state == Some(VrgState::Primary)
            && status.observed_generation == world.group.metadata.generation
    });
    if !ready || epoch::superseded(world).is_some() || world.group.in_final_sync() {
        return;
    }
    let named: Vec<&str> =
        wished(world).iter().map(|wish| wish.name.as_deref().unwrap_or_default()).collect();
    for receiver in world.destinations.values() {
        let name = receiver.name();
        let kept = receiver.label(labels::VOLSYNC_DO_NOT_DELETE) == Some("true") || named.contains(&name);
        if receiver.is_owned_by(&world.key()) && !kept && !receiver.is_going() && world.claim(name).is_none()
        {
            plan.act_for(world, now, name, Effect::StopReceiving { claim: name.to_owned() });
        }
    }
}
