//! A cluster that is to be forgotten: everything the hub put on clusters for it is taken back, the roles of the agent last. A cluster that is not
//! heard of is not waited for: what it has to remove is on record, and it does so when it returns.

use super::super::manifests;
use super::super::why::Wait;
use super::super::world::World;
use super::{ClusterDecision, Effect, Plan};
use crate::words::Words as _;
use jiff::Timestamp;
use lifeboat_api::conditions::drcluster;
use lifeboat_api::finalizers;
use lifeboat_api::work::ManifestWork;
use lifeboat_engine::Decision;
use lifeboat_engine::ObjectKey;
use lifeboat_engine::conditions::{Conditions, Holds};
use std::sync::Arc;

/// Every rule about a cluster that is to be forgotten.
pub fn decide(world: &World, now: Timestamp) -> ClusterDecision {
    if !world.cluster.has_finalizer(finalizers::DRCLUSTER) {
        return Decision::settled();
    }
    if !world.policies.is_empty() {
        let by = world.policies.iter().map(|policy| policy.name.clone()).collect();
        return waiting(world, Wait::InUse(by), drcluster::REASON_IN_USE, now);
    }
    // Roles stand until all that they are for is gone.
    let roles = |(key, _): &(&ObjectKey, &Arc<ManifestWork>)| key.name == manifests::ROLES_WORK;
    let (last, first): (Vec<_>, Vec<_>) = world.works.iter().partition(roles);
    for stage in [first, last] {
        let mut plan = Plan::default();
        for (key, _) in stage.iter().filter(|(_, work)| !work.is_going()) {
            plan.take_back(key);
        }
        if !plan.effects.is_empty() {
            return Decision::act(plan.effects);
        }
        let heard = stage.iter().filter(|(key, _)| world.silence(&key.namespace).is_none());
        let left: Vec<String> = heard.map(|(key, _)| key.to_string()).collect();
        if !left.is_empty() {
            return waiting(world, Wait::TakingBack(left), drcluster::REASON_TAKING_BACK, now);
        }
    }
    let mut plan = Plan::default();
    for key in world.views.iter().filter(|(_, view)| !view.is_going()).map(|(key, _)| key) {
        plan.stop_asking(key);
    }
    match plan.effects.is_empty() {
        false => Decision::act(plan.effects),
        true => Decision::act([Effect::Release]),
    }
}

fn waiting(world: &World, wait: Wait, reason: &str, now: Timestamp) -> ClusterDecision {
    let set = Conditions { generation: world.cluster.metadata.generation, now };
    let mut status = world.cluster.status.clone().unwrap_or_default();
    set.set(&mut status.conditions, drcluster::TYPE_DELETED, Holds::False, reason, wait.to_string());
    Decision::wait(wait).showing(status)
}
