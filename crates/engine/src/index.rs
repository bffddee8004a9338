//! Finding objects of a cache by something else than their name, without looking at all of them. An index is ordered, so it also
//! answers "the smallest volume of this class that is large enough".

use crate::cache::ObjectKey;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::ops::RangeBounds;
use std::sync::Arc;

type Values<I, K> = Box<dyn Fn(&K) -> Vec<I> + Send + Sync>;
type Found<I, K> = BTreeMap<I, BTreeMap<ObjectKey, Arc<K>>>;

/// Objects by a value `I`; made by [`Cache::index`](crate::Cache::index), kept up by its cache.
pub struct Index<I, K> {
    found: Arc<RwLock<Found<I, K>>>,
}

impl<I, K> Clone for Index<I, K> {
    fn clone(&self) -> Self {
        Self { found: self.found.clone() }
    }
}

impl<I, K> Default for Index<I, K> {
    fn default() -> Self {
        Self { found: Arc::default() }
    }
}

impl<I: Ord, K> Index<I, K> {
    /// The objects under a value, in order of namespace and name.
    pub fn get(&self, value: &I) -> Vec<Arc<K>> {
        let found = self.found.read();
        found.get(value).into_iter().flat_map(BTreeMap::values).cloned().collect()
    }

    /// The first object under a value.
    pub fn first(&self, value: &I) -> Option<Arc<K>> {
        self.found.read().get(value)?.values().next().cloned()
    }

    /// How many objects are under a value.
    pub fn count(&self, value: &I) -> usize {
        self.found.read().get(value).map_or(0, BTreeMap::len)
    }

    /// The objects under a range of values, in order of value, then of namespace and name.
    pub fn range(&self, values: impl RangeBounds<I>) -> Vec<Arc<K>> {
        self.found.read().range(values).flat_map(|(_, objects)| objects.values()).cloned().collect()
    }

    /// The first object in a range of values that is `wanted`; looks no further than it must.
    pub fn find(&self, values: impl RangeBounds<I>, wanted: impl Fn(&K) -> bool) -> Option<Arc<K>> {
        let found = self.found.read();
        found.range(values).flat_map(|(_, objects)| objects.values()).find(|object| wanted(object)).cloned()
    }
}

impl<I: Ord + Clone + Send + Sync + 'static, K: Send + Sync + 'static> Index<I, K> {
    pub(crate) fn keeper(
        &self,
        values: impl Fn(&K) -> Vec<I> + Send + Sync + 'static,
    ) -> Box<dyn Indexed<K>> {
        Box::new(Keeper { found: self.found.clone(), values: Box::new(values) })
    }
}

/// The side of an index that its cache sees.
pub(crate) trait Indexed<K>: Send + Sync {
    fn update(&self, key: &ObjectKey, old: Option<&Arc<K>>, new: Option<&Arc<K>>);
}

struct Keeper<I, K> {
    found: Arc<RwLock<Found<I, K>>>,
    values: Values<I, K>,
}

impl<I: Ord + Clone + Send + Sync, K: Send + Sync> Indexed<K> for Keeper<I, K> {
    fn update(&self, key: &ObjectKey, old: Option<&Arc<K>>, new: Option<&Arc<K>>) {
        let mut found = self.found.write();
        for value in old.into_iter().flat_map(|old| (self.values)(old)) {
            if let Some(objects) = found.get_mut(&value) {
                objects.remove(key);
                if objects.is_empty() {
                    found.remove(&value);
                }
            }
        }
        if let Some(new) = new {
            for value in (self.values)(new) {
                found.entry(value).or_default().insert(key.clone(), new.clone());
            }
        }
    }
}
