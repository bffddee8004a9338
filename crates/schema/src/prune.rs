//! Fields a schema does not know: finding and removing them.
//!
//! The object is taken for a whole resource: `apiVersion`, `kind` and `metadata` belong to it whatever the schema says,
//! and `metadata` has the fields of ObjectMeta and no others.

use crate::node::{Additional, Schema, View};
use crate::objectmeta;
use crate::path::Path;
use serde_json::Value;

/// Removes what `schema` does not know and returns the paths of what went, sorted, such as `spec.list[0].bar`.
pub fn prune(schema: &Schema, object: &mut Value) -> Vec<String> {
    let mut walk = Pruning { path: Path::root(), removed: Vec::new() };
    walk.resource(schema.view(), object);
    walk.removed.sort();
    walk.removed
}

/// The paths of what `schema` does not know, sorted, without removing anything.
pub fn unknown_fields(schema: &Schema, object: &Value) -> Vec<String> {
    prune(schema, &mut object.clone())
}

/// Prunes a value that is no resource of its own, such as a default; returns whether anything went.
pub(crate) fn prune_value(view: View<'_>, value: &mut Value) -> bool {
    let mut walk = Pruning { path: Path::root(), removed: Vec::new() };
    walk.value(Some(view), value);
    !walk.removed.is_empty()
}

struct Pruning {
    path: Path,
    removed: Vec<String>,
}

impl Pruning {
    /// A whole resource, at the root or embedded.
    fn resource(&mut self, view: View<'_>, object: &mut Value) {
        if let Some(metadata) = object.get_mut("metadata") {
            self.within("metadata", |walk| walk.value(Some(objectmeta::view()), metadata));
        }
        self.fields(view, object, true);
    }

    fn value(&mut self, view: Option<View<'_>>, value: &mut Value) {
        match (value, view) {
            (Value::Object(map), None) => {
                for key in map.keys() {
                    self.removed.push(self.path.child(key));
                }
                map.clear();
            }
            (object @ Value::Object(_), Some(view)) if view.node.embedded => self.resource(view, object),
            (object @ Value::Object(_), Some(view)) => self.fields(view, object, false),
            (Value::Array(items), view) => {
                let keep = view.is_some_and(|v| v.node.preserve_unknown);
                let of_items = view.and_then(View::items);
                if keep && of_items.is_none() {
                    return;
                }
                for (index, item) in items.iter_mut().enumerate() {
                    let length = self.path.push_index(index);
                    self.value(of_items, item);
                    self.path.truncate(length);
                }
            }
            _ => {}
        }
    }

    fn fields(&mut self, view: View<'_>, object: &mut Value, resource: bool) {
        let Value::Object(map) = object else { return };
        let keep = view.node.preserve_unknown;
        let mut gone = Vec::new();
        for (key, value) in map.iter_mut() {
            if resource && objectmeta::is_meta(key) {
                continue;
            }
            if let Some(property) = view.property(key) {
                self.within(key, |walk| walk.value(Some(property), value));
                continue;
            }
            match &view.node.additional {
                Additional::Fit(_) | Additional::Any if !(keep && view.additional().is_none()) => {
                    self.within(key, |walk| walk.value(view.additional(), value));
                }
                _ if keep => {}
                _ => gone.push(key.clone()),
            }
        }
        for key in gone {
            self.removed.push(self.path.child(&key));
            map.remove(&key);
        }
    }

    fn within(&mut self, key: &str, step: impl FnOnce(&mut Self)) {
        let length = self.path.push(key);
        step(self);
        self.path.truncate(length);
    }
}
