//! Finding objects of a cache by something else than their name, without looking at all of them. An index is ordered, so it also
//! answers "the smallest volume of this class that is large enough".

use crate::cache::ObjectKey;
use kube::Resource;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::RangeBounds;
use std::sync::Arc;

type Values<I, K> = Box<dyn Fn(&K) -> Vec<I> + Send + Sync>;
type Found<I, K> = BTreeMap<I, Under<K>>;

/// The objects under one value, in order of their keys. Most values name one object, and a map for it alone would be ten times its size.
enum Under<K> {
    One(Arc<K>),
    Many(BTreeMap<ObjectKey, Arc<K>>),
}

impl<K> Under<K> {
    fn iter(&self) -> impl Iterator<Item = &Arc<K>> {
        let (one, many) = match self {
            Self::One(object) => (Some(object), None),
            Self::Many(objects) => (None, Some(objects.values())),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(objects) => objects.len(),
        }
    }
}

impl<K: Resource> Under<K> {
    fn insert(&mut self, key: &ObjectKey, object: &Arc<K>) {
        match self {
            Self::One(one) if key.is_of(&**one) => *one = object.clone(),
            Self::One(one) => {
                let both = [(ObjectKey::of(&**one), one.clone()), (key.clone(), object.clone())];
                *self = Self::Many(both.into());
            }
            Self::Many(objects) => drop(objects.insert(key.clone(), object.clone())),
        }
    }

    /// Whether nothing is left.
    fn remove(&mut self, key: &ObjectKey) -> bool {
        match self {
            Self::One(one) => key.is_of(&**one),
            Self::Many(objects) => {
                objects.remove(key);
                objects.is_empty()
            }
        }
    }
}

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
        found.get(value).into_iter().flat_map(Under::iter).cloned().collect()
    }

    /// The first object under a value.
    pub fn first(&self, value: &I) -> Option<Arc<K>> {
        self.found.read().get(value)?.iter().next().cloned()
    }

    /// How many objects are under a value.
    pub fn count(&self, value: &I) -> usize {
        self.found.read().get(value).map_or(0, Under::len)
    }

    /// The objects under a range of values, in order of value, then of namespace and name.
    pub fn range(&self, values: impl RangeBounds<I>) -> Vec<Arc<K>> {
        self.found.read().range(values).flat_map(|(_, objects)| objects.iter()).cloned().collect()
    }

    /// The first object in a range of values that is `wanted`; looks no further than it must.
    pub fn find(&self, values: impl RangeBounds<I>, wanted: impl Fn(&K) -> bool) -> Option<Arc<K>> {
        let found = self.found.read();
        found.range(values).flat_map(|(_, objects)| objects.iter()).find(|object| wanted(object)).cloned()
    }
}

impl<I: Ord + Clone + Send + Sync + 'static, K: Resource + Send + Sync + 'static> Index<I, K> {
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

impl<I: Ord + Clone + Send + Sync, K: Resource + Send + Sync> Indexed<K> for Keeper<I, K> {
    fn update(&self, key: &ObjectKey, old: Option<&Arc<K>>, new: Option<&Arc<K>>) {
        let before: Vec<I> = old.map(|old| (self.values)(old)).unwrap_or_default();
        let after: Vec<I> = new.map(|new| (self.values)(new)).unwrap_or_default();
        let mut found = self.found.write();
        for value in before.iter().filter(|value| !after.contains(value)) {
            if found.get_mut(value).is_some_and(|objects| objects.remove(key)) {
                found.remove(value);
            }
        }
        for (value, new) in after.into_iter().flat_map(|value| new.map(|new| (value, new))) {
            match found.entry(value) {
                Entry::Occupied(mut there) => there.get_mut().insert(key, new),
                Entry::Vacant(free) => drop(free.insert(Under::One(new.clone()))),
            }
        }
    }
}
