//! One group with many claims: all are protected, and then nothing is written.

use crate::ledger::Shelves;
use crate::scene::{Scene, furnish, run_protector};
use kube::api::PostParams;
use lifeboat_protect::ledger::Ledger;
use lifeboat_testbed::{Cluster, Task};
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
