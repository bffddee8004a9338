//! What Go's JSON decoder would say of an object of a built-in kind.
//!
//! Built-in kinds are decoded into Go structs before anything else looks at them, so a wrong type is a bad request and
//! not a validation error. Names of structs come from the names of the schema's definitions.

use crate::formats;
use crate::node::{Additional, Schema, Type, View};
use crate::quantity::Quantity;
use serde_json::Value;

/// The first type mismatch between `object` and `schema`, in the words of Go's decoder; `None` where all types fit.
///
/// The caller puts `Kind in version "v1" cannot be handled as a Kind: ` before it.
pub fn type_errors(schema: &Schema, object: &Value) -> Option<String> {
    let mut path = Vec::new();
    check(schema.view(), object, "", &mut path)
}

fn check<'v>(view: View<'_>, value: &'v Value, owner: &str, path: &mut Vec<&'v str>) -> Option<String> {
    if value.is_null() || view.node.preserve_unknown {
        return None;
    }
    if let Some(special) = special(view, value) {
        return Some(special);
    }
    if view.node.int_or_string {
        let fits = value.is_string() || value.is_i64() || value.is_u64();
        return (!fits).then(|| mismatch(value, "int32", owner, path));
    }
    let types = &view.node.types;
    let fits = types.is_empty()
        || types.iter().any(|kind| match kind {
            Type::Object => value.is_object(),
            Type::Array => value.is_array(),
            Type::String => value.is_string(),
            Type::Integer => integer(view, value),
            Type::Number => value.is_number(),
            Type::Boolean => value.is_boolean(),
            Type::Null => false,
        });
    if !fits {
        return Some(mismatch(value, &go_type(view, 0), owner, path));
    }
    match value {
        Value::Object(fields) => {
            let owner = view.name().map_or(owner, short);
            fields.iter().find_map(|(name, value)| {
                let below = view.field(name)?;
                path.push(name);
                let found = check(below, value, owner, path);
                path.pop();
                found
            })
        }
        Value::Array(items) => {
            let of_items = view.items()?;
            items.iter().find_map(|item| check(of_items, item, owner, path))
        }
        _ => None,
    }
}

/// Types with a decoder of their own.
fn special(view: View<'_>, value: &Value) -> Option<String> {
    let name = view.name().map_or("", short);
    match (name, value) {
        ("Quantity", Value::String(text)) => Quantity::parse(text).err().map(|e| e.to_string()),
        ("Quantity", Value::Number(_)) => None,
        ("Time" | "MicroTime", Value::String(text)) => bad_time(text),
        (_, Value::String(text)) => match view.node.format.as_deref() {
            Some("date-time") => bad_time(text),
            Some("byte") if !text.is_empty() && !formats::fits("byte", text) => {
                let standard = |b: &u8| b.is_ascii_alphanumeric() || b"+/=\r\n".contains(b);
                let at = text.bytes().position(|b| !standard(&b)).unwrap_or(text.len().saturating_sub(1));
                Some(format!("illegal base64 data at input byte {at}"))
            }
            _ => None,
        },
        _ => None,
    }
}

fn bad_time(text: &str) -> Option<String> {
    if text.is_empty() || formats::fits("datetime", text) {
        return None;
    }
    let layout = "2006-01-02T15:04:05Z07:00";
    Some(format!("parsing time {text:?} as {layout:?}: cannot parse {text:?} as \"2006\""))
}

fn integer(view: View<'_>, value: &Value) -> bool {
    match (value.as_i64(), view.node.format.as_deref()) {
        (Some(i), Some("int32")) => i32::try_from(i).is_ok(),
        (Some(_), _) => true,
        (None, _) => false,
    }
}

fn mismatch(value: &Value, expected: &str, owner: &str, path: &[&str]) -> String {
    let found = match value {
        Value::Bool(_) => "bool".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) | Value::Null => "object".to_owned(),
        // A number of the wrong sort is shown, one in a wrong place is not.
        Value::Number(n) if expected.starts_with("int") => format!("number {n}"),
        Value::Number(_) => "number".to_owned(),
    };
    if path.is_empty() {
        return format!("json: cannot unmarshal {found} into Go value of type {expected}");
    }
    let at = path.join(".");
    let dot = if owner.is_empty() { "" } else { "." };
    format!("json: cannot unmarshal {found} into Go struct field {owner}{dot}{at} of type {expected}")
}

/// The last part of a definition's name.
fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// The Go type behind a schema, as near as the schema tells.
fn go_type(view: View<'_>, depth: usize) -> String {
    if let Some(name) = view.name() {
        let mut parts = name.rsplit('.');
        let (kind, package) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        return if package.is_empty() { kind.to_owned() } else { format!("{package}.{kind}") };
    }
    if depth > 8 {
        return "interface {}".into();
    }
    match view.node.types.first() {
        Some(Type::String) => "string".into(),
        Some(Type::Boolean) => "bool".into(),
        Some(Type::Number) => "float64".into(),
        Some(Type::Integer) => view.node.format.clone().unwrap_or_else(|| "int64".into()),
        Some(Type::Array) => {
            format!("[]{}", view.items().map_or_else(|| "interface {}".into(), |v| go_type(v, depth + 1)))
        }
        Some(Type::Object) => match &view.node.additional {
            Additional::Fit(node) => format!("map[string]{}", go_type(view.of(node), depth + 1)),
            _ => "map[string]interface {}".into(),
        },
        _ => "interface {}".into(),
    }
}
