//! Stores in memory that can be slow, down, empty or forgetful.

use async_trait::async_trait;
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_engine::ObjectKey;
use lifeboat_protect::ledger::{Ledger, LedgerError, Orphan, Reading, Record, Seen, Store};
use lifeboat_testbed::{CrashPoints, Kind};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Default)]
pub struct Shelf {
    pub records: BTreeMap<(String, ObjectKey), Record>,
    pub tombs: BTreeMap<(String, ObjectKey), i64>,
    pub orphans: BTreeMap<(String, ObjectKey), Orphan>,
    pub down: BTreeSet<String>,
    pub broken: BTreeSet<String>,
}

#[derive(Clone, Default)]
pub struct Shelves {
    pub shelf: Arc<Mutex<Shelf>>,
    pub points: Option<CrashPoints>,
}

impl Shelves {
    pub fn down(&self, store: &str, down: bool) {
        let mut shelf = self.shelf.lock();
        if down {
            shelf.down.insert(store.to_owned())
        } else {
            shelf.down.remove(store)
        };
    }

    pub fn record(&self, store: &str, space: &str, name: &str) -> Option<Record> {
        self.shelf.lock().records.get(&(store.to_owned(), ObjectKey::new(space, name))).cloned()
    }

    pub fn put(&self, store: &str, space: &str, name: &str, record: Record) {
        self.shelf.lock().records.insert((store.to_owned(), ObjectKey::new(space, name)), record);
    }

    async fn counted<T>(
        &self,
        what: String,
        work: impl FnOnce(&mut Shelf) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        let done = async { work(&mut self.shelf.lock()) };
        match &self.points {
            None => done.await,
            Some(points) => match points.effect(Kind::ObjectStore, what, done).await {
                Ok(done) => done,
                // Nobody is left to hear the answer.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

impl Shelves {
    async fn keep_in(&self, store: &Store, group: &ObjectKey, record: &Record) -> Result<(), LedgerError> {
        let key = (store.profile.name.clone(), group.clone());
        self.counted(format!("keep {group} in {}", key.0), |shelf| {
            reach(shelf, store)?;
            one_fleet(shelf, &key, record.fleet.as_deref())?;
            let known = shelf.records.get(&key).map_or(0, |known| known.epoch);
            let known = known.max(shelf.tombs.get(&key).copied().unwrap_or(0));
            if known > record.epoch {
                return Err(LedgerError::Superseded(known));
            }
            // As real stores do: an epoch belongs to one cluster, and what was deleted begins again only with a higher one.
            let holder = shelf.records.get(&key).filter(|held| held.epoch == record.epoch);
            if let Some(by) = holder.map(|held| held.cluster.clone()).filter(|by| *by != record.cluster) {
                return Err(LedgerError::Taken { epoch: record.epoch, by });
            }
            if shelf.tombs.get(&key) == Some(&record.epoch) {
                return Err(LedgerError::Taken {
                    epoch: record.epoch,
                    by: "a group that was deleted".into(),
                });
            }
            shelf.orphans.remove(&key);
            shelf.records.insert(key, record.clone());
            Ok(())
        })
        .await
    }
}

fn reach(shelf: &Shelf, store: &Store) -> Result<(), LedgerError> {
    let name = &store.profile.name;
    assert!(!store.credentials.secret_key.is_empty(), "a store is never asked without its keys");
    if shelf.down.contains(name) {
        Err(LedgerError::Failed(format!("{name} does not answer")))
    } else {
        Ok(())
    }
}

/// What another fleet has recorded is refused, as real stores do.
fn one_fleet(shelf: &Shelf, key: &(String, ObjectKey), fleet: Option<&str>) -> Result<(), LedgerError> {
    let theirs = shelf.records.get(key).and_then(|record| record.fleet.clone());
    match (fleet, theirs) {
        (Some(fleet), Some(theirs)) if fleet != theirs => Err(LedgerError::OtherFleet {
            why: format!("S3 profile {} holds records of VRG {} of another fleet ({theirs})", key.0, key.1),
            fleet: theirs,
        }),
        _ => Ok(()),
    }
}

#[async_trait]
impl Ledger for Shelves {
    async fn keep(
        &self,
        stores: &[Store],
        group: &ObjectKey,
        record: &Record,
        _verify: bool,
    ) -> BTreeMap<String, Result<(), LedgerError>> {
        let mut results = BTreeMap::new();
        for store in stores {
            results.insert(store.profile.name.clone(), self.keep_in(store, group, record).await);
        }
        results
    }
    async fn read(&self, stores: &[Store], group: &ObjectKey, fleet: Option<&str>) -> Reading {
        let shelf = self.shelf.lock();
        let mut reading = Reading::default();
        for store in stores {
            let name = store.profile.name.clone();
            if let Err(error) = reach(&shelf, store) {
                reading.stores.insert(name, Err(error.to_string()));
                continue;
            }
            if shelf.broken.contains(&name) {
                reading.stores.insert(name, Ok(Seen::Something));
                continue;
            }
            let key = (name.clone(), group.clone());
            if let Err(error) = one_fleet(&shelf, &key, fleet) {
                reading.foreign.insert(name, error.to_string());
                continue;
            }
            let found = shelf.records.get(&key);
            reading.orphan = reading.orphan.or_else(|| shelf.orphans.get(&key).cloned());
            reading.epoch = reading.epoch.max(shelf.tombs.get(&key).copied().unwrap_or(0));
            let seen = if found.is_some() { Seen::Something } else { Seen::Empty };
            reading.stores.insert(name, Ok(seen));
            if let Some(found) = found {
                reading.epoch = reading.epoch.max(found.epoch);
                if reading.newest.as_ref().is_none_or(|newest| newest.epoch < found.epoch) {
                    reading.newest = Some(found.clone());
                }
            }
        }
        reading
    }

    async fn erase(
        &self,
        store: &Store,
        group: &ObjectKey,
        _: &str,
        fleet: Option<&str>,
        epoch: i64,
    ) -> Result<(), LedgerError> {
        let key = (store.profile.name.clone(), group.clone());
        self.counted(format!("erase {group} from {}", key.0), |shelf| {
            reach(shelf, store)?;
            one_fleet(shelf, &key, fleet)?;
            shelf.records.remove(&key);
            shelf.tombs.insert(key, epoch);
            Ok(())
        })
        .await
    }

    async fn orphan(
        &self,
        store: &Store,
        group: &ObjectKey,
        fleet: Option<&str>,
        orphan: &Orphan,
    ) -> Result<(), LedgerError> {
        let key = (store.profile.name.clone(), group.clone());
        self.counted(format!("orphan {group} in {}", key.0), |shelf| {
            reach(shelf, store)?;
            one_fleet(shelf, &key, fleet)?;
            shelf.orphans.insert(key, orphan.clone());
            Ok(())
        })
        .await
    }

    async fn groups(&self, store: &Store) -> Result<Vec<VolumeReplicationGroup>, LedgerError> {
        let shelf = self.shelf.lock();
        reach(&shelf, store)?;
        let mine = shelf.records.iter().filter(|((name, _), _)| *name == store.profile.name);
        Ok(mine.map(|(_, record)| record.group.clone()).collect())
    }
}
