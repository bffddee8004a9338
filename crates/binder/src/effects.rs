//! Act: the two controllers as the engine runs them. Every write is of a whole object in the version it was decided on, so
//! the server refuses it where somebody was faster; nothing else in this crate writes.

use crate::decide::claim::{self, ClaimDecision, ClaimEffect};
use crate::decide::volume::{self, VolumeDecision, VolumeEffect};
use crate::desk::{Desk, Hold, Offer};
use crate::lean::{PersistentVolume, PersistentVolumeClaim};
use crate::metrics::{Metrics, NO_PLUGIN};
use crate::status::{
    ClaimStatus, ClaimWhy, Phase, VolumeStatus, VolumeWhy, claim_reference, claim_showing, volume_reference,
    volume_showing,
};
use crate::words::{
    ClaimWords, MIGRATED_TO, STORAGE_PROVISIONER, VolumeWords, annotation, migrated_to, text,
};
use crate::world::{ClaimWorld, Lookups, View, VolumeWorld};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use lifeboat_engine::{
    Class, Clock, Controller, EffectError, Level, ObjectKey, Objects, Recorder, Trouble, Wiring,
};

/// Reason of the event that names volumes which nearly fit a claim.
const NEAR_MISSES: &str = "VolumesNearlyFit";

/// What both controllers share: the kinds, how to find things among them, and the desk.
#[derive(Clone)]
pub struct Office {
    /// Volumes.
    pub volumes: Objects<PersistentVolume>,
    /// Claims.
    pub claims: Objects<PersistentVolumeClaim>,
    /// Classes.
    pub classes: Objects<StorageClass>,
    /// Pods.
    pub pods: Objects<Pod>,
    /// Lookups over them.
    pub by: Lookups,
    /// What is agreed in this process.
    pub desk: Desk,
    /// Writes events.
    pub recorder: Recorder,
    /// Counts.
    pub metrics: Metrics,
    /// Tells when something was done.
    pub clock: Clock,
}

impl Office {
    fn view(&self) -> View<'_> {
        View {
            volumes: &self.volumes,
            claims: &self.claims,
            classes: &self.classes,
            by: &self.by,
            desk: &self.desk,
            migration: migrated_to,
        }
    }

    /// Takes a volume in hand, so that nobody else of this process decides about it meanwhile.
    fn hold(&self, volume: &PersistentVolume, by: Option<&ObjectKey>) -> Result<Hold, EffectError> {
        let hold = self.desk.hold(volume.name(), by.cloned());
        hold.ok_or_else(|| {
            EffectError::new(Class::Stale, format!("the volume {} is being written", volume.name()))
        })
    }
}

/// The controller of claims.
pub struct Claims(pub Office);

impl Controller for Claims {
    const NAME: &'static str = "claims";
    type Key = ObjectKey;
    type World = ClaimWorld;
    type Effect = ClaimEffect;
    type Why = ClaimWhy;
    type Status = ClaimStatus;

    fn observe(&self, key: &ObjectKey, _: Option<&Trouble>) -> Option<ClaimWorld> {
        self.0.view().claim(key)
    }

    fn decide(world: &ClaimWorld, now: Timestamp) -> ClaimDecision {
        claim::decide(world, now)
    }

    async fn act(&self, key: &ObjectKey, effect: ClaimEffect) -> Result<(), EffectError> {
        let done = self.perform(key, effect).await;
        if done.is_err() {
            self.0.metrics.failed(&key.to_string());
        }
        done
    }

    fn shown(world: &ClaimWorld) -> Option<&ClaimStatus> {
        world.claim.status.as_ref()
    }

    async fn show(&self, world: &ClaimWorld, status: ClaimStatus) -> Result<(), EffectError> {
        let bound = status.phase.as_deref() == Some("Bound");
        self.0.claims.replace_status(&claim_showing(&world.claim, status)).await?;
        if bound {
            self.0.metrics.done(&world.claim.key().to_string());
        }
        Ok(())
    }

    fn subject(world: &ClaimWorld) -> Option<ObjectReference> {
        Some(claim_reference(&world.claim))
    }

    fn forget(&self, key: &ObjectKey) {
        self.0.desk.forget_claim(key);
        self.0.metrics.dropped(&key.to_string());
    }
}

impl Claims {
    async fn perform(&self, key: &ObjectKey, effect: ClaimEffect) -> Result<(), EffectError> {
        match effect {
            ClaimEffect::Reserve(volume) => {
                let _hold = self.0.hold(&volume, Some(key))?;
                self.0.volumes.replace(&volume).await?;
                self.0.desk.took(self.0.clock.now());
                Ok(())
            }
            ClaimEffect::ShowVolumeBound(volume) => {
                let _hold = self.0.hold(&volume, Some(key))?;
                self.0.volumes.replace_status(&volume).await.map(drop)
            }
            ClaimEffect::NoteMigration(claim) | ClaimEffect::Complete(claim) => {
                self.0.claims.replace(&claim).await.map(drop)
            }
            ClaimEffect::AssignClass(claim) => {
                let given = self.0.claims.replace(&claim).await;
                self.0.metrics.assigned(given.is_ok());
                given.map(drop)
            }
            ClaimEffect::AskProvisioner(claim) => {
                let provisioner = annotation(&claim.metadata, STORAGE_PROVISIONER).unwrap_or(NO_PLUGIN);
                self.0.metrics.begin(key.to_string(), provisioner, "provision");
                self.0.claims.replace(&claim).await.map(drop)
            }
            ClaimEffect::TellNearMisses(sentence) => {
                if let Some(claim) = self.0.claims.get(key) {
                    self.0.recorder.record(claim_reference(&claim), Level::Normal, NEAR_MISSES, &sentence);
                }
                self.0.desk.tell(key, sentence);
                Ok(())
            }
        }
    }
}

/// The controller of volumes.
pub struct Volumes {
    /// What it shares with the controller of claims.
    pub office: Office,
    /// Wakes claims that a volume is offered to.
    pub claims: Wiring<ObjectKey>,
}

impl Controller for Volumes {
    const NAME: &'static str = "volumes";
    type Key = ObjectKey;
    type World = VolumeWorld;
    type Effect = VolumeEffect;
    type Why = VolumeWhy;
    type Status = VolumeStatus;

    fn observe(&self, key: &ObjectKey, _: Option<&Trouble>) -> Option<VolumeWorld> {
        self.office.view().volume(&key.name)
    }

    fn decide(world: &VolumeWorld, now: Timestamp) -> VolumeDecision {
        volume::decide(world, now)
    }

    async fn act(&self, key: &ObjectKey, effect: VolumeEffect) -> Result<(), EffectError> {
        let office = &self.office;
        match effect {
            VolumeEffect::Tidy(volume) | VolumeEffect::Unbind(volume) => {
                let _hold = office.hold(&volume, None)?;
                office.volumes.replace(&volume).await.map(drop)
            }
            VolumeEffect::ReadClaim(claim) => {
                // The uid as it was before the question: a volume that changes meanwhile is asked about again.
                let volume = office.volumes.get(key);
                let uid = volume.as_ref().map_or("", |volume| volume.claim_uid());
                let seen = office.claims.read(&claim).await?.map(|claim| {
                    (claim.uid().to_owned(), text(claim.metadata.resource_version.as_ref()).to_owned())
                });
                office.desk.note(&key.name, uid, seen);
                Ok(())
            }
            VolumeEffect::Offer { claim, at } => {
                office.desk.offer(&key.name, Offer { claim: claim.clone(), made: at });
                self.claims.wake(claim);
                Ok(())
            }
        }
    }

    fn shown(world: &VolumeWorld) -> Option<&VolumeStatus> {
        world.shown.as_ref()
    }

    async fn show(&self, world: &VolumeWorld, status: VolumeStatus) -> Result<(), EffectError> {
        let office = &self.office;
        let _hold = office.hold(&world.volume, None)?;
        office.volumes.replace_status(&volume_showing(&world.volume, &status)).await?;
        if status.phase == Phase::Released
            && world.volume.policy() == "Delete"
            && annotation(&world.volume.metadata, MIGRATED_TO).is_none()
        {
            let class = office.classes.get(&ObjectKey::cluster_wide(VolumeWords::sort(&*world.volume).class));
            let provisioner = class.as_ref().map(|class| class.provisioner.as_str());
            let provisioner = provisioner.map(|name| migrated_to(name).unwrap_or(name));
            let about = world.volume.name().to_owned();
            office.metrics.begin(about, provisioner.unwrap_or(NO_PLUGIN), "delete");
        }
        Ok(())
    }

    fn subject(world: &VolumeWorld) -> Option<ObjectReference> {
        Some(volume_reference(&world.volume))
    }

    fn forget(&self, key: &ObjectKey) {
        self.office.desk.forget(&key.name);
        self.office.metrics.done(&key.name);
    }
}
