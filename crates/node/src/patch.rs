//! The merge patch that turns one value into another, so that a writer touches only what it changes: peers with fields that we do not know
//! keep them.

use serde::Serialize;
use serde_json::{Map, Value};

/// What has to be merged into `before` to make it `after`.
pub(crate) fn difference(
    before: &impl Serialize,
    after: &impl Serialize,
) -> Result<Value, serde_json::Error> {
    Ok(differ(&serde_json::to_value(before)?, &serde_json::to_value(after)?))
}

fn differ(before: &Value, after: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (before, after) else { return after.clone() };
    let mut patch = Map::new();
    for (key, value) in after {
        match before.get(key) {
            Some(known) if known == value => {}
            Some(known) => drop(patch.insert(key.clone(), differ(known, value))),
            None => drop(patch.insert(key.clone(), value.clone())),
        }
    }
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_patch_names_what_changes_and_nothing_else() {
        let check = |before: Value, after: Value, patch: Value| assert_eq!(differ(&before, &after), patch);
        check(json!({"a": 1, "b": 2}), json!({"a": 1, "b": 3}), json!({"b": 3}));
        check(json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": 1}}), json!({"a": {"c": null}}));
        check(json!({"a": [1, 2]}), json!({"a": [1]}), json!({"a": [1]}));
        check(json!(null), json!({"a": 1}), json!({"a": 1}));
        check(json!({}), json!({}), json!({}));
    }
}
