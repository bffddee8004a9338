//! Who makes a volume for a claim. Nothing is made here: external provisioners are asked by an annotation.

use crate::decide::claim::{ClaimDecision, ClaimEffect};
use crate::lean::PersistentVolumeClaim;
use crate::status::ClaimWhy;
use crate::words::{
    BETA_STORAGE_PROVISIONER, ClaimWords, IN_TREE, MIGRATED_TO, STORAGE_PROVISIONER, annotate, annotation,
    unannotate,
};
use crate::world::ClaimWorld;
use kube::api::ObjectMeta;
use lifeboat_engine::Decision;

/// Asks for a volume, or says why nobody can be asked. The claim's status stays as it is.
pub fn provision(world: &ClaimWorld) -> ClaimDecision {
    let claim = &*world.claim;
    let Some(class) = world.class.as_deref() else {
        return Decision::wait(ClaimWhy::ClassMissing(claim.class().to_owned()));
    };
    let provisioner = match (world.migration)(&class.provisioner) {
        Some(driver) => driver,
        None if class.provisioner.starts_with(IN_TREE) => {
            return Decision::wait(ClaimWhy::NoProvisioner(class.provisioner.clone()));
        }
        None => &class.provisioner,
    };
    if annotation(&claim.metadata, STORAGE_PROVISIONER) == Some(provisioner) {
        return Decision::wait(ClaimWhy::Provisioner(provisioner.to_owned()));
    }
    let mut claim = claim.clone();
    annotate(&mut claim.metadata, BETA_STORAGE_PROVISIONER, provisioner);
    annotate(&mut claim.metadata, STORAGE_PROVISIONER, provisioner);
    let migrated = (world.migration)(provisioner);
    note(&mut claim.metadata, migrated);
    Decision::act([ClaimEffect::AskProvisioner(Box::new(claim))])
}

/// The claim with its migration noted, unless it is already.
pub fn noting_migration(world: &ClaimWorld) -> Option<PersistentVolumeClaim> {
    let claim = &*world.claim;
    let named = |key| annotation(&claim.metadata, key);
    let provisioner = named(STORAGE_PROVISIONER).or_else(|| named(BETA_STORAGE_PROVISIONER))?;
    let driver = (world.migration)(provisioner);
    if named(MIGRATED_TO) == driver {
        return None;
    }
    let mut claim = claim.clone();
    note(&mut claim.metadata, driver);
    Some(claim)
}

/// Notes the driver that has taken over, or that none has.
pub fn note(meta: &mut ObjectMeta, driver: Option<&str>) {
    match driver {
        Some(driver) => annotate(meta, MIGRATED_TO, driver),
        None => unannotate(meta, MIGRATED_TO),
    }
}
