//! How the parts of an object are owned, according to its schema: as a whole, field by field, or item by item.

use super::set;
use crate::node::{Additional, ListType, MapType, Type, View};
use crate::objectmeta;
use serde_json::Value;
use std::collections::BTreeMap;

/// What is known of a place in an object.
#[derive(Clone, Copy)]
pub(super) enum Kind<'s> {
    /// It has a schema. `preserve` says that unknown fields are kept here or somewhere above; `resource` that it is a
    /// whole resource, with `apiVersion`, `kind` and `metadata` beside what the schema says.
    Known { view: View<'s>, preserve: bool, resource: bool },
    /// It has none: maps are granular, lists atomic.
    Deduced,
}

/// How a value is owned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// As a whole.
    Leaf,
    /// Field by field.
    Fields,
    /// Item by item.
    Items,
}

impl<'s> Kind<'s> {
    pub(super) fn resource(view: View<'s>) -> Kind<'s> {
        Kind::Known { view, preserve: view.node.preserve_unknown, resource: true }
    }

    /// How `value` is owned here. Null takes the shape the schema gives; what does not fit its schema is a leaf.
    pub(super) fn shape(self, value: &Value) -> Shape {
        let Kind::Known { view, .. } = self else {
            return if value.is_object() || value.is_null() { Shape::Fields } else { Shape::Leaf };
        };
        let may = |kind| view.node.types.is_empty() || view.is(kind);
        match value {
            Value::Object(_) if may(Type::Object) => self.map_shape(),
            Value::Array(_) if may(Type::Array) => self.list_shape(),
            Value::Null if may(Type::Object) => self.map_shape(),
            Value::Null if view.is(Type::Array) => self.list_shape(),
            _ => Shape::Leaf,
        }
    }

    fn map_shape(self) -> Shape {
        match self {
            Kind::Known { view, .. } if view.map_type() == Some(MapType::Atomic) => Shape::Leaf,
            _ => Shape::Fields,
        }
    }

    fn list_shape(self) -> Shape {
        let Kind::Known { view, .. } = self else { return Shape::Leaf };
        match view.list_type() {
            Some(ListType::Atomic) => Shape::Leaf,
            Some(ListType::Set | ListType::Map) => Shape::Items,
            None if view.patch_strategy("merge") => Shape::Items,
            None => Shape::Leaf,
        }
    }

    /// Whether the schema says that what is here is owned as a whole.
    pub(super) fn atomic(self) -> bool {
        let Kind::Known { view, .. } = self else { return false };
        (view.is(Type::Object) && self.map_shape() == Shape::Leaf)
            || (view.is(Type::Array) && self.list_shape() == Shape::Leaf)
    }

    /// What is known of a field; `None` where the schema does not allow it.
    pub(super) fn declared(self, name: &str) -> Option<Kind<'s>> {
        let Kind::Known { view, preserve, resource } = self else { return Some(Kind::Deduced) };
        if resource && name == "metadata" {
            return Some(Kind::Known { view: objectmeta::view(), preserve: false, resource: false });
        }
        let known = |view: View<'s>| Kind::Known {
            view,
            preserve: preserve || view.node.preserve_unknown,
            resource: view.node.embedded,
        };
        if let Some(below) = view.field(name) {
            return Some(known(below));
        }
        let free = preserve
            || view.node.preserve_unknown
            || (resource && matches!(name, "apiVersion" | "kind"))
            || matches!(view.node.additional, Additional::Any)
            || (view.node.properties.is_empty() && matches!(view.node.additional, Additional::Unsaid));
        free.then_some(Kind::Deduced)
    }

    /// What is known of a field, with nothing known where the schema does not allow it.
    pub(super) fn field(self, name: &str) -> Kind<'s> {
        self.declared(name).unwrap_or(Kind::Deduced)
    }

    /// Whether the field is one that the schema names, as opposed to an entry of a map.
    pub(super) fn names(self, name: &str) -> bool {
        match self {
            Kind::Known { view, resource, .. } => {
                view.node.properties.contains_key(name) || (resource && objectmeta::is_meta(name))
            }
            Kind::Deduced => false,
        }
    }

    /// What is known of the items of a list.
    pub(super) fn items(self) -> Kind<'s> {
        match self {
            Kind::Known { view, preserve, .. } => view.items().map_or(Kind::Deduced, |view| Kind::Known {
                view,
                preserve: preserve || view.node.preserve_unknown,
                resource: view.node.embedded,
            }),
            Kind::Deduced => Kind::Deduced,
        }
    }

    /// What is known below a path element.
    pub(super) fn below(self, element: &str) -> Kind<'s> {
        match element.strip_prefix("f:") {
            Some(name) => self.field(name),
            None => self.items(),
        }
    }

    /// The key fields of a list's items; none for a set.
    fn keys(self) -> Vec<&'s str> {
        let Kind::Known { view, .. } = self else { return Vec::new() };
        match view.list_type() {
            Some(ListType::Map) => view.list_keys().iter().map(String::as_str).collect(),
            Some(_) => Vec::new(),
            None => view.patch_merge_key().into_iter().collect(),
        }
    }

    /// The path element of an item of a list that is owned item by item.
    pub(super) fn element(self, item: &Value) -> Result<String, String> {
        let keys = self.keys();
        if keys.is_empty() {
            return match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".into())
                }
                Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
                Value::Null => {
                    Err("associative list without keys has an element that's an explicit null".into())
                }
                scalar => Ok(set::value(scalar)),
            };
        }
        match item {
            Value::Null => return Err("associative list with keys may not have a null element".into()),
            Value::Object(_) => {}
            _ => return Err("associative list with keys may not have non-map elements".into()),
        }
        let items = self.items();
        let default = |key: &str| match items {
            Kind::Known { view, .. } => view.property(key).and_then(|p| p.default().cloned()),
            Kind::Deduced => None,
        };
        let found: BTreeMap<&str, Value> = keys
            .iter()
            .filter_map(|key| Some((*key, item.get(key).cloned().or_else(|| default(key))?)))
            .collect();
        if found.is_empty() {
            let names: Vec<String> = keys.iter().map(|k| crate::error::quote(k)).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
                names.join(" ")
            ));
        }
        Ok(set::key(&found))
    }

    /// Whether every item of the list has a path element; a list where one has none is owned as a whole.
    pub(super) fn indexable(self, items: &[Value]) -> bool {
        items.iter().all(|item| self.element(item).is_ok())
    }
}

/// What keeps `value` from being applied: fields the schema does not know, wrong types, items without an identity.
pub(super) fn problems(kind: Kind<'_>, value: &Value) -> Vec<String> {
    let mut out = Vec::new();
    walk(kind, value, &mut Vec::new(), &mut out);
    out
}

fn walk(kind: Kind<'_>, value: &Value, path: &mut Vec<String>, out: &mut Vec<String>) {
    let report = |path: &[String], why: &str| {
        let at = set::show(path);
        if at.is_empty() { why.to_owned() } else { format!("{at}: {why}") }
    };
    if let Some(why) = mismatch(kind, value) {
        return out.push(report(path, &why));
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                path.push(set::field(name));
                match kind.declared(name) {
                    Some(below) => walk(below, value, path, out),
                    None => out.push(format!("{}: field not declared in schema", set::show(&*path))),
                }
                path.pop();
            }
        }
        Value::Array(items) if kind.shape(value) == Shape::Items => {
            let mut seen = Vec::new();
            for (index, item) in items.iter().enumerate() {
                match kind.element(item) {
                    Err(why) => return out.push(report(path, &format!("element {index}: {why}"))),
                    Ok(element) => {
                        if seen.contains(&element) {
                            let shown = set::show([&element]);
                            out.push(format!("{}: duplicate entries for key {shown}", set::show(&*path)));
                        }
                        path.push(element.clone());
                        walk(kind.items(), item, path, out);
                        path.pop();
                        seen.push(element);
                    }
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(format!("i:{index}"));
                walk(kind.items(), item, path, out);
                path.pop();
            }
        }
        _ => {}
    }
}

/// What is wrong with the type of a value, where the schema fixes one.
fn mismatch(kind: Kind<'_>, value: &Value) -> Option<String> {
    let Kind::Known { view, .. } = kind else { return None };
    let [expected] = view.node.types.as_slice() else { return None };
    let textual = view.node.format.as_deref().is_none_or(|f| f == "byte");
    match (expected, value) {
        (_, Value::Null) => None,
        (Type::Object, v) if !v.is_object() => Some(format!("expected map, got {}", go_value(v))),
        (Type::Array, v) if !v.is_array() => Some(format!("expected list, got {}", go_value(v))),
        (Type::Integer | Type::Number, v) if !v.is_number() => {
            let kind = match v {
                Value::String(_) => "string",
                Value::Bool(_) => "bool",
                Value::Array(_) => "[]interface {}",
                _ => "map[string]interface {}",
            };
            Some(format!("expected numeric (int or float), got {kind}"))
        }
        (Type::String, v) if textual && !v.is_string() => {
            Some(format!("expected string, got {}", go_value(v)))
        }
        (Type::Boolean, v) if !v.is_boolean() => Some(format!("expected boolean, got {}", go_value(v))),
        _ => None,
    }
}

fn go_value(value: &Value) -> String {
    let inner = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    format!("&{{{inner}}}")
}
