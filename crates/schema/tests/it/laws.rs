//! What holds for any input: nothing panics, and the laws of merging.

use crate::schema;
use lifeboat_schema::managed::{Manager, apply, update};
use lifeboat_schema::patch::{json_patch, merge_patch, strategic};
use lifeboat_schema::quantity::Quantity;
use lifeboat_schema::selector::{FieldSelector, LabelSelector};
use lifeboat_schema::{Schema, jsonpath};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Names that the schemas below know, and a few that they do not.
const NAMES: &[&str] = &[
    "metadata",
    "spec",
    "status",
    "n",
    "s",
    "set",
    "list",
    "map",
    "free",
    "whole",
    "k",
    "v",
    "name",
    "finalizers",
    "labels",
    "managedFields",
    "ownerReferences",
    "uid",
    "$patch",
    "$retainKeys",
    "$setElementOrder/list",
    "$deleteFromPrimitiveList/set",
    "apiVersion",
    "kind",
    "other",
];

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-3_i64..3).prop_map(Value::from),
        (-2.0_f64..2.0).prop_map(Value::from),
        prop::sample::select(vec!["", "a", "b", "delete", "replace", "merge"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((prop::sample::select(NAMES), inner), 0..5).prop_map(|fields| {
                Value::Object(fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect::<Map<_, _>>())
            }),
        ]
    })
}

fn thing() -> Schema {
    schema(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "n": {"type": "integer", "minimum": 0, "default": 1, "x-kubernetes-validations": [{"rule": "self >= 0"}]},
        "s": {"type": "string", "pattern": "^a*$", "format": "date-time"},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge",
            "items": {"type": "string"}},
        "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "k",
            "items": {"type": "object", "required": ["k"], "properties": {
                "k": {"type": "string"}, "v": {"type": "integer"}},
                "x-kubernetes-validations": [{"rule": "!has(self.v) || self.v >= oldSelf.v"}]}},
        "map": {"type": "object", "additionalProperties": {"type": "string", "nullable": true}},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"k": {"type": "string"}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }, "x-kubernetes-validations": [{"rule": "self.list.all(x, self.set.exists(y, y == x.k))", "messageExpression": "self.s"}]}}}))
}

/// A configuration that fits the schema of [`thing`].
fn config() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec!["a", "b", "c"]);
    let items = prop::collection::btree_map(word.clone(), prop::option::of(0_i64..3), 0..3);
    let set = prop::collection::btree_set(word.clone(), 0..3);
    let map = prop::collection::btree_map(word.clone(), word.clone(), 0..3);
    (prop::option::of(0_i64..3), set, items, map, prop::option::of(word)).prop_map(
        |(n, set, items, map, whole)| {
            let mut spec = Map::new();
            spec.extend(n.map(|n| ("n".to_owned(), json!(n))));
            if !set.is_empty() {
                spec.insert("set".into(), json!(set));
            }
            if !items.is_empty() {
                let item = |(k, v): (&str, Option<i64>)| match v {
                    Some(v) => json!({"k": k, "v": v}),
                    None => json!({"k": k}),
                };
                spec.insert("list".into(), items.into_iter().map(item).collect());
            }
            if !map.is_empty() {
                spec.insert("map".into(), json!(map));
                spec.insert("free".into(), json!({"deep": map}));
            }
            spec.extend(whole.map(|w| ("whole".to_owned(), json!({"k": w}))));
            let mut object = json!({"apiVersion": "x/v1", "kind": "Thing", "metadata": {"name": "t"}});
            if !spec.is_empty() {
                object["spec"] = Value::Object(spec);
            }
            object
        },
    )
}

fn manager(name: &str) -> Manager<'_> {
    Manager { name, api_version: "x/v1", subresource: "", time: "2024-01-01T00:00:00Z", reset_fields: &[] }
}

fn unmanaged(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// As deep as the reader lets through, on the small stack that test threads have.
#[test]
fn deep_objects_fit_the_stack() {
    let definitions = json!({"T": {"type": "object", "properties": {
        "a": {"$ref": "#/T"}, "l": {"type": "array", "items": {"$ref": "#/T"}}}}});
    let recursive = Schema::parse_with(&json!({"$ref": "#/T"}), &definitions).unwrap();
    let nest = |text: &str, close: &str| {
        lifeboat_schema::json::decode_strict(format!("{}1{}", text.repeat(60), close.repeat(60)).as_bytes())
            .unwrap()
            .value
    };
    for object in [nest(r#"{"a":{"a":"#, "}}"), nest(r#"{"l":["#, "]}")] {
        for of in [&recursive, &Schema::any()] {
            let _ = lifeboat_schema::validate(of, &object, Some(&object));
            let _ = lifeboat_schema::unknown_fields(of, &object);
            let _ = lifeboat_schema::type_errors(of, &object);
            let mut copy = object.clone();
            lifeboat_schema::apply_defaults(of, &mut copy);
            let _ = strategic(of, &object, &object);
            let _ = merge_patch(&object, &object);
            let mut config = object.clone();
            config["apiVersion"] = json!("x/v1");
            let _ = apply(of, Some(&object), &config, &manager("m"), true);
            update(of, Some(&object), &mut copy, &manager("m"));
        }
        let _ = lifeboat_schema::check_structural(&object);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn nothing_panics(a in value(), b in value(), text in ".{0,40}") {
        let of = thing();
        let _ = lifeboat_schema::validate(&of, &a, Some(&b));
        let _ = lifeboat_schema::check_structural(&a);
        let _ = lifeboat_schema::type_errors(&of, &a);
        let mut object = a.clone();
        lifeboat_schema::apply_defaults(&of, &mut object);
        lifeboat_schema::prune(&of, &mut object);
        let _ = json_patch(&a, &b);
        let _ = strategic(&of, &a, &b);
        let _ = apply(&of, Some(&a), &b, &manager("m"), true);
        let mut object = b.clone();
        update(&of, Some(&a), &mut object, &manager("m"));
        if let Ok(parsed) = Schema::parse(&a) {
            let _ = lifeboat_schema::validate(&parsed, &b, Some(&a));
        }
        let _ = lifeboat_schema::json::decode_strict(text.as_bytes());
        let _ = LabelSelector::parse(&text);
        let _ = LabelSelector::from_json(&a);
        let _ = FieldSelector::parse(&text);
        let _ = jsonpath::JsonPath::parse(&text).map(|p| p.find(&a).len());
        let _ = Quantity::parse(&text);
    }

    #[test]
    fn pruning_is_final(a in value()) {
        let of = thing();
        let mut once = a;
        lifeboat_schema::prune(&of, &mut once);
        prop_assert_eq!(lifeboat_schema::unknown_fields(&of, &once), Vec::<String>::new());
    }

    #[test]
    fn defaulting_is_idempotent(a in value()) {
        let of = thing();
        let mut once = a;
        lifeboat_schema::apply_defaults(&of, &mut once);
        let mut twice = once.clone();
        lifeboat_schema::apply_defaults(&of, &mut twice);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn merge_patch_laws(a in value(), b in value()) {
        let once = merge_patch(&a, &b);
        prop_assert_eq!(merge_patch(&once, &b), once.clone());
        prop_assert_eq!(merge_patch(&a, &json!({})), if a.is_object() { a } else { json!({}) });
    }

    #[test]
    fn an_empty_json_patch_changes_nothing(a in value()) {
        prop_assert_eq!(json_patch(&a, &json!([])), Ok(a));
    }

    #[test]
    fn applying_twice_is_applying_once(a in config(), b in config()) {
        let of = thing();
        let live = apply(&of, None, &a, &manager("one"), false).unwrap();
        let once = apply(&of, Some(&live), &b, &manager("two"), true).unwrap();
        let later = Manager { time: "2030-01-01T00:00:00Z", ..manager("two") };
        let twice = apply(&of, Some(&once), &b, &later, false).unwrap();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn applying_nothing_removes_what_was_applied(a in config(), b in config()) {
        let of = thing();
        let bare = json!({"apiVersion": "x/v1", "kind": "Thing", "metadata": {"name": "t"}});
        let live = apply(&of, None, &a, &manager("one"), false).unwrap();
        prop_assert_eq!(unmanaged(&apply(&of, Some(&live), &bare, &manager("one"), false).unwrap()), bare.clone());
        let both = apply(&of, Some(&live), &b, &manager("two"), true).unwrap();
        let left = apply(&of, Some(&both), &bare, &manager("one"), false).unwrap();
        // What is left is what the other applied alone.
        let alone = apply(&of, None, &b, &manager("two"), false).unwrap();
        let managers: Vec<&str> = left.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter()
            .flatten().filter_map(|e| e["manager"].as_str()).collect();
        prop_assert!(managers.iter().all(|m| *m == "two"));
        prop_assert_eq!(left.pointer("/spec/n"), alone.pointer("/spec/n"));
        prop_assert_eq!(left.pointer("/spec/map"), alone.pointer("/spec/map"));
    }

    #[test]
    fn an_apply_takes_effect(a in config(), b in config()) {
        let of = thing();
        let live = apply(&of, None, &a, &manager("one"), false).unwrap();
        let next = apply(&of, Some(&live), &b, &manager("two"), true).unwrap();
        prop_assert_eq!(b.pointer("/spec/n").is_none() || b.pointer("/spec/n") == next.pointer("/spec/n"), true);
        for item in b.pointer("/spec/set").and_then(Value::as_array).into_iter().flatten() {
            prop_assert!(next.pointer("/spec/set").and_then(Value::as_array).unwrap().contains(item));
        }
    }

    #[test]
    fn quantities_print_what_they_parse(number in 0_u64..10_000_000, fraction in 0_u32..1000, suffix in
        prop::sample::select(vec!["", "n", "u", "m", "k", "M", "G", "Ki", "Mi", "Gi", "Ti", "e3", "E-2"]))
    {
        let parsed = Quantity::parse(&format!("{number}.{fraction:03}{suffix}")).unwrap();
        let again = Quantity::parse(&parsed.to_string()).unwrap();
        prop_assert_eq!(&parsed, &again);
        prop_assert_eq!(parsed.to_string(), again.to_string());
    }

    #[test]
    fn selectors_print_what_they_parse(key in "[a-z]{1,3}", value in "[a-z]{0,3}", field in r"[a-z\\,=]{0,6}") {
        for text in [format!("{key}={value}"), format!("{key} in ({value},x)"), format!("!{key}")] {
            let parsed = LabelSelector::parse(&text).unwrap();
            prop_assert_eq!(LabelSelector::parse(&parsed.to_string()).unwrap(), parsed);
        }
        if let Ok(parsed) = FieldSelector::parse(&format!("{key}={field}")) {
            prop_assert_eq!(FieldSelector::parse(&parsed.to_string()).unwrap(), parsed);
        }
    }
}
