//! Whoever cannot rule out that a claim is used does not demote it (D4): a watch that tells nothing of a pod is made up for by asking the
//! server, and an answer that does not come counts as use.

use crate::scene::Scene;
use lifeboat_apiserver::fault::{Asked, EventFault, Faults, RequestFault};
use lifeboat_apiserver::path::{ResourcePath, Verb};
use lifeboat_apiserver::store::Event;
use lifeboat_testbed::{Cluster, NotYet};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Pods are never told of; whether they are listed is up to the test.
#[derive(Default)]
struct Blind {
    refuses: AtomicBool,
    asked: AtomicUsize,
}

impl Faults for Blind {
    fn on_request(&self, asked: Asked<'_>) -> RequestFault {
        if asked.path.resource != "pods" || asked.path.namespace.is_empty() || asked.verb != Verb::List {
            return RequestFault::None;
        }
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.refuses.load(Ordering::SeqCst) { RequestFault::DropRequest } else { RequestFault::None }
    }

    fn on_event(&self, path: &ResourcePath, _: &Event) -> EventFault {
        if path.resource == "pods" { EventFault::Lose } else { EventFault::None }
    }
}

/// The protector has asked again, twice, and the claim is as it was.
async fn still_primary(scene: &Scene, blind: &Blind, why: &str) {
    let before = blind.asked.load(Ordering::SeqCst);
    let asked = || async {
        let times = blind.asked.load(Ordering::SeqCst) - before;
        if times >= 2 { Ok(()) } else { Err(NotYet(format!("the protector has asked {times} times"))) }
    };
    scene.cluster.eventually("the protector to look at pods", asked).await;
    let replication = scene.replications.get("one").await.unwrap();
    assert_eq!(replication.spec.replication_state.as_str(), "primary", "{why}");
}

#[tokio::test]
async fn a_claim_is_not_demoted_while_nobody_can_say_that_it_is_unused() {
    let cluster = Cluster::embedded();
    let blind = Arc::new(Blind::default());
    let scene = Scene::seeing(&cluster, "blind", blind.clone()).await;
    scene.claim("one").await;
    scene.group("web", "primary", |_| {}).await;
    scene.state("web", "Primary").await;
    scene.pod("app", &["one"]).await;
    let secondary = json!({"spec": {"replicationState": "secondary", "action": "Failover"}});
    scene.merge(&scene.groups, "web", secondary).await;
    still_primary(&scene, &blind, "D4: the watch has not told of the pod, the server knows it").await;
    blind.refuses.store(true, Ordering::SeqCst);
    scene.unpod("app").await;
    still_primary(&scene, &blind, "D4: whether a pod uses it cannot be read").await;
    blind.refuses.store(false, Ordering::SeqCst);
    scene.state("web", "Secondary").await;
}
