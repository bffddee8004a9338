//! What an older controller left: taken over where it is this group's, and removed with it.

use super::furniture::*;
use super::{now, world};
use lifeboat_protect::books::StoreState;
use lifeboat_protect::decide::classify::Way;
use lifeboat_protect::decide::plan::{Path, Plan};
use lifeboat_protect::decide::{decide, demote, replicated};
use lifeboat_protect::ledger::{LedgerError, Tried};
use lifeboat_protect::world::World;
use serde_json::{Value, json};

fn named(one: &mut Value) {
    one["metadata"]["labels"] = json!({ "volumereplicationgroups-owner": "web" });
}

fn owned_by(one: &mut Value, uid: &str) {
    one["metadata"]["labels"] = json!({});
    one["metadata"]["ownerReferences"] = json!([{ "apiVersion": "ramendr.openshift.io/v1alpha1",
        "kind": "VolumeReplicationGroup", "name": "web", "uid": uid }]);
}

fn owned(one: &mut Value) {
    owned_by(one, "u");
}

#[test]
fn a_replication_without_our_labels_is_taken_over_where_it_is_this_groups() {
    let check = |rule: &str, change: fn(&mut Value), expected: &str| {
        let (mut world, mut plan) = (world(|_| {}), Plan::default());
        world.claims = vec![protected(|_| {})];
        replication(&mut world, "primary", change);
        let way = Way {
            path: Path::Replicated,
            class: Some("five".to_owned()),
            storage_id: None,
            replication_id: None,
            shortfall: None,
        };
        replicated::primary(&world, now(), &mut plan, &[(&world.claims[0], way)], "");
        assert_eq!(planned(&plan), expected, "{rule}");
    };
    check("it has our labels", |_| {}, "");
    check("one label names the group", named, "TakeOver");
    check("the group is its owner", owned, "TakeOver");
    check("an earlier group of the name is its owner", |one| owned_by(one, "earlier"), "Foreign");
    let both: fn(&mut Value) = |one| {
        owned_by(one, "earlier");
        named(one);
    };
    check("and a label changes nothing about it", both, "Foreign");
    let other: fn(&mut Value) =
        |one| one["metadata"]["labels"] = json!({ "volumereplicationgroups-owner": "other" });
    check("one label names another group", other, "Foreign");
    let nobody: fn(&mut Value) = |one| one["metadata"]["labels"] = json!({});
    check("nobody says whose it is", nobody, "Foreign");
}

#[test]
fn and_so_it_is_on_a_secondary_and_where_the_group_is_deleted() {
    for change in [named, owned] {
        let mut there = world(|group| {
            group["spec"]["replicationState"] = json!("secondary");
            group["spec"]["action"] = json!("Failover");
        });
        there.claims = vec![protected(|_| {})];
        replication(&mut there, "primary", change);
        let mut plan = Plan::default();
        demote::secondary(&there, now(), &mut plan);
        assert_eq!(planned(&plan), "TakeOver");
        let mut going = deleted(json!({ "epoch": 1, "primaryEpoch": 1, "state": "Primary" }));
        going.claims = vec![protected(|_| {})];
        replication(&mut going, "primary", change);
        assert_eq!(decided(&decide(&going, now())), "TakeOver");
    }
}

/// A primary that is deleted with the order to end protection.
fn deleted(status: Value) -> World {
    world(|group| {
        group["metadata"]["deletionTimestamp"] = json!(GOING);
        group["metadata"]["annotations"][lifeboat_api::annotations::END_PROTECTION] = json!("true");
        group["status"] = status;
    })
}

#[test]
fn what_a_ramen_recorded_as_primary_is_removed_with_the_group() {
    let check = |rule: &str, status: Value, expected: &str| {
        assert_eq!(decided(&decide(&deleted(status), now())), expected, "{rule}");
    };
    check("it was primary here, and knows no epochs", json!({ "state": "Primary" }), "Erase");
    check("it was never primary here", json!({}), "Release");
    check("it was secondary here", json!({ "state": "Secondary" }), "Release");
    check("another cluster is primary by now", json!({ "state": "Primary", "epoch": 2 }), "Release");
    let mut world = deleted(json!({ "state": "Primary" }));
    let why = LedgerError::Superseded(1);
    let failed = Tried { why, substance: String::new(), since: now(), retry_at: now(), tries: 1 };
    world.stores.insert("east".into(), StoreState { failed: Some(failed), ..StoreState::default() });
    assert_eq!(decided(&decide(&world, now())), "Release", "a store shows that another cluster is primary");
}
