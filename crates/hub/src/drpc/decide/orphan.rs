//! A holder whose group and PVCs were deleted without the order to end protection, such as with their namespace. The agent made the group anew, and it
//! says that it is orphaned: its PVs and records are kept. The application would start empty there, so it is taken off; nothing else is done before a user
//! has chosen.

use crate::drpc::commission::Commission;
use crate::drpc::decide::{Effect, Peer, Report, Step};
use crate::drpc::why::Wait;
use crate::drpc::world::{Chosen, GroupWords as _, World};
use crate::words::Words as _;
use jiff::Timestamp;
use lifeboat_api::ramen::{DRState, Progression};

/// Whether the holder says that it is orphaned, at this very commission.
pub fn is_orphaned(world: &World, now: Timestamp, known: &Commission) -> bool {
    let group = world.site(&known.holder).and_then(|site| site.group_at(known.epoch, now));
    group.is_some_and(|group| group.is_primary() && group.is_orphaned())
}

/// Takes the application off an orphaned holder, and says what can be chosen. Nothing where the holder is not orphaned.
pub fn wait(world: &World, now: Timestamp, known: &Commission) -> Option<Step> {
    if !is_orphaned(world, now, known) {
        return None;
    }
    let why = Wait::Orphaned(choices(world, known));
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

fn choices(world: &World, known: &Commission) -> String {
    let (app, space, here) = (world.drpc.name(), world.drpc.space(), &known.holder);
    let other = match world.peer_of(here) {
        Some(peer) => format!("`lifeboat failover {app} --to {}` to start from the copy there, ", peer.name),
        None => String::new(),
    };
    format!(
        "The VRG {group} and its PVCs were deleted on cluster {here} without an order to end protection. Its PVs and records are kept, and the \
         application is taken off that cluster, where it would start empty. Choose: {other}`lifeboat repair {app} --restore-here` to use the kept PVs on \
         {here} again, or `kubectl delete drplacementcontrol {app} -n {space}` to end its protection. `lifeboat forget --of {group} --context {here}` shows the kept PVs \
         and gives them up.",
        group = world.group_key()
    )
}
