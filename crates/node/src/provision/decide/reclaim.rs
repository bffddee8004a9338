//! A volume of ours: held back from deletion while there is storage behind it, and its storage removed when its claim is gone and its
//! policy says so.

use crate::provision::status::VolumeWhy;
use crate::provision::words::{
    UNPUBLISHED, annotation, claim_of, drop_finalizer, has_finalizer, is_going, is_ours, name, phase_of, uid,
};
use crate::provision::world::VolumeWorld;
use k8s_openapi::api::core::v1::PersistentVolume;
use lifeboat_api::finalizers::EXTERNAL_PROVISIONER;
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_engine::{Decision, ObjectKey};

/// What can be done about a volume.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum VolumeEffect {
    /// Puts the finalizer on: its storage goes first.
    Hold(Box<PersistentVolume>),
    /// Takes the finalizer off.
    Release(Box<PersistentVolume>),
    /// Deletes the storage, after a look at the server that the claim is gone.
    DeleteStorage {
        /// The LogicalVolume.
        logical: Box<LogicalVolume>,
        /// The volume it is behind.
        volume: Box<PersistentVolume>,
    },
    /// Deletes the volume, after a look at the server that its storage is gone.
    Delete(Box<PersistentVolume>),
}

/// What is decided about a volume. Its phase is the binder's business.
pub type VolumeDecision = Decision<VolumeEffect, VolumeWhy, ()>;

/// Every rule about volumes.
pub fn decide(world: &VolumeWorld) -> VolumeDecision {
    let volume = &*world.volume;
    if !is_ours(volume, &world.driver) {
        return Decision::settled();
    }
    let deletes = policy(volume) == "Delete";
    let going = is_going(&volume.metadata);
    if deletes && is_over(volume) {
        return reclaim(world);
    }
    let unpublished =
        world.logical.as_deref().is_some_and(|logical| annotation(&logical.metadata, UNPUBLISHED).is_some());
    let holds = has_finalizer(&volume.metadata, EXTERNAL_PROVISIONER);
    let mut changed = volume.clone();
    match (deletes || unpublished, holds) {
        (true, false) if !going => {
            changed.metadata.finalizers.get_or_insert_default().push(EXTERNAL_PROVISIONER.to_owned());
            Decision::act([VolumeEffect::Hold(Box::new(changed))])
        }
        // Kept storage is nobody's business but the administrator's.
        (false, true) => Decision::act([VolumeEffect::Release(Box::new(without_finalizer(changed)))]),
        _ => Decision::settled(),
    }
}

fn policy(volume: &PersistentVolume) -> &str {
    volume.spec.as_ref().and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref()).unwrap_or("Retain")
}

/// Whether nobody can use a volume any more: its claim let go of it, or it never had one and somebody deletes it.
fn is_over(volume: &PersistentVolume) -> bool {
    match phase_of(volume) {
        "Released" | "Failed" => true,
        "Bound" => false,
        _ => is_going(&volume.metadata) && claim_of(volume).is_none(),
    }
}

fn without_finalizer(mut volume: PersistentVolume) -> PersistentVolume {
    drop_finalizer(&mut volume.metadata, EXTERNAL_PROVISIONER);
    volume
}

fn reclaim(world: &VolumeWorld) -> VolumeDecision {
    let volume = &*world.volume;
    if let Some((key, of)) = claim_of(volume)
        && world.claim.as_deref().is_some_and(|claim| uid(claim) == of)
    {
        return Decision::wait(VolumeWhy::ClaimExists(ObjectKey::to_string(&key)));
    }
    match world.logical.as_deref() {
        Some(logical) if is_going(&logical.metadata) => Decision::wait(VolumeWhy::StorageGoing {
            node: logical.spec.node_name.clone(),
            volume: name(logical).to_owned(),
        }),
        Some(_) if !world.copies.is_empty() => Decision::wait(VolumeWhy::BeingCopied(world.copies.clone())),
        Some(logical) => {
            let (logical, volume) = (Box::new(logical.clone()), Box::new(volume.clone()));
            Decision::act([VolumeEffect::DeleteStorage { logical, volume }])
        }
        None if !is_going(&volume.metadata) => {
            Decision::act([VolumeEffect::Delete(Box::new(volume.clone()))])
        }
        None if has_finalizer(&volume.metadata, EXTERNAL_PROVISIONER) => {
            Decision::act([VolumeEffect::Release(Box::new(without_finalizer(volume.clone())))])
        }
        None => Decision::settled(),
    }
}
