//! Sets of field paths, in memory and as `fieldsV1`.
//!
//! A path element is kept in the form it has on the wire: `f:name` for a field, `k:{"name":"x"}` for an item of a
//! keyed list, `v:"x"` for an item of a set. Elements are normalised when they are made, so equal paths are equal text.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A set of paths, as a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldSet {
    /// Whether the path to this node is itself in the set.
    pub member: bool,
    pub children: BTreeMap<String, FieldSet>,
}

/// The element for a field of an object.
pub(super) fn field(name: &str) -> String {
    let mut element = String::with_capacity(name.len() + 2);
    element.push_str("f:");
    element.push_str(name);
    element
}

/// The element for an item of a keyed list.
pub(super) fn key(keys: &BTreeMap<&str, Value>) -> String {
    let keys: BTreeMap<&str, Value> = keys.iter().map(|(k, v)| (*k, plain(v))).collect();
    format!("k:{}", serde_json::to_string(&keys).unwrap_or_default())
}

/// The element for an item of a set.
pub(super) fn value(value: &Value) -> String {
    format!("v:{}", plain(value))
}

/// Whole numbers are written without a fraction, so that `1` and `1.0` are one item.
fn plain(value: &Value) -> Value {
    match value.as_f64() {
        Some(f) if value.is_f64() && f.fract() == 0.0 && f.abs() < 9e15 => Value::from(f as i64),
        _ => value.clone(),
    }
}

/// An element from the wire in its normal form; `None` for what is no element.
fn normal(element: &str) -> Option<String> {
    let (kind, rest) = element.split_once(':')?;
    match kind {
        "f" | "i" => Some(element.to_owned()),
        "v" => Some(value(&serde_json::from_str(rest).ok()?)),
        "k" => {
            let keys: BTreeMap<String, Value> = serde_json::from_str(rest).ok()?;
            Some(key(&keys.iter().map(|(k, v)| (k.as_str(), v.clone())).collect()))
        }
        _ => None,
    }
}

/// A path as Kubernetes prints it: `.spec.containers[name="a"].image`.
pub(super) fn show<'a>(path: impl IntoIterator<Item = &'a String>) -> String {
    let mut out = String::new();
    for element in path {
        let (kind, rest) = element.split_once(':').unwrap_or(("f", element));
        let _ = match kind {
            "k" => {
                let keys: BTreeMap<String, Value> = serde_json::from_str(rest).unwrap_or_default();
                let keys: Vec<String> = keys.iter().map(|(k, v)| format!("{k}={v}")).collect();
                write!(out, "[{}]", keys.join(","))
            }
            "v" => write!(out, "[={rest}]"),
            "i" => write!(out, "[{rest}]"),
            _ => write!(out, ".{rest}"),
        };
    }
    out
}

impl FieldSet {
    /// The set of paths written with dots, such as `metadata.name`.
    pub(super) fn of_paths(paths: &[&str]) -> FieldSet {
        let mut set = FieldSet::default();
        for path in paths {
            let elements: Vec<String> = path.trim_start_matches('.').split('.').map(field).collect();
            set.insert(&elements);
        }
        set
    }

    /// Adds a path; the empty path stands for the whole object, which nobody owns.
    pub(super) fn insert(&mut self, path: &[String]) {
        let mut node = self;
        for element in path {
            node = node.children.entry(element.clone()).or_default();
        }
        node.member = !path.is_empty();
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.children.values().all(FieldSet::is_empty)
    }

    pub(super) fn child(&self, element: &str) -> Option<&FieldSet> {
        self.children.get(element)
    }

    pub(super) fn has(&self, path: &[String]) -> bool {
        let mut node = self;
        for element in path {
            match node.child(element) {
                Some(below) => node = below,
                None => return false,
            }
        }
        node.member
    }

    pub(super) fn union(&self, other: &FieldSet) -> FieldSet {
        let mut out = self.clone();
        out.absorb(other);
        out
    }

    /// Adds the paths of `other`.
    pub(super) fn absorb(&mut self, other: &FieldSet) {
        self.member |= other.member;
        for (element, below) in &other.children {
            self.children.entry(element.clone()).or_default().absorb(below);
        }
    }

    /// Paths that are here and not in `other`.
    pub(super) fn difference(&self, other: &FieldSet) -> FieldSet {
        let mut out = self.clone();
        out.subtract(other);
        out
    }

    /// Removes the paths of `other`.
    pub(super) fn subtract(&mut self, other: &FieldSet) {
        self.member &= !other.member;
        for (element, there) in &other.children {
            let Some(here) = self.children.get_mut(element) else { continue };
            here.subtract(there);
            if here.is_empty() {
                self.children.remove(element);
            }
        }
    }

    /// Paths that are in both.
    pub(super) fn intersection(&self, other: &FieldSet) -> FieldSet {
        let mut out = FieldSet { member: self.member && other.member, children: BTreeMap::new() };
        for (element, below) in &self.children {
            let Some(there) = other.child(element) else { continue };
            let kept = below.intersection(there);
            if !kept.is_empty() {
                out.children.insert(element.clone(), kept);
            }
        }
        out
    }

    /// What is left without the paths of `other` and everything below them.
    pub(super) fn without_trees(&self, other: &FieldSet) -> FieldSet {
        let mut out = FieldSet { member: self.member && !other.member, children: BTreeMap::new() };
        for (element, below) in &self.children {
            let kept = match other.child(element) {
                Some(tree) if tree.member => continue,
                Some(tree) => below.without_trees(tree),
                None => below.clone(),
            };
            if !kept.is_empty() {
                out.children.insert(element.clone(), kept);
            }
        }
        out
    }

    /// All paths: those that end here first, then those that go deeper.
    pub(super) fn paths(&self) -> Vec<Vec<String>> {
        let mut out = Vec::new();
        self.collect(&mut Vec::new(), &mut out);
        out
    }

    fn collect(&self, path: &mut Vec<String>, out: &mut Vec<Vec<String>>) {
        for (element, _) in self.children.iter().filter(|(_, below)| below.member) {
            let mut whole = path.clone();
            whole.push(element.clone());
            out.push(whole);
        }
        for (element, below) in &self.children {
            path.push(element.clone());
            below.collect(path, out);
            path.pop();
        }
    }

    /// The `fieldsV1` of this set.
    pub(super) fn into_json(self) -> Value {
        Value::Object(self.into_fields())
    }

    fn into_fields(self) -> Map<String, Value> {
        let mut out = Map::new();
        for (element, below) in self.children {
            let member = below.member;
            let mut inner = below.into_fields();
            if member && !inner.is_empty() {
                inner.insert(".".into(), Value::Object(Map::new()));
            }
            out.insert(element, Value::Object(inner));
        }
        out
    }

    /// The set that a `fieldsV1` describes; elements of unknown kinds are left out.
    pub(super) fn from_json(value: &Value) -> FieldSet {
        let mut set = FieldSet::default();
        for (element, below) in value.as_object().into_iter().flatten() {
            let Some(element) = normal(element) else { continue };
            let mut child = FieldSet::from_json(below);
            child.member = child.children.is_empty() || below.get(".").is_some();
            set.children.insert(element, child);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_v1_round_trips() {
        let wire = json!({
            "f:metadata": { "f:labels": { ".": {}, "f:a": {} } },
            "f:spec": { "f:ports": { "k:{\"port\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:port": {} } },
                        "f:set": { "v:\"x\"": {} } },
        });
        assert_eq!(FieldSet::from_json(&wire).into_json(), wire);
    }

    #[test]
    fn elements_have_one_form() {
        let check = |raw: &str, want: Option<&str>| assert_eq!(normal(raw).as_deref(), want, "{raw}");
        check(r#"k:{"b":1,"a":2.0}"#, Some(r#"k:{"a":2,"b":1}"#));
        check(r#"v: "x""#, Some(r#"v:"x""#));
        check("f:a:b", Some("f:a:b"));
        check("x:1", None);
        check("k:[1]", None);
        check("nothing", None);
    }

    #[test]
    fn paths_are_shown_as_kubernetes_shows_them() {
        let path =
            [field("spec"), field("c"), normal(r#"k:{"name":"a","port":1}"#).unwrap(), value(&json!("x"))];
        assert_eq!(show(&path), r#".spec.c[name="a",port=1][="x"]"#);
    }

    #[test]
    fn set_operations() {
        let set = |paths: &[&str]| FieldSet::of_paths(paths);
        assert_eq!(set(&["a", "a.b", "c"]).difference(&set(&["a", "c"])), set(&["a.b"]));
        assert_eq!(set(&["a", "a.b", "c"]).intersection(&set(&["a.b", "d"])), set(&["a.b"]));
        assert_eq!(set(&["a", "a.b", "c"]).without_trees(&set(&["a"])), set(&["c"]));
        assert_eq!(set(&["a"]).union(&set(&["a.b"])), set(&["a", "a.b"]));
        assert!(set(&["a"]).difference(&set(&["a"])).is_empty());
        assert_eq!(
            set(&["b.x", "b", "a.y"]).paths().iter().map(show).collect::<Vec<_>>(),
            [".b", ".a.y", ".b.x"]
        );
    }
}
