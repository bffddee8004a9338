//! A schema as it was written, for rules about how it is written.

use serde_json::{Map, Value};

/// A schema in JSON; everything is read leniently, what has the wrong type counts as absent.
#[derive(Clone, Copy)]
pub(super) struct Raw<'a>(&'a Map<String, Value>);

impl<'a> Raw<'a> {
    pub(super) fn new(value: &'a Value) -> Option<Raw<'a>> {
        value.as_object().map(Raw)
    }

    pub(super) fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|v| !v.is_null())
    }

    pub(super) fn text(self, name: &str) -> &'a str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn flag(self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    pub(super) fn kind(self) -> &'a str {
        self.text("type")
    }

    pub(super) fn schema(self, name: &str) -> Option<Raw<'a>> {
        self.get(name).and_then(Raw::new)
    }

    pub(super) fn list(self, name: &str) -> &'a [Value] {
        self.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn strings(self, name: &str) -> Vec<&'a str> {
        self.list(name).iter().filter_map(Value::as_str).collect()
    }

    pub(super) fn property(self, name: &str) -> Option<Raw<'a>> {
        self.get("properties")?.get(name).and_then(Raw::new)
    }

    pub(super) fn properties(self) -> impl Iterator<Item = (&'a String, Raw<'a>)> {
        let all = self.get("properties").and_then(Value::as_object);
        all.into_iter().flatten().filter_map(|(name, value)| Some((name, Raw::new(value)?)))
    }

    /// The schemas under a list keyword, with their places.
    pub(super) fn branches(self, name: &str) -> impl Iterator<Item = (usize, Raw<'a>)> {
        self.list(name).iter().enumerate().filter_map(|(i, v)| Some((i, Raw::new(v)?)))
    }

    pub(super) fn names(self) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(|(_, v)| !v.is_null()).map(|(k, _)| k.as_str())
    }
}
