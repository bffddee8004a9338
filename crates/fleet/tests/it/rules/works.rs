//! What is decided about works.

use jiff::Timestamp;
use kube::api::DynamicObject;
use lifeboat_api::annotations::{MADE_BY_RECORD, OBJECT_HASH};
use lifeboat_api::work::{AppliedManifestWork, ManifestWork};
use lifeboat_engine::{Class, Next, Trouble, Why as _, variant};
use lifeboat_fleet::work::decide::{Effect, decide};
use lifeboat_fleet::work::manifest::Manifest;
use lifeboat_fleet::work::world::{Failure, Home, Item, Recorded, Whereabouts, World, config_of};
use lifeboat_fleet::{Found, Kind, Seen, Standing, Target};
use serde_json::{Value, json};
use std::sync::Arc;

fn now() -> Timestamp {
    "2030-01-01T00:00:00Z".parse().unwrap()
}

fn maps() -> Kind {
    Kind {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        resource: "configmaps".to_owned(),
        namespaced: true,
    }
}

fn target(name: &str) -> Target {
    Target { kind: maps(), namespace: "shop".to_owned(), name: name.to_owned() }
}

fn manifest(name: &str) -> Value {
    crate::things::config_map("shop", name, "1")
}

/// An object as it stands on the cluster: made under a record or not, from this manifest or another.
fn object(name: &str, uid: &str, record: Option<&str>) -> DynamicObject {
    let mut object: DynamicObject = serde_json::from_value(manifest(name)).unwrap();
    object.metadata.uid = Some(uid.to_owned());
    object.metadata.generation = Some(1);
    let hash = Manifest::read(&k8s_openapi::apimachinery::pkg::runtime::RawExtension(manifest(name)))
        .unwrap()
        .hash();
    let annotations = object.metadata.annotations.get_or_insert_default();
    annotations.insert(OBJECT_HASH.to_owned(), hash);
    if let Some(record) = record {
        annotations.insert(MADE_BY_RECORD.to_owned(), record.to_owned());
    }
    object
}

/// A world with one manifest for each name, held, with an empty record of uid `r`, and nothing on the cluster.
fn world(names: &[&str]) -> World {
    let manifests: Vec<Value> = names.iter().map(|name| manifest(name)).collect();
    let work: ManifestWork = serde_json::from_value(json!({
        "metadata": { "name": "w", "namespace": "east", "generation": 3,
                      "finalizers": ["cluster.open-cluster-management.io/manifest-work-cleanup"] },
        "spec": { "workload": { "manifests": manifests } },
    }))
    .unwrap();
    let record: AppliedManifestWork =
        serde_json::from_value(json!({ "metadata": { "name": "h-w", "uid": "r" }, "spec": {} })).unwrap();
    let items = work.spec.workload.as_ref().unwrap().manifests.iter().zip(names).map(|(raw, name)| Item {
        manifest: Manifest::read(raw),
        kind: Found::Kind(maps()),
        carried: true,
        target: Some(target(name)),
        seen: Seen::Absent,
        home: Home::There,
        config: config_of(&work.spec, &target(name)),
        failure: None,
    });
    World {
        items: items.collect(),
        work: Arc::new(work),
        standing: Standing::Meant,
        kinds_known: true,
        record: Some(Arc::new(record)),
        recorded: Vec::new(),
        trouble: None,
    }
}

impl Alter for World {}

/// Changes to a world, in the middle of an expression.
trait Alter: Sized {
    fn but(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

fn with_work(world: &mut World, change: impl FnOnce(&mut ManifestWork)) {
    change(Arc::make_mut(&mut world.work));
}

/// An entry of the record, with what is seen of its object.
fn entry(world: &mut World, name: &str, uid: Option<&str>, seen: Seen) {
    let entry =
        json!({ "resource": "configmaps", "namespace": "shop", "name": name, "version": "v1", "uid": uid });
    let entry = serde_json::from_value(entry).unwrap();
    world.recorded.push(Recorded { entry, target: Whereabouts::Target(target(name)), seen });
}

fn sees(world: &mut World, at: usize, object: DynamicObject) {
    world.items[at].seen = Seen::Present(Arc::new(object));
}

/// The next step in short: the effects with their objects, what is waited for, or that all is settled.
fn next(world: &World) -> String {
    let name = |effect: &Effect| match effect {
        Effect::Make { target, .. } | Effect::Replace { target, .. } | Effect::Apply { target, .. } => {
            format!("{} {}", variant(effect), target.name)
        }
        Effect::Delete { target, uid } => format!("Delete {} {uid}", target.name),
        Effect::Record { entries } => {
            let entry = |uid: &Option<String>| uid.clone().unwrap_or_else(|| "being made".to_owned());
            let entries: Vec<String> =
                entries.iter().map(|one| format!("{}={}", one.name, entry(&one.uid))).collect();
            format!("Record [{}]", entries.join(" "))
        }
        other => variant(other),
    };
    match decide(world, now()).next {
        Next::Do(effects) => effects.iter().map(name).collect::<Vec<_>>().join(", "),
        Next::Wait { why, until } => {
            format!("wait {}{}", why.reason(), if until.is_some() { " until" } else { "" })
        }
        Next::Settled => "settled".to_owned(),
    }
}

fn check(world: &World, wanted: &str) {
    assert_eq!(next(world), wanted);
}

#[test]
fn a_work_is_held_recorded_intended_made_and_noted_in_this_order() {
    let fresh = || world(&["a"]);
    check(&fresh().but(|world| with_work(world, |work| work.metadata.finalizers = None)), "Hold");
    check(&fresh().but(|world| world.kinds_known = false), "wait KindsUnknown");
    check(&fresh().but(|world| world.record = None), "OpenRecord");
    check(&fresh(), "Record [a=being made]");
    check(&fresh().but(|world| entry(world, "a", None, Seen::Absent)), "Make a");
    let made = fresh().but(|world| {
        entry(world, "a", None, Seen::Present(Arc::new(object("a", "1", Some("r")))));
        sees(world, 0, object("a", "1", Some("r")));
    });
    check(&made, "Record [a=1]");
    let noted = fresh().but(|world| {
        entry(world, "a", Some("1"), Seen::Present(Arc::new(object("a", "1", Some("r")))));
        sees(world, 0, object("a", "1", Some("r")));
    });
    check(&noted, "settled");
}

#[test]
fn nothing_is_done_for_a_cluster_that_is_not_meant() {
    check(&world(&["a"]).but(|world| world.standing = Standing::Other("x".to_owned())), "wait OtherCluster");
    check(&world(&["a"]).but(|world| world.standing = Standing::Unknown), "wait IdentityUnknown");
}

#[test]
fn what_is_not_seen_is_waited_for() {
    check(&world(&["a"]).but(|world| world.items[0].seen = Seen::NotYet), "wait Looking");
    check(
        &world(&["a"]).but(|world| world.items[0].seen = Seen::Failing("cut".to_owned())),
        "wait ClusterSilent",
    );
    check(&world(&["a"]).but(|world| world.items[0].home = Home::Missing), "wait NoNamespace");
    check(&world(&["a"]).but(|world| world.items[0].home = Home::Going), "wait NoNamespace");
    check(&world(&["a"]).but(|world| world.items[0].home = Home::Unknown), "wait Looking");
}

#[test]
fn what_cannot_be_applied_is_refused_and_no_entry_is_made() {
    let refused = "wait Refused";
    check(&world(&["a"]).but(|world| world.items[0].manifest = Err("no object".to_owned())), refused);
    check(&world(&["a"]).but(|world| world.items[0].carried = false), refused);
    check(&world(&["a"]).but(|world| world.items[0].kind = Found::None), refused);
    check(&world(&["a"]).but(|world| world.items[0].kind = Found::Unclear), "wait Looking");
    let executor = json!({ "subject": { "type": "ServiceAccount", "serviceAccount": { "name": "x", "namespace": "y" } } });
    let impersonating = world(&["a"])
        .but(|world| with_work(world, |work| work.spec.executor = serde_json::from_value(executor).unwrap()));
    check(&impersonating, refused);
    // The second of the same object is refused, the first is not.
    check(&world(&["a", "a"]), "Record [a=being made]");
}

#[test]
fn a_refusal_is_tried_again_when_something_changed_or_it_is_time() {
    let refused = |on: &str, hash: &str, again: &str| {
        let failure = Failure {
            hash: hash.to_owned(),
            on: on.to_owned(),
            message: "no".to_owned(),
            ignore_fields: false,
            tries: 1,
            again: again.parse().unwrap(),
        };
        world(&["a"]).but(|world| {
            entry(world, "a", None, Seen::Absent);
            world.items[0].failure = Some(failure);
        })
    };
    let hash =
        Manifest::read(&k8s_openapi::apimachinery::pkg::runtime::RawExtension(manifest("a"))).unwrap().hash();
    let (past, future) = ("2029-12-31T23:59:59Z", "2030-01-01T00:00:01Z");
    check(&refused("", &hash, future), "wait Refused until");
    check(&refused("", &hash, past), "Make a");
    check(&refused("", "another", future), "Make a");
    check(&refused("uid/1", &hash, future), "Make a");
}

#[test]
fn what_others_need_comes_first_and_a_failure_does_not_hold_it_up() {
    let both = world(&["a", "b"]).but(|world| {
        entry(world, "a", None, Seen::Absent);
        entry(world, "b", None, Seen::Absent);
        let mut namespace = world.items[1].manifest.clone().unwrap();
        namespace.kind = "Namespace".to_owned();
        world.items[1].manifest = Ok(namespace);
    });
    check(&both, "Make b");
    let hash = both.items[1].manifest.as_ref().unwrap().hash();
    let failure = Failure {
        hash,
        on: String::new(),
        message: "no".to_owned(),
        ignore_fields: false,
        tries: 1,
        again: "2030-01-01T00:00:01Z".parse().unwrap(),
    };
    check(&both.but(|world| world.items[1].failure = Some(failure)), "Make a");
}

#[test]
fn an_object_is_changed_as_the_strategy_says() {
    let differs = |strategy: Value| {
        world(&["a"]).but(|world| {
            let mut found = object("a", "1", None);
            found.data["data"]["key"] = json!("edited");
            sees(world, 0, found);
            let config = json!({ "resourceIdentifier": { "resource": "configmaps", "name": "a" }, "updateStrategy": strategy });
            world.items[0].config = serde_json::from_value(config).unwrap();
        })
    };
    check(&differs(Value::Null), "Replace a");
    check(&differs(json!({ "type": "Update" })), "Replace a");
    check(&differs(json!({ "type": "ServerSideApply" })), "Apply a");
    check(&differs(json!({ "type": "CreateOnly" })), "settled");
    check(&differs(json!({ "type": "ReadOnly" })), "settled");
    let jq = json!({ "type": "ServerSideApply", "serverSideApply": { "ignoreFields": [
        { "condition": "OnSpokePresent", "jqPathExpressions": [".spec"] } ] } });
    check(&differs(jq), "wait Refused");
    let ignored = json!({ "type": "ServerSideApply", "serverSideApply": { "ignoreFields": [
        { "condition": "OnSpokePresent", "jsonPaths": [".data.key"] } ] } });
    // Once the hash is that of what is left, the edited field is nobody's business here.
    check(&differs(ignored), "Apply a");
}

#[test]
fn only_what_was_made_for_the_work_is_deleted_when_its_manifest_is_gone() {
    // The record has b, the work only a, which is as wanted and was there before.
    let without = |uid: Option<&str>, seen: Seen| {
        world(&["a"]).but(|world| {
            sees(world, 0, object("a", "9", None));
            entry(world, "b", uid, seen);
        })
    };
    let there = |uid: &str, record: Option<&str>| Seen::Present(Arc::new(object("b", uid, record)));
    check(&without(Some("1"), there("1", Some("r"))), "Delete b 1");
    check(&without(None, there("1", Some("r"))), "Delete b 1");
    check(&without(None, there("1", Some("another"))), "Record []");
    check(&without(None, there("1", None)), "Record []");
    check(&without(Some("1"), there("2", Some("r"))), "Record []");
    check(&without(Some("1"), Seen::Absent), "Record []");
    check(&without(Some("1"), Seen::NotYet), "wait Looking");
    check(&without(Some("1"), Seen::Failing("cut".to_owned())), "wait ClusterSilent");
    let mut going = object("b", "1", Some("r"));
    going.metadata.deletion_timestamp = serde_json::from_value(json!("2030-01-01T00:00:00Z")).unwrap();
    check(&without(Some("1"), Seen::Present(Arc::new(going))), "wait ObjectsGoing");
    let mut shared = object("b", "1", Some("r"));
    shared.metadata.owner_references = serde_json::from_value(json!([{
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork", "name": "x", "uid": "x" }]))
    .unwrap();
    check(&without(Some("1"), Seen::Present(Arc::new(shared))), "Record []");
}

#[test]
fn nothing_is_deleted_by_omission() {
    let there = || Seen::Present(Arc::new(object("b", "1", Some("r"))));
    // An empty list asks for nothing.
    check(&world(&[]).but(|world| entry(world, "b", Some("1"), there())), "wait NoManifests");
    // A manifest that cannot be told could be that of b.
    let unclear = world(&["a"]).but(|world| {
        entry(world, "b", Some("1"), there());
        world.items[0].target = None;
        world.items[0].manifest = Err("unreadable".to_owned());
    });
    check(&unclear, "wait Refused");
    // A work that is wanted no more but orphans its objects forgets them.
    let orphan = world(&["a"]).but(|world| {
        sees(world, 0, object("a", "9", None));
        entry(world, "b", Some("1"), there());
        let option = json!({ "propagationPolicy": "Orphan" });
        with_work(world, |work| work.spec.delete_option = serde_json::from_value(option).unwrap());
    });
    check(&orphan, "Record []");
}

#[test]
fn a_work_that_goes_takes_its_objects_with_it() {
    let going = |uid: Option<&str>, seen: Seen, policy: &str| {
        world(&["b"]).but(|world| {
            entry(world, "b", uid, seen);
            let option = json!({ "propagationPolicy": policy });
            with_work(world, |work| {
                work.metadata.deletion_timestamp =
                    serde_json::from_value(json!("2030-01-01T00:00:00Z")).unwrap();
                work.spec.delete_option = serde_json::from_value(option).unwrap();
            });
        })
    };
    let there = |uid: &str, record: Option<&str>| Seen::Present(Arc::new(object("b", uid, record)));
    check(&going(Some("1"), there("1", Some("r")), "Foreground"), "Delete b 1");
    check(&going(Some("1"), there("1", Some("r")), "Orphan"), "DropRecord");
    check(&going(Some("1"), there("2", Some("r")), "Foreground"), "DropRecord");
    check(&going(None, there("1", None), "Foreground"), "DropRecord");
    check(&going(Some("1"), Seen::Absent, "Foreground"), "DropRecord");
    check(&going(Some("1"), Seen::NotYet, "Foreground"), "wait Looking");
    check(&going(Some("1"), Seen::Failing("cut".to_owned()), "Foreground"), "wait ClusterSilent");
    check(&going(Some("1"), there("1", Some("r")), "OfALaterVersion"), "DropRecord");
    let unclear = going(Some("1"), Seen::NotYet, "Foreground")
        .but(|world| world.recorded[0].target = Whereabouts::Unclear);
    check(&unclear, "wait ClusterSilent");
    let no_kind = going(Some("1"), Seen::NotYet, "Foreground")
        .but(|world| world.recorded[0].target = Whereabouts::NoKind);
    check(&no_kind, "DropRecord");
    check(
        &going(Some("1"), Seen::Absent, "Foreground").but(|world| world.kinds_known = false),
        "wait KindsUnknown",
    );
    let last = going(None, Seen::Absent, "Foreground").but(|world| {
        world.record = None;
        world.recorded.clear();
    });
    check(&last, "Release");
    check(&last.but(|world| with_work(world, |work| work.metadata.finalizers = None)), "settled");
}

#[test]
fn a_failure_on_the_way_is_told() {
    let trouble = Trouble {
        effect: "Make".to_owned(),
        class: Class::Transient,
        message: "no route".to_owned(),
        since: now(),
    };
    let troubled = world(&["a"]).but(|world| {
        entry(world, "a", None, Seen::Absent);
        world.trouble = Some(trouble);
    });
    let told = decide(&troubled, now()).status.unwrap();
    let applied = told.conditions.iter().find(|condition| condition.type_ == "Applied").unwrap();
    assert_eq!((applied.status.as_str(), applied.observed_generation), ("False", Some(3)));
    assert!(applied.message.contains("no route"), "{}", applied.message);
}
