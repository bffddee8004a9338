//! What is refused, and what is marked before anything is done.

use super::{Changes as _, check, deployed, edit, new};
use lifeboat_hub::drpc::decide::decide;
use lifeboat_hub::drpc::world::World;
use serde_json::json;

#[track_caller]
fn refused(change: impl FnOnce(&mut World), reason: &str) {
    let world = deployed().with(change);
    check(&world, &format!("wait {reason} | Deployed/-"));
    let status = decide(&world, super::now()).status.unwrap();
    let available = status.conditions.iter().find(|one| one.type_ == "Available").unwrap();
    assert_eq!(available.status, "False");
    assert!(!available.message.is_empty());
}

/// Refused, while what was decided last is carried out: an application that is deployed is not let down by a word.
#[track_caller]
fn limited(change: impl FnOnce(&mut World), reason: &str) {
    let world = deployed().with(change);
    check(&world, &format!("wait {reason} | Deployed/Completed"));
    check(&world.placed(&[]), "Place [east]");
}

#[test]
fn a_placement_must_be_one_and_left_to_us() {
    refused(|world| world.placement = None, "PlacementMissing");
    refused(
        |world| {
            world.rule = Some(super::read(
                json!({ "metadata": { "name": "web" }, "spec": { "schedulerName": "ramen", "clusterReplicas": 1 } }),
            ));
        },
        "Invalid",
    );
    for text in ["false", ""] {
        refused(
            |world| {
                edit(world.placement.as_mut().unwrap(), |one| {
                    let notes = one.metadata.annotations.as_mut().unwrap();
                    let key = "cluster.open-cluster-management.io/experimental-scheduling-disable";
                    notes.remove(key);
                    if !text.is_empty() {
                        notes.insert(key.into(), text.into());
                    }
                });
            },
            "Invalid",
        );
    }
    for number in [None, Some(0), Some(2)] {
        refused(
            |world| edit(world.placement.as_mut().unwrap(), |one| one.spec.number_of_clusters = number),
            "Invalid",
        );
    }
    refused(
        |world| edit(&mut world.drpc, |drpc| drpc.spec.placement_ref.namespace = Some("other".into())),
        "Invalid",
    );
}

#[test]
fn a_rule_must_name_our_scheduler_and_one_cluster() {
    for (scheduler, replicas) in [("default", 1), ("ramen", 2)] {
        refused(
            |world| {
                world.placement = None;
                let spec = json!({ "schedulerName": scheduler, "clusterReplicas": replicas });
                world.rule = Some(super::read(json!({ "metadata": { "name": "web" }, "spec": spec })));
            },
            "Invalid",
        );
    }
}

#[test]
fn what_is_not_served_is_refused() {
    let asked = [
        json!({ "protectedNamespaces": ["a"] }),
        json!({ "kubeObjectProtection": { "recipeRef": { "name": "r" } } }),
        json!({ "kubeObjectProtection": {} }),
    ];
    check(&deployed().asks(json!({ "dryRun": true })), "wait Unsupported | Deployed/-");
    for spec in asked {
        check(&deployed().asks(spec.clone()), "wait Unsupported | Deployed/Completed");
        check(&new().asks(spec), "wait Unsupported | -/-");
    }
    limited(
        |world| {
            edit(&mut world.drpc, |drpc| {
                drpc.metadata
                    .labels
                    .as_mut()
                    .unwrap()
                    .insert("ramendr.openshift.io/global-vgr".into(), "g".into());
            });
        },
        "Unsupported",
    );
}

#[test]
fn a_drill_is_not_carried_out_by_leaving_out_that_it_is_one() {
    let asks = json!({ "action": "Failover", "failoverCluster": "west" });
    let drill = deployed().asks(asks.clone()).asks(json!({ "dryRun": true }));
    check(&drill, "wait Unsupported | Deployed/-");
    let shown = decide(&drill, super::now()).status.unwrap();
    assert_eq!(shown.refused_drill.as_deref(), Some("Failover to west"));
    let after = |spec: serde_json::Value| {
        let world = deployed().asks(spec);
        world.with(|world| edit(&mut world.drpc, |drpc| drpc.status = Some(shown.clone())))
    };
    let left = after(asks.clone());
    check(&left, "wait DrillLeft | Deployed/Completed");
    // It stays so, whatever else is said.
    let still = decide(&left, super::now()).status.unwrap();
    assert_eq!(still.refused_drill.as_deref(), Some("Failover to west"));
    // Taken away, it is forgotten; another action is an action.
    let none = decide(&after(json!({})), super::now()).status.unwrap();
    assert_eq!(none.refused_drill, None);
    check(
        &after(json!({ "action": "Relocate", "preferredCluster": "west" })),
        "PutGroup east primary prepare | Relocating/PreparingFinalSync",
    );
    check(&deployed().asks(asks), "Commission 2 west Failover, on record | FailingOver/FailingOverToCluster");
}

#[test]
fn a_policy_must_be_there_and_validated() {
    refused(|world| world.policy = None, "PolicyNotReady");
    limited(|world| edit(world.policy.as_mut().unwrap(), |policy| policy.status = None), "PolicyNotReady");
    limited(
        |world| {
            edit(world.policy.as_mut().unwrap(), |policy| {
                policy.status.as_mut().unwrap().conditions[0].status = "False".into();
            });
        },
        "PolicyNotReady",
    );
    limited(
        |world| {
            edit(world.policy.as_mut().unwrap(), |policy| {
                policy.metadata.deletion_timestamp =
                    Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(super::now()));
            });
        },
        "PolicyNotReady",
    );
    refused(
        |world| edit(world.policy.as_mut().unwrap(), |policy| policy.spec.dr_clusters.push("north".into())),
        "Invalid",
    );
}

#[test]
fn clusters_must_be_the_policys() {
    for spec in [
        json!({ "preferredCluster": null }),
        json!({ "preferredCluster": "" }),
        json!({ "preferredCluster": "eas" }),
        json!({ "action": "Failover" }),
        json!({ "action": "Failover", "failoverCluster": "east-1" }),
    ] {
        check(&deployed().asks(spec.clone()), "wait Invalid | Deployed/Completed");
        check(&new().asks(spec), "wait Invalid | -/-");
    }
}

#[test]
fn what_belongs_to_another_is_left_alone() {
    refused(
        |world| {
            edit(world.placement.as_mut().unwrap(), |one| {
                let notes = one.metadata.annotations.as_mut().unwrap();
                notes.insert("drplacementcontrol.ramendr.openshift.io/drpc-name".into(), "other".into());
            });
        },
        "Conflict",
    );
    refused(
        |world| {
            edit(world.sites.get_mut("west").unwrap().work.as_mut().unwrap(), |work| {
                let notes = work.metadata.annotations.as_mut().unwrap();
                notes.insert("drplacementcontrol.ramendr.openshift.io/drpc-namespace".into(), "bank".into());
            });
        },
        "Conflict",
    );
}

#[test]
fn everything_is_marked_first() {
    check(&new().with(|world| edit(&mut world.drpc, |drpc| drpc.metadata.finalizers = None)), "Own");
    check(&new().with(|world| edit(&mut world.drpc, |drpc| drpc.metadata.labels = None)), "Own");
    check(&new().with(|world| edit(&mut world.drpc, |drpc| drpc.metadata.owner_references = None)), "Own");
    check(
        &new().with(|world| edit(world.placement.as_mut().unwrap(), |one| one.metadata.finalizers = None)),
        "OwnPlacement",
    );
    check(&new().with(|world| world.sites.get_mut("west").unwrap().view = None), "Watch west");
}
