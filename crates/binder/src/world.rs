//! Observe: what a decision about a claim or a volume needs, read from caches. No judgement beyond looking things up.

use crate::decide::matching::{self, Place};
use crate::decide::near;
use crate::desk::{self, Desk, Offer, Wish};
use crate::lean::{PersistentVolume, PersistentVolumeClaim};
use crate::status::{Phase, VolumeStatus};
use crate::words::{
    ClaimWords, Migration, VolumeWords, claims_of, delays_binding, has_ended, is_default, is_scheduled, text,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::storage::v1::StorageClass;
use lifeboat_engine::{Cache, Index, ObjectKey};
use lifeboat_schema::quantity::Quantity;
use std::cmp::Reverse;
use std::sync::Arc;

/// Finds objects by what they point to.
#[derive(Clone)]
pub struct Lookups {
    /// Free volumes by where they stand.
    pub free: Index<Place, PersistentVolume>,
    /// Free volumes that show no phase yet.
    pub fresh: Index<(), PersistentVolume>,
    /// Volumes by the claim they are for.
    pub volumes_for: Index<ObjectKey, PersistentVolume>,
    /// Claims without a volume by what they want, the largest first.
    pub waiting: Index<Wish, PersistentVolumeClaim>,
    /// Claims by the volume they name.
    pub claims_naming: Index<String, PersistentVolumeClaim>,
    /// Claims without a volume by class; those that say nothing of one are under `None`.
    pub unbound_of: Index<Option<String>, PersistentVolumeClaim>,
    /// Pods by the claims they name.
    pub pods_using: Index<ObjectKey, Pod>,
    /// Default classes, the newest first.
    pub defaults: Index<(Reverse<Timestamp>, String), StorageClass>,
}

impl Lookups {
    /// Keeps lookups over these caches from now on.
    pub fn over(
        volumes: &Cache<PersistentVolume>,
        claims: &Cache<PersistentVolumeClaim>,
        classes: &Cache<StorageClass>,
        pods: &Cache<Pod>,
    ) -> Self {
        Self {
            free: volumes.index(matching::place),
            volumes_for: volumes.index(|volume: &PersistentVolume| volume.claim_key()),
            fresh: volumes.index(|volume: &PersistentVolume| {
                (Phase::of(volume).is_none() && matching::place(volume).is_some()).then_some(())
            }),
            waiting: claims.index(desk::wish),
            claims_naming: claims.index(|claim: &PersistentVolumeClaim| {
                Some(claim.volume_name().to_owned()).filter(|name| !name.is_empty())
            }),
            unbound_of: claims.index(|claim: &PersistentVolumeClaim| {
                claim.waits().then(|| claim.names_class().then(|| claim.class().to_owned()))
            }),
            pods_using: pods.index(claims_of),
            defaults: classes.index(|class: &StorageClass| {
                let meta = &class.metadata;
                let made = meta.creation_timestamp.as_ref().map_or(Timestamp::MIN, |time| time.0);
                is_default(class).then(|| (Reverse(made), text(meta.name.as_ref()).to_owned()))
            }),
        }
    }
}

/// All that can be looked at.
pub struct View<'a> {
    /// Volumes.
    pub volumes: &'a Cache<PersistentVolume>,
    /// Claims.
    pub claims: &'a Cache<PersistentVolumeClaim>,
    /// Classes.
    pub classes: &'a Cache<StorageClass>,
    /// Lookups over them.
    pub by: &'a Lookups,
    /// What is agreed in this process.
    pub desk: &'a Desk,
    /// Who has taken over from which plugin.
    pub migration: Migration,
}

/// What was found for a claim that names no volume.
#[derive(Debug, Clone)]
pub enum Found {
    /// A volume reserved for it.
    Reserved(Arc<PersistentVolume>),
    /// The best free volume.
    Free(Arc<PersistentVolume>),
    /// Free ones, but somebody of this process is just writing them.
    InHand,
    /// None.
    Nothing,
}

/// What a decision about a claim needs.
#[derive(Debug, Clone)]
pub struct ClaimWorld {
    /// The claim.
    pub claim: Arc<PersistentVolumeClaim>,
    /// Its class.
    pub class: Option<Arc<StorageClass>>,
    /// The default class.
    pub default_class: Option<String>,
    /// The volume it names.
    pub named: Option<Arc<PersistentVolume>>,
    /// What was found for it.
    pub found: Found,
    /// A volume that carries its uid and cannot serve it.
    pub unfit: Option<Arc<PersistentVolume>>,
    /// Free volumes that nearly fit, where none does.
    pub near: Option<String>,
    /// What was last told of them.
    pub told: Option<String>,
    /// Pods that name it and have no node yet.
    pub unscheduled: Vec<String>,
    /// Who has taken over from which plugin.
    pub migration: Migration,
}

/// What a decision about a volume needs.
#[derive(Debug, Clone)]
pub struct VolumeWorld {
    /// The volume.
    pub volume: Arc<PersistentVolume>,
    /// The claim of the name it is for.
    pub claim: Option<Arc<PersistentVolumeClaim>>,
    /// Whether that claim, or that there is none, was read from the server in this very state.
    pub confirmed: bool,
    /// Whether somebody of this process is just writing the volume.
    pub in_hand: bool,
    /// To whom it was offered.
    pub offer: Option<Offer>,
    /// A waiting claim that would take it and has been offered nothing else.
    pub taker: Option<ObjectKey>,
    /// Whether it shows no phase yet, has no taker, and some waiting claim would take it, whatever else that was offered.
    pub wanted: bool,
    /// When a claim, whichever, last took a volume.
    pub taken: Option<Timestamp>,
    /// Pods that name its claim and have not ended.
    pub pods: Vec<String>,
    /// The status shown.
    pub shown: Option<VolumeStatus>,
    /// Who has taken over from which plugin.
    pub migration: Migration,
}

impl View<'_> {
    /// The world of a claim.
    pub fn claim(&self, key: &ObjectKey) -> Option<ClaimWorld> {
        let claim = self.claims.get(key)?;
        let class = self.classes.get(&ObjectKey::cluster_wide(claim.class()));
        let named = match claim.volume_name() {
            "" => None,
            name => self.volumes.get(&ObjectKey::cluster_wide(name)),
        };
        let mut world = ClaimWorld {
            class,
            named,
            default_class: None,
            found: Found::Nothing,
            unfit: None,
            near: None,
            told: self.desk.told(key),
            unscheduled: Vec::new(),
            migration: self.migration,
            claim,
        };
        if world.claim.waits() {
            self.look_around(key, &mut world);
        }
        Some(world)
    }

    fn look_around(&self, key: &ObjectKey, world: &mut ClaimWorld) {
        let claim = &world.claim;
        let ours = self.by.volumes_for.get(key);
        let carries_uid = |volume: &&Arc<PersistentVolume>| {
            volume.claim_ref().is_some_and(|reference| reference.uid.as_deref() == Some(claim.uid()))
        };
        let delays = world.class.as_deref().is_some_and(delays_binding);
        world.found = match matching::reserved(&ours, claim) {
            Some(volume) => Found::Reserved(volume),
            None if delays => Found::Nothing,
            None => match matching::best(&self.by.free, claim, |volume| !self.desk.is_held(volume.name())) {
                Some(volume) => Found::Free(volume),
                None if matching::best(&self.by.free, claim, |_| true).is_some() => Found::InHand,
                None => Found::Nothing,
            },
        };
        if matches!(world.found, Found::Nothing) && !delays {
            world.near = near::near_misses(&self.by.free, claim);
        }
        world.unfit =
            ours.iter().find(carries_uid).filter(|_| matches!(world.found, Found::Nothing)).cloned();
        let everything = (Reverse(Timestamp::MAX), String::new())..;
        let default = self.by.defaults.find(everything, |_| true);
        world.default_class = default.and_then(|class| class.metadata.name.clone());
        let pods = self.by.pods_using.get(key);
        let unscheduled = pods.iter().filter(|pod| !has_ended(pod) && !is_scheduled(pod));
        world.unscheduled = unscheduled.map(|pod| text(pod.metadata.name.as_ref()).to_owned()).collect();
    }

    /// The world of a volume.
    pub fn volume(&self, name: &str) -> Option<VolumeWorld> {
        let volume = self.volumes.get(&ObjectKey::cluster_wide(name))?;
        let claim_key = volume.claim_key();
        let claim = claim_key.as_ref().and_then(|key| self.claims.get(key));
        let seen = claim
            .as_ref()
            .map(|claim| (claim.uid().to_owned(), text(claim.metadata.resource_version.as_ref()).to_owned()));
        let taker = self.taker(&volume, claim.as_deref());
        let pods = claim_key.iter().flat_map(|key| self.by.pods_using.get(key));
        let pods = pods.filter(|pod| !has_ended(pod)).map(|pod| ObjectKey::of(&*pod).to_string()).collect();
        Some(VolumeWorld {
            confirmed: self.desk.sighting(name, volume.claim_uid()) == Some(seen),
            in_hand: self.desk.is_held(name),
            offer: self.desk.offer_of(name),
            // Nothing but a fresh volume waits for those who want it, and looking through all who wait is dear.
            wanted: taker.is_none() && Phase::of(&volume).is_none() && self.wanted(&volume),
            taken: self.desk.taken(),
            taker,
            pods,
            shown: Phase::of(&volume).map(Phase::plain),
            migration: self.migration,
            claim,
            volume,
        })
    }

    /// A claim that would take this volume as it is.
    fn taker(&self, volume: &PersistentVolume, named: Option<&PersistentVolumeClaim>) -> Option<ObjectKey> {
        if volume.claim_ref().is_some() {
            let takes = |claim: &&PersistentVolumeClaim| {
                !claim.bind_completed()
                    && volume.is_for(claim)
                    && (claim.volume_name() == volume.name()
                        || claim.volume_name().is_empty() && matching::cannot_serve(volume, claim).is_none())
            };
            return named.filter(takes).map(ClaimWords::key);
        }
        matching::place(volume)?;
        let named = self.by.claims_naming.get(&volume.name().to_owned());
        let wants = |claim: &&Arc<PersistentVolumeClaim>| {
            !claim.bind_completed() && matching::lack(volume, claim).is_none()
        };
        if let Some(claim) = named.iter().find(wants) {
            return Some(claim.key());
        }
        // Who was asked is asked again; others are asked only if they have been offered nothing.
        let offered = self.desk.offer_of(volume.name()).map(|offer| offer.claim);
        let takes = |key: &ObjectKey| {
            self.claims.get(key).is_some_and(|claim| claim.waits() && self.would_take(&claim, volume))
        };
        offered.filter(takes).or_else(|| {
            if self.is_left_to_scheduler(volume) {
                return None;
            }
            self.desk.unoffered(&VolumeWords::sort(volume), volume.capacity(), takes)
        })
    }

    fn would_take(&self, claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
        !self.is_left_to_scheduler(volume) && matching::lacks(volume, claim).is_empty()
    }

    fn is_left_to_scheduler(&self, volume: &PersistentVolume) -> bool {
        let class = self.classes.get(&ObjectKey::cluster_wide(VolumeWords::sort(volume).class));
        class.as_deref().is_some_and(delays_binding)
    }

    /// Whether some waiting claim would take a free volume, whatever else it was offered.
    fn wanted(&self, volume: &PersistentVolume) -> bool {
        if matching::place(volume).is_none() || self.is_left_to_scheduler(volume) {
            return false;
        }
        let sort = VolumeWords::sort(volume);
        let zero = Quantity::parse("0").expect("invariant: zero is a quantity");
        let smaller = (sort.clone(), Reverse(volume.capacity()))..=(sort, Reverse(zero));
        self.by.waiting.find(smaller, |claim| matching::lacks(volume, claim).is_empty()).is_some()
    }
}
