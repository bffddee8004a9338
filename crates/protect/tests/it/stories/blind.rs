//! Whoever cannot rule out that a claim is used does not demote it (D4): a watch that tells nothing of a pod is made up for by asking the
//! server, and an answer that does not come counts as use.

use super::surroundings::attach;
use crate::scene::Scene;
use lifeboat_apiserver::fault::{Asked, EventFault, Faults, RequestFault};
use lifeboat_apiserver::path::{ResourcePath, Verb};
use lifeboat_apiserver::store::Event;
use lifeboat_testbed::{Cluster, NotYet};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Objects of one kind are never told of; whether they are listed is up to the test.
struct Blind {
    kind: &'static str,
    refuses: AtomicBool,
    asked: AtomicUsize,
}

impl Blind {
    fn to(kind: &'static str) -> Arc<Self> {
        Arc::new(Self { kind, refuses: AtomicBool::default(), asked: AtomicUsize::default() })
    }
}

impl Faults for Blind {
    fn on_request(&self, asked: Asked<'_>) -> RequestFault {
        // A watch lists the pods of all namespaces.
        let watches = self.kind == "pods" && asked.path.namespace.is_empty();
        if asked.path.resource != self.kind || watches || asked.verb != Verb::List {
            return RequestFault::None;
        }
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.refuses.load(Ordering::SeqCst) { RequestFault::DropRequest } else { RequestFault::None }
    }

    fn on_event(&self, path: &ResourcePath, _: &Event) -> EventFault {
        if path.resource == self.kind { EventFault::Lose } else { EventFault::None }
    }
}

/// The protector has asked again, twice, and the claim is as it was.
async fn still_primary(scene: &Scene, blind: &Blind, why: &str) {
    let before = blind.asked.load(Ordering::SeqCst);
    let asked = || async {
        let times = blind.asked.load(Ordering::SeqCst) - before;
        if times >= 2 { Ok(()) } else { Err(NotYet(format!("the protector has asked {times} times"))) }
    };
    scene.cluster.eventually("the protector to look at the server", asked).await;
    let replication = scene.replications.get("one").await.unwrap();
    assert_eq!(replication.spec.replication_state.as_str(), "primary", "{why}");
}

#[tokio::test]
async fn a_claim_is_not_demoted_while_nobody_can_say_that_it_is_unused() {
    let cluster = Cluster::embedded();
    let blind = Blind::to("pods");
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

#[tokio::test]
async fn a_claim_is_not_demoted_while_a_node_may_have_its_volume() {
    let cluster = Cluster::embedded();
    let blind = Blind::to("volumeattachments");
    let scene = Scene::seeing(&cluster, "blind", blind.clone()).await;
    scene.claim("one").await;
    scene.group("web", "primary", |_| {}).await;
    scene.state("web", "Primary").await;
    let attachments = attach(&scene, "one").await;
    let secondary = json!({"spec": {"replicationState": "secondary", "action": "Failover"}});
    scene.merge(&scene.groups, "web", secondary).await;
    still_primary(&scene, &blind, "the watch has not told of the attachment, the server knows it").await;
    blind.refuses.store(true, Ordering::SeqCst);
    scene.delete(&attachments, &format!("{}-one", scene.mark)).await;
    still_primary(&scene, &blind, "whether a node has it cannot be read").await;
    blind.refuses.store(false, Ordering::SeqCst);
    scene.state("web", "Secondary").await;
}
