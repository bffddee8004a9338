//! How one group is doing on its own cluster: its claims, how old their copies are, and what is waited for since when. Pure.

use super::rows::span;
use jiff::Timestamp;
use lifeboat_api::conditions::vrg;
use lifeboat_api::ramen::{ProtectedPvc, ReplicationState, VolumeReplicationGroup};
use serde::Serialize;
use std::fmt::Write as _;

/// A group.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// Namespace and name.
    pub group: String,
    /// The role asked for and the one reached.
    pub role: String,
    /// The role that it has reached.
    pub state: String,
    /// The highest epoch seen.
    pub epoch: Option<i64>,
    /// Seconds since the oldest of the newest copies was cut.
    pub lag_seconds: Option<i64>,
    /// Bytes of the newest copies.
    pub bytes: Option<i64>,
    /// Its claims.
    pub claims: Vec<Claim>,
    /// What is waited for.
    pub waits: Vec<Waiting>,
    /// Conditions that do not hold.
    pub unmet: Vec<String>,
}

/// A claim of a group.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// Namespace and name.
    pub claim: String,
    /// By a mover or by the storage.
    pub by: String,
    /// Seconds since its newest copy was cut.
    pub lag_seconds: Option<i64>,
    /// How long that copy took.
    pub took: Option<String>,
    /// Bytes of that copy.
    pub bytes: Option<i64>,
    /// What does not hold for it.
    pub unmet: Vec<String>,
}

/// Something that is waited for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    /// What, in one word.
    pub reason: String,
    /// What, as a sentence.
    pub message: String,
    /// The claim, where it is one.
    pub claim: Option<String>,
    /// For how long.
    pub seconds: Option<i64>,
}

impl Group {
    /// Whether nothing is waited for and everything holds.
    pub fn is_fine(&self) -> bool {
        self.waits.is_empty()
            && self.unmet.is_empty()
            && self.claims.iter().all(|claim| claim.unmet.is_empty())
    }
}

/// What is to be told of a group.
pub fn group(vrg: &VolumeReplicationGroup, now: Timestamp) -> Group {
    let status = vrg.status.clone().unwrap_or_default();
    let meta = &vrg.metadata;
    let name = |namespace: Option<&str>, name: Option<&str>| {
        format!("{}/{}", namespace.unwrap_or_default(), name.unwrap_or_default())
    };
    let since = |time: Option<Timestamp>| time.map(|time| now.duration_since(time).as_secs().max(0));
    let mut unmet = unmet(&status.conditions, &[vrg::TYPE_NO_CLUSTER_DATA_CONFLICT]);
    if status.observed_generation < meta.generation {
        unmet.insert(0, "the protector has not looked at the last change yet".to_owned());
    }
    let claim = |one: &ProtectedPvc| Claim {
        claim: name(one.namespace.as_deref().or(meta.namespace.as_deref()), one.name.as_deref()),
        by: if one.protected_by_vol_sync { "mover".to_owned() } else { "storage".to_owned() },
        lag_seconds: since(one.last_sync_time.as_ref().map(|time| time.0)),
        took: one.last_sync_duration.as_ref().map(ToString::to_string),
        bytes: one.last_sync_bytes,
        unmet: self::unmet(&one.conditions, &[]),
    };
    Group {
        group: name(meta.namespace.as_deref(), meta.name.as_deref()),
        role: vrg.spec.replication_state.as_str().to_owned(),
        state: status.state.as_ref().map_or("Unknown", |state| state.as_str()).to_owned(),
        epoch: status.epoch,
        lag_seconds: since(status.last_group_sync_time.as_ref().map(|time| time.0)),
        bytes: status.last_group_sync_bytes,
        claims: status.protected_pvcs.iter().map(claim).collect(),
        waits: status
            .blockers
            .iter()
            .map(|blocker| Waiting {
                reason: blocker.reason.clone(),
                message: blocker.message.clone(),
                claim: blocker.pvc.clone(),
                seconds: since(blocker.since.as_ref().map(|time| time.0)),
            })
            .collect(),
        unmet,
    }
}

fn unmet(
    conditions: &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition],
    also: &[&str],
) -> Vec<String> {
    let counts = [
        vrg::TYPE_DATA_READY,
        vrg::TYPE_DATA_PROTECTED,
        vrg::TYPE_CLUSTER_DATA_READY,
        vrg::TYPE_CLUSTER_DATA_PROTECTED,
    ];
    conditions
        .iter()
        .filter(|one| counts.contains(&one.type_.as_str()) || also.contains(&one.type_.as_str()))
        .filter(|one| one.status != "True" && one.reason != vrg::REASON_UNUSED)
        .map(|one| format!("{} is {}: {}", one.type_, one.status, one.message))
        .collect()
}

/// The group for people to read.
pub fn text(group: &Group) -> String {
    let mut out = String::new();
    // Who receives copies does not count them: the sender does.
    let receives = group.role == ReplicationState::Secondary.as_str();
    let copied = |seconds: Option<i64>| match seconds {
        Some(seconds) => format!("copied {} ago", span(seconds)),
        None if receives => "received; the cluster that sends tells how old the copy is".to_owned(),
        None => "copied never".to_owned(),
    };
    let epoch = group.epoch.map(|epoch| format!(", epoch {epoch}")).unwrap_or_default();
    let _ = writeln!(out, "{}  asked to be {}, is {}{epoch}", group.group, group.role, group.state);
    let bytes = group.bytes.map(|bytes| format!(", {bytes} bytes")).unwrap_or_default();
    let last = match group.lag_seconds {
        Some(seconds) => format!("{} ago{bytes}", span(seconds)),
        None if receives => "the cluster that sends tells".to_owned(),
        None => "never".to_owned(),
    };
    let _ = writeln!(out, "last copy of all claims: {last}");
    for claim in &group.claims {
        let took = claim.took.as_ref().map(|took| format!(", took {took}")).unwrap_or_default();
        let _ = writeln!(out, "  {} by {}: {}{took}", claim.claim, claim.by, copied(claim.lag_seconds));
        for unmet in &claim.unmet {
            let _ = writeln!(out, "    {unmet}");
        }
    }
    for unmet in &group.unmet {
        let _ = writeln!(out, "not yet: {unmet}");
    }
    for wait in &group.waits {
        let of = wait.claim.as_ref().map(|claim| format!(" ({claim})")).unwrap_or_default();
        let since = wait.seconds.map(|seconds| format!(" for {}", span(seconds))).unwrap_or_default();
        let _ = writeln!(out, "waits{of}{since}: {}: {}", wait.reason, wait.message);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn vrg(status: serde_json::Value) -> VolumeReplicationGroup {
        serde_json::from_value(json!({
            "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "VolumeReplicationGroup",
            "metadata": {"name": "web", "namespace": "shop", "generation": 1},
            "spec": {"pvcSelector": {}, "replicationState": "primary", "s3Profiles": []},
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn a_group_says_what_it_waits_for_and_since_when() {
        let now: Timestamp = "2030-01-01T00:02:00Z".parse().unwrap();
        let status = json!({
            "state": "Primary", "observedGeneration": 1, "epoch": 3,
            "lastGroupSyncTime": "2030-01-01T00:00:59Z",
            "protectedPVCs": [{"name": "data", "protectedByVolSync": true, "lastSyncTime": "2030-01-01T00:00:59Z", "lastSyncDuration": "1s"}],
            "conditions": [
                {"type": "DataReady", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2030-01-01T00:00:00Z"},
                {"type": "DataProtected", "status": "False", "reason": "Progressing", "message": "copying", "lastTransitionTime": "2030-01-01T00:00:00Z"},
                {"type": "ClusterDataReady", "status": "False", "reason": "Unused", "message": "", "lastTransitionTime": "2030-01-01T00:00:00Z"},
            ],
            "blockers": [{"reason": "PeerSilent", "message": "see the link", "since": "2030-01-01T00:01:30Z", "pvc": "data"}],
        });
        let told = group(&vrg(status), now);
        assert!(!told.is_fine());
        let text = text(&told);
        for part in [
            "shop/web  asked to be primary, is Primary, epoch 3",
            "last copy of all claims: 1m1s ago",
            "shop/data by mover: copied 1m1s ago, took 1s",
            "not yet: DataProtected is False: copying",
            "waits (data) for 30s: PeerSilent: see the link",
        ] {
            assert!(text.contains(part), "{part} is not in:\n{text}");
        }
        assert!(!text.contains("ClusterDataReady"), "unused is fine:\n{text}");
    }

    #[test]
    fn a_group_that_was_not_looked_at_is_not_fine() {
        let told = group(&vrg(json!({})), Timestamp::UNIX_EPOCH);
        assert!(!told.is_fine());
        assert!(text(&told).contains("never"));
        let fine = group(&vrg(json!({"observedGeneration": 1, "state": "Primary"})), Timestamp::UNIX_EPOCH);
        assert!(fine.is_fine());
    }

    #[test]
    fn who_receives_copies_does_not_say_that_there_was_never_one() {
        let mut secondary = vrg(json!({"observedGeneration": 1, "protectedPVCs": [{"name": "data"}]}));
        secondary.spec.replication_state = ReplicationState::Secondary;
        let text = text(&group(&secondary, Timestamp::UNIX_EPOCH));
        assert!(text.contains("last copy of all claims: the cluster that sends tells"), "{text}");
        assert!(text.contains("shop/data by storage: received;") && !text.contains("never"), "{text}");
    }
}
