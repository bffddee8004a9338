//! One group with many claims: all are protected, and then nothing is written; and what is done to all costs no more lists than what is done to one.

use crate::ledger::Shelves;
use crate::scene::{Scene, furnish, run_protector};
use kube::api::PostParams;
use lifeboat_apiserver::fault::{Asked, Faults, RequestFault};
use lifeboat_apiserver::path::Verb;
use lifeboat_protect::ledger::Ledger;
use lifeboat_testbed::{Cluster, Task};
use parking_lot::Mutex;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const MANY: usize = 500;

#[tokio::test(start_paused = true)]
async fn a_group_of_many_claims_comes_to_rest() {
    let cluster = Cluster::embedded();
    cluster.install(&lifeboat_api::crds()).await;
    let mark = cluster.namespace("many").await;
    furnish(&cluster, &mark).await;
    let scene = Scene::over(&cluster, &mark, Shelves::default());
    // Bound by hand: what is tried here is the protector.
    for number in 0..MANY {
        let name = format!("c{number:03}");
        let mut claim = scene.claim_json(&name);
        claim.spec.as_mut().unwrap().volume_name = Some(format!("{mark}-{name}"));
        let claim = scene.claims.create(&PostParams::default(), &claim).await.unwrap();
        let mut volume = scene.volume_json(&name);
        volume.spec.as_mut().unwrap().claim_ref.as_mut().unwrap().uid = claim.metadata.uid;
        scene.volumes.create(&PostParams::default(), &volume).await.unwrap();
        let bound = serde_json::json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}});
        scene.claims.patch_status(&name, &Default::default(), &kube::api::Patch::Merge(bound)).await.unwrap();
    }
    let _player = Task::spawn(scene.player.clone().run());
    let ledger: Arc<dyn Ledger> = Arc::new(scene.stores.clone());
    let _protector = Task::spawn(run_protector(cluster.client(), cluster.clock(), mark.clone(), ledger));
    scene.group("web", "primary", |_| {}).await;
    scene.state("web", "Primary").await;
    let group = scene.says("web", "ClusterDataProtected", "True", "Uploaded").await;
    assert_eq!(group.status.unwrap().protected_pvcs.len(), MANY);
    assert_eq!(scene.stores.record("east", &mark, "web").unwrap().claims.len(), MANY);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let revision = || cluster.server().cluster().store.revision();
    let before = revision();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(revision(), before, "nothing is written at rest");
}

/// Counts what the protector lists.
#[derive(Default)]
struct Lists(Mutex<BTreeMap<String, usize>>);

impl Faults for Lists {
    fn on_request(&self, asked: Asked<'_>) -> RequestFault {
        if asked.verb == Verb::List {
            *self.0.lock().entry(asked.path.resource.clone()).or_default() += 1;
        }
        RequestFault::None
    }
}

/// What is listed while so many claims are demoted.
async fn listed(claims: usize) -> BTreeMap<String, usize> {
    let cluster = Cluster::embedded();
    let lists = Arc::new(Lists::default());
    let scene = Scene::seeing(&cluster, "demoted", lists.clone()).await;
    for number in 0..claims {
        scene.claim(&format!("c{number}")).await;
    }
    scene.group("web", "primary", |_| {}).await;
    let all = |group: &lifeboat_api::ramen::VolumeReplicationGroup| {
        group.status.as_ref().is_some_and(|status| status.protected_pvcs.len() == claims)
    };
    scene.group_is("web", all).await;
    scene.says("web", "ClusterDataProtected", "True", "Uploaded").await;
    scene.state("web", "Primary").await;
    lists.0.lock().clear();
    let secondary = json!({"spec": {"replicationState": "secondary", "action": "Failover"}});
    scene.merge(&scene.groups, "web", secondary).await;
    scene.state("web", "Secondary").await;
    for number in 0..claims {
        let replication = scene.replications.get(&format!("c{number}")).await.unwrap();
        assert_eq!(replication.spec.replication_state.as_str(), "secondary");
    }
    lists.0.lock().clone()
}

#[tokio::test(start_paused = true)]
async fn who_uses_claims_is_asked_once_for_all_that_are_demoted() {
    for claims in [3, 40] {
        let listed = listed(claims).await;
        for kind in ["pods", "volumeattachments", "persistentvolumeclaims"] {
            let times = listed.get(kind).copied().unwrap_or(0);
            assert!((1..=2).contains(&times), "{claims} claims: {listed:?}");
        }
    }
}
