//! Two clusters and no hub: protect on east, promote on west by editing one field. Stores are folders in the format that Ramen reads.

use crate::pair::side;
use crate::scene::note;
use lifeboat_api::annotations;
use lifeboat_engine::Settings;
use lifeboat_protect::run::{kinds, protector};
use lifeboat_protect::stores::Stores;
use lifeboat_protect::view::Setup;
use lifeboat_testbed::Task;
use serde_json::json;
use std::sync::Arc;

#[tokio::test]
async fn without_a_hub_one_field_moves_the_application() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().display().to_string();
    let (east, _east) = side("east", &place, true).await;
    let (west, _west) = side("west", &place, true).await;
    assert_eq!(east.mark, west.mark, "the application has one name everywhere");
    east.claim("one").await;
    east.claim("two").await;
    east.group("web", "primary", |_| {}).await;
    east.says("web", "ClusterDataProtected", "True", "Uploaded").await;
    west.group("web", "secondary", |_| {}).await;
    west.state("web", "Secondary").await;
    // East burns down. On west, one field is edited.
    drop(_east);
    west.merge(&west.groups, "web", json!({"spec": {"replicationState": "primary"}})).await;
    let group = west.state("web", "Primary").await;
    assert_eq!(group.status.unwrap().primary_epoch, Some(2));
    for name in ["one", "two"] {
        let claim = west.bound(name).await;
        assert_eq!(note(&claim, annotations::RESTORE).as_deref(), Some("True"));
        let volume = west.volume(name).await;
        assert_eq!(volume.spec.unwrap().csi.unwrap().volume_handle, format!("handle-{name}"));
    }
    west.says("web", "ClusterDataProtected", "True", "Uploaded").await;
    // East returns as it was, and is told that it was passed over.
    let (client, clock) = (east.cluster.client(), east.cluster.clock());
    let setup = Setup { namespace: east.mark.clone(), cluster: "east".into(), only: None };
    let ledger = Arc::new(Stores::new(clock.clone()));
    let kinds = kinds(&client).await.unwrap();
    let again = protector(client, clock, Settings::default(), kinds, ledger, setup);
    let _again = Task::spawn(again.run(std::future::pending()));
    east.blocked("web", "Superseded").await;
    let secondary = json!({"spec": {"replicationState": "secondary", "action": "Failover"}});
    east.merge(&east.groups, "web", secondary).await;
    let status = east
        .group_is("web", |group| group.status.as_ref().unwrap().primary_epoch.is_none())
        .await
        .status
        .unwrap();
    assert_eq!(status.epoch, Some(2));
}
