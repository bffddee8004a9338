//! Every rule about a cluster. Pure. Fence, maintenance modes and validation are judged side by side: none waits for another.

pub mod fence;
pub mod modes;
pub mod remove;
pub mod validate;

use super::why::Wait;
use super::world::World;
use crate::secrets::{Carriage, carriage};
use crate::views;
use crate::words::Words as _;
use crate::works;
use jiff::Timestamp;
use lifeboat_api::conditions::drcluster;
use lifeboat_api::ramen::DRClusterStatus;
use lifeboat_api::view::ManagedClusterView;
use lifeboat_api::work::ManifestWork;
use lifeboat_api::{finalizers, labels};
use lifeboat_engine::conditions::{Conditions, Holds, find};
use lifeboat_engine::{Decision, ObjectKey};
use serde::Serialize;

/// What can be done. No effect carries a secret.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Effect {
    /// Puts our finalizer and the label for the hub's own backup on.
    Adopt,
    /// Takes the finalizer off.
    Release,
    /// Puts a work on the hub, or changes it.
    Send(Box<ManifestWork>),
    /// Does the same with the keys to stores, which are read then.
    SendStores {
        /// Which versions of which.
        versions: String,
    },
    /// Takes a work back.
    TakeBack {
        /// The cluster it is for.
        cluster: String,
        /// Its name.
        name: String,
    },
    /// Looks at an object of a cluster from now on.
    Ask(Box<ManagedClusterView>),
    /// Looks no more.
    StopAsking {
        /// The cluster.
        cluster: String,
        /// The view.
        name: String,
    },
    /// Has the store tried.
    Try {
        /// Which store, with which keys.
        question: String,
    },
}

/// What is decided about a cluster.
pub type ClusterDecision = Decision<Effect, Wait, DRClusterStatus>;

/// What came out so far.
#[derive(Debug, Default)]
pub struct Plan {
    /// What to do.
    pub effects: Vec<Effect>,
    /// What is waited for, the most important first.
    pub waits: Vec<Wait>,
    /// When to look again at the latest.
    pub until: Option<Timestamp>,
}

impl Plan {
    /// Sees to it that a work says this; gives how far it has come.
    pub fn send(&mut self, world: &World, wanted: ManifestWork) -> Carriage {
        let known = world.works.get(&ObjectKey::of(&wanted)).map(|known| &**known);
        match known {
            Some(known) if known.is_going() => Carriage::Going,
            Some(known) if works::says(known, &wanted) => carriage(Some(known)),
            _ => {
                self.effects.push(Effect::Send(Box::new(wanted)));
                Carriage::Missing
            }
        }
    }

    /// Sees to it that something is looked at; gives the view as it stands.
    pub fn ask<'a>(
        &mut self,
        world: &'a World,
        wanted: ManagedClusterView,
    ) -> Option<&'a ManagedClusterView> {
        let known = world.views.get(&ObjectKey::of(&wanted)).map(|known| &**known);
        match known {
            Some(known) if views::asks(known, &wanted) => Some(known),
            _ => {
                self.effects.push(Effect::Ask(Box::new(wanted)));
                None
            }
        }
    }

    /// Takes a work back.
    pub fn take_back(&mut self, key: &ObjectKey) {
        self.effects.push(Effect::TakeBack { cluster: key.namespace.clone(), name: key.name.clone() });
    }

    /// Looks at something no more.
    pub fn stop_asking(&mut self, key: &ObjectKey) {
        self.effects.push(Effect::StopAsking { cluster: key.namespace.clone(), name: key.name.clone() });
    }

    /// Looks again at this time at the latest.
    pub fn look_at(&mut self, at: Timestamp) {
        self.until = Some(self.until.map_or(at, |until| until.min(at)));
    }

    fn decision(self) -> ClusterDecision {
        let wait = self.waits.into_iter().next();
        match (self.effects.is_empty(), wait, self.until) {
            (false, ..) => Decision::act(self.effects),
            (true, Some(wait), Some(until)) => Decision::wait_until(wait, until),
            (true, Some(wait), None) => Decision::wait(wait),
            (true, None, _) => Decision::settled(),
        }
    }
}

/// Every rule.
pub fn decide(world: &World, now: Timestamp) -> ClusterDecision {
    let cluster = &world.cluster;
    if cluster.is_going() {
        return remove::decide(world, now);
    }
    let set = Conditions { generation: cluster.metadata.generation, now };
    let mut status = cluster.status.clone().unwrap_or_default();
    let held = cluster.has_finalizer(finalizers::DRCLUSTER);
    if !held || cluster.label(labels::OCM_BACKUP) != Some(labels::OCM_BACKUP_VALUE) {
        let decision = Decision::act([Effect::Adopt]);
        let Some(trouble) = &world.trouble else { return decision };
        let (reason, said) = (drcluster::REASON_FINALIZER_ADD_FAILED, trouble.message.clone());
        set.set(&mut status.conditions, drcluster::TYPE_VALIDATED, Holds::False, reason, said);
        return decision.showing(status);
    }
    let mut plan = Plan::default();
    let fence = fence::judge(world, &mut plan);
    status.maintenance_modes = modes::judge(world, &mut plan);
    let valid = validate::judge(world, now, &mut plan, &mut status, fence.fenced.0 == Holds::True);
    status.phase = Some(fence.phase);
    status.conditions.retain(|condition| condition.type_ != drcluster::TYPE_DELETED);
    match valid {
        Ok(said) => {
            set.set(
                &mut status.conditions,
                drcluster::TYPE_VALIDATED,
                Holds::True,
                drcluster::REASON_SUCCEEDED,
                said,
            );
        }
        // A new process tries the store again; until it knows better, what was found out before holds.
        Err(Wait::StoreBeingTried(_)) if was_valid(&status, cluster.metadata.generation) => {}
        Err(wait) => {
            let first = matches!(wait, Wait::StoreBeingTried(_));
            let holds = if first { Holds::Unknown } else { Holds::False };
            set.set(
                &mut status.conditions,
                drcluster::TYPE_VALIDATED,
                holds,
                wait.condition(),
                wait.to_string(),
            );
        }
    }
    for (type_, (holds, reason, said)) in
        [(drcluster::TYPE_FENCED, fence.fenced), (drcluster::TYPE_CLEAN, fence.clean)]
    {
        set.set(&mut status.conditions, type_, holds, reason, said);
    }
    plan.decision().showing(status)
}

fn was_valid(status: &DRClusterStatus, generation: Option<i64>) -> bool {
    find(&status.conditions, drcluster::TYPE_VALIDATED)
        .is_some_and(|shown| shown.status == "True" && shown.observed_generation == generation)
}
