//! JSON as CEL values, guided by the schema.

use super::escape;
use crate::node::{Additional, Type, View};
use base64::Engine;
use kube_cel::cel::Value as Cel;
use kube_cel::cel::objects::{Key, Map};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// Converts `value`, which fits `view` (or anything, without one). `resource` says that the value is a whole resource,
/// of which rules see `apiVersion`, `kind`, `metadata.name` and `metadata.generateName` whatever the schema says.
pub(super) fn convert(view: Option<View<'_>>, value: &Value, resource: bool) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(b) => Cel::Bool(*b),
        Value::Number(n) => number(view, n),
        Value::String(s) => string(view, s),
        Value::Array(items) => {
            let of_items = view.and_then(View::items);
            let embedded = of_items.is_some_and(|v| v.node.embedded);
            Cel::List(Arc::new(items.iter().map(|v| convert(of_items, v, embedded)).collect()))
        }
        Value::Object(fields) => {
            let mut map = HashMap::with_capacity(fields.len());
            for (name, value) in fields {
                let below = view.and_then(|v| v.field(name));
                let Some(key) = key(view, name) else { continue };
                // A field that is null is as good as absent; an entry of a map is not.
                if value.is_null() && view.is_some_and(|v| v.property(name).is_some()) {
                    continue;
                }
                if resource && name == "metadata" && below.is_none_or(|v| v.node.properties.is_empty()) {
                    map.insert(key, metadata(value));
                    continue;
                }
                let embedded = below.is_some_and(|v| v.node.embedded);
                map.insert(key, convert(below, value, embedded));
            }
            Cel::Map(Map { map: Arc::new(map) })
        }
    }
}

/// Struct fields have escaped names; keys of a map are data and stay as they are.
fn key(view: Option<View<'_>>, name: &str) -> Option<Key> {
    let is_map = view.is_none_or(|v| matches!(v.node.additional, Additional::Fit(_) | Additional::Any));
    let text = if is_map { name.to_owned() } else { escape(name)? };
    Some(Key::String(Arc::new(text)))
}

fn metadata(value: &Value) -> Cel {
    let named = ["name", "generateName"];
    let map = named
        .iter()
        .filter_map(|name| {
            let text = value.get(name)?.as_str()?;
            Some((Key::String(Arc::new((*name).to_owned())), Cel::String(Arc::new(text.to_owned()))))
        })
        .collect();
    Cel::Map(Map { map: Arc::new(map) })
}

fn number(view: Option<View<'_>>, n: &serde_json::Number) -> Cel {
    let float = n.as_f64().unwrap_or(f64::NAN);
    let is = |kind| view.is_some_and(|v| v.is(kind));
    if is(Type::Number) {
        return Cel::Float(float);
    }
    match (n.as_i64(), n.as_u64()) {
        (Some(i), _) => Cel::Int(i),
        (None, Some(u)) => Cel::UInt(u),
        // A whole number within i64 converts without loss; anything else stays a float.
        _ if is(Type::Integer) && float.fract() == 0.0 && float.abs() < 9.2e18 => Cel::Int(float as i64),
        _ => Cel::Float(float),
    }
}

fn string(view: Option<View<'_>>, s: &str) -> Cel {
    let plain = || Cel::String(Arc::new(s.to_owned()));
    let Some(view) = view.filter(|v| v.is(Type::String)) else { return plain() };
    match view.node.format.as_deref() {
        Some("byte") => match base64::engine::general_purpose::STANDARD.decode(s) {
            Ok(bytes) => Cel::Bytes(Arc::new(bytes)),
            Err(_) => plain(),
        },
        // The engine's own conversions build the values, so that the time library stays its business.
        Some("date-time") => call("timestamp", s).unwrap_or_else(plain),
        Some("date") => call("timestamp", &format!("{s}T00:00:00Z")).unwrap_or_else(plain),
        Some("duration") => call("duration", s).unwrap_or_else(plain),
        _ => plain(),
    }
}

fn call(function: &str, argument: &str) -> Option<Cel> {
    let source = format!("{function}(text)");
    let program = kube_cel::cel::Program::compile(&source).ok()?;
    let mut context = kube_cel::cel::Context::default();
    context.add_variable_from_value("text", Cel::String(Arc::new(argument.to_owned())));
    program.execute(&context).ok()
}
