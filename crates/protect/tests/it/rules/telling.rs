//! What a group's status says beside its data: hooks, and claims that nobody names any more.

use super::furniture::*;
use super::{now, world};
use lifeboat_api::ramen::VolumeReplicationGroupStatus;
use lifeboat_engine::conditions::find;
use lifeboat_protect::decide::plan::Plan;
use lifeboat_protect::decide::{demote, receive};
use lifeboat_protect::status::Telling;
use lifeboat_protect::world::MoverKey;
use serde_json::{Value, json};

#[test]
fn hooks_are_not_left_open_where_there_are_none() {
    let check = |rule: &str, change: fn(&mut Value), status: &str, reason: &str, named: &str| {
        let world = world(change);
        let shown = Telling::of(&world, now()).told(&mut Plan::default(), None).done();
        let said = find(&shown.conditions, "HooksReady").unwrap();
        assert_eq!((said.status.as_str(), said.reason.as_str()), (status, reason), "{rule}");
        assert!(said.message.contains(named), "{rule}: {}", said.message);
    };
    check("no recipe", |_| {}, "True", "Unused", "no recipe");
    let captured: fn(&mut Value) = |group| group["spec"]["kubeObjectProtection"] = json!({});
    check("objects without a recipe", captured, "True", "Unused", "no recipe");
    let recipe: fn(&mut Value) =
        |group| group["spec"]["kubeObjectProtection"] = json!({ "recipeRef": { "name": "r" } });
    check("a recipe, whose hooks are not run", recipe, "Unknown", "Error", "recipe r");
}

#[test]
fn a_secondary_tells_of_received_claims_as_long_as_they_are_named() {
    let shown = |wishes: Value| -> VolumeReplicationGroupStatus {
        let mut world = world(|group| {
            group["spec"]["replicationState"] = json!("secondary");
            group["spec"]["volSync"] = json!({ "rdSpec": wishes });
            group["status"]["protectedPVCs"] = json!([{ "name": "one", "namespace": "app", "protectedByVolSync": true, "labels": {}, "annotations": {} }]);
        });
        world.mover_key = MoverKey::There;
        receiver(&mut world, "one", |_| {});
        let mut plan = Plan::default();
        demote::secondary(&world, now(), &mut plan);
        receive::secondary(&world, now(), &mut plan);
        Telling::of(&world, now()).told(&mut plan, None).done()
    };
    let named = shown(json!([{ "protectedPVC": { "name": "one", "storageClassName": "fast" } }]));
    assert_eq!(named.protected_pvcs.len(), 1);
    assert!(named.protected_pvcs[0].protected_by_vol_sync);
    assert!(shown(json!([])).protected_pvcs.is_empty());
}
