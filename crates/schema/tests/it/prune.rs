//! Which unknown fields go and which stay.

use crate::schema;
use lifeboat_schema::{Schema, prune, unknown_fields};
use serde_json::{Value, json};

fn check(of: &Schema, object: Value, want: Value, paths: &[&str]) {
    assert_eq!(unknown_fields(of, &object), paths, "{object}");
    let mut pruned = object.clone();
    assert_eq!(prune(of, &mut pruned), paths, "{object}");
    assert_eq!(pruned, want, "{object}");
}

#[test]
fn what_the_schema_does_not_know_goes() {
    let of = schema(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": {"type": "string"},
        "l": {"type": "array", "items": {"type": "object", "properties": {"b": {"type": "string"}}}},
        "m": {"type": "object", "additionalProperties": {"type": "object", "properties": {"c": {"type": "string"}}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "known": {"type": "object", "properties": {"d": {"type": "string"}}}}},
        "other": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"e": {"type": "string"}}},
    }}}}));
    check(&of, json!({"spec": {"a": "x", "z": 1}, "y": 2}), json!({"spec": {"a": "x"}}), &["spec.z", "y"]);
    check(
        &of,
        json!({"spec": {"l": [{"b": "x"}, {"b": "x", "z": 1}]}}),
        json!({"spec": {"l": [{"b": "x"}, {"b": "x"}]}}),
        &["spec.l[1].z"],
    );
    check(&of, json!({"spec": {"m": {"k": {"z": 1}}}}), json!({"spec": {"m": {"k": {}}}}), &["spec.m.k.z"]);
    check(
        &of,
        json!({"spec": {"free": {"any": {"thing": 1}, "known": {"d": "x", "z": 1}}}}),
        json!({"spec": {"free": {"any": {"thing": 1}, "known": {"d": "x"}}}}),
        &["spec.free.known.z"],
    );
    check(
        &of,
        json!({"spec": {"other": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "z": 1}, "e": "x", "f": 1}}}),
        json!({"spec": {"other": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "e": "x"}}}),
        &["spec.other.f", "spec.other.metadata.z"],
    );
}

#[test]
fn metadata_has_the_fields_of_object_meta() {
    let of = schema(&json!({"type": "object"}));
    check(
        &of,
        json!({"apiVersion": "x/v1", "kind": "K", "metadata": {
            "name": "n", "labels": {"a": "b"}, "unknown": 1, "ownerReferences": [{"uid": "u", "bad": 1}]}}),
        json!({"apiVersion": "x/v1", "kind": "K", "metadata": {
            "name": "n", "labels": {"a": "b"}, "ownerReferences": [{"uid": "u"}]}}),
        &["metadata.ownerReferences[0].bad", "metadata.unknown"],
    );
}

#[test]
fn anything_keeps_everything() {
    check(&Schema::any(), json!({"a": {"b": [1]}}), json!({"a": {"b": [1]}}), &[]);
}

#[test]
fn definitions_may_refer_to_themselves() {
    let definitions = json!({"x.Tree": {"type": "object", "properties": {
        "name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/definitions/x.Tree"}}}}});
    let of = Schema::parse_with(&json!({"$ref": "#/definitions/x.Tree"}), &definitions).unwrap();
    check(
        &of,
        json!({"children": [{"name": "a", "children": [{"z": 1}]}]}),
        json!({"children": [{"name": "a", "children": [{}]}]}),
        &["children[0].children[0].z"],
    );
}
