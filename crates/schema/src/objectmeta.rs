//! The schema of `metadata`, which every object has whether its own schema says so or not.

use crate::node::{Schema, View};
use serde_json::{Value, json};
use std::sync::LazyLock;

static OBJECT_META: LazyLock<Schema> = LazyLock::new(|| {
    Schema::parse(&object_meta()).expect("invariant: the schema of ObjectMeta is written below and parses")
});

/// The schema that applies to `metadata` at the root of an object and of an embedded one.
pub(crate) fn view() -> View<'static> {
    OBJECT_META.view()
}

/// The fields that every object has beside its schema.
pub(crate) fn is_meta(field: &str) -> bool {
    matches!(field, "apiVersion" | "kind" | "metadata")
}

fn object_meta() -> Value {
    let string = json!({ "type": "string" });
    let time = json!({ "type": "string", "format": "date-time", "nullable": true });
    let strings = json!({ "type": "object", "additionalProperties": string });
    json!({
        "type": "object",
        "properties": {
            "annotations": strings,
            "creationTimestamp": time,
            "deletionGracePeriodSeconds": { "type": "integer", "format": "int64" },
            "deletionTimestamp": time,
            "finalizers": {
                "type": "array",
                "items": string,
                "x-kubernetes-list-type": "set",
                "x-kubernetes-patch-strategy": "merge",
            },
            "generateName": string,
            "generation": { "type": "integer", "format": "int64" },
            "labels": strings,
            "managedFields": {
                "type": "array",
                "x-kubernetes-list-type": "atomic",
                "items": { "type": "object", "properties": {
                    "apiVersion": string,
                    "fieldsType": string,
                    "fieldsV1": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                    "manager": string,
                    "operation": string,
                    "subresource": string,
                    "time": time,
                } },
            },
            "name": string,
            "namespace": string,
            "ownerReferences": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["uid"],
                "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-patch-merge-key": "uid",
                "items": { "type": "object", "x-kubernetes-map-type": "atomic", "properties": {
                    "apiVersion": string,
                    "blockOwnerDeletion": { "type": "boolean" },
                    "controller": { "type": "boolean" },
                    "kind": string,
                    "name": string,
                    "uid": string,
                } },
            },
            "resourceVersion": string,
            "selfLink": string,
            "uid": string,
        },
    })
}
