//! What should be so in a fleet, checked against what is. Pure.

use crate::forget::Kept;
use crate::status::rows::{row, span};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use lifeboat_api::cluster::ManagedCluster;
use lifeboat_api::conditions::{drcluster, drpolicy, fleet};
use lifeboat_api::ramen::{DRCluster, DRPlacementControl, DRPolicy, VolumeReplicationGroup};
use lifeboat_engine::ObjectKey;
use serde::Serialize;
use std::collections::BTreeMap;

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Grade {
    /// It is as it should be.
    Fine,
    /// Somebody should look.
    Warning,
    /// Protection does not work.
    Bad,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What it is about.
    pub subject: String,
    /// What was found.
    pub grade: Grade,
    /// What that means and what to do.
    pub said: String,
}

/// What is looked at.
#[derive(Debug, Default)]
pub struct Facts {
    /// Kinds that the cluster does not serve.
    pub missing_kinds: Vec<String>,
    /// Whether the hub's ConfigMap is there.
    pub hub_config: bool,
    /// Whether a protector's ConfigMap is there.
    pub cluster_config: bool,
    /// Clusters that joined.
    pub managed: Vec<ManagedCluster>,
    /// Their leases, by cluster.
    pub leases: BTreeMap<String, Lease>,
    /// Clusters that take part in recovery.
    pub drclusters: Vec<DRCluster>,
    /// Policies.
    pub policies: Vec<DRPolicy>,
    /// Applications.
    pub drpcs: Vec<DRPlacementControl>,
    /// What keeps applications from failing over now, by the hub's own rules; those that could are not listed.
    pub cannot_fail_over: BTreeMap<ObjectKey, String>,
    /// Groups of this cluster.
    pub groups: Vec<VolumeReplicationGroup>,
    /// Volumes that are kept here though no PVC uses them.
    pub kept: Vec<Kept>,
}

impl Facts {
    /// Whether the cluster is a hub.
    pub fn is_hub(&self) -> bool {
        self.hub_config || !self.policies.is_empty() || !self.drclusters.is_empty() || !self.drpcs.is_empty()
    }
}

fn check(subject: impl Into<String>, grade: Grade, said: impl Into<String>) -> Check {
    Check { subject: subject.into(), grade, said: said.into() }
}

fn condition<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|one| one.type_ == type_)
}

/// Every check.
pub fn checks(facts: &Facts, now: Timestamp) -> Vec<Check> {
    let mut found = Vec::new();
    for kind in &facts.missing_kinds {
        let said =
            "the cluster does not serve it; `lifeboat crds | kubectl apply -f -` installs the definitions";
        found.push(check(kind.as_str(), Grade::Bad, said));
    }
    if facts.is_hub() {
        hub(facts, now, &mut found);
    } else {
        found.push(role(facts));
    }
    found.extend(facts.groups.iter().map(|one| group(one, now)));
    found.extend(facts.kept.iter().filter_map(orphan));
    found
}

/// What a cluster is that is not the hub. Where nothing is protected, nothing was checked: that must not look like health to whoever meant the hub.
fn role(facts: &Facts) -> Check {
    let (grade, said) = match (facts.groups.is_empty(), facts.cluster_config) {
        (false, _) => (
            Grade::Fine,
            "this is a managed cluster, not the hub: its VRGs and volumes are looked at, and nothing else; name the hub with --context for the rest",
        ),
        (true, true) => (
            Grade::Warning,
            "this is a managed cluster, not the hub, and it has no VRG, so nothing was checked; name the hub with --context",
        ),
        (true, false) => (
            Grade::Warning,
            "this is neither a hub nor a protected cluster yet; name the hub with --context, make a DRPolicy there, or a VolumeReplicationGroup here",
        ),
    };
    check("role", grade, said)
}

fn hub(facts: &Facts, now: Timestamp, found: &mut Vec<Check>) {
    if !facts.hub_config {
        let said = "there is no ConfigMap ramen-hub-operator-config with the stores' profiles; create it";
        found.push(check("configuration", Grade::Bad, said));
    }
    found.extend(facts.managed.iter().map(|one| managed(one, facts, now)));
    for one in &facts.drclusters {
        let name = one.metadata.name.clone().unwrap_or_default();
        let joined = facts.managed.iter().any(|managed| managed.metadata.name == one.metadata.name);
        if !joined {
            let said = "no ManagedCluster of this name has joined; start `lifeboat agent` there";
            found.push(check(format!("cluster {name}"), Grade::Bad, said));
        }
        let conditions = one.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        found.push(validated(format!("drcluster {name}"), conditions, drcluster::TYPE_VALIDATED));
    }
    for one in &facts.policies {
        let name = one.metadata.name.clone().unwrap_or_default();
        let conditions = one.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        found.push(validated(format!("drpolicy {name}"), conditions, drpolicy::TYPE_VALIDATED));
    }
    if facts.policies.is_empty() {
        found.push(check(
            "policies",
            Grade::Warning,
            "there is no DRPolicy, so nothing can be protected; make one",
        ));
    }
    for drpc in &facts.drpcs {
        let named = |policy: &&DRPolicy| policy.metadata.name == drpc.spec.dr_policy_ref.name;
        let failover = facts.cannot_fail_over.get(&ObjectKey::of(drpc)).cloned().map_or(Ok(()), Err);
        let told = row(drpc, facts.policies.iter().find(named), &failover, now);
        let grade = match (told.is_fine(), told.ready) {
            (true, _) => Grade::Fine,
            (false, true) => Grade::Warning,
            (false, false) => Grade::Bad,
        };
        let said = told.why.unwrap_or_else(|| "protected and ready to fail over".to_owned());
        found.push(check(format!("application {}", told.application), grade, said));
    }
}

fn validated(subject: String, conditions: &[Condition], type_: &str) -> Check {
    match condition(conditions, type_) {
        Some(one) if one.status == "True" => check(subject, Grade::Fine, "validated"),
        Some(one) => check(subject, Grade::Bad, format!("{}: {}", one.reason, one.message)),
        None => check(subject, Grade::Bad, "the hub has not looked at it; does `lifeboat hub` run?"),
    }
}

fn managed(one: &ManagedCluster, facts: &Facts, now: Timestamp) -> Check {
    let name = one.metadata.name.clone().unwrap_or_default();
    let subject = format!("cluster {name}");
    let conditions = one.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    if !one.spec.hub_accepts_client {
        return check(subject, Grade::Bad, "it was not let in; set spec.hubAcceptsClient");
    }
    let renewed = facts.leases.get(&name).and_then(|lease| lease.spec.as_ref()?.renew_time.clone());
    let Some(renewed) = renewed else {
        return check(subject, Grade::Bad, "its agent never wrote its lease; start `lifeboat agent` there");
    };
    let silent = now.duration_since(renewed.0).as_secs().max(0);
    let every = i64::from(one.spec.lease_duration_seconds.unwrap_or(fleet::DEFAULT_LEASE_SECONDS));
    if silent > every * i64::from(fleet::LEASE_DURATIONS) {
        let said = format!("silent for {}; what is known of it is that old", span(silent));
        return check(subject, Grade::Bad, said);
    }
    match condition(conditions, fleet::TYPE_CLUSTER_AVAILABLE) {
        Some(one) if one.status == "True" => {
            check(subject, Grade::Fine, format!("heard {} ago", span(silent)))
        }
        Some(one) => check(subject, Grade::Warning, one.message.clone()),
        None => check(
            subject,
            Grade::Warning,
            "the hub has not said whether it is available; does `lifeboat hub` run?",
        ),
    }
}

/// A volume that an accident left behind. What moves leave is listed by `lifeboat forget` and nothing to worry about.
fn orphan(one: &Kept) -> Option<Check> {
    let from = one.orphaned_from.as_ref()?;
    let said = format!(
        "it has the data of PVC {} and is kept because VRG {from} was deleted without the order to end protection; \
         `lifeboat repair` uses it again, `lifeboat forget {}` gives it up",
        one.claim, one.volume
    );
    Some(check(format!("volume {}", one.volume), Grade::Warning, said))
}

fn group(one: &VolumeReplicationGroup, now: Timestamp) -> Check {
    let told = crate::status::group::group(one, now);
    let subject = format!("group {}", told.group);
    if told.is_fine() {
        let copied = told.lag_seconds.map(|lag| format!(", last copy {} ago", span(lag))).unwrap_or_default();
        return check(subject, Grade::Fine, format!("{}{copied}", told.state));
    }
    let wait = told.waits.first().map(|wait| format!("{}: {}", wait.reason, wait.message));
    let said =
        wait.or_else(|| told.unmet.first().cloned()).unwrap_or_else(|| "a claim is not protected".to_owned());
    check(subject, Grade::Warning, said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const NOW: &str = "2030-01-01T00:10:00Z";

    fn hub_facts() -> Facts {
        let read = |value: Value| value;
        let cluster = read(json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": {"name": "east"},
            "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": 10},
            "status": {"conditions": [{"type": "ManagedClusterConditionAvailable", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": NOW}]},
        }));
        let lease = json!({"metadata": {"name": "managed-cluster-lease"}, "spec": {"renewTime": "2030-01-01T00:09:55.000000Z"}});
        let drcluster = json!({
            "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "DRCluster", "metadata": {"name": "east"},
            "spec": {"s3ProfileName": "s"},
            "status": {"conditions": [{"type": "Validated", "status": "True", "reason": "Succeeded", "message": "", "lastTransitionTime": NOW}]},
        });
        let policy = json!({
            "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "DRPolicy", "metadata": {"name": "p"},
            "spec": {"schedulingInterval": "1m", "drClusters": ["east", "west"]},
            "status": {"conditions": [{"type": "Validated", "status": "True", "reason": "Succeeded", "message": "", "lastTransitionTime": NOW}]},
        });
        Facts {
            hub_config: true,
            managed: vec![serde_json::from_value(cluster).unwrap()],
            leases: [("east".to_owned(), serde_json::from_value(lease).unwrap())].into(),
            drclusters: vec![serde_json::from_value(drcluster).unwrap()],
            policies: vec![serde_json::from_value(policy).unwrap()],
            ..Facts::default()
        }
    }

    fn good_group() -> VolumeReplicationGroup {
        serde_json::from_value(json!({
            "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "VolumeReplicationGroup",
            "metadata": {"name": "web", "namespace": "shop", "generation": 1},
            "spec": {"pvcSelector": {}, "replicationState": "primary", "s3Profiles": []},
            "status": {"observedGeneration": 1, "state": "Primary"},
        }))
        .unwrap()
    }

    fn finds(rule: &str, facts: &Facts, worst: Grade, part: &str) {
        let found = checks(facts, NOW.parse().unwrap());
        let worst_found = found.iter().map(|one| one.grade).max().unwrap_or(Grade::Fine);
        assert_eq!(worst_found, worst, "{rule}: {found:#?}");
        assert!(found.iter().any(|one| one.said.contains(part)), "{rule}: {found:#?}");
    }

    #[test]
    fn every_check_finds_what_it_is_for() {
        finds("a good hub", &hub_facts(), Grade::Fine, "heard 5s ago");
        let mut facts = hub_facts();
        facts.missing_kinds = vec!["DRPolicy".to_owned()];
        finds("definitions are missing", &facts, Grade::Bad, "lifeboat crds");
        let mut facts = hub_facts();
        facts.hub_config = false;
        finds("no configuration", &facts, Grade::Bad, "ramen-hub-operator-config");
        let mut facts = hub_facts();
        facts.leases.clear();
        finds("no lease", &facts, Grade::Bad, "never wrote its lease");
        let mut facts = hub_facts();
        let old = json!({"metadata": {}, "spec": {"renewTime": "2030-01-01T00:00:00.000000Z"}});
        facts.leases.insert("east".to_owned(), serde_json::from_value(old).unwrap());
        finds("a silent cluster", &facts, Grade::Bad, "silent for 10m0s");
        let mut facts = hub_facts();
        facts.managed[0].spec.hub_accepts_client = false;
        finds("not let in", &facts, Grade::Bad, "hubAcceptsClient");
        let mut facts = hub_facts();
        facts.managed.clear();
        finds("never joined", &facts, Grade::Bad, "has joined");
        let mut facts = hub_facts();
        facts.policies[0].status = None;
        finds("nobody looks at policies", &facts, Grade::Bad, "lifeboat hub");
        let mut facts = hub_facts();
        facts.policies.clear();
        finds("no policy", &facts, Grade::Warning, "no DRPolicy");
        let mut facts = Facts { cluster_config: true, ..Facts::default() };
        finds("a managed cluster without a group", &facts, Grade::Warning, "not the hub");
        facts.groups = vec![good_group()];
        finds("a managed cluster with a group", &facts, Grade::Fine, "not the hub");
        finds("its group is looked at", &facts, Grade::Fine, "Primary");
        facts.kept.push(Kept {
            volume: "pv-1".to_owned(),
            claim: "shop/db".to_owned(),
            size: "1Gi".to_owned(),
            orphaned_from: Some("shop/web".to_owned()),
        });
        finds("a volume that an accident left", &facts, Grade::Warning, "lifeboat forget pv-1");
        facts.kept[0].orphaned_from = None;
        finds("a volume that a move left", &facts, Grade::Fine, "managed cluster");
        finds("an empty cluster", &Facts::default(), Grade::Warning, "neither a hub nor");
    }
}
