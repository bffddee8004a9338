//! Rules of claims, volumes and the storage kinds.

use super::{create, stored, update, with};
use serde_json::{Value, json};

/// Creating `obj` is refused with these errors, of which the beginnings are given.
fn refused(obj: Value, beginnings: &[&str]) {
    same(&create(obj).1, beginnings);
}

/// Changing one field of a stored object is refused with these errors; none means that it is allowed.
fn change(old: &Value, pointer: &str, value: Value, beginnings: &[&str]) {
    same(&update(with(old, pointer, value), old, "").1, beginnings);
}

fn same(errors: &[String], beginnings: &[&str]) {
    assert_eq!(errors.len(), beginnings.len(), "{errors:#?}");
    for (error, beginning) in errors.iter().zip(beginnings) {
        assert!(error.starts_with(beginning), "{error:?} does not start with {beginning:?}");
    }
}

fn claim(spec: Value) -> Value {
    let mut obj = json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "c" }, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": { "requests": { "storage": "2Gi" } } } });
    for (key, value) in spec.as_object().unwrap() {
        obj = with(&obj, &format!("/spec/{key}"), value.clone());
    }
    obj
}

fn bound() -> Value {
    let obj = stored(claim(json!({})));
    with(&with(&obj, "/status/phase", json!("Bound")), "/status/capacity", json!({ "storage": "1Gi" }))
}

#[test]
fn claim_needs_modes_and_size() {
    refused(
        claim(json!({ "accessModes": [] })),
        &["spec.accessModes: Required value: at least 1 access mode is required"],
    );
    refused(claim(json!({ "resources": {} })), &["spec.resources[storage]: Required value"]);
    refused(
        claim(json!({ "resources": { "requests": { "storage": "0" } } })),
        &["spec.resources[storage]: Invalid value: \"0\": must be greater than zero"],
    );
    refused(
        claim(json!({ "accessModes": ["ReadWriteOncePod", "ReadWriteOnce"] })),
        &["spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"],
    );
    refused(claim(json!({ "volumeMode": "Tape" })), &["spec.volumeMode: Unsupported value: \"Tape\""]);
}

#[test]
fn claim_spec_is_immutable() {
    let old = stored(claim(json!({})));
    let immutable = "spec: Forbidden: spec is immutable after creation except resources.requests";
    change(&old, "/spec/accessModes", json!(["ReadWriteMany"]), &[immutable]);
    change(&old, "/spec/storageClassName", json!("slow"), &[immutable]);
    change(&old, "/spec/resources/requests/storage", json!("3Gi"), &[immutable]);
    change(
        &old,
        "/spec/volumeMode",
        json!("Block"),
        &[immutable, "volumeMode: Invalid value: \"Block\": field is immutable"],
    );
}

#[test]
fn claim_volume_is_set_once() {
    let old = stored(claim(json!({})));
    change(&old, "/spec/volumeName", json!("v"), &[]);
    let old = stored(claim(json!({ "volumeName": "v" })));
    change(&old, "/spec/volumeName", json!("w"), &["spec: Forbidden"]);
}

#[test]
fn claim_gets_a_class_late_but_loses_none() {
    let old = stored(claim(json!({ "storageClassName": null })));
    change(&old, "/spec/storageClassName", json!("fast"), &[]);
    change(&bound(), "/spec/storageClassName", Value::Null, &["spec: Forbidden"]);
}

#[test]
fn bound_claim_grows_and_shrinks_no_further_than_its_capacity() {
    let size = "/spec/resources/requests/storage";
    change(&bound(), size, json!("4Gi"), &[]);
    change(&bound(), size, json!("1536Mi"), &[]);
    change(
        &bound(),
        size,
        json!("1Gi"),
        &["spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"],
    );
}

#[test]
fn bound_claim_changes_its_attributes_class() {
    change(&bound(), "/spec/volumeAttributesClassName", json!("gold"), &[]);
    let old = with(&bound(), "/status/currentVolumeAttributesClassName", json!("gold"));
    let old = with(&old, "/spec/volumeAttributesClassName", json!("gold"));
    change(
        &old,
        "/spec/volumeAttributesClassName",
        Value::Null,
        &["spec.volumeAttributesClassName: Forbidden: update to nil is forbidden"],
    );
}

fn volume(spec: Value) -> Value {
    let mut obj = json!({ "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": "v" }, "spec": {
        "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "csi": { "driver": "d.io", "volumeHandle": "h" } } });
    for (key, value) in spec.as_object().unwrap() {
        obj = with(&obj, &format!("/spec/{key}"), value.clone());
    }
    obj
}

#[test]
fn volume_needs_capacity_modes_and_one_source() {
    refused(
        volume(json!({ "capacity": null })),
        &["spec.capacity: Required value", "spec.capacity: Unsupported value"],
    );
    refused(volume(json!({ "accessModes": [] })), &["spec.accessModes: Required value"]);
    refused(volume(json!({ "csi": null })), &["spec: Required value: must specify a volume type"]);
    refused(
        volume(json!({ "hostPath": { "path": "/x" } })),
        &["spec.csi: Forbidden: may not specify more than 1 volume type"],
    );
    refused(volume(json!({ "csi": { "driver": "d" } })), &["spec.csi.volumeHandle: Required value"]);
    refused(
        volume(json!({ "csi": null, "local": { "path": "/x" } })),
        &["spec.nodeAffinity: Required value: Local volume requires node affinity"],
    );
}

#[test]
fn volume_keeps_source_mode_and_affinity() {
    let old = stored(volume(json!({})));
    change(
        &old,
        "/spec/csi/volumeHandle",
        json!("i"),
        &["spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation"],
    );
    change(&old, "/spec/csi/controllerExpandSecretRef", json!({ "name": "a", "namespace": "b" }), &[]);
    change(&old, "/spec/volumeMode", json!("Block"), &["volumeMode: Invalid value"]);
    change(&old, "/spec/claimRef", json!({ "name": "c", "namespace": "a" }), &[]);
    change(&old, "/spec/persistentVolumeReclaimPolicy", json!("Delete"), &[]);
    let affinity = |key: &str| {
        json!({ "required": { "nodeSelectorTerms": [{ "matchExpressions": [
            { "key": key, "operator": "In", "values": ["a"] }] }] } })
    };
    change(&old, "/spec/nodeAffinity", affinity("zone"), &[]);
    let old = stored(volume(json!({ "nodeAffinity": affinity("failure-domain.beta.kubernetes.io/zone") })));
    change(&old, "/spec/nodeAffinity", affinity("topology.kubernetes.io/zone"), &[]);
    change(&old, "/spec/nodeAffinity", affinity("rack"), &["nodeAffinity: Invalid value"]);
}

#[test]
fn storage_class_fields_are_immutable() {
    let class = json!({ "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": "s" },
        "provisioner": "p.io", "parameters": { "a": "b" } });
    let old = stored(class.clone());
    for (field, value) in [
        ("provisioner", json!("q.io")),
        ("parameters", json!({ "a": "c" })),
        ("reclaimPolicy", json!("Retain")),
        ("volumeBindingMode", json!("WaitForFirstConsumer")),
    ] {
        change(&old, &format!("/{field}"), value, &[&format!("{field}: Invalid value")]);
    }
    change(&old, "/allowVolumeExpansion", json!(true), &[]);
    refused(with(&class, "/provisioner", Value::Null), &["provisioner: Required value"]);
    refused(
        with(&class, "/reclaimPolicy", json!("Recycle")),
        &["reclaimPolicy: Unsupported value: \"Recycle\""],
    );
}

#[test]
fn attachment_spec_is_immutable_and_has_one_source() {
    let attachment = json!({ "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": { "name": "a" },
        "spec": { "attacher": "d.io", "nodeName": "n", "source": { "persistentVolumeName": "v" } } });
    change(&stored(attachment.clone()), "/spec/nodeName", json!("m"), &["spec: Invalid value"]);
    refused(
        with(&attachment, "/spec/source", json!({})),
        &["spec.source: Required value: must specify exactly one of"],
    );
    refused(with(&attachment, "/spec/attacher", json!("")), &["spec.attacher: Required value"]);
}

#[test]
fn csi_objects() {
    let driver = stored(
        json!({ "apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": { "name": "d.io" } }),
    );
    change(&driver, "/spec/attachRequired", json!(false), &["spec.attachedRequired: Invalid value: false"]);
    change(&driver, "/spec/podInfoOnMount", json!(true), &[]);
    let node =
        stored(json!({ "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": { "name": "n" },
        "spec": { "drivers": [{ "name": "d.io", "nodeID": "n", "topologyKeys": ["zone"] }] } }));
    change(&node, "/spec/drivers/0/nodeID", json!("m"), &["spec.drivers: Invalid value"]);
    change(&node, "/spec/drivers/0/allocatable", json!({ "count": 3 }), &[]);
    change(&node, "/spec/drivers", json!([]), &[]);
    let capacity = stored(json!({ "apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity",
        "metadata": { "name": "c" }, "storageClassName": "fast", "capacity": "1Gi" }));
    change(&capacity, "/storageClassName", json!("slow"), &["storageClassName: Invalid value"]);
    change(&capacity, "/capacity", json!("2Gi"), &[]);
    let class = stored(json!({ "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass",
        "metadata": { "name": "g" }, "driverName": "d.io", "parameters": { "iops": "1" } }));
    change(
        &class,
        "/parameters",
        json!({ "iops": "2" }),
        &["parameters: Forbidden: updates to parameters are forbidden."],
    );
}
