//! A plan and its end, in words. Pure.

use super::follow::{Came, Pods};
use crate::status::rows::{at_most, span};
use jiff::Timestamp;
use lifeboat_hub::drpc::commission::Act;
use lifeboat_hub::drpc::decide::Wish;
use lifeboat_hub::drpc::plan::{Loss, Plan};
use lifeboat_hub::drpc::world::World;
use std::fmt::Write as _;
use std::time::Duration;

/// The policy's cluster that the application is not on.
pub fn other(world: &World) -> Option<String> {
    let clusters = world.policy.as_ref().map(|policy| policy.spec.dr_clusters.clone()).unwrap_or_default();
    let here = world.commission().map(|known| known.holder.clone())?;
    let mut others = clusters.into_iter().filter(|cluster| *cluster != here);
    let other = others.next()?;
    others.next().is_none().then_some(other)
}

/// Whether the application could fail over to the other cluster now, by the hub's own rules.
pub fn could_fail_over(world: &World, now: Timestamp) -> Result<(), String> {
    let Some(target) = other(world) else {
        return Err("it was not deployed yet".to_owned());
    };
    let wish = Wish { act: Act::Failover, target };
    let plan = lifeboat_hub::drpc::plan(world, &wish, now);
    match plan.blockers.first() {
        Some(blocker) => Err(format!("{}: {}", blocker.reason, blocker.message)),
        None => Ok(()),
    }
}

/// A plan for people to read.
pub fn plan(plan: &Plan, now: Timestamp) -> String {
    let mut out = String::new();
    let from = plan.from.as_deref().unwrap_or("nowhere");
    let _ = writeln!(out, "{} from {from} to {}", plan.action, plan.to);
    let blockers = plan.blockers.iter().map(|one| format!("in the way: {}: {}\n", one.reason, one.message));
    let blockers: String = blockers.collect();
    if plan.steps.is_empty() {
        return out + &blockers;
    }
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
    out + &blockers
}

/// A duration as kubectl takes it: `90s`, `10m`, `1h`; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let bare = text.parse::<u64>().map(Duration::from_secs);
    let span = || text.parse::<jiff::SignedDuration>().ok().and_then(|span| Duration::try_from(span).ok());
    bare.ok().or_else(span).ok_or_else(|| "write it as 90s, 10m or 1h".to_owned())
}

/// How it ended, for people to read.
pub fn end(came: &Came, act: Act) -> String {
    let took = span(came.took.as_secs().cast_signed());
    if came.deleted {
        return "the DRPlacementControl was deleted: its protection ends, and nothing is moved any more\n"
            .to_owned();
    }
    if !came.moved {
        let waits = came.status.blockers.first();
        let why = waits.map(|blocker| format!("; it waits: {}: {}", blocker.reason, blocker.message));
        return format!(
            "not done after {took}{}\nthe hub goes on with it; `lifeboat status` tells how far it is\n",
            why.unwrap_or_default()
        );
    }
    let mut out = match &came.pods {
        Pods::Ready => format!("done in {took}: the application's pods are ready\n"),
        Pods::NotTold => format!("done in {took}\n"),
        Pods::Missing(why) if !came.had_pods => {
            format!("done in {took}. {why} None did before the move either.\n")
        }
        Pods::Missing(why) | Pods::NotReady(why) => format!(
            "moved after {took}, but the application does not run yet. {why}\n`kubectl get pods` on that cluster tells more; the hub has nothing left to do\n"
        ),
    };
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
    fn durations_are_read_as_kubectl_reads_them() {
        let check = |text: &str, seconds: Option<u64>| {
            assert_eq!(duration(text).ok(), seconds.map(Duration::from_secs), "{text}");
        };
        check("90", Some(90));
        check("90s", Some(90));
        check("10m", Some(600));
        check("1h30m", Some(5_400));
        check("-1s", None);
        check("soon", None);
        check("", None);
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
