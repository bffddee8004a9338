//! Rules about receivers, one row each.

use jiff::Timestamp;
use lifeboat_api::annotations::{ROLL_BACK_TO, ROLLED_BACK_TO};
use lifeboat_api::finalizers;
use lifeboat_api::snapshot::VolumeSnapshot;
use lifeboat_api::volsync::ReplicationDestination;
use lifeboat_engine::{Next, ObjectKey};
use lifeboat_lvm::{Access, AccessMode, Volume};
use lifeboat_replicate::destination::decide::{Effect, decide};
use lifeboat_replicate::destination::world::{Expected, Lineage, Received, World};
use lifeboat_replicate::jobs::JobView;
use lifeboat_replicate::kinds::claim_of_receiver;
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
        tags: ["lifeboat.epoch=2".to_owned(), "lifeboat.replica=g1".to_owned()].into(),
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

/// What is known of the volume of the receiver `u`.
fn known(base: Option<&str>) -> Staging {
    let base = base.map(str::to_owned);
    Staging { count: 4, base, receiver: Some("u".to_owned()), epoch: Some(2), lineage: None }
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
        touched: false,
        images: Vec::new(),
        keeps: 3,
        back: None,
        clone: None,
        uncloned: false,
        service: None,
        slice: None,
        epoch: 1,
        orphan: false,
        staging: Some(known(Some("g1"))),
        expected: Some(Expected {
            volume: "v".to_owned(),
            incarnation: "copy-4".to_owned(),
            epoch: 2,
            lineage: Lineage::default(),
        }),
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
        lineage: Some("l".to_owned()),
        fuzzy: None,
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
    world.staging = Some(known(None));
    does(&world, &[Effect::Listen { epoch: 2 }]);
    world.epoch = 3;
    does(&world, &[Effect::Listen { epoch: 3 }]);
}

#[test]
fn a_receiver_of_any_legal_name_has_legal_names_for_what_it_makes() {
    let is_legal = |name: &str| {
        let ends = |part: &str| {
            part.starts_with(|one: char| one.is_ascii_alphanumeric())
                && part.ends_with(|one: char| one.is_ascii_alphanumeric())
        };
        name.len() <= 253 && name.split('.').all(ends)
    };
    // A dot or a hyphen at every place where a name may be cut.
    let dotted = |at: usize| format!("{}.-{}", "a".repeat(at), "b".repeat(251 - at)).replace(".-", ".c");
    let hyphens = |at: usize| format!("{}--{}", "a".repeat(at), "b".repeat(251 - at));
    let whole = (1..=253).map(|length| "x".repeat(length));
    let others = (150..250).flat_map(|at| [dotted(at), hyphens(at)]);
    for name in whole.chain(others) {
        let mut world = world(|object| object["metadata"]["name"] = json!(name));
        world.key = ObjectKey::new("app", name.clone());
        does(&world, &[Effect::Serve]);
        let claim = claim_of_receiver(world.receiver.as_deref().unwrap()).name;
        assert!(is_legal(&claim), "{claim}");
        world.received.completed = Some(arrived("copy-4"));
        match decide(&world, now()).next {
            Next::Do(effects) => match &effects[..] {
                [Effect::Image { name }] => assert!(is_legal(name), "{name}"),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
        // As VolSync has it where there is room.
        assert_eq!(claim == format!("volsync-{name}-dst"), name.len() <= 241, "{claim}");
    }
    let of =
        |name: String| claim_of_receiver(&receiver(|object| object["metadata"]["name"] = json!(name))).name;
    assert_ne!(of(format!("{}a", "x".repeat(252))), of(format!("{}b", "x".repeat(252))));
}

#[test]
fn a_service_of_another_receiver_is_left_to_it() {
    let service = |owner: &str| {
        let object = json!({"metadata": {"name": "volsync-rsync-tls-dst-data", "namespace": "app",
            "labels": {"app.kubernetes.io/created-by": "lifeboat-replicate"},
            "ownerReferences": [{"apiVersion": "volsync.backube/v1alpha1", "kind": "ReplicationDestination",
                "name": owner, "uid": "other"}]}});
        Some(Arc::new(serde_json::from_value(object).unwrap()))
    };
    let mut world = world(|_| {});
    // Of a receiver that was deleted and made anew.
    world.service = service("data");
    does(&world, &[Effect::Serve]);
    // Two names with one checksum.
    world.service = service("another");
    waits(&world, |why| matches!(why, Wait::Unsupported(why) if why.contains("another")));
}

#[test]
fn what_arrived_is_kept_before_it_is_told_and_told_before_the_next_may_come() {
    let mut world = world(|_| {});
    world.received.completed = Some(arrived("copy-4"));
    let Next::Do(effects) = decide(&world, now()).next else { panic!("nothing is done") };
    let [Effect::Image { name }] = effects.as_slice() else { panic!("{effects:?}") };
    assert!(name.starts_with("volsync-data-dst-20300101120000000-"), "{name}");
    let told = decide(&world, now()).status.unwrap().external;
    assert_eq!(
        (told["unpublished"].as_str(), told["unpublishedCut"].as_str()),
        ("g2", "2030-01-01T12:00:00Z")
    );
    world.images = vec![image(name, false, false)];
    waits(&world, |why| matches!(why, Wait::Publishing(_)));
    assert_eq!(decide(&world, now()).status.unwrap().external["unpublished"], "g2");
    world.images = vec![image(name, true, false), image("older", true, false)];
    let decision = decide(&world, now());
    assert_eq!(decision.next, Next::Do(vec![Effect::Advance]));
    let status = decision.status.unwrap();
    assert_eq!(status.latest_image.unwrap().name, *name);
    assert_eq!(status.last_sync_duration.unwrap().0, "30s");
    assert_eq!((status.external["generation"].as_str(), status.external["lineage"].as_str()), ("g2", "l"));
    assert!(!status.external.contains_key("unpublished"));
    // A word about another copy than the one that is there means nothing.
    world.received.completed = Some(arrived("copy-3"));
    does(&world, &[Effect::Serve]);
}

#[test]
fn nothing_is_written_to_a_claim_that_is_used_or_paused_or_another_movers() {
    let mut used = world(|_| {});
    used.users = vec!["pod app".to_owned()];
    does(&used, &[Effect::Renew]);
    used.staging = Some(Staging::unknown(5, "u"));
    does(&used, &[Effect::Hush]);
    used.expected = None;
    waits(&used, |why| matches!(why, Wait::InUse(_)));
    let mut paused = world(|object| object["spec"]["paused"] = json!(true));
    does(&paused, &[Effect::Hush]);
    paused.expected = None;
    waits(&paused, |why| *why == Wait::Paused);
    let mut rival = world(|_| {});
    rival.rival = true;
    does(&rival, &[Effect::Renew]);
    rival.staging = Some(Staging::unknown(5, "u"));
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
    does(&going, &[Effect::Renew]);
    going.staging = Some(Staging::unknown(5, "u"));
    does(&going, &[Effect::Hush]);
    going.expected = None;
    does(&going, &[Effect::Release]);
    // Without the image on this node, nothing is changed.
    let mut back = world(|object| {
        direct(object);
        object["metadata"]["finalizers"] = json!([finalizers::RECEIVER]);
        object["spec"]["paused"] = json!(true);
        object["metadata"]["annotations"] = json!({ROLL_BACK_TO: "i"});
    });
    back.expected = None;
    does(&back, &[Effect::Renew]);
    back.staging = Some(Staging::unknown(5, "u"));
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
        object["metadata"]["finalizers"] = json!([finalizers::RECEIVER]);
        object["metadata"]["annotations"] = json!({ROLL_BACK_TO: "i"});
    });
    back.expected = None;
    back.staging = Some(Staging::unknown(4, "u"));
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
    paused.staging = Some(Staging::unknown(5, "u"));
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

#[test]
fn what_others_may_have_written_to_is_no_base() {
    let direct = |object: &mut Value| {
        object["spec"]["rsyncTLS"]["destinationPVC"] = json!("data");
        object["metadata"]["finalizers"] = json!([finalizers::RECEIVER]);
    };
    let unknown = || Some(Staging::unknown(5, "u"));
    // At rest nothing is given up.
    does(&world(direct), &[Effect::Serve]);
    let mut earlier = world(direct);
    earlier.staging.as_mut().unwrap().receiver = Some("another".to_owned());
    does(&earlier, &[Effect::Renew]);
    earlier.staging.as_mut().unwrap().receiver = None;
    does(&earlier, &[Effect::Renew]);
    for tag in ["lifeboat.replica=g1", "lifeboat.epoch=2"] {
        let mut other = world(direct);
        let Place::Here(here) = &mut other.place else { unreachable!() };
        here.volume.tags.remove(tag);
        does(&other, &[Effect::Renew]);
        other.staging = unknown();
        does(&other, &[Effect::Listen { epoch: if tag.contains("epoch") { 1 } else { 2 } }]);
    }
    // A pod that came and went, also while a copy was on its way that compares.
    let mut touched = world(|_| {});
    touched.touched = true;
    does(&touched, &[Effect::Renew]);
    touched.staging = unknown();
    does(&touched, &[Effect::Renew]);
    touched.expected = None;
    does(&touched, &[Effect::Listen { epoch: 2 }]);
    // What is complete is not published once somebody has written to it.
    let mut arrived_late = world(|_| {});
    arrived_late.received.completed = Some(arrived("copy-4"));
    arrived_late.touched = true;
    does(&arrived_late, &[Effect::Renew]);
    // Before an application's claim is let go, on disk.
    let mut paused = world(|object| {
        direct(object);
        object["spec"]["paused"] = json!(true);
    });
    does(&paused, &[Effect::Renew]);
    paused.place = Place::Unlisted("c".to_owned());
    paused.expected = None;
    does(&paused, &[Effect::List { class: "c".to_owned() }]);
    let served = |object: &mut Value| {
        direct(object);
        object["spec"]["trigger"] = json!({"manual": "m"});
        object["status"] = json!({"lastManualSync": "m"});
    };
    does(&world(served), &[Effect::Renew]);
    // Disks that cannot be seen at this moment do not change hands.
    let mut unseen = world(direct);
    unseen.mounts = (true, false);
    unseen.place = Place::Unlisted("c".to_owned());
    does(&unseen, &[Effect::List { class: "c".to_owned() }]);
    unseen.place = Place::Unreadable("x".to_owned());
    waits(&unseen, |why| matches!(why, Wait::Failed(_)));
}

#[test]
fn nothing_is_received_and_nobody_is_let_in_while_a_roll_back_writes() {
    let running = |image: &str| Some(JobView { of: image.to_owned(), outcome: None, failures: 0 });
    let direct = |object: &mut Value| {
        object["spec"]["rsyncTLS"]["destinationPVC"] = json!("data");
        object["metadata"]["finalizers"] = json!([finalizers::RECEIVER]);
    };
    let with = |change: &dyn Fn(&mut Value)| {
        let mut world = world(|object| {
            direct(object);
            change(object);
        });
        (world.expected, world.job, world.staging) = (None, running("i"), Some(Staging::unknown(5, "u")));
        world
    };
    does(&with(&|_| {}), &[Effect::Hush]);
    let going = |object: &mut Value| {
        object["metadata"]["deletionTimestamp"] = json!("2030-01-01T12:00:00Z");
    };
    does(&with(&going), &[Effect::Hush]);
    let paused = |object: &mut Value| object["spec"]["paused"] = json!(true);
    does(&with(&paused), &[Effect::Hush]);
    let back = |object: &mut Value| {
        paused(object);
        object["metadata"]["annotations"] = json!({ROLL_BACK_TO: "i"});
    };
    let mut same = with(&back);
    same.back = Some(place());
    waits(&same, |why| matches!(why, Wait::RollingBack(_)));
    same.users = vec!["pod app".to_owned()];
    does(&same, &[Effect::Hush]);
    let mut other = with(&back);
    (other.back, other.job) = (Some(place()), running("another"));
    does(&other, &[Effect::Hush]);
    // Nothing writes for a receiver that could vanish.
    let mut loose = with(&|object: &mut Value| {
        back(object);
        object["metadata"]["finalizers"] = json!([]);
    });
    (loose.back, loose.job) = (Some(place()), None);
    does(&loose, &[Effect::Guard]);
}

#[test]
fn a_pause_keeps_what_is_complete_unless_somebody_goes_back_or_uses_it() {
    let paused = |back: bool| {
        let mut world = world(|object| {
            object["spec"]["rsyncTLS"]["destinationPVC"] = json!("data");
            object["metadata"]["finalizers"] = json!([finalizers::RECEIVER]);
            object["spec"]["paused"] = json!(true);
            if back {
                object["metadata"]["annotations"] = json!({ROLL_BACK_TO: "i"});
            }
        });
        world.received.completed = Some(arrived("copy-4"));
        world
    };
    let mut world = paused(false);
    does(&world, &[Effect::Hush]);
    world.expected = None;
    assert!(
        matches!(decide(&world, now()).next, Next::Do(effects) if matches!(effects[0], Effect::Image { .. }))
    );
    world.users = vec!["pod app".to_owned()];
    does(&world, &[Effect::Renew]);
    does(&paused(true), &[Effect::Renew]);
}

#[test]
fn another_volume_is_accepted_by_hand_and_what_was_there_is_kept_aside() {
    let with = |accept: Option<&str>| {
        let mut world = world(|object| {
            if let Some(accept) = accept {
                object["metadata"]["annotations"] = json!({"ramendr.openshift.io/accept-lineage": accept});
            }
        });
        world.staging.as_mut().unwrap().lineage = Some("one".to_owned());
        world.images = vec![image("old", true, false), image("kept", true, true)];
        world
    };
    // What is held is told to the stream.
    does(&with(None), &[Effect::Listen { epoch: 2 }]);
    let mut accepts = with(Some("two"));
    does(&accepts, &[Effect::KeepAside { name: "old".to_owned() }]);
    accepts.images = vec![image("old", true, true)];
    does(&accepts, &[Effect::Listen { epoch: 2 }]);
    let lineage = Lineage { held: Some("one".to_owned()), accepted: Some("two".to_owned()) };
    accepts.expected.as_mut().unwrap().lineage = lineage;
    does(&accepts, &[Effect::Serve]);
    // The lineage that is there needs no acceptance.
    does(&with(Some("one")), &[Effect::Listen { epoch: 2 }]);
}
