//! Walks over typed objects: what they own, how two differ, how two merge, what is left without some fields.

use super::set::{self, FieldSet};
use super::typed::{Kind, Shape};
use crate::equal::same;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Every leaf and item of `value`.
pub(super) fn fields_of(kind: Kind<'_>, value: &Value) -> FieldSet {
    let mut out = FieldSet::default();
    match kind.shape(value) {
        Shape::Leaf => out.member = true,
        Shape::Fields => {
            for (name, value) in value.as_object().into_iter().flatten() {
                let mut below = fields_of(kind.field(name), value);
                let bare = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                below.member |= bare || !kind.names(name);
                if !below.is_empty() {
                    out.children.insert(set::field(name), below);
                }
            }
        }
        Shape::Items => {
            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
            if !kind.indexable(items) {
                out.member = true;
                return out;
            }
            for (element, values) in index(kind, items).1 {
                let mut below = match values.as_slice() {
                    [only] => fields_of(kind.items(), only),
                    // Of duplicates nobody can own the parts.
                    _ => FieldSet::default(),
                };
                below.member = true;
                out.children.insert(element, below);
            }
        }
    }
    out
}

/// The items of a list by their path elements, with the order they stand in.
fn index<'v>(kind: Kind<'_>, items: &'v [Value]) -> (Vec<String>, BTreeMap<String, Vec<&'v Value>>) {
    let mut order = Vec::with_capacity(items.len());
    let mut by_element: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for item in items {
        if let Ok(element) = kind.element(item) {
            by_element.entry(element.clone()).or_default().push(item);
            order.push(element);
        }
    }
    (order, by_element)
}

/// How one object became another.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub removed: FieldSet,
    pub modified: FieldSet,
    pub added: FieldSet,
    /// Whether managedFields are passed over, which no manager owns.
    bare: bool,
}

impl Comparison {
    pub(super) fn between(kind: Kind<'_>, old: &Value, new: &Value) -> Comparison {
        let mut out = Comparison::default();
        out.compare(kind, Some(old), Some(new), &mut Vec::new());
        out
    }

    /// How a whole object became another, but for its managedFields.
    pub(super) fn between_bare(kind: Kind<'_>, old: &Value, new: &Value) -> Comparison {
        let mut out = Comparison { bare: true, ..Comparison::default() };
        out.compare(kind, Some(old), Some(new), &mut Vec::new());
        out
    }

    /// The comparison without these fields and what is below them.
    pub(super) fn without(self, fields: &FieldSet) -> Comparison {
        Comparison {
            removed: self.removed.without_trees(fields),
            modified: self.modified.without_trees(fields),
            added: self.added.without_trees(fields),
            bare: self.bare,
        }
    }

    fn compare(&mut self, kind: Kind<'_>, old: Option<&Value>, new: Option<&Value>, path: &mut Vec<String>) {
        let shape = |v: Option<&Value>| v.map(|v| shape_of(kind, v));
        let shapes = match (shape(old), shape(new)) {
            (None, None) => return,
            (Some(only), None) | (None, Some(only)) => [Some(only), None],
            (Some(a), Some(b)) if a == b => [Some(a), None],
            // The value changed its nature: what it was made of is gone, what it is made of is new.
            (Some(a), Some(b)) => [Some(a), Some(b)],
        };
        let mut whole = false;
        for shape in shapes.into_iter().flatten() {
            whole |= match shape {
                Shape::Leaf => {
                    self.leaf(old, new, path);
                    true
                }
                Shape::Fields => self.maps(kind, old, new, path),
                Shape::Items => self.lists(kind, old, new, path),
            };
        }
        if !whole {
            match (old, new) {
                (None, Some(_)) => self.added.insert(path),
                (Some(_), None) => self.removed.insert(path),
                _ => {}
            }
        }
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>, path: &[String]) {
        match (old, new) {
            (None, _) => self.added.insert(path),
            (_, None) => self.removed.insert(path),
            (Some(old), Some(new)) if !same(old, new) => self.modified.insert(path),
            _ => {}
        }
    }

    /// Compares field by field; says whether the value was taken as a whole instead, as it is where both are empty.
    fn maps(
        &mut self,
        kind: Kind<'_>,
        old: Option<&Value>,
        new: Option<&Value>,
        path: &mut Vec<String>,
    ) -> bool {
        let in_metadata = self.bare && matches!(path.as_slice(), [only] if only == "f:metadata");
        let counts = |name: &str| !(in_metadata && name == "managedFields");
        let olds = old.and_then(Value::as_object).filter(|m| m.keys().any(|name| counts(name)));
        let news = new.and_then(Value::as_object).filter(|m| m.keys().any(|name| counts(name)));
        if olds.is_none() && news.is_none() {
            self.leaf(old, new, path);
            return true;
        }
        let lost = olds.into_iter().flatten().filter(|(name, _)| news.is_none_or(|m| !m.contains_key(*name)));
        let lost = lost.map(|(name, old)| (name, Some(old), None));
        let here = news.into_iter().flatten();
        let here = here.map(|(name, new)| (name, olds.and_then(|m| m.get(name)), Some(new)));
        // What stayed the same has nothing to tell, and mostly all but a field or two did.
        for (name, old, new) in lost.chain(here).filter(|(name, old, new)| old != new && counts(name)) {
            path.push(set::field(name));
            self.compare(kind.field(name), old, new, path);
            path.pop();
        }
        false
    }

    fn lists(
        &mut self,
        kind: Kind<'_>,
        old: Option<&Value>,
        new: Option<&Value>,
        path: &mut Vec<String>,
    ) -> bool {
        let (olds, news) = (items(old), items(new));
        if olds.is_empty() && news.is_empty() {
            self.leaf(old, new, path);
            return true;
        }
        let (_, olds) = index(kind, olds);
        let (_, news) = index(kind, news);
        let elements: BTreeSet<&String> = olds.keys().chain(news.keys()).collect();
        for element in elements {
            let old = olds.get(element).map(Vec::as_slice).unwrap_or_default();
            let new = news.get(element).map(Vec::as_slice).unwrap_or_default();
            path.push(element.clone());
            match (old, new) {
                ([] | [_], [] | [_]) => {
                    self.compare(kind.items(), old.first().copied(), new.first().copied(), path);
                }
                ([_, _, ..], [_, _, ..]) => {
                    let equal = old.len() == new.len() && old.iter().zip(new).all(|(a, b)| same(a, b));
                    if !equal {
                        self.modified.insert(path);
                    }
                }
                ([_, _, ..], new) => {
                    self.compare(kind.items(), None, new.first().copied(), path);
                    self.removed.insert(path);
                }
                (old, _) => {
                    self.compare(kind.items(), old.first().copied(), None, path);
                    self.added.insert(path);
                }
            }
            path.pop();
        }
        false
    }
}

/// The items of a list; none where there is no list.
fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The shape of a value; a list whose items have no identity is a leaf whatever the schema says.
fn shape_of(kind: Kind<'_>, value: &Value) -> Shape {
    match kind.shape(value) {
        Shape::Items if !kind.indexable(value.as_array().map(Vec::as_slice).unwrap_or_default()) => {
            Shape::Leaf
        }
        shape => shape,
    }
}

/// `live` with all that `config` says; nothing is removed.
pub(super) fn merge(kind: Kind<'_>, live: Option<&Value>, config: Option<&Value>) -> Option<Value> {
    let shape = shape_of(kind, config.or(live)?);
    let whole = || config.or(live).cloned();
    match shape {
        Shape::Leaf => whole(),
        Shape::Fields => {
            let lives = live.and_then(Value::as_object).filter(|m| !m.is_empty());
            let configs = config.and_then(Value::as_object).filter(|m| !m.is_empty());
            if lives.is_none() && configs.is_none() {
                return whole();
            }
            let mut out = Map::new();
            for (name, value) in lives.into_iter().flatten() {
                let merged = merge(kind.field(name), Some(value), configs.and_then(|m| m.get(name)));
                out.extend(merged.map(|v| (name.clone(), v)));
            }
            for (name, value) in configs.into_iter().flatten() {
                if lives.is_none_or(|m| !m.contains_key(name)) {
                    out.extend(merge(kind.field(name), None, Some(value)).map(|v| (name.clone(), v)));
                }
            }
            (!out.is_empty()).then_some(Value::Object(out))
        }
        Shape::Items => {
            let list = |v: Option<&'_ Value>| v.and_then(Value::as_array).cloned().unwrap_or_default();
            let (lives, configs) = (list(live), list(config));
            if (lives.is_empty() && configs.is_empty()) || !kind.indexable(&lives) {
                return whole();
            }
            let merged = merge_lists(kind, &lives, &configs);
            (!merged.is_empty()).then_some(Value::Array(merged))
        }
    }
}

/// Items of both lists: shared ones in the order of `configs`, the others near where they stood.
fn merge_lists(kind: Kind<'_>, lives: &[Value], configs: &[Value]) -> Vec<Value> {
    let (live_order, live_items) = index(kind, lives);
    let (config_order, config_items) = index(kind, configs);
    let live_item = |element: &String| match live_items.get(element).map(Vec::as_slice) {
        Some([only]) => Some(*only),
        // Duplicates are replaced, not merged.
        Some(_) => Some(&Value::Null),
        None => None,
    };
    let both = |element: &String| {
        let config = config_items.get(element).and_then(|v| v.first()).copied();
        merge(kind.items(), live_item(element).filter(|v| !v.is_null()), config)
    };
    let mut shared = config_order.iter().filter(|e| live_items.contains_key(*e));
    let mut next_shared = shared.next();
    let mut done = BTreeSet::new();
    let mut out = Vec::new();
    let (mut l, mut c) = (0, 0);
    while l < live_order.len() || c < config_order.len() {
        if let (Some(live), Some(config)) = (live_order.get(l), config_order.get(c)) {
            if live == config {
                done.insert(config);
                out.extend(both(config));
                l += 1;
                c += 1;
                next_shared = shared.next();
                continue;
            }
            if config_items.contains_key(live) && next_shared.is_some_and(|next| next != live) {
                l += 1;
                continue;
            }
        }
        if let Some(live) = live_order.get(l) {
            if !config_items.contains_key(live) {
                out.extend(merge(kind.items(), lives.get(l), None));
                l += 1;
                continue;
            }
            if done.contains(live) {
                l += 1;
            }
        }
        if let Some(config) = config_order.get(c) {
            done.insert(config);
            out.extend(both(config));
            c += 1;
            if next_shared == Some(config) {
                next_shared = shared.next();
            }
        }
    }
    out
}

/// `value` without the paths of `fields`; `None` where nothing is left of it.
pub(super) fn remove(kind: Kind<'_>, value: &Value, fields: &FieldSet) -> Option<Value> {
    match (shape_of(kind, value), value) {
        (Shape::Fields, Value::Object(map)) => {
            let mut out = Map::new();
            for (name, value) in map {
                match fields.child(&set::field(name)) {
                    Some(below) if below.member => {}
                    Some(below) if !below.is_empty() => {
                        // What loses all it had, but is not itself to go, stays as null.
                        let left = remove(kind.field(name), value, below).unwrap_or(Value::Null);
                        out.insert(name.clone(), left);
                    }
                    _ => {
                        out.insert(name.clone(), value.clone());
                    }
                }
            }
            (!out.is_empty()).then_some(Value::Object(out))
        }
        (Shape::Items, Value::Array(items)) => {
            let kept: Vec<Value> = items
                .iter()
                .filter_map(|item| match kind.element(item).ok().and_then(|e| fields.child(&e)) {
                    Some(below) if below.member => None,
                    Some(below) if !below.is_empty() => remove(kind.items(), item, below),
                    _ => Some(item.clone()),
                })
                .collect();
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        (Shape::Leaf, Value::Object(_) | Value::Array(_)) => None,
        _ => Some(value.clone()),
    }
}

/// The set with every field that the schema names on the way to a member made a member itself.
pub(super) fn with_named(kind: Kind<'_>, fields: &FieldSet) -> FieldSet {
    let mut out = FieldSet { member: fields.member, children: BTreeMap::new() };
    for (element, below) in &fields.children {
        let mut child = with_named(kind.below(element), below);
        let named = element.strip_prefix("f:").is_some_and(|name| kind.names(name));
        child.member |= named && !below.children.is_empty();
        out.children.insert(element.clone(), child);
    }
    out
}

/// Makes the set what the present schema allows: what has become atomic since is owned as a whole.
pub(super) fn reconcile(kind: Kind<'_>, fields: &mut FieldSet) {
    if fields.children.is_empty() {
        return;
    }
    if kind.atomic() {
        *fields = FieldSet { member: true, children: BTreeMap::new() };
    }
    for (element, below) in &mut fields.children {
        if !below.children.is_empty() {
            reconcile(kind.below(element), below);
        }
    }
}
