//! Writes that are not applies: create, update, patch.

use super::entries::{self, Entries, Entry, Id, Operation};
use super::set::FieldSet;
use super::typed::Kind;
use super::walk::{Comparison, reconcile};
use super::{Manager, STRIPPED};
use crate::{Reach, Schema};
use serde_json::{Value, json};
use std::sync::LazyLock;

/// How many managers are kept that only update; the oldest beyond that become one.
const MAX_UPDATERS: usize = 10;

/// Recomputes the managedFields of `new` for a write that is not an apply: create, update or patch.
///
/// `live` is the object before the write. On a creation it is `None`, or an object without `metadata.uid` that holds the
/// parts a kind always has (such as an empty `spec`), which nobody then owns for having made them.
pub fn update(schema: &Schema, live: Option<&Value>, new: &mut Value, manager: &Manager<'_>) {
    let nothing = json!({});
    let live = live.unwrap_or(&nothing);
    let mut managed = entries::for_update(live, new, !manager.subresource.is_empty());
    let existing = live.reach("/metadata/uid").and_then(Value::as_str).is_some_and(|uid| !uid.is_empty());
    // Someone cleared the entries: tracking starts again with the next apply.
    if managed.is_empty() && existing {
        entries::encode(new, managed);
        return;
    }
    record(schema, live, new, &mut managed, manager);
    cap(&mut managed);
    entries::encode(new, managed);
}

/// Gives what changed between `live` and `new`, but for their managedFields, to the manager and takes it from all others.
pub(super) fn record(
    schema: &Schema,
    live: &Value,
    new: &Value,
    managed: &mut Entries,
    manager: &Manager<'_>,
) {
    let kind = Kind::resource(schema.view());
    let reset = FieldSet::of_paths(manager.reset_fields);
    let change = Comparison::between_bare(kind, live, new).without(&reset);
    let mut set = change.modified;
    set.absorb(&change.added);
    for entry in managed.values_mut() {
        reconcile(kind, &mut entry.fields);
        entry.fields.subtract(&set);
        entry.fields.subtract(&change.removed);
    }
    managed.retain(|_, entry| !entry.fields.is_empty());
    static UNOWNED: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of_paths(STRIPPED));
    set.subtract(&UNOWNED);
    if set.is_empty() {
        return;
    }
    let entry = managed.entry(Id::new(manager, Operation::Update)).or_insert_with(|| Entry {
        api_version: manager.api_version.to_owned(),
        time: None,
        fields: FieldSet::default(),
    });
    entry.fields.absorb(&set);
    entry.time = Some(manager.time.to_owned());
}

/// Joins the oldest updaters of each version into one.
fn cap(managed: &mut Entries) {
    let mut count = managed.keys().filter(|id| id.operation == Operation::Update).count();
    if count <= MAX_UPDATERS {
        return;
    }
    let mut updaters: Vec<(String, Id)> = managed
        .iter()
        .filter(|(id, _)| id.operation == Operation::Update)
        .map(|(id, entry)| (entry.time.clone().unwrap_or_default(), id.clone()))
        .collect();
    updaters.sort();
    let mut first_of_version: std::collections::BTreeMap<String, Id> = Default::default();
    for (_, id) in updaters {
        if count <= MAX_UPDATERS {
            return;
        }
        let Some(entry) = managed.get(&id).cloned() else { continue };
        let version = entry.api_version.clone();
        let Some(first) = first_of_version.get(&version).cloned() else {
            first_of_version.insert(version, id);
            continue;
        };
        let bucket = Id {
            manager: "ancient-changes".into(),
            operation: Operation::Update,
            api_version: version.clone(),
            subresource: String::new(),
        };
        if !managed.contains_key(&bucket)
            && let Some(entry) = managed.remove(&first)
        {
            managed.insert(bucket.clone(), entry);
        }
        if bucket != id {
            managed.remove(&id);
            count -= 1;
        }
        if let Some(joined) = managed.get_mut(&bucket) {
            joined.fields.absorb(&entry.fields);
            joined.time = entry.time;
        }
    }
}
