//! What the kinds promise, as rows.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]
#![allow(clippy::needless_pass_by_value, reason = "rows read better without references to literals")]

mod columns;
mod defaults;
mod events;
mod extensions;
mod hostile;
mod protobuf;
mod strategy;
mod table;
mod validation;
mod validation_storage;

use lifeboat_kinds::{Kind, all};
use serde_json::Value;

/// The kind of an object.
fn kind_of(obj: &Value) -> &'static Kind {
    lifeboat_kinds::find_kind(obj["apiVersion"].as_str().unwrap(), obj["kind"].as_str().unwrap()).unwrap()
}

fn now() -> jiff::Timestamp {
    "2024-05-06T07:08:09Z".parse().unwrap()
}

/// An object on its way into the store, as far as the errors that keep it out.
fn create(mut obj: Value) -> (Value, Vec<String>) {
    let kind = kind_of(&obj);
    kind.default(&mut obj);
    kind.prepare_create(&mut obj);
    obj["metadata"]["uid"] = "uid".into();
    if kind.namespaced && obj["metadata"].get("namespace").is_none() {
        obj["metadata"]["namespace"] = "default".into();
    }
    kind.stamp(&mut obj, None, now());
    let errors = kind.validate_create(&obj).iter().map(ToString::to_string).collect();
    (obj, errors)
}

/// A stored object.
fn stored(obj: Value) -> Value {
    let (obj, errors) = create(obj);
    assert_eq!(errors, [""; 0], "the object to start from has to be valid");
    obj
}

/// A change on its way into the store.
fn update(mut new: Value, old: &Value, subresource: &str) -> (Value, Vec<String>) {
    let kind = kind_of(&new);
    kind.default(&mut new);
    kind.prepare_update(&mut new, old, subresource);
    kind.stamp(&mut new, Some(old), now());
    let errors = kind.validate_update(&new, old, subresource).iter().map(ToString::to_string).collect();
    (new, errors)
}

/// A copy with one field set; null removes it.
fn with(obj: &Value, pointer: &str, value: Value) -> Value {
    let mut copy = obj.clone();
    let mut at = &mut copy;
    let steps: Vec<String> =
        pointer.split('/').skip(1).map(|s| s.replace("~1", "/").replace("~0", "~")).collect();
    let (last, parents) = steps.split_last().unwrap();
    for step in parents {
        at = match step.parse::<usize>() {
            Ok(i) => &mut at[i],
            Err(_) => &mut at[step.as_str()],
        };
    }
    if value.is_null() {
        at.as_object_mut().unwrap().remove(last);
    } else if let Ok(i) = last.parse::<usize>() {
        at[i] = value;
    } else {
        at[last.as_str()] = value;
    }
    copy
}

#[test]
fn every_kind_has_schema_columns_and_selectable_name() {
    for kind in all() {
        let empty =
            serde_json::json!({ "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {} });
        let _ = kind.schema();
        assert_eq!(kind.columns().len(), kind.row(&empty, now()).len(), "{}", kind.kind);
        assert!(kind.selectable_fields(&empty).iter().any(|(f, _)| *f == "metadata.name"));
        assert!(lifeboat_kinds::openapi::schema_name(&kind.api_version(), kind.kind).is_some());
        let (mut once, _) = create(empty);
        let stored = once.clone();
        kind.default(&mut once);
        assert_eq!(once, stored, "defaulting {} again changes it", kind.kind);
    }
}
