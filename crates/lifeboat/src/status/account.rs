//! How one application came to be as it is: where it runs and by whose wish, what it waits for since when, what does not hold, what was given up.
//! Pure.

use super::rows::{at_most, span};
use jiff::Timestamp;
use lifeboat_api::annotations;
use lifeboat_api::ramen::DRPlacementControl;
use std::fmt::Write as _;

/// An account of an application, in lines.
pub fn account(drpc: &DRPlacementControl, now: Timestamp) -> String {
    let meta = &drpc.metadata;
    let status = drpc.status.clone().unwrap_or_default();
    let ago = |time: Timestamp| span(now.duration_since(time).as_secs().max(0));
    let note = |key: &str| meta.annotations.as_ref()?.get(key).cloned();
    let mut text = format!(
        "{}/{}: ",
        meta.namespace.as_deref().unwrap_or_default(),
        meta.name.as_deref().unwrap_or_default()
    );
    let phase = status.phase.as_ref().map_or("nothing was decided yet", |phase| phase.as_str());
    let step = status.progression.as_ref().map_or("", |step| step.as_str());
    let _ = writeln!(text, "{phase} {step}");
    let target = match drpc.spec.action {
        Some(lifeboat_api::ramen::DRAction::Failover) => &drpc.spec.failover_cluster,
        _ => &drpc.spec.preferred_cluster,
    };
    let action = drpc.spec.action.as_ref().map_or("to be deployed", |action| action.as_str());
    let _ = writeln!(text, "asked for: {action}, on {}", target.as_deref().unwrap_or("no cluster"));
    if let Some(holder) = note(annotations::EPOCH_HOLDER) {
        let epoch = status.epoch.map_or_else(String::new, |epoch| format!(" at epoch {epoch}"));
        let _ = writeln!(text, "decided: {holder} is primary{epoch}");
    }
    match &status.last_group_sync_time {
        Some(time) => {
            let _ = writeln!(text, "safe: everything written before {} ({} ago)", time.0, ago(time.0));
        }
        None => text.push_str("safe: nothing yet, no copy of all claims was reported\n"),
    }
    if let Some(lost) = &status.last_failover {
        let until =
            lost.data_until.as_ref().map_or("nobody knows when".to_owned(), |time| time.0.to_string());
        let most =
            lost.at_most_seconds.map_or_else(String::new, |most| format!(", at most {}", at_most(most)));
        let _ = writeln!(text, "the last failover gave up what was written after {until}{most}");
    }
    for wait in &status.blockers {
        let since = wait.since.as_ref().map_or_else(String::new, |time| format!(" for {}", ago(time.0)));
        let _ = writeln!(text, "waits{since}: {}", wait.message);
    }
    for condition in status.conditions.iter().filter(|condition| condition.status != "True") {
        let _ = writeln!(text, "{} is {}: {}", condition.type_, condition.status, condition.message);
    }
    let stale = status.observed_generation.is_some_and(|seen| Some(seen) != meta.generation);
    if stale {
        text.push_str("the hub has not taken up the newest change of the spec yet\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_account_says_what_is_waited_for_and_what_was_given_up() {
        let drpc = serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "shop", "generation": 3,
                "annotations": {"ramendr.openshift.io/epoch-holder": "west"}},
            "spec": {"action": "Failover", "failoverCluster": "west", "preferredCluster": "east",
                "placementRef": {}, "drPolicyRef": {}, "pvcSelector": {}},
            "status": {"phase": "FailedOver", "progression": "Cleaning Up", "epoch": 2, "observedGeneration": 3,
                "lastFailover": {"dataUntil": "2030-01-01T00:00:00Z", "atMostSeconds": 75},
                "blockers": [{"reason": "ClusterSilent", "message": "east is silent", "since": "2030-01-01T00:01:00Z"}],
                "conditions": [
                    {"type": "Available", "status": "True", "reason": "r", "message": "m", "lastTransitionTime": "2030-01-01T00:00:00Z"},
                    {"type": "PeerReady", "status": "False", "reason": "r", "message": "east is silent", "lastTransitionTime": "2030-01-01T00:00:00Z"}]},
        }))
        .expect("a DRPlacementControl");
        let told = account(&drpc, "2030-01-01T00:02:30Z".parse().expect("a time"));
        let expected = "\
shop/web: FailedOver Cleaning Up
asked for: Failover, on west
decided: west is primary at epoch 2
safe: nothing yet, no copy of all claims was reported
the last failover gave up what was written after 2030-01-01T00:00:00Z, at most 1m15s
waits for 1m30s: east is silent
PeerReady is False: east is silent
";
        assert_eq!(told, expected);
    }
}
