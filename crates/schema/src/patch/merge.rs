//! Merge patch: what the patch says wins, null removes.

use serde_json::{Map, Value};

/// Applies a merge patch (RFC 7386).
pub fn merge_patch(doc: &Value, patch: &Value) -> Value {
    let mut doc = doc.clone();
    merge(&mut doc, patch);
    doc
}

fn merge(doc: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *doc = patch.clone();
        return;
    };
    if !doc.is_object() {
        *doc = Value::Object(Map::new());
    }
    let Value::Object(doc) = doc else { return };
    for (name, value) in patch {
        if value.is_null() {
            doc.remove(name);
        } else {
            merge(doc.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}
