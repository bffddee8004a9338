//! How applications are doing, told from what the hub wrote down: one line each. Pure.

use crate::plan::follow::{Pods, pods};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use lifeboat_api::Interval;
use lifeboat_api::annotations::{EPOCH_HOLDER, LAST_APP_DEPLOYMENT_CLUSTER};
use lifeboat_api::conditions::drpc::{TYPE_AVAILABLE, TYPE_PEER_READY, TYPE_PROTECTED};
use lifeboat_api::ramen::{DRPlacementControl, DRPolicy, DRState};
use serde::Serialize;

/// One application.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Namespace and name of its DRPlacementControl.
    pub application: String,
    /// The cluster that it runs on.
    pub cluster: Option<String>,
    /// What is being done with it, or was last.
    pub phase: String,
    /// Whether its data is safe at the peer.
    pub protected: Protected,
    /// Seconds since the last good copy was cut.
    pub lag_seconds: Option<i64>,
    /// Seconds between two copies that the policy asks for.
    pub target_seconds: Option<i64>,
    /// When the last good copy was cut.
    pub last_copy: Option<Timestamp>,
    /// Whether a failover would work now, whatever became of the cluster that it runs on.
    pub ready: bool,
    /// What is wrong, and what keeps it from failing over.
    pub why: Option<String>,
}

/// Whether data is safe at the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Protected {
    /// It is, and not older than two intervals.
    Yes,
    /// It is, but the last copy is older than two intervals.
    Late,
    /// It is not.
    No,
}

impl Row {
    /// Whether nobody has to look at it.
    pub fn is_fine(&self) -> bool {
        self.ready && self.protected == Protected::Yes && self.why.is_none()
    }
}

/// What is to be told of an application; `failover` is the hub's own judgement whether it could fail over now, or what stands in the way.
pub fn row(
    drpc: &DRPlacementControl,
    policy: Option<&DRPolicy>,
    failover: &Result<(), String>,
    now: Timestamp,
) -> Row {
    let meta = &drpc.metadata;
    let status = drpc.status.clone().unwrap_or_default();
    let note = |key: &str| meta.annotations.as_ref().and_then(|notes| notes.get(key)).cloned();
    let last_copy = status.last_group_sync_time.as_ref().map(|time| time.0);
    let lag_seconds = last_copy.map(|time| now.duration_since(time).as_secs().max(0));
    let target_seconds =
        policy.and_then(|policy| Interval::of(&policy.spec.scheduling_interval)).map(Interval::seconds);
    let late = lag_seconds.zip(target_seconds).is_some_and(|(lag, target)| target > 0 && lag > 2 * target);
    let holds = |type_: &str| {
        let one = status.conditions.iter().find(|one| one.type_ == type_);
        one.is_some_and(|one| one.status == "True" && one.observed_generation >= meta.generation)
    };
    let safe = holds(TYPE_PROTECTED) && last_copy.is_some();
    let protected = match (safe, late) {
        (false, _) => Protected::No,
        (true, true) => Protected::Late,
        (true, false) => Protected::Yes,
    };
    let wrong = wrong(drpc, &status.conditions, last_copy.is_some());
    let ready = failover.is_ok() && last_copy.is_some();
    Row {
        application: format!(
            "{}/{}",
            meta.namespace.as_deref().unwrap_or_default(),
            meta.name.as_deref().unwrap_or_default()
        ),
        cluster: note(EPOCH_HOLDER).or_else(|| note(LAST_APP_DEPLOYMENT_CLUSTER)),
        phase: status.phase.as_ref().map_or("new", DRState::as_str).to_owned(),
        protected,
        lag_seconds,
        target_seconds,
        last_copy,
        ready,
        why: wrong.or_else(|| failover.clone().err()).or_else(|| {
            late.then(|| {
                "the last copy is older than two intervals; see what the sender waits for".to_owned()
            })
        }),
    }
}

/// What is not as it should be, the gravest first.
fn wrong(drpc: &DRPlacementControl, conditions: &[Condition], copied: bool) -> Option<String> {
    let status = drpc.status.as_ref();
    if drpc.metadata.deletion_timestamp.is_some() {
        return Some("its protection is being removed".to_owned());
    }
    let Some(status) = status else { return Some("the hub has not observed it yet".to_owned()) };
    let blocker = status.blockers.first().map(|blocker| format!("{}: {}", blocker.reason, blocker.message));
    if status.observed_generation < drpc.metadata.generation {
        let refused = conditions.iter().find(|one| {
            one.type_ == TYPE_AVAILABLE
                && one.status != "True"
                && one.observed_generation >= drpc.metadata.generation
        });
        let refused = refused.map(|one| format!("{}: {}", one.reason, one.message));
        return Some(
            refused.or(blocker).unwrap_or_else(|| "the hub has not observed the last change yet".to_owned()),
        );
    }
    let rests = matches!(status.phase, Some(DRState::Deployed | DRState::FailedOver | DRState::Relocated));
    if !rests {
        let step = status.progression.as_ref().map(|step| format!(", {}", step.as_str())).unwrap_or_default();
        let phase = status.phase.as_ref().map_or("new", DRState::as_str);
        return Some(blocker.unwrap_or_else(|| format!("{phase}{step}")));
    }
    for type_ in [TYPE_PEER_READY, TYPE_PROTECTED] {
        let one = conditions.iter().find(|one| one.type_ == type_);
        match one {
            None => return Some(format!("nothing is known about {type_} yet")),
            Some(one) if one.status != "True" => {
                return Some(
                    blocker.unwrap_or_else(|| format!("{type_} is {}: {}", one.status, one.message)),
                );
            }
            Some(one) if one.observed_generation < drpc.metadata.generation => {
                return Some(format!("{type_} is not known for the last change yet"));
            }
            Some(_) => {}
        }
    }
    if !copied {
        return Some(blocker.unwrap_or_else(|| "no copy was reported yet".to_owned()));
    }
    // An application that was scaled to zero has no pods, and that is in order.
    match pods(status) {
        Pods::NotReady(why) => Some(format!("PodsNotReady: {why}")),
        Pods::Ready | Pods::Missing(_) | Pods::NotTold => None,
    }
}

/// A span of time in at most two units.
pub fn span(seconds: i64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d{}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// A span that is said to be the most: what the two units leave out counts as one more.
pub fn at_most(seconds: i64) -> String {
    let unit = match seconds {
        ..3_600 => 1,
        3_600..86_400 => 60,
        _ => 3_600,
    };
    span(seconds + (-seconds).rem_euclid(unit))
}

/// The cells of a line.
pub fn cells(row: &Row) -> Vec<String> {
    let lag = match (row.lag_seconds, row.target_seconds) {
        (Some(lag), Some(target)) => format!("{} of {}", span(lag), span(target)),
        (Some(lag), None) => span(lag),
        (None, _) => "-".to_owned(),
    };
    let protected = match row.protected {
        Protected::Yes => "yes",
        Protected::Late => "late",
        Protected::No => "no",
    };
    let copy = row.last_copy.map_or("-".to_owned(), |time| time.strftime("%F %T").to_string());
    let ready = match (&row.why, row.ready) {
        (None, _) => "yes".to_owned(),
        (Some(why), true) => format!("yes, but {why}"),
        (Some(why), false) => format!("no: {why}"),
    };
    vec![
        row.application.clone(),
        row.cluster.clone().unwrap_or_else(|| "-".to_owned()),
        row.phase.clone(),
        protected.to_owned(),
        lag,
        copy,
        ready,
    ]
}

/// The heading of the lines.
pub const HEADING: [&str; 7] =
    ["APPLICATION", "CLUSTER", "PHASE", "PROTECTED", "LAG", "LAST COPY (UTC)", "READY TO FAIL OVER"];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const NOW: &str = "2030-01-01T00:10:00Z";

    fn drpc(status: Value) -> DRPlacementControl {
        let object = json!({
            "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "DRPlacementControl",
            "metadata": {"name": "web", "namespace": "shop", "generation": 2, "annotations": {"ramendr.openshift.io/epoch-holder": "east"}},
            "spec": {"placementRef": {}, "drPolicyRef": {}, "pvcSelector": {}},
            "status": status,
        });
        serde_json::from_value(object).unwrap()
    }

    fn condition(type_: &str, status: &str, generation: i64) -> Value {
        json!({"type": type_, "status": status, "reason": "R", "message": "said", "observedGeneration": generation, "lastTransitionTime": NOW})
    }

    fn good() -> Value {
        json!({
            "phase": "Deployed", "observedGeneration": 2, "lastGroupSyncTime": "2030-01-01T00:09:00Z",
            "conditions": [condition("PeerReady", "True", 2), condition("Protected", "True", 2)],
        })
    }

    fn with(change: impl FnOnce(&mut Value)) -> DRPlacementControl {
        let mut status = good();
        change(&mut status);
        drpc(status)
    }

    fn check(rule: &str, drpc: &DRPlacementControl, expected: (Protected, bool, Option<&str>)) {
        judged(rule, drpc, &Ok(()), expected);
    }

    fn judged(
        rule: &str,
        drpc: &DRPlacementControl,
        failover: &Result<(), String>,
        expected: (Protected, bool, Option<&str>),
    ) {
        let policy = json!({
            "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "DRPolicy", "metadata": {"name": "p"},
            "spec": {"schedulingInterval": "1m", "drClusters": ["east", "west"]},
        });
        let policy: DRPolicy = serde_json::from_value(policy).unwrap();
        let row = row(drpc, Some(&policy), failover, NOW.parse().unwrap());
        let why = row.why.as_deref();
        assert_eq!((row.protected, row.ready), (expected.0, expected.1), "{rule}: {why:?}");
        match (why, expected.2) {
            (None, None) => {}
            (Some(why), Some(part)) => assert!(why.contains(part), "{rule}: {why}"),
            other => panic!("{rule}: {other:?}"),
        }
        assert_eq!(row.cluster.as_deref(), Some("east"));
    }

    #[test]
    fn an_application_is_ready_when_a_failover_would_work() {
        check("all is well", &with(|_| {}), (Protected::Yes, true, None));
        let new = with(|status| *status = Value::Null);
        check("new", &new, (Protected::No, false, Some("has not observed it")));
        let old = with(|status| status["observedGeneration"] = json!(1));
        check("changed since", &old, (Protected::Yes, true, Some("last change")));
        let refused = with(|status| {
            status["observedGeneration"] = json!(1);
            let invalid = condition("Available", "False", 2);
            status["conditions"].as_array_mut().unwrap().push(invalid);
        });
        check("refused", &refused, (Protected::Yes, true, Some("R: said")));
        let moving = with(|status| status["phase"] = json!("FailingOver"));
        check("under way", &moving, (Protected::Yes, true, Some("FailingOver")));
        let peer = with(|status| status["conditions"][0]["status"] = json!("False"));
        check("the peer is not ready", &peer, (Protected::Yes, true, Some("PeerReady is False: said")));
        let bare = with(|status| status["conditions"][1]["status"] = json!("False"));
        check("not protected", &bare, (Protected::No, true, Some("Protected is False")));
        let stale = with(|status| status["conditions"][1]["observedGeneration"] = json!(1));
        check(
            "protected before the change",
            &stale,
            (Protected::No, true, Some("not known for the last change")),
        );
        let none = with(|status| status["lastGroupSyncTime"] = Value::Null);
        check("no copy", &none, (Protected::No, false, Some("no copy")));
        let crashing = with(|status| {
            let mut pods = condition("PodsReady", "False", 1);
            pods["reason"] = json!("PodsNotReady");
            status["resourceConditions"] = json!({"conditions": [pods]});
        });
        check("a pod is not ready", &crashing, (Protected::Yes, true, Some("PodsNotReady: said")));
        let idle = with(|status| {
            let mut pods = condition("PodsReady", "False", 1);
            pods["reason"] = json!("NoPods");
            status["resourceConditions"] = json!({"conditions": [pods]});
        });
        check("scaled to zero", &idle, (Protected::Yes, true, None));
        let late = with(|status| status["lastGroupSyncTime"] = json!("2030-01-01T00:07:00Z"));
        check("late", &late, (Protected::Late, true, Some("older than two intervals")));
        let waits = with(|status| {
            status["conditions"][1]["status"] = json!("False");
            status["blockers"] = json!([{"reason": "KeyMissing", "message": "make one"}]);
        });
        check("what is waited for goes first", &waits, (Protected::No, true, Some("KeyMissing: make one")));
        let no = Err("TargetNotReady: west is not Secondary".to_owned());
        let expected = (Protected::Yes, false, Some("west is not Secondary"));
        judged("the hub would not fail over", &with(|_| {}), &no, expected);
        let dead = with(|status| {
            status["conditions"][0]["status"] = json!("False");
            status["blockers"] = json!([{"reason": "ClusterSilent", "message": "cluster east is silent"}]);
        });
        let expected = (Protected::Yes, true, Some("cluster east is silent"));
        judged("the cluster it runs on is dead", &dead, &Ok(()), expected);
    }

    #[test]
    fn spans_are_short() {
        let check = |seconds: i64, text: &str| assert_eq!(span(seconds), text);
        check(0, "0s");
        check(59, "59s");
        check(61, "1m1s");
        check(3_660, "1h1m");
        check(90_000, "1d1h");
        let check = |seconds: i64, text: &str| assert_eq!(at_most(seconds), text);
        check(61, "1m1s");
        check(3_660, "1h1m");
        check(3_661, "1h2m");
        check(86_399, "1d0h");
        check(90_001, "1d2h");
    }
}
