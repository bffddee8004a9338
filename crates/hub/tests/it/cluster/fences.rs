//! Cutting off and letting in again: a row for each thing that decides.

use crate::cluster::plain::{End, answers, applied, known, pair, peer, settle, silent, work_mut, world};
use lifeboat_api::csiaddons::{FenceState, NetworkFence};
use lifeboat_engine::ObjectKey;
use lifeboat_hub::cluster::survey::{Known, Survey};
use lifeboat_hub::cluster::why::Wait;
use lifeboat_hub::cluster::world::World;
use lifeboat_hub::policy::peers::ClassFacts;
use lifeboat_hub::{views, works};
use serde_json::{Value, json};
use std::sync::Arc;

const WORK: &str = "east-fast-fence-west-nf-mw";
const FENCE: &str = "network-fence-fast-fence-east";
const VIEW: &str = "network-fence-fast-fence-east-nf-mcv";

fn class(name: &str, driver: &str, labels: Value, notes: Value) -> ClassFacts {
    ClassFacts::of(&json!({
        "metadata": { "name": name, "labels": labels, "annotations": notes }, "spec": { "provisioner": driver },
    }))
}

/// What west has: storage, and a way to fence it.
fn west() -> Survey {
    let mut known = Known::default();
    known.classes.storage =
        vec![class("fast", "csi", json!({ "ramendr.openshift.io/storageid": "s1" }), json!({}))];
    known.classes.fences =
        vec![class("fast-fence", "csi", json!({}), json!({ "ramendr.openshift.io/storageid": "s0,s1" }))];
    Survey::Known(Box::new(known))
}

fn start(fence: Option<&str>) -> World {
    let mut spec = json!({ "cidrs": ["10.0.0.0/24"] });
    if let Some(fence) = fence {
        spec["clusterFence"] = json!(fence);
    }
    let mut world = world(spec);
    world.peers.insert("west".into(), peer(west()));
    world
}

fn ask_for(world: &mut World, fence: Option<&str>) {
    let cluster = Arc::make_mut(&mut world.cluster);
    cluster.spec.cluster_fence = fence.map(|word| serde_json::from_value(json!(word)).unwrap());
    cluster.metadata.generation = cluster.metadata.generation.map(|generation| generation + 1);
}

fn seen(world: &mut World, state: &str, cidrs: &[&str], result: Value) {
    answers(
        world,
        "west",
        VIEW,
        json!({
            "metadata": { "name": FENCE, "generation": 1 },
            "spec": { "networkFenceClassName": "fast-fence", "fenceState": state, "cidrs": cidrs },
            "status": { "result": result, "message": "says the driver" },
        }),
    );
}

fn carried(world: &World) -> NetworkFence {
    works::read(&world.works[&ObjectKey::new("west", WORK)]).unwrap()
}

fn check(end: &End, phase: &str, fenced: (&str, &str), clean: (&str, &str)) {
    assert_eq!(end.phase(), phase, "{:?}", end.why());
    assert_eq!(end.says("Fenced"), pair(fenced.0, fenced.1), "{:?}", end.why());
    assert_eq!(end.says("Clean"), pair(clean.0, clean.1), "{:?}", end.why());
}

fn fenced() -> World {
    let mut world = start(Some("Fenced"));
    settle(&mut world);
    seen(&mut world, "Fenced", &["10.0.0.0/24"], json!("Succeeded"));
    check(&settle(&mut world), "Fenced", ("True", "Fenced"), ("False", "Fenced"));
    world
}

#[test]
fn a_fence_is_up_when_the_peer_shows_it() {
    let mut world = start(Some("Fenced"));
    let end = settle(&mut world);
    check(&end, "Fencing", ("False", "Fencing"), ("False", "Fencing"));
    let fence = carried(&world);
    assert_eq!(fence.spec.fence_state, FenceState::Fenced);
    assert_eq!(fence.spec.cidrs, ["10.0.0.0/24"]);
    assert_eq!(fence.metadata.name.as_deref(), Some(FENCE));
    let work = &world.works[&ObjectKey::new("west", WORK)];
    assert_eq!(work.metadata.labels.as_ref().unwrap()["app"], "NF");
    seen(&mut world, "Fenced", &["10.0.0.0/24"], Value::Null);
    check(&settle(&mut world), "Fencing", ("False", "Fencing"), ("False", "Fencing"));
    seen(&mut world, "Unfenced", &["10.0.0.0/24"], json!("Succeeded"));
    check(&settle(&mut world), "Fencing", ("False", "Fencing"), ("False", "Fencing"));
    seen(&mut world, "Fenced", &["10.9.0.0/24"], json!("Succeeded"));
    check(&settle(&mut world), "Fencing", ("False", "Fencing"), ("False", "Fencing"));
    seen(&mut world, "Fenced", &["10.0.0.0/24"], json!("Failed"));
    let failed = settle(&mut world);
    check(&failed, "Fencing", ("False", "FenceError"), ("False", "FenceError"));
    assert!(failed.message("Fenced").contains("says the driver"));
    seen(&mut world, "Fenced", &["10.0.0.0/24"], json!("Succeeded"));
    check(&settle(&mut world), "Fenced", ("True", "Fenced"), ("False", "Fenced"));
}

#[test]
fn what_is_missing_for_a_fence_is_named() {
    let stuck = |change: fn(&mut World), why: fn(&Wait) -> bool| {
        let mut world = start(Some("Fenced"));
        change(&mut world);
        let end = settle(&mut world);
        assert!(end.why().is_some_and(why), "{:?}", end.why());
        assert_eq!(end.says("Fenced").0, "False");
        assert_eq!(end.says("Clean").0, "True", "nothing was put up");
        assert!(!end.message("Fenced").is_empty());
    };
    stuck(|world| world.policies.clear(), |why| *why == Wait::NoPeer);
    let far = |world: &mut World| world.peers.get_mut("west").unwrap().region = Some("r2".into());
    stuck(far, |why| *why == Wait::NoPeer);
    stuck(|world| Arc::make_mut(&mut world.cluster).spec.cidrs.clear(), |why| *why == Wait::NoAddresses);
    let bad = |world: &mut World| Arc::make_mut(&mut world.cluster).spec.cidrs.push("x".into());
    stuck(bad, |why| matches!(why, Wait::BadAddresses(_)));
    let unseen = |world: &mut World| {
        world.peers.get_mut("west").unwrap().survey = Survey::NotYet("has no survey".into());
    };
    stuck(unseen, |why| matches!(why, Wait::PeerUnsurveyed(_)));
    let plain =
        |world: &mut World| world.peers.get_mut("west").unwrap().survey = Survey::Known(Box::default());
    stuck(plain, |why| matches!(why, Wait::NoWayToFence(_)));
}

#[test]
fn a_peer_is_one_that_shares_the_storage_else_one_of_the_region() {
    let chosen = |change: fn(&mut World)| {
        let mut world = start(None);
        change(&mut world);
        lifeboat_hub::cluster::decide::fence::peer(&world).map(|(name, _)| name.clone())
    };
    assert_eq!(chosen(|_| {}).as_deref(), Some("west"));
    let metro = |world: &mut World| {
        let mut other = world.policies[0].clone();
        other.clusters = vec!["east".into(), "north".into()];
        other.metro = true;
        world.policies.push(other);
        world.peers.insert("north".into(), peer(west()));
    };
    assert_eq!(chosen(metro).as_deref(), Some("north"));
    assert_eq!(chosen(|world| world.policies[0].going = true), None);
    let nowhere = |world: &mut World| {
        Arc::make_mut(&mut world.cluster).spec.region = None;
        world.peers.get_mut("west").unwrap().region = None;
    };
    assert_eq!(chosen(nowhere), None, "no region is not the same region");
}

#[test]
fn only_classes_for_the_storage_are_used_and_annotations_where_there_are_none() {
    let ways = |change: fn(&mut Known)| {
        let mut world = start(Some("Fenced"));
        let notes = ["driver", "secret-name", "secret-namespace", "clusterid"]
            .map(|key| (format!("drcluster.ramendr.openshift.io/storage-{key}"), format!("my-{key}")));
        Arc::make_mut(&mut world.cluster).metadata.annotations = Some(notes.into());
        let mut found = known(&west());
        change(&mut found);
        world.peers.insert("west".into(), peer(Survey::Known(Box::new(found))));
        settle(&mut world);
        let fences = world.works.values().filter_map(|work| works::read::<NetworkFence>(work));
        fences.map(|fence| fence.metadata.name.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(ways(|_| {}), [FENCE]);
    let second = |known: &mut Known| {
        let mut class = known.classes.fences[0].clone();
        class.name = "second".into();
        known.classes.fences.push(class);
    };
    assert_eq!(ways(second), [FENCE, "network-fence-second-east"]);
    assert_eq!(ways(|known| known.classes.fences[0].driver = "other".into()), ["network-fence-east"]);
    let elsewhere = |known: &mut Known| {
        known.classes.fences[0].notes.insert("ramendr.openshift.io/storageid".into(), "s11".into());
    };
    assert_eq!(ways(elsewhere), ["network-fence-east"], "identity is exact");
}

#[test]
fn all_fences_must_be_up() {
    let mut world = start(Some("Fenced"));
    let mut found = known(&west());
    let mut class = found.classes.fences[0].clone();
    class.name = "second".into();
    found.classes.fences.push(class);
    world.peers.insert("west".into(), peer(Survey::Known(Box::new(found))));
    settle(&mut world);
    seen(&mut world, "Fenced", &["10.0.0.0/24"], json!("Succeeded"));
    check(&settle(&mut world), "Fencing", ("False", "Fencing"), ("False", "Fencing"));
}

#[test]
fn a_silent_peer_puts_no_fence_up_and_takes_none_down() {
    let mut world = start(Some("Fenced"));
    settle(&mut world);
    seen(&mut world, "Fenced", &["10.0.0.0/24"], json!("Succeeded"));
    world.reaches.insert("west".into(), silent("west"));
    check(&settle(&mut world), "Fencing", ("False", "Fencing"), ("False", "Fencing"));
    // One that was up stays up.
    let mut world = fenced();
    world.reaches.insert("west".into(), silent("west"));
    check(&settle(&mut world), "Fenced", ("True", "Fenced"), ("False", "Fenced"));
    // But not for what is asked anew.
    ask_for(&mut world, Some("Fenced"));
    check(&settle(&mut world), "Fencing", ("False", "Fencing"), ("False", "Fencing"));
}

#[test]
fn a_fence_needs_nothing_of_the_fenced_cluster() {
    let mut world = start(Some("Fenced"));
    world.reaches.insert("east".into(), silent("east"));
    world.survey = Survey::NotYet("is dead".into());
    world.config = Err("no ConfigMap".into());
    world.secrets.clear();
    settle(&mut world);
    seen(&mut world, "Fenced", &["10.0.0.0/24"], json!("Succeeded"));
    let end = settle(&mut world);
    check(&end, "Fenced", ("True", "Fenced"), ("False", "Fenced"));
    assert_eq!(end.says("Validated"), pair("False", "ConfigMapGetFailed"));
}

#[test]
fn a_fenced_cluster_is_valid_though_its_store_fails() {
    let mut world = fenced();
    let question = world.check.answer.clone().unwrap().question;
    let failure = lifeboat_hub::cluster::check::Failure::unasked("dead");
    world.check.answer = Some(crate::cluster::plain::answer(&question, Err(failure)));
    assert_eq!(settle(&mut world).says("Validated"), pair("True", "Succeeded"));
}

#[test]
fn new_addresses_are_fenced_off_too() {
    let mut world = fenced();
    let cluster = Arc::make_mut(&mut world.cluster);
    cluster.spec.cidrs.push("10.1.0.0/24".into());
    cluster.metadata.generation = Some(9);
    check(&settle(&mut world), "Fencing", ("False", "Fencing"), ("False", "Fencing"));
    assert_eq!(carried(&world).spec.cidrs.len(), 2);
    seen(&mut world, "Fenced", &["10.1.0.0/24", "10.0.0.0/24"], json!("Succeeded"));
    check(&settle(&mut world), "Fenced", ("True", "Fenced"), ("False", "Fenced"));
}

#[test]
fn unfencing_lifts_confirms_and_cleans() {
    let mut world = fenced();
    ask_for(&mut world, Some("Unfenced"));
    let end = settle(&mut world);
    check(&end, "Unfencing", ("True", "Unfencing"), ("False", "Unfencing"));
    assert_eq!(carried(&world).spec.fence_state, FenceState::Unfenced);
    seen(&mut world, "Unfenced", &["10.0.0.0/24"], json!("Failed"));
    check(&settle(&mut world), "Unfencing", ("True", "UnfenceError"), ("False", "UnfenceError"));
    seen(&mut world, "Unfenced", &["10.0.0.0/24"], json!("Succeeded"));
    world.reaches.insert("west".into(), silent("west"));
    check(&settle(&mut world), "Unfencing", ("True", "Unfencing"), ("False", "Unfencing"));
    world.reaches.insert("west".into(), views::Reach::Fresh);
    let end = settle(&mut world);
    check(&end, "Unfenced", ("False", "Clean"), ("True", "Clean"));
    assert!(!world.works.contains_key(&ObjectKey::new("west", WORK)));
    assert!(!world.views.contains_key(&ObjectKey::new("west", VIEW)));
    ask_for(&mut world, None);
    check(&settle(&mut world), "Available", ("False", "Clean"), ("True", "Clean"));
}

#[test]
fn until_the_peer_has_removed_the_fence_it_is_not_clean() {
    let mut world = fenced();
    ask_for(&mut world, Some("Unfenced"));
    work_mut(&mut world, "west", WORK, |work| {
        work.metadata.deletion_timestamp = serde_json::from_value(json!("2030-01-01T00:00:00Z")).unwrap();
    });
    check(&settle(&mut world), "Unfenced", ("False", "Cleaning"), ("False", "Cleaning"));
    // Fencing again waits until the old one is gone.
    ask_for(&mut world, Some("Fenced"));
    let end = settle(&mut world);
    assert!(matches!(end.why(), Some(Wait::OldFenceGoing(_))), "{:?}", end.why());
}

#[test]
fn a_fence_that_somebody_removed_is_down() {
    let mut world = fenced();
    ask_for(&mut world, Some("Unfenced"));
    settle(&mut world);
    let view = world.views.get_mut(&ObjectKey::new("west", VIEW)).unwrap();
    Arc::make_mut(view).status = serde_json::from_value(json!({ "conditions": [{
        "type": "Processing", "status": "False", "reason": "GetResourceFailed", "message": "networkfences not found",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }] }))
    .unwrap();
    check(&settle(&mut world), "Unfenced", ("False", "Clean"), ("True", "Clean"));
}

#[test]
fn clearing_the_field_keeps_the_fence_and_says_so() {
    let mut world = fenced();
    ask_for(&mut world, None);
    let end = settle(&mut world);
    check(&end, "Fenced", ("True", "Fenced"), ("False", "Fenced"));
    assert_eq!(end.why(), Some(&Wait::FenceKept("west".into())));
    assert_eq!(carried(&world).spec.fence_state, FenceState::Fenced);
    // Where nobody can confirm it, nobody knows.
    world.reaches.insert("west".into(), silent("west"));
    Arc::make_mut(&mut world.cluster).metadata.generation = Some(99);
    assert_eq!(settle(&mut world).says("Fenced").0, "Unknown");
    // One that was coming down comes down.
    let mut world = fenced();
    ask_for(&mut world, Some("Unfenced"));
    settle(&mut world);
    ask_for(&mut world, None);
    seen(&mut world, "Unfenced", &["10.0.0.0/24"], json!("Succeeded"));
    check(&settle(&mut world), "Available", ("False", "Clean"), ("True", "Clean"));
}

#[test]
fn what_is_done_by_hand_is_believed() {
    let mut world = start(Some("ManuallyFenced"));
    check(&settle(&mut world), "Fenced", ("True", "Fenced"), ("False", "Fenced"));
    assert!(!world.works.contains_key(&ObjectKey::new("west", WORK)));
    ask_for(&mut world, Some("ManuallyUnfenced"));
    check(&settle(&mut world), "Unfenced", ("False", "Clean"), ("True", "Clean"));
    // A fence of ours still has to come down first.
    let mut world = fenced();
    ask_for(&mut world, Some("ManuallyUnfenced"));
    check(&settle(&mut world), "Unfencing", ("True", "Unfencing"), ("False", "Unfencing"));
}

#[test]
fn a_peer_that_refuses_the_fence_is_a_failure() {
    let mut world = start(Some("Fenced"));
    settle(&mut world);
    work_mut(&mut world, "west", WORK, |work| applied(work, "False", "not allowed here"));
    let end = settle(&mut world);
    check(&end, "Fencing", ("False", "FenceError"), ("False", "FenceError"));
    assert!(end.message("Fenced").contains("not allowed here"));
}
