//! What each way of writing may change.

use super::{create, stored, update, with};
use serde_json::{Value, json};

fn claim() -> Value {
    stored(json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "c" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } } }))
}

fn deployment() -> Value {
    stored(json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "d" }, "spec": {
        "selector": { "matchLabels": { "a": "b" } },
        "template": { "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "c", "image": "i" }] } } } }))
}

#[test]
fn creation_starts_with_an_empty_status() {
    let (obj, _) =
        create(json!({ "apiVersion": "apps/v1", "kind": "Deployment", "status": { "replicas": 3 } }));
    assert_eq!(obj["status"], json!({}));
    let (node, _) = create(json!({ "apiVersion": "v1", "kind": "Node", "status": { "phase": "x" } }));
    assert_eq!(node["status"]["phase"], "x");
}

#[test]
fn a_main_write_keeps_the_status() {
    let old = claim();
    let (new, _) = update(with(&old, "/status/phase", json!("Bound")), &old, "");
    assert_eq!(new["status"]["phase"], "Pending");
}

#[test]
fn a_status_write_keeps_the_spec_and_takes_metadata() {
    let old = claim();
    let new = with(&with(&old, "/status/phase", json!("Bound")), "/spec/volumeName", json!("v"));
    let (new, errors) = update(with(&new, "/metadata/labels", json!({ "a": "b" })), &old, "status");
    assert_eq!(errors, [""; 0]);
    assert_eq!(new["status"]["phase"], "Bound");
    assert!(new["spec"].get("volumeName").is_none());
    assert_eq!(new["metadata"]["labels"], json!({ "a": "b" }));
}

#[test]
fn a_status_write_of_some_kinds_keeps_metadata() {
    let old = deployment();
    let (new, _) = update(with(&old, "/metadata/labels", json!({ "a": "b" })), &old, "status");
    assert!(new["metadata"].get("labels").is_none());
    let old = stored(
        json!({ "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": { "name": "a" },
        "spec": { "attacher": "d", "nodeName": "n", "source": { "persistentVolumeName": "p" } } }),
    );
    let new = with(&with(&old, "/metadata/finalizers", json!(["x.io/y"])), "/status/attached", json!(true));
    let (new, _) = update(new, &old, "status");
    assert!(new["metadata"].get("finalizers").is_none());
    assert_eq!(new["status"]["attached"], true);
}

#[test]
fn generation_counts_what_the_kind_counts() {
    let old = deployment();
    let generation =
        |new: Value, subresource: &str| update(new, &old, subresource).0["metadata"]["generation"].clone();
    assert_eq!(old["metadata"]["generation"], 1);
    assert_eq!(generation(with(&old, "/spec/replicas", json!(3)), ""), 2);
    assert_eq!(generation(with(&old, "/metadata/annotations", json!({ "a": "b" })), ""), 2);
    assert_eq!(generation(with(&old, "/metadata/labels", json!({ "a": "b" })), ""), 1);
    assert_eq!(generation(with(&old, "/status/replicas", json!(3)), "status"), 1);
    assert_eq!(generation(with(&old, "/metadata/generation", json!(9)), ""), 1);
    assert!(claim()["metadata"].get("generation").is_none());
}

#[test]
fn string_data_ends_up_in_data() {
    let secret = stored(json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" },
        "stringData": { "k": "v" } }));
    assert_eq!(secret["data"], json!({ "k": "dg==" }));
    assert!(secret.get("stringData").is_none());
}

#[test]
fn a_volume_remembers_when_its_phase_changed() {
    let old = stored(
        json!({ "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": "v" }, "spec": {
        "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "csi": { "driver": "d", "volumeHandle": "h" } } }),
    );
    assert_eq!(old["status"]["lastPhaseTransitionTime"], "2024-05-06T07:08:09Z");
    let old = with(&old, "/status/lastPhaseTransitionTime", json!("2020-01-01T00:00:00Z"));
    let (same, _) = update(with(&old, "/status/message", json!("m")), &old, "status");
    assert_eq!(same["status"]["lastPhaseTransitionTime"], "2020-01-01T00:00:00Z");
    let (moved, _) = update(with(&old, "/status/phase", json!("Available")), &old, "status");
    assert_eq!(moved["status"]["lastPhaseTransitionTime"], "2024-05-06T07:08:09Z");
}

#[test]
fn a_claim_names_its_source_in_both_ways() {
    let source = json!({ "kind": "PersistentVolumeClaim", "name": "x" });
    let with_source = |key: &str, source: &Value| {
        let mut obj = json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "c" }, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } } });
        obj["spec"][key] = source.clone();
        create(obj).0["spec"].clone()
    };
    assert_eq!(with_source("dataSource", &source)["dataSourceRef"], source);
    assert_eq!(with_source("dataSourceRef", &source)["dataSource"], source);
    let unknown = json!({ "kind": "Other", "name": "x" });
    assert!(with_source("dataSource", &unknown).get("dataSource").is_none());
}

#[test]
fn a_job_gets_a_selector_of_its_own() {
    let job = stored(json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "j" }, "spec": {
        "template": { "spec": { "restartPolicy": "Never", "containers": [{ "name": "c", "image": "i" }] } } } }));
    assert_eq!(
        job["spec"]["selector"]["matchLabels"],
        json!({ "batch.kubernetes.io/controller-uid": "uid" })
    );
    assert_eq!(job["spec"]["template"]["metadata"]["labels"]["job-name"], "j");
}

#[test]
fn a_service_keeps_its_address() {
    let old = stored(json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "s" }, "spec": {
        "ports": [{ "port": 80 }], "clusterIP": "10.0.0.1" } }));
    assert_eq!(old["spec"]["clusterIPs"], json!(["10.0.0.1"]));
    let without = with(&with(&old, "/spec/clusterIP", Value::Null), "/spec/clusterIPs", Value::Null);
    assert_eq!(update(without, &old, "").0["spec"]["clusterIP"], "10.0.0.1");
    let (_, errors) = update(with(&old, "/spec/clusterIP", json!("10.0.0.2")), &old, "");
    assert_eq!(errors, ["spec.clusterIPs[0]: Invalid value: [\"10.0.0.2\"]: may not change once set"]);
}

#[test]
fn a_definition_remembers_its_stored_versions() {
    let schema = json!({ "openAPIV3Schema": { "type": "object" } });
    let old = stored(json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "boats.x.io" }, "spec": { "group": "x.io", "scope": "Namespaced",
            "names": { "kind": "Boat", "plural": "boats" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }] } }));
    assert_eq!(old["status"]["storedVersions"], json!(["v1"]));
    let mut new = with(&old, "/spec/versions/0/storage", json!(false));
    let second = json!({ "name": "v2", "served": true, "storage": true, "schema": schema });
    new["spec"]["versions"].as_array_mut().unwrap().push(second);
    let (new, errors) = update(new, &old, "");
    assert_eq!(errors, [""; 0]);
    assert_eq!(new["status"]["storedVersions"], json!(["v1", "v2"]));
    let (_, errors) = update(with(&new, "/spec/versions", json!([new["spec"]["versions"][1]])), &new, "");
    assert!(
        errors[0].starts_with("status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions;")
    );
}
