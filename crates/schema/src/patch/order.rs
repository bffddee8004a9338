//! The order of merged lists in a strategic merge patch.

use crate::equal::same;
use serde_json::Value;

/// What identifies an item: the value of its merge key, or the item itself in a list of scalars.
pub(super) fn identity<'v>(item: &'v Value, merge_key: Option<&str>) -> Option<&'v Value> {
    match merge_key {
        Some(key) => item.get(key),
        None => Some(item),
    }
}

fn place(list: &[Value], item: &Value, merge_key: Option<&str>) -> Option<usize> {
    let wanted = identity(item, merge_key)?;
    list.iter().position(|other| identity(other, merge_key).is_some_and(|id| same(id, wanted)))
}

/// Orders `merged`: items named in `wanted` as they stand there, the others as they stood in `live`, put in before the
/// first of the former that stood behind them.
pub(super) fn arrange(
    merged: Vec<Value>,
    wanted: &[Value],
    live: &[Value],
    merge_key: Option<&str>,
) -> Vec<Value> {
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| place(wanted, item, merge_key).is_some());
    named.sort_by_key(|item| place(wanted, item, merge_key));
    others.sort_by_key(|item| place(live, item, merge_key).unwrap_or(usize::MAX));
    let mut out = Vec::with_capacity(named.len() + others.len());
    let mut named = named.into_iter().peekable();
    let mut others = others.into_iter().peekable();
    while let (Some(a), Some(b)) = (others.peek(), named.peek()) {
        let before = match (place(live, a, merge_key), place(live, b, merge_key)) {
            (Some(a), Some(b)) => a < b,
            _ => false,
        };
        out.extend(if before { others.next() } else { named.next() });
    }
    out.extend(others);
    out.extend(named);
    out
}
