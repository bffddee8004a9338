//! A plan and its end, in words. Pure.

use super::follow::{Came, Pods};
use crate::status::rows::{at_most, span};
use jiff::Timestamp;
use lifeboat_api::ramen::{DRPlacementControlStatus, DRState, FailoverLoss};
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

/// Why there is no cluster to go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Nowhere {
    /// The cluster that was named is none of the policy's.
    Unknown(String),
    /// None was named, and there is no other one yet.
    NotYet(String),
}

/// The cluster to go to: the one that is named, where the policy has it, or the policy's other one.
pub fn target(world: &World, named: Option<&str>) -> Result<String, Nowhere> {
    let members = world.members();
    match named {
        Some(named) => known(named, &members).map(|()| named.to_owned()).map_err(Nowhere::Unknown),
        None => other(world).ok_or_else(|| {
            Nowhere::NotYet(match world.commission() {
                None => "the application was not deployed yet, so there is nothing to move; `lifeboat status` tells what it waits for".to_owned(),
                Some(_) => "the policy does not say which cluster is the other one; name it with --to".to_owned(),
            })
        }),
    }
}

/// Whether a cluster is one of a policy's. A policy that was not read has none, and whatever is asked for then waits for it.
pub fn known(cluster: &str, members: &[&str]) -> Result<(), String> {
    if members.is_empty() || members.contains(&cluster) {
        return Ok(());
    }
    Err(format!("cluster {cluster} is none of the policy's clusters: those are {}", members.join(" and ")))
}

/// What is asked before anything is done.
pub fn question(plan: &Plan, application: &str) -> String {
    let from = plan.from.as_ref().filter(|from| **from != plan.to);
    let from = from.map(|from| format!(" from cluster {from}")).unwrap_or_default();
    format!("{} {application}{from} to cluster {}?", plan.action, plan.to)
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
    // One that stays where nothing runs moves nothing, and what is to become of its data is told by who moves it.
    if plan.from.as_deref() == Some(plan.to.as_str()) && !plan.blockers.is_empty() {
        return out + &blockers;
    }
    let lost = match &plan.loses {
        Loss::Nothing => "nothing is lost".to_owned(),
        Loss::AtMostSeconds(seconds) => format!("at most the last {} of writes are lost", at_most(*seconds)),
        Loss::Unknown => "nobody knows what is lost: no copy was ever reported".to_owned(),
    };
    let _ = writeln!(out, "{lost}");
    if let Some(until) = plan.data_until {
        let ago = span(now.duration_since(until).as_secs().max(0));
        let _ = writeln!(out, "everything written before {} ({ago} ago) is at the peer", clock(until));
    }
    out + &blockers
}

/// The longest time that can be asked for: clocks cannot count on without end.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3_600);

/// A duration as kubectl takes it: `90s`, `10m`, `1h30m`; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let bare = text.parse::<u64>().map(Duration::from_secs);
    let span = || text.parse::<jiff::SignedDuration>().ok().and_then(|span| Duration::try_from(span).ok());
    let read = bare.ok().or_else(span).filter(|read| *read <= LONGEST);
    read.ok_or_else(|| "write it as 90s, 10m or 1h30m, and at most a year".to_owned())
}

/// What became of an action whose object is gone.
pub const DELETED: &str =
    "the DRPlacementControl was deleted: its protection ends, and nothing is moved any more\n";

/// How it ended, for people to read.
pub fn end(came: &Came, act: Act) -> String {
    let took = span(came.took.as_secs().cast_signed());
    if came.deleted {
        return DELETED.to_owned();
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
        let lost = match (&loss.data_until, loss.at_most_seconds) {
            (Some(until), Some(seconds)) => {
                format!("at most {} of writes, those after {}", at_most(seconds), clock(until.0))
            }
            _ => "nobody knows, for no copy was ever reported".to_owned(),
        };
        let _ = if is_older(&came.before, loss) {
            let when =
                loss.time.as_ref().map_or("earlier".to_owned(), |time| format!("of {}", clock(time.0)));
            writeln!(out, "nothing more was lost; the failover {when} lost: {lost}")
        } else {
            writeln!(out, "lost: {lost}")
        };
    }
    out
}

/// Whether a loss was stated by a failover that had come to its end before this one was asked for.
fn is_older(before: &DRPlacementControlStatus, loss: &FailoverLoss) -> bool {
    let rested = matches!(before.phase, Some(DRState::Deployed | DRState::FailedOver | DRState::Relocated));
    rested && before.last_failover.as_ref().is_some_and(|known| known.time == loss.time)
}

fn clock(time: Timestamp) -> String {
    time.strftime("%F %T UTC").to_string()
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
        check("5m", Some(300));
        check("10m", Some(600));
        check("1h30m", Some(5_400));
        check("0", Some(0));
        check("8760h", Some(365 * 24 * 3_600));
        check("8761h", None);
        check("18446744073709551615", None);
        check("99999999999999999999h", None);
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

    #[test]
    fn who_stays_on_a_dead_cluster_is_not_told_that_nothing_is_lost() {
        let now = "2030-01-01T00:01:30Z".parse().unwrap();
        let stays = Plan { from: Some("west".to_owned()), ..a_plan(Loss::Nothing) };
        let text = plan(&stays, now);
        assert!(text.contains("in the way: NotThere: start it"), "{text}");
        assert!(!text.contains("lost") && !text.contains("at the peer"), "{text}");
        let text = plan(&Plan { blockers: Vec::new(), ..stays }, now);
        assert!(text.contains("nothing is lost"), "{text}");
    }

    #[test]
    fn the_question_names_the_application_and_the_clusters() {
        let asked = a_plan(Loss::Nothing);
        assert_eq!(question(&asked, "shop/web"), "Failover shop/web from cluster east to cluster west?");
        let new = Plan { from: None, ..asked };
        assert_eq!(question(&new, "shop/web"), "Failover shop/web to cluster west?");
        let stays = Plan { from: Some("west".to_owned()), ..new };
        assert_eq!(question(&stays, "shop/web"), "Failover shop/web to cluster west?");
    }

    #[test]
    fn a_cluster_that_the_policy_does_not_have_is_refused_with_those_that_it_has() {
        let no = "cluster mars is none of the policy's clusters: those are east and west".to_owned();
        assert_eq!(known("mars", &["east", "west"]), Err(no));
        assert_eq!(known("west", &["east", "west"]), Ok(()));
        assert_eq!(known("mars", &[]), Ok(()), "the policy was not read, and the plan says so");
    }

    #[test]
    fn a_loss_that_was_stated_before_is_told_as_of_its_time() {
        let status = |phase: &str, began: Option<&str>| -> DRPlacementControlStatus {
            let lost = began.map(|began| {
                serde_json::json!({"time": began, "dataUntil": "2030-01-01T00:00:00Z", "atMostSeconds": 75})
            });
            serde_json::from_value(serde_json::json!({"phase": phase, "lastFailover": lost})).unwrap()
        };
        let check = |rule: &str, before: DRPlacementControlStatus, part: &str| {
            let came = Came {
                moved: true,
                pods: Pods::Ready,
                had_pods: true,
                deleted: false,
                before,
                status: status("FailedOver", Some("2030-01-01T00:01:00Z")),
                took: Duration::from_secs(3),
            };
            let text = end(&came, Act::Failover);
            assert!(text.contains(part), "{rule}: {part} is not in:\n{text}");
        };
        let now = "\nlost: at most 1m15s of writes, those after 2030-01-01 00:00:00 UTC";
        check("the first", status("Deployed", None), now);
        check("another one before", status("Relocated", Some("2029-12-24T00:00:00Z")), now);
        check("asked for again on its way", status("FailingOver", Some("2030-01-01T00:01:00Z")), now);
        let old = "nothing more was lost; the failover of 2030-01-01 00:01:00 UTC lost: at most 1m15s";
        check("asked for again when it was done", status("FailedOver", Some("2030-01-01T00:01:00Z")), old);
        check("relocated since", status("Relocated", Some("2030-01-01T00:01:00Z")), old);
    }
}
