//! Server-side apply.

use super::entries::{self, Entries, Entry, Id, Operation};
use super::set::{self, FieldSet};
use super::typed::{self, Kind};
use super::walk::{Comparison, fields_of, merge, reconcile, remove, with_named};
use super::{ApplyError, Conflict, Manager, STRIPPED, write};
use crate::equal::same;
use crate::error::quote;
use crate::{Reach, Schema};
use serde_json::{Value, json};

/// The annotation of client-side apply.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Applies `config` to `live` (nothing, on creation) and returns the new object with its managedFields.
///
/// An apply that changes nothing returns the live object as it was, managedFields included. A map or list that loses all it
/// had while somebody still owns it is left as null, as Kubernetes leaves it: defaulting, or decoding into a type, drops
/// that. Defaults, immutable fields and
/// what the endpoint resets are the caller's to see to, on the result.
pub fn apply(
    schema: &Schema,
    live: Option<&Value>,
    config: &Value,
    manager: &Manager<'_>,
    force: bool,
) -> Result<Value, ApplyError> {
    let version = config.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    if version != manager.api_version {
        return Err(ApplyError::BadRequest(format!(
            "Incorrect version specified in apply patch. Specified patch version: {version}, expected: {}",
            manager.api_version
        )));
    }
    if config.reach("/metadata/managedFields").is_some_and(|v| !v.is_null()) {
        return Err(ApplyError::BadRequest("metadata.managedFields must be nil".into()));
    }
    let kind = Kind::resource(schema.view());
    let problems = typed::problems(kind, config);
    if !problems.is_empty() {
        let list = match problems.as_slice() {
            [only] => only.clone(),
            all => all.iter().fold("errors:".to_owned(), |text, p| format!("{text}\n  {p}")),
        };
        let object = called(config);
        return Err(ApplyError::Invalid(format!("failed to create typed patch object ({object}): {list}")));
    }
    let mut result = attempt(schema, live, config, manager, force);
    if manager.name == "kubectl" {
        if let (Err(ApplyError::Conflict(conflicts)), Some(live)) = (&result, live)
            && let Some(allowed) = last_applied(kind, live, manager)
        {
            let left: Vec<Conflict> = conflicts.iter().filter(|c| !allowed.has(&c.path)).cloned().collect();
            result = match left.is_empty() {
                true => attempt(schema, Some(live), config, manager, true),
                false => Err(ApplyError::Conflict(left)),
            };
        }
        if let Ok(object) = &mut result {
            refresh_last_applied(object, config);
        }
    }
    result
}

fn attempt(
    schema: &Schema,
    live: Option<&Value>,
    config: &Value,
    manager: &Manager<'_>,
    force: bool,
) -> Result<Value, ApplyError> {
    let kind = Kind::resource(schema.view());
    let nothing = json!({ "apiVersion": config.get("apiVersion"), "kind": config.get("kind") });
    let stored = live.unwrap_or(&nothing);
    let mut managed = entries::decode(stored)
        .ok_or_else(|| ApplyError::Invalid("failed to decode managed fields".into()))?;
    let stored = entries::bare(stored);
    if managed.is_empty() {
        let before = Manager { name: "before-first-apply", ..*manager };
        write::record(schema, &nothing, &stored, &mut managed, &before);
    }
    for entry in managed.values_mut() {
        reconcile(kind, &mut entry.fields);
    }
    let id = Id::new(manager, Operation::Apply);
    let last = managed.get(&id).cloned();
    let reset = FieldSet::of_paths(manager.reset_fields);
    let merged = merge(kind, Some(&stored), Some(config)).unwrap_or_else(|| stored.clone());
    let applied = fields_of(kind, config).without_trees(&reset);
    let time = last.as_ref().and_then(|entry| entry.time.clone());
    let entry = Entry { api_version: manager.api_version.to_owned(), time, fields: applied };
    managed.insert(id.clone(), entry);
    let mut object = match &last {
        Some(last) if !last.fields.is_empty() => prune(kind, &merged, &managed, &last.fields),
        _ => merged,
    };
    let change = Comparison::between(kind, &stored, &object).without(&reset);
    settle(&mut managed, &id, &change, force)?;
    strip(&mut managed, &id);
    if same(&stored, &object) {
        object = stored;
    } else if let Some(entry) = managed.get_mut(&id) {
        entry.time = Some(manager.time.to_owned());
    }
    entries::encode(&mut object, managed);
    Ok(object)
}

/// Removes what the manager applied last time and not now, unless somebody else owns it.
fn prune(kind: Kind<'_>, merged: &Value, managed: &Entries, last: &FieldSet) -> Value {
    let without = |fields: &FieldSet| remove(kind, merged, fields).unwrap_or_else(|| json!({}));
    let all = with_named(kind, &fields_of(kind, merged));
    let owned = managed.values().fold(FieldSet::default(), |all, entry| all.union(&entry.fields));
    let left = |object: &Value| with_named(kind, &fields_of(kind, object));
    // First take away all that was applied last, then put back what anyone owns now, this manager included.
    let pruned = without(&with_named(kind, last));
    let pruned = without(&all.difference(&left(&pruned).union(&with_named(kind, &owned))));
    // Only what this manager had owned may go, not what nobody owns.
    without(&all.difference(&left(&pruned)).intersection(&with_named(kind, last)))
}

/// Takes from others what changed, or tells who is in the way.
fn settle(managed: &mut Entries, id: &Id, change: &Comparison, force: bool) -> Result<(), ApplyError> {
    let set = change.modified.union(&change.added);
    let mut conflicts = Vec::new();
    for (other, entry) in managed.iter().filter(|(other, _)| *other != id) {
        for path in entry.fields.intersection(&set).paths() {
            conflicts.push(Conflict { manager: printed(other), field: set::show(&path), path });
        }
    }
    if !force && !conflicts.is_empty() {
        return Err(ApplyError::Conflict(conflicts));
    }
    for (_, entry) in managed.iter_mut().filter(|(other, _)| *other != id) {
        entry.fields = entry.fields.difference(&set).difference(&change.removed);
    }
    managed.retain(|_, entry| !entry.fields.is_empty());
    Ok(())
}

fn strip(managed: &mut Entries, id: &Id) {
    if let Some(entry) = managed.get_mut(id) {
        entry.fields = entry.fields.difference(&FieldSet::of_paths(STRIPPED));
        if entry.fields.is_empty() {
            managed.remove(id);
        }
    }
}

/// A manager as conflicts name it.
fn printed(id: &Id) -> String {
    let mut text = quote(&id.manager);
    if !id.subresource.is_empty() {
        text.push_str(&format!(" with subresource {}", quote(&id.subresource)));
    }
    match id.operation {
        Operation::Apply => text,
        Operation::Update => format!("{text} using {}", id.api_version),
    }
}

/// An object as errors name it: `namespace/name; group/version, Kind=kind`.
fn called(object: &Value) -> String {
    let text = |pointer: &str| object.reach(pointer).and_then(Value::as_str).unwrap_or_default();
    let version = text("/apiVersion");
    let slash = if version.contains('/') { "" } else { "/" };
    format!(
        "{}/{}; {slash}{version}, Kind={}",
        text("/metadata/namespace"),
        text("/metadata/name"),
        text("/kind")
    )
}

/// What kubectl applied before it applied on the server, as far as it still stands: no conflict with itself.
fn last_applied(kind: Kind<'_>, live: &Value, manager: &Manager<'_>) -> Option<FieldSet> {
    let annotation = live.get("metadata")?.get("annotations")?.get(LAST_APPLIED)?.as_str()?;
    let config: Value = serde_json::from_str(annotation).ok()?;
    if config.get("apiVersion")?.as_str()? != manager.api_version
        || !typed::problems(kind, &config).is_empty()
    {
        return None;
    }
    let change = Comparison::between(kind, &config, &entries::bare(live));
    let fields = fields_of(kind, &config);
    Some(fields.difference(&change.modified).difference(&change.added).difference(&change.removed))
}

/// Keeps the annotation of client-side apply in step, for those who go back to it.
fn refresh_last_applied(object: &mut Value, config: &Value) {
    let annotation = object
        .get_mut("metadata")
        .and_then(|m| m.get_mut("annotations"))
        .and_then(|a| a.get_mut(LAST_APPLIED));
    let Some(annotation) = annotation.filter(|a| a.as_str().is_some_and(|s| !s.is_empty())) else { return };
    let mut config = config.clone();
    if let Some(annotations) = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
    *annotation = Value::String(format!("{config}\n"));
}
