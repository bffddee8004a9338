//! Two fleets that share a store, each with an application of the same name.

use crate::ledger::Shelves;
use crate::scene::{Scene, condition};
use lifeboat_api::annotations;
use lifeboat_testbed::Cluster;
use serde_json::{Value, json};

fn theirs(group: &mut Value) {
    group["metadata"]["annotations"] = json!({ annotations::EPOCH: "7", annotations::FLEET: "theirs" });
    group["spec"]["s3Profiles"] = json!(["west"]);
}

fn ours(group: &mut Value) {
    group["metadata"]["annotations"] = json!({ annotations::EPOCH: "1", annotations::FLEET: "ours" });
}

#[tokio::test(start_paused = true)]
async fn a_fleet_leaves_what_another_has_in_a_shared_store_alone() {
    let stores = Shelves::default();
    let (one, two) = (Cluster::embedded(), Cluster::embedded());
    let first = Scene::sharing(&one, "fleets", stores.clone()).await;
    let second = Scene::sharing(&two, "fleets", stores.clone()).await;
    let space = first.mark.as_str();
    assert_eq!(space, second.mark, "the applications have one name");
    first.claim("one").await;
    first.group("web", "primary", theirs).await;
    first.recorded("web").await;
    first.state("web", "Primary").await;
    let shared = || stores.record("west", space, "web").unwrap();
    assert_eq!((shared().fleet.as_deref(), shared().epoch), (Some("theirs"), 7));
    // The other fleet deploys an application of the same name: its records must not come from there.
    second.claim("one").await;
    second.group("web", "primary", ours).await;
    let group = second.blocked("web", "OtherFleet").await;
    let said = condition(&group, "ClusterDataReady").unwrap();
    assert_eq!((said.status.as_str(), said.reason.as_str()), ("False", "Error"));
    assert!(
        said.message.contains("west holds records of VRG") && said.message.contains("theirs"),
        "{said:?}"
    );
    assert!(stores.record("east", space, "web").is_none(), "nothing is recorded before all is restored");
    // The user says that it is new: the store of its own is used, the shared one is named.
    let new = json!({"metadata": {"annotations": {annotations::FIRST_DEPLOYMENT: "true"}}});
    second.merge(&second.groups, "web", new).await;
    second.state("web", "Primary").await;
    let group = second.says("web", "ClusterDataProtected", "False", "UploadError").await;
    let said = condition(&group, "ClusterDataProtected").unwrap().message.clone();
    assert!(said.contains("west holds records of VRG") && said.contains("theirs"), "{said}");
    second.blocked("web", "OtherFleet").await;
    let own = stores.record("east", space, "web").unwrap();
    assert_eq!((own.fleet.as_deref(), own.epoch, own.claims.len()), (Some("ours"), 1, 1));
    assert_eq!((shared().fleet.as_deref(), shared().epoch), (Some("theirs"), 7));
    // It ends without what is not its own.
    second.end("web").await;
    second.gone(&second.groups, "web").await;
    assert!(stores.record("east", space, "web").is_none());
    assert_eq!((shared().fleet.as_deref(), shared().epoch), (Some("theirs"), 7));
    first.recorded("web").await;
}

#[tokio::test(start_paused = true)]
async fn records_of_a_lost_hub_key_are_taken_up_when_the_user_says_so() {
    let stores = Shelves::default();
    let (one, two) = (Cluster::embedded(), Cluster::embedded());
    let first = Scene::sharing(&one, "rekeyed", stores.clone()).await;
    let second = Scene::sharing(&two, "rekeyed", stores.clone()).await;
    first.claim("one").await;
    first
        .group("web", "primary", |group| {
            group["metadata"]["annotations"] = json!({ annotations::EPOCH: "7", annotations::FLEET: "lost" });
        })
        .await;
    first.recorded("web").await;
    second
        .group("web", "primary", |group| {
            group["metadata"]["annotations"] = json!({ annotations::EPOCH: "8", annotations::FLEET: "new" });
            group["spec"]["action"] = json!("Failover");
        })
        .await;
    second.blocked("web", "OtherFleet").await;
    let known = json!({"metadata": {"annotations": {annotations::FLEET: "lost"}}});
    second.merge(&second.groups, "web", known).await;
    second.says("web", "ClusterDataReady", "True", "Restored").await;
    second.bound("one").await;
    second.recorded("web").await;
    assert_eq!(stores.record("west", &second.mark, "web").unwrap().epoch, 8);
}
