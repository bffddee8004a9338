//! Receivers: set up on a secondary for every claim that the hub names, and kept when it names none. What becomes of the data when the group
//! becomes primary is in `received`.

use crate::decide::copied::{key, mover_config};
use crate::decide::plan::{Path, Plan, Said};
use crate::decide::replicated::foreign;
use crate::decide::{Effect, classify, demote, undo};
use crate::restored::{carried_over, is_ours};
use crate::settings::DestinationCopy;
use crate::why::Wait;
use crate::words::{
    ClaimWords as _, GroupWords as _, OwnedWords as _, VolumeWords as _, Words as _, owner_labels,
};
use crate::world::World;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec};
use kube::api::ObjectMeta;
use lifeboat_api::annotations;
use lifeboat_api::conditions::vrg as words;
use lifeboat_api::ramen::ProtectedPvc;
use lifeboat_api::volsync::{
    CopyMethod, DestinationVolumeOptions, ReplicationDestination, ReplicationDestinationSpec,
    RsyncTlsDestination,
};
use lifeboat_engine::ObjectKey;

/// The claims that the hub wants received, by name.
pub fn wished(world: &World) -> Vec<&ProtectedPvc> {
    let listed = world.group.spec.vol_sync.iter().flat_map(|volsync| &volsync.rd_spec);
    listed.filter_map(|entry| entry.protected_pvc.as_ref()).filter(|claim| claim.name.is_some()).collect()
}

/// Whether a claim is one that copies are received for.
pub fn is_named(world: &World, name: &str) -> bool {
    let received = world.destinations.get(name).is_some_and(|one| one.is_owned_by(&world.key()));
    received || wished(world).into_iter().any(|claim| name_of(claim) == name)
}

pub(super) fn name_of(claim: &ProtectedPvc) -> &str {
    claim.name.as_deref().unwrap_or_default()
}

/// The service that a receiver is reached by.
pub fn service(name: &str) -> String {
    lifeboat_api::volsync::service_name(name)
}

pub(super) fn is_direct(receiver: &ReplicationDestination) -> bool {
    let volume = receiver.spec.rsync_tls.as_ref().map(|tls| &tls.volume);
    volume.is_some_and(|volume| volume.destination_pvc.is_some())
}

/// A secondary: senders stop, claims that their users deleted are let go, receivers are set up. An empty list removes nothing.
pub fn secondary(world: &World, now: Timestamp, plan: &mut Plan) {
    for claim in world.claims.iter().filter(|claim| claim.is_copied() && !claim.is_replicated()) {
        let name = claim.name();
        if let Some(why) = undo::conflict(world, claim) {
            crate::status::claim_refused(plan, name, &why);
            plan.wait_for(name, why);
        } else if !claim.users.is_empty() {
            let why = Wait::InUse(claim.users.join(", "));
            plan.verdict(name).copied = true;
            plan.verdict(name)
                .say(words::TYPE_DATA_READY, Said::no(words::REASON_PROGRESSING, why.to_string()));
            plan.wait_for(name, why);
        } else if world.sources.get(name).is_some_and(|source| source.is_owned_by(&world.key())) {
            stop_sending(world, now, plan, name);
        } else if claim.claim.is_going() {
            demote::let_go(world, now, plan, claim, Path::Copied);
        }
    }
    for wish in wished(world) {
        one(world, now, plan, wish);
    }
}

fn stop_sending(world: &World, now: Timestamp, plan: &mut Plan, name: &str) {
    match world.sources.get(name) {
        Some(source) if source.is_going() => {
            plan.wait_for(name, Wait::Removing(format!("the sender of {name} is not gone yet")));
        }
        _ => plan.act_for(world, now, name, Effect::StopSending { claim: name.to_owned() }),
    }
}

fn one(world: &World, now: Timestamp, plan: &mut Plan, wish: &ProtectedPvc) {
    let name = name_of(wish);
    plan.verdict(name).copied = true;
    let own = world.destinations.get(name).filter(|one| one.is_owned_by(&world.key()) && !one.is_going());
    let failed = |plan: &mut Plan, why: Wait| {
        // Who has no receiver cannot be told anything by a primary, so it is no secondary yet. What is refused for good is told and holds nobody up.
        if own.is_none() && why.weight() < 3 {
            let said = Said::no(words::REASON_PROGRESSING, why.to_string());
            plan.verdict(name).say(words::TYPE_DATA_READY, said);
        }
        plan.verdict(name).say(
            words::TYPE_REPLICATION_DESTINATION_SETUP,
            Said::no(
                if why.weight() >= 3 { words::REASON_ERROR } else { words::REASON_PROGRESSING },
                why.to_string(),
            ),
        );
        plan.wait_for(name, why);
    };
    if wish.namespace.as_deref().is_some_and(|space| space != world.group.space()) {
        let why = format!("the claim {name} to receive is of another namespace, which is not served");
        return failed(plan, Wait::Unsupported(why));
    }
    if !world.kinds.volsync {
        let why = "the cluster has no ReplicationDestination: install the definitions of volsync.backube"
            .to_owned();
        return failed(plan, Wait::Unsupported(why));
    }
    if let Some(why) = key(world, plan) {
        return failed(plan, why);
    }
    if world.sources.get(name).is_some_and(|source| source.is_owned_by(&world.key())) {
        if world.claim(name).is_some_and(|claim| !claim.users.is_empty()) {
            // Told above; a receiver would write under whoever uses it.
            return;
        }
        return stop_sending(world, now, plan, name);
    }
    let unread = world.config.unread && world.destinations.get(name).is_some_and(|one| is_direct(one));
    let direct = unread || world.config.destination_copy == DestinationCopy::Direct;
    if direct && !landing(world, now, plan, wish) {
        return;
    }
    let receiver = world.destinations.get(name);
    if let Some(receiver) = receiver {
        if let Some(why) = foreign(world, &**receiver, "ReplicationDestination", name) {
            return failed(plan, why);
        }
        if receiver.is_going() {
            return failed(plan, Wait::Removing(format!("an earlier receiver of {name} is being deleted")));
        }
    }
    let class = match snapshot_class(world, wish) {
        Ok(class) => class,
        Err(why) => return failed(plan, why),
    };
    let spec = spec(world, wish, direct, class);
    let rolls_back = receiver.is_some_and(|receiver| receiver.note(annotations::ROLL_BACK_TO).is_some());
    if receiver.is_none_or(|receiver| !matches(&receiver.spec, &spec)) || rolls_back {
        let effect = Effect::Receive { claim: name.to_owned(), spec: Box::new(spec), roll_back_to: None };
        return plan.act_for(world, now, name, effect);
    }
    let reach = world.kinds.exports && world.group.names_reach();
    if reach && !world.exports.contains(&service(name)) {
        let effect = Effect::Export { claim: name.to_owned(), service: service(name) };
        plan.act_for(world, now, name, effect);
    }
    let address =
        receiver.and_then(|receiver| receiver.status.as_ref()?.rsync_tls.as_ref()?.address.as_deref());
    if address.is_none_or(str::is_empty) {
        return failed(plan, Wait::Mover(format!("the receiver of {name} does not listen yet")));
    }
    prune(world, now, plan, name, receiver);
    plan.verdict(name).say(
        words::TYPE_REPLICATION_DESTINATION_SETUP,
        Said::yes(
            words::REASON_DESTINATION_INITIALIZED,
            format!("{}{}", set_up(world), left_behind(world, name)),
        ),
    );
}

/// Volumes that the claim had here before. Each may be somebody's last copy, so that only a person deletes them.
fn left_behind(world: &World, name: &str) -> String {
    let key = ObjectKey::new(world.group.space(), name);
    let of_claim = |volume: &&std::sync::Arc<PersistentVolume>| {
        volume.claim_key().as_ref() == Some(&key) && volume.phase() == "Released" && is_ours(volume)
    };
    let names: Vec<&str> = world.volumes.values().filter(of_claim).map(|volume| volume.name()).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(
            "; PVs of earlier times are kept here, and nothing uses them (delete them when their data is not wanted): {}",
            names.join(", ")
        ),
    }
}

/// That a receiver is set up, and what its cluster lacks for a sender of another to find it by name.
fn set_up(world: &World) -> &'static str {
    match world.kinds.exports || !world.group.names_reach() {
        true => "the receiver of the claim is set up",
        false => {
            "the receiver of the claim is set up, and not exported: the cluster has no ServiceExport (multicluster.x-k8s.io)"
        }
    }
}

/// Images of this claim that an aborted failover kept, once a newer one of the same claim is complete. Never another claim's.
fn prune(
    world: &World,
    now: Timestamp,
    plan: &mut Plan,
    name: &str,
    receiver: Option<&std::sync::Arc<ReplicationDestination>>,
) {
    let latest = receiver.and_then(|receiver| receiver.status.as_ref()?.latest_image.as_ref());
    let Some(latest) = latest.and_then(|image| world.images.get(&image.name)) else { return };
    let ready = latest.status.as_ref().and_then(|status| status.ready_to_use) == Some(true);
    let older = world.images.values().filter(|image| {
        image.is_owned_by(&world.key())
            && image.note(annotations::IMAGE_OF) == Some(name)
            && image.name() != latest.name()
            && image.metadata.creation_timestamp < latest.metadata.creation_timestamp
            && !image.is_going()
    });
    for image in older.filter(|_| ready) {
        let effect = Effect::DropImage { claim: name.to_owned(), image: image.name().to_owned() };
        plan.act_for(world, now, name, effect);
    }
}

/// The claim that a receiver writes into: made where it is missing, kept, and never written to while somebody uses it.
fn landing(world: &World, now: Timestamp, plan: &mut Plan, wish: &ProtectedPvc) -> bool {
    let name = name_of(wish);
    let Some(claim) = world.claim(name) else {
        // Somebody else's leftover stays; a new volume is made beside it.
        let left = world.volume_for(name).filter(|volume| !volume.claim_uid().is_empty());
        // What an orphaned group left is somebody's data until they say otherwise.
        let left = left.filter(|volume| volume.note(annotations::ORPHANED_FROM).is_none());
        if let Some(volume) = left.filter(|volume| is_ours(volume)) {
            let volume = volume.name().to_owned();
            plan.act_for(world, now, name, Effect::Unclaim { claim: name.to_owned(), volume });
            return false;
        }
        let effect = Effect::MakeClaim { claim: Box::new(empty_claim(world, wish)) };
        plan.act_for(world, now, name, effect);
        return false;
    };
    if claim.claim.is_going() {
        plan.wait_for(name, Wait::Removing(format!("an earlier claim {name} is being deleted")));
        return false;
    }
    if !claim.users.is_empty() {
        plan.wait_for(name, Wait::InUse(claim.users.join(", ")));
        return false;
    }
    if !claim.claim.is_bound() {
        // The mover is its first user.
        return true;
    }
    undo::protect(world, now, plan, claim, Path::Copied)
}

pub(super) fn empty_claim(world: &World, wish: &ProtectedPvc) -> PersistentVolumeClaim {
    let mut all = wish.labels.clone();
    all.extend(owner_labels(&world.key()));
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: wish.name.clone(),
            namespace: Some(world.group.space().to_owned()),
            labels: Some(all),
            annotations: Some(carried_over(Some(&wish.annotations))),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(access_modes(wish)),
            resources: wish.resources.clone(),
            storage_class_name: wish.storage_class_name.clone(),
            volume_mode: wish.volume_mode.clone(),
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    }
}

fn access_modes(wish: &ProtectedPvc) -> Vec<String> {
    match wish.access_modes.is_empty() {
        true => vec!["ReadWriteOnce".to_owned()],
        false => wish.access_modes.clone(),
    }
}

/// The snapshot class for images of what is received, chosen as for what is sent.
fn snapshot_class(world: &World, wish: &ProtectedPvc) -> Result<Option<String>, Wait> {
    let class = wish.storage_class_name.as_ref().and_then(|class| world.classes.get(class));
    let peers = world.group.spec.async_.as_ref().is_some_and(|mode| !mode.peer_classes.is_empty());
    class.map_or(Ok(None), |class| classify::snapshot_class(world, class, peers))
}

fn spec(
    world: &World,
    wish: &ProtectedPvc,
    direct: bool,
    snapshots: Option<String>,
) -> ReplicationDestinationSpec {
    let name = name_of(wish);
    let requests = wish.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    ReplicationDestinationSpec {
        trigger: None,
        paused: false,
        rsync_tls: Some(RsyncTlsDestination {
            volume: DestinationVolumeOptions {
                copy_method: Some(CopyMethod::Snapshot),
                capacity: requests.and_then(|requests| requests.get("storage")).cloned(),
                storage_class_name: wish.storage_class_name.clone(),
                access_modes: access_modes(wish),
                volume_snapshot_class_name: snapshots,
                destination_pvc: direct.then(|| name.to_owned()),
                ..DestinationVolumeOptions::default()
            },
            mover: mover_config(world, name),
            key_secret: Some(world.key_secret()),
            service_type: Some(
                if world.group.names_reach() { "ClusterIP" } else { "LoadBalancer" }.to_owned(),
            ),
            volume_mode: wish.volume_mode.clone().filter(|mode| mode == "Block"),
            ..RsyncTlsDestination::default()
        }),
        ..ReplicationDestinationSpec::default()
    }
}

fn matches(has: &ReplicationDestinationSpec, wanted: &ReplicationDestinationSpec) -> bool {
    has.rsync_tls == wanted.rsync_tls && has.paused == wanted.paused && has.trigger == wanted.trigger
}
