//! Reading any object without saying `Option` at every step, and the smallest patch between two versions of it. What is asked of one kind only
//! stays with the controller that asks.

use crate::{Class, EffectError, ObjectKey};
use kube::Resource;
use serde::Serialize;
use serde_json::{Map, Value, json};

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

/// The smallest merge patch that turns one value into another, so that what peers have and we do not know stays.
///
/// # Errors
/// When one of them cannot be written as JSON.
pub fn difference(before: &impl Serialize, after: &impl Serialize) -> Result<Value, EffectError> {
    let bad = |error| EffectError::caused(Class::BadInput, "writing a change down", error);
    let (before, after) =
        (serde_json::to_value(before).map_err(bad)?, serde_json::to_value(after).map_err(bad)?);
    Ok(differ(&before, &after))
}

fn differ(before: &Value, after: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (before, after) else { return after.clone() };
    let mut patch = Map::new();
    for (key, value) in after {
        match before.get(key) {
            Some(known) if known == value => {}
            Some(known) => drop(patch.insert(key.clone(), differ(known, value))),
            None => drop(patch.insert(key.clone(), value.clone())),
        }
    }
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;

    #[test]
    fn what_an_object_does_not_say_is_empty() {
        let map = ConfigMap::default();
        assert_eq!((map.name(), map.space(), map.uid(), map.generation()), ("", "", "", 0));
        assert!(!map.is_going() && !map.has_finalizer("any") && map.note("any").is_none());
        assert!(map.label("any").is_none() && map.named_by("space", "name").is_none());
    }

    #[test]
    fn a_patch_holds_only_what_differs() {
        let check = |before: Value, after: Value, patch: Value| {
            assert_eq!(difference(&before, &after).unwrap(), patch, "{before} to {after}");
        };
        check(
            json!({ "a": 1, "b": { "c": 2, "d": 3 } }),
            json!({ "a": 1, "b": { "c": 2, "d": 3 } }),
            json!({}),
        );
        check(
            json!({ "a": 1, "b": { "c": 2, "d": 3 } }),
            json!({ "b": { "c": 9, "d": 3 } }),
            json!({ "a": null, "b": { "c": 9 } }),
        );
        check(json!({ "list": [1, 2] }), json!({ "list": [1] }), json!({ "list": [1] }));
        check(json!({}), json!({ "new": { "x": null } }), json!({ "new": { "x": null } }));
        check(json!(null), json!({ "a": 1 }), json!({ "a": 1 }));
    }
}
