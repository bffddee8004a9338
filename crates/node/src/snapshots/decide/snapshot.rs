//! A VolumeSnapshot: it gets a class and a content, shows what the content says, and takes its content with it where the policy says so.

use crate::provision::words::{
    annotation, claim_of, csi_of, drop_finalizer, has_finalizer, is_going, name, quantity, uid,
};
use crate::snapshots::make::content as make_content;
use crate::snapshots::status::{SnapshotWhy, error};
use crate::snapshots::world::SnapshotWorld;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lifeboat_api::annotations::SNAPSHOT_BEING_DELETED;
use lifeboat_api::finalizers::{PVC_AS_SOURCE, SNAPSHOT_AS_SOURCE, SNAPSHOT_BOUND};
use lifeboat_api::snapshot::{
    DeletionPolicy, VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent, VolumeSnapshotStatus,
};
use lifeboat_engine::{Decision, ObjectKey};

/// What can be done about a VolumeSnapshot. Each carries the object to write.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum SnapshotEffect {
    /// Keeps it from vanishing while something hangs on it.
    Guard(Box<VolumeSnapshot>),
    /// Gives it the default class.
    ChooseClass(Box<VolumeSnapshot>),
    /// Keeps its claim from vanishing before the snapshot is taken.
    GuardClaim(Box<PersistentVolumeClaim>),
    /// Makes its content.
    CreateContent(Box<VolumeSnapshotContent>),
    /// Binds the content that it names.
    BindContent(Box<VolumeSnapshotContent>),
    /// Notes on the content that it is being deleted.
    MarkContent(Box<VolumeSnapshotContent>),
    /// Deletes its content.
    DeleteContent(Box<VolumeSnapshotContent>),
    /// Lets it go.
    Release(Box<VolumeSnapshot>),
}

/// What is decided about a VolumeSnapshot.
pub type SnapshotDecision = Decision<SnapshotEffect, SnapshotWhy, VolumeSnapshotStatus>;

/// Every rule about VolumeSnapshots.
pub fn decide(world: &SnapshotWorld, now: Timestamp) -> SnapshotDecision {
    let snapshot = &*world.snapshot;
    if world.content.as_deref().is_some_and(|content| content.spec.driver != world.driver) {
        return Decision::settled();
    }
    if is_going(&snapshot.metadata) {
        return going(world);
    }
    match (&snapshot.spec.source.volume_snapshot_content_name, world.content.as_deref()) {
        (Some(wanted), None) => {
            failed(world, format!("VolumeSnapshotContent {wanted:?} does not exist"), now)
        }
        (Some(_), Some(content)) => named(world, content, now),
        (None, Some(content)) if is_of(content, snapshot) => bound(world, content, now),
        (None, Some(content)) => failed(
            world,
            format!("VolumeSnapshotContent {:?} is bound to another VolumeSnapshot", name(content)),
            now,
        ),
        (None, None) => taking(world, now),
    }
}

/// Whether a content is bound to a VolumeSnapshot.
fn is_of(content: &VolumeSnapshotContent, snapshot: &VolumeSnapshot) -> bool {
    content.spec.volume_snapshot_ref.uid.as_deref() == Some(uid(snapshot))
}

fn guard(snapshot: &VolumeSnapshot) -> Option<SnapshotEffect> {
    let missing = [SNAPSHOT_AS_SOURCE, SNAPSHOT_BOUND]
        .into_iter()
        .filter(|name| !has_finalizer(&snapshot.metadata, name));
    let missing: Vec<String> = missing.map(str::to_owned).collect();
    if missing.is_empty() {
        return None;
    }
    let mut guarded = snapshot.clone();
    guarded.metadata.finalizers.get_or_insert_default().extend(missing);
    Some(SnapshotEffect::Guard(Box::new(guarded)))
}

/// A snapshot that is to be taken of a claim.
fn taking(world: &SnapshotWorld, now: Timestamp) -> SnapshotDecision {
    let snapshot = &*world.snapshot;
    let wanted = snapshot.spec.source.persistent_volume_claim_name.as_deref().unwrap_or_default();
    let class = match class(world) {
        Ok(Some(class)) => class,
        // Another driver's, or nobody can tell yet whose.
        Ok(None) => return Decision::settled(),
        Err(why) => return failed(world, why, now),
    };
    let Some(claim) = world.claim.as_deref() else {
        return failed(world, format!("the claim {wanted:?} does not exist"), now);
    };
    if is_going(&claim.metadata) && !has_finalizer(&claim.metadata, PVC_AS_SOURCE) {
        return failed(world, format!("the claim {wanted:?} is being deleted"), now);
    }
    let Some(volume) =
        world.volume.as_deref().filter(|volume| claim_of(volume).is_some_and(|(_, of)| of == uid(claim)))
    else {
        return failed(world, format!("the claim {wanted:?} is not bound yet"), now);
    };
    match csi_of(volume) {
        Some((driver, _)) if driver == world.driver => {}
        _ => return Decision::settled(),
    }
    if class.spec.driver != world.driver {
        let why = format!(
            "VolumeSnapshotClass {:?} is of driver {:?}, the volume of claim {wanted:?} of {:?}",
            name(class),
            class.spec.driver,
            world.driver
        );
        return failed(world, why, now);
    }
    if let Some(guard) = guard(snapshot) {
        return Decision::act([guard]);
    }
    if snapshot.spec.volume_snapshot_class_name.is_none() {
        let mut chosen = snapshot.clone();
        chosen.spec.volume_snapshot_class_name = class.metadata.name.clone();
        return Decision::act([SnapshotEffect::ChooseClass(Box::new(chosen))]);
    }
    if !has_finalizer(&claim.metadata, PVC_AS_SOURCE) {
        let mut claim = claim.clone();
        claim.metadata.finalizers.get_or_insert_default().push(PVC_AS_SOURCE.to_owned());
        return Decision::act([SnapshotEffect::GuardClaim(Box::new(claim))]);
    }
    let content = make_content(snapshot, class, claim, volume);
    let decision = Decision::act([SnapshotEffect::CreateContent(Box::new(content))]);
    match &world.trouble {
        Some(trouble) => decision.showing(with_error(snapshot, &trouble.message, now)),
        None => decision,
    }
}

/// The class to take it with; none where it is not ours to say.
fn class(world: &SnapshotWorld) -> Result<Option<&VolumeSnapshotClass>, String> {
    match &world.snapshot.spec.volume_snapshot_class_name {
        Some(wanted) => match world.class.as_deref() {
            Some(class) if class.spec.driver != world.driver && !is_our_volume(world) => Ok(None),
            Some(class) => Ok(Some(class)),
            None if is_our_volume(world) => Err(format!("VolumeSnapshotClass {wanted:?} does not exist")),
            None => Ok(None),
        },
        None if !is_our_volume(world) => Ok(None),
        None => match world.defaults.as_slice() {
            [one] => Ok(Some(one)),
            [] => Err(format!(
                "no VolumeSnapshotClass of driver {:?} is marked as default, and none is named",
                world.driver
            )),
            several => {
                let names: Vec<&str> = several.iter().map(|class| name(&**class)).collect();
                Err(format!(
                    "several VolumeSnapshotClasses of driver {:?} are marked as default: {}",
                    world.driver,
                    names.join(", ")
                ))
            }
        },
    }
}

fn is_our_volume(world: &SnapshotWorld) -> bool {
    world.volume.as_deref().and_then(csi_of).is_some_and(|(driver, _)| driver == world.driver)
}

/// A snapshot that claims a content which stands for something that exists.
fn named(world: &SnapshotWorld, content: &VolumeSnapshotContent, now: Timestamp) -> SnapshotDecision {
    let snapshot = &*world.snapshot;
    let back = &content.spec.volume_snapshot_ref;
    let here = ObjectKey::of(snapshot);
    let points =
        ObjectKey::new(back.namespace.clone().unwrap_or_default(), back.name.clone().unwrap_or_default());
    if points != here {
        return failed(
            world,
            format!("VolumeSnapshotContent {:?} is for VolumeSnapshot {points}", name(content)),
            now,
        );
    }
    if content.spec.source.snapshot_handle.is_none() {
        return failed(
            world,
            format!("VolumeSnapshotContent {:?} was not made for a snapshot that exists", name(content)),
            now,
        );
    }
    match back.uid.as_deref().filter(|uid| !uid.is_empty()) {
        Some(of) if of == uid(snapshot) => bound(world, content, now),
        Some(_) => failed(
            world,
            format!("VolumeSnapshotContent {:?} is bound to another VolumeSnapshot", name(content)),
            now,
        ),
        None => {
            if let Some(guard) = guard(snapshot) {
                return Decision::act([guard]);
            }
            let mut bound = content.clone();
            bound.spec.volume_snapshot_ref.uid = snapshot.metadata.uid.clone();
            Decision::act([SnapshotEffect::BindContent(Box::new(bound))])
        }
    }
}

/// A snapshot that has its content: it shows what that says.
fn bound(world: &SnapshotWorld, content: &VolumeSnapshotContent, now: Timestamp) -> SnapshotDecision {
    let snapshot = &*world.snapshot;
    if let Some(guard) = guard(snapshot) {
        return Decision::act([guard]);
    }
    let mut status = snapshot.status.clone().unwrap_or_default();
    let said = content.status.clone().unwrap_or_default();
    let ready = said.ready_to_use == Some(true);
    status.bound_volume_snapshot_content_name = content.metadata.name.clone();
    status.creation_time = said.creation_time.and_then(taken_at).or(status.creation_time);
    status.ready_to_use = Some(ready);
    status.restore_size =
        said.restore_size.and_then(|size| u64::try_from(size).ok()).map(quantity).or(status.restore_size);
    let message = said.error.as_ref().and_then(|error| error.message.clone()).filter(|_| !ready);
    status.error = message.as_deref().map(|message| error(status.error.as_ref(), message, now));
    if ready {
        return Decision::settled().showing(status);
    }
    let why = match message {
        Some(message) => SnapshotWhy::Failed(message),
        None => SnapshotWhy::Taking(ObjectKey::of(snapshot).to_string()),
    };
    Decision::wait(why).showing(status)
}

fn taken_at(nanoseconds: i64) -> Option<Time> {
    Timestamp::from_nanosecond(i128::from(nanoseconds))
        .ok()
        .map(|at| Time(lifeboat_engine::conditions::whole_seconds(at)))
}

fn with_error(snapshot: &VolumeSnapshot, message: &str, now: Timestamp) -> VolumeSnapshotStatus {
    let mut status = snapshot.status.clone().unwrap_or_default();
    status.ready_to_use = Some(false);
    status.error = Some(error(status.error.as_ref(), message, now));
    status
}

fn failed(world: &SnapshotWorld, why: String, now: Timestamp) -> SnapshotDecision {
    let shown = with_error(&world.snapshot, &why, now);
    Decision::wait(SnapshotWhy::Failed(why)).showing(shown)
}

/// A snapshot that is being deleted.
fn going(world: &SnapshotWorld) -> SnapshotDecision {
    let snapshot = &*world.snapshot;
    if !world.fills.is_empty() {
        return Decision::wait(SnapshotWhy::InUse(world.fills.clone()));
    }
    let content = world.content.as_deref().filter(|content| is_of(content, snapshot));
    if let Some(content) = content.filter(|content| content.spec.deletion_policy == DeletionPolicy::Delete) {
        if annotation(&content.metadata, SNAPSHOT_BEING_DELETED).is_none() {
            let mut marked = content.clone();
            marked
                .metadata
                .annotations
                .get_or_insert_default()
                .insert(SNAPSHOT_BEING_DELETED.to_owned(), "yes".to_owned());
            return Decision::act([SnapshotEffect::MarkContent(Box::new(marked))]);
        }
        if !is_going(&content.metadata) {
            return Decision::act([SnapshotEffect::DeleteContent(Box::new(content.clone()))]);
        }
        return Decision::wait(SnapshotWhy::ContentGoing(name(content).to_owned()));
    }
    let ours = [SNAPSHOT_AS_SOURCE, SNAPSHOT_BOUND];
    if !ours.iter().any(|name| has_finalizer(&snapshot.metadata, name)) {
        return Decision::settled();
    }
    let mut released = snapshot.clone();
    for finalizer in ours {
        drop_finalizer(&mut released.metadata, finalizer);
    }
    Decision::act([SnapshotEffect::Release(Box::new(released))])
}
