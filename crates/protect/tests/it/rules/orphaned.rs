//! A group that is deleted without the order to end protection, and one that comes back.

use super::furniture::*;
use super::{claim, now, seen, world};
use lifeboat_api::annotations;
use lifeboat_engine::Next;
use lifeboat_protect::books::StoreState;
use lifeboat_protect::decide::{Effect, decide, epoch};
use lifeboat_protect::ledger::{LedgerError, Orphan, Reading, Record, Tried};
use lifeboat_protect::settings::UnmarkedDeletion;
use lifeboat_protect::world::{Claim, World};
use serde_json::{Value, json};
use std::sync::Arc;

fn deleted(rule: &str, change: impl FnOnce(&mut Value), fill: impl FnOnce(&mut World), expected: &str) {
    let mut world = world(|group| {
        group["metadata"]["deletionTimestamp"] = json!("2029-12-31T23:59:50Z");
        group["status"] = json!({ "epoch": 3, "primaryEpoch": 3, "state": "Primary" });
        change(group);
    });
    fill(&mut world);
    assert_eq!(decided(&decide(&world, now())), expected, "{rule}");
}

fn left(change: impl FnOnce(&mut Value)) -> Arc<k8s_openapi::api::core::v1::PersistentVolume> {
    Arc::new(volume(|volume| {
        volume["metadata"]["annotations"][annotations::ORPHANED_FROM] = json!("app/web");
        volume["metadata"]["annotations"][annotations::EPOCH] = json!("3");
        change(volume);
    }))
}

fn marked(change: impl FnOnce(&mut Value)) -> Claim {
    Claim { volume: Some(left(|_| {})), ..protected(change) }
}

fn going(object: &mut Value) {
    object["metadata"]["deletionTimestamp"] = json!(GOING);
}

fn failed(tries: u32) -> StoreState {
    let why = LedgerError::Failed("down".into());
    let retry_at = "2031-01-01T00:00:00Z".parse().unwrap();
    let tried = Tried { why, substance: String::new(), since: now(), retry_at, tries };
    StoreState { failed: Some(tried), ..StoreState::default() }
}

#[test]
fn an_unmarked_deletion_keeps_volumes_and_records() {
    let plain = |_: &mut Value| {};
    deleted("not ours to hold", |g| g["metadata"]["finalizers"] = json!([]), |_| {}, "settled");
    deleted("the volume first", plain, |world| world.claims = vec![protected(|_| {})], "Orphan");
    let replicated = |world: &mut World| {
        world.claims = vec![marked(|_| {})];
        replication(world, "primary", |_| {});
    };
    deleted("a replication goes on without its group", plain, replicated, "Unprotect");
    let both = |world: &mut World| {
        world.claims = vec![marked(going)];
        replication(world, "primary", |_| {});
    };
    deleted("unless its claim goes too", plain, both, "EndReplication");
    let ending = |world: &mut World| {
        world.claims = vec![marked(going)];
        replication(world, "primary", going);
    };
    deleted("its driver is given some time", plain, ending, "Removing");
    let old = |group: &mut Value| group["metadata"]["deletionTimestamp"] = json!("2029-12-31T23:58:00Z");
    deleted("and not for ever", old, ending, "Unprotect");
    let swept = |world: &mut World| {
        world.claims = vec![marked(|_| {})];
        world.namespace_is_deleting = true;
        replication(world, "primary", |_| {});
    };
    deleted("the namespace takes it along", plain, swept, "EndReplication");
    let sends = |world: &mut World| {
        world.claims = vec![marked(|_| {})];
        source(world, |_| {});
    };
    deleted("a sender stops: it would send whatever gets the name", plain, sends, "StopSending");
    let stopping = |world: &mut World| {
        world.claims = vec![marked(|_| {})];
        source(world, going);
    };
    deleted("and is not waited for", plain, stopping, "Unprotect");
    deleted("one without a claim stops too", plain, |world| source(world, |_| {}), "StopSending");
    deleted("then the stores are told", plain, |_| {}, "MarkOrphan");
    let told = |world: &mut World| {
        world.stores.insert("east".into(), StoreState { orphaned: true, ..StoreState::default() });
    };
    deleted("then it goes", plain, told, "Release");
    deleted(
        "nothing is dropped that was restored from",
        plain,
        |world| {
            told(world);
            image(world, "i", "one", GOING, |_| {});
            receiver(world, "two", |_| {});
        },
        "Release",
    );
}

#[test]
fn no_store_holds_an_unmarked_deletion() {
    let plain = |_: &mut Value| {};
    let down = |tries: u32| {
        move |world: &mut World| {
            world.stores.insert("east".into(), failed(tries));
        }
    };
    deleted("a store is tried again", plain, down(1), "WritingStore");
    deleted("three times at most", plain, down(3), "Release");
    let busy = |world: &mut World| {
        world.stores.insert("east".into(), StoreState { busy: Some("x".into()), ..StoreState::default() });
    };
    deleted("one that hangs is given some time", plain, busy, "WritingStore");
    let old = |group: &mut Value| group["metadata"]["deletionTimestamp"] = json!("2029-12-31T23:58:00Z");
    deleted("and not for ever", old, busy, "Release");
    deleted(
        "one that nobody knows holds nobody",
        |g| g["spec"]["s3Profiles"] = json!(["gone"]),
        |_| {},
        "Release",
    );
    let late = |group: &mut Value| group["status"]["epoch"] = json!(4);
    deleted("records of a later epoch are another's", late, |_| {}, "Release");
}

#[test]
fn who_ends_protection() {
    let mark =
        |group: &mut Value| group["metadata"]["annotations"][annotations::END_PROTECTION] = json!("true");
    let unretain = |world: &mut World| world.claims = vec![protected(|_| {})];
    deleted("the mark", mark, unretain, "Unretain");
    let no = |group: &mut Value| group["metadata"]["annotations"][annotations::END_PROTECTION] = json!("yes");
    deleted("no other word", no, unretain, "Orphan");
    deleted(
        "or the configuration",
        |_| {},
        |world| {
            world.config.unmarked_deletion = UnmarkedDeletion::End;
            unretain(world);
        },
        "Unretain",
    );
}

#[test]
fn a_secondary_that_is_deleted_unmarked_keeps_its_copies() {
    let secondary = |group: &mut Value| {
        group["spec"]["replicationState"] = json!("secondary");
        group["status"] = json!({ "epoch": 3 });
    };
    let all = |world: &mut World| {
        receiver(world, "one", |_| {});
        image(world, "i", "one", GOING, |_| {});
    };
    deleted("receivers and images stay", secondary, all, "Release");
    let replica = |world: &mut World| {
        world.claims = vec![protected(|_| {})];
        replication(world, "secondary", |_| {});
    };
    deleted("the replica stays a replica, without the mark of a primary", secondary, replica, "Unprotect");
}

fn record(claims: &[&str], copied: &[&str]) -> Record {
    let recorded = |name: &&str| {
        claim(|one| {
            one["metadata"]["name"] = json!(name);
            one["spec"]["volumeName"] = json!("v");
        })
    };
    let entries: Vec<Value> = copied
        .iter()
        .map(|name| json!({ "name": name, "protectedByVolSync": true, "labels": { "app": "web" } }))
        .collect();
    Record {
        epoch: 3,
        cluster: "here".into(),
        volumes: claims.iter().map(|_| volume(|_| {})).collect(),
        claims: claims.iter().map(recorded).collect(),
        group: super::group(|group| group["status"] = json!({ "protectedPVCs": entries })),
        ..Record::default()
    }
}

fn returned(
    rule: &str,
    change: impl FnOnce(&mut Value),
    record: Option<Record>,
    fill: impl FnOnce(&mut World),
    expected: &str,
) -> World {
    let mut world = world(|group| {
        group["metadata"]["annotations"][annotations::EPOCH] = json!("3");
        change(group);
    });
    let reading = Reading {
        epoch: record.as_ref().map_or(0, |record| record.epoch),
        newest: record,
        stores: [("east".to_owned(), Ok(lifeboat_protect::ledger::Seen::Something))].into(),
        ..Reading::default()
    };
    world.read.answer = Some((epoch::question(&world), reading, now()));
    fill(&mut world);
    let decision = decide(&world, now());
    assert_eq!(decided(&decision), expected, "{rule}");
    if expected == "Orphaned" {
        let status = decision.status.expect("it says so");
        let said = status.conditions.iter().find(|one| one.type_ == "ClusterDataReady").unwrap();
        assert_eq!((said.status.as_str(), said.reason.as_str()), ("False", "Orphaned"), "{rule}");
        for word in
            ["lifeboat failover web", "lifeboat repair web --restore-here", "lifeboat forget --of app/web"]
        {
            assert!(said.message.contains(word), "{rule}: {}", said.message);
        }
    }
    world
}

fn bound() -> Claim {
    Claim { volume: Some(left(|_| {})), ..seen(claim(|_| {})) }
}

fn with_volume(world: &mut World) {
    world.volumes.insert("v".into(), left(|_| {}));
}

#[test]
fn one_that_comes_back_goes_on_or_asks() {
    let plain = |_: &mut Value| {};
    let whole = |world: &mut World| {
        with_volume(world);
        world.claims = vec![bound()];
    };
    returned("all is as it was: it goes on", plain, Some(record(&["one"], &[])), whole, "TakeEpoch");
    returned("also what a mover copies", plain, Some(record(&[], &["one"])), whole, "TakeEpoch");
    returned("also where no store answers", plain, None, whole, "TakeEpoch");
    returned("the claim is gone", plain, Some(record(&["one"], &[])), with_volume, "Orphaned");
    returned("a copied one likewise", plain, Some(record(&[], &["one"])), with_volume, "Orphaned");
    returned("no store tells", plain, None, with_volume, "Orphaned");
    let fresh = |world: &mut World| {
        with_volume(world);
        world.claims = vec![seen(claim(|one| one["spec"]["volumeName"] = json!("new")))];
    };
    returned("another claim has its name", plain, Some(record(&["one"], &[])), fresh, "Orphaned");
    returned("a copied one likewise", plain, Some(record(&[], &["one"])), fresh, "Orphaned");
    let leaving = |world: &mut World| {
        with_volume(world);
        world.claims = vec![Claim { volume: Some(left(|_| {})), ..seen(claim(going)) }];
    };
    returned("it is being deleted", plain, Some(record(&["one"], &[])), leaving, "Orphaned");
    returned(
        "no volume says so, but this cluster wrote the record",
        plain,
        Some(record(&["one"], &[])),
        |_| {},
        "Orphaned",
    );
    let unmarked = |world: &mut World| {
        world.claims = vec![protected(|_| {})];
        world.volumes.insert("v".into(), Arc::new(volume(|_| {})));
    };
    returned(
        "the group was torn out and all is here",
        plain,
        Some(record(&["one"], &[])),
        unmarked,
        "TakeEpoch",
    );
    let theirs = Record { cluster: "there".into(), ..record(&["one"], &[]) };
    returned("another cluster's record is an ordinary restore", plain, Some(theirs), |_| {}, "TakeEpoch");
    let later = |group: &mut Value| group["metadata"]["annotations"][annotations::EPOCH] = json!("4");
    returned("a later epoch is a new order", later, Some(record(&["one"], &[])), with_volume, "TakeEpoch");
    let hubless = |group: &mut Value| group["metadata"]["annotations"] = json!({});
    returned("without a hub likewise", hubless, Some(record(&["one"], &[])), with_volume, "Orphaned");
    let told = |world: &mut World| {
        if let Some((_, reading, _)) = &mut world.read.answer {
            reading.newest = None;
            reading.orphan = Some(Orphan { epoch: 3, cluster: "here".into(), ..Orphan::default() });
        }
    };
    returned("only the mark in the stores is left, and no claim is missed", plain, None, told, "TakeEpoch");
    let sends = |world: &mut World| {
        with_volume(world);
        source(world, |_| {});
    };
    returned("what would send is stopped first", plain, Some(record(&[], &["one"])), sends, "StopSending");
    let mirrors = |world: &mut World| {
        fresh(world);
        replication(world, "primary", |_| {});
    };
    returned(
        "what would mirror another volume too",
        plain,
        Some(record(&["one"], &[])),
        mirrors,
        "EndReplication",
    );
    let secondary = |group: &mut Value| group["spec"]["replicationState"] = json!("secondary");
    returned(
        "a secondary has nothing to choose",
        secondary,
        Some(record(&["one"], &[])),
        with_volume,
        "YieldEpoch",
    );
}

#[test]
fn one_that_comes_back_without_a_hub_keeps_its_epoch() {
    let hubless = |group: &mut Value| group["metadata"]["annotations"] = json!({});
    let whole = |world: &mut World| {
        with_volume(world);
        world.claims = vec![bound()];
    };
    let world = returned("it goes on", hubless, Some(record(&["one"], &[])), whole, "TakeEpoch");
    assert_eq!(decide(&world, now()).next, Next::Do(vec![Effect::TakeEpoch(3)]));
}

#[test]
fn told_to_restore_it_takes_up_what_was_left() {
    let asked = |epoch: &'static str| {
        move |group: &mut Value| {
            group["metadata"]["annotations"][annotations::RESTORE_ORPHANS] = json!(epoch);
            group["status"] = json!({ "epoch": 3, "primaryEpoch": 3 });
        }
    };
    let both = || [record(&["one"], &[]), record(&[], &["one"])];
    for record in both() {
        let record = || Some(record.clone());
        returned("of another epoch it says nothing", asked("2"), record(), with_volume, "Orphaned");
        returned("its claim is gone: the volume is freed", asked("3"), record(), with_volume, "Unclaim");
        let freed = |world: &mut World| {
            let free = left(|volume| volume["spec"]["claimRef"]["uid"] = json!(null));
            world.volumes.insert("v".into(), free);
        };
        let world = returned("then the claim is made", asked("3"), record(), freed, "MakeClaim");
        let Next::Do(effects) = decide(&world, now()).next else { panic!("nothing is done") };
        let [Effect::MakeClaim { claim }] = effects.as_slice() else { panic!("{effects:?}") };
        assert_eq!(claim.spec.as_ref().unwrap().volume_name.as_deref(), Some("v"));
        assert_eq!(claim.metadata.labels.as_ref().unwrap()["app"], "web", "so that the group selects it");
        let fresh = |world: &mut World| {
            with_volume(world);
            world.claims = vec![seen(claim_of_another())];
        };
        returned("another claim's data is not ours to delete", asked("3"), record(), fresh, "CannotRestore");
    }
}

fn claim_of_another() -> k8s_openapi::api::core::v1::PersistentVolumeClaim {
    claim(|one| one["spec"]["volumeName"] = json!("new"))
}
