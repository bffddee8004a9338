//! What lists promise (`list-type: set` and `map` have no duplicates) and what embedded resources must have.

use crate::FieldError;
use crate::node::{ListType, View};
use crate::path::Path;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Duplicates in lists that promise to have none.
pub(super) fn unique(view: View<'_>, value: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(view, value, &mut Path::root(), &mut errors);
    errors
}

fn walk(view: View<'_>, value: &Value, path: &mut Path, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let Some(below) = view.field(name) else { continue };
                let length = match view.property(name) {
                    Some(_) => path.push(name),
                    None => path.push_key(name),
                };
                walk(below, value, path, errors);
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            match view.list_type() {
                Some(ListType::Set) => set(items, path, errors),
                Some(ListType::Map) => map(view, items, path, errors),
                Some(ListType::Atomic) | None => {}
            }
            let Some(of_items) = view.items() else { return };
            for (index, item) in items.iter().enumerate() {
                let length = path.push_index(index);
                walk(of_items, item, path, errors);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

/// The index of the second appearance of every value that appears more than once.
fn repeated(values: &[Value]) -> Vec<usize> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut second = Vec::new();
    for (index, value) in values.iter().enumerate() {
        let times = seen.entry(value.to_string()).or_insert(0);
        *times += 1;
        if *times == 2 {
            second.push(index);
        }
    }
    second
}

fn set(items: &[Value], path: &Path, errors: &mut Vec<FieldError>) {
    for index in repeated(items) {
        errors.push(FieldError::duplicate(path.index(index), items[index].clone()));
    }
}

fn map(view: View<'_>, items: &[Value], path: &Path, errors: &mut Vec<FieldError>) {
    if let Some(index) = items.iter().position(|i| !i.is_null() && !i.is_object()) {
        let detail = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(path.index(index), items[index].clone(), detail));
        return;
    }
    let keys: Vec<Value> = items
        .iter()
        .map(|item| {
            let named = view.list_keys().iter().filter_map(|k| Some((k.clone(), item.get(k)?.clone())));
            Value::Object(named.collect::<Map<_, _>>())
        })
        .collect();
    for index in repeated(&keys) {
        errors.push(FieldError::duplicate(path.index(index), keys[index].clone()));
    }
}

/// What embedded resources must have: a kind and an apiVersion.
pub(super) fn embedded(view: View<'_>, value: &Value, path: &mut Path, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(fields) => {
            if view.node.embedded {
                identity(fields, path, errors);
            }
            for (name, value) in fields {
                let Some(below) = view.field(name) else { continue };
                let length = match view.property(name) {
                    Some(_) => path.push(name),
                    None => path.push_key(name),
                };
                embedded(below, value, path, errors);
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            let Some(of_items) = view.items() else { return };
            for (index, item) in items.iter().enumerate() {
                let length = path.push_index(index);
                embedded(of_items, item, path, errors);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

fn identity(fields: &Map<String, Value>, path: &Path, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let at = path.child(name);
        match fields.get(name) {
            None => errors.push(FieldError::required(at, "")),
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(at, "", "must not be empty"));
            }
            Some(Value::String(text)) if name == "apiVersion" && text.matches('/').count() > 1 => {
                let detail = format!("unexpected GroupVersion string: {text}");
                errors.push(FieldError::invalid(at, text.as_str(), detail));
            }
            Some(Value::String(text)) if name == "kind" && !label(&text.to_lowercase()) => {
                let detail = "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
                errors.push(FieldError::invalid(at, text.as_str(), detail));
            }
            Some(Value::String(_)) => {}
            Some(other) => errors.push(FieldError::invalid(at, other.clone(), "must be a string")),
        }
    }
}

fn label(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_lowercase)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
        && bytes.len() <= 63
}
