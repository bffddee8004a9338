//! One row for each rule of provisioning: a world, and what is decided about it.

use crate::central::{GIB, filled, sized};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, TopologySelectorTerm};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_engine::{Next, ObjectKey, variant};
use lifeboat_node::provision::decide::claim::ClaimEffect;
use lifeboat_node::provision::decide::place::Room;
use lifeboat_node::provision::decide::source::SourceView;
use lifeboat_node::provision::decide::{claim, leftover, place, reclaim};
use lifeboat_node::provision::desk::Failure;
use lifeboat_node::provision::make::{logical_volume, persistent_volume};
use lifeboat_node::provision::words::{COUNTED, UNPUBLISHED};
use lifeboat_node::provision::world::{ClaimWorld, LogicalWorld, VolumeWorld};
use lifeboat_testbed::fixtures::{self, With};
use serde_json::json;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

const DRIVER: &str = "topolvm.io";

fn now() -> Timestamp {
    "2030-01-01T00:00:00Z".parse().unwrap()
}

fn told<E: Debug, W: Debug>(next: &Next<E, W>) -> String {
    match next {
        Next::Do(effects) => format!("Do({})", effects.iter().map(variant).collect::<Vec<_>>().join(", ")),
        Next::Wait { why, .. } => format!("Wait({})", variant(why)),
        Next::Settled => "Settled".to_owned(),
    }
}

fn asking() -> PersistentVolumeClaim {
    fixtures::claim("ns", "c").with(|claim| {
        claim.metadata.uid = Some("u".into());
        let notes = [("volume.kubernetes.io/storage-provisioner".to_owned(), DRIVER.to_owned())];
        claim.metadata.annotations = Some(notes.into());
    })
}

fn class() -> StorageClass {
    fixtures::storage_class("fast").with(|class| class.provisioner = DRIVER.into())
}

fn node(name: &str, gib: u64) -> Node {
    fixtures::node(name).with(|node| {
        let free = ("capacity.topolvm.io/00default".to_owned(), (gib * GIB).to_string());
        node.metadata.annotations = Some([free, (COUNTED.to_owned(), String::new())].into());
    })
}

fn room(node: Node) -> Room {
    Room { node: Arc::new(node), volumes: Vec::new(), held: Vec::new() }
}

fn world() -> ClaimWorld {
    ClaimWorld {
        driver: DRIVER.into(),
        claim: Arc::new(asking()),
        class: Some(Arc::new(class())),
        logical: None,
        volume: None,
        rooms: vec![room(node("a", 2)), room(node("b", 3))],
        source: SourceView::default(),
        failure: None,
    }
}

/// The LogicalVolume of the claim, as the node leaves it.
fn made(status: serde_json::Value) -> LogicalVolume {
    let filling = lifeboat_node::provision::decide::source::Filling::Empty;
    let mut logical = logical_volume(&asking(), &class(), "b", GIB, &filling);
    logical.metadata.uid = Some("lv".into());
    logical.metadata.creation_timestamp = Some(Time(now()));
    logical.status = serde_json::from_value(status).unwrap();
    logical
}

fn done() -> LogicalVolume {
    made(json!({ "volumeID": "lv", "currentSize": "1Gi" }))
}

fn matter(world: &ClaimWorld) -> Option<BTreeSet<String>> {
    claim::nodes_that_matter(&world.claim, world.class.as_deref(), world.logical.as_deref(), &world.source)
}

#[test]
fn nodes_whose_volumes_are_looked_through() {
    let row = |rule: &str, change: &dyn Fn(&mut ClaimWorld), expected: Option<&[&str]>| {
        let mut world = world();
        change(&mut world);
        let expected: Option<BTreeSet<String>> =
            expected.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(matter(&world), expected, "{rule}");
    };
    let delayed = |world: &mut ClaimWorld| {
        let class = Arc::make_mut(world.class.as_mut().unwrap());
        class.volume_binding_mode = Some("WaitForFirstConsumer".into());
    };
    let selected = |world: &mut ClaimWorld| {
        delayed(world);
        let notes = Arc::make_mut(&mut world.claim).metadata.annotations.get_or_insert_default();
        notes.insert("volume.kubernetes.io/selected-node".into(), "a".into());
    };
    row("nobody has chosen: all", &|_| {}, None);
    row("the scheduler has still to choose: none", &delayed, Some(&[]));
    row("the scheduler has chosen: that one", &selected, Some(&["a"]));
    row("a class that is missing", &|world| world.class = None, Some(&[]));
    row(
        "its volume is being made: the node that makes it",
        &|world| world.logical = Some(Arc::new(made(json!({})))),
        Some(&["b"]),
    );
    row(
        "a copy is made where its source is, whatever the scheduler chose",
        &|world| {
            selected(world);
            world.source.logical = Some(Arc::new(done()));
        },
        Some(&["a", "b"]),
    );
}

#[test]
fn changes_of_a_node_that_wake_those_who_wait_for_room() {
    let row = |rule: &str, change: &dyn Fn(&mut Node), expected: bool| {
        let beats = |at: &str| {
            json!({ "type": "Ready", "status": "True", "lastHeartbeatTime": at,
                "lastTransitionTime": "2030-01-01T00:00:00Z" })
        };
        let told = |at: &str| {
            let status = json!({ "conditions": [beats(at)] });
            node("a", 2).with(|node| node.status = serde_json::from_value(status).unwrap())
        };
        let (before, mut after) = (told("2030-01-01T00:00:00Z"), told("2030-01-01T00:05:00Z"));
        change(&mut after);
        assert_eq!(place::says_something_new(Some(&before), Some(&after)), expected, "{rule}");
    };
    row("its kubelet says again that it is alive", &|_| {}, false);
    row("images came", &|node| node.status.get_or_insert_default().images = Some(Vec::new()), false);
    row("it has more room", &|one| one.metadata.annotations = node("a", 4).metadata.annotations, true);
    row("it is labelled", &|node| node.metadata.labels = Some([("a".into(), "b".into())].into()), true);
    row("it is cordoned", &|node| node.spec.get_or_insert_default().unschedulable = Some(true), true);
    row("it is not ready any more", &|node| node.status = None, true);
    let there = node("a", 2);
    assert!(place::says_something_new(None, Some(&there)), "a node that comes");
    assert!(place::says_something_new(Some(&there), None), "a node that goes");
}

#[test]
fn claims() {
    let row = |rule: &str, change: &dyn Fn(&mut ClaimWorld), expected: &str| {
        let mut world = world();
        change(&mut world);
        assert_eq!(told(&claim::decide(&world, now()).next), expected, "{rule}");
        if let Some(names) = matter(&world) {
            let all = format!("{:?}", claim::decide(&world, now()).next);
            world.rooms.retain(|room| names.contains(room.name()));
            assert_eq!(format!("{:?}", claim::decide(&world, now()).next), all, "{rule}: the others matter");
        }
    };
    let claimed = |change: &'static dyn Fn(&mut PersistentVolumeClaim)| {
        move |world: &mut ClaimWorld| change(Arc::make_mut(&mut world.claim))
    };
    let delayed = |world: &mut ClaimWorld| {
        Arc::make_mut(world.class.as_mut().unwrap()).volume_binding_mode =
            Some("WaitForFirstConsumer".into());
    };
    let select = |world: &mut ClaimWorld, node: &str| {
        let notes = Arc::make_mut(&mut world.claim).metadata.annotations.get_or_insert_default();
        notes.insert("volume.kubernetes.io/selected-node".into(), node.into());
    };
    row("a claim that asks gets a LogicalVolume", &|_| {}, "Do(Make)");
    row(
        "one that does not ask is left alone",
        &claimed(&|claim| claim.metadata.annotations = None),
        "Settled",
    );
    row("one that asks another is left alone", &|world| world.driver = "other".into(), "Settled");
    row(
        "one that is going is left alone",
        &claimed(&|claim| claim.metadata.deletion_timestamp = Some(Time(now()))),
        "Settled",
    );
    row(
        "one that names a volume is left alone",
        &claimed(&|claim| claim.spec.as_mut().unwrap().volume_name = Some("v".into())),
        "Settled",
    );
    row("a missing class is waited for", &|world| world.class = None, "Wait(ClassMissing)");
    row("more than anybody has is waited for", &claimed(&|claim| sized(claim, "4Gi")), "Wait(NoPlace)");
    row("no node at all", &|world| world.rooms.clear(), "Wait(NoPlace)");
    row(
        "many writers are refused",
        &claimed(&|claim| claim.spec.as_mut().unwrap().access_modes = Some(vec!["ReadWriteMany".into()])),
        "Wait(Refused)",
    );
    row(
        "one pod as writer is served",
        &claimed(&|claim| claim.spec.as_mut().unwrap().access_modes = Some(vec!["ReadWriteOncePod".into()])),
        "Do(Make)",
    );
    row(
        "a selector is refused",
        &claimed(&|claim| claim.spec.as_mut().unwrap().selector = Some(Default::default())),
        "Wait(Refused)",
    );
    row(
        "a missing snapshot is waited for",
        &claimed(&|claim| filled(claim, "VolumeSnapshot", "s")),
        "Wait(SourceNotReady)",
    );
    row(
        "a missing claim is waited for",
        &claimed(&|claim| filled(claim, "PersistentVolumeClaim", "x")),
        "Wait(SourceNotReady)",
    );
    row(
        "other sources are others' business",
        &claimed(&|claim| filled(claim, "Movie", "x")),
        "Wait(Populator)",
    );
    row("without a consumer nothing is made", &delayed, "Wait(FirstConsumer)");
    row(
        "the scheduler's node is taken",
        &|world| {
            delayed(world);
            select(world, "a");
        },
        "Do(Make)",
    );
    row(
        "a node that does not fit goes back to the scheduler",
        &|world| {
            delayed(world);
            select(world, "gone");
        },
        "Do(Reschedule)",
    );
    row(
        "a node without room goes back to the scheduler",
        &|world| {
            delayed(world);
            select(world, "a");
            sized(Arc::make_mut(&mut world.claim), "3Gi");
        },
        "Do(Reschedule)",
    );
    row("a failure pauses", &|world| world.failure = Some(failed(3, 5)), "Wait(Failed)");
    row("after the pause it is tried again", &|world| world.failure = Some(failed(3, -5)), "Do(Make)");
    row(
        "no room on the chosen node goes back to the scheduler",
        &|world| {
            delayed(world);
            select(world, "a");
            world.failure = Some(failed(8, 5));
        },
        "Do(Reschedule)",
    );
    row(
        "its LogicalVolume is being made",
        &|world| world.logical = Some(Arc::new(made(json!({})))),
        "Wait(Making)",
    );
    row("a made one is published", &|world| world.logical = Some(Arc::new(done())), "Do(Publish)");
    row(
        "a failed one is discarded",
        &|world| world.logical = Some(Arc::new(made(json!({"code": 8, "message": "no"})))),
        "Do(Discard)",
    );
    row(
        "one that exists is not discarded for a later failure",
        &|world| {
            world.logical = Some(Arc::new(made(json!({"volumeID": "lv", "code": 13, "message": "no"}))));
        },
        "Do(Publish)",
    );
    row(
        "one of another size is a stranger",
        &|world| {
            let mut logical = done();
            logical.spec.size.0 = "7Gi".into();
            world.logical = Some(Arc::new(logical));
        },
        "Wait(NameTaken)",
    );
    row(
        "one of another claim is a stranger",
        &|world| {
            let mut logical = done();
            logical
                .metadata
                .annotations
                .as_mut()
                .unwrap()
                .insert("topolvm.io/claim".into(), "ns/other".into());
            world.logical = Some(Arc::new(logical));
        },
        "Wait(NameTaken)",
    );
    row(
        "one that is going is waited for",
        &|world| {
            let mut logical = done();
            logical.metadata.deletion_timestamp = Some(Time(now()));
            world.logical = Some(Arc::new(logical));
        },
        "Wait(Discarding)",
    );
    row(
        "one whose node is gone before it was begun is discarded",
        &|world| {
            world.logical = Some(Arc::new(made(json!({}))));
            world.rooms.clear();
        },
        "Do(Discard)",
    );
    row(
        "one whose node is gone after it was begun is not",
        &|world| {
            let mut logical = made(json!({}));
            logical.metadata.finalizers = Some(vec!["topolvm.io/logicalvolume".into()]);
            world.logical = Some(Arc::new(logical));
            world.rooms.clear();
        },
        "Wait(NodeGone)",
    );
    row("published is done", &|world| world.volume = Some(Arc::new(published())), "Settled");
    row(
        "a stranger's volume of the name is told of",
        &|world| {
            let mut volume = published();
            volume.spec.as_mut().unwrap().claim_ref = None;
            world.volume = Some(Arc::new(volume));
        },
        "Wait(NameTaken)",
    );
}

fn failed(code: i32, seconds: i64) -> Failure {
    let until = now() + SignedDuration::from_secs(seconds);
    Failure { code, message: "no".into(), node: "a".into(), until, times: 1 }
}

fn published() -> PersistentVolume {
    persistent_volume(&asking(), &class(), &done(), DRIVER)
}

#[test]
fn places() {
    let row =
        |rule: &str, change: &dyn Fn(&mut Vec<Room>, &mut Vec<TopologySelectorTerm>), expected: &str| {
            let mut rooms = vec![room(node("a", 2)), room(node("b", 3)), room(node("c", 3))];
            let mut topologies = Vec::new();
            change(&mut rooms, &mut topologies);
            let chosen = place::choose(&rooms, &topologies, "", 2 * GIB, None, now());
            assert_eq!(
                chosen.map_or_else(|why| variant(&why), |room| room.name().to_owned()),
                expected,
                "{rule}"
            );
        };
    let volume = |name: &str, status: serde_json::Value| {
        Arc::new(made(status).with(|one| one.metadata.uid = Some(name.into())))
    };
    fn change(room: &mut Room) -> &mut Node {
        Arc::make_mut(&mut room.node)
    }
    let only = |key: &str, value: &str| -> TopologySelectorTerm {
        serde_json::from_value(json!({ "matchLabelExpressions": [{ "key": key, "values": [value] }] }))
            .unwrap()
    };
    row("most free, then by name", &|_, _| {}, "b");
    row(
        "a volume that is not made yet counts",
        &|rooms, _| rooms[1].volumes = vec![volume("x", json!({}))],
        "c",
    );
    row(
        "a young one that the report does not name counts",
        &|rooms, _| rooms[1].volumes = vec![volume("x", json!({"volumeID": "x"}))],
        "c",
    );
    row(
        "one that the report names does not",
        &|rooms, _| {
            rooms[1].volumes = vec![volume("x", json!({"volumeID": "x"}))];
            change(&mut rooms[1])
                .metadata
                .annotations
                .as_mut()
                .unwrap()
                .insert(COUNTED.into(), "staging-x".into());
        },
        "b",
    );
    row(
        "an old one does not",
        &|rooms, _| {
            let mut old = (*volume("x", json!({"volumeID": "x"}))).clone();
            old.metadata.creation_timestamp = Some(Time(now() - SignedDuration::from_mins(6)));
            rooms[1].volumes = vec![Arc::new(old)];
        },
        "b",
    );
    row(
        "growth that is promised counts",
        &|rooms, _| {
            let mut growing = (*volume("x", json!({"volumeID": "x", "currentSize": "1Gi"}))).clone();
            growing.metadata.creation_timestamp = Some(Time(now() - SignedDuration::from_mins(6)));
            growing.spec.size.0 = "2Gi".into();
            rooms[1].volumes = vec![Arc::new(growing)];
        },
        "c",
    );
    row("what is just being promised counts", &|rooms, _| rooms[1].held = vec![(String::new(), GIB)], "c");
    row("another class does not", &|rooms, _| rooms[1].held = vec![("slow".into(), GIB)], "b");
    row(
        "a cordoned node is the last choice",
        &|rooms, _| change(&mut rooms[1]).spec.get_or_insert_default().unschedulable = Some(true),
        "c",
    );
    row(
        "a node that is not ready is none",
        &|rooms, _| {
            for room in &mut rooms[1..] {
                let status = serde_json::from_value(
                    json!({ "conditions": [{ "type": "Ready", "status": "Unknown" }] }),
                )
                .unwrap();
                change(room).status = Some(status);
            }
        },
        "a",
    );
    row(
        "the class allows nodes by name",
        &|_, allowed| allowed.push(only("topology.topolvm.io/node", "a")),
        "a",
    );
    row(
        "the class allows nodes by host",
        &|_, allowed| allowed.push(only("kubernetes.io/hostname", "c")),
        "c",
    );
    row("the class allows none", &|_, allowed| allowed.push(only("zone", "x")), "NoNode");
    row("nobody has enough", &|rooms, _| rooms.drain(..).for_each(drop), "NoNode");
    row("who has most is named", &|rooms, _| *rooms = vec![room(node("a", 1))], "NoRoom");
}

#[test]
fn leftovers() {
    let row = |rule: &str, change: &dyn Fn(&mut LogicalWorld), expected: &str| {
        let mut world = LogicalWorld {
            logical: Arc::new(done()),
            claim_key: Some(ObjectKey::new("ns", "c")),
            claim: Some(Arc::new(asking())),
            volume: None,
        };
        change(&mut world);
        assert_eq!(told(&leftover::decide(&world).next), expected, "{rule}");
    };
    row("its claim still waits for it", &|_| {}, "Settled");
    row("its claim is gone", &|world| world.claim = None, "Do(Remove)");
    row(
        "its claim is a namesake",
        &|world| Arc::make_mut(world.claim.as_mut().unwrap()).metadata.uid = Some("other".into()),
        "Do(Remove)",
    );
    row(
        "its claim has taken another volume",
        &|world| {
            Arc::make_mut(world.claim.as_mut().unwrap()).spec.as_mut().unwrap().volume_name =
                Some("other".into());
        },
        "Do(Remove)",
    );
    row("it is published", &|world| world.volume = Some(Arc::new(published())), "Do(Seal)");
    row(
        "what was published once is nobody's leftover",
        &|world| {
            Arc::make_mut(&mut world.logical).metadata.annotations.as_mut().unwrap().remove(UNPUBLISHED);
            world.claim = None;
        },
        "Settled",
    );
}

#[test]
fn volumes() {
    let row = |rule: &str, change: &dyn Fn(&mut VolumeWorld), expected: &str| {
        let mut volume = published();
        volume.status = Some(Default::default());
        volume.status.as_mut().unwrap().phase = Some("Released".into());
        let mut world = VolumeWorld {
            driver: DRIVER.into(),
            volume: Arc::new(volume),
            claim: None,
            logical: Some(Arc::new(done())),
            copies: Vec::new(),
        };
        change(&mut world);
        assert_eq!(told(&reclaim::decide(&world).next), expected, "{rule}");
    };
    fn volume(world: &mut VolumeWorld) -> &mut PersistentVolume {
        Arc::make_mut(&mut world.volume)
    }
    let phase = |world: &mut VolumeWorld, phase: &str| {
        volume(world).status.as_mut().unwrap().phase = Some(phase.into());
    };
    let policy = |world: &mut VolumeWorld, policy: &str| {
        volume(world).spec.as_mut().unwrap().persistent_volume_reclaim_policy = Some(policy.into());
    };
    let sealed = |world: &mut VolumeWorld| {
        Arc::make_mut(world.logical.as_mut().unwrap())
            .metadata
            .annotations
            .as_mut()
            .unwrap()
            .remove(UNPUBLISHED);
    };
    row("released: the storage goes first", &|_| {}, "Do(DeleteStorage)");
    row("a stranger's is left alone", &|world| world.driver = "other".into(), "Settled");
    row("bound: nothing goes", &|world| phase(world, "Bound"), "Settled");
    row("the claim is still there", &|world| world.claim = Some(Arc::new(asking())), "Wait(ClaimExists)");
    row("copies come first", &|world| world.copies = vec!["pvc-x".into()], "Wait(BeingCopied)");
    row(
        "the node removes it",
        &|world| {
            Arc::make_mut(world.logical.as_mut().unwrap()).metadata.deletion_timestamp = Some(Time(now()));
        },
        "Wait(StorageGoing)",
    );
    row("then the volume goes", &|world| world.logical = None, "Do(Delete)");
    row(
        "then its finalizer",
        &|world| {
            world.logical = None;
            volume(world).metadata.deletion_timestamp = Some(Time(now()));
        },
        "Do(Release)",
    );
    row(
        "kept storage needs no finalizer",
        &|world| {
            policy(world, "Retain");
            sealed(world);
        },
        "Do(Release)",
    );
    row("but only once it is known to be published", &|world| policy(world, "Retain"), "Settled");
    row(
        "a policy that changed to Delete puts it on",
        &|world| {
            phase(world, "Bound");
            volume(world).metadata.finalizers = None;
        },
        "Do(Hold)",
    );
    row(
        "deleted without ever having a claim",
        &|world| {
            phase(world, "Available");
            volume(world).spec.as_mut().unwrap().claim_ref = None;
            volume(world).metadata.deletion_timestamp = Some(Time(now()));
        },
        "Do(DeleteStorage)",
    );
}

#[test]
fn a_barrier_comes_with_the_volume() {
    let mut world = world();
    filled(Arc::make_mut(&mut world.claim), "VolumeSnapshot", "s");
    let handle = "backup/ns/store/origin";
    world.source.snapshot = Some(Arc::new(
        serde_json::from_value(json!({
            "metadata": { "name": "s", "namespace": "ns", "uid": "su" }, "spec": { "source": {} },
            "status": { "readyToUse": true, "boundVolumeSnapshotContentName": "sc" },
        }))
        .unwrap(),
    ));
    world.source.content = Some(Arc::new(serde_json::from_value(json!({
        "metadata": { "name": "sc" }, "status": { "snapshotHandle": handle, "restoreSize": 1024, "readyToUse": true },
        "spec": { "driver": DRIVER, "deletionPolicy": "Delete", "source": {}, "volumeSnapshotRef": { "name": "s", "namespace": "ns", "uid": "su" } },
    })).unwrap()));
    let Next::Do(effects) = claim::decide(&world, now()).next else { panic!() };
    let [ClaimEffect::Make(logical)] = effects.as_slice() else { panic!("{effects:?}") };
    let notes = logical.metadata.annotations.as_ref().unwrap();
    assert_eq!(notes["topolvm.io/snapshot-restore-required"], handle);
    assert_eq!((logical.spec.node_name.as_str(), &logical.spec.source), ("b", &None));
}
