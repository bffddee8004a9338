//! Rules about receivers, one row each.

use jiff::Timestamp;
use lifeboat_api::annotations::ROLL_BACK_TO;
use lifeboat_api::finalizers;
use lifeboat_api::snapshot::VolumeSnapshot;
use lifeboat_api::volsync::ReplicationDestination;
use lifeboat_engine::{Next, ObjectKey};
use lifeboat_lvm::{Access, AccessMode, Volume};
use lifeboat_replicate::destination::decide::{Effect, decide};
use lifeboat_replicate::destination::world::{Expected, Received, World};
use lifeboat_replicate::memory::Staging;
use lifeboat_replicate::place::{Here, Place};
use lifeboat_replicate::why::Wait;
use lifeboat_stream::{Completed, Refusal};
use serde_json::{Value, json};
use std::sync::Arc;

fn now() -> Timestamp {
    "2030-01-01T12:00:30Z".parse().unwrap()
}

fn place() -> Place {
    let volume = Volume {
        name: "v".to_owned(),
        size: 4096,
        tags: ["lifeboat.epoch=2".to_owned()].into(),
        access: Access::Directory("/data".into()),
        origin: None,
        mode: AccessMode::ReadWrite,
        attr: String::new(),
        device: (0, 0),
    };
    let (uid, class) = ("v".to_owned(), String::new());
    Place::Here(Box::new(Here { uid, class, volume, block: false, filesystem: "ext4".to_owned() }))
}

fn receiver(change: impl FnOnce(&mut Value)) -> ReplicationDestination {
    let mut object = json!({
        "apiVersion": "volsync.backube/v1alpha1", "kind": "ReplicationDestination",
        "metadata": {"name": "data", "namespace": "app", "uid": "u", "generation": 1},
        "spec": {"rsyncTLS": {"keySecret": "key", "capacity": "1Gi", "accessModes": ["ReadWriteOnce"]}},
    });
    change(&mut object);
    serde_json::from_value(object).unwrap()
}

/// A receiver whose volume is here and which expects copies.
fn world(change: impl FnOnce(&mut Value)) -> World {
    World {
        key: ObjectKey::new("app", "data"),
        receiver: Some(Arc::new(receiver(change))),
        advertise: "10.0.0.1:7000".parse().unwrap(),
        claim: None,
        place: place(),
        users: Vec::new(),
        images: Vec::new(),
        back: None,
        service: None,
        slice: None,
        epoch: 1,
        orphan: false,
        staging: Some(Staging { count: 4, base: Some("g1".to_owned()) }),
        expected: Some(Expected { volume: "v".to_owned(), incarnation: "copy-4".to_owned(), epoch: 2 }),
        received: Received::default(),
        mounts: (false, false),
        job: None,
        rival: false,
        trouble: None,
    }
}

fn image(name: &str, ready: bool, kept: bool) -> Arc<VolumeSnapshot> {
    let labels = if kept { json!({"volsync.backube/do-not-delete": "true"}) } else { json!({}) };
    let object = json!({"metadata": {"name": name, "namespace": "app", "labels": labels},
        "spec": {"source": {"persistentVolumeClaimName": "volsync-data-dst"}}, "status": {"readyToUse": ready}});
    Arc::new(serde_json::from_value(object).unwrap())
}

fn arrived(incarnation: &str) -> Completed {
    Completed {
        destination: "app/data".to_owned(),
        incarnation: incarnation.to_owned(),
        generation: "g2".to_owned(),
        base: None,
        epoch: 2,
        cut: "2030-01-01T12:00:00Z".parse().unwrap(),
        token: None,
        bytes: 1,
        entries: 1,
        skipped: 0,
        verified: false,
    }
}

fn does(world: &World, effects: &[Effect]) {
    let decision = decide(world, now());
    assert_eq!(decision.next, Next::Do(effects.to_vec()), "{world:#?}");
}

fn waits(world: &World, wanted: impl Fn(&Wait) -> bool) {
    let decision = decide(world, now());
    assert!(decision.why().is_some_and(wanted), "{decision:#?}");
}

#[test]
fn a_volume_is_made_known_and_expected_in_order() {
    let mut world = world(|_| {});
    world.place = Place::NoClaim;
    world.expected = None;
    does(&world, &[Effect::MakeClaim]);
    world.place = Place::Unbound;
    does(&world, &[Effect::SelectNode]);
    world.place = place();
    world.staging = None;
    does(&world, &[Effect::Begin]);
    // The volume's own epoch counts where it is higher than the group's.
    world.staging = Some(Staging { count: 4, base: None });
    does(&world, &[Effect::Listen { epoch: 2 }]);
    world.epoch = 3;
    does(&world, &[Effect::Listen { epoch: 3 }]);
}

#[test]
fn what_arrived_is_kept_before_it_is_told_and_told_before_the_next_may_come() {
    let mut world = world(|_| {});
    world.received.completed = Some(arrived("copy-4"));
    let Next::Do(effects) = decide(&world, now()).next else { panic!("nothing is done") };
    let [Effect::Image { name }] = effects.as_slice() else { panic!("{effects:?}") };
    assert!(name.starts_with("volsync-data-dst-20300101120000000-"), "{name}");
    world.images = vec![image(name, false, false)];
    waits(&world, |why| matches!(why, Wait::Publishing(_)));
    world.images = vec![image(name, true, false), image("older", true, false)];
    let decision = decide(&world, now());
    assert_eq!(decision.next, Next::Do(vec![Effect::Advance]));
    let status = decision.status.unwrap();
    assert_eq!(status.latest_image.unwrap().name, *name);
    assert_eq!(status.last_sync_duration.unwrap().0, "30s");
    // A word about another copy than the one that is there means nothing.
    world.received.completed = Some(arrived("copy-3"));
    does(&world, &[Effect::Serve]);
}

#[test]
fn nothing_is_written_to_a_claim_that_is_used_or_paused_or_another_movers() {
    let mut used = world(|_| {});
    used.users = vec!["pod app".to_owned()];
    does(&used, &[Effect::Hush]);
    used.expected = None;
    waits(&used, |why| matches!(why, Wait::InUse(_)));
    let mut paused = world(|object| object["spec"]["paused"] = json!(true));
    does(&paused, &[Effect::Hush]);
    paused.expected = None;
    waits(&paused, |why| *why == Wait::Paused);
    let mut rival = world(|_| {});
    rival.rival = true;
    does(&rival, &[Effect::Hush]);
    rival.expected = None;
    waits(&rival, |why| *why == Wait::OtherMover);
}

#[test]
fn an_applications_claim_is_guarded_and_let_go_only_at_rest() {
    let direct = |object: &mut Value| object["spec"]["rsyncTLS"]["destinationPVC"] = json!("data");
    let mut guarded = world(direct);
    guarded.expected = None;
    does(&guarded, &[Effect::Guard]);
    let mut going = world(|object| {
        direct(object);
        object["metadata"]["finalizers"] = json!([finalizers::RECEIVER]);
        object["metadata"]["deletionTimestamp"] = json!("2030-01-01T12:00:00Z");
    });
    does(&going, &[Effect::Hush]);
    going.expected = None;
    does(&going, &[Effect::Release]);
    // Without the image on this node, nothing is changed.
    let mut back = world(|object| {
        direct(object);
        object["spec"]["paused"] = json!(true);
        object["metadata"]["annotations"] = json!({ROLL_BACK_TO: "i"});
    });
    back.expected = None;
    waits(&back, |why| matches!(why, Wait::Failed(_)));
    back.back = Some(place());
    does(&back, &[Effect::StartBack]);
    back.users = vec!["pod app".to_owned()];
    waits(&back, |why| matches!(why, Wait::InUse(_)));
}

#[test]
fn what_is_spoiled_is_compared_anew() {
    let mut spoiled = world(|_| {});
    let peer = "10.0.0.2:1".parse().unwrap();
    spoiled.received.refused = Some((now(), peer, Refusal::Spoiled("x".to_owned())));
    does(&spoiled, &[Effect::Renew]);
    // An old epoch is told and changes nothing.
    spoiled.received.refused = Some((now(), peer, Refusal::OldEpoch { offered: 1, seen: 2 }));
    does(&spoiled, &[Effect::Serve]);
}

#[test]
fn images_go_with_their_receiver_but_for_those_that_are_kept() {
    let mut gone = world(|_| {});
    gone.receiver = None;
    gone.images = vec![image("one", true, false), image("two", true, true)];
    does(&gone, &[Effect::Hush]);
    gone.expected = None;
    does(&gone, &[Effect::DropImage { name: "one".to_owned() }]);
}
