//! One cluster: the store, the resources it serves and the sources of time and identity. All verbs are methods of
//! [`Cluster`], in modules of their own; none of them knows about HTTP.

use crate::auth::Rights;
use crate::registry::{Registry, Resource};
use crate::store::{Entry, Index, Store};
use crate::{crd, object};
use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where time and chance come from, so that a simulation can own them.
#[derive(Clone)]
pub struct Sources {
    /// The time of day.
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// Sixteen bytes of chance: uids, generated names.
    pub random: Arc<dyn Fn() -> [u8; 16] + Send + Sync>,
}

impl Sources {
    /// The machine's clock and random numbers.
    pub fn system() -> Self {
        #[expect(clippy::disallowed_methods, reason = "this is where time and chance come in from outside")]
        Self { now: Arc::new(Timestamp::now), random: Arc::new(|| uuid::Uuid::new_v4().into_bytes()) }
    }

    /// Virtual time that starts at `start` and follows tokio's clock, and identities counted up from `seed`.
    pub fn simulated(start: Timestamp, seed: u64) -> Self {
        let began = tokio::time::Instant::now();
        let count = std::sync::atomic::AtomicU64::new(0);
        Self {
            now: Arc::new(move || {
                let passed = tokio::time::Instant::now() - began;
                start + jiff::SignedDuration::try_from(passed).unwrap_or_default()
            }),
            random: Arc::new(move || {
                let n = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let spread = (n ^ seed.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let mut bytes = [0; 16];
                bytes[..8].copy_from_slice(&spread.to_be_bytes());
                bytes[8..].copy_from_slice(&(seed ^ n.rotate_left(17)).to_be_bytes());
                bytes
            }),
        }
    }
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sources")
    }
}

/// The state and rules of one cluster.
pub struct Cluster {
    /// What is stored.
    pub store: Store,
    /// Time and chance.
    pub sources: Sources,
    registry: RwLock<Arc<Registry>>,
    /// Kept because schemas are dear to parse.
    definitions: Mutex<Definitions>,
    /// Kept because every request of somebody who is no administrator asks for them.
    pub(crate) rights: Mutex<Rights>,
}

/// What each definition serves, with the version it was read at.
type Definitions = BTreeMap<Arc<str>, (u64, Vec<Arc<Resource>>)>;

impl Cluster {
    /// A cluster over a store, serving the definitions that the store already has.
    pub fn new(store: Store, sources: Sources) -> Self {
        let cluster = Self {
            store,
            sources,
            registry: RwLock::new(Arc::new(Registry::new([]))),
            definitions: Mutex::default(),
            rights: Mutex::default(),
        };
        cluster.reload_definitions();
        cluster
    }

    /// The resources served now.
    pub fn registry(&self) -> Arc<Registry> {
        self.registry.read().clone()
    }

    /// Reads the stored definitions again and serves what they say.
    pub fn reload_definitions(&self) {
        // Held throughout, so that the registry never goes back to an older list of definitions.
        let mut known = self.definitions.lock();
        let page = self.store.page(crd::COLLECTION, None, None, None, |_| true, usize::MAX);
        let entries = page.map(|page| page.entries).unwrap_or_default();
        let mut current = BTreeMap::new();
        for entry in &entries {
            let served = match known.get(&entry.key.name) {
                Some((revision, served)) if *revision == entry.revision => served.clone(),
                _ => crd::resources(&object::parse(&entry.json)).into_iter().map(Arc::new).collect(),
            };
            current.insert(entry.key.name.clone(), (entry.revision, served));
        }
        let served = current.values().flat_map(|(_, served)| served.iter().cloned());
        *self.registry.write() = Arc::new(Registry::new(served));
        *known = current;
    }

    /// Now, as written into objects.
    pub fn now(&self) -> Timestamp {
        (self.sources.now)()
    }

    /// A new uid.
    pub fn new_uid(&self) -> String {
        uuid::Builder::from_random_bytes((self.sources.random)()).into_uuid().to_string()
    }

    /// The newest version of an object, parsed, in its stored form.
    pub fn find(&self, collection: &str, namespace: &str, name: &str) -> Option<Value> {
        self.store.get(collection, namespace, name).map(|entry| object::parse(&entry.json))
    }

    /// Every object of a collection, parsed, in its stored form.
    pub fn list_all(&self, collection: &str) -> Vec<Value> {
        self.list_in(collection, None)
    }

    /// Every object of a collection in a namespace, parsed, in its stored form.
    pub fn list_in(&self, collection: &str, namespace: Option<&str>) -> Vec<Value> {
        let page = self.store.page(collection, namespace, None, None, |_| true, usize::MAX);
        let entries = page.map(|page| page.entries).unwrap_or_default();
        entries.iter().map(|entry| object::parse(&entry.json)).collect()
    }

    /// The resource that an entry is stored as.
    pub fn resource_of(&self, entry: &Entry) -> Option<Arc<Resource>> {
        self.registry().of_collection(&entry.key.collection).cloned()
    }
}

/// What a stored object is found by when a store is read from disk, before any definition is known.
pub fn index_stored(collection: &str, value: &Value) -> Index {
    let api_version = value["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let plural = collection.split('.').next().unwrap_or_default();
    let fields = lifeboat_kinds::find(group, version, plural)
        .map(|kind| kind.selectable_fields(value))
        .unwrap_or_default();
    let fields = fields.into_iter().filter(|(field, _)| !field.starts_with("metadata."));
    object::index_of(value, fields.map(|(field, value)| (field.to_owned(), value)).collect())
}
