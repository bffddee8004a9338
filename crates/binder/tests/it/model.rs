//! A cluster as plain data: what the server has, what the caches have of it, and passes over both. It does what the engine
//! does with a decision, so that rules can be tried without a server, with caches that lag and with deaths between writes.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::Resource;
use kube::api::ObjectMeta;
use lifeboat_binder::decide::claim::{self, ClaimEffect};
use lifeboat_binder::decide::volume::{self, VolumeEffect};
use lifeboat_binder::desk::{Desk, Offer};
use lifeboat_binder::lean::{PersistentVolume, PersistentVolumeClaim};
use lifeboat_binder::status::{claim_showing, volume_showing};
use lifeboat_binder::words::{ClaimWords, Migration, VolumeWords, migrated_to};
use lifeboat_binder::world::{ClaimWorld, Lookups, View, VolumeWorld};
use lifeboat_engine::{Cache, Next, ObjectKey, Why, variant};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A write was refused, or the process died.
#[derive(Debug, PartialEq)]
pub enum Fault {
    Conflict,
    Died,
}

pub struct Model {
    pub volumes: BTreeMap<ObjectKey, PersistentVolume>,
    pub claims: BTreeMap<ObjectKey, PersistentVolumeClaim>,
    pub writes: Vec<String>,
    pub events: Vec<String>,
    /// Events that only this binder has.
    pub hints: Vec<String>,
    /// Why the last pass rested.
    pub rest: Option<String>,
    /// How many more writes the process lives.
    pub lives: Option<usize>,
    pub now: Timestamp,
    pub mind: Mind,
    revision: u64,
}

/// What dies with the process.
pub struct Mind {
    pub volumes: Cache<PersistentVolume>,
    pub claims: Cache<PersistentVolumeClaim>,
    pub classes: Cache<StorageClass>,
    pub pods: Cache<Pod>,
    pub by: Lookups,
    pub desk: Desk,
    pub migration: Migration,
    told: BTreeMap<String, String>,
}

impl Default for Mind {
    fn default() -> Self {
        let (volumes, claims) = (Cache::default(), Cache::default());
        let (classes, pods) = (Cache::default(), Cache::default());
        let by = Lookups::over(&volumes, &claims, &classes, &pods);
        let desk = Desk::over(&claims);
        Self { volumes, claims, classes, pods, by, desk, migration: migrated_to, told: BTreeMap::new() }
    }
}

impl Mind {
    pub fn view(&self) -> View<'_> {
        View {
            volumes: &self.volumes,
            claims: &self.claims,
            classes: &self.classes,
            by: &self.by,
            desk: &self.desk,
            migration: self.migration,
        }
    }
}

impl Default for Model {
    fn default() -> Self {
        Self {
            volumes: BTreeMap::new(),
            claims: BTreeMap::new(),
            writes: Vec::new(),
            events: Vec::new(),
            hints: Vec::new(),
            rest: None,
            lives: None,
            now: Timestamp::from_second(1_800_000_000).unwrap(),
            mind: Mind::default(),
            revision: 100,
        }
    }
}

fn stamp(meta: &mut ObjectMeta, revision: &mut u64) {
    *revision += 1;
    meta.resource_version = Some(revision.to_string());
}

fn guards(known: Option<&ObjectMeta>, sent: &ObjectMeta) -> Result<(), Fault> {
    let known = known.ok_or(Fault::Conflict)?;
    let same = known.uid == sent.uid && known.resource_version == sent.resource_version;
    same.then_some(()).ok_or(Fault::Conflict)
}

impl Model {
    /// Puts a volume on the server, unseen.
    pub fn store_volume(&mut self, mut volume: PersistentVolume) {
        stamp(&mut volume.metadata, &mut self.revision);
        self.volumes.insert(ObjectKey::of(&volume), volume);
    }

    /// Puts a claim on the server, unseen.
    pub fn store_claim(&mut self, mut claim: PersistentVolumeClaim) {
        stamp(&mut claim.metadata, &mut self.revision);
        self.claims.insert(ObjectKey::of(&claim), claim);
    }

    pub fn with_volume(mut self, volume: PersistentVolume) -> Self {
        self.store_volume(volume);
        self.see_all();
        self
    }

    pub fn with_claim(mut self, claim: PersistentVolumeClaim) -> Self {
        self.store_claim(claim);
        self.see_all();
        self
    }

    pub fn with_class(self, class: StorageClass) -> Self {
        self.mind.classes.saw(class);
        self
    }

    pub fn with_pod(self, pod: Pod) -> Self {
        self.mind.pods.saw(pod);
        self
    }

    /// The caches catch up.
    pub fn see_all(&mut self) {
        self.mind.volumes.saw_all(picture(&self.volumes), self.revision);
        self.mind.claims.saw_all(picture(&self.claims), self.revision);
    }

    /// The process dies and another starts.
    pub fn restart(&mut self) {
        let old = std::mem::take(&mut self.mind);
        old.classes.all().iter().for_each(|class| self.mind.classes.saw((**class).clone()));
        old.pods.all().iter().for_each(|pod| self.mind.pods.saw((**pod).clone()));
        self.lives = None;
        self.see_all();
    }

    pub fn claim_world(&self, key: &ObjectKey) -> ClaimWorld {
        self.mind.view().claim(key).expect("the claim is known")
    }

    pub fn volume_world(&self, name: &str) -> VolumeWorld {
        self.mind.view().volume(name).expect("the volume is known")
    }

    fn count(&mut self, write: &str) -> Result<(), Fault> {
        match &mut self.lives {
            Some(0) => return Err(Fault::Died),
            Some(left) => *left -= 1,
            None => {}
        }
        self.writes.push(format!("update {write}"));
        Ok(())
    }

    fn put_volume(&mut self, sent: PersistentVolume, status: bool) -> Result<(), Fault> {
        let key = ObjectKey::of(&sent);
        let known = self.volumes.get(&key).cloned();
        self.count(if status { "persistentvolumes/status" } else { "persistentvolumes" })?;
        if let Err(fault) = guards(known.as_ref().map(Resource::meta), &sent.metadata) {
            self.writes.pop();
            self.look(&key);
            return Err(fault);
        }
        let known = known.expect("it is guarded");
        let mut new = if status {
            PersistentVolume { spec: known.spec, ..sent }
        } else {
            PersistentVolume { status: known.status, ..sent }
        };
        stamp(&mut new.metadata, &mut self.revision);
        self.volumes.insert(key, new.clone());
        self.mind.volumes.wrote(new);
        Ok(())
    }

    fn put_claim(&mut self, sent: PersistentVolumeClaim, status: bool) -> Result<(), Fault> {
        let key = ObjectKey::of(&sent);
        let known = self.claims.get(&key).cloned();
        self.count(if status { "persistentvolumeclaims/status" } else { "persistentvolumeclaims" })?;
        if let Err(fault) = guards(known.as_ref().map(Resource::meta), &sent.metadata) {
            self.writes.pop();
            self.look(&key);
            return Err(fault);
        }
        let known = known.expect("it is guarded");
        let mut new = if status {
            PersistentVolumeClaim { spec: known.spec, ..sent }
        } else {
            PersistentVolumeClaim { status: known.status, ..sent }
        };
        stamp(&mut new.metadata, &mut self.revision);
        self.claims.insert(key, new.clone());
        self.mind.claims.wrote(new);
        Ok(())
    }

    /// Reads one object anew, as a refused write does.
    fn look(&mut self, key: &ObjectKey) {
        match self.volumes.get(key) {
            Some(volume) => self.mind.volumes.wrote(volume.clone()),
            None => {
                if let Some(known) = self.mind.volumes.get(key) {
                    self.mind.volumes.wrote_deletion(key, known.metadata.uid.as_deref().unwrap_or_default());
                }
            }
        }
        match self.claims.get(key) {
            Some(claim) => self.mind.claims.wrote(claim.clone()),
            None => {
                if let Some(known) = self.mind.claims.get(key) {
                    self.mind.claims.wrote_deletion(key, known.metadata.uid.as_deref().unwrap_or_default());
                }
            }
        }
    }

    fn rests(&mut self, about: String, why: &impl Why) {
        self.rest = Some(variant(why));
        let news = self.mind.told.insert(about, why.reason()).as_deref() != Some(&why.reason());
        if let Some(level) = why.event().filter(|_| news) {
            self.events.push(format!("{} {} {why}", level.as_str(), why.reason()));
        }
    }

    /// One pass over a claim, as far as it goes.
    pub fn claim_pass(&mut self, key: &ObjectKey) -> Result<(), Fault> {
        for _ in 0..50 {
            let Some(world) = self.mind.view().claim(key) else { return Ok(()) };
            let decision = claim::decide(&world, self.now);
            let shows = decision.status.filter(|status| world.claim.status.as_ref() != Some(status));
            let mut done = match shows {
                Some(status) => self.put_claim(claim_showing(&world.claim, status), true),
                None => Ok(()),
            };
            match decision.next {
                Next::Do(effects) => {
                    for effect in effects.into_iter().take_while(|_| done.is_ok()).collect::<Vec<_>>() {
                        done = match effect {
                            ClaimEffect::Reserve(volume) => {
                                self.mind.desk.took(self.now);
                                self.put_volume(*volume, false)
                            }
                            ClaimEffect::ShowVolumeBound(volume) => self.put_volume(*volume, true),
                            ClaimEffect::NoteMigration(claim)
                            | ClaimEffect::Complete(claim)
                            | ClaimEffect::AssignClass(claim)
                            | ClaimEffect::AskProvisioner(claim) => self.put_claim(*claim, false),
                            ClaimEffect::TellNearMisses(sentence) => {
                                self.hints.push(sentence.clone());
                                self.mind.desk.tell(key, sentence);
                                Ok(())
                            }
                        };
                    }
                    if done == Err(Fault::Died) {
                        return done;
                    }
                }
                _ if done == Err(Fault::Died) => return done,
                _ if done.is_err() => {}
                Next::Wait { why, .. } => {
                    self.rests(format!("claim {key}"), &why);
                    return Ok(());
                }
                Next::Settled => {
                    self.mind.desk.decline(key);
                    self.mind.told.remove(&format!("claim {key}"));
                    self.rest = None;
                    return Ok(());
                }
            }
        }
        panic!("a pass over the claim {key} would not settle: {:?}", self.writes)
    }

    /// One pass over a volume, as far as it goes.
    pub fn volume_pass(&mut self, name: &str) -> Result<(), Fault> {
        for _ in 0..50 {
            let Some(world) = self.mind.view().volume(name) else { return Ok(()) };
            let decision = volume::decide(&world, self.now);
            let shows = decision.status.filter(|status| world.shown.as_ref() != Some(status));
            let mut done = match shows {
                Some(status) => self.put_volume(volume_showing(&world.volume, &status), true),
                None => Ok(()),
            };
            match decision.next {
                Next::Do(effects) => {
                    for effect in effects.into_iter().take_while(|_| done.is_ok()).collect::<Vec<_>>() {
                        done = self.volume_effect(name, effect);
                    }
                    if done == Err(Fault::Died) {
                        return done;
                    }
                }
                _ if done == Err(Fault::Died) => return done,
                _ if done.is_err() => {}
                Next::Wait { why, .. } => {
                    self.rests(format!("volume {name}"), &why);
                    return Ok(());
                }
                Next::Settled => {
                    self.mind.told.remove(&format!("volume {name}"));
                    self.rest = None;
                    return Ok(());
                }
            }
        }
        panic!("a pass over the volume {name} would not settle: {:?}", self.writes)
    }

    fn volume_effect(&mut self, name: &str, effect: VolumeEffect) -> Result<(), Fault> {
        match effect {
            VolumeEffect::Tidy(volume) | VolumeEffect::Unbind(volume) => self.put_volume(*volume, false),
            VolumeEffect::ReadClaim(key) => {
                self.look(&key);
                let seen = self.claims.get(&key).map(|claim| {
                    (claim.uid().to_owned(), claim.metadata.resource_version.clone().unwrap_or_default())
                });
                let uid = self.volume_world(name).volume.claim_uid().to_owned();
                self.mind.desk.note(name, &uid, seen);
                Ok(())
            }
            VolumeEffect::Offer { claim, at } => {
                self.mind.desk.offer(name, Offer { claim, made: at });
                Ok(())
            }
        }
    }

    /// Passes over everything until nothing is written any more.
    pub fn settle(&mut self) {
        for _ in 0..100 {
            let before = self.writes.len();
            self.see_all();
            for key in self.claims.keys().cloned().collect::<Vec<_>>() {
                self.claim_pass(&key).expect("nobody dies");
            }
            for key in self.volumes.keys().cloned().collect::<Vec<_>>() {
                self.volume_pass(&key.name).expect("nobody dies");
            }
            self.now += SignedDuration::from_secs(10);
            if self.writes.len() == before {
                return;
            }
        }
        panic!("it never settles: {:?}", self.writes);
    }
}

/// All that exists, as a feed shows it.
fn picture<K: Clone>(objects: &BTreeMap<ObjectKey, K>) -> BTreeMap<ObjectKey, Option<Arc<K>>> {
    objects.iter().map(|(key, object)| (key.clone(), Some(Arc::new(object.clone())))).collect()
}
