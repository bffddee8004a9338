//! A claim that was bound and asks for more. Nothing is grown here: the resizer of the volume's CSI driver grows it, on the
//! node as well where that is needed, and shows so in the claim's conditions and capacity. What is left to do is to name the driver
//! on claims of volumes that were made by an in-tree plugin, and to tell people who is waited for.
//!
//! kube-controller-manager has the same controller; where it runs, this one stays off.

use crate::effects::Office;
use crate::lean::{PersistentVolume, PersistentVolumeClaim};
use crate::status::claim_reference;
use crate::words::{
    ClaimWords, Migration, PRE_RESIZE_CAPACITY, STORAGE_RESIZER, VolumeWords, annotate, annotation,
    migrated_to, storage,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use lifeboat_engine::{Controller, Decision, EffectError, Level, ObjectKey, Trouble, Why};
use std::fmt;
use std::sync::Arc;

/// Who grows a volume.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum Grower {
    /// Somebody outside, who finds out by himself.
    External,
    /// The resizer of the driver that took over from an in-tree plugin, which the claim names.
    Migrated(String),
}

impl fmt::Display for Grower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::External => f.write_str("waiting for an external controller to expand this PVC"),
            Self::Migrated(plugin) => {
                write!(
                    f,
                    "CSI migration enabled for {plugin}; waiting for external resizer to expand the pvc"
                )
            }
        }
    }
}

impl Why for Grower {
    fn reason(&self) -> String {
        "ExternalExpanding".to_owned()
    }

    fn event(&self) -> Option<Level> {
        Some(Level::Normal)
    }
}

/// What can be done about growing.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum GrowEffect {
    /// Names the driver whose resizer is to grow the volume.
    NameResizer(Box<PersistentVolumeClaim>),
}

/// What a decision about growing needs.
#[derive(Debug, Clone)]
pub struct GrowWorld {
    /// The claim.
    pub claim: Arc<PersistentVolumeClaim>,
    /// The volume that it names.
    pub volume: Option<Arc<PersistentVolume>>,
    /// Who has taken over from which plugin.
    pub migration: Migration,
}

/// Every rule about growing.
pub fn decide(world: &GrowWorld) -> Decision<GrowEffect, Grower, ()> {
    let claim = &*world.claim;
    let Some(volume) = world.volume.as_deref().filter(|volume| is_its_own(claim, volume)) else {
        return Decision::settled();
    };
    let status = claim.status.as_ref();
    let has = storage(status.and_then(|status| status.capacity.as_ref()));
    let unfinished = annotation(&volume.metadata, PRE_RESIZE_CAPACITY).is_some();
    if claim.request() <= has && !unfinished {
        return Decision::settled();
    }
    let plugin = in_tree_plugin(volume);
    let Some((plugin, driver)) = plugin.and_then(|plugin| Some((plugin, (world.migration)(plugin)?))) else {
        return Decision::wait(Grower::External);
    };
    if annotation(&claim.metadata, STORAGE_RESIZER) == Some(driver) {
        return Decision::wait(Grower::Migrated(plugin.to_owned()));
    }
    let mut claim = claim.clone();
    annotate(&mut claim.metadata, STORAGE_RESIZER, driver);
    Decision::act([GrowEffect::NameResizer(Box::new(claim))])
}

/// Bound to each other and shown as such; before that there is nothing to grow.
fn is_its_own(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
    let uid = volume.claim_ref().and_then(|reference| reference.uid.as_deref());
    phase == Some("Bound") && uid == Some(claim.uid())
}

/// The in-tree plugin whose source a volume has, of those that CSI drivers have taken over from.
fn in_tree_plugin(volume: &PersistentVolume) -> Option<&'static str> {
    let spec = volume.spec.as_ref()?;
    let sources = [
        ("awsElasticBlockStore", "kubernetes.io/aws-ebs"),
        ("azureDisk", "kubernetes.io/azure-disk"),
        ("azureFile", "kubernetes.io/azure-file"),
        ("cinder", "kubernetes.io/cinder"),
        ("gcePersistentDisk", "kubernetes.io/gce-pd"),
        ("portworxVolume", "kubernetes.io/portworx-volume"),
        ("vsphereVolume", "kubernetes.io/vsphere-volume"),
    ];
    sources.into_iter().find(|(source, _)| spec.has(source)).map(|(_, plugin)| plugin)
}

/// The controller of claims that ask for more.
pub struct Growth(pub Office);

impl Controller for Growth {
    const NAME: &'static str = "volume-expand";
    type Key = ObjectKey;
    type World = GrowWorld;
    type Effect = GrowEffect;
    type Why = Grower;
    type Status = ();

    fn observe(&self, key: &ObjectKey, _: Option<&Trouble>) -> Option<GrowWorld> {
        let claim = self.0.claims.get(key)?;
        let volume = self.0.volumes.get(&ObjectKey::cluster_wide(claim.volume_name()));
        Some(GrowWorld { claim, volume, migration: migrated_to })
    }

    fn decide(world: &GrowWorld, _: Timestamp) -> Decision<GrowEffect, Grower, ()> {
        decide(world)
    }

    async fn act(&self, _: &ObjectKey, effect: GrowEffect) -> Result<(), EffectError> {
        let GrowEffect::NameResizer(claim) = effect;
        self.0.claims.replace(&claim).await.map(drop)
    }

    fn shown(_: &GrowWorld) -> Option<&()> {
        None
    }

    async fn show(&self, _: &GrowWorld, (): ()) -> Result<(), EffectError> {
        Ok(())
    }

    fn subject(world: &GrowWorld) -> Option<ObjectReference> {
        Some(claim_reference(&world.claim))
    }
}
