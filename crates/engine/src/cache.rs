//! What a controller knows of one kind: the newest version seen of every object, from the watch or from our own writes,
//! in order of namespace and name, with indexes kept up with every change. No I/O: `feed` brings the events, `objects`
//! the answers to our writes.
//!
//! The version rule: a version never replaces a newer one of the same object. So the events that our own writes cause, and
//! any older ones still on their way, change nothing and wake nobody.

use crate::index::{Index, Indexed};
use kube::Resource;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Namespace (empty for cluster-wide kinds) and name of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Namespace, empty for cluster-wide kinds.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ObjectKey {
    /// The key of a namespaced object.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The key of a cluster-wide object.
    pub fn cluster_wide(name: impl Into<String>) -> Self {
        Self::new("", name)
    }

    /// The key of an object.
    pub fn of<K: Resource>(object: &K) -> Self {
        let meta = object.meta();
        Self::new(meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
    }

    /// Whether it is the key of this object.
    pub(crate) fn is_of<K: Resource>(&self, object: &K) -> bool {
        let meta = object.meta();
        self.name == meta.name.as_deref().unwrap_or_default()
            && self.namespace == meta.namespace.as_deref().unwrap_or_default()
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// One object before and after a change; at least one of the two is there.
#[derive(Debug)]
pub struct Change<K> {
    /// What was known before; `None` for an object not known before.
    pub old: Option<Arc<K>>,
    /// What is known now; `None` for an object that is gone.
    pub new: Option<Arc<K>>,
}

impl<K> Change<K> {
    /// Both versions, old first: most wake-ups concern what an object pointed to before as well as now.
    pub fn versions(&self) -> impl Iterator<Item = &Arc<K>> {
        self.old.iter().chain(&self.new)
    }

    /// The newest version known.
    pub fn latest(&self) -> &Arc<K> {
        self.new.as_ref().or(self.old.as_ref()).expect("invariant: a change has a version")
    }
}

impl<K: Resource> Change<K> {
    /// Namespace and name of the object.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::of(&**self.latest())
    }
}

/// `metadata.resourceVersion` as a number; 0 where there is none, which is older than any.
pub fn version<K: Resource>(object: &K) -> u64 {
    parse_version(object.meta().resource_version.as_deref())
}

pub(crate) fn parse_version(text: Option<&str>) -> u64 {
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn uid<K: Resource>(object: &K) -> &str {
    object.meta().uid.as_deref().unwrap_or_default()
}

struct State<K> {
    objects: BTreeMap<ObjectKey, Arc<K>>,
    /// Everything up to this version has been brought by the feed.
    position: u64,
    /// Uids that a write of ours has deleted, until the feed has caught up.
    gone: BTreeSet<String>,
    /// Objects that cannot be read as this kind, and why.
    unreadable: BTreeMap<ObjectKey, String>,
    synced: bool,
}

type Listener<K> = Box<dyn Fn(&Change<K>) + Send + Sync>;

/// The known objects of one kind.
pub struct Cache<K> {
    state: RwLock<State<K>>,
    indexes: RwLock<Vec<Box<dyn Indexed<K>>>>,
    listeners: RwLock<Vec<Listener<K>>>,
    /// Holds changes in the order they were made while listeners are told of them.
    telling: Mutex<()>,
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        let state = State {
            objects: BTreeMap::new(),
            position: 0,
            gone: BTreeSet::new(),
            unreadable: BTreeMap::new(),
            synced: false,
        };
        Self {
            state: RwLock::new(state),
            indexes: RwLock::default(),
            listeners: RwLock::default(),
            telling: Mutex::default(),
        }
    }
}

/// The object without the record of who set which field. No controller reads that, it is larger than all the rest, and a write that leaves
/// it out leaves it as it is.
pub(crate) fn lean<K: Resource>(mut object: K) -> K {
    let meta = object.meta_mut();
    meta.managed_fields = None;
    // Decoded one by one, it has room for four.
    meta.finalizers.iter_mut().for_each(Vec::shrink_to_fit);
    object
}

impl<K: Resource + Send + Sync + 'static> Cache<K> {
    /// The newest known version of an object.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.state.read().objects.get(key).cloned()
    }

    /// All objects, in order of namespace and name. Where only some are wanted, an index finds them without looking at all.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.state.read().objects.values().cloned().collect()
    }

    /// The objects of a namespace, in order of name.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let state = self.state.read();
        let from = ObjectKey::new(namespace, "");
        let range = state.objects.range(from..).take_while(|(key, _)| key.namespace == namespace);
        range.map(|(_, object)| object.clone()).collect()
    }

    /// How many objects are known.
    pub fn len(&self) -> usize {
        self.state.read().objects.len()
    }

    /// Whether no object is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the first full picture has arrived.
    pub fn is_synced(&self) -> bool {
        self.state.read().synced
    }

    /// Why an object cannot be read, where it cannot; the last readable version stays known.
    pub fn unreadable(&self, key: &ObjectKey) -> Option<String> {
        self.state.read().unreadable.get(key).cloned()
    }

    /// Everything up to this version has been brought by the feed.
    pub fn position(&self) -> u64 {
        self.state.read().position
    }

    /// Keeps an index from now on: `values` names what an object is found by, which may be several things or none.
    pub fn index<I, V>(&self, values: impl Fn(&K) -> V + Send + Sync + 'static) -> Index<I, K>
    where
        I: Ord + Clone + Send + Sync + 'static,
        V: IntoIterator<Item = I>,
    {
        let index = Index::default();
        let keeper = index.keeper(move |object: &K| values(object).into_iter().collect());
        let state = self.state.write();
        for (key, object) in &state.objects {
            keeper.update(key, None, Some(object));
        }
        self.indexes.write().push(keeper);
        index
    }

    /// Calls `listener` for each change from now on, in order, after the cache and its indexes have it. It may read this and
    /// other caches; bringing a change to this one from within would wait for itself.
    pub fn listen(&self, listener: impl Fn(&Change<K>) + Send + Sync + 'static) {
        self.listeners.write().push(Box::new(listener));
    }

    /// An event of the watch, or an object of a list: an object in this version.
    pub fn saw(&self, object: K) {
        let _order = self.telling.lock();
        let change = {
            let mut state = self.state.write();
            state.position = state.position.max(version(&object));
            if state.gone.contains(uid(&object)) {
                return;
            }
            self.put(&mut state, Arc::new(object))
        };
        self.tell(change);
    }

    /// Whether a version of an object would change anything, so that one that would not need not even be decoded.
    pub fn wants(&self, key: &ObjectKey, version_seen: u64) -> bool {
        let state = self.state.read();
        state.objects.get(key).is_none_or(|known| version(&**known) < version_seen)
    }

    /// Whether an object of a picture would change anything: a later version, or another object of the same name.
    pub fn is_news(&self, key: &ObjectKey, uid_seen: &str, version_seen: u64) -> bool {
        let state = self.state.read();
        let known = state.objects.get(key);
        known.is_none_or(|known| version(&**known) < version_seen || uid(&**known) != uid_seen)
    }

    /// An object, if it is known in just this version.
    pub(crate) fn at_version(&self, key: &ObjectKey, uid_seen: &str, version_seen: u64) -> Option<Arc<K>> {
        let known = self.get(key)?;
        (uid(&*known) == uid_seen && version(&*known) == version_seen).then_some(known)
    }

    /// The watch has come this far.
    pub fn reached(&self, position: u64) {
        let mut state = self.state.write();
        state.position = state.position.max(position);
    }

    /// An event of the watch: an object was deleted at a version.
    pub fn saw_deleted(&self, key: &ObjectKey, deleted_uid: &str, at: u64) {
        let _order = self.telling.lock();
        let change = {
            let mut state = self.state.write();
            state.position = state.position.max(at);
            state.gone.remove(deleted_uid);
            state.unreadable.remove(key);
            let known = state.objects.get(key);
            // A namesake created since is newer than the deletion.
            if known.is_some_and(|known| version(&**known) > at && uid(&**known) != deleted_uid) {
                return;
            }
            self.take(&mut state, key)
        };
        self.tell(change);
    }

    /// The answer to a write of ours.
    pub fn wrote(&self, object: impl Into<Arc<K>>) {
        let object = object.into();
        let _order = self.telling.lock();
        let change = {
            let mut state = self.state.write();
            if state.gone.contains(uid(&*object)) {
                return;
            }
            let known = state.objects.get(&ObjectKey::of(&*object));
            let same = known.is_some_and(|known| uid(&**known) == uid(&*object));
            // The feed is past this version and does not know the object: it was deleted before the answer came.
            if !same && version(&*object) <= state.position {
                return;
            }
            self.put(&mut state, object)
        };
        self.tell(change);
    }

    /// A write of ours deleted an object for good, or was told that it is gone.
    pub fn wrote_deletion(&self, key: &ObjectKey, deleted_uid: &str) {
        let _order = self.telling.lock();
        let change = {
            let mut state = self.state.write();
            if state.objects.get(key).is_none_or(|known| uid(&**known) != deleted_uid) {
                return;
            }
            state.gone.insert(deleted_uid.to_owned());
            self.take(&mut state, key)
        };
        self.tell(change);
    }

    /// An object that exists but cannot be read as this kind. What was known of it stays; writes that build on it are
    /// refused by the server, for its version is old.
    pub fn saw_unreadable(&self, key: ObjectKey, why: String) {
        self.state.write().unreadable.insert(key, why);
    }

    /// A full picture at a version: the keys of all that exist, with those objects whose version is news.
    pub fn saw_all(&self, picture: BTreeMap<ObjectKey, Option<Arc<K>>>, at: u64) {
        let _order = self.telling.lock();
        let changes: Vec<_> = {
            let mut state = self.state.write();
            let missing: Vec<ObjectKey> = state
                .objects
                .iter()
                // What is newer than the picture is a write of ours that the picture could not have.
                .filter(|(key, known)| !picture.contains_key(key) && version(&***known) <= at)
                .map(|(key, _)| key.clone())
                .collect();
            state.unreadable.retain(|key, _| picture.contains_key(key));
            let mut changes: Vec<_> = missing.iter().map(|key| self.take(&mut state, key)).collect();
            // A deletion of ours that the picture still lacks is newer than it, and will come as an event.
            let mut still_gone = BTreeSet::new();
            for object in picture.into_values().flatten() {
                if let Some(uid) = state.gone.take(uid(&*object)) {
                    still_gone.insert(uid);
                    continue;
                }
                // One of the same name that another server made: a write of ours would be newer than the picture.
                let known = state.objects.get(&ObjectKey::of(&*object));
                let other =
                    known.is_some_and(|known| uid(&**known) != uid(&*object) && version(&**known) <= at);
                changes.push(match other {
                    true => Some(self.replace(&mut state, object)),
                    false => self.put(&mut state, object),
                });
            }
            state.gone = still_gone;
            state.position = at;
            state.synced = true;
            changes
        };
        for change in changes {
            self.tell(change);
        }
    }

    /// A full picture of a server that has gone back to an earlier version, or begun with none: whatever was known is of another time, and
    /// its versions cannot be compared.
    pub fn begins_anew(&self, picture: BTreeMap<ObjectKey, Option<Arc<K>>>, at: u64) {
        let _order = self.telling.lock();
        let changes: Vec<_> = {
            let mut state = self.state.write();
            let seen = |key: &ObjectKey| picture.get(key).is_some_and(Option::is_some);
            let missing: Vec<ObjectKey> = state.objects.keys().filter(|key| !seen(key)).cloned().collect();
            state.unreadable.retain(|key, _| picture.contains_key(key));
            let mut changes: Vec<_> = missing.iter().map(|key| self.take(&mut state, key)).collect();
            for object in picture.into_values().flatten() {
                let known = state.objects.get(&ObjectKey::of(&*object));
                let same = known.is_some_and(|known| {
                    uid(&**known) == uid(&*object) && version(&**known) == version(&*object)
                });
                if !same {
                    changes.push(Some(self.replace(&mut state, object)));
                }
            }
            state.gone.clear();
            state.position = at;
            state.synced = true;
            changes
        };
        for change in changes {
            self.tell(change);
        }
    }

    fn put(&self, state: &mut State<K>, new: Arc<K>) -> Option<Change<K>> {
        let key = ObjectKey::of(&*new);
        if state.objects.get(&key).is_some_and(|known| version(&**known) >= version(&*new)) {
            return None;
        }
        Some(self.replace(state, new))
    }

    fn replace(&self, state: &mut State<K>, new: Arc<K>) -> Change<K> {
        let key = ObjectKey::of(&*new);
        state.unreadable.remove(&key);
        let old = state.objects.insert(key.clone(), new.clone());
        self.reindex(&key, old.as_ref(), Some(&new));
        Change { old, new: Some(new) }
    }

    fn take(&self, state: &mut State<K>, key: &ObjectKey) -> Option<Change<K>> {
        let old = state.objects.remove(key)?;
        self.reindex(key, Some(&old), None);
        Some(Change { old: Some(old), new: None })
    }

    fn reindex(&self, key: &ObjectKey, old: Option<&Arc<K>>, new: Option<&Arc<K>>) {
        for index in self.indexes.read().iter() {
            index.update(key, old, new);
        }
    }

    fn tell(&self, change: Option<Change<K>>) {
        let Some(change) = change else { return };
        for listener in self.listeners.read().iter() {
            listener(&change);
        }
    }
}

#[cfg(test)]
mod tests;
