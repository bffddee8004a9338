//! Reading and writing the parts of an object that every kind has, without knowing the kind.

use crate::store::Index;
use serde_json::{Map, Value};

/// The finalizer that foreground deletion puts on an owner.
pub const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer that orphaning deletion puts on an owner.
pub const ORPHAN: &str = "orphan";

/// Shorthand access to `metadata` and the fields below it.
pub trait Object {
    /// `metadata`, an empty map where it is missing or no object.
    fn meta(&self) -> &Map<String, Value>;
    /// `metadata`, made where it is missing.
    fn meta_mut(&mut self) -> &mut Map<String, Value>;
    /// A string field of `metadata`, empty where it is missing.
    fn meta_str(&self, field: &str) -> &str;
    /// `metadata.finalizers`.
    fn finalizers(&self) -> Vec<&str>;
    /// Whether deletion has begun.
    fn is_deleting(&self) -> bool;
}

static NOTHING: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);

impl Object for Value {
    fn meta(&self) -> &Map<String, Value> {
        self.get("metadata").and_then(Value::as_object).unwrap_or(&NOTHING)
    }

    fn meta_mut(&mut self) -> &mut Map<String, Value> {
        if !self.is_object() {
            *self = Value::Object(Map::new());
        }
        let root = self.as_object_mut().expect("invariant: made an object above");
        if !root.get("metadata").is_some_and(Value::is_object) {
            root.insert("metadata".into(), Value::Object(Map::new()));
        }
        let meta = root.get_mut("metadata").and_then(Value::as_object_mut);
        meta.expect("invariant: made an object above")
    }

    fn meta_str(&self, field: &str) -> &str {
        self.meta().get(field).and_then(Value::as_str).unwrap_or_default()
    }

    fn finalizers(&self) -> Vec<&str> {
        let list = self.meta().get("finalizers").and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    fn is_deleting(&self) -> bool {
        self.meta().get("deletionTimestamp").is_some_and(|at| !at.is_null())
    }
}

/// Sets or removes a field of `metadata`.
pub fn set_meta(object: &mut Value, field: &str, value: Option<Value>) {
    match value {
        Some(value) => object.meta_mut().insert(field.into(), value),
        None => object.meta_mut().remove(field),
    };
}

/// Replaces the finalizers; none at all is written as no field.
pub fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    let list = (!finalizers.is_empty()).then(|| finalizers.to_vec().into());
    set_meta(object, "finalizers", list);
}

/// Drops what is empty or null in `metadata`, so that two ways of saying nothing are one.
pub fn tidy_meta(object: &mut Value) {
    object.meta_mut().retain(|field, value| match value {
        Value::Null => field == "creationTimestamp",
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    });
}

/// Sets a condition in `status.conditions`; the transition time moves only when the status does.
pub fn set_condition(object: &mut Value, mut condition: Value, now: &str) {
    let mut all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    condition["lastTransitionTime"] = now.into();
    match all.iter_mut().find(|known| known["type"] == condition["type"]) {
        Some(known) => {
            if known["status"] == condition["status"] {
                condition["lastTransitionTime"] = known["lastTransitionTime"].clone();
            }
            *known = condition;
        }
        None => all.push(condition),
    }
    object["status"]["conditions"] = all.into();
}

/// What an object can be found by; `fields` are the kind's selectable ones.
pub fn index_of(object: &Value, fields: Vec<(String, String)>) -> Index {
    let owners = object.meta().get("ownerReferences").and_then(Value::as_array);
    Index {
        uid: object.meta_str("uid").into(),
        deleting: object.is_deleting(),
        labels: object.meta().get("labels").cloned().unwrap_or_default(),
        fields: fields.into_iter().map(|(name, value)| (name.into(), value)).collect(),
        owners: owners
            .into_iter()
            .flatten()
            .filter_map(|owner| owner.get("uid").and_then(Value::as_str).map(Into::into))
            .collect(),
    }
}

/// The object's JSON with the revision of the write in it. What it is stands in front, so that a list can leave it out.
pub fn render(mut object: Value, revision: u64) -> bytes::Bytes {
    object.meta_mut().insert("resourceVersion".into(), revision.to_string().into());
    let (api_version, kind) = (object["apiVersion"].take(), object["kind"].take());
    if let Some(root) = object.as_object_mut() {
        root.remove("apiVersion");
        root.remove("kind");
    }
    let mut json = type_prefix(api_version.as_str().unwrap_or_default(), kind.as_str().unwrap_or_default());
    let rest = serde_json::to_vec(&object).expect("invariant: a JSON value always serialises");
    // There always is metadata, so the rest is never empty.
    json.extend_from_slice(&rest[1..]);
    json.into()
}

/// How the JSON of every stored object of a kind begins.
pub fn type_prefix(api_version: &str, kind: &str) -> Vec<u8> {
    format!("{{\"apiVersion\":{},\"kind\":{},", Value::from(api_version), Value::from(kind)).into_bytes()
}

/// Parses stored JSON.
pub fn parse(json: &[u8]) -> Value {
    serde_json::from_slice(json).expect("invariant: the store holds only JSON that this server wrote")
}
