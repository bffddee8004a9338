//! What a user is promised, with nobody played: on three embedded API servers and on three real ones.

use crate::whole::fleet::{Person, Site, agent_on, furnish, run_hub};
use async_trait::async_trait;
use kube::api::DeleteParams;
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_engine::ObjectKey;
use lifeboat_hub::drpc::world::GroupWords as _;
use lifeboat_protect::ledger::{Ledger, LedgerError, Reading, Record, Store};
use lifeboat_protect::stores::Stores;
use lifeboat_testbed::{Cluster, Task};
use parking_lot::Mutex;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

async fn start(hub: &Cluster, site: &mut Site) {
    let below = site.cluster.account("agent").await;
    site.start(agent_on(hub, site.name).await, below).await;
}

/// Deployed on east; east dies, and west takes over; east returns and is cleaned up; home again without loss; then nothing of it is left.
async fn story(hub: &Cluster, east: Cluster, west: Cluster) {
    let folder = tempfile::tempdir().unwrap();
    let (mut east, mut west) = (Site::new("east", east), Site::new("west", west));
    furnish(hub, [&east, &west], folder.path()).await;
    let _hub = Task::spawn(run_hub(hub.account("hub").await, hub.clock()));
    start(hub, &mut east).await;
    start(hub, &mut west).await;
    let person = Person::of(hub);
    person.pair().await;
    person.protect().await;
    person.is("Deployed", "Completed").await;
    person.is_safe().await;
    assert_eq!(person.placed().await, ["east"]);
    assert!(east.group().await.unwrap().is_primary() && west.group().await.unwrap().is_secondary());

    east.die();
    person.ask(json!({ "action": "Failover", "failoverCluster": "west" })).await;
    person.is("FailedOver", "Cleaning Up").await;
    assert_eq!(person.placed().await, ["west", "(east)"]);
    assert!(west.group().await.unwrap().is_primary());
    start(hub, &mut east).await;
    person.is("FailedOver", "Completed").await;
    assert_eq!(person.placed().await, ["west"]);
    assert!(east.group().await.unwrap().is_secondary());

    person.ask(json!({ "action": "Relocate", "preferredCluster": "east" })).await;
    person.is("Relocated", "Completed").await;
    assert_eq!(person.placed().await, ["east"]);
    assert!(east.group().await.unwrap().is_primary() && west.group().await.unwrap().is_secondary());

    person.drpcs.delete("web", &DeleteParams::default()).await.unwrap();
    person.gone().await;
    assert_eq!(person.placed().await, ["east"]);
    assert_eq!((east.group().await, west.group().await), (None, None));
}

#[tokio::test(start_paused = true)]
async fn an_application_lives_on_three_embedded_clusters() {
    story(&Cluster::embedded(), Cluster::embedded(), Cluster::embedded()).await;
}

#[tokio::test]
async fn an_application_lives_on_three_real_clusters() {
    let test = "lifeboat-hub whole::stories::an_application_lives_on_three_real_clusters";
    let Some(hub) = Cluster::another_real(test).await else { return };
    let (Some(east), Some(west)) = (Cluster::another_real(test).await, Cluster::another_real(test).await)
    else {
        return;
    };
    story(&hub, east, west).await;
}

/// The stores, some of which cannot be reached from one cluster.
struct Cut {
    stores: Stores,
    off: Arc<Mutex<BTreeSet<String>>>,
}

#[async_trait]
impl Ledger for Cut {
    async fn keep(
        &self,
        stores: &[Store],
        group: &ObjectKey,
        record: &Record,
        verify: bool,
    ) -> BTreeMap<String, Result<(), LedgerError>> {
        self.stores.keep(stores, group, record, verify).await
    }

    async fn read(&self, stores: &[Store], group: &ObjectKey, fleet: Option<&str>) -> Reading {
        let mut reading = self.stores.read(stores, group, fleet).await;
        for name in self.off.lock().iter() {
            if let Some(said) = reading.stores.get_mut(name) {
                *said = Err("no route to host".to_owned());
            }
        }
        reading
    }

    async fn erase(
        &self,
        store: &Store,
        group: &ObjectKey,
        cluster: &str,
        fleet: Option<&str>,
        epoch: i64,
    ) -> Result<(), LedgerError> {
        self.stores.erase(store, group, cluster, fleet, epoch).await
    }

    async fn groups(&self, store: &Store) -> Result<Vec<VolumeReplicationGroup>, LedgerError> {
        self.stores.groups(store).await
    }
}

/// A store that the hub reaches and a cluster does not is named on the hub, with the cluster, and forgotten when it is reached again.
#[tokio::test(start_paused = true)]
async fn a_store_that_only_the_hub_reaches_is_told_of() {
    let hub = Cluster::embedded();
    let folder = tempfile::tempdir().unwrap();
    let (mut east, mut west) =
        (Site::new("east", Cluster::embedded()), Site::new("west", Cluster::embedded()));
    let off: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    east.ledger = Arc::new(Cut { stores: Stores::new(hub.clock()), off: off.clone() });
    furnish(&hub, [&east, &west], folder.path()).await;
    let _hub = Task::spawn(run_hub(hub.account("hub").await, hub.clock()));
    start(&hub, &mut east).await;
    start(&hub, &mut west).await;
    let person = Person::of(&hub);
    person.pair().await;
    // The peer's store: east can be used, and what is the matter is said.
    off.lock().insert("west".to_owned());
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    let said = "cluster east does not reach the store west: no route to host";
    person.cluster_says("east", "True", said).await;
    person.policy_says("True", said).await;
    // Its own.
    off.lock().insert("east".to_owned());
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    person
        .cluster_says("east", "False", "cluster east does not reach the store east: no route to host")
        .await;
    person.cluster_says("west", "True", "").await;
    off.lock().clear();
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    person.cluster_says("east", "True", "").await;
    person.policy_says("True", "drpolicy validated").await;
}
