//! A death before and after every change of the disks and every write to the API server: the process is started again on the same disks,
//! and every promise holds all the same. What must hold all the time is looked at after every change (`watch`).
//!
//! Told in real time, because bytes go through real sockets, and many tellings at once, because each mostly waits.

use crate::mortal::{Fate, Moment};
use crate::side::Side;
use futures::StreamExt as _;
use lifeboat_testbed::Cluster;
use std::collections::BTreeMap;

/// Tellings at once.
const AT_ONCE: usize = 8;

/// Two clusters that all tellings of a story share; each has nodes of its own.
#[derive(Clone)]
struct Clusters {
    east: Cluster,
    west: Cluster,
}

impl Clusters {
    async fn set_up() -> Self {
        let (east, west) = (Cluster::embedded(), Cluster::embedded());
        east.install(&crate::definitions()).await;
        west.install(&crate::definitions()).await;
        Self { east, west }
    }

    async fn sides(&self) -> (Side, Side) {
        let east = Side::beside_others(self.east.clone()).await;
        let west = Side::beside_others(self.west.clone()).await.watched_with(&east);
        (east, west)
    }
}

fn ledger(text: &str) -> BTreeMap<String, String> {
    [("ledger".to_owned(), text.to_owned())].into()
}

/// East has a volume that was written, and one complete copy of it is at west; gives both ids.
async fn protected(east: &Side, west: &Side) -> (String, String) {
    east.start().await;
    west.start().await;
    east.know(west, "1h").await;
    west.know(east, "1h").await;
    let uid = east.make(&format!("pvc-{}", east.mark)).await;
    east.write(&uid, "ledger", "one");
    east.bind("data", &uid).await;
    east.wish("data", "primary", false).await;
    let told = east.synced("data", jiff::Timestamp::UNIX_EPOCH).await;
    (uid, told.status.unwrap().destination_volume_id.unwrap())
}

/// What is made at the peer, and made primary there after everything was written.
async fn relocated(east: &Side, west: &Side) {
    let (uid, peer) = protected(east, west).await;
    east.write(&uid, "ledger", "the last word");
    east.wish("data", "secondary", false).await;
    east.secondary("data").await;
    west.bind("data", &peer).await;
    west.wish("data", "primary", false).await;
    west.primary("data").await;
    assert_eq!(west.content(&peer), ledger("the last word"));
    assert_eq!(east.content(&format!("replica-{uid}")), ledger("the last word"));
}

/// A lost primary returns and takes what was written without it; what only it had is there until then.
async fn resynced(east: &Side, west: &Side, fate: Fate) {
    let (uid, peer) = protected(east, west).await;
    east.write(&uid, "ledger", "lost");
    east.kill().await;
    west.bind("data", &peer).await;
    west.wish("data", "primary", false).await;
    west.primary("data").await;
    west.write(&peer, "ledger", "after");
    *east.fate.lock() = fate;
    east.wish("data", "secondary", true).await;
    // The first copy after the failover was cut before this was written: the next is asked for by a new VolumeReplication.
    west.delete("data").await;
    east.start().await;
    west.wish("data", "primary", false).await;
    east.secondary("data").await;
    assert_eq!(east.content(&format!("replica-{uid}")), ledger("after"));
}

/// Tells a story once without a death, and then once for each effect.
async fn told<F: Future<Output = ()>>(least: usize, story: impl Fn(Clusters, Fate) -> F) {
    let clusters = Clusters::set_up().await;
    let first = Fate::default();
    story(clusters.clone(), first.clone()).await;
    let effects = first.done();
    assert!(effects.len() >= least, "{effects:#?}");
    let deaths = [Moment::Before, Moment::After].into_iter();
    let deaths = deaths.flat_map(|moment| (1..=effects.len()).map(move |at| Fate::dying_at(at, moment)));
    let fates: Vec<Fate> = deaths.collect();
    let tellings = fates.iter().map(|fate| story(clusters.clone(), fate.clone()));
    futures::stream::iter(tellings).buffer_unordered(AT_ONCE).collect::<()>().await;
    // Real threads are at work, so one telling may need an effect less than another.
    let deaths = fates.iter().filter(|fate| fate.is_dead()).count();
    assert!(deaths + 6 >= fates.len(), "only {deaths} deaths of {}", fates.len());
}

#[tokio::test]
async fn a_primary_that_dies_while_it_is_made_secondary_loses_nothing() {
    told(15, |clusters, fate| async move {
        let (east, west) = clusters.sides().await;
        *east.fate.lock() = fate;
        relocated(&east, &west).await;
        east.kill().await;
        west.kill().await;
        east.watch.verdict();
    })
    .await;
}

#[tokio::test]
async fn a_secondary_that_dies_while_it_receives_and_becomes_primary_loses_nothing() {
    told(15, |clusters, fate| async move {
        let (east, west) = clusters.sides().await;
        *west.fate.lock() = fate;
        relocated(&east, &west).await;
        east.kill().await;
        west.kill().await;
        east.watch.verdict();
    })
    .await;
}

#[tokio::test]
async fn a_former_primary_that_dies_while_it_takes_the_peers_data_gets_there() {
    told(8, |clusters, fate| async move {
        let (east, west) = clusters.sides().await;
        resynced(&east, &west, fate).await;
        east.kill().await;
        west.kill().await;
        east.watch.verdict();
    })
    .await;
}
