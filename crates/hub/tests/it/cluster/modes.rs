//! Maintenance modes: who needs them, how far they are, and when they go.

use crate::cluster::plain::{answers, settle, silent, world};
use lifeboat_api::ramen::{MaintenanceMode, VolumeReplicationGroup};
use lifeboat_engine::{Next, ObjectKey};
use lifeboat_hub::cluster::decide::modes::{is_active, needed};
use lifeboat_hub::cluster::why::Wait;
use lifeboat_hub::cluster::world::{Mode, World};
use lifeboat_hub::works;
use serde_json::{Value, json};

fn mode() -> Mode {
    Mode { provisioner: "csi".into(), target: "rep-1".into() }
}

fn failing_over() -> World {
    let mut world = world(json!({}));
    world.needs.modes.insert(mode());
    settle(&mut world);
    world
}

fn seen(world: &mut World, observed: i64, state: &str, activated: &str) {
    answers(
        world,
        "east",
        "rep-1-mmode-mcv",
        json!({
            "metadata": { "name": "rep-1", "generation": 2 },
            "spec": { "storageProvisioner": "csi", "targetID": "rep-1", "modes": ["Failover"] },
            "status": { "state": state, "observedGeneration": observed, "conditions": [{
                "type": "FailoverActivated", "status": activated, "reason": "R", "message": "",
                "lastTransitionTime": "2030-01-01T00:00:00Z",
            }] },
        }),
    );
}

#[test]
fn storage_is_asked_and_its_answer_shown() {
    let mut world = failing_over();
    let work = &world.works[&ObjectKey::new("east", "rep-1-mmode-mw")];
    assert!(work.metadata.labels.as_ref().unwrap().contains_key("ramendr.openshift.io/maintenancemodes"));
    let asked: MaintenanceMode = works::read(work).unwrap();
    assert_eq!(serde_json::to_value(&asked.spec.modes).unwrap(), json!(["Failover"]));
    assert_eq!(asked.spec.target_id.as_deref(), Some("rep-1"));
    let check = |world: &mut World, state: &str, active: bool| {
        let end = settle(world);
        let shown = &end.status.maintenance_modes;
        assert_eq!(shown[0].state.as_str(), state);
        assert_eq!(is_active(shown, &mode()), active);
        assert_eq!(matches!(end.why(), Some(Wait::ModesPending(_))), !active, "{:?}", end.why());
    };
    check(&mut world, "Unknown", false);
    seen(&mut world, 2, "Progressing", "False");
    check(&mut world, "Progressing", false);
    seen(&mut world, 1, "Completed", "True");
    check(&mut world, "Unknown", false);
    seen(&mut world, 2, "Completed", "True");
    check(&mut world, "Completed", true);
    world.reaches.insert("east".into(), silent("east"));
    check(&mut world, "Unknown", false);
}

#[test]
fn modes_do_not_depend_on_stores_or_surveys() {
    let mut world = world(json!({ "cidrs": ["no"] }));
    world.needs.modes.insert(mode());
    world.config = Err("no ConfigMap".into());
    world.managed.id = None;
    settle(&mut world);
    seen(&mut world, 2, "Completed", "True");
    let end = settle(&mut world);
    assert!(is_active(&end.status.maintenance_modes, &mode()));
    assert_eq!(end.says("Validated").0, "False");
}

#[test]
fn a_mode_goes_when_nobody_needs_it_and_not_while_somebody_may() {
    let mut world = failing_over();
    world.needs.modes.clear();
    world.needs.unknown.push("app/web".into());
    let end = settle(&mut world);
    assert!(world.works.contains_key(&ObjectKey::new("east", "rep-1-mmode-mw")));
    assert_eq!(end.status.maintenance_modes.len(), 1);
    assert!(matches!(end.why(), Some(Wait::NeedsUnknown(_))));
    world.needs.unknown.clear();
    let end = settle(&mut world);
    assert!(!world.works.contains_key(&ObjectKey::new("east", "rep-1-mmode-mw")));
    assert!(!world.views.contains_key(&ObjectKey::new("east", "rep-1-mmode-mcv")));
    assert_eq!((end.status.maintenance_modes.len(), end.decision.next), (0, Next::Settled));
}

#[test]
fn a_group_needs_what_its_claims_ask_for() {
    let group = |claims: Value| -> VolumeReplicationGroup {
        serde_json::from_value(json!({
            "metadata": { "name": "web" }, "spec": { "replicationState": "primary" },
            "status": { "protectedPVCs": claims },
        }))
        .unwrap()
    };
    let claim = |id: &str, modes: Value| json!({ "name": "a", "csiProvisioner": "csi", "replicationID": { "id": id, "modes": modes } });
    let check = |claims: Value, count: usize| assert_eq!(needed(&group(claims)).len(), count);
    check(json!([]), 0);
    check(json!([claim("rep-1", json!([]))]), 0);
    check(json!([claim("", json!(["Failover"]))]), 0);
    check(json!([claim("rep-1", json!(["Failover"])), claim("rep-1", json!(["Failover"]))]), 1);
    check(
        json!([claim("rep-1", json!(["Failover"])), claim("rep-2", json!(["Failover"])), { "name": "c" }]),
        2,
    );
}
