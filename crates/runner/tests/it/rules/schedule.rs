//! Rules about a pod's place.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use lifeboat_engine::Next;
use lifeboat_runner::schedule::{Effect, Wait, Wanted, World, decide};
use lifeboat_testbed::fixtures::{self, With};
use serde_json::json;
use std::sync::Arc;

fn claim(bound: bool) -> PersistentVolumeClaim {
    fixtures::claim("default", "data").with(|claim| {
        if bound {
            claim.spec.as_mut().unwrap().volume_name = Some("v".to_owned());
            claim.status = serde_json::from_value(json!({"phase": "Bound"})).unwrap();
        }
    })
}

fn volume(node: Option<&str>) -> PersistentVolume {
    fixtures::volume("v").with(|volume| {
        let on = |node| {
            let one = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [node]});
            serde_json::from_value(json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [one]}]}}))
                .unwrap()
        };
        volume.spec.as_mut().unwrap().node_affinity = node.map(on);
    })
}

fn wanted(claim: Option<PersistentVolumeClaim>, volume: Option<PersistentVolume>, delayed: bool) -> Wanted {
    Wanted { claim: claim.map(Arc::new), volume: volume.map(Arc::new), delayed }
}

fn world(data: Wanted) -> World {
    World {
        pod: Arc::new(fixtures::pod("default", "p", &["data"])),
        node_name: "node".to_owned(),
        node: Some(Arc::new(fixtures::node("node"))),
        claims: [("data".to_owned(), data)].into(),
    }
}

fn ready() -> World {
    world(wanted(Some(claim(true)), Some(volume(Some("node"))), false))
}

#[derive(Debug, PartialEq)]
enum Does {
    Binds,
    Selects,
    Waits(Wait),
    Leaves,
}

fn check(rule: &str, world: World, expected: Does) {
    let decision = decide(&world, Timestamp::UNIX_EPOCH);
    let waits = matches!(decision.next, Next::Wait { .. });
    assert_eq!(decision.status.is_some(), waits, "{rule}: a wait is shown");
    let does = match decision.next {
        Next::Settled => Does::Leaves,
        Next::Wait { why, .. } => Does::Waits(why),
        Next::Do(effects) => match &effects[..] {
            [Effect::Bind { node, .. }] if node == "node" => Does::Binds,
            [Effect::SelectNode { node, .. }] if node == "node" => Does::Selects,
            other => panic!("{rule}: {other:?}"),
        },
    };
    assert_eq!(does, expected, "{rule}");
}

fn pod(change: impl FnOnce(&mut Pod)) -> World {
    let mut world = ready();
    world.pod = Arc::new(Pod::clone(&world.pod).with(change));
    world
}

fn node(change: impl FnOnce(&mut Node)) -> World {
    let mut world = ready();
    world.node = Some(Arc::new(fixtures::node("node").with(change)));
    world
}

#[test]
fn a_pod_follows_its_claims() {
    let name = || "data".to_owned();
    check("bound here", ready(), Does::Binds);
    check(
        "bound, reachable from anywhere",
        world(wanted(Some(claim(true)), Some(volume(None)), false)),
        Does::Binds,
    );
    let elsewhere = Wait::VolumeElsewhere { claim: name(), node: "node".to_owned() };
    let far = world(wanted(Some(claim(true)), Some(volume(Some("other"))), false));
    check("bound elsewhere", far, Does::Waits(elsewhere));
    check("no claim", world(wanted(None, None, false)), Does::Waits(Wait::NoClaim { claim: name() }));
    let unbound = Does::Waits(Wait::Unbound { claim: name() });
    check("not bound yet", world(wanted(Some(claim(false)), None, false)), unbound);
    check("bound when it is about to be used", world(wanted(Some(claim(false)), None, true)), Does::Selects);
    let told = claim(false).with(|claim| {
        let node = ("volume.kubernetes.io/selected-node".to_owned(), "node".to_owned());
        claim.metadata.annotations = Some([node].into());
    });
    let unbound = Does::Waits(Wait::Unbound { claim: name() });
    check("told already", world(wanted(Some(told), None, true)), unbound);
    let unseen = Does::Waits(Wait::Unbound { claim: name() });
    check("bound to a volume that is not seen yet", world(wanted(Some(claim(true)), None, true)), unseen);
    let going = claim(true).with(|claim| {
        claim.metadata.deletion_timestamp = serde_json::from_value(json!("2030-01-01T00:00:00Z")).unwrap();
    });
    let waits = Does::Waits(Wait::ClaimGoing { claim: name() });
    check("a claim that is going", world(wanted(Some(going), Some(volume(None)), false)), waits);
}

#[test]
fn a_pod_fits_its_node() {
    let name = || "node".to_owned();
    let mut none = ready();
    none.node = None;
    check("no node", none, Does::Waits(Wait::NoNode { node: name() }));
    let cordoned = node(|node| node.spec = serde_json::from_value(json!({"unschedulable": true})).unwrap());
    check("closed node", cordoned, Does::Waits(Wait::Cordoned { node: name() }));
    let picky = |key: &'static str| {
        pod(move |pod| {
            pod.spec.as_mut().unwrap().node_selector = Some([(key.to_owned(), "node".to_owned())].into());
        })
    };
    check("its label", picky("kubernetes.io/hostname"), Does::Binds);
    check("another label", picky("disk"), Does::Waits(Wait::OtherNode { node: name() }));
}

#[test]
fn some_pods_are_not_ours_to_place() {
    let spec = |change: fn(&mut k8s_openapi::api::core::v1::PodSpec)| {
        pod(move |pod| change(pod.spec.as_mut().unwrap()))
    };
    check("placed already", spec(|spec| spec.node_name = Some("node".to_owned())), Does::Leaves);
    check("another scheduler's", spec(|spec| spec.scheduler_name = Some("mine".to_owned())), Does::Leaves);
    let gated = spec(|spec| spec.scheduling_gates = serde_json::from_value(json!([{"name": "g"}])).unwrap());
    check("gated", gated, Does::Waits(Wait::Gated { gate: "g".to_owned() }));
    let over = pod(|pod| pod.status = serde_json::from_value(json!({"phase": "Failed"})).unwrap());
    check("over", over, Does::Leaves);
    let going = pod(|pod| {
        pod.metadata.deletion_timestamp = serde_json::from_value(json!("2030-01-01T00:00:00Z")).unwrap();
    });
    check("going", going, Does::Leaves);
}
