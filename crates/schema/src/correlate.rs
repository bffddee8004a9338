//! Which old value a new value is to be compared with.
//!
//! Fields correlate by name, items of a list only where the list says how (`list-type: map`). What does not correlate
//! is as unchanged as the nearest thing around it that does.

use crate::equal::same;
use crate::node::{ListType, View};
use serde_json::Value;

/// A new value, the old value it correlates with, and the pair around it.
#[derive(Clone, Copy)]
pub(crate) struct Pair<'a> {
    pub new: &'a Value,
    pub old: Option<&'a Value>,
    around: Option<&'a Pair<'a>>,
}

static NULL: Value = Value::Null;

impl<'a> Pair<'a> {
    pub(crate) fn root(new: &'a Value, old: Option<&'a Value>) -> Pair<'a> {
        Pair { new, old, around: None }
    }

    pub(crate) fn field(&'a self, name: &str) -> Pair<'a> {
        // The type of an object cannot be seen to change: both sides were converted to the requested one.
        let fixed = self.around.is_none() && matches!(name, "apiVersion" | "kind");
        let old = self.old.filter(|_| !fixed).and_then(|v| v.get(name));
        Pair { new: self.new.get(name).unwrap_or(&NULL), old, around: Some(self) }
    }

    pub(crate) fn item(&'a self, list: View<'_>, index: usize) -> Pair<'a> {
        let new = self.new.get(index).unwrap_or(&NULL);
        let old = match (list.list_type(), self.old.and_then(Value::as_array)) {
            (Some(ListType::Map), Some(items)) => items.iter().find(|old| same_keys(list, old, new)),
            _ => None,
        };
        Pair { new, old, around: Some(self) }
    }

    /// Whether the nearest correlated value around (or this one) is what it was before.
    pub(crate) fn unchanged(&self) -> bool {
        let mut pair = Some(self);
        while let Some(here) = pair {
            if let Some(old) = here.old {
                return same(here.new, old);
            }
            pair = here.around;
        }
        false
    }
}

fn same_keys(list: View<'_>, a: &Value, b: &Value) -> bool {
    let keys = list.list_keys();
    !keys.is_empty()
        && a.is_object()
        && b.is_object()
        && keys.iter().all(|key| same(a.get(key).unwrap_or(&NULL), b.get(key).unwrap_or(&NULL)))
}
