//! Rules about receivers, one row each.

use jiff::Timestamp;
use lifeboat_api::annotations::{ROLL_BACK_TO, ROLLED_BACK_TO};
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
        clone: None,
        uncloned: false,
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
    does(&back, &[Effect::Clone { image: "i".to_owned() }]);
    back.users = vec!["pod app".to_owned()];
    waits(&back, |why| matches!(why, Wait::InUse(_)));
}

fn tagged(tag: &str) -> Place {
    let Place::Here(mut here) = place() else { unreachable!() };
    here.volume.tags.insert(tag.to_owned());
    Place::Here(here)
}

fn beside(tags: &[&str]) -> Option<Volume> {
    let Place::Here(here) = place() else { unreachable!() };
    Some(Volume { tags: tags.iter().map(|tag| (*tag).to_owned()).collect(), ..here.volume })
}

#[test]
fn the_way_back_is_a_copy_that_takes_the_volumes_place() {
    let mut back = world(|object| {
        object["spec"]["rsyncTLS"]["destinationPVC"] = json!("data");
        object["spec"]["paused"] = json!(true);
        object["metadata"]["annotations"] = json!({ROLL_BACK_TO: "i"});
    });
    back.expected = None;
    back.back = Some(place());
    let image = || "i".to_owned();
    does(&back, &[Effect::Clone { image: image() }]);
    // What is there of another image, or was replaced by one, is no copy of this one.
    for left in [&["lifeboat.back=other"][..], &[]] {
        back.clone = beside(left);
        does(&back, &[Effect::DropClone]);
    }
    back.clone = beside(&["lifeboat.back=i"]);
    back.mounts = (true, false);
    does(&back, &[Effect::Hush]);
    back.mounts = (false, false);
    does(&back, &[Effect::Swap { image: image() }]);
    // A death after it: told, whatever stands beside it.
    back.place = tagged("lifeboat.back=i");
    back.clone = beside(&[]);
    does(&back, &[Effect::Answer { image: image() }]);
    // Where the back end cannot, differences are copied in place; a volume of another image is no answer.
    back.place = tagged("lifeboat.back=other");
    back.clone = None;
    back.uncloned = true;
    does(&back, &[Effect::StartBack]);
}

#[test]
fn what_was_replaced_goes_after_the_answer_and_the_answer_before_anything_is_written() {
    let answered = |object: &mut Value| {
        object["spec"]["rsyncTLS"]["destinationPVC"] = json!("data");
        object["metadata"]["finalizers"] = json!([finalizers::RECEIVER]);
        object["metadata"]["annotations"] = json!({ROLL_BACK_TO: "i", ROLLED_BACK_TO: "i"});
    };
    let mut paused = world(|object| {
        answered(object);
        object["spec"]["paused"] = json!(true);
    });
    paused.expected = None;
    paused.clone = beside(&[]);
    does(&paused, &[Effect::DropClone]);
    paused.clone = None;
    waits(&paused, |why| *why == Wait::Paused);
    // Asked to go back to the same image later, it must not find the answer of this time.
    let mut again = world(answered);
    again.expected = None;
    does(&again, &[Effect::Forget]);
    let mut again = world(|object| {
        answered(object);
        object["metadata"]["annotations"] = json!({});
    });
    again.expected = None;
    again.place = tagged("lifeboat.back=i");
    does(&again, &[Effect::Forget]);
    again.place = place();
    again.clone = beside(&[]);
    does(&again, &[Effect::DropClone]);
    again.clone = None;
    does(&again, &[Effect::Listen { epoch: 2 }]);
}

#[test]
fn a_filesystem_that_was_made_is_noted_before_anything_is_received() {
    let mut world = world(|_| {});
    let Place::Here(mut here) = place() else { unreachable!() };
    here.volume.access = Access::Device("/dev/g/v".into());
    world.place = Place::Here(here.clone());
    world.expected = None;
    does(&world, &[Effect::Mount]);
    world.mounts = (true, false);
    does(&world, &[Effect::Mount]);
    here.volume.tags.insert("lifeboat.formatted".to_owned());
    world.place = Place::Here(here);
    does(&world, &[Effect::Listen { epoch: 2 }]);
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
