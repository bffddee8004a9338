//! Default values.

use crate::node::{Schema, View};
use serde_json::{Map, Value};

/// Fills in the defaults of `schema`. A null where null is not allowed is replaced by the default, or removed from its
/// object where there is none, as Kubernetes does for custom resources.
pub fn apply_defaults(schema: &Schema, object: &mut Value) {
    drop_nulls(Some(schema.view()), object);
    fill(schema.view(), object);
}

/// Removes nulls that are neither allowed nor defaulted from objects; in lists they stay and fail validation.
fn drop_nulls(view: Option<View<'_>>, value: &mut Value) {
    match value {
        Value::Object(map) => map.retain(|key, value| {
            let field = view.and_then(|v| v.field(key));
            let drop = value.is_null() && field.is_some_and(|f| !f.nullable() && f.default().is_none());
            if !drop {
                drop_nulls(field, value);
            }
            !drop
        }),
        Value::Array(items) => {
            let of_items = view.and_then(View::items);
            for item in items {
                drop_nulls(of_items, item);
            }
        }
        _ => {}
    }
}

fn fill(view: View<'_>, value: &mut Value) {
    match value {
        Value::Object(map) => {
            missing(view, map);
            for (key, value) in map.iter_mut() {
                if let Some(property) = view.property(key) {
                    fill(property, value);
                } else if let Some(additional) = view.additional() {
                    replace_null(additional, value);
                    fill(additional, value);
                }
            }
        }
        Value::Array(items) => {
            let Some(of_items) = view.items() else { return };
            for item in items {
                replace_null(of_items, item);
                fill(of_items, item);
            }
        }
        _ => {}
    }
}

fn missing(view: View<'_>, map: &mut Map<String, Value>) {
    for (name, node) in &view.node.properties {
        let property = view.of(node);
        let Some(default) = property.default() else { continue };
        match map.get(name) {
            None => {
                map.insert(name.clone(), default.clone());
            }
            Some(Value::Null) if !property.nullable() => {
                map.insert(name.clone(), default.clone());
            }
            Some(_) => {}
        }
    }
}

fn replace_null(view: View<'_>, value: &mut Value) {
    if value.is_null()
        && !view.nullable()
        && let Some(default) = view.default()
    {
        *value = default.clone();
    }
}
