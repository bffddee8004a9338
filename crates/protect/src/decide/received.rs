//! What was received, turned into claims when the group becomes primary: from the newest complete image, or by stopping the receiver of a claim
//! that was written to directly. Only a primary that is ready ever removes a receiver. Which image it is, is in `images`.

use crate::decide::plan::{Path, Plan, Said};
use crate::decide::receive::{empty_claim, is_direct, name_of, wished};
use crate::decide::replicated::foreign;
use crate::decide::{Effect, demote, epoch, images};
use crate::restored;
use crate::why::Wait;
use crate::words::{GroupWords as _, OwnedWords as _, VolumeWords as _, Words as _, storage};
use crate::world::{Claim, World};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, TypedLocalObjectReference};
use lifeboat_api::conditions::volsync::EXTERNAL_LINEAGE;
use lifeboat_api::conditions::vrg as words;
use lifeboat_api::ramen::{DRAction, ProtectedPvc, VrgState};
use lifeboat_api::snapshot::VolumeSnapshot;
use lifeboat_api::volsync::ReplicationDestination;
use lifeboat_api::{annotations, labels};
use lifeboat_engine::ObjectKey;
use std::collections::BTreeMap;
use std::sync::Arc;

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
        if let Some(claim) = world.claim(name).filter(|claim| claim.claim.is_going()) {
            demote::let_go(world, now, plan, claim, Path::Copied);
            let said = Said::no(
                words::REASON_PROGRESSING,
                "an earlier claim is being deleted, and is made anew then",
            );
            plan.verdict(name).copied = true;
            plan.verdict(name).said.clear();
            plan.verdict(name).say(words::TYPE_PVS_RESTORED, said);
            continue;
        }
        let said = match from_image(world, now, plan, wish) {
            Ok(None) => Said::yes(words::REASON_RESTORED, told(world, name)),
            Ok(Some(effect)) => {
                plan.act_for(world, now, name, effect);
                Said::no(words::REASON_PROGRESSING, "the claim is being restored")
            }
            Err(why) => {
                let reason = if why.weight() >= 3 { words::REASON_ERROR } else { words::REASON_PROGRESSING };
                let said = Said::no(reason, why.to_string());
                plan.wait_for(name, why);
                said
            }
        };
        plan.verdict(name).copied = true;
        plan.verdict(name).say(words::TYPE_PVS_RESTORED, said);
    }
    wishes.len()
}

fn told(world: &World, name: &str) -> String {
    let claim = world.claim(name).map(|claim| &*claim.claim);
    let made_of = claim.and_then(|claim| claim.spec.as_ref()?.data_source.as_ref());
    match claim.and_then(|claim| claim.note(annotations::IMAGE_CUT)) {
        Some(cut) => format!("the claim is restored from an image that was cut at {cut}"),
        None if made_of.is_none() && !world.destinations.get(name).is_some_and(|one| is_direct(one)) => {
            "the claim has the PV that it had when this cluster was last primary".to_owned()
        }
        None => "the claim is restored from what was received".to_owned(),
    }
}

/// The epoch at which the group was last primary with a claim here.
pub fn held_at(claim: &impl kube::Resource) -> Option<i64> {
    claim.note(annotations::HELD_AT_EPOCH)?.parse().ok()
}

/// What is noted on a claim and its volume: the epoch, and which volume the data descends from.
pub fn held_notes(claim: &Claim, epoch: i64) -> BTreeMap<String, String> {
    let mut notes: BTreeMap<String, String> =
        [(annotations::HELD_AT_EPOCH.to_owned(), epoch.to_string())].into();
    // A claim that its application made anew, of a volume that was kept, has what the volume had.
    let kept = claim.volume.as_ref().and_then(|volume| volume.note(annotations::LINEAGE));
    let lineage = claim.claim.note(annotations::LINEAGE).or(kept).unwrap_or(claim.claim.uid());
    notes.insert(annotations::LINEAGE.to_owned(), lineage.to_owned());
    notes
}

/// Whether a claim was restored for this very role.
fn is_restored(world: &World, claim: &Claim) -> bool {
    let here = epoch::primary_epoch(world);
    here.is_some() && held_at(&*claim.claim) == here
}

/// The next step for one claim; nothing once it is restored.
fn from_image(
    world: &World,
    now: Timestamp,
    plan: &mut Plan,
    wish: &ProtectedPvc,
) -> Result<Option<Effect>, Wait> {
    let name = name_of(wish);
    let claim = world.claim(name);
    // A restore that has begun stays with its image, whatever is received meanwhile.
    if claim.is_some_and(|claim| is_restored(world, claim)) {
        return Ok(None);
    }
    let Some(receiver) = world.destinations.get(name) else {
        return own(world, wish).map_or_else(|| unreceived(world, name), |effect| Ok(Some(effect)));
    };
    if let Some(why) = foreign(world, &**receiver, "ReplicationDestination", name) {
        return Err(why);
    }
    let chosen = images::chosen(world, now, plan, name, receiver);
    if matches!(chosen, Err(Wait::CannotRestore(_))) {
        // Nothing was received since this cluster was primary itself. Where nobody else was, what it has is the newest. A failover takes a volume that
        // nobody has touched since in any case: what the peer wrote meanwhile is what a failover may lose, and the peer keeps it.
        if claim.is_some_and(|claim| is_newest(world, held_at(&*claim.claim))) {
            return Ok(None);
        }
        if let Some(effect) = own(world, wish) {
            return Ok(Some(effect));
        }
    }
    let image = chosen?;
    if let Some(newer) = images::newer(world, name, receiver, image) {
        return Ok(Some(Effect::SetAside { claim: name.to_owned(), image: newer }));
    }
    let kept = image.label(labels::VOLSYNC_DO_NOT_DELETE) == Some("true") && image.is_owned_by(&world.key());
    if !kept {
        return Ok(Some(Effect::KeepImage { claim: name.to_owned(), image: image.name().to_owned() }));
    }
    if is_direct(receiver) {
        return direct(world, receiver, wish, image);
    }
    let Some(claim) = claim else {
        return Ok(Some(Effect::MakeClaim { claim: Box::new(filled_claim(world, wish, receiver, image)) }));
    };
    let source = claim.claim.spec.as_ref().and_then(|spec| spec.data_source.as_ref());
    if source.is_some_and(|source| source.name == image.name()) {
        return Ok(None);
    }
    if !claim.users.is_empty() {
        return Err(Wait::InUse(claim.users.join(", ")));
    }
    if restored::is_of_an_image(&claim.claim) && claim.claim.is_owned_by(&world.key()) {
        // Made by us for a role that is over. Its volume stays.
        if let Some(volume) = claim.volume.as_ref().filter(|volume| !volume.is_retained()) {
            let (claim, volume) = (name.to_owned(), volume.name().to_owned());
            return Ok(Some(Effect::Retain { claim, volume, path: Path::Copied }));
        }
        return Ok(Some(Effect::Discard { claim: name.to_owned() }));
    }
    Err(Wait::CannotRestore(format!(
        "there is a claim {name} that was not made from the image {}: delete it if its data is not wanted",
        image.name()
    )))
}

/// There is no receiver: the claim counts only where nobody can have newer data.
fn unreceived(world: &World, name: &str) -> Result<Option<Effect>, Wait> {
    let Some(claim) = world.claim(name) else {
        let why = format!("nothing was received for the claim {name}: there is no receiver");
        return Err(Wait::CannotRestore(why));
    };
    // Ramen marks what it restored, and knows no epochs.
    let ramens = held_at(&*claim.claim).is_none() && claim.claim.note(annotations::RESTORE).is_some();
    if ramens || is_newest(world, held_at(&*claim.claim)) {
        return Ok(None);
    }
    if epoch::answer(world).is_none() && !world.store_names().is_empty() {
        return Err(Wait::ReadingStores);
    }
    let since = held_at(&*claim.claim).map_or_else(
        || "it is not known when it was last used here".to_owned(),
        |epoch| {
            format!("it was last used here at epoch {epoch}, and another cluster may have been primary since")
        },
    );
    Err(Wait::CannotRestore(format!(
        "nothing was received for PVC {name}, and {since}. Let the peer copy it here first; or, if the data of the PVC is what you want, set its annotation {}={}",
        annotations::HELD_AT_EPOCH,
        epoch::primary_epoch(world).unwrap_or_default()
    )))
}

/// Whether nobody was primary since this cluster was, as all stores tell.
fn is_newest(world: &World, held: Option<i64>) -> bool {
    let Some(held) = held else { return false };
    epoch::answer(world).is_some_and(|reading| {
        let all = world.store_names().iter().all(|name| matches!(reading.stores.get(name), Some(Ok(_))));
        all && held >= reading.epoch
    })
}

/// The next step where the claim is gone and its volume is here as this cluster left it: a change of mind came before anybody else was primary, or
/// before the peer had copied anything back.
fn own(world: &World, wish: &ProtectedPvc) -> Option<Effect> {
    let name = name_of(wish);
    if world.claim(name).is_some() {
        return None;
    }
    let key = ObjectKey::new(world.group.space(), name);
    let may_lose = world.group.action() == Some(&DRAction::Failover);
    let left = |volume: &&Arc<PersistentVolume>| {
        volume.claim_key().as_ref() == Some(&key)
            && volume.is_retained()
            && !volume.is_going()
            && volume.note(annotations::ORPHANED_FROM).is_none()
            && (may_lose || is_newest(world, held_at(&***volume)))
            && held_at(&***volume).is_some()
    };
    let volume = world.volumes.values().filter(left).max_by_key(|volume| held_at(&***volume))?;
    if !volume.claim_uid().is_empty() {
        return Some(Effect::Unclaim { claim: name.to_owned(), volume: volume.name().to_owned() });
    }
    let mut claim = empty_claim(world, wish);
    let notes = claim.metadata.annotations.get_or_insert_default();
    notes.insert(annotations::RESTORE.to_owned(), annotations::RESTORE_VALUE.to_owned());
    let lineage = volume.note(annotations::LINEAGE);
    notes.extend(lineage.map(|lineage| (annotations::LINEAGE.to_owned(), lineage.to_owned())));
    let epoch = epoch::primary_epoch(world).map(|epoch| epoch.to_string());
    notes.extend(epoch.map(|epoch| (annotations::HELD_AT_EPOCH.to_owned(), epoch)));
    claim.spec.get_or_insert_default().volume_name = Some(volume.name().to_owned());
    Some(Effect::MakeClaim { claim: Box::new(claim) })
}

/// What is noted on a claim that is restored: for which role, from which lineage, and when its content was cut.
fn marks(
    world: &World,
    receiver: &ReplicationDestination,
    image: &VolumeSnapshot,
) -> BTreeMap<String, String> {
    let told = || receiver.status.as_ref()?.external.get(EXTERNAL_LINEAGE).cloned();
    let lineage = image.note(annotations::LINEAGE).map(str::to_owned).or_else(told);
    let cut = image.note(annotations::IMAGE_CUT).map(str::to_owned);
    let epoch = epoch::primary_epoch(world).map(|epoch| epoch.to_string());
    let all = [
        (annotations::RESTORE, Some(annotations::RESTORE_VALUE.to_owned())),
        (annotations::HELD_AT_EPOCH, epoch),
        (annotations::LINEAGE, lineage),
        (annotations::IMAGE_CUT, cut),
    ];
    all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// The claim was written to directly: the receiver is stopped first, and after a failover brought back to its last complete image, for what
/// came after that may be half a copy.
fn direct(
    world: &World,
    receiver: &ReplicationDestination,
    wish: &ProtectedPvc,
    image: &VolumeSnapshot,
) -> Result<Option<Effect>, Wait> {
    let name = name_of(wish);
    let Some(claim) = world.claim(name) else {
        return Err(Wait::CannotRestore(format!("the claim {name} that was received into does not exist")));
    };
    let back = (world.group.action() == Some(&DRAction::Failover)).then(|| image.name().to_owned());
    let done = receiver.note(annotations::ROLLED_BACK_TO);
    let asked = receiver.note(annotations::ROLL_BACK_TO);
    if receiver.spec.paused && asked == back.as_deref() {
        return match back {
            Some(image) if done != Some(image.as_str()) => {
                Err(Wait::Restoring(format!("the claim {name} is being brought back to the image {image}")))
            }
            // Once it is marked, it is restored.
            _ if epoch::primary_epoch(world).is_some() => {
                Ok(Some(Effect::Note { claim: name.to_owned(), notes: marks(world, receiver, image) }))
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
    receiver: &ReplicationDestination,
    image: &VolumeSnapshot,
) -> PersistentVolumeClaim {
    let mut claim = empty_claim(world, wish);
    claim.metadata.annotations.get_or_insert_default().extend(marks(world, receiver, image));
    let spec = claim.spec.get_or_insert_default();
    let source = TypedLocalObjectReference {
        api_group: Some("snapshot.storage.k8s.io".to_owned()),
        kind: "VolumeSnapshot".to_owned(),
        name: image.name().to_owned(),
    };
    spec.data_source = Some(source);
    let resources = spec.resources.get_or_insert_default();
    let requests = resources.requests.get_or_insert_default();
    if let Some(least) = image.status.as_ref().and_then(|status| status.restore_size.clone()) {
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
