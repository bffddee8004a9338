//! The first deployment: what must hold before the first epoch is given out.

use crate::drpc::commission::{Act, Commission};
use crate::drpc::decide::{Peer, Report, Step, commission, next_epoch, wish};
use crate::drpc::why::Wait;
use crate::drpc::world::World;
use crate::views::Reach;
use jiff::Timestamp;
use lifeboat_api::ramen::{DRState, Progression};

/// Begins the first deployment.
pub fn begin(world: &World, now: Timestamp) -> Step {
    let refused = |why: Wait| {
        Step::Rest(Report::new(DRState::Initiating, Progression::CreatingMW, Peer::Initiating).waiting(why))
    };
    let Some(wish) = wish(world) else {
        return refused(Wait::Invalid("preferredCluster is not set".into()));
    };
    if wish.act != Act::Deploy {
        let why = format!(
            "the application was never deployed, so there is nothing to {}: remove the action",
            verb(wish.act)
        );
        return refused(Wait::Invalid(why));
    }
    if let Some(other) = world.chosen().into_iter().find(|chosen| chosen.cluster != wish.target) {
        return refused(Wait::Invalid(format!(
            "the application runs on {} by its placement, and preferredCluster is {}: deploy it where it runs, then relocate it",
            other.cluster, wish.target
        )));
    }
    match world.site(&wish.target).map(|site| site.reach(now)) {
        Some(Reach::Fresh) => {}
        Some(Reach::Silent(why)) => return refused(Wait::ClusterSilent(why)),
        None => return refused(Wait::ClusterSilent(format!("cluster {} is not known", wish.target))),
    }
    let given = Commission { epoch: next_epoch(world), holder: wish.target, act: Act::Deploy };
    let report = Report::new(DRState::Deploying, Progression::CreatingMW, Peer::Initiating);
    Step::Do(vec![commission(world, given)], Some(report))
}

fn verb(act: Act) -> &'static str {
    match act {
        Act::Deploy => "deploy",
        Act::Failover => "fail over",
        Act::Relocate => "relocate",
    }
}
