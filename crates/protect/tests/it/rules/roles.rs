//! Epochs, demotion, what a driver's word is worth, and what is refused.

use super::furniture::{protected, replication};
use super::{claim, now, seen, world};
use lifeboat_api::replication::{ReplicationState, VolumeReplication};
use lifeboat_engine::Why as _;
use lifeboat_protect::decide::classify::Way;
use lifeboat_protect::decide::demote::may_demote;
use lifeboat_protect::decide::epoch::{Judged, judge};
use lifeboat_protect::decide::plan::{Path, Plan};
use lifeboat_protect::decide::replicated::{self, Word, word};
use lifeboat_protect::decide::unsupported::refused;
use lifeboat_protect::decide::{Effect, decide};
use lifeboat_protect::ledger::Reading;
use serde_json::{Value, json};

#[test]
fn epochs_only_grow() {
    let check =
        |rule: &str, role: &str, given: Option<&str>, status: Value, read: Option<i64>, expected: &str| {
            let mut world = world(|group| {
                group["spec"]["replicationState"] = json!(role);
                group["status"] = status.clone();
                if let Some(given) = given {
                    group["metadata"]["annotations"]["ramendr.openshift.io/epoch"] = json!(given);
                }
            });
            if let Some(epoch) = read {
                let reading = Reading { epoch, ..Reading::default() };
                world.read.answer = Some(("u/3/east".into(), reading, now()));
            }
            let told = match judge(&world, now()) {
                Judged::Holds(epoch) => format!("holds {epoch}"),
                Judged::Act(Effect::TakeEpoch(epoch)) => format!("takes {epoch}"),
                Judged::Act(Effect::YieldEpoch(epoch)) => format!("yields {epoch}"),
                Judged::Act(_) => "reads".to_owned(),
                Judged::Waits(why, _) => why.reason(),
            };
            assert_eq!(told, expected, "{rule}");
        };
    let none = json!({});
    check("stores are read before a role is taken", "primary", None, none.clone(), None, "reads");
    check("the first", "primary", None, none.clone(), Some(0), "takes 1");
    check("after others", "primary", None, none.clone(), Some(4), "takes 5");
    check("after what was seen here", "primary", None, json!({"epoch": 7}), Some(4), "takes 8");
    check("given", "primary", Some("9"), none.clone(), Some(4), "takes 9");
    check("given and held", "primary", Some("9"), json!({"epoch": 9, "primaryEpoch": 9}), None, "holds 9");
    check("given anew", "primary", Some("10"), json!({"epoch": 9, "primaryEpoch": 9}), None, "takes 10");
    check("lower than a record", "primary", Some("3"), none.clone(), Some(4), "EpochRefused");
    check(
        "lower than seen",
        "primary",
        Some("3"),
        json!({"epoch": 4, "primaryEpoch": 4}),
        None,
        "EpochRefused",
    );
    check("gone missing", "primary", None, json!({"epoch": 9, "primaryEpoch": 9}), None, "holds 9");
    check("no number", "primary", Some("soon"), none.clone(), Some(0), "EpochUnreadable");
    check("not above zero", "primary", Some("0"), none.clone(), Some(0), "EpochUnreadable");
    check("a secondary yields", "secondary", None, json!({"epoch": 2, "primaryEpoch": 2}), None, "yields 2");
    check("a secondary learns", "secondary", Some("5"), json!({"epoch": 2}), None, "yields 5");
    check(
        "a secondary is told an old one",
        "secondary",
        Some("1"),
        json!({"epoch": 2}),
        None,
        "EpochRefused",
    );
    check("a secondary rests", "secondary", None, json!({"epoch": 2}), None, "holds 2");
}

#[test]
fn d4_a_claim_is_demoted_at_rest_and_for_a_relocation_when_deleted() {
    let check = |action: Option<&str>, users: &[&str], going: bool, expected: &str| {
        let world = world(|group| group["spec"]["action"] = json!(action));
        let mut claim = seen(claim(|claim| {
            if going {
                claim["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
            }
        }));
        claim.users = users.iter().map(|user| (*user).to_owned()).collect();
        let told = may_demote(&world, &claim).map_or_else(|why| why.reason(), |()| "may".to_owned());
        assert_eq!(told, expected, "{action:?} {users:?} {going}");
    };
    check(Some("Relocate"), &[], true, "may");
    check(Some("Relocate"), &[], false, "NotDeleted");
    check(None, &[], false, "NotDeleted");
    check(Some("Failover"), &[], false, "may");
    check(Some("Failover"), &["pod a"], true, "InUse");
    check(Some("Relocate"), &["node n"], true, "InUse");
}

#[test]
fn a_drivers_word_counts_for_the_wish_it_speaks_of() {
    let check = |rule: &str, role: ReplicationState, status: Value, expected: &str| {
        let replication: VolumeReplication = serde_json::from_value(json!({
            "metadata": { "name": "one", "generation": 2 },
            "spec": { "volumeReplicationClass": "c", "replicationState": role.as_str(), "dataSource": { "kind": "PersistentVolumeClaim", "name": "one" } },
            "status": status,
        }))
        .unwrap();
        let told = match word(&replication, &role) {
            Word::Done => "done",
            Word::Filling => "filling",
            Word::NotYet(_) => "not yet",
            Word::Refused(_) => "refused",
        };
        assert_eq!(told, expected, "{rule}");
    };
    let said = |type_: &str, status: &str, generation: i64| {
        json!({ "type": type_, "status": status, "observedGeneration": generation, "reason": "R", "message": "m",
            "lastTransitionTime": "2030-01-01T00:00:00Z" })
    };
    let all = |state: &str, generation: i64, conditions: Value| json!({ "state": state, "observedGeneration": generation, "conditions": conditions });
    let completed = said("Completed", "True", 2);
    check("nothing said", ReplicationState::Primary, json!({}), "not yet");
    check("an old word", ReplicationState::Primary, all("Primary", 1, json!([completed])), "not yet");
    check("promoted", ReplicationState::Primary, all("Primary", 2, json!([completed])), "done");
    check(
        "D20: completed, and not primary",
        ReplicationState::Primary,
        all("Secondary", 2, json!([completed])),
        "not yet",
    );
    check(
        "an old condition",
        ReplicationState::Primary,
        all("Primary", 2, json!([said("Completed", "True", 1)])),
        "not yet",
    );
    check(
        "refused",
        ReplicationState::Primary,
        all("Unknown", 2, json!([said("Validated", "False", 2)])),
        "refused",
    );
    check(
        "D21: an old refusal",
        ReplicationState::Primary,
        all("Primary", 2, json!([said("Validated", "False", 1), completed])),
        "done",
    );
    let pair = |degraded: &str, resyncing: &str| {
        json!([completed, said("Degraded", degraded, 2), said("Resyncing", resyncing, 2)])
    };
    check("filling", ReplicationState::Secondary, all("Secondary", 2, pair("True", "True")), "filling");
    check("all there", ReplicationState::Secondary, all("Secondary", 2, pair("False", "False")), "done");
    check(
        "demoted, not resynced",
        ReplicationState::Secondary,
        all("Secondary", 2, json!([completed])),
        "not yet",
    );
    check(
        "all there, and still primary",
        ReplicationState::Secondary,
        all("Primary", 2, pair("False", "False")),
        "not yet",
    );
}

#[test]
fn what_does_not_hold_together_is_refused_and_nothing_is_done() {
    let check = |change: fn(&mut Value), expected: Option<&str>| {
        let world = world(change);
        let why = refused(&world).map(|why| why.reason());
        assert_eq!(why.as_deref(), expected);
        if expected.is_some() {
            assert!(decide(&world, now()).why().is_some(), "it waits and does nothing");
        }
    };
    check(|_| {}, None);
    check(|g| g["spec"]["replicationState"] = json!("maybe"), Some("FailedValidation"));
    check(|g| g["spec"]["async"] = json!(null), Some("FailedValidation"));
    check(|g| drop(g.as_object_mut().unwrap().remove("spec")), Some("FailedValidation"));
    check(|g| g["spec"]["dryRun"] = json!(true), Some("Unsupported"));
    check(|g| g["spec"]["protectedNamespaces"] = json!(["other"]), Some("Unsupported"));
    // The name is the value of a label on all that belongs to the group.
    check(|g| g["metadata"]["name"] = json!("n".repeat(63)), None);
    check(|g| g["metadata"]["name"] = json!("n".repeat(64)), Some("Unsupported"));
    check(
        |g| {
            g["spec"]["pvcSelector"] = json!({});
            g["spec"]["kubeObjectProtection"] = json!({"recipeRef": {"name": "r"}});
        },
        Some("Unsupported"),
    );
}

#[test]
fn r7_claims_of_a_status_without_namespaces_get_the_groups() {
    let mut world = world(|group| {
        group["spec"]["replicationState"] = json!("secondary");
        group["status"] =
            json!({ "epoch": 1, "protectedPVCs": [{ "name": "one", "labels": {}, "annotations": {} }] });
    });
    world.claims = vec![seen(claim(|_| {}))];
    let shown = lifeboat_protect::status::Telling::of(&world, now()).done();
    assert_eq!(shown.protected_pvcs[0].namespace.as_deref(), Some("app"), "R7");
    assert_eq!(shown.observed_generation, Some(3), "R7");
}

#[test]
fn a_primary_whose_driver_sends_nothing_says_so() {
    let said = |synced: bool, replicating: Option<&str>| {
        let mut world = world(|_| {});
        world.claims = vec![protected(|_| {})];
        replication(&mut world, "primary", |one| {
            if let Some(status) = replicating {
                let condition = json!({ "type": "Replicating", "status": status, "observedGeneration": 2,
                    "reason": "R", "message": "the peer is primary", "lastTransitionTime": "2030-01-01T00:00:00Z" });
                one["status"]["conditions"].as_array_mut().unwrap().push(condition);
            }
            if synced {
                one["status"]["lastSyncTime"] = json!("2030-01-01T00:00:00Z");
            }
        });
        let way = Way {
            path: Path::Replicated,
            class: Some("five".to_owned()),
            storage_id: None,
            replication_id: None,
            shortfall: None,
        };
        let mut plan = Plan::default();
        replicated::primary(&world, now(), &mut plan, &[(&world.claims[0], way)], "");
        let protected = plan.verdicts["one"].said["DataProtected"].clone();
        let waits = plan.waits.iter().any(|(why, _)| why.to_string().contains("the peer is primary"));
        (protected.reason, protected.message.contains("the peer is primary"), waits)
    };
    assert_eq!(said(false, None), ("Replicating", false, false), "not every driver tells");
    assert_eq!(said(true, Some("True")), ("Replicating", false, false));
    assert_eq!(
        said(false, Some("False")),
        ("Progressing", true, true),
        "a hub takes Replicating for protected"
    );
    assert_eq!(said(true, Some("False")), ("Replicating", false, true), "it is late in time");
}
