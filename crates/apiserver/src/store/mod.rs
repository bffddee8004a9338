//! What is stored: every object as the JSON bytes it is served as, one revision counter, and for each collection the
//! recent past, from which watches replay and lists of an older version are put together again.
//!
//! The store knows nothing of Kubernetes' rules. A write names the version it replaces and is refused if that is no
//! longer the newest; everything else is decided before. Writes take effect in memory at once and become *visible* when
//! the disk has them: answers and watch events wait for that (see [`Store::settled`]), so nobody ever sees a write
//! that a crash could take back.

mod disk;
mod history;

pub use disk::{DiskError, DiskLog};
pub use history::{Event, EventKind, frame};

use bytes::Bytes;
use history::History;
use jiff::Timestamp;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// The first revision: 0 means "any" on the wire, and clients take small numbers for unset ones.
const FIRST_REVISION: u64 = 1;

/// Where an object lives: collection (`plural` or `plural.group`), namespace (empty for cluster scope) and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Collection name.
    pub collection: Arc<str>,
    /// Namespace, empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    /// Object name.
    pub name: Arc<str>,
}

impl Key {
    /// A key from its three parts.
    pub fn new(collection: &Arc<str>, namespace: &str, name: &str) -> Self {
        Self { collection: collection.clone(), namespace: namespace.into(), name: name.into() }
    }
}

/// What the server must find objects by without parsing them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    /// `metadata.uid`.
    pub uid: Box<str>,
    /// Whether deletion has begun.
    pub deleting: bool,
    /// `metadata.labels`, null where there are none.
    pub labels: serde_json::Value,
    /// Values of the kind's selectable fields.
    pub fields: Box<[(Box<str>, String)]>,
    /// Uids of the owners.
    pub owners: Box<[Box<str>]>,
}

/// One version of one object.
#[derive(Debug)]
pub struct Entry {
    /// Where it lives.
    pub key: Key,
    /// The revision that wrote it; also its `resourceVersion`.
    pub revision: u64,
    /// The object as JSON, resourceVersion included.
    pub json: Bytes,
    /// What it can be found by.
    pub index: Index,
}

/// What the writer believes is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Nothing.
    Absent,
    /// The version with this revision.
    Revision(u64),
}

/// The stored version was not the expected one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raced;

/// One page of a collection at one revision.
#[derive(Debug)]
pub struct Page {
    /// The objects, in order of namespace and name.
    pub entries: Vec<Arc<Entry>>,
    /// The revision the page shows.
    pub revision: u64,
}

/// The version asked for has been forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forgotten {
    /// The oldest version that can still be asked for.
    pub oldest: u64,
}

struct Collection {
    objects: BTreeMap<(Arc<str>, Arc<str>), Arc<Entry>>,
    history: History,
    /// The revision of the last change, a deletion included.
    changed: u64,
    /// The newest revision of this collection that watchers may see.
    visible: watch::Sender<u64>,
}

impl Collection {
    fn new(revision: u64) -> Self {
        Self {
            objects: BTreeMap::new(),
            history: History::new(revision),
            changed: revision,
            visible: watch::channel(revision).0,
        }
    }
}

struct State {
    revision: u64,
    /// The revision this process began with: all that came after it is known.
    born: u64,
    collections: BTreeMap<Arc<str>, Collection>,
    by_uid: BTreeMap<Box<str>, Key>,
    dependents: BTreeMap<Box<str>, BTreeSet<Key>>,
    observers: Vec<mpsc::UnboundedSender<Arc<Event>>>,
    /// Collections written since the disk was last handed work.
    unsettled: BTreeMap<Arc<str>, u64>,
}

/// All objects of one cluster.
pub struct Store {
    state: Arc<Mutex<State>>,
    disk: Option<DiskLog>,
    settled: watch::Receiver<Result<u64, Arc<str>>>,
    /// Kept so that a store without a disk never looks as if its disk had died.
    memory: Option<watch::Sender<Result<u64, Arc<str>>>>,
}

impl Store {
    /// A store that lives and dies with the process.
    pub fn in_memory() -> Self {
        let (memory, settled) = watch::channel(Ok(FIRST_REVISION));
        Self {
            state: Arc::new(Mutex::new(State::new(FIRST_REVISION))),
            disk: None,
            settled,
            memory: Some(memory),
        }
    }

    /// A store on disk, with everything that was acknowledged before. `index` tells what an object is found by.
    pub fn open(
        folder: &std::path::Path,
        index: impl Fn(&str, &serde_json::Value) -> Index,
    ) -> Result<Self, DiskError> {
        let mut state = State::new(FIRST_REVISION);
        let opened = disk::open(folder, |record| state.load(record, &index))?;
        state.revision = state.revision.max(opened.revision);
        state.born = state.revision;
        let revision = state.revision;
        for collection in state.collections.values_mut() {
            collection.history = History::new(revision);
            collection.visible.send_replace(revision);
        }
        let state = Arc::new(Mutex::new(state));
        let (done, settled) = watch::channel(Ok(revision));
        let shared = state.clone();
        let disk = DiskLog::start(opened, {
            move |result: Result<u64, Arc<str>>| {
                let reached = result.as_ref().ok().copied();
                let _earlier = done.send_replace(result);
                if let Some(revision) = reached {
                    shared.lock().reveal(revision);
                }
            }
        })?;
        Ok(Self { state, disk: Some(disk), settled, memory: None })
    }

    /// The newest revision.
    pub fn revision(&self) -> u64 {
        self.state.lock().revision
    }

    /// The revision at which any of these collections changed last.
    pub fn changed(&self, collections: &[&str]) -> u64 {
        let state = self.state.lock();
        let known = collections.iter().filter_map(|name| state.collections.get(*name));
        known.map(|collection| collection.changed).max().unwrap_or_default()
    }

    /// The newest version of an object.
    pub fn get(&self, collection: &str, namespace: &str, name: &str) -> Option<Arc<Entry>> {
        let state = self.state.lock();
        state.collections.get(collection)?.objects.get(&(namespace.into(), name.into())).cloned()
    }

    /// The object with this uid, wherever it lives.
    pub fn by_uid(&self, uid: &str) -> Option<Arc<Entry>> {
        let state = self.state.lock();
        let key = state.by_uid.get(uid)?;
        let objects = &state.collections.get(&key.collection)?.objects;
        objects.get(&(key.namespace.clone(), key.name.clone())).cloned()
    }

    /// The objects that name this uid as an owner.
    pub fn dependents(&self, uid: &str) -> Vec<Key> {
        self.state.lock().dependents.get(uid).into_iter().flatten().cloned().collect()
    }

    /// Writes an object; `make` gets the new revision and gives the version to store.
    pub fn put(
        &self,
        key: &Key,
        expect: Expect,
        now: Timestamp,
        make: impl FnOnce(u64) -> (Bytes, Index),
    ) -> Result<Arc<Entry>, Raced> {
        let mut state = self.state.lock();
        let stored = state.find(key);
        match (&stored, expect) {
            (None, Expect::Absent) => {}
            (Some(entry), Expect::Revision(revision)) if entry.revision == revision => {}
            _ => return Err(Raced),
        }
        let revision = state.revision + 1;
        let (json, index) = make(revision);
        let entry = Arc::new(Entry { key: key.clone(), revision, json, index });
        let kind = if stored.is_none() { EventKind::Added } else { EventKind::Modified };
        self.commit(&mut state, Event::new(kind, revision, now, entry.clone(), stored));
        Ok(entry)
    }

    /// Removes an object; `make` gets the revision of the removal and gives the last version, as watchers see it.
    pub fn remove(
        &self,
        key: &Key,
        expect: u64,
        now: Timestamp,
        make: impl FnOnce(u64) -> Bytes,
    ) -> Result<Arc<Entry>, Raced> {
        let mut state = self.state.lock();
        let stored = state.find(key).filter(|entry| entry.revision == expect).ok_or(Raced)?;
        let revision = state.revision + 1;
        let json = make(revision);
        let entry = Arc::new(Entry { key: key.clone(), revision, json, index: stored.index.clone() });
        self.commit(&mut state, Event::new(EventKind::Deleted, revision, now, entry.clone(), Some(stored)));
        Ok(entry)
    }

    fn commit(&self, state: &mut State, event: Event) {
        let event = Arc::new(event);
        state.apply(&event);
        match &self.disk {
            Some(disk) => {
                let collection = event.entry.key.collection.clone();
                state.unsettled.insert(collection, event.revision);
                disk.append(&event);
            }
            None => {
                // In this order: who is woken looks how far the store is settled, and would sleep on if that came second.
                if let Some(memory) = &self.memory {
                    let _earlier = memory.send_replace(Ok(event.revision));
                }
                if let Some(collection) = state.collections.get(&event.entry.key.collection) {
                    collection.visible.send_replace(event.revision);
                }
            }
        }
    }

    /// One page of a collection: from `after` on, at most `limit` objects that `keep` wants, as of `at` (the newest
    /// when `None`).
    pub fn page(
        &self,
        collection: &str,
        namespace: Option<&str>,
        after: Option<(&str, &str)>,
        at: Option<u64>,
        mut keep: impl FnMut(&Entry) -> bool,
        limit: usize,
    ) -> Result<Page, Forgotten> {
        let state = self.state.lock();
        let revision = at.unwrap_or(state.revision);
        let Some(found) = state.collections.get(collection) else {
            return Ok(Page { entries: Vec::new(), revision });
        };
        let past = match at {
            Some(at) if at < state.revision => found.history.undo(at)?,
            _ => BTreeMap::new(),
        };
        let start = match (after, namespace) {
            (Some((namespace, name)), _) => Bound::Excluded((Arc::from(namespace), Arc::from(name))),
            (None, Some(namespace)) => Bound::Included((Arc::from(namespace), Arc::from(""))),
            (None, None) => Bound::Unbounded,
        };
        let mut entries = Vec::new();
        let range = (start, Bound::Unbounded);
        let mut present = found.objects.range(range.clone()).peekable();
        let mut older = past.range(range).peekable();
        // Two ordered walks merged: what the past says about a key wins over the present.
        while entries.len() < limit {
            let key = match (present.peek(), older.peek()) {
                (Some((a, _)), Some((b, _))) => (*a).min(*b).clone(),
                (Some((a, _)), None) => (*a).clone(),
                (None, Some((b, _))) => (*b).clone(),
                (None, None) => break,
            };
            if namespace.is_some_and(|namespace| *key.0 != *namespace) {
                break;
            }
            let now = present.next_if(|(k, _)| **k == key).map(|(_, entry)| entry);
            let entry = match older.next_if(|(k, _)| **k == key) {
                Some((_, before)) => before.as_ref(),
                None => now,
            };
            if let Some(entry) = entry.filter(|entry| keep(entry)) {
                entries.push(entry.clone());
            }
        }
        Ok(Page { entries, revision })
    }

    /// How many objects stand after one in the order of a list, now.
    pub fn remaining(&self, collection: &str, namespace: Option<&str>, after: &Key) -> usize {
        let state = self.state.lock();
        let Some(found) = state.collections.get(collection) else { return 0 };
        let start = Bound::Excluded((after.namespace.clone(), after.name.clone()));
        let rest = found.objects.range((start, Bound::Unbounded));
        rest.take_while(|(key, _)| namespace.is_none_or(|namespace| *key.0 == *namespace)).count()
    }

    /// How many objects a collection holds.
    pub fn count(&self, collection: &str) -> usize {
        self.state.lock().collections.get(collection).map_or(0, |found| found.objects.len())
    }

    /// Names of the collections that hold anything.
    pub fn collections(&self) -> Vec<Arc<str>> {
        let state = self.state.lock();
        let filled = state.collections.iter().filter(|(_, collection)| !collection.objects.is_empty());
        filled.map(|(name, _)| name.clone()).collect()
    }

    /// Wakes whenever the collection has new visible events; the value is the newest visible revision.
    pub fn watch(&self, collection: &Arc<str>) -> watch::Receiver<u64> {
        let mut state = self.state.lock();
        let born = state.born;
        let found = state.collections.entry(collection.clone());
        found.or_insert_with(|| Collection::new(born)).visible.subscribe()
    }

    /// The events of a collection after one revision and up to another.
    pub fn events(&self, collection: &str, after: u64, until: u64) -> Result<Vec<Arc<Event>>, Forgotten> {
        let state = self.state.lock();
        match state.collections.get(collection) {
            Some(found) => found.history.since(after, until),
            None => Ok(Vec::new()),
        }
    }

    /// Every event from now on, in order, with the objects that exist now: for what a control plane does by itself.
    pub fn observe(&self) -> (Vec<Arc<Entry>>, mpsc::UnboundedReceiver<Arc<Event>>) {
        let mut state = self.state.lock();
        let (sender, receiver) = mpsc::unbounded_channel();
        state.observers.push(sender);
        let all = state.collections.values().flat_map(|collection| collection.objects.values().cloned());
        (all.collect(), receiver)
    }

    /// Waits until everything up to this revision survives a crash; fails when the disk has failed.
    pub async fn settled(&self, revision: u64) -> Result<(), Arc<str>> {
        if self.disk.is_none() {
            return Ok(());
        }
        let mut settled = self.settled.clone();
        let reached = settled.wait_for(|state| !matches!(state, Ok(done) if *done < revision)).await;
        match reached.as_deref() {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(why)) => Err(why.clone()),
            Err(_) => Err("the storage writer has stopped".into()),
        }
    }

    /// The newest revision that survives a crash; an error when the disk has failed.
    pub fn health(&self) -> Result<u64, Arc<str>> {
        self.settled.borrow().clone()
    }
}

impl State {
    fn new(revision: u64) -> Self {
        Self {
            revision,
            born: revision,
            collections: BTreeMap::new(),
            by_uid: BTreeMap::new(),
            dependents: BTreeMap::new(),
            observers: Vec::new(),
            unsettled: BTreeMap::new(),
        }
    }

    fn find(&self, key: &Key) -> Option<Arc<Entry>> {
        let objects = &self.collections.get(&key.collection)?.objects;
        objects.get(&(key.namespace.clone(), key.name.clone())).cloned()
    }

    fn apply(&mut self, event: &Arc<Event>) {
        self.revision = event.revision;
        if let Some(before) = &event.before {
            self.forget(before);
        }
        let entry = &event.entry;
        let slot = (entry.key.namespace.clone(), entry.key.name.clone());
        let known = self.collections.entry(entry.key.collection.clone());
        let collection = known.or_insert_with(|| Collection::new(self.born));
        if event.kind == EventKind::Deleted {
            collection.objects.remove(&slot);
        } else {
            collection.objects.insert(slot, entry.clone());
        }
        collection.history.push(event.clone());
        collection.changed = event.revision;
        if event.kind != EventKind::Deleted {
            self.remember(entry);
        }
        self.observers.retain(|observer| observer.send(event.clone()).is_ok());
    }

    fn remember(&mut self, entry: &Entry) {
        self.by_uid.insert(entry.index.uid.clone(), entry.key.clone());
        for owner in &entry.index.owners {
            self.dependents.entry(owner.clone()).or_default().insert(entry.key.clone());
        }
    }

    fn forget(&mut self, entry: &Entry) {
        self.by_uid.remove(&entry.index.uid);
        for owner in &entry.index.owners {
            if let Some(dependents) = self.dependents.get_mut(owner) {
                dependents.remove(&entry.key);
                if dependents.is_empty() {
                    self.dependents.remove(owner);
                }
            }
        }
    }

    fn load(
        &mut self,
        record: disk::Record,
        index: &impl Fn(&str, &serde_json::Value) -> Index,
    ) -> Result<(), &'static str> {
        let key = Key::new(&record.collection.into(), &record.namespace, &record.name);
        if let Some(before) = self.find(&key) {
            self.forget(&before);
        }
        self.revision = self.revision.max(record.revision);
        let known = self.collections.entry(key.collection.clone());
        let collection = known.or_insert_with(|| Collection::new(FIRST_REVISION));
        let slot = (key.namespace.clone(), key.name.clone());
        match record.json {
            None => {
                collection.objects.remove(&slot);
            }
            Some(json) => {
                let value: serde_json::Value =
                    serde_json::from_slice(&json).map_err(|_| "a record holds something that is not JSON")?;
                let index = index(&key.collection, &value);
                let entry = Arc::new(Entry { key, revision: record.revision, json, index });
                collection.objects.insert(slot, entry.clone());
                self.remember(&entry);
            }
        }
        Ok(())
    }

    /// Lets watchers see what the disk now has.
    fn reveal(&mut self, revision: u64) {
        let done: Vec<_> = self.unsettled.keys().cloned().collect();
        for name in done {
            if let Some(collection) = self.collections.get(&name) {
                collection.visible.send_replace(revision);
            }
            if self.unsettled.get(&name).is_some_and(|newest| *newest <= revision) {
                self.unsettled.remove(&name);
            }
        }
    }
}

#[cfg(test)]
mod tests;
