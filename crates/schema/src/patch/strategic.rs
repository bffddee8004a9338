//! Strategic merge patch: a merge patch that knows which lists merge and by what key.

use super::PatchError;
use super::order::{arrange, identity};
use crate::Schema;
use crate::equal::same;
use crate::node::View;
use crate::objectmeta;
use serde_json::{Map, Value};

const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const SET_ORDER: &str = "$setElementOrder/";

/// Applies a strategic merge patch, guided by the patch strategies and merge keys of `schema`.
pub fn strategic(schema: &Schema, doc: &Value, patch: &Value) -> Result<Value, PatchError> {
    let (Value::Object(doc), Value::Object(patch)) = (doc, patch) else {
        return Err(PatchError::BadRequest("invalid JSON document".into()));
    };
    let place = Place { view: Some(schema.view()), resource: true };
    merge_maps(place, doc.clone(), patch.clone()).map(Value::Object)
}

type Fields = Map<String, Value>;

/// Where in the schema the merge stands; without a schema, maps merge and lists are replaced.
#[derive(Clone, Copy)]
struct Place<'s> {
    view: Option<View<'s>>,
    resource: bool,
}

impl<'s> Place<'s> {
    fn field(self, name: &str) -> Place<'s> {
        if self.resource && name == "metadata" {
            return Place { view: Some(objectmeta::view()), resource: false };
        }
        let view = self.view.and_then(|v| v.field(name));
        Place { view, resource: view.is_some_and(|v| v.node.embedded) }
    }

    fn items(self) -> Place<'s> {
        let view = self.view.and_then(View::items);
        Place { view, resource: view.is_some_and(|v| v.node.embedded) }
    }

    fn strategy(self, name: &str) -> bool {
        self.view.is_some_and(|v| v.patch_strategy(name))
    }

    fn merge_key(self) -> Option<&'s str> {
        self.view.and_then(View::patch_merge_key)
    }
}

fn bad(why: impl Into<String>) -> PatchError {
    PatchError::BadRequest(why.into())
}

fn merge_maps(place: Place<'_>, mut doc: Fields, mut patch: Fields) -> Result<Fields, PatchError> {
    match patch.remove(DIRECTIVE) {
        None => {}
        Some(directive) if directive == "replace" => return Ok(patch),
        Some(directive) if directive == "delete" => return Ok(Fields::new()),
        Some(directive) => return Err(unknown(&directive, &patch)),
    }
    retain(&mut doc, &mut patch)?;
    ordered_lists(place, &mut doc, &mut patch)?;
    let (deletions, changes): (Fields, Fields) =
        patch.into_iter().partition(|(key, _)| key.starts_with(DELETE_FROM));
    for (key, value) in changes {
        if value.is_null() {
            doc.remove(&key);
            continue;
        }
        let merged = match (doc.remove(&key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                let below = place.field(&key);
                match below.strategy("replace") {
                    true => Some(Value::Object(new)),
                    false => Some(Value::Object(merge_maps(below, old, new)?)),
                }
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                Some(Value::Array(merge_lists(place.field(&key), old, new)?))
            }
            (_, value) => plain(without_nulls(value)),
        };
        doc.extend(merged.map(|v| (key, v)));
    }
    // Last, so that what a patch both names and deletes is gone.
    for (key, values) in deletions {
        delete_from(&mut doc, key.strip_prefix(DELETE_FROM).unwrap_or(&key), &values)?;
    }
    Ok(doc)
}

/// `$retainKeys`: whatever it does not list goes.
fn retain(doc: &mut Fields, patch: &mut Fields) -> Result<(), PatchError> {
    let Some(keys) = patch.remove(RETAIN) else { return Ok(()) };
    let Value::Array(keys) = keys else { return Err(bad("invalid patch format of retainKeys")) };
    let listed = |name: &String| keys.iter().any(|k| k == name);
    let stray = patch.iter().any(|(name, value)| {
        !value.is_null() && !name.starts_with(DELETE_FROM) && !name.starts_with(SET_ORDER) && !listed(name)
    });
    if stray {
        return Err(bad("invalid patch format of retainKeys"));
    }
    doc.retain(|name, _| listed(name));
    Ok(())
}

/// `$setElementOrder/x` together with the list it is about.
fn ordered_lists(place: Place<'_>, doc: &mut Fields, patch: &mut Fields) -> Result<(), PatchError> {
    let names: Vec<String> =
        patch.keys().filter_map(|k| k.strip_prefix(SET_ORDER)).map(str::to_owned).collect();
    for name in names {
        let Some(Value::Array(order)) = patch.remove(&format!("{SET_ORDER}{name}")) else {
            return Err(bad("invalid patch format of setElementOrder list"));
        };
        let list = |value: Option<Value>| match value {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(_) => Err(bad("expected a []interface {}, but received another type")),
        };
        let below = place.field(&name);
        let changes = match patch.get(&name) {
            Some(Value::Null) => continue,
            _ => list(patch.remove(&name))?,
        };
        let live = list(doc.get(&name).cloned())?;
        let key = below.merge_key();
        check_order(changes.as_deref().unwrap_or_default(), &order, key)?;
        let none = |list: &Option<Vec<Value>>| list.as_ref().is_none_or(Vec::is_empty);
        if none(&live) && none(&changes) && (live.is_some() || changes.is_some()) {
            return Err(bad("no elements in any of the given slices"));
        }
        let merged = match (live.clone(), changes) {
            (None, None) => continue,
            (Some(live), None) => live,
            (None, Some(changes)) => plain_items(changes),
            (Some(live), Some(changes)) => merge_lists(below, live, changes)?,
        };
        let arranged = arrange(merged, &order, &live.unwrap_or_default(), key);
        doc.insert(name, Value::Array(arranged));
    }
    Ok(())
}

/// The items of the patch must stand in the order that they ask for.
fn check_order(changes: &[Value], order: &[Value], key: Option<&str>) -> Result<(), PatchError> {
    if changes.is_empty() || order.is_empty() {
        return Ok(());
    }
    let stray = || {
        let show = |list: &[Value]| Value::Array(list.to_vec()).to_string();
        bad(format!(
            "The order in patch list:\n{}\n doesn't match $setElementOrder list:\n{}\n",
            show(changes),
            show(order)
        ))
    };
    let mut wanted = order.iter();
    for change in changes.iter().filter(|c| c.get(DIRECTIVE).is_none_or(|d| d != "delete")) {
        if change.get(DIRECTIVE).is_some() {
            // A directive stands anywhere but behind the last item.
            if wanted.len() == 0 {
                return Err(stray());
            }
            continue;
        }
        let id = identity(change, key);
        if !wanted.any(|w| identity(w, key).zip(id).is_some_and(|(a, b)| same(a, b))) {
            return Err(stray());
        }
    }
    Ok(())
}

/// `$deleteFromPrimitiveList/x`: takes scalars out of a list.
fn delete_from(doc: &mut Fields, name: &str, values: &Value) -> Result<(), PatchError> {
    let Value::Array(values) = values else { return Err(bad("invalid patch format of primitive list")) };
    if let Some(Value::Array(items)) = doc.get_mut(name) {
        items.retain(|item| !values.iter().any(|v| same(v, item)));
    }
    Ok(())
}

fn merge_lists(place: Place<'_>, old: Vec<Value>, new: Vec<Value>) -> Result<Vec<Value>, PatchError> {
    if !place.strategy("merge") {
        return Ok(new);
    }
    if old.is_empty() && new.is_empty() {
        return Ok(old);
    }
    if old.iter().chain(&new).any(Value::is_array) {
        return Err(bad("lists of lists are not supported"));
    }
    let objects = old.iter().chain(&new).filter(|v| v.is_object()).count();
    if objects == 0 {
        let mut merged: Vec<Value> = Vec::with_capacity(old.len() + new.len());
        for item in old.iter().chain(&new) {
            if !merged.iter().any(|m| same(m, item)) {
                merged.push(item.clone());
            }
        }
        return Ok(arrange(merged, &new, &old, None));
    }
    if objects != old.len() + new.len() {
        return Err(bad("all items of a list must be of one type"));
    }
    let Some(key) = place.merge_key() else { return Err(bad("cannot merge lists without merge key")) };
    merge_keyed(place.items(), key, old, new)
}

fn merge_keyed(
    items: Place<'_>,
    key: &str,
    mut old: Vec<Value>,
    new: Vec<Value>,
) -> Result<Vec<Value>, PatchError> {
    let matches = |item: &Value, id: &Value| item.get(key).is_some_and(|other| same(other, id));
    let mut replace = false;
    let mut changes = Vec::new();
    for change in new {
        let Some(directive) = change.get(DIRECTIVE) else {
            changes.push(change);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let id = change.get(key).ok_or_else(|| no_merge_key(&change, key))?;
                old.retain(|item| !matches(item, id));
            }
            Some("replace") => replace = true,
            Some("merge") => return Err(bad("merging lists cannot yet be specified in the patch")),
            _ => return Err(unknown(directive, change.as_object().unwrap_or(&Fields::new()))),
        }
    }
    if replace {
        return Ok(changes);
    }
    let mut merged = old.clone();
    for change in &changes {
        let id = change.get(key).ok_or_else(|| no_merge_key(change, key))?;
        match merged.iter_mut().find(|item| matches(item, id)) {
            Some(found) => {
                let (Value::Object(was), Value::Object(change)) = (&*found, change) else { continue };
                *found = Value::Object(merge_maps(items, was.clone(), change.clone())?);
            }
            None => {
                let mut added = change.clone();
                if let Some(fields) = added.as_object_mut() {
                    fields.remove(RETAIN);
                }
                merged.push(added);
            }
        }
    }
    Ok(arrange(merged, &changes, &old, Some(key)))
}

fn no_merge_key(item: &Value, key: &str) -> PatchError {
    bad(format!("map: {item} does not contain declared merge key: {key}"))
}

fn unknown(directive: &Value, patch: &Fields) -> PatchError {
    let directive = directive.as_str().map_or_else(|| directive.to_string(), str::to_owned);
    bad(format!("unknown patch type: {directive} in map: {}", Value::Object(patch.clone())))
}

/// A value that meets nothing to merge with: without directives; `None` where it is nothing but one.
fn plain(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => None,
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(name, _)| name != RETAIN);
            let kept = kept.filter_map(|(name, value)| Some((name, plain(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(Value::Array(plain_items(items))),
        other => Some(other),
    }
}

fn plain_items(items: Vec<Value>) -> Vec<Value> {
    items.into_iter().filter_map(plain).collect()
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, v)| !v.is_null());
            Value::Object(kept.map(|(name, value)| (name, without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}
