//! A plan and its end, in words. Pure.

use super::follow::Came;
use crate::status::rows::{at_most, span};
use jiff::Timestamp;
use lifeboat_hub::drpc::commission::Act;
use lifeboat_hub::drpc::plan::{Loss, Plan};
use lifeboat_hub::drpc::world::World;
use std::fmt::Write as _;

/// The policy's cluster that the application is not on.
pub fn other(world: &World) -> Option<String> {
    let clusters = world.policy.as_ref().map(|policy| policy.spec.dr_clusters.clone()).unwrap_or_default();
    let here = world.commission().map(|known| known.holder.clone())?;
    let mut others = clusters.into_iter().filter(|cluster| *cluster != here);
    let other = others.next()?;
    others.next().is_none().then_some(other)
}

/// A plan for people to read.
pub fn plan(plan: &Plan, now: Timestamp) -> String {
    let mut out = String::new();
    let from = plan.from.as_deref().unwrap_or("nowhere");
    let _ = writeln!(out, "{} from {from} to {}", plan.action, plan.to);
    for (number, step) in (1..).zip(&plan.steps) {
        let _ = writeln!(out, "  {number}. {step}");
    }
    let lost = match &plan.loses {
        Loss::Nothing => "nothing is lost".to_owned(),
        Loss::AtMostSeconds(seconds) => format!("at most the last {} of writes are lost", at_most(*seconds)),
        Loss::Unknown => "nobody knows what is lost: no copy was ever reported".to_owned(),
    };
    let _ = writeln!(out, "{lost}");
    if let Some(until) = plan.data_until {
        let ago = span(now.duration_since(until).as_secs().max(0));
        let _ = writeln!(
            out,
            "everything written before {} ({ago} ago) is at the peer",
            until.strftime("%F %T UTC")
        );
    }
    for blocker in &plan.blockers {
        let _ = writeln!(out, "in the way: {}: {}", blocker.reason, blocker.message);
    }
    out
}

/// How it ended, for people to read.
pub fn end(came: &Came, act: Act) -> String {
    let took = span(came.took.as_secs().cast_signed());
    if !came.done {
        let waits = came.status.blockers.first();
        let why = waits.map(|blocker| format!("; it waits: {}: {}", blocker.reason, blocker.message));
        return format!("not done after {took}{}\n", why.unwrap_or_default());
    }
    let mut out = format!("done in {took}\n");
    if let (Act::Failover, Some(loss)) = (act, &came.status.last_failover) {
        let _ = match (&loss.data_until, loss.at_most_seconds) {
            (Some(until), Some(seconds)) => {
                writeln!(
                    out,
                    "lost: at most {} of writes, those after {}",
                    at_most(seconds),
                    until.0.strftime("%F %T UTC")
                )
            }
            _ => writeln!(out, "lost: nobody knows, for no copy was ever reported"),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use lifeboat_hub::drpc::plan::PlanBlocker;

    fn a_plan(loses: Loss) -> Plan {
        Plan {
            action: "Failover".to_owned(),
            from: Some("east".to_owned()),
            to: "west".to_owned(),
            loses,
            data_until: Some("2030-01-01T00:00:00Z".parse().unwrap()),
            blockers: vec![PlanBlocker { reason: "NotThere".to_owned(), message: "start it".to_owned() }],
            steps: vec!["one".to_owned()],
        }
    }

    #[test]
    fn a_plan_says_what_is_lost_and_what_stands_in_the_way() {
        let now = "2030-01-01T00:01:30Z".parse().unwrap();
        let text = plan(&a_plan(Loss::AtMostSeconds(90)), now);
        for part in [
            "Failover from east to west",
            "  1. one",
            "at most the last 1m30s of writes are lost",
            "before 2030-01-01 00:00:00 UTC (1m30s ago) is at the peer",
            "in the way: NotThere: start it",
        ] {
            assert!(text.contains(part), "{part} is not in:\n{text}");
        }
        assert!(plan(&a_plan(Loss::Unknown), now).contains("nobody knows"));
        assert!(plan(&a_plan(Loss::Nothing), now).contains("nothing is lost"));
    }
}
