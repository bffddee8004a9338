//! What becomes of a volume whose claim is gone. Storage itself is deleted by whoever provisioned it; in-tree plugins and
//! recyclers are not part of Lifeboat, and a volume that would need one is Failed, with Kubernetes' words.

use crate::decide::provision;
use crate::decide::volume::VolumeDecision;
use crate::lean::{PersistentVolume, PersistentVolumeSpec};
use crate::status::{DeleterLack, Phase, VolumeStatus, VolumeWhy};
use crate::words::{
    EXTERNAL_FINALIZER, IN_TREE, IN_TREE_FINALIZER, MIGRATED_TO, PROVISIONED_BY, VolumeWords, annotation,
};
use crate::world::VolumeWorld;
use lifeboat_engine::{Decision, Next};

/// Released, and then by policy.
pub fn reclaim(world: &VolumeWorld) -> VolumeDecision {
    let volume = &*world.volume;
    // Failed stays until something else changes it.
    let failed = world.shown.as_ref().is_some_and(|status| status.phase == Phase::Failed);
    let released = if failed { Phase::Failed.plain() } else { Phase::Released.plain() };
    if let Some(driver) = annotation(&volume.metadata, MIGRATED_TO) {
        return Decision::wait(VolumeWhy::Deleter(driver.to_owned())).showing(released);
    }
    match volume.policy() {
        "Retain" => Decision::settled().showing(released),
        "Delete" => match deleter(volume) {
            Ok(name) => Decision::wait(VolumeWhy::Deleter(name)).showing(released),
            Err(lack) => {
                let mut failed = fail(VolumeWhy::NoDeleter { volume: volume.name().to_owned(), lack });
                if let Some(why) = storage_left(world) {
                    failed.next = Next::Wait { why, until: None };
                }
                failed
            }
        },
        "Recycle" if world.claim.is_none() && !world.pods.is_empty() => {
            Decision::wait(VolumeWhy::Pods(world.pods.clone())).showing(released)
        }
        "Recycle" => fail(VolumeWhy::NoRecycler),
        _ => fail(VolumeWhy::UnknownPolicy),
    }
}

fn fail(why: VolumeWhy) -> VolumeDecision {
    let message = why.to_string();
    Decision::wait(why).showing(VolumeStatus { phase: Phase::Failed, message })
}

/// Who deletes the storage; an error says who would have to.
fn deleter(volume: &PersistentVolume) -> Result<String, DeleterLack> {
    let spec = volume.spec.as_ref();
    match annotation(&volume.metadata, PROVISIONED_BY).filter(|plugin| !plugin.is_empty()) {
        Some(plugin) if plugin.starts_with(IN_TREE) => Err(DeleterLack::Plugin(plugin.to_owned())),
        Some(driver) => Ok(driver.to_owned()),
        None => match spec.and_then(PersistentVolumeSpec::driver) {
            Some(driver) => Ok(driver),
            None if spec.is_some_and(|spec| spec.has("nfs")) => Err(DeleterLack::Deletable),
            None => Err(DeleterLack::Source),
        },
    }
}

/// A volume that is going and that only its storage keeps, which nobody here deletes: a person must be told.
pub fn storage_left(world: &VolumeWorld) -> Option<VolumeWhy> {
    let meta = &world.volume.metadata;
    let kept = meta.finalizers.iter().flatten().any(|name| name == IN_TREE_FINALIZER);
    let going = meta.deletion_timestamp.is_some();
    deleter(&world.volume).err().filter(|_| kept && going).map(VolumeWhy::StorageLeft)
}

/// The volume with its finalizers and the note of its migration as they should be, unless they are.
pub fn tidied(world: &VolumeWorld) -> Option<PersistentVolume> {
    let volume = &*world.volume;
    let plugin = annotation(&volume.metadata, PROVISIONED_BY)?;
    let driver = (world.migration)(plugin);
    let mut tidy = volume.clone();
    if annotation(&volume.metadata, MIGRATED_TO) != driver {
        provision::note(&mut tidy.metadata, driver);
    }
    let names = tidy.metadata.finalizers.get_or_insert_default();
    if driver.is_some() {
        names.retain(|name| name != IN_TREE_FINALIZER);
    } else if plugin.starts_with(IN_TREE) {
        // The external one is left from before a migration was taken back.
        names.retain(|name| name != EXTERNAL_FINALIZER);
        let has = names.iter().any(|name| name == IN_TREE_FINALIZER);
        if volume.policy() != "Delete" {
            names.retain(|name| name != IN_TREE_FINALIZER);
        } else if !has && volume.metadata.deletion_timestamp.is_none() {
            names.push(IN_TREE_FINALIZER.to_owned());
        }
    }
    if names.is_empty() {
        tidy.metadata.finalizers = None;
    }
    let same = |names: &Option<Vec<String>>| names.clone().unwrap_or_default();
    let changed = tidy.metadata.annotations != volume.metadata.annotations
        || same(&tidy.metadata.finalizers) != same(&volume.metadata.finalizers);
    changed.then_some(tidy)
}
