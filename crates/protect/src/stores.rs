//! The stores as they are: buckets with Ramen's keys and our manifests beside them. What is not named here is [`lifeboat_records`]' business.

use crate::ledger::{Ledger, LedgerError, Orphan, Reading, Record, Seen, Store};
use async_trait::async_trait;
use flate2::read::GzDecoder;
use k8s_openapi::api::core::v1::PersistentVolume;
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_engine::{Clock, ObjectKey};
use lifeboat_records as records;
use lifeboat_records::{ClusterId, Epoch, Error, FleetId, Found, Group, RecordId};
use lifeboat_store::{Bucket, Objects, Opened, Patience, S3Store, Secret, Store as Place, certificates};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::PathBuf;

/// Longest record of a group that is read: no API server holds a larger object.
const LONGEST: u64 = 16 << 20;
/// How the key of a group's own record ends.
const GROUP_KEY: &str = "/v1alpha1.VolumeReplicationGroup/a";

/// Requests in flight to one store: all groups share its connections, and after a failover all of them have something to say at once.
const CONNECTIONS: usize = 128;

/// Claims and the volumes that are recorded for them: one, or several where a claim got another volume.
type Pairs = BTreeMap<String, BTreeSet<String>>;

/// Object stores behind the S3 protocol, or directories (`file:///…`).
pub struct Stores {
    clock: Clock,
    settings: records::Settings,
    /// What is recorded of a group, so that what leaves can be named.
    recorded: Mutex<BTreeMap<ObjectKey, Pairs>>,
    opened: Opened<Store>,
}

impl Stores {
    /// Stores with the usual patience.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            settings: records::Settings::default(),
            recorded: Mutex::default(),
            opened: Opened::default(),
        }
    }

    fn open(&self, store: &Store) -> Result<Objects, String> {
        self.opened.get(&store.profile.name, store, open)
    }

    /// Stores, as a group of this fleet uses them.
    fn of(&self, stores: &[Store], fleet: Option<&str>) -> records::Stores {
        let profiles = stores.iter().map(|store| {
            let name = store.profile.name.clone();
            match self.open(store) {
                Ok(objects) => records::Profile::new(name, objects),
                Err(why) => records::Profile::unavailable(name, why),
            }
        });
        let fleet = fleet.map(|fleet| FleetId(fleet.to_owned()));
        records::Stores::new(profiles.collect(), self.settings).of_fleet(fleet)
    }

    /// What was recorded before: remembered, or read once.
    async fn before(&self, stores: &records::Stores, group: &Group, key: &ObjectKey) -> Pairs {
        if let Some(known) = self.recorded.lock().get(key) {
            return known.clone();
        }
        match stores.newest(group).await.found {
            Found::Manifest { records, .. } | Found::Ramen { records, .. } => pairs(&records),
            Found::Deleted { .. } | Found::Empty | Found::Unreadable => Pairs::new(),
        }
    }
}

fn pairs(found: &records::Records) -> Pairs {
    let mut pairs = Pairs::new();
    for (claim, volume) in records::volumes(found).filter_map(pair) {
        pairs.entry(claim).or_default().insert(volume);
    }
    pairs
}

/// The claim that a volume is for, and its own name.
fn pair(volume: &PersistentVolume) -> Option<(String, String)> {
    let claim = volume.spec.as_ref()?.claim_ref.as_ref()?.name.clone()?;
    Some((claim, volume.metadata.name.clone()?))
}

/// Records that go: of claims that left the group, and volumes that a claim had before the one that is recorded now.
fn removed(space: &str, before: &Pairs, record: &Record) -> BTreeSet<RecordId> {
    let now: Pairs =
        record.volumes.iter().filter_map(pair).map(|(claim, volume)| (claim, [volume].into())).collect();
    let mut gone = BTreeSet::new();
    for (claim, volumes) in before {
        let left = !record.members.contains(claim) && !now.contains_key(claim);
        if left {
            gone.insert(RecordId::claim(space, claim));
        }
        let stays = |volume: &&String| now.values().any(|one| one.contains(*volume));
        if left || now.contains_key(claim) {
            gone.extend(
                volumes.iter().filter(|volume| !stays(volume)).map(|volume| RecordId::volume(volume)),
            );
        }
    }
    gone
}

/// Opens a store; why not, in words without keys.
fn open(store: &Store) -> Result<Objects, String> {
    let profile = &store.profile;
    if let Some(folder) = profile.endpoint.strip_prefix("file://") {
        let place = Place::Local(PathBuf::from(folder).join(&profile.bucket));
        return Objects::open(&place).map_err(|error| error.to_string());
    }
    let ca_bundle = certificates(profile.ca_certificates.as_deref())?;
    let bucket = S3Store {
        endpoint: profile.endpoint.clone(),
        bucket: profile.bucket.clone(),
        region: profile.region.clone(),
        access_key: Secret::new(&store.credentials.access_key),
        secret_key: Secret::new(&store.credentials.secret_key),
        ca_bundle,
        max_connections: CONNECTIONS,
        ..S3Store::default()
    };
    // The controller asks again by itself; and a dead store must not hold up what the others have to say.
    let patience = Patience { attempts: 3, ..Patience::default() };
    let bucket = Bucket::open(&bucket, patience).map_err(|error| error.to_string())?;
    Ok(Objects::Bucket(Box::new(bucket)))
}

fn failed(error: Error) -> LedgerError {
    match error {
        Error::Refused { epoch, mine, held_by, .. } if epoch == mine => {
            LedgerError::Taken { epoch: number(epoch), by: held_by }
        }
        Error::Refused { epoch, .. } => LedgerError::Superseded(number(epoch)),
        Error::OtherFleet { ref fleet, .. } => {
            LedgerError::OtherFleet { fleet: fleet.0.clone(), why: error.to_string() }
        }
        Error::Lost { .. } | Error::Incomplete { .. } | Error::Damaged { .. } => {
            LedgerError::Gone(error.to_string())
        }
        error => LedgerError::Failed(error.to_string()),
    }
}

fn number(epoch: Epoch) -> i64 {
    i64::try_from(epoch.0).unwrap_or(i64::MAX)
}

fn epoch(number: i64) -> Epoch {
    Epoch(u64::try_from(number).unwrap_or(0))
}

/// Everything of a record, as records.
fn put(record: &Record) -> Result<Vec<records::Record>, Error> {
    let volumes = record.volumes.iter().map(records::Record::volume);
    let claims = record.claims.iter().map(records::Record::claim);
    let group = std::iter::once(records::Record::group(&record.group));
    volumes.chain(claims).chain(group).collect()
}

#[async_trait]
impl Ledger for Stores {
    async fn keep(
        &self,
        stores: &[Store],
        key: &ObjectKey,
        record: &Record,
        verify: bool,
    ) -> BTreeMap<String, Result<(), LedgerError>> {
        let all = |why: LedgerError| {
            stores.iter().map(|store| (store.profile.name.clone(), Err(why.clone()))).collect()
        };
        let (group, put) = match (Group::new(&key.namespace, &key.name), put(record)) {
            (Ok(group), Ok(put)) => (group, put),
            (Err(error), _) | (_, Err(error)) => return all(failed(error)),
        };
        let opened = self.of(stores, record.fleet.as_deref());
        let before = self.before(&opened, &group, key).await;
        let removed = removed(&key.namespace, &before, record);
        let writing = records::Writing {
            group,
            epoch: epoch(record.epoch),
            writer: ClusterId(record.cluster.clone()),
            time: self.clock.now(),
            after: None,
            put,
            removed,
            check: if verify { records::Check::ReadBack } else { records::Check::Written },
        };
        let written = match opened.write(&writing).await {
            Ok(written) => written,
            Err(error) => return all(failed(error)),
        };
        let mut now: Pairs = before;
        if written.everywhere() {
            now.retain(|claim, _| record.members.contains(claim));
            for (claim, _) in record.volumes.iter().filter_map(pair) {
                now.remove(&claim);
            }
        }
        for (claim, volume) in record.volumes.iter().filter_map(pair) {
            now.entry(claim).or_default().insert(volume);
        }
        self.recorded.lock().insert(key.clone(), now);
        written.stores.into_iter().map(|told| (told.store, told.outcome.map(drop).map_err(failed))).collect()
    }

    async fn read(&self, stores: &[Store], key: &ObjectKey, fleet: Option<&str>) -> Reading {
        let Ok(group) = Group::new(&key.namespace, &key.name) else { return Reading::default() };
        let search = self.of(stores, fleet).newest(&group).await;
        let incomplete = search.found == Found::Unreadable;
        let seen =
            |reached: records::Reached| match reached.manifests + reached.records + reached.kube_objects {
                0 => Seen::Empty,
                // A tombstone's neighbours, such as leftovers of a sweep, are nothing to restore.
                _ if matches!(search.found, Found::Deleted { .. }) => Seen::Empty,
                _ => Seen::Something,
            };
        let is_foreign = |told: &&records::Seen| matches!(told.answer, Err(Error::OtherFleet { .. }));
        let foreign = search
            .stores
            .iter()
            .filter(is_foreign)
            .filter_map(|told| Some((told.store.clone(), told.answer.as_ref().err()?.to_string())));
        let foreign = foreign.collect();
        let told = search.stores.iter().filter(|told| !is_foreign(told)).map(|told| {
            (told.store.clone(), told.answer.clone().map(seen).map_err(|error| error.to_string()))
        });
        let stores: BTreeMap<String, Result<Seen, String>> = told.collect();
        let held = search.held.as_ref().map_or(0, |held| number(held.epoch));
        // What was just read need not be read again for what is written next.
        match &search.found {
            Found::Manifest { records, .. } | Found::Ramen { records, .. } => {
                self.recorded.lock().insert(key.clone(), pairs(records));
            }
            Found::Deleted { .. } | Found::Empty | Found::Unreadable => {
                self.recorded.lock().remove(key);
            }
        }
        let newest = match search.found {
            Found::Manifest { manifest, records, .. } => {
                let record = recorded(number(manifest.epoch), &records);
                Some(Record { cluster: manifest.writer.0, ..record })
            }
            Found::Ramen { records, .. } => Some(recorded(0, &records)),
            Found::Deleted { .. } | Found::Empty | Found::Unreadable => None,
        };
        debug_assert!(!incomplete || newest.is_none());
        let orphan = search.orphan.map(|found| Orphan {
            epoch: number(found.epoch),
            cluster: found.cluster.0,
            uid: found.uid,
            volumes: found.volumes,
        });
        Reading { newest, epoch: held, orphan, stores, foreign }
    }

    async fn erase(
        &self,
        store: &Store,
        key: &ObjectKey,
        cluster: &str,
        fleet: Option<&str>,
        at: i64,
    ) -> Result<(), LedgerError> {
        let group = Group::new(&key.namespace, &key.name).map_err(failed)?;
        let deletion = records::Deletion {
            group,
            epoch: epoch(at),
            writer: ClusterId(cluster.to_owned()),
            time: self.clock.now(),
        };
        let cleared = self.of(std::slice::from_ref(store), fleet).delete(&deletion).await.map_err(failed)?;
        self.recorded.lock().remove(key);
        cleared.into_iter().try_for_each(|one| one.outcome.map(drop).map_err(failed))
    }

    async fn orphan(
        &self,
        store: &Store,
        key: &ObjectKey,
        fleet: Option<&str>,
        orphan: &Orphan,
    ) -> Result<(), LedgerError> {
        let mark = records::Orphan {
            group: Group::new(&key.namespace, &key.name).map_err(failed)?,
            epoch: epoch(orphan.epoch),
            cluster: ClusterId(orphan.cluster.clone()),
            uid: orphan.uid.clone(),
            time: self.clock.now(),
            volumes: orphan.volumes.clone(),
        };
        let told = self.of(std::slice::from_ref(store), fleet).orphan(&mark).await;
        told.into_iter().try_for_each(|(_, outcome)| outcome.map_err(failed))
    }

    async fn groups(&self, store: &Store) -> Result<Vec<VolumeReplicationGroup>, LedgerError> {
        let objects = self.open(store).map_err(LedgerError::Failed)?;
        let failed = |error: lifeboat_store::Error| LedgerError::Failed(error.to_string());
        let listed = objects.list("").await.map_err(failed)?;
        let mut groups = Vec::new();
        for entry in listed.iter().filter(|entry| entry.key.ends_with(GROUP_KEY) && entry.size <= LONGEST) {
            let packed = objects.get(&entry.key).await.map_err(failed)?;
            let mut text = Vec::new();
            let unpacked = GzDecoder::new(&*packed).take(LONGEST).read_to_end(&mut text);
            // One that cannot be read hides no other.
            match unpacked.ok().and_then(|_| serde_json::from_slice(&text).ok()) {
                Some(group) => groups.push(group),
                None => tracing::warn!(
                    key = entry.key,
                    store = store.profile.name,
                    "a recorded group cannot be read"
                ),
            }
        }
        Ok(groups)
    }
}

fn recorded(epoch: i64, found: &records::Records) -> Record {
    Record {
        epoch,
        cluster: String::new(),
        fleet: None,
        volumes: records::volumes(found).cloned().collect(),
        claims: records::claims(found).cloned().collect(),
        group: records::group(found).cloned().unwrap_or_default(),
        members: BTreeSet::new(),
    }
}
