//! Reading objects without saying `Option` at every step.

use kube::Resource;
use lifeboat_engine::ObjectKey;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What is asked of any object all the time.
pub trait Words: Resource {
    /// Its name.
    fn name(&self) -> &str {
        self.meta().name.as_deref().unwrap_or_default()
    }
    /// Its namespace, empty where it has none.
    fn space(&self) -> &str {
        self.meta().namespace.as_deref().unwrap_or_default()
    }
    /// Its UID.
    fn uid(&self) -> &str {
        self.meta().uid.as_deref().unwrap_or_default()
    }
    /// An annotation.
    fn note(&self, key: &str) -> Option<&str> {
        self.meta().annotations.as_ref()?.get(key).map(String::as_str)
    }
    /// A label.
    fn label(&self, key: &str) -> Option<&str> {
        self.meta().labels.as_ref()?.get(key).map(String::as_str)
    }
    /// Whether a finalizer is on it.
    fn has_finalizer(&self, name: &str) -> bool {
        self.meta().finalizers.iter().flatten().any(|finalizer| finalizer == name)
    }
    /// Whether it is being deleted.
    fn is_going(&self) -> bool {
        self.meta().deletion_timestamp.is_some()
    }
    /// Its generation; 0 where there is none.
    fn generation(&self) -> i64 {
        self.meta().generation.unwrap_or_default()
    }
    /// The object that two annotations name: a namespace and a name.
    fn named_by(&self, namespace: &str, name: &str) -> Option<ObjectKey> {
        Some(ObjectKey::new(self.note(namespace)?, self.note(name)?))
    }
    /// Its identity and version, for the `metadata` of a merge patch that shall be refused where the object has changed.
    fn guard(&self) -> Value {
        json!({ "uid": self.meta().uid, "resourceVersion": self.meta().resource_version })
    }
}

impl<K: Resource> Words for K {}

/// Annotations or labels from pairs.
pub fn pairs<const N: usize>(all: [(&str, &str); N]) -> BTreeMap<String, String> {
    all.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

/// The smallest merge patch that turns one value into another, so that what peers have and we do not know stays.
pub fn difference(before: &Value, after: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (before, after) else { return after.clone() };
    let mut patch = Map::new();
    for (key, value) in after {
        match before.get(key) {
            Some(known) if known == value => {}
            Some(known) => drop(patch.insert(key.clone(), difference(known, value))),
            None => drop(patch.insert(key.clone(), value.clone())),
        }
    }
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    Value::Object(patch)
}
