//! What works and views hold, read once for each version of them. They carry whole objects as text of no kind, and a decision about one
//! application, or about the storage that a thousand fail over to, reads them again and again.

use kube::Resource;
use lifeboat_engine::{Change, ObjectKey, Objects};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::Arc;

type Known<K, T> = BTreeMap<ObjectKey, (Arc<K>, T)>;

/// What was read out of objects of one kind; clones share it.
pub struct Recall<K, T> {
    known: Arc<Mutex<Known<K, T>>>,
}

impl<K, T> Clone for Recall<K, T> {
    fn clone(&self) -> Self {
        Self { known: self.known.clone() }
    }
}

impl<K, T> Default for Recall<K, T> {
    fn default() -> Self {
        Self { known: Arc::default() }
    }
}

impl<K, T> Recall<K, T>
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
    T: Clone + Send + 'static,
{
    /// Remembers what is read out of these, until they are gone.
    pub fn of(objects: &Objects<K>) -> Self {
        let recall = Self::default();
        let known = recall.known.clone();
        objects.listen(move |change: &Change<K>| {
            if change.new.is_none() {
                known.lock().remove(&change.key());
            }
        });
        recall
    }

    /// What this very version holds: remembered, or read now.
    pub fn get(&self, object: &Arc<K>, read: impl FnOnce(&K) -> T) -> T {
        let key = ObjectKey::of(&**object);
        if let Some((version, held)) = self.known.lock().get(&key)
            && Arc::ptr_eq(version, object)
        {
            return held.clone();
        }
        let held = read(object);
        self.known.lock().insert(key, (object.clone(), held.clone()));
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::ObjectMeta;

    #[test]
    fn each_version_is_read_once() {
        let map = |version: &str| {
            let metadata = ObjectMeta {
                name: Some("a".to_owned()),
                resource_version: Some(version.to_owned()),
                ..ObjectMeta::default()
            };
            Arc::new(ConfigMap { metadata, ..ConfigMap::default() })
        };
        let recall: Recall<ConfigMap, Option<String>> = Recall::default();
        let reads = std::cell::Cell::new(0);
        let check = |object: &Arc<ConfigMap>, so_far: usize| {
            let held = recall.get(object, |object| {
                reads.set(reads.get() + 1);
                object.metadata.resource_version.clone()
            });
            assert_eq!(held, object.metadata.resource_version);
            assert_eq!(reads.get(), so_far);
        };
        let (first, second) = (map("1"), map("2"));
        check(&first, 1);
        check(&first, 1);
        check(&second, 2);
        check(&second, 2);
        // An older one than was read last, as a listener sees it that compares two.
        check(&first, 3);
    }
}
