//! Each law notices when it is broken: a walk that keeps them all, with one thing changed behind the hub's back.

use super::{Turn, Walk, steady};
use crate::drpc::rules::{Changes as _, deployed, edit, new, now};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lifeboat_api::ramen::{ReplicationState, VolumeReplicationGroup};
use lifeboat_hub::drpc::commission::{Act, Commission};
use lifeboat_hub::drpc::world::Chosen;
use lifeboat_hub::works;
use serde_json::json;
use std::sync::Arc;

const EPOCH: &str = "ramendr.openshift.io/epoch";

/// An application at rest, deployed on east.
fn at_rest() -> Walk {
    let mut walk = Walk::of(deployed());
    walk.go(&[]).unwrap();
    walk
}

#[track_caller]
fn breaks(law: &str, mut walk: Walk, change: impl FnOnce(&mut Walk)) {
    walk.holds(true).unwrap();
    change(&mut walk);
    let why = walk.holds(true).expect_err(law);
    assert!(why.starts_with(law), "{law}: {why}");
}

/// What a cluster is asked for.
fn intent<'a>(walk: &'a mut Walk, cluster: &str) -> &'a mut VolumeReplicationGroup {
    walk.world.sites.get_mut(cluster).unwrap().intent.as_mut().unwrap()
}

fn note(walk: &mut Walk, cluster: &str, key: &str, value: &str) {
    let notes = intent(walk, cluster).metadata.annotations.get_or_insert_default();
    notes.insert(key.to_owned(), value.to_owned());
}

fn status(walk: &mut Walk, change: impl FnOnce(&mut lifeboat_api::ramen::DRPlacementControlStatus)) {
    edit(&mut walk.world.drpc, |drpc| change(drpc.status.get_or_insert_default()));
}

/// Gives out an epoch, as the hub would.
fn commission(walk: &mut Walk, epoch: i64, holder: &str, act: Act) {
    let given = Commission { epoch, holder: holder.to_owned(), act };
    walk.note(given.notes());
}

/// Gives a cluster its role at an epoch, as the hub would.
fn assign(walk: &mut Walk, cluster: &str, role: ReplicationState, epoch: i64, holder: &str, act: Act) {
    let given = Commission { epoch, holder: holder.to_owned(), act };
    let group = intent(walk, cluster);
    group.spec.replication_state = role;
    group.metadata.annotations.get_or_insert_default().extend(given.notes());
}

#[test]
fn roles() {
    breaks("S1", at_rest(), |walk| intent(walk, "west").spec.replication_state = ReplicationState::Primary);
    breaks("S2", at_rest(), |walk| walk.clusters.get_mut("west").unwrap().reigns.push(1));
    breaks("S3", at_rest(), |walk| note(walk, "west", EPOCH, "0"));
    breaks("S3 S26", at_rest(), |walk| note(walk, "west", EPOCH, "9"));
    breaks("S3 S26", at_rest(), |walk| {
        let given = Commission { epoch: 1, holder: "west".into(), act: Act::Deploy };
        let notes = intent(walk, "west").metadata.annotations.get_or_insert_default();
        notes.extend(given.notes());
    });
    breaks("S3", at_rest(), |walk| {
        walk.note([(EPOCH.to_owned(), "3".to_owned())].into());
        walk.holds(true).unwrap();
        walk.note([(EPOCH.to_owned(), "2".to_owned())].into());
    });
}

/// East has stepped down at epoch 2, and west is about to be told.
fn moved(act: Act, action: &str) -> Walk {
    let mut walk = steady(json!({ "action": action, "failoverCluster": "west", "preferredCluster": "west" }));
    walk.holds(true).unwrap();
    status(&mut walk, |status| {
        status.phase = Some(if act == Act::Failover { "FailingOver" } else { "Relocating" }.into());
        status.last_failover = serde_json::from_value(json!({
            "time": "2030-01-01T12:00:00Z", "dataUntil": "2030-01-01T11:59:00Z", "atMostSeconds": 60,
        }))
        .unwrap();
    });
    walk.holds(false).unwrap();
    commission(&mut walk, 2, "west", act);
    assign(&mut walk, "east", ReplicationState::Secondary, 2, "west", act);
    walk.holds(false).unwrap();
    walk
}

#[test]
fn moves() {
    let promote =
        |act: Act| move |walk: &mut Walk| assign(walk, "west", ReplicationState::Primary, 2, "west", act);
    // The source is primary still, or has written since its last copy.
    breaks("S6", moved(Act::Relocate, "Relocate"), promote(Act::Relocate));
    let quiet = || {
        let mut walk = moved(Act::Relocate, "Relocate");
        for group in walk.clusters.get_mut("east").unwrap().groups.values_mut() {
            group.spec.replication_state = ReplicationState::Secondary;
        }
        walk
    };
    breaks("S6", quiet(), promote(Act::Relocate));
    let mut copied = quiet();
    let east = copied.clusters.get_mut("east").unwrap();
    east.cut = Some(east.written);
    promote(Act::Relocate)(&mut copied);
    copied.holds(false).unwrap();
    // Who takes over has settled.
    let failing = || steady(json!({ "action": "Failover", "failoverCluster": "west" }));
    breaks("S5", failing(), |walk| {
        for group in walk.clusters.get_mut("west").unwrap().groups.values_mut() {
            group.status.as_mut().unwrap().state = Some("Unknown".into());
        }
        commission(walk, 2, "west", Act::Failover);
    });
    breaks("S5", failing(), |walk| {
        walk.clusters.get_mut("west").unwrap().groups.clear();
        commission(walk, 2, "west", Act::Failover);
    });
    // It is placed where its data is.
    breaks("S25", moved(Act::Failover, "Failover"), |walk| {
        walk.world = walk.world.clone().placed(&[Chosen::home("west")]);
    });
    // And said to be there when it is.
    breaks("S13", moved(Act::Failover, "Failover"), |walk| {
        status(walk, |status| status.phase = Some("FailedOver".into()));
    });
}

#[test]
fn data() {
    breaks("S5", at_rest(), |walk| note(walk, "east", "ramendr.openshift.io/may-be-empty", "true"));
    breaks("S5", at_rest(), |walk| {
        let east = intent(walk, "east");
        east.spec.pvc_selector = serde_json::from_value(json!({ "matchLabels": { "half": "1" } })).unwrap();
    });
    breaks("S5", at_rest(), |walk| note(walk, "west", "ramendr.openshift.io/first-deployment", "true"));
    let failing = || steady(json!({ "action": "Failover", "failoverCluster": "west" }));
    let tells = |loss: serde_json::Value| {
        move |walk: &mut Walk| {
            status(walk, |status| status.last_failover = serde_json::from_value(loss).unwrap());
            commission(walk, 2, "west", Act::Failover);
        }
    };
    breaks("S7", failing(), tells(json!(null)));
    let (time, until) = ("2030-01-01T12:00:00Z", "2030-01-01T11:59:00Z");
    breaks("S7", failing(), tells(json!({ "time": time, "dataUntil": time, "atMostSeconds": 0 })));
    breaks("S7", failing(), tells(json!({ "time": time, "dataUntil": until, "atMostSeconds": 5 })));
    breaks("S7", failing(), tells(json!({ "time": time, "atMostSeconds": 5 })));
    breaks(
        "S7",
        failing(),
        tells(json!({ "time": "2031-01-01T12:00:00Z", "dataUntil": until, "atMostSeconds": 60 })),
    );
    let mut honest = failing();
    honest.holds(true).unwrap();
    tells(json!({ "time": time, "dataUntil": until, "atMostSeconds": 60 }))(&mut honest);
    honest.holds(false).unwrap();
    breaks("S13 S27", at_rest(), |walk| status(walk, |status| status.phase = Some("Relocated".into())));
    breaks("S25", at_rest(), |walk| {
        walk.world = walk.world.clone().placed(&[Chosen::home("east"), Chosen::home("west")]);
    });
}

#[test]
fn deletions() {
    let going = |walk: &mut Walk, cluster: &str| {
        walk.turn(&Turn::Deletes);
        let site = walk.world.sites.get_mut(cluster).unwrap();
        edit(site.work.as_mut().unwrap(), |work| work.metadata.deletion_timestamp = Some(Time(now())));
    };
    breaks("S10", at_rest(), |walk| going(walk, "east"));
    breaks("S10", at_rest(), |walk| {
        let site = walk.world.sites.get_mut("west").unwrap();
        (site.work, site.intent) = (None, None);
        walk.world = walk.world.clone().placed(&[]);
        going(walk, "east");
    });
}

#[test]
fn words_that_were_not_said() {
    let drill = json!({ "dryRun": true, "action": "Failover", "failoverCluster": "west" });
    let drilling = || {
        let mut walk = at_rest();
        walk.turn(&Turn::Asks(drill.clone()));
        walk.holds(true).unwrap();
        walk
    };
    breaks("S28", drilling(), |walk| walk.world = walk.world.clone().placed(&[]));
    breaks("S28", drilling(), |walk| {
        note(walk, "west", "ramendr.openshift.io/x", "y");
        let group = intent(walk, "west").clone();
        walk.put("west", group);
    });
    breaks("S28", drilling(), |walk| commission(walk, 2, "west", Act::Failover));
    breaks("S29", drilling(), |walk| {
        walk.turn(&Turn::Asks(json!({ "dryRun": false })));
        walk.holds(true).unwrap();
        commission(walk, 2, "west", Act::Failover);
    });
    breaks("S29", at_rest(), |walk| commission(walk, 2, "west", Act::Failover));
    breaks("S29", steady(json!({ "action": "Failover", "failoverCluster": "west" })), |walk| {
        walk.turn(&Turn::Asks(json!({ "action": null })));
        walk.holds(true).unwrap();
        commission(walk, 2, "west", Act::Failover);
    });
}

#[test]
fn memory() {
    let lost = || {
        let mut walk = at_rest();
        walk.turn(&Turn::Forgets { keeps_notes: true });
        walk.holds(false).unwrap();
        walk
    };
    breaks("S30", lost(), |walk| status(walk, |status| status.phase = Some("Deploying".into())));
    breaks("S30", lost(), |walk| commission(walk, 2, "east", Act::Deploy));
    breaks("S30", lost(), |walk| walk.world = walk.world.clone().placed(&[Chosen::home("west")]));
    let put = |walk: &mut Walk, role: &str, going: bool| {
        let mut group = walk.clusters["west"].groups.values().next().unwrap().clone();
        group.spec.replication_state = role.into();
        walk.put("west", group);
        let site = walk.world.sites.get_mut("west").unwrap();
        edit(site.work.as_mut().unwrap(), |work| {
            work.metadata.deletion_timestamp = going.then(|| Time(now()));
        });
    };
    breaks("S30", lost(), |walk| put(walk, "primary", false));
    breaks("S30", lost(), |walk| put(walk, "secondary", true));
    let mut taken_up = lost();
    put(&mut taken_up, "secondary", false);
    taken_up.holds(false).unwrap();
    // Nobody has a group, and no store was asked.
    let mut fresh = Walk::of(new());
    fresh.world.books.reading = None;
    breaks("S30", fresh, |walk| status(walk, |status| status.phase = Some("Deploying".into())));
}

#[test]
fn owners_and_namespaces() {
    breaks("S32", at_rest(), |walk| {
        let site = walk.world.sites.get_mut("west").unwrap();
        edit(site.work.as_mut().unwrap(), |work| {
            let notes = work.metadata.annotations.get_or_insert_default();
            notes.insert("drplacementcontrol.ramendr.openshift.io/drpc-name".into(), "other".into());
        });
    });
    breaks("S32", at_rest(), |walk| {
        let east = walk.world.sites.get_mut("east").unwrap();
        let mut group = (**east.seen.found().unwrap()).clone();
        let said = json!({
            "type": "NoClusterDataConflict", "status": "False", "reason": "R", "message": "", "lastTransitionTime": "2030-01-01T00:00:00Z",
        });
        group.status.as_mut().unwrap().conditions.push(serde_json::from_value(said).unwrap());
        east.seen = lifeboat_hub::views::Seen::Found(Arc::new(group));
    });
    let sends = |manifest: serde_json::Value| {
        move |walk: &mut Walk| {
            let site = walk.world.sites.get_mut("west").unwrap();
            let notes = site.work.as_ref().unwrap().metadata.annotations.clone().unwrap();
            site.space_work = Some(Arc::new(works::work("west", "w".into(), notes, [manifest])));
        }
    };
    breaks(
        "S33",
        at_rest(),
        sends(json!({ "kind": "Pod", "metadata": { "name": "x", "namespace": "shop" } })),
    );
    breaks(
        "S33",
        at_rest(),
        sends(json!({ "kind": "Secret", "metadata": { "name": "x", "namespace": "bank" } })),
    );
    breaks("S33", at_rest(), sends(json!({ "kind": "Namespace", "metadata": { "name": "bank" } })));
    breaks("S33", at_rest(), |walk| {
        intent(walk, "west").spec.protected_namespaces = Some(vec!["bank".into()]);
    });
    breaks("S33", at_rest(), |walk| {
        let named = json!({ "rdSpec": [{ "protectedPVC": { "name": "data", "namespace": "bank" } }] });
        intent(walk, "west").spec.vol_sync = Some(serde_json::from_value(named).unwrap());
    });
}
