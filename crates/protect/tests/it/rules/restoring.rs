//! What a record brings back.

use super::furniture::*;
use super::{claim, now, world};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use lifeboat_api::annotations;
use lifeboat_engine::Why as _;
use lifeboat_protect::decide::plan::Plan;
use lifeboat_protect::decide::restore::restore;
use lifeboat_protect::decide::{epoch, records};
use lifeboat_protect::ledger::{Reading, Record, Seen};
use lifeboat_protect::restored;
use lifeboat_protect::world::World;
use serde_json::{Value, json};
use std::sync::Arc;

fn check(
    rule: &str,
    volumes: Vec<PersistentVolume>,
    claims: Vec<PersistentVolumeClaim>,
    fill: impl FnOnce(&mut World),
    expected: &str,
) {
    let mut world = world(|group| {
        group["spec"]["action"] = json!("Failover");
        group["status"] = json!({ "epoch": 1, "primaryEpoch": 1 });
    });
    fill(&mut world);
    let record = Record { epoch: 1, volumes, claims, ..Record::default() };
    let stores = [("east".to_owned(), Ok(Seen::Something))].into();
    let reading = Reading { epoch: 1, newest: Some(record), stores, ..Reading::default() };
    world.read.answer = Some((epoch::question(&world), reading, now()));
    let mut plan = Plan::default();
    let outcome = restore(&world, now(), &mut plan);
    let told = match planned(&plan) {
        told if told.is_empty() => format!("done {}", outcome.is_done()),
        told => told,
    };
    assert_eq!(told, expected, "{rule}");
}

/// A claim as a mover's image gave it, and as an earlier version recorded it.
fn of_image(name: &'static str) -> PersistentVolumeClaim {
    claim(|claim| {
        claim["metadata"]["annotations"][annotations::RESTORE] = json!("True");
        claim["spec"]["volumeName"] = json!(name);
        claim["spec"]["dataSource"] =
            json!({ "apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "i" });
    })
}

fn named(world: &mut World) {
    let mut group = (*world.group).clone();
    let wish = json!({ "rdSpec": [{ "protectedPVC": { "name": "one", "storageClassName": "fast" } }] });
    group.spec.vol_sync = Some(serde_json::from_value(wish).unwrap());
    world.group = Arc::new(group);
    // Made from its image already.
    let one = claim(|claim| {
        claim["metadata"]["annotations"] =
            json!({ annotations::RESTORE: "True", annotations::HELD_AT_EPOCH: "1" });
    });
    world.claims = vec![super::seen(one)];
}

#[test]
fn several_recorded_volumes_of_one_claim_block_nothing() {
    let other = || volume(|volume| volume["metadata"]["name"] = json!("w"));
    check("the claim says which", vec![other(), volume(|_| {})], vec![claim(|_| {})], |_| {}, "MakeVolume");
    let neither = claim(|claim| claim["spec"]["volumeName"] = json!("x"));
    check("it names neither", vec![other(), volume(|_| {})], vec![neither], |_| {}, "CannotRestore");
    check(
        "what a mover copied is restored from its image, whatever is recorded",
        vec![other(), volume(|_| {})],
        vec![of_image("v")],
        named,
        "done true",
    );
    check(
        "nobody names it, and it is not here",
        vec![volume(|_| {})],
        vec![of_image("v")],
        |_| {},
        "CannotRestore",
    );
}

#[test]
fn a_claim_that_is_being_deleted_makes_room_for_the_restore() {
    let going = |change: fn(&mut Value), users: &'static [&'static str]| {
        move |world: &mut World| {
            let mut one = protected(|claim| {
                claim["metadata"]["deletionTimestamp"] = json!(GOING);
                change(claim);
            });
            one.users = users.iter().map(|user| (*user).to_owned()).collect();
            world.claims = vec![one];
        }
    };
    let row = |rule: &str, fill: &dyn Fn(&mut World), expected: &str| {
        check(rule, vec![volume(|_| {})], vec![claim(|_| {})], fill, expected);
    };
    row("it is let go", &going(|_| {}, &[]), "Unprotect");
    row(
        "its replication ends first",
        &|world| {
            going(|_| {}, &[])(world);
            replication(world, "primary", |_| {});
        },
        "EndReplication",
    );
    row("not while it is used", &going(|_| {}, &["pod a"]), "InUse");
    row(
        "others hold it",
        &going(
            |claim| {
                claim["metadata"]["finalizers"] = json!(["example.com/held"]);
                claim["metadata"]["labels"] = json!({ "app": "web" });
            },
            &[],
        ),
        "Removing",
    );
    row(
        "its volume is kept first",
        &|world| {
            going(|_| {}, &[])(world);
            world.claims[0].volume = Some(Arc::new(volume(|volume| {
                volume["spec"]["persistentVolumeReclaimPolicy"] = json!("Delete");
            })));
        },
        "Retain",
    );
}

#[test]
fn a_last_copy_is_no_restore() {
    let mut world = world(|group| {
        group["spec"]["prepareForFinalSync"] = json!(true);
        group["status"] = json!({ "epoch": 1, "primaryEpoch": 1 });
    });
    let mut plan = Plan::default();
    assert!(!restore(&world, now(), &mut plan).is_done(), "what was not restored is not said to be");
    assert_eq!(plan.waits[0].0.reason(), "Restoring");
    let mut group = (*world.group).clone();
    let said = json!([{ "type": "ClusterDataReady", "status": "True", "reason": "Restored", "message": "",
        "lastTransitionTime": GOING }]);
    group.status.as_mut().unwrap().conditions = serde_json::from_value(said).unwrap();
    world.group = Arc::new(group);
    assert!(restore(&world, now(), &mut Plan::default()).is_done(), "what was restored stays so");
}

#[test]
fn a_claim_that_was_made_from_an_image_is_in_no_record() {
    let mut world = world(|group| group["status"] = json!({ "epoch": 1, "primaryEpoch": 1 }));
    let mut one = super::seen(of_image("v"));
    one.volume = Some(Arc::new(volume(|_| {})));
    world.claims = vec![one];
    let record = records::record(&world);
    assert!(record.claims.is_empty() && record.volumes.is_empty(), "before it is protected");
    assert!(record.members.contains("one"), "what is recorded of it stays until it was copied");
    world.claims = vec![protected(|claim| claim["metadata"]["finalizers"] = json!([VOLSYNC]))];
    assert!(records::record(&world).members.contains("one"));
    source(&mut world, |source| source["status"] = json!({ "lastSyncTime": GOING }));
    assert!(!records::record(&world).members.contains("one"), "then it goes");
}

#[test]
fn a_restored_claim_descends_from_the_recorded_one() {
    let lineage = |claim: PersistentVolumeClaim| {
        restored::claim(&claim).metadata.annotations.unwrap().get(annotations::LINEAGE).cloned()
    };
    assert_eq!(lineage(claim(|_| {})).as_deref(), Some("c"), "it began one");
    let older = claim(|claim| claim["metadata"]["annotations"][annotations::LINEAGE] = json!("first"));
    assert_eq!(lineage(older).as_deref(), Some("first"), "it has one");
}
