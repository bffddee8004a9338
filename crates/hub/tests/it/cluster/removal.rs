//! Forgetting a cluster.

use crate::cluster::plain::{now, settle, silent, work_mut, world};
use lifeboat_engine::{Next, ObjectKey};
use lifeboat_hub::cluster::decide::{Effect, decide};
use lifeboat_hub::cluster::manifests::{CONFIG_WORK, OPERATOR_WORK, ROLES_WORK, STORES_WORK};
use lifeboat_hub::cluster::why::Wait;
use lifeboat_hub::cluster::world::{Agent, World};
use serde_json::json;
use std::sync::Arc;

/// A cluster that was in use, with OCM's agent, and is to be forgotten.
fn leaving() -> World {
    let mut world = world(json!({}));
    world.agent = Agent::Others;
    settle(&mut world);
    let cluster = Arc::make_mut(&mut world.cluster);
    cluster.metadata.deletion_timestamp = serde_json::from_value(json!("2030-01-01T00:00:00Z")).unwrap();
    world.policies.clear();
    world
}

fn next(world: &World) -> Next<Effect, Wait> {
    decide(world, now()).next
}

fn taken_back(next: &Next<Effect, Wait>) -> Vec<&str> {
    let Next::Do(effects) = next else { return Vec::new() };
    let names = effects.iter().filter_map(|effect| match effect {
        Effect::TakeBack { name, .. } => Some(name.as_str()),
        _ => None,
    });
    names.collect()
}

#[test]
fn a_cluster_that_policies_name_stays() {
    let mut world = leaving();
    world.policies = crate::cluster::plain::world(json!({})).policies;
    let decision = decide(&world, now());
    assert_eq!(decision.why(), Some(&Wait::InUse(vec!["pair".into()])));
    let status = decision.status.unwrap();
    let said = status.conditions.iter().find(|condition| condition.type_ == "Deleted").unwrap();
    assert_eq!((said.status.as_str(), said.reason.as_str()), ("False", "InUse"));
    assert!(said.message.contains("pair"));
    // One that is being deleted itself still stands in the way: its clean-up may need the cluster.
    world.policies[0].going = true;
    assert!(matches!(next(&world), Next::Wait { .. }));
}

#[test]
fn everything_is_taken_back_roles_last_then_views_then_the_finalizer() {
    let mut world = leaving();
    assert_eq!(taken_back(&next(&world)), [CONFIG_WORK, OPERATOR_WORK, STORES_WORK]);
    for work in [CONFIG_WORK, OPERATOR_WORK, STORES_WORK] {
        work_mut(&mut world, "east", work, |work| {
            work.metadata.deletion_timestamp = serde_json::from_value(json!("2030-01-01T00:00:00Z")).unwrap();
        });
    }
    let waits = next(&world);
    assert!(matches!(&waits, Next::Wait { why: Wait::TakingBack(left), .. } if left.len() == 3), "{waits:?}");
    world.works.retain(|key, _| key.name == ROLES_WORK);
    assert_eq!(taken_back(&next(&world)), [ROLES_WORK]);
    world.works.clear();
    assert!(matches!(&next(&world), Next::Do(effects) if matches!(effects[0], Effect::StopAsking { .. })));
    world.views.clear();
    assert_eq!(next(&world), Next::Do(vec![Effect::Release]));
    Arc::make_mut(&mut world.cluster).metadata.finalizers = None;
    assert_eq!(next(&world), Next::Settled);
}

#[test]
fn a_dead_cluster_is_not_waited_for() {
    let mut world = leaving();
    world.reaches.insert("east".into(), silent("east"));
    world.views.clear();
    for _ in 0..2 {
        let asked: Vec<ObjectKey> = match next(&world) {
            Next::Do(effects) => effects
                .iter()
                .filter_map(|effect| match effect {
                    Effect::TakeBack { cluster, name } => Some(ObjectKey::new(cluster.clone(), name.clone())),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        };
        assert!(!asked.is_empty(), "what is to go is on record first");
        for key in asked {
            work_mut(&mut world, &key.namespace, &key.name, |work| {
                work.metadata.deletion_timestamp =
                    serde_json::from_value(json!("2030-01-01T00:00:00Z")).unwrap();
            });
        }
    }
    assert_eq!(next(&world), Next::Do(vec![Effect::Release]));
}

#[test]
fn only_its_own_works_go() {
    // Works of another cluster are not even in this one's world; a fence for it on its peer is.
    let mut world = leaving();
    let fence = lifeboat_hub::works::work("west", "east-west-nf-mw".into(), Default::default(), []);
    world.works.insert(ObjectKey::of(&fence), Arc::new(fence));
    let Next::Do(effects) = next(&world) else { panic!() };
    assert!(effects.contains(&Effect::TakeBack { cluster: "west".into(), name: "east-west-nf-mw".into() }));
}
