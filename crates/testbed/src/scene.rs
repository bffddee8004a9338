//! What a cluster holds at one moment, for invariants: every object, and whatever else the story has beside the cluster.

use kube::Resource;
use lifeboat_apiserver::ApiServer;
use lifeboat_apiserver::store::{Entry, Event, EventKind, Key};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedReceiver;

/// One moment of a story.
pub struct Scene<'a, W> {
    objects: &'a BTreeMap<Key, Arc<Entry>>,
    /// What the story has beside the cluster: fakes of disks, stores and movers.
    pub world: &'a W,
}

impl<W> Scene<'_, W> {
    /// All objects of a kind, in order of namespace and name.
    ///
    /// # Panics
    /// When a stored object is not of this type.
    pub fn list<K: Resource<DynamicType = ()> + DeserializeOwned>(&self) -> Vec<K> {
        let collection = collection::<K>();
        let of_kind = self.objects.iter().filter(|(key, _)| *key.collection == *collection);
        of_kind.map(|(_, entry)| read(entry)).collect()
    }

    /// One object; the namespace is empty for cluster-wide kinds.
    ///
    /// # Panics
    /// When the stored object is not of this type.
    pub fn get<K: Resource<DynamicType = ()> + DeserializeOwned>(
        &self,
        namespace: &str,
        name: &str,
    ) -> Option<K> {
        let key = Key::new(&collection::<K>().into(), namespace, name);
        self.objects.get(&key).map(read)
    }
}

fn collection<K: Resource<DynamicType = ()>>() -> String {
    let (plural, group) = (K::plural(&()), K::group(&()));
    if group.is_empty() { plural.into_owned() } else { format!("{plural}.{group}") }
}

fn read<K: DeserializeOwned>(entry: &Arc<Entry>) -> K {
    serde_json::from_slice(&entry.json).unwrap_or_else(|error| panic!("reading {:?}: {error}", entry.key))
}

/// Follows every write of a cluster, in order.
pub(crate) struct Follower {
    objects: BTreeMap<Key, Arc<Entry>>,
    events: UnboundedReceiver<Arc<Event>>,
}

impl Follower {
    pub fn new(server: &ApiServer) -> Self {
        let (existing, events) = server.cluster().store.observe();
        let objects = existing.into_iter().map(|entry| (entry.key.clone(), entry)).collect();
        Self { objects, events }
    }

    /// Takes in what has been written since, with a look at the scene after every single write.
    pub fn catch_up<W>(&mut self, world: &W, mut look: impl FnMut(&Scene<'_, W>, &Event)) {
        while let Ok(event) = self.events.try_recv() {
            let key = event.entry.key.clone();
            match event.kind {
                EventKind::Deleted => drop(self.objects.remove(&key)),
                _ => drop(self.objects.insert(key, event.entry.clone())),
            }
            look(&Scene { objects: &self.objects, world }, &event);
        }
    }

    pub fn scene<'a, W>(&'a self, world: &'a W) -> Scene<'a, W> {
        Scene { objects: &self.objects, world }
    }

    /// The end of a story without what differs from run to run: identities, versions and times.
    pub fn outline(&self) -> BTreeMap<String, Value> {
        let told = |key: &Key| !matches!(&*key.collection, "events" | "leases.coordination.k8s.io");
        let objects = self.objects.iter().filter(|(key, _)| told(key));
        let outlined = objects.map(|(key, entry)| {
            let mut object: Value = serde_json::from_slice(&entry.json).unwrap_or_default();
            blur(&mut object);
            (format!("{} {}/{}", key.collection, key.namespace, key.name), object)
        });
        outlined.collect()
    }
}

fn blur(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for field in ["resourceVersion", "generation", "observedGeneration", "managedFields"] {
                fields.remove(field);
            }
            fields.values_mut().for_each(blur);
        }
        Value::Array(items) => items.iter_mut().for_each(blur),
        Value::String(text) if text.parse::<jiff::Timestamp>().is_ok() => "(a time)".clone_into(text),
        Value::String(text) if is_uid(text) => "(a uid)".clone_into(text),
        _ => {}
    }
}

fn is_uid(text: &str) -> bool {
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12] && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}
