//! What is decided about clusters: by their agent, and by the hub.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use lifeboat_api::cluster::ManagedCluster;
use lifeboat_engine::conditions::find;
use lifeboat_engine::{Decision, Next, Why, variant};
use lifeboat_fleet::hub::decide::{Rights, World as HubWorld, decide};
use lifeboat_fleet::member::decide::{Pulse, World, heartbeat, membership};
use serde_json::{Value, json};
use std::fmt::Debug;
use std::sync::Arc;

const NOW: &str = "2030-01-01T00:10:00Z";

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

fn cluster(accepted: bool, id: Option<&str>) -> ManagedCluster {
    let claims: Vec<Value> = id.iter().map(|id| json!({ "name": "id.k8s.io", "value": id })).collect();
    serde_json::from_value(json!({
        "metadata": { "name": "east", "generation": 2 },
        "spec": { "hubAcceptsClient": accepted, "leaseDurationSeconds": 10 },
        "status": { "clusterClaims": claims },
    }))
    .unwrap()
}

fn lease(renewed: Option<&str>) -> Lease {
    serde_json::from_value(
        json!({ "metadata": { "name": "managed-cluster-lease" }, "spec": { "renewTime": renewed } }),
    )
    .unwrap()
}

fn next<E: Debug, W: Why, S>(decision: &Decision<E, W, S>) -> String {
    match &decision.next {
        Next::Do(effects) => effects.iter().map(variant).collect::<Vec<_>>().join(", "),
        Next::Wait { why, until } => match until {
            Some(until) => format!("wait {} until {until}", why.reason()),
            None => format!("wait {}", why.reason()),
        },
        Next::Settled => "settled".to_owned(),
    }
}

#[test]
fn a_cluster_joins_as_what_it_is() {
    let check = |cluster: Option<ManagedCluster>, id: Option<&str>, wanted: &str| {
        let world =
            World { name: "east".to_owned(), cluster: cluster.map(Arc::new), id: id.map(str::to_owned) };
        assert_eq!(next(&membership(&world, at(NOW))), wanted);
    };
    check(None, Some("1"), "Register");
    check(Some(cluster(false, None)), Some("1"), "wait NotAccepted");
    check(Some(cluster(true, None)), None, "wait IdentityUnknown");
    check(Some(cluster(true, Some("2"))), Some("1"), "wait OtherCluster");
    let rebuilt = |id: &str| {
        let mut cluster = cluster(true, Some("2"));
        let notes = cluster.metadata.annotations.get_or_insert_default();
        notes.insert(lifeboat_api::annotations::REBUILT_AS.to_owned(), id.to_owned());
        cluster
    };
    check(Some(rebuilt("1")), Some("1"), "settled");
    check(Some(rebuilt("3")), Some("1"), "wait OtherCluster");
    check(Some(cluster(true, None)), Some("1"), "settled");
    check(Some(cluster(true, Some("1"))), Some("1"), "settled");
}

#[test]
fn a_lease_is_renewed_when_it_is_due_and_by_nobody_else() {
    let check = |cluster: Option<ManagedCluster>, lease: Option<Lease>, wanted: &str| {
        let world =
            World { name: "east".to_owned(), cluster: cluster.map(Arc::new), id: Some("1".to_owned()) };
        let pulse = Pulse { world, lease: lease.map(Arc::new) };
        assert_eq!(next(&heartbeat(&pulse, at(NOW))), wanted);
    };
    check(None, Some(lease(None)), "wait NotAccepted");
    check(Some(cluster(false, None)), Some(lease(None)), "wait NotAccepted");
    check(Some(cluster(true, Some("2"))), Some(lease(None)), "wait OtherCluster");
    check(Some(cluster(true, None)), Some(lease(None)), "wait NotOnRecord");
    let mut rebuilt = cluster(true, Some("2"));
    let notes = rebuilt.metadata.annotations.get_or_insert_default();
    notes.insert(lifeboat_api::annotations::REBUILT_AS.to_owned(), "1".to_owned());
    check(Some(rebuilt), Some(lease(None)), "wait NotOnRecord");
    check(Some(cluster(true, Some("1"))), None, "wait NoLease");
    check(Some(cluster(true, Some("1"))), Some(lease(None)), "Renew");
    let fresh = Some(lease(Some("2030-01-01T00:09:55.000000Z")));
    check(Some(cluster(true, Some("1"))), fresh, "wait Renewed until 2030-01-01T00:10:05Z");
    check(Some(cluster(true, Some("1"))), Some(lease(Some("2030-01-01T00:09:50.000000Z"))), "Renew");
    check(Some(cluster(true, Some("1"))), Some(lease(Some("2031-01-01T00:00:00.000000Z"))), "Renew");
}

fn hub_world(cluster: ManagedCluster) -> HubWorld {
    let namespace: Namespace = serde_json::from_value(json!({ "metadata": { "name": "east",
        "labels": { "open-cluster-management.io/cluster-name": "east" } } }))
    .unwrap();
    HubWorld {
        cluster: Arc::new(cluster),
        namespace: Some(Arc::new(namespace)),
        lease: Some(Arc::new(lease(None))),
        renewal_seen: None,
        rights: Rights::AsMeant,
    }
}

#[test]
fn a_cluster_that_is_let_in_gets_what_it_needs_and_one_that_is_not_gets_nothing() {
    let check = |change: &dyn Fn(&mut HubWorld), wanted: &str| {
        let mut world = hub_world(cluster(true, None));
        change(&mut world);
        assert_eq!(next(&decide(&world, at(NOW))), wanted);
    };
    check(&|world| world.namespace = None, "MakeNamespace");
    check(
        &|world| {
            let namespace = Arc::make_mut(world.namespace.as_mut().unwrap());
            namespace.metadata.labels = None;
        },
        "LabelNamespace",
    );
    check(&|world| world.lease = None, "MakeLease");
    check(&|world| world.rights = Rights::None, "Grant");
    check(&|world| world.rights = Rights::Otherwise, "Grant");
    check(&|_| {}, "wait NeverHeard");
    check(&|world| world.cluster = Arc::new(cluster(false, None)), "Revoke");
    let denied = |world: &mut HubWorld| {
        world.cluster = Arc::new(cluster(false, None));
        world.rights = Rights::None;
        world.namespace = None;
    };
    check(&denied, "wait NotAccepted");
    let going = |world: &mut HubWorld| {
        let time = serde_json::from_value(json!("2030-01-01T00:00:00Z")).unwrap();
        Arc::make_mut(&mut world.cluster).metadata.deletion_timestamp = time;
    };
    check(&going, "Revoke");
    for name in ["default", "kube-system", "openshift-x", "open-cluster-management-hub", "ramen-system"] {
        let named = |world: &mut HubWorld| {
            Arc::make_mut(&mut world.cluster).metadata.name = Some(name.to_owned());
            world.namespace = None;
        };
        check(&named, "wait NameTaken");
    }
}

#[test]
fn a_lease_is_timed_by_when_it_was_seen() {
    let check = |renewed: &str, seen: Option<&str>, wanted: &str, status: &str| {
        let mut world = hub_world(cluster(true, None));
        world.lease = Some(Arc::new(lease(Some(renewed))));
        world.renewal_seen = seen.map(at);
        let decision = decide(&world, at(NOW));
        assert_eq!(next(&decision), wanted);
        let conditions = decision.status.unwrap().conditions;
        let said = find(&conditions, "ManagedClusterConditionAvailable").unwrap();
        assert_eq!((said.status.as_str(), said.observed_generation), (status, Some(2)));
    };
    // Five times ten seconds after it was last renewed.
    check("2030-01-01T00:09:30.000000Z", None, "wait Heard until 2030-01-01T00:10:20Z", "True");
    check("2030-01-01T00:09:10.000000Z", None, "wait Silent", "Unknown");
    // An agent whose clock is slow is heard; one whose clock is fast is not immortal.
    check(
        "2029-01-01T00:00:00.000000Z",
        Some("2030-01-01T00:09:59Z"),
        "wait Heard until 2030-01-01T00:10:49Z",
        "True",
    );
    check("2031-01-01T00:00:00.000000Z", Some("2030-01-01T00:09:00Z"), "wait Silent", "Unknown");
    check("2031-01-01T00:00:00.000000Z", None, "wait Heard until 2030-01-01T00:10:50Z", "True");
}

#[test]
fn what_an_agent_of_ocms_says_of_its_illness_stands() {
    let mut ill = cluster(true, None);
    let condition = json!({ "type": "ManagedClusterConditionAvailable", "status": "False",
        "reason": "ManagedClusterKubeAPIServerUnavailable", "message": "ill", "lastTransitionTime": "2030-01-01T00:00:00Z" });
    ill.status.as_mut().unwrap().conditions = serde_json::from_value(json!([condition])).unwrap();
    let mut world = hub_world(ill);
    world.lease = Some(Arc::new(lease(Some("2030-01-01T00:09:59.000000Z"))));
    let conditions = decide(&world, at(NOW)).status.unwrap().conditions;
    assert_eq!(find(&conditions, "ManagedClusterConditionAvailable").unwrap().message, "ill");
}

#[test]
fn a_cluster_that_was_rebuilt_is_told_of_until_a_person_says_so() {
    let shown = |cluster: &ManagedCluster| {
        let world = World {
            name: "east".to_owned(),
            cluster: Some(Arc::new(cluster.clone())),
            id: Some("1".to_owned()),
        };
        membership(&world, at(NOW)).status.unwrap()
    };
    let mut known = cluster(true, Some("2"));
    let told = shown(&known);
    let said = told.conditions.iter().find(|one| one.type_ == "SameCluster").unwrap();
    let remedy = "kubectl annotate managedcluster east ramendr.openshift.io/rebuilt-as=1";
    assert!(said.status == "False" && said.message.contains(remedy), "{said:?}");
    assert!(
        told.cluster_claims.iter().any(|claim| claim.value.as_deref() == Some("2")),
        "it is not let in by itself"
    );
    known.status = Some(told);
    let notes = known.metadata.annotations.get_or_insert_default();
    notes.insert(lifeboat_api::annotations::REBUILT_AS.to_owned(), "1".to_owned());
    let joined = shown(&known);
    let said = joined.conditions.iter().find(|one| one.type_ == "SameCluster").unwrap();
    assert!(said.status == "True" && said.reason == "Rebuilt", "{said:?}");
    assert_eq!(said.last_transition_time.0, at(NOW), "what is older was copied to the former one");
    assert!(joined.cluster_claims.iter().any(|claim| claim.value.as_deref() == Some("1")));
}
