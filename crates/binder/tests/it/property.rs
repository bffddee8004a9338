//! Binding is a bijection by uid, whatever people do meanwhile, however far the caches lag and wherever the process dies.

use crate::model::{Fault, Model};
use crate::things::{ClaimThings, VolumeThings, named_claim, volume};
use lifeboat_binder::lean::{PersistentVolume, PersistentVolumeClaim};
use lifeboat_binder::words::{BOUND_BY_CONTROLLER, ClaimWords, VolumeWords, annotation};
use lifeboat_engine::ObjectKey;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// What happens next.
#[derive(Debug, Clone)]
enum Step {
    CreateClaim {
        n: usize,
        size: u8,
        naming: Option<usize>,
    },
    DeleteClaim(usize),
    CreateVolume {
        n: usize,
        size: u8,
        reserved: Option<usize>,
    },
    DeleteVolume(usize),
    /// A person takes the claim off a volume.
    Free(usize),
    /// A person, or another binder, names a volume on a claim that has none.
    Name {
        claim: usize,
        volume: usize,
    },
    ClaimPass {
        n: usize,
        lives: Option<usize>,
    },
    VolumePass {
        n: usize,
        lives: Option<usize>,
    },
    See,
}

const NAMES: usize = 3;

fn step() -> impl Strategy<Value = Step> {
    let n = 0..NAMES;
    let lives = || proptest::option::of(0usize..5);
    prop_oneof![
        2 => (n.clone(), 1u8..4, proptest::option::weighted(0.2, n.clone())).prop_map(|(n, size, naming)| Step::CreateClaim { n, size, naming }),
        1 => n.clone().prop_map(Step::DeleteClaim),
        2 => (n.clone(), 1u8..4, proptest::option::weighted(0.2, n.clone())).prop_map(|(n, size, reserved)| Step::CreateVolume { n, size, reserved }),
        1 => n.clone().prop_map(Step::DeleteVolume),
        1 => n.clone().prop_map(Step::Free),
        1 => (n.clone(), n.clone()).prop_map(|(claim, volume)| Step::Name { claim, volume }),
        6 => (n.clone(), lives()).prop_map(|(n, lives)| Step::ClaimPass { n, lives }),
        6 => (n, lives()).prop_map(|(n, lives)| Step::VolumePass { n, lives }),
        2 => Just(Step::See),
    ]
}

struct World {
    model: Model,
    born: usize,
    /// Volumes that a person has deleted or freed: what becomes of their claims is the person's doing.
    touched: BTreeSet<String>,
}

/// Who has which volume, by uid.
type Owners = BTreeMap<ObjectKey, String>;

impl World {
    fn claim_key(n: usize) -> ObjectKey {
        ObjectKey::new("ns", format!("c{n}"))
    }

    fn volume_key(n: usize) -> ObjectKey {
        ObjectKey::cluster_wide(format!("v{n}"))
    }

    fn uid(&mut self) -> Option<String> {
        self.born += 1;
        Some(format!("uid-{}", self.born))
    }

    fn owners(&self) -> Owners {
        let owner = |volume: &PersistentVolume| volume.claim_ref()?.uid.clone();
        self.model.volumes.iter().filter_map(|(key, volume)| Some((key.clone(), owner(volume)?))).collect()
    }

    /// Whether a living claim names another volume than this one, which is free for others then.
    fn has_gone_elsewhere(&self, uid: &str, volume: &str) -> bool {
        let elsewhere = |claim: &PersistentVolumeClaim| {
            claim.uid() == uid && !claim.volume_name().is_empty() && claim.volume_name() != volume
        };
        self.model.claims.values().any(elsewhere)
    }

    /// A volume never goes from one claim to another by the binder's hand, living or dead, and is never taken off a claim that
    /// names it.
    fn nobody_was_robbed(&self, before: &Owners) -> Result<(), TestCaseError> {
        let now = self.owners();
        for (key, uid) in before {
            let names_it =
                |claim: &&PersistentVolumeClaim| claim.uid() == uid && claim.volume_name() == key.name;
            match now.get(key) {
                Some(other) => prop_assert_eq!(uid, other, "{} has changed hands", key),
                None => {
                    let robbed = self.model.claims.values().find(names_it);
                    prop_assert!(robbed.is_none(), "{key} was taken off {robbed:?}");
                }
            }
        }
        Ok(())
    }

    fn go(&mut self, step: &Step) {
        match *step {
            Step::CreateClaim { n, size, naming } => {
                let mut claim = named_claim(&format!("c{n}")).sized(&format!("{size}Gi"));
                claim.metadata.uid = self.uid();
                if let Some(volume) = naming {
                    claim = claim.naming(&format!("v{volume}"));
                }
                if !self.model.claims.contains_key(&Self::claim_key(n)) {
                    self.model.store_claim(claim);
                }
            }
            Step::CreateVolume { n, size, reserved } => {
                let mut volume = volume(&format!("v{n}")).sized(&format!("{size}Gi")).in_phase("Pending");
                volume.metadata.uid = self.uid();
                if let Some(claim) = reserved {
                    volume = volume.for_claim(&format!("c{claim}"), "");
                }
                if !self.model.volumes.contains_key(&Self::volume_key(n)) {
                    self.model.store_volume(volume);
                }
            }
            Step::DeleteClaim(n) => drop(self.model.claims.remove(&Self::claim_key(n))),
            Step::DeleteVolume(n) => {
                self.touched.insert(format!("v{n}"));
                self.model.volumes.remove(&Self::volume_key(n));
            }
            Step::Free(n) => {
                self.touched.insert(format!("v{n}"));
                if let Some(mut volume) = self.model.volumes.remove(&Self::volume_key(n)) {
                    volume.spec.as_mut().unwrap().claim_ref = None;
                    self.model.store_volume(volume);
                }
            }
            Step::Name { claim, volume } => {
                let key = Self::claim_key(claim);
                if let Some(claim) = self.model.claims.get(&key).filter(|claim| claim.waits()).cloned() {
                    self.model.store_claim(claim.naming(&format!("v{volume}")));
                }
            }
            Step::ClaimPass { n, lives } => {
                self.model.lives = lives;
                let done = self.model.claim_pass(&Self::claim_key(n));
                self.after(done);
            }
            Step::VolumePass { n, lives } => {
                self.model.lives = lives;
                let done = self.model.volume_pass(&format!("v{n}"));
                self.after(done);
            }
            Step::See => self.model.see_all(),
        }
    }

    fn after(&mut self, done: Result<(), Fault>) {
        self.model.lives = None;
        if done == Err(Fault::Died) {
            self.model.restart();
        }
    }

    /// No two claims that are shown as bound name the same volume, no claim is lost, and who chose for himself got no less than
    /// he asked for, unless a person had a hand in it.
    fn everybody_has_his_own(&self) -> Result<(), TestCaseError> {
        let mut owners: BTreeMap<&str, ObjectKey> = BTreeMap::new();
        for claim in self.model.claims.values() {
            let (name, phase) = (claim.volume_name(), claim.status.as_ref().and_then(|s| s.phase.as_deref()));
            if self.touched.contains(name) {
                continue;
            }
            prop_assert!(phase != Some("Lost"), "{} has lost {name}, which nobody touched", claim.key());
            if phase != Some("Bound") {
                continue;
            }
            let before = owners.insert(name, claim.key());
            prop_assert!(before.is_none(), "{before:?} and {} have {name}", claim.key());
            let volume = &self.model.volumes[&ObjectKey::cluster_wide(name)];
            if annotation(&volume.metadata, BOUND_BY_CONTROLLER).is_some()
                && annotation(&claim.metadata, BOUND_BY_CONTROLLER).is_some()
            {
                prop_assert!(volume.capacity() >= claim.request(), "{name} is too small for {}", claim.key());
            }
        }
        Ok(())
    }

    /// In the end whoever is bound has a volume that knows it by uid, and the other way round.
    fn is_a_bijection(&self) -> Result<(), TestCaseError> {
        for claim in self.model.claims.values() {
            let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
            if phase == Some("Bound") {
                let volume = self.model.volumes.get(&ObjectKey::cluster_wide(claim.volume_name()));
                let uid =
                    volume.and_then(|volume| volume.claim_ref()).and_then(|reference| reference.uid.clone());
                prop_assert_eq!(uid.as_deref(), Some(claim.uid()), "the volume of {}", claim.key());
            }
        }
        for volume in self.model.volumes.values().filter(|volume| volume.phase() == "Bound") {
            let claim = volume.claim_key().and_then(|key| self.model.claims.get(&key));
            let claim = claim.filter(|claim| claim.volume_name() == volume.name());
            prop_assert!(claim.is_some(), "{} is bound to nobody", volume.name());
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn binding_is_a_bijection_by_uid(steps in proptest::collection::vec(step(), 1..60)) {
        let mut world = World { model: Model::default(), born: 0, touched: BTreeSet::new() };
        for step in &steps {
            let before = world.owners();
            world.go(step);
            if matches!(step, Step::ClaimPass { .. } | Step::VolumePass { .. }) {
                world.nobody_was_robbed(&before)?;
            }
            world.everybody_has_his_own()?;
        }
        let mut before = world.owners();
        before.retain(|volume, uid| !world.has_gone_elsewhere(uid, &volume.name));
        world.model.settle();
        world.nobody_was_robbed(&before)?;
        world.everybody_has_his_own()?;
        world.is_a_bijection()?;
        // A person's mistakes apart, a claim waits only if nothing free fits.
        for claim in world.model.claims.values().filter(|claim| claim.volume_name().is_empty()) {
            for volume in world.model.volumes.values() {
                let free = volume.claim_ref().is_none();
                prop_assert!(!free || volume.capacity() < claim.request(), "{} waits beside {}", claim.key(), volume.name());
            }
        }
    }
}
