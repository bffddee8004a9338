//! A group with a few volumes, and stores to keep it in.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use lifeboat_records::{
    Check, ClusterId, Deletion, Epoch, Found, Generation, Group, Kept, Profile, Record, RecordId, Records,
    Search, Settings, Stores, Writing, Written,
};
use lifeboat_store::{Bucket, Directory, Objects, Patience, S3Store, Secret};
use serde_json::{Value, json};

use crate::server::{ACCESS, BUCKET, SECRET, Server};

pub(crate) fn group() -> Group {
    Group::new("shop", "orders").unwrap()
}

/// A volume and its claim; `size` makes versions of it.
pub(crate) fn pair(name: &str, size: &str) -> Vec<Record> {
    let volume = json!({
        "metadata": {"name": format!("pv-{name}")},
        "spec": {"capacity": {"storage": size}, "claimRef": {"namespace": "shop", "name": name},
            "csi": {"driver": "d", "volumeHandle": name}},
    });
    let claim = json!({
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"volumeName": format!("pv-{name}"), "resources": {"requests": {"storage": size}}},
    });
    vec![
        Record::volume(&serde_json::from_value(volume).unwrap()).unwrap(),
        Record::claim(&serde_json::from_value(claim).unwrap()).unwrap(),
    ]
}

pub(crate) fn pairs(names: &[&str], size: &str) -> Vec<Record> {
    names.iter().flat_map(|name| pair(name, size)).collect()
}

pub(crate) fn ids(name: &str) -> BTreeSet<RecordId> {
    [RecordId::volume(&format!("pv-{name}")), RecordId::claim("shop", name)].into()
}

/// The group's own record, with the time of its status.
pub(crate) fn group_record(updated: &str) -> Record {
    let group = json!({
        "metadata": {"name": "orders", "namespace": "shop"},
        "spec": {"pvcSelector": {"matchLabels": {"app": "shop"}}, "replicationState": "primary",
            "s3Profiles": ["east", "west"], "async": {"schedulingInterval": "5m"}},
        "status": {"state": "Primary", "lastUpdateTime": updated},
    });
    Record::group(&serde_json::from_value(group).unwrap()).unwrap()
}

/// A change by the primary of an epoch; its clock stands still.
pub(crate) fn writing(epoch: u64, writer: &str, put: Vec<Record>) -> Writing {
    Writing {
        group: group(),
        epoch: Epoch(epoch),
        writer: ClusterId(writer.into()),
        time: Timestamp::UNIX_EPOCH,
        after: None,
        put,
        removed: BTreeSet::new(),
        check: Check::Written,
    }
}

pub(crate) fn deletion(epoch: u64, writer: &str) -> Deletion {
    Deletion {
        group: group(),
        epoch: Epoch(epoch),
        writer: ClusterId(writer.into()),
        time: Timestamp::UNIX_EPOCH,
    }
}

/// Deadlines that pass soon.
pub(crate) fn hasty() -> Settings {
    Settings {
        call: Duration::from_secs(5),
        list: Duration::from_secs(5),
        whole: Duration::from_secs(60),
        ..Settings::default()
    }
}

pub(crate) fn bucket(server: &Server) -> Objects {
    let store = S3Store {
        endpoint: format!("http://{}", server.address),
        bucket: BUCKET.into(),
        access_key: Secret::new(ACCESS),
        secret_key: Secret::new(SECRET),
        ..S3Store::default()
    };
    let patience = Patience {
        attempts: 2,
        first_pause: Duration::from_millis(1),
        longest_pause: Duration::from_millis(2),
        connect: Duration::from_secs(2),
        silence: Duration::from_secs(30),
    };
    Objects::Bucket(Box::new(Bucket::open(&store, patience).unwrap()))
}

/// Two S3 servers, called east and west.
pub(crate) struct Two {
    pub(crate) east: Server,
    pub(crate) west: Server,
    pub(crate) stores: Stores,
}

impl Two {
    pub(crate) async fn start() -> Self {
        Self::with(hasty()).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        let (east, west) = (Server::start().await, Server::start().await);
        let profiles = vec![Profile::new("east", bucket(&east)), Profile::new("west", bucket(&west))];
        let stores = Stores::new(profiles, settings);
        Self { east, west, stores }
    }

    /// The stores without one of them.
    pub(crate) fn only(&self, name: &str) -> Stores {
        let server = if name == "east" { &self.east } else { &self.west };
        Stores::new(vec![Profile::new(name, bucket(server))], hasty())
    }
}

pub(crate) async fn one() -> (Server, Stores) {
    let server = Server::start().await;
    let stores = Stores::new(vec![Profile::new("east", bucket(&server))], hasty());
    (server, stores)
}

pub(crate) fn folder(path: &std::path::Path) -> Stores {
    Stores::new(vec![Profile::new("folder", Objects::Directory(Directory::new(path)))], hasty())
}

/// What every store must have said.
pub(crate) fn all(written: &Written) -> Vec<&Kept> {
    written
        .stores
        .iter()
        .map(|told| told.outcome.as_ref().unwrap_or_else(|error| panic!("{}: {error}", told.store)))
        .collect()
}

pub(crate) fn changes(written: &Written) -> Vec<usize> {
    all(written).iter().map(|kept| kept.changes).collect()
}

/// The records that a search found by a manifest.
pub(crate) fn by_manifest(search: &Search) -> (&Records, Epoch, Generation) {
    match &search.found {
        Found::Manifest { manifest, records, .. } => (records, manifest.epoch, manifest.generation),
        other => panic!("{other:?} {:?} {:?}", search.damage, search.stores),
    }
}

/// Names and sizes of the claims found, such as `data=1Gi`.
pub(crate) fn told(records: &Records) -> Vec<String> {
    lifeboat_records::claims(records)
        .map(|claim| {
            let claim: Value = serde_json::to_value(claim).unwrap();
            let size = claim["spec"]["resources"]["requests"]["storage"].as_str().unwrap_or("?");
            format!("{}={size}", claim["metadata"]["name"].as_str().unwrap())
        })
        .collect()
}

/// Puts a record under Ramen's key, as Ramen does: nothing else beside it.
pub(crate) fn as_ramen(server: &Server, records: &[Record]) {
    let mut state = server.state.lock().unwrap();
    for record in records {
        state.objects.insert(format!("shop/orders/{}", record.id()), record.packed().clone());
    }
}
