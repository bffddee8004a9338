//! What lies on the disks. It alone is believed: what any component says is compared with it.

use crate::fleet::{Fleet, SPACE, volumes};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::Api;
use lifeboat_runner::sample::{FILE, Findings, Record, check};
use std::collections::BTreeMap;

/// The clusters that have disks.
pub const CLUSTERS: [&str; 2] = ["east", "west"];

/// The records of one PVC on one cluster, and the text they were read from.
#[derive(Debug, Clone, Default)]
pub struct Held {
    /// What is there.
    pub found: Findings,
    text: String,
}

impl Held {
    fn of(text: &[u8]) -> Self {
        Self { found: check(text), text: String::from_utf8_lossy(text).into_owned() }
    }

    /// A record.
    pub fn record(&self, number: u64) -> Option<Record> {
        let begin = format!("{number:010} ");
        let line = self.text.lines().find(|line| line.starts_with(&begin))?;
        let mut parts = line.split(' ');
        Some(Record {
            number: parts.next()?.parse().ok()?,
            millis: parts.next()?.parse().ok()?,
            writer: parts.next()?.to_owned(),
        })
    }

    /// Whether it has this very record.
    pub fn has(&self, record: &Record) -> bool {
        self.record(record.number).is_some_and(|own| own == *record)
    }

    /// The number of the last record that both have, from the first one on. Who wrote it says nothing: a cluster that comes home may
    /// begin with its own records, because the other one had not written yet when the copy was cut.
    pub fn common(&self, other: &Self) -> u64 {
        let both = self.text.lines().zip(other.text.lines());
        let last = both.take_while(|(own, theirs)| own == theirs).last();
        last.and_then(|(line, _)| line.split(' ').next()?.parse().ok()).unwrap_or_default()
    }
}

/// The volume that a PVC of a living cluster is bound to.
pub async fn bound(fleet: &Fleet, cluster: &str, claim: &str) -> Option<Held> {
    let client = fleet.client(cluster).await;
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), SPACE);
    let volume = claims.get_opt(claim).await.expect("read")?.spec?.volume_name?;
    let volumes_: Api<PersistentVolume> = Api::all(client);
    let handle = volumes_.get_opt(&volume).await.expect("read")?.spec?.csi?.volume_handle;
    let text = std::fs::read(volumes(&fleet.home(cluster)).join(handle).join("data").join(FILE)).ok()?;
    Some(Held::of(&text))
}

/// The records of every volume, snapshot and image on a cluster's disks.
fn all(fleet: &Fleet, cluster: &str) -> Vec<Held> {
    let listed = std::fs::read_dir(volumes(&fleet.home(cluster)));
    let files = listed.into_iter().flatten().flatten().map(|entry| entry.path().join("data").join(FILE));
    // One that is just being removed is not there.
    files.filter_map(|file| std::fs::read(file).ok()).map(|text| Held::of(&text)).collect()
}

/// The most that any whole volume, snapshot or image on a cluster's disks has of each PVC.
pub fn best(fleet: &Fleet, cluster: &str) -> BTreeMap<String, Held> {
    let mut best: BTreeMap<String, Held> = BTreeMap::new();
    for held in all(fleet, cluster).into_iter().filter(|held| held.found.is_whole()) {
        let Some(last) = &held.found.last else { continue };
        let Some((_, claim)) = last.writer.split_once('/') else { continue };
        let known = best.entry(claim.to_owned()).or_default();
        if known.found.last_number() < held.found.last_number() {
            *known = held;
        }
    }
    best
}

/// The newest record of a volume that any whole volume, snapshot or image on a cluster's disks has too. What they have of another life of a PVC of the
/// same name is no copy, however much it is.
pub fn copied(fleet: &Fleet, cluster: &str, here: &Held) -> Option<Record> {
    let whole = all(fleet, cluster).into_iter().filter(|held| held.found.is_whole());
    let copies = whole.filter_map(|held| held.found.last).filter(|last| here.has(last));
    copies.max_by_key(|last| last.number)
}

/// Whether any whole volume, snapshot or image on any disk has this very record.
pub fn is_somewhere(fleet: &Fleet, record: &Record) -> bool {
    let begin = format!("{:010} {} {} ", record.number, record.millis, record.writer);
    CLUSTERS.into_iter().any(|cluster| {
        all(fleet, cluster)
            .iter()
            .any(|held| held.found.is_whole() && held.text.lines().any(|line| line.starts_with(&begin)))
    })
}
