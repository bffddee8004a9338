//! Short ways to look into JSON that may have any shape.

use lifeboat_schema::Reach;
use serde_json::{Map, Value};

/// An object's fields.
pub(crate) type Object = Map<String, Value>;

/// The string at a JSON pointer; empty where there is none.
pub(crate) fn text<'a>(v: &'a Value, pointer: &str) -> &'a str {
    v.reach(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The number at a JSON pointer; zero where there is none.
pub(crate) fn int(v: &Value, pointer: &str) -> i64 {
    v.reach(pointer).and_then(Value::as_i64).unwrap_or_default()
}

/// The list at a JSON pointer; empty where there is none.
pub(crate) fn list<'a>(v: &'a Value, pointer: &str) -> &'a [Value] {
    v.reach(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The fields of the object at a JSON pointer, in order; none where there is no object.
pub(crate) fn entries<'a>(v: &'a Value, pointer: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    v.reach(pointer).and_then(Value::as_object).into_iter().flatten().map(|(k, v)| (k.as_str(), v))
}

/// The object in a field, made where it is missing or null.
pub(crate) fn object<'a>(o: &'a mut Object, key: &str) -> &'a mut Object {
    let value = o.entry(key).or_insert_with(|| Value::Object(Map::new()));
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("invariant: it was just made an object")
}

/// Sets a field that is missing.
pub(crate) fn fill(o: &mut Object, key: &str, value: impl Into<Value>) {
    if !o.contains_key(key) {
        o.insert(key.to_owned(), value.into());
    }
}

/// Whether a field is missing, null, or an empty string, list or object.
pub(crate) fn blank(v: Option<&Value>) -> bool {
    match v {
        None | Some(Value::Null) => true,
        Some(Value::String(s)) => s.is_empty(),
        Some(Value::Array(a)) => a.is_empty(),
        Some(Value::Object(o)) => o.is_empty(),
        Some(_) => false,
    }
}

/// Copies a field from `from` to `to`, or removes it there.
pub(crate) fn carry(to: &mut Object, from: &Value, key: &str) {
    match from.get(key) {
        // To compare is cheaper than to copy, and what is carried over is mostly what is there.
        Some(v) if to.get(key) == Some(v) => {}
        Some(v) => {
            to.insert(key.to_owned(), v.clone());
        }
        None => {
            to.remove(key);
        }
    }
}
