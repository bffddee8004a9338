//! How one application came to be as it is: where it runs and by whose wish, what it waits for since when, what does not hold, what was given up.
//! Pure.

use super::rows::{at_most, span};
use jiff::Timestamp;
use lifeboat_api::annotations;
use lifeboat_api::ramen::{Blocker, DRAction, DRPlacementControl, FailoverLoss};
use lifeboat_engine::Words as _;
use serde::Serialize;
use std::fmt;

/// An account of an application.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    /// Namespace and name.
    pub application: String,
    /// What is being done with it, or was last; absent where nothing was decided yet.
    pub phase: Option<String>,
    /// The step of that.
    pub progression: Option<String>,
    /// What is asked for; absent where it is only to be deployed.
    pub action: Option<String>,
    /// The cluster that it is asked for on.
    pub target: Option<String>,
    /// The cluster that was decided to be primary.
    pub primary: Option<String>,
    /// The epoch of that decision.
    pub epoch: Option<i64>,
    /// Everything written before this is at the peer; absent where no copy of all claims was reported.
    pub safe_until: Option<Timestamp>,
    /// What the last failover gave up.
    pub last_failover: Option<FailoverLoss>,
    /// What is waited for.
    pub waits: Vec<Blocker>,
    /// Conditions that do not hold.
    pub unmet: Vec<Unmet>,
    /// Whether the hub has observed the newest change of the spec.
    pub observed: bool,
    /// When this was told.
    pub now: Timestamp,
}

/// A condition that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unmet {
    /// Its type.
    #[serde(rename = "type")]
    pub type_: String,
    /// False or Unknown.
    pub status: String,
    /// Why, in one word.
    pub reason: String,
    /// Why, as a sentence.
    pub message: String,
}

/// An account of an application.
pub fn account(drpc: &DRPlacementControl, now: Timestamp) -> Account {
    let status = drpc.status.clone().unwrap_or_default();
    let target = match drpc.spec.action {
        Some(DRAction::Failover) => &drpc.spec.failover_cluster,
        _ => &drpc.spec.preferred_cluster,
    };
    let unmet = status.conditions.iter().filter(|one| one.status != "True").map(|one| Unmet {
        type_: one.type_.clone(),
        status: one.status.clone(),
        reason: one.reason.clone(),
        message: one.message.clone(),
    });
    Account {
        application: format!("{}/{}", drpc.space(), drpc.name()),
        unmet: unmet.collect(),
        phase: status.phase.map(|phase| phase.as_str().to_owned()),
        progression: status.progression.map(|step| step.as_str().to_owned()),
        action: drpc.spec.action.as_ref().map(|action| action.as_str().to_owned()),
        target: target.clone(),
        primary: drpc.note(annotations::EPOCH_HOLDER).map(str::to_owned),
        epoch: status.epoch,
        safe_until: status.last_group_sync_time.map(|time| time.0),
        last_failover: status.last_failover,
        waits: status.blockers,
        observed: status.observed_generation.is_none_or(|seen| Some(seen) == drpc.metadata.generation),
        now,
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ago = |time: Timestamp| span(self.now.duration_since(time).as_secs().max(0));
        let phase = self.phase.as_deref().unwrap_or("nothing was decided yet");
        let step = self.progression.as_deref().unwrap_or_default();
        writeln!(f, "{}: {phase} {step}", self.application)?;
        let action = self.action.as_deref().unwrap_or("to be deployed");
        writeln!(f, "asked for: {action}, on {}", self.target.as_deref().unwrap_or("no cluster"))?;
        if let Some(primary) = &self.primary {
            let epoch = self.epoch.map_or_else(String::new, |epoch| format!(" at epoch {epoch}"));
            writeln!(f, "decided: {primary} is primary{epoch}")?;
        }
        match self.safe_until {
            Some(time) => writeln!(f, "safe: everything written before {time} ({} ago)", ago(time))?,
            None => writeln!(f, "safe: nothing yet, no copy of all claims was reported")?,
        }
        if let Some(lost) = &self.last_failover {
            let when = lost.time.as_ref().map_or_else(String::new, |time| format!(" at {}", time.0));
            let until =
                lost.data_until.as_ref().map_or("nobody knows when".to_owned(), |time| time.0.to_string());
            let most =
                lost.at_most_seconds.map_or_else(String::new, |most| format!(", at most {}", at_most(most)));
            writeln!(f, "the last failover{when} gave up what was written after {until}{most}")?;
        }
        for wait in &self.waits {
            let since = wait.since.as_ref().map_or_else(String::new, |time| format!(" for {}", ago(time.0)));
            writeln!(f, "waits{since}: {}", wait.message)?;
        }
        for one in &self.unmet {
            writeln!(f, "{} is {}: {}", one.type_, one.status, one.message)?;
        }
        if !self.observed {
            writeln!(f, "the hub has not observed the newest change of the spec yet")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn failed_over() -> Account {
        let drpc = serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "shop", "generation": 3,
                "annotations": {"ramendr.openshift.io/epoch-holder": "west"}},
            "spec": {"action": "Failover", "failoverCluster": "west", "preferredCluster": "east",
                "placementRef": {}, "drPolicyRef": {}, "pvcSelector": {}},
            "status": {"phase": "FailedOver", "progression": "Cleaning Up", "epoch": 2, "observedGeneration": 3,
                "lastFailover": {"time": "2030-01-01T00:01:15Z", "dataUntil": "2030-01-01T00:00:00Z", "atMostSeconds": 75},
                "blockers": [{"reason": "ClusterSilent", "message": "east is silent", "since": "2030-01-01T00:01:00Z"}],
                "conditions": [
                    {"type": "Available", "status": "True", "reason": "r", "message": "m", "lastTransitionTime": "2030-01-01T00:00:00Z"},
                    {"type": "PeerReady", "status": "False", "reason": "r", "message": "east is silent", "lastTransitionTime": "2030-01-01T00:00:00Z"}]},
        }))
        .expect("a DRPlacementControl");
        account(&drpc, "2030-01-01T00:02:30Z".parse().expect("a time"))
    }

    #[test]
    fn an_account_says_what_is_waited_for_and_what_was_given_up() {
        let expected = "\
shop/web: FailedOver Cleaning Up
asked for: Failover, on west
decided: west is primary at epoch 2
safe: nothing yet, no copy of all claims was reported
the last failover at 2030-01-01T00:01:15Z gave up what was written after 2030-01-01T00:00:00Z, at most 1m15s
waits for 1m30s: east is silent
PeerReady is False: east is silent
";
        assert_eq!(failed_over().to_string(), expected);
    }

    #[test]
    fn programs_are_told_the_same() {
        let expected = json!({
            "application": "shop/web", "phase": "FailedOver", "progression": "Cleaning Up",
            "action": "Failover", "target": "west", "primary": "west", "epoch": 2,
            "safeUntil": null, "observed": true, "now": "2030-01-01T00:02:30Z",
            "lastFailover": {"time": "2030-01-01T00:01:15Z", "dataUntil": "2030-01-01T00:00:00Z", "atMostSeconds": 75},
            "waits": [{"reason": "ClusterSilent", "message": "east is silent", "since": "2030-01-01T00:01:00Z"}],
            "unmet": [{"type": "PeerReady", "status": "False", "reason": "r", "message": "east is silent"}],
        });
        assert_eq!(serde_json::to_value(failed_over()).expect("JSON"), expected);
    }
}
