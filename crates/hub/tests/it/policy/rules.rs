//! Every reason of a policy: a row for each.

use jiff::Timestamp;
use lifeboat_api::ramen::{DRPolicy, DRPolicyStatus};
use lifeboat_engine::{Class, Next, Trouble};
use lifeboat_hub::cluster::survey::{Known, Survey};
use lifeboat_hub::cluster::world::Managed;
use lifeboat_hub::policy::decide::{Effect, PolicyDecision, decide};
use lifeboat_hub::policy::peers::ClassFacts;
use lifeboat_hub::policy::why::Wait;
use lifeboat_hub::policy::world::{Member, OpsNamespace, Other, World};
use lifeboat_hub::views::Reach;
use serde_json::{Value, json};
use std::sync::Arc;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_900_000_000 + second).unwrap()
}

fn policy() -> DRPolicy {
    serde_json::from_value(json!({
        "metadata": {
            "name": "pair", "generation": 2, "creationTimestamp": "2030-01-02T00:00:00Z",
            "finalizers": ["drpolicies.ramendr.openshift.io/ramen"],
            "labels": { "cluster.open-cluster-management.io/backup": "ramen" },
        },
        "spec": { "schedulingInterval": "5m", "drClusters": ["east", "west"] },
    }))
    .unwrap()
}

/// A cluster with one storage class of this identity, which can take images.
fn member(id: &str, storage: &str) -> Member {
    let mut known = Known::default();
    let labels = json!({ "ramendr.openshift.io/storageid": storage });
    known.classes.cluster_id = id.to_owned();
    known.classes.storage = vec![ClassFacts::of(
        &json!({ "metadata": { "name": "fast", "labels": labels }, "provisioner": "csi" }),
    )];
    known.classes.snapshots =
        vec![ClassFacts::of(&json!({ "metadata": { "name": "snap", "labels": labels }, "driver": "csi" }))];
    Member {
        validated: Some(true),
        managed: Managed { joined: true, id: Some(id.to_owned()), reach: Reach::Fresh },
        survey: Survey::Known(Box::new(known)),
    }
}

fn world(change: impl FnOnce(&mut World)) -> World {
    let mut world = World {
        policy: Arc::new(policy()),
        config: Ok(()),
        ops: None,
        members: [("east".to_owned(), member("e", "s1")), ("west".to_owned(), member("w", "s2"))].into(),
        others: Vec::new(),
        users: Vec::new(),
        trouble: None,
    };
    change(&mut world);
    world
}

fn spec(world: &mut World, key: &str, value: Value) {
    let mut whole = serde_json::to_value(&*world.policy).unwrap();
    whole["spec"][key] = value;
    world.policy = Arc::new(serde_json::from_value(whole).unwrap());
}

fn says(status: &DRPolicyStatus, type_: &str) -> (String, String, String) {
    let found = status.conditions.iter().find(|condition| condition.type_ == type_);
    found.map(|one| (one.status.clone(), one.reason.clone(), one.message.clone())).unwrap_or_default()
}

/// What was decided, and what is shown.
struct Told {
    decision: PolicyDecision,
    status: DRPolicyStatus,
}

fn check(change: impl FnOnce(&mut World), status: &str, reason: &str) -> Told {
    let world = world(change);
    let decision = decide(&world, at(0));
    let shown = decision.status.clone().unwrap();
    let (is, why, message) = says(&shown, "Validated");
    assert_eq!((is.as_str(), why.as_str()), (status, reason), "{message}");
    assert_eq!(shown.conditions[0].observed_generation, Some(2));
    // What is shown is not computed otherwise when it is looked at again.
    let mut again = world.clone();
    let mut policy = (*again.policy).clone();
    policy.status = Some(shown.clone());
    again.policy = Arc::new(policy);
    assert_eq!(decide(&again, at(100)).status, again.policy.status);
    Told { decision, status: shown }
}

#[test]
fn a_pair_of_usable_clusters_is_validated_with_its_peer_classes() {
    let told = check(|_| {}, "True", "Succeeded");
    assert_eq!(told.decision.next, Next::Settled);
    let peers = told.status.async_.unwrap().peer_classes;
    assert_eq!(peers[0].cluster_ids, ["e", "w"]);
    assert_eq!(peers[0].storage_id, ["s1", "s2"]);
}

#[test]
fn a_new_policy_is_adopted_first() {
    let strip = |world: &mut World| Arc::make_mut(&mut world.policy).metadata.finalizers = None;
    let decision = decide(&world(strip), at(0));
    assert_eq!((decision.next, decision.status), (Next::Do(vec![Effect::Adopt]), None));
    let trouble = |effect: &str| {
        Some(Trouble { effect: effect.into(), class: Class::Refused, message: "no".into(), since: at(0) })
    };
    let failed = |world: &mut World| {
        strip(world);
        world.trouble = trouble("Adopt");
    };
    check(failed, "False", "FinalizerAddFailed");
    let no_space = |world: &mut World| {
        world.ops = Some(OpsNamespace { name: "ops".into(), exists: false });
        world.trouble = trouble("MakeNamespace");
    };
    let told = check(no_space, "False", "NamespaceCreateFailed");
    assert_eq!(told.decision.next, Next::Do(vec![Effect::MakeNamespace { name: "ops".into() }]));
}

#[test]
fn what_is_in_the_way_has_its_word() {
    check(|world| world.config = Err("no ConfigMap".into()), "False", "ConfigMapGetFailed");
    check(|world| spec(world, "drClusters", json!(["east", "east"])), "False", "ValidationFailed");
    check(|world| spec(world, "drClusters", json!(["east"])), "False", "ValidationFailed");
    check(|world| spec(world, "schedulingInterval", json!("5 minutes")), "False", "ValidationFailed");
    let told = check(|world| drop(world.members.remove("west")), "False", "DRClusterNotFound");
    assert_eq!(told.decision.why(), Some(&Wait::ClustersMissing(vec!["west".into()])));
    check(|world| world.members.get_mut("west").unwrap().validated = None, "False", "DRClusterNotFound");
    check(
        |world| world.members.get_mut("west").unwrap().managed.id = None,
        "False",
        "drClusterDetailsFailed",
    );
    let none =
        |world: &mut World| world.members.values_mut().for_each(|member| member.validated = Some(false));
    check(none, "False", "DRClustersUnavailable");
}

#[test]
fn one_usable_cluster_is_enough() {
    check(|world| world.members.get_mut("west").unwrap().validated = Some(false), "True", "Succeeded");
    // One that has not joined is not asked for its identity.
    let apart = |world: &mut World| {
        world.members.get_mut("west").unwrap().managed =
            Managed { joined: false, id: None, reach: Reach::Silent("cluster west has not joined".into()) };
    };
    check(apart, "True", "Succeeded");
}

#[test]
fn a_policy_says_which_cluster_does_not_reach_which_store() {
    let misses = |validated: bool, heard: Reach| {
        move |world: &mut World| {
            world.members.values_mut().for_each(|member| member.validated = Some(validated));
            let member = world.members.get_mut("east").unwrap();
            member.managed.reach = heard;
            let mut known = member.survey.known().cloned().unwrap();
            known.told.conditions = serde_json::from_value(json!([{
                "type": "Reachable", "status": "False", "reason": "R", "message": "m",
                "lastTransitionTime": "2030-01-01T00:00:00Z",
            }]))
            .unwrap();
            known.told.store_failures = [("s3-west".to_owned(), "timed out".to_owned())].into();
            member.survey = Survey::Known(Box::new(known));
        }
    };
    let sentence = "cluster east does not reach the store s3-west: timed out";
    let told = check(misses(true, Reach::Fresh), "True", "Succeeded");
    assert_eq!(told.decision.why(), Some(&Wait::StoresMissed(sentence.into())));
    assert!(says(&told.status, "Validated").2.contains(sentence));
    let told = check(misses(false, Reach::Fresh), "False", "DRClustersUnavailable");
    assert!(says(&told.status, "Validated").2.contains(sentence));
    // What a silent cluster said last says nothing about now.
    let told = check(misses(true, Reach::Silent("cluster east is silent".into())), "True", "Succeeded");
    assert!(!says(&told.status, "Validated").2.contains("s3-west"));
}

#[test]
fn intervals_are_numbers_with_a_unit() {
    for good in ["0m", "5m", "12h", "3d", "5s"] {
        check(|world| spec(world, "schedulingInterval", json!(good)), "True", "Succeeded");
    }
    for bad in ["5", "m", "-5m", "5 m", "5mm", "1h5m", "4s"] {
        check(|world| spec(world, "schedulingInterval", json!(bad)), "False", "ValidationFailed");
    }
}

#[test]
fn a_cluster_that_is_not_known_now_takes_no_peer_class_away() {
    let shown = decide(&world(|_| {}), at(0)).status.unwrap();
    let keep = |change: fn(&mut Member)| {
        let mut world = world(|world| change(world.members.get_mut("west").unwrap()));
        let mut policy = (*world.policy).clone();
        policy.status = Some(shown.clone());
        world.policy = Arc::new(policy);
        let decision = decide(&world, at(9));
        assert!(matches!(decision.why(), Some(Wait::Unsurveyed(_))), "{:?}", decision.next);
        let after = decision.status.unwrap();
        assert_eq!(after.async_, shown.async_);
        let (is, _, message) = says(&after, "Validated");
        assert!(is == "True" && message.contains("west"), "{message}");
    };
    keep(|member| member.managed.reach = Reach::Silent("cluster west is not available".into()));
    keep(|member| member.survey = Survey::NotYet("has not shown its DRClusterConfig yet".into()));
    keep(|member| {
        let mut known = member.survey.known().cloned().unwrap();
        known.unseen = vec!["StorageClass fast".into()];
        member.survey = Survey::Known(Box::new(known));
    });
    // One that is known, and has the class no more, does.
    let mut gone = world(|world| {
        world
            .members
            .insert("west".into(), Member { survey: Survey::Known(Box::default()), ..member("w", "s2") });
    });
    Arc::make_mut(&mut gone.policy).status = Some(shown.clone());
    assert_eq!(decide(&gone, at(9)).status.unwrap().async_, None);
}

fn metro(world: &mut World) {
    world.members.insert("west".into(), member("w", "s1"));
}

fn other(name: &str, created: &str, clusters: &[&str], metro: bool) -> Other {
    Other {
        name: name.into(),
        created: Some(created.parse().unwrap()),
        clusters: clusters.iter().map(ToString::to_string).collect(),
        metro,
    }
}

#[test]
fn a_policy_is_for_shared_or_for_replicated_storage() {
    let both = |world: &mut World| {
        for (name, id) in [("east", "s1"), ("west", "s1")] {
            let member = world.members.get_mut(name).unwrap();
            let mut known = member.survey.known().cloned().unwrap();
            let mut class = known.classes.storage[0].clone();
            class.name = "shared".into();
            class.labels.insert("ramendr.openshift.io/storageid".into(), id.into());
            known.classes.storage.push(class);
            member.survey = Survey::Known(Box::new(known));
        }
    };
    let status = check(both, "False", "DRPolicyConflictFound").status;
    assert!(status.sync.is_some() && status.async_.is_some(), "what was found is shown");
}

#[test]
fn the_newer_of_two_policies_gives_way_where_storage_is_shared() {
    const OLDER: &str = "2030-01-01T00:00:00Z";
    const NEWER: &str = "2030-01-03T00:00:00Z";
    let row = |ours_metro: bool, theirs: Other, conflict: bool| {
        let set = |world: &mut World| {
            if ours_metro {
                metro(world);
            }
            world.others.push(theirs);
        };
        match conflict {
            true => check(set, "False", "DRPolicyConflictFound"),
            false => check(set, "True", "Succeeded"),
        };
    };
    row(true, other("a", OLDER, &["east", "north"], false), true);
    row(false, other("a", OLDER, &["east", "north"], true), true);
    row(false, other("a", OLDER, &["east", "north"], false), false);
    row(true, other("a", OLDER, &["south", "north"], true), false);
    row(true, other("a", OLDER, &["east-1", "north"], true), false);
    row(true, other("a", NEWER, &["east", "north"], true), false);
    // Made in the same second: the name decides.
    row(true, other("a", "2030-01-02T00:00:00Z", &["east", "west"], true), true);
    row(true, other("z", "2030-01-02T00:00:00Z", &["east", "west"], true), false);
}

#[test]
fn networks_are_compared_only_where_mappings_are_used() {
    let nets = |world: &mut World, name: &str, nets: &[&str]| {
        let member = world.members.get_mut(name).unwrap();
        let mut known = member.survey.known().cloned().unwrap();
        let all: Vec<Value> =
            nets.iter().map(|net| json!({ "name": net, "namespace": "vms", "cniType": "bridge" })).collect();
        known.told.network_attachments = serde_json::from_value(json!(all)).unwrap();
        member.survey = Survey::Known(Box::new(known));
    };
    let differ = |world: &mut World| {
        nets(world, "east", &["lan", "dmz"]);
        nets(world, "west", &["lan"]);
    };
    let told = check(differ, "True", "Succeeded");
    assert!(told.status.network_peers.is_empty());
    let used = |world: &mut World| {
        differ(world);
        spec(world, "networkMappingRef", json!({ "name": "maps" }));
    };
    let status = check(used, "False", "NADsMissing").status;
    let (is, reason, message) = says(&status, "NetworkAttachmentsValidated");
    assert_eq!(
        (is.as_str(), reason.as_str(), message.as_str()),
        ("False", "NADsMissing", "vms/dmz is on east only")
    );
    assert_eq!(status.network_peers[0].nad_name, "lan");
    let alike = |world: &mut World| {
        nets(world, "east", &["lan"]);
        nets(world, "west", &["lan"]);
        spec(world, "networkMappingRef", json!({ "name": "maps" }));
    };
    let status = check(alike, "True", "Succeeded").status;
    assert_eq!(says(&status, "NetworkAttachmentsValidated").1, "Validated");
    assert_eq!(status.network_peers[0].cluster_cni_types["west"], "bridge");
}

#[test]
fn a_policy_in_use_is_not_deleted_and_says_so() {
    let going = |users: &[&str]| {
        world(|world| {
            let policy = Arc::make_mut(&mut world.policy);
            policy.metadata.deletion_timestamp =
                serde_json::from_value(json!("2030-01-01T00:00:00Z")).unwrap();
            world.users = users.iter().map(ToString::to_string).collect();
            // Nothing else is asked for: a policy must be able to go when everything around it is broken.
            world.config = Err("no ConfigMap".into());
            world.members.clear();
        })
    };
    let decision = decide(&going(&["shop/web", "shop/db"]), at(0));
    assert_eq!(decision.why(), Some(&Wait::InUse(vec!["shop/web".into(), "shop/db".into()])));
    let (is, reason, message) = says(&decision.status.unwrap(), "Deleted");
    assert_eq!((is.as_str(), reason.as_str()), ("False", "InUse"));
    assert!(message.contains("shop/web, shop/db"), "{message}");
    assert_eq!(decide(&going(&[]), at(0)).next, Next::Do(vec![Effect::Release]));
}
