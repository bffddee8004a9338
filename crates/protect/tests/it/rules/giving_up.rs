//! What is never given up by mistake: protection, records, and the order between them.

use super::furniture::*;
use super::{claim, now, seen, world};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use lifeboat_api::annotations;
use lifeboat_protect::books::StoreState;
use lifeboat_protect::decide::classify::classify;
use lifeboat_protect::decide::plan::Plan;
use lifeboat_protect::decide::records::{CHECK_AGAIN, Standing, keep, record, standings};
use lifeboat_protect::decide::undo::{is_leaving, leavers};
use lifeboat_protect::decide::{Effect, Sorted, decide};
use lifeboat_protect::ledger::{LedgerError, Tried, substance};
use lifeboat_protect::settings::{Config, LastGood};
use lifeboat_protect::world::{Claim, World};
use serde_json::{Value, json};
use std::sync::Arc;

fn map(text: &str) -> ConfigMap {
    serde_json::from_value(json!({ "data": { "ramen_manager_config.yaml": text } })).unwrap()
}

const GOOD: &str = "volumeUnprotectionEnabled: true\nvolSync:\n  destinationCopyMethod: Direct\ns3StoreProfiles:\n- s3ProfileName: east\n  s3Bucket: b\n";
const TORN: &str = "volumeUnprotectionEnabled: [\n";

#[test]
fn a_configuration_that_cannot_be_read_changes_no_wish() {
    let last = LastGood::default();
    let never = last.read(Some(&map(TORN)));
    assert!(never.unread && never.keep_deselected && never.problem.is_some(), "nothing is given up");
    let good = last.read(Some(&map(GOOD)));
    assert!(!good.unread && !good.keep_deselected && good.problem.is_none());
    for broken in [Some(map(TORN)), None, Some(ConfigMap::default())] {
        let read = last.read(broken.as_ref());
        let problem = read.problem.clone();
        assert!(problem.is_some(), "it is told");
        assert_eq!(Config { problem: None, ..read }, good, "and what was said before counts");
    }
    let mut world = world(|_| {});
    world.config = Config::of(Some(&map(TORN)));
    let leaves = protected(|one| one["metadata"]["deletionTimestamp"] = json!(GOING));
    assert!(!is_leaving(&world, &leaves), "a deleted PVC keeps its protection");
}

#[test]
fn what_is_used_or_was_taken_over_does_not_leave() {
    let going = || protected(|one| one["metadata"]["deletionTimestamp"] = json!(GOING));
    let check = |rule: &str, change: fn(&mut Value), fill: fn(&mut World, &mut Claim), leaves: bool| {
        let (mut world, mut claim) = (world(change), going());
        fill(&mut world, &mut claim);
        assert_eq!(is_leaving(&world, &claim), leaves, "{rule}");
    };
    check("deleted and unused, it leaves", |_| {}, |_, _| {}, true);
    check("still mounted, it stays", |_| {}, |_, claim| claim.users = vec!["pod a".into()], false);
    let passed: fn(&mut Value) = |group| group["status"] = json!({ "epoch": 4, "primaryEpoch": 3 });
    check("another cluster is primary now, it stays", passed, |_, _| {}, false);
    check("its namespace goes, it stays", |_| {}, |world, _| world.namespace_is_deleting = true, false);
}

#[test]
fn a_record_goes_before_its_volume() {
    let check = |rule: &str, fill: fn(&mut World), state: fn(&str) -> StoreState, expected: &str| {
        let mut world = world(|group| group["status"] = json!({ "epoch": 3, "primaryEpoch": 3 }));
        let mut leaving = protected(|_| {});
        leaving.selected = false;
        world.claims = vec![leaving];
        fill(&mut world);
        let wanted = substance(&record(&world));
        world.stores.insert("east".into(), state(&wanted));
        let (mut plan, mut sorted) = (Plan::default(), Sorted::default());
        leavers(&world, now(), &mut plan, &mut sorted, &wanted);
        assert_eq!(planned(&plan), expected, "{rule}");
        assert!(
            record(&world).claims.is_empty() && record(&world).members.is_empty(),
            "{rule}: it is not recorded"
        );
    };
    let has: fn(&str) -> StoreState =
        |wanted| StoreState { kept: Some((wanted.to_owned(), String::new())), ..StoreState::default() };
    let before: fn(&str) -> StoreState =
        |_| StoreState { kept: Some(("before".into(), String::new())), ..StoreState::default() };
    let down: fn(&str) -> StoreState = |_| StoreState {
        kept: Some(("before".into(), String::new())),
        failed: Some(tried(LedgerError::Failed("down".into()))),
        ..StoreState::default()
    };
    check("no record names it: the volume is let go", |_| {}, has, "Unretain");
    check("a record still names it", |_| {}, before, "WritingStore");
    check("a store that is down still names it", |_| {}, down, "StoreFailed");
    let abandoned: fn(&mut World) = |world| {
        let mut group = (*world.group).clone();
        let notes = group.metadata.annotations.get_or_insert_default();
        notes.insert(annotations::ABANDON_STORES.into(), "east".into());
        world.group = Arc::new(group);
    };
    check("unless it is given up", abandoned, down, "Unretain");
    let theirs: fn(&str) -> StoreState = |_| StoreState {
        kept: Some(("before".into(), String::new())),
        failed: Some(tried(of_another())),
        ..StoreState::default()
    };
    check("what another fleet has names none of our volumes", ours, theirs, "Unretain");
    let replicated: fn(&mut World) = |world| replication(world, "primary", |_| {});
    check("its replication need not wait", replicated, before, "EndReplication");
}

fn tried(why: LedgerError) -> Tried {
    let retry_at = "2030-01-01T00:01:00Z".parse().unwrap();
    Tried { why, substance: String::new(), since: now(), retry_at, tries: 1 }
}

fn of_another() -> LedgerError {
    LedgerError::OtherFleet { fleet: "theirs".into(), why: "of another fleet".into() }
}

fn of_fleet(world: &mut World, fleet: &str) {
    let group = Arc::make_mut(&mut world.group);
    let notes = group.metadata.annotations.get_or_insert_default();
    notes.insert(annotations::FLEET.into(), fleet.into());
}

fn ours(world: &mut World) {
    of_fleet(world, "ours");
}

#[test]
fn a_store_with_another_fleets_records_is_told_and_tried_with_pauses() {
    let mut world = world(|group| group["status"] = json!({ "epoch": 3, "primaryEpoch": 3 }));
    of_fleet(&mut world, "ours");
    let wanted = substance(&record(&world));
    assert_eq!(record(&world).fleet.as_deref(), Some("ours"));
    // Also where it had our record before: whoever came to an emptied bucket first has it.
    let kept_before = Some((wanted.clone(), String::new()));
    let state = StoreState { kept: kept_before, failed: Some(tried(of_another())), ..StoreState::default() };
    world.stores.insert("east".into(), state);
    let foreign = [("east".to_owned(), Standing::OtherFleet("of another fleet".into()))];
    assert_eq!(standings(&world, &wanted), foreign);
    assert!(lifeboat_protect::decide::records::tried(&world, &wanted), "nothing else waits for it");
    assert_eq!(kept(&world, now()), "OtherFleet");
    assert_eq!(kept(&world, "2030-01-01T00:01:00Z".parse().unwrap()), "Keep", "after a pause");
    // The user says that the records are this application's.
    of_fleet(&mut world, "theirs");
    assert_eq!(kept(&world, now()), "Keep");
    assert_eq!(standings(&world, &wanted), [("east".to_owned(), Standing::Writing)]);
}

fn kept(world: &World, at: Timestamp) -> String {
    let mut plan = Plan::default();
    keep(world, at, &mut plan, &Sorted::default(), &substance(&record(world)));
    planned(&plan)
}

#[test]
fn an_epoch_that_is_anothers_is_told_and_asked_for_with_pauses() {
    let mut world = world(|group| group["status"] = json!({ "epoch": 3, "primaryEpoch": 3 }));
    let state = |epoch: i64| StoreState {
        failed: Some(tried(LedgerError::Taken { epoch, by: "cluster-b".into() })),
        ..StoreState::default()
    };
    world.stores.insert("east".into(), state(3));
    let wanted = substance(&record(&world));
    let told = standings(&world, &wanted);
    let [(_, Standing::Failed(why))] = told.as_slice() else { panic!("{told:?}") };
    assert!(why.contains("cluster-b") && why.contains("epoch 3"), "{why}");
    assert_eq!(kept(&world, now()), "StoreFailed", "not at once");
    assert_eq!(kept(&world, "2030-01-01T00:01:00Z".parse().unwrap()), "Keep", "after a pause");
    world.stores.insert("east".into(), state(2));
    assert_eq!(
        kept(&world, now()),
        "Keep",
        "what was refused at an earlier epoch says nothing about this one"
    );
}

#[test]
fn records_are_looked_at_again() {
    let mut world = world(|group| group["status"] = json!({ "epoch": 3, "primaryEpoch": 3 }));
    let wanted = substance(&record(&world));
    let has = StoreState {
        kept: Some((wanted.clone(), String::new())),
        checked: Some((now(), 3)),
        ..StoreState::default()
    };
    world.stores.insert("east".into(), has.clone());
    let mut plan = Plan::default();
    keep(&world, now(), &mut plan, &Sorted::default(), &wanted);
    assert_eq!((planned(&plan).as_str(), plan.until), ("", now().checked_add(CHECK_AGAIN).ok()));
    assert_eq!(kept(&world, now() + CHECK_AGAIN - SignedDuration::from_secs(1)), "");
    assert_eq!(kept(&world, now() + CHECK_AGAIN), "Keep");
    let check = |why: LedgerError, expected: Standing| {
        let mut world = world.clone();
        world.stores.insert("east".into(), StoreState { failed: Some(tried(why)), ..has.clone() });
        assert_eq!(standings(&world, &wanted), [("east".to_owned(), expected)]);
    };
    check(LedgerError::Gone("lost".into()), Standing::Failed("lost".into()));
    // A store that does not answer for a while has what it had.
    check(LedgerError::Failed("down".into()), Standing::Has);
    // And is asked again when it is its turn, and not before, though it is long since it was looked at.
    let down = LedgerError::Failed("down".into());
    let retry_at = now() + CHECK_AGAIN + SignedDuration::from_secs(30);
    let down = StoreState { failed: Some(Tried { retry_at, ..tried(down) }), ..has };
    world.stores.insert("east".into(), down);
    assert_eq!(kept(&world, now() + CHECK_AGAIN), "");
    assert_eq!(kept(&world, retry_at), "Keep");
}

#[test]
fn everything_is_read_back_only_where_there_is_a_reason() {
    let check = |rule: &str, after: SignedDuration, state: StoreState, expected: bool| {
        let mut world = world(|group| group["status"] = json!({ "epoch": 3, "primaryEpoch": 3 }));
        world.stores.insert("east".into(), state);
        let mut plan = Plan::default();
        keep(&world, now() + after, &mut plan, &Sorted::default(), &substance(&record(&world)));
        let [Effect::Keep { stores, verify }] = plan.effects.as_slice() else { panic!("{rule}: {plan:?}") };
        assert_eq!((stores.as_slice(), *verify), (["east".to_owned()].as_slice(), expected), "{rule}");
    };
    let soon = SignedDuration::from_secs(1);
    let has = StoreState {
        kept: Some(("what was recorded before".into(), String::new())),
        checked: Some((now(), 3)),
        ..StoreState::default()
    };
    check("one record changes: what is written is read back", soon, has.clone(), false);
    check("this process has not looked yet", soon, StoreState::default(), true);
    check("it was looked at long ago", CHECK_AGAIN, has.clone(), true);
    let earlier = StoreState { checked: Some((now(), 2)), ..has.clone() };
    check("another may have written in between", soon, earlier, true);
    let failed = Tried { retry_at: now(), ..tried(LedgerError::Failed("cut off".into())) };
    check("the last try ended half-way", soon, StoreState { failed: Some(failed), ..has }, true);
}

fn by_storage(world: &mut World) {
    let class = json!({ "metadata": { "name": "fast" }, "provisioner": "d" });
    world.classes.insert("fast".into(), Arc::new(serde_json::from_value(class).unwrap()));
    let class = json!({ "metadata": { "name": "five" }, "spec": { "provisioner": "d", "parameters": { "schedulingInterval": "5m" } } });
    world.replication_classes = vec![Arc::new(serde_json::from_value(class).unwrap())];
}

#[test]
fn a_class_that_vanishes_ends_no_replication() {
    let mut world = world(|_| {});
    by_storage(&mut world);
    world.claims = vec![protected(|_| {})];
    replication(&mut world, "primary", |_| {});
    let way = |world: &World| classify(world, &world.claims[0].claim).map(|way| way.path);
    assert_eq!(way(&world).ok(), Some(lifeboat_protect::decide::plan::Path::Replicated));
    world.replication_classes.clear();
    let why = way(&world).unwrap_err().to_string();
    assert!(why.contains("VolumeReplicationClass five") && why.contains("create it again"), "{why}");
    world.replications.clear();
    assert_eq!(
        way(&world).ok(),
        Some(lifeboat_protect::decide::plan::Path::Copied),
        "what was never replicated is copied"
    );
}

#[test]
fn a_group_takes_no_claim_with_it() {
    let owned = seen(claim(|one| {
        one["metadata"]["ownerReferences"] =
            json!([{ "apiVersion": "v1", "kind": "VolumeReplicationGroup", "name": "web", "uid": "u" }]);
    }));
    for marked in ["true", "false"] {
        let mut world = world(|group| {
            group["metadata"]["deletionTimestamp"] = json!(GOING);
            group["metadata"]["annotations"][annotations::END_PROTECTION] = json!(marked);
        });
        world.claims = vec![owned.clone()];
        assert_eq!(decided(&decide(&world, now())), "Unprotect", "marked {marked}");
    }
}
