//! The entries of `metadata.managedFields`, and the error-prone question of whose to start from.

use super::Manager;
use super::set::FieldSet;
use crate::Reach;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// How a manager writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

/// What tells one entry from another. Two applies by one manager are one entry whatever their version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    pub manager: String,
    pub operation: Operation,
    pub api_version: String,
    pub subresource: String,
}

impl Id {
    pub(super) fn new(manager: &Manager<'_>, operation: Operation) -> Id {
        let name = if manager.name.is_empty() { "unknown" } else { manager.name };
        Id {
            manager: name.to_owned(),
            operation,
            api_version: match operation {
                Operation::Apply => String::new(),
                Operation::Update => manager.api_version.to_owned(),
            },
            subresource: manager.subresource.to_owned(),
        }
    }
}

/// What one manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub api_version: String,
    pub time: Option<String>,
    pub fields: FieldSet,
}

/// All that is owned, by whom.
pub(super) type Entries = BTreeMap<Id, Entry>;

/// The entries of an object's managedFields; `None` where they make no sense.
pub(super) fn decode(object: &Value) -> Option<Entries> {
    let mut out = Entries::new();
    for entry in object.reach("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten() {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let operation = match text("operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return None,
        };
        let api_version = text("apiVersion").to_owned();
        if api_version.is_empty() || text("fieldsType") != "FieldsV1" {
            return None;
        }
        let id = Id {
            manager: text("manager").to_owned(),
            operation,
            api_version: match operation {
                Operation::Apply => String::new(),
                Operation::Update => api_version.clone(),
            },
            subresource: text("subresource").to_owned(),
        };
        let fields = FieldSet::from_json(entry.get("fieldsV1").unwrap_or(&Value::Null));
        let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
        out.insert(id, Entry { api_version, time, fields });
    }
    Some(out)
}

/// The entries that a write which is not an apply starts from: those it brings itself, else those that are there.
pub(super) fn for_update(live: &Value, new: &Value, subresource: bool) -> Entries {
    let stored = || decode(live).unwrap_or_default();
    if subresource {
        return stored();
    }
    let brought = new.reach("/metadata/managedFields").and_then(Value::as_array);
    let reset = match brought.map(Vec::as_slice) {
        Some([]) => true,
        Some([only]) => only.as_object().is_some_and(Map::is_empty),
        _ => false,
    };
    if reset {
        return Entries::new();
    }
    decode(new).filter(|entries| !entries.is_empty()).unwrap_or_else(stored)
}

/// Writes the entries into an object, in Kubernetes' order.
pub(super) fn encode(object: &mut Value, entries: Entries) {
    let Some(map) = object.as_object_mut() else { return };
    let mut sorted: Vec<(Id, Entry)> = entries.into_iter().collect();
    sorted.sort_by(|(a, x), (b, y)| {
        let (earlier, later) = (x.time.as_deref(), y.time.as_deref());
        (a.operation, earlier.unwrap_or_default(), &a.manager, &x.api_version, &a.subresource).cmp(&(
            b.operation,
            later.unwrap_or_default(),
            &b.manager,
            &y.api_version,
            &b.subresource,
        ))
    });
    let list: Vec<Value> = sorted.into_iter().map(|(id, entry)| encode_one(id, entry)).collect();
    if list.is_empty() {
        if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        return;
    }
    let metadata = map.entry("metadata").or_insert_with(|| json!({}));
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("managedFields".into(), Value::Array(list));
    }
}

fn encode_one(id: Id, entry: Entry) -> Value {
    let mut out = Map::new();
    let operation = match id.operation {
        Operation::Apply => "Apply",
        Operation::Update => "Update",
    };
    out.insert("manager".into(), id.manager.into());
    out.insert("operation".into(), operation.into());
    out.insert("apiVersion".into(), entry.api_version.into());
    if let Some(time) = entry.time {
        out.insert("time".into(), time.into());
    }
    out.insert("fieldsType".into(), "FieldsV1".into());
    out.insert("fieldsV1".into(), entry.fields.into_json());
    if !id.subresource.is_empty() {
        out.insert("subresource".into(), id.subresource.into());
    }
    Value::Object(out)
}

/// The object without its managedFields.
pub(super) fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}
