//! Binding is a bijection by uid, whatever people do meanwhile, however far the caches lag and wherever the process dies.

use crate::model::{Fault, Model};
use crate::things::{ClaimThings, VolumeThings, named_claim, volume};
use lifeboat_binder::words::{ClaimWords, VolumeWords};
use lifeboat_engine::ObjectKey;
use proptest::prelude::*;
use std::collections::BTreeMap;

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
        6 => (n.clone(), lives()).prop_map(|(n, lives)| Step::ClaimPass { n, lives }),
        6 => (n, lives()).prop_map(|(n, lives)| Step::VolumePass { n, lives }),
        2 => Just(Step::See),
    ]
}

struct World {
    model: Model,
    born: usize,
}

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
            Step::DeleteVolume(n) => drop(self.model.volumes.remove(&Self::volume_key(n))),
            Step::Free(n) => {
                if let Some(mut volume) = self.model.volumes.remove(&Self::volume_key(n)) {
                    volume.spec.as_mut().unwrap().claim_ref = None;
                    self.model.store_volume(volume);
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

    /// No two claims that are shown as bound have the same volume.
    fn no_volume_has_two_claims(&self) -> Result<(), TestCaseError> {
        let mut owners: BTreeMap<String, ObjectKey> = BTreeMap::new();
        for claim in self.model.claims.values() {
            let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
            let Some(volume) = self.model.volumes.get(&ObjectKey::cluster_wide(claim.volume_name())) else {
                continue;
            };
            let owns = volume.claim_ref().and_then(|reference| reference.uid.as_deref()) == Some(claim.uid());
            if phase == Some("Bound") && owns {
                let before = owners.insert(claim.volume_name().to_owned(), claim.key());
                prop_assert!(before.is_none(), "{before:?} and {} have {}", claim.key(), claim.volume_name());
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
        let mut world = World { model: Model::default(), born: 0 };
        for step in &steps {
            world.go(step);
            world.no_volume_has_two_claims()?;
        }
        world.model.settle();
        world.no_volume_has_two_claims()?;
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
