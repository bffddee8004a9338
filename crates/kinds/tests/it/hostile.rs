//! Objects of any shape: wrong types everywhere, and nothing may panic.

use super::now;
use lifeboat_kinds::all;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const KEYS: &[&str] = &[
    "metadata",
    "spec",
    "status",
    "name",
    "namespace",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "containers",
    "volumes",
    "template",
    "selector",
    "matchLabels",
    "matchExpressions",
    "operator",
    "key",
    "values",
    "resources",
    "requests",
    "limits",
    "storage",
    "capacity",
    "csi",
    "local",
    "nodeAffinity",
    "required",
    "nodeSelectorTerms",
    "accessModes",
    "phase",
    "conditions",
    "type",
    "kind",
    "data",
    "stringData",
    "rules",
    "roleRef",
    "subjects",
    "versions",
    "schema",
    "openAPIV3Schema",
    "names",
    "drivers",
    "source",
    "ports",
    "port",
    "strategy",
    "rollingUpdate",
    "updateStrategy",
    "containerStatuses",
    "initContainers",
    "tolerations",
    "involvedObject",
    "series",
    "generation",
    "deletionTimestamp",
    "hard",
    "eventTime",
    "metrics",
    "behavior",
    "jobTemplate",
    "volumeClaimTemplates",
];

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop_oneof![
            Just(""),
            Just("1Gi"),
            Just("-1e2147483647"),
            Just("1e-99"),
            Just("9999999999999999999999999999Ei"),
            Just("ü/"),
            Just("2024-01-01T00:00:00Z"),
            Just("RollingUpdate"),
            Just("None"),
            Just("."),
            Just("In"),
            Just("10%"),
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((proptest::sample::select(KEYS), inner), 0..6).prop_map(|fields| {
                Value::Object(fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
            }),
        ]
    })
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    proptest::collection::vec((proptest::sample::select(KEYS), value()), 0..6)
        .prop_map(|fields| fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn nothing_panics(a in object(), b in object()) {
        for kind in all() {
            let made = |fields: &Map<String, Value>| {
                let mut obj = Value::Object(fields.clone());
                obj["apiVersion"] = json!(kind.api_version());
                obj["kind"] = json!(kind.kind);
                obj
            };
            let (mut new, old) = (made(&a), made(&b));
            let _ = kind.selectable_fields(&new);
            let _ = lifeboat_kinds::protobuf::encode(&new);
            let mut converted = new.clone();
            kind.from_stored(&mut converted);
            kind.to_stored(&mut converted);
            prop_assert_eq!(kind.row(&new, now()).len(), kind.columns().len());
            let _ = kind.validate_create(&new);
            kind.default(&mut new);
            for subresource in ["", "status", "finalize", "approval", "resize", "ephemeralcontainers"] {
                let mut changed = new.clone();
                kind.prepare_update(&mut changed, &old, subresource);
                kind.stamp(&mut changed, Some(&old), now());
                let _ = kind.validate_update(&changed, &old, subresource);
            }
            kind.prepare_create(&mut new);
            kind.stamp(&mut new, None, now());
            let _ = kind.validate_create(&new);
            let _ = kind.row(&new, now());
        }
    }
}
