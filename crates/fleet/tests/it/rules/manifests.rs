//! What a manifest says, and whether an object is so.

use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::api::DynamicObject;
use lifeboat_api::annotations::OBJECT_HASH;
use lifeboat_api::work::ManifestConfig;
use lifeboat_fleet::work::feedback;
use lifeboat_fleet::work::manifest::Manifest;
use serde_json::{Value, json};

fn read(value: Value) -> Manifest {
    Manifest::read(&RawExtension(value)).unwrap()
}

#[test]
fn what_only_a_server_may_say_is_left_out() {
    let plain =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": "n" } });
    let mut dressed = plain.clone();
    dressed["metadata"] = json!({ "name": "a", "namespace": "n", "uid": "1", "resourceVersion": "5", "generation": 2,
        "creationTimestamp": null, "managedFields": [], "ownerReferences": [{ "name": "x" }] });
    dressed["status"] = json!({ "phase": "x" });
    assert_eq!(read(plain).hash(), read(dressed).hash());
}

#[test]
fn an_object_meets_its_manifest_if_all_that_it_says_is_so() {
    let wanted = json!({
        "apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": { "name": "a", "labels": { "l": "1" } },
        "spec": { "size": 1, "list": [{ "name": "x" }], "none": {}, "nothing": null, "flags": [] },
    });
    let manifest = read(wanted.clone());
    let check = |change: &dyn Fn(&mut Value), met: bool| {
        let mut object = wanted.clone();
        object["metadata"]["annotations"] = json!({ OBJECT_HASH: manifest.hash() });
        change(&mut object);
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        assert_eq!(manifest.is_met_by(&object), met, "{object:?}");
    };
    check(&|_| {}, true);
    check(&|object| object["spec"]["defaulted"] = json!(true), true);
    check(&|object| object["spec"]["list"][0]["defaulted"] = json!(true), true);
    check(&|object| object["status"] = json!({ "phase": "x" }), true);
    check(&|object| object["metadata"]["labels"]["other"] = json!("2"), true);
    check(&|object| object["spec"] = json!({ "size": 1, "list": [{ "name": "x" }] }), true);
    check(&|object| object["spec"]["size"] = json!(1.0), true);
    check(&|object| object["spec"]["size"] = json!(2), false);
    check(&|object| object["spec"]["list"] = json!([]), false);
    check(&|object| object["spec"]["list"] = json!([{ "name": "x" }, { "name": "y" }]), false);
    check(&|object| object["metadata"]["labels"]["l"] = json!("2"), false);
    // What was made from another manifest may have more than this one says.
    check(&|object| object["metadata"]["annotations"][OBJECT_HASH] = json!("another"), false);
    check(&|object| object["metadata"]["annotations"] = Value::Null, false);
}

#[test]
fn a_manifest_that_names_no_object_is_refused() {
    let check = |value: Value, part: &str| {
        let why = Manifest::read(&RawExtension(value)).unwrap_err();
        assert!(why.contains(part), "{why}");
    };
    check(json!("text"), "no object");
    check(json!({ "kind": "ConfigMap", "metadata": { "name": "a" } }), "apiVersion");
    check(json!({ "apiVersion": "v1", "metadata": { "name": "a" } }), "kind");
    check(json!({ "apiVersion": "v1", "kind": "ConfigMap" }), "metadata");
    check(
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "generateName": "a-" } }),
        "metadata.name",
    );
}

#[test]
fn values_are_read_back_by_path_and_by_kind() {
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" }, "status": { "phase": "Running",
        "conditions": [{ "type": "Ready", "status": "True" }], "number": 3, "flag": true, "list": [1, 2], "long": "x".repeat(2000) } });
    let object: DynamicObject = serde_json::from_value(pod).unwrap();
    let check = |rules: Value, values: Value, reason: &str| {
        let config: ManifestConfig = serde_json::from_value(json!({ "feedbackRules": rules })).unwrap();
        let read = feedback::read(&object, &config);
        let found: Vec<Value> =
            read.values.iter().map(|value| json!([value.name, value.field_value])).collect();
        assert_eq!((json!(found), read.reason), (values, reason), "{}", read.message);
    };
    let path = |name: &str, path: &str| json!([{ "type": "JSONPaths", "jsonPaths": [{ "name": name, "path": path }] }]);
    check(json!([]), json!([]), "NoStatusFeedbackSynced");
    check(
        json!([{ "type": "WellKnownStatus" }]),
        json!([["PodReady", { "type": "String", "string": "True" }], ["PodPhase", { "type": "String", "string": "Running" }]]),
        "StatusFeedbackSynced",
    );
    check(
        path("n", ".status.number"),
        json!([["n", { "type": "Integer", "integer": 3 }]]),
        "StatusFeedbackSynced",
    );
    check(
        path("f", ".status.flag"),
        json!([["f", { "type": "Boolean", "boolean": true }]]),
        "StatusFeedbackSynced",
    );
    check(
        path("l", ".status.list"),
        json!([["l", { "type": "JsonRaw", "jsonRaw": "[1,2]" }]]),
        "StatusFeedbackSynced",
    );
    check(path("a", ".status.absent"), json!([]), "StatusFeedbackSynced");
    check(path("b", ".status["), json!([]), "StatusFeedbackSyncFailed");
    check(path("s", ".status"), json!([]), "StatusFeedbackSyncFailed");
    let versioned = json!([{ "type": "JSONPaths", "jsonPaths": [{ "name": "v", "path": ".status.phase", "version": "v2" }] }]);
    check(versioned, json!([]), "StatusFeedbackSyncFailed");
}
