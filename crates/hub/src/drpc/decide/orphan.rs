//! A holder that lost the application's volumes without the order to end protection. Either its group and PVCs were deleted, such as with their namespace:
//! the agent made the group anew, and it says that it is orphaned, with its PVs and records kept. Or the whole cluster was rebuilt under its name. The
//! application would start empty there, so it is taken off; nothing else is done before a user has chosen.

use crate::drpc::commission::Commission;
use crate::drpc::decide::{Effect, Peer, Report, Step};
use crate::drpc::why::Wait;
use crate::drpc::world::{Chosen, GroupWords as _, World};
use crate::words::Words as _;
use jiff::Timestamp;
use lifeboat_api::annotations;
use lifeboat_api::ramen::{DRState, Progression};

/// What a user must choose about, where the holder has lost the application's volumes, at this very commission.
pub fn loss(world: &World, now: Timestamp, known: &Commission) -> Option<Wait> {
    if is_rebuilt(world, known) {
        return Some(Wait::Rebuilt(rebuilt(world, known)));
    }
    let group = world.site(&known.holder).and_then(|site| site.group_at(known.epoch, now));
    group
        .is_some_and(|group| group.is_primary() && group.is_orphaned())
        .then(|| Wait::Orphaned(deleted(world, known)))
}

/// Whether the holder has lost the application's volumes.
pub fn is_orphaned(world: &World, now: Timestamp, known: &Commission) -> bool {
    loss(world, now, known).is_some()
}

/// Whether the cluster that the application was placed on is another one by now.
pub fn is_rebuilt(world: &World, known: &Commission) -> bool {
    let noted = world.drpc.note(annotations::LAST_APP_DEPLOYMENT_CLUSTER_ID).filter(|id| !id.is_empty());
    let now = world.site(&known.holder).and_then(|site| site.id());
    world.drpc.note(annotations::LAST_APP_DEPLOYMENT_CLUSTER) == Some(known.holder.as_str())
        && noted.zip(now).is_some_and(|(noted, now)| noted != now)
}

/// Takes the application off such a holder, and says what can be chosen. Nothing where the holder has its volumes.
pub fn wait(world: &World, now: Timestamp, known: &Commission) -> Option<Step> {
    let why = loss(world, now, known)?;
    let mut report = Report::new(DRState::WaitForUser, Progression::Paused, Peer::FailoverAllowed);
    report.unwell = Some(why.clone());
    report.waits.push(why);
    let chosen = world.chosen();
    let kept: Vec<Chosen> = chosen.iter().filter(|one| one.retained).cloned().collect();
    match chosen == kept {
        true => Some(Step::Rest(report)),
        false => Some(Step::Do(vec![Effect::Place { chosen: kept }], Some(report))),
    }
}

fn other(world: &World, known: &Commission) -> String {
    match world.peer_of(&known.holder) {
        Some(peer) => {
            format!(
                "`lifeboat failover {} --to {}` to start from the copy there, ",
                world.drpc.name(),
                peer.name
            )
        }
        None => String::new(),
    }
}

fn deleted(world: &World, known: &Commission) -> String {
    let (app, space, here) = (world.drpc.name(), world.drpc.space(), &known.holder);
    let other = other(world, known);
    format!(
        "The VRG {group} and its PVCs were deleted on cluster {here} without an order to end protection. Its PVs and records are kept, and the \
         application is taken off that cluster, where it would start empty. Choose: {other}`lifeboat repair {app} --restore-here` to use the kept PVs on \
         {here} again, or `kubectl delete drplacementcontrol {app} -n {space}` to end its protection. `lifeboat forget --of {group} --context {here}` shows the kept PVs \
         and gives them up.",
        group = world.group_key()
    )
}

fn rebuilt(world: &World, known: &Commission) -> String {
    let (app, space, here) = (world.drpc.name(), world.drpc.space(), &known.holder);
    format!(
        "Cluster {here} was rebuilt, and the PVs of the application were lost with the former one. It is taken off that cluster, where it would start \
         empty. Choose: {}or `kubectl delete drplacementcontrol {app} -n {space}` to end its protection.",
        other(world, known)
    )
}
