//! Maintenance modes: storage of the cluster that must be prepared before volumes are made primary without their peer. Asked for while an
//! application fails over to the cluster, and taken back when none does any more.

use super::super::manifests;
use super::super::why::Wait;
use super::super::world::{Mode, World};
use super::Plan;
use crate::views::{Seen, seen};
use crate::words::Words as _;
use crate::works;
use lifeboat_api::conditions::drcluster;
use lifeboat_api::labels;
use lifeboat_api::ramen::{
    ClusterMaintenanceMode, MMode, MModeState, MaintenanceMode, VolumeReplicationGroup,
};
use lifeboat_engine::ObjectKey;
use std::collections::{BTreeMap, BTreeSet};

/// What a group needs of the storage that it fails over to: provisioner and replication identity of every claim that asks for it. Who decides about the
/// failover and who asks the storage both go by this.
pub fn needed(group: &VolumeReplicationGroup) -> BTreeSet<Mode> {
    let claims = group.status.iter().flat_map(|status| &status.protected_pvcs);
    let modes = claims.filter_map(|claim| {
        let relation = claim.replication_id.as_ref()?;
        let asks = relation.modes.contains(&MMode::Failover) && !relation.id.is_empty();
        let provisioner = claim.csi_provisioner.clone().unwrap_or_default();
        asks.then(|| Mode { provisioner, target: relation.id.clone() })
    });
    modes.collect()
}

/// Whether a cluster's status says that a storage is ready for a failover.
pub fn is_active(modes: &[ClusterMaintenanceMode], mode: &Mode) -> bool {
    modes.iter().any(|one| {
        one.storage_provisioner == mode.provisioner
            && one.target_id == mode.target
            && one.conditions.iter().any(|condition| {
                condition.type_ == drcluster::TYPE_FAILOVER_ACTIVATED && condition.status == "True"
            })
    })
}

/// What to do about maintenance modes, and what to show of them.
pub fn judge(world: &World, plan: &mut Plan) -> Vec<ClusterMaintenanceMode> {
    let mut asked: BTreeMap<ObjectKey, Mode> = BTreeMap::new();
    for (key, work) in &world.works {
        let ours = key.namespace == world.name() && work.label(labels::MAINTENANCE_MODES).is_some();
        if let Some(mode) = works::read::<MaintenanceMode>(work).filter(|_| ours && !work.is_going()) {
            let target = mode.spec.target_id.clone().unwrap_or_else(|| mode.name().to_owned());
            asked.insert(key.clone(), Mode { provisioner: mode.spec.storage_provisioner, target });
        }
    }
    let mut wanted: BTreeSet<Mode> = world.needs.modes.clone();
    // While somebody's needs are not known, nothing that may be needed is taken away.
    if !world.needs.unknown.is_empty() {
        wanted.extend(asked.values().cloned());
        plan.waits.push(Wait::NeedsUnknown(world.needs.unknown.clone()));
    }
    for (key, mode) in asked.iter().filter(|(_, mode)| !wanted.contains(mode)) {
        // Another driver may have a relation of the same name, and the same work.
        if !wanted.iter().any(|other| other.target == mode.target) {
            plan.take_back(key);
        }
    }
    for (key, _) in world.views.iter().filter(|(_, view)| is_left_over(view, &wanted)) {
        plan.stop_asking(key);
    }
    let shown: Vec<ClusterMaintenanceMode> = wanted.iter().map(|mode| show(world, plan, mode)).collect();
    let pending: Vec<String> = wanted
        .iter()
        .filter(|mode| !is_active(&shown, mode))
        .map(|mode| format!("{} of {}", mode.target, mode.provisioner))
        .collect();
    if !pending.is_empty() {
        plan.waits.push(Wait::ModesPending(pending));
    }
    shown
}

fn is_left_over(view: &lifeboat_api::view::ManagedClusterView, wanted: &BTreeSet<Mode>) -> bool {
    let scope = view.spec.scope.as_ref().filter(|scope| scope.kind.as_deref() == Some("MaintenanceMode"));
    let name = scope.and_then(|scope| scope.name.clone());
    name.is_some_and(|name| !wanted.iter().any(|mode| mode.target == name))
}

fn show(world: &World, plan: &mut Plan, mode: &Mode) -> ClusterMaintenanceMode {
    let mut shown = ClusterMaintenanceMode {
        storage_provisioner: mode.provisioner.clone(),
        target_id: mode.target.clone(),
        state: MModeState::Unknown,
        conditions: Vec::new(),
    };
    if !world.managed.joined {
        return shown;
    }
    plan.send(world, manifests::mode_work(world.name(), mode));
    let view = plan.ask(world, manifests::mode_view(world.name(), &mode.target));
    // What a silent cluster said last is not how its storage stands.
    if world.silence(world.name()).is_some() {
        return shown;
    }
    if let Seen::Found(found) = seen::<MaintenanceMode>(view)
        && let Some(status) = &found.status
        && found.spec.storage_provisioner == mode.provisioner
        && status.observed_generation.is_none_or(|seen| Some(seen) >= found.metadata.generation)
    {
        shown.state = status.state.clone().unwrap_or(MModeState::Unknown);
        shown.conditions.clone_from(&status.conditions);
    }
    shown
}
