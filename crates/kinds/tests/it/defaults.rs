//! What the server fills in.

use super::{create, kind_of};
use serde_json::{Value, json};

/// Defaulting `obj` gives these values.
fn defaults(mut obj: Value, expected: &[(&str, Value)]) {
    kind_of(&obj).default(&mut obj);
    for (pointer, value) in expected {
        assert_eq!(obj.pointer(pointer).unwrap_or(&Value::Null), value, "{pointer} of {obj}");
    }
}

#[test]
fn quantities_become_canonical() {
    for (text, canonical) in [
        (json!("1024Mi"), "1Gi"),
        (json!("1.5Gi"), "1536Mi"),
        (json!("0.5Gi"), "512Mi"),
        (json!("1000m"), "1"),
        (json!("1500m"), "1500m"),
        (json!("0.1"), "100m"),
        (json!("1e3"), "1e3"),
        (json!("12e6"), "12e6"),
        (json!("1000"), "1k"),
        (json!("1023"), "1023"),
        (json!(1_073_741_824), "1073741824"),
        (json!("0Gi"), "0"),
        (json!("0.3Ki"), "307200m"),
        (json!("100n"), "1m"),
        (json!("-1024Mi"), "-1Gi"),
    ] {
        let obj = json!({ "apiVersion": "v1", "kind": "ResourceQuota", "spec": { "hard": { "cpu": text } } });
        defaults(obj, &[("/spec/hard/cpu", json!(canonical))]);
    }
}

#[test]
fn nulls_and_empty_optional_fields_go_and_required_structs_come() {
    let obj = json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": { "name": "a", "creationTimestamp": null, "labels": {} },
        "spec": { "storageClassName": "", "volumeName": "" } });
    defaults(
        obj,
        &[
            ("/metadata", json!({ "name": "a" })),
            ("/spec", json!({ "storageClassName": "", "resources": {}, "volumeMode": "Filesystem" })),
            ("/status/phase", json!("Pending")),
        ],
    );
}

#[test]
fn volumes_and_classes() {
    defaults(
        json!({ "apiVersion": "v1", "kind": "PersistentVolume", "spec": { "hostPath": { "path": "/x" } } }),
        &[
            ("/spec/persistentVolumeReclaimPolicy", json!("Retain")),
            ("/spec/volumeMode", json!("Filesystem")),
            ("/spec/hostPath/type", json!("")),
            ("/status/phase", json!("Pending")),
        ],
    );
    defaults(
        json!({ "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "x" }),
        &[
            ("/reclaimPolicy", json!("Delete")),
            ("/volumeBindingMode", json!("Immediate")),
            ("/allowVolumeExpansion", Value::Null),
        ],
    );
    defaults(
        json!({ "apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver" }),
        &[(
            "/spec",
            json!({ "attachRequired": true, "podInfoOnMount": false, "storageCapacity": false, "requiresRepublish": false,
            "seLinuxMount": false, "fsGroupPolicy": "ReadWriteOnceWithFSType", "volumeLifecycleModes": ["Persistent"] }),
        )],
    );
}

#[test]
fn pods_and_their_containers() {
    let obj = json!({ "apiVersion": "v1", "kind": "Pod", "spec": {
        "containers": [
            { "name": "a", "image": "x", "livenessProbe": { "httpGet": { "port": 80 } },
              "resources": { "limits": { "cpu": "1" } }, "ports": [{ "containerPort": 80 }] },
            { "name": "b", "image": "reg:5000/x:v1" },
            { "name": "c", "image": "x@sha256:00" },
        ],
        "volumes": [{ "name": "v" }, { "name": "s", "secret": { "secretName": "s" } }] } });
    defaults(
        obj,
        &[
            ("/spec/restartPolicy", json!("Always")),
            ("/spec/dnsPolicy", json!("ClusterFirst")),
            ("/spec/terminationGracePeriodSeconds", json!(30)),
            ("/spec/securityContext", json!({})),
            ("/spec/schedulerName", json!("default-scheduler")),
            ("/spec/enableServiceLinks", json!(true)),
            ("/spec/containers/0/imagePullPolicy", json!("Always")),
            ("/spec/containers/1/imagePullPolicy", json!("IfNotPresent")),
            ("/spec/containers/2/imagePullPolicy", json!("IfNotPresent")),
            ("/spec/containers/0/ports/0/protocol", json!("TCP")),
            ("/spec/containers/0/resources/requests/cpu", json!("1")),
            ("/spec/containers/0/livenessProbe/periodSeconds", json!(10)),
            ("/spec/containers/0/livenessProbe/httpGet/scheme", json!("HTTP")),
            ("/spec/containers/1/resources", json!({})),
            ("/spec/volumes/0/emptyDir", json!({})),
            ("/spec/volumes/1/secret/defaultMode", json!(420)),
        ],
    );
}

#[test]
fn services_by_type() {
    let service = |spec: Value| json!({ "apiVersion": "v1", "kind": "Service", "spec": spec });
    defaults(
        service(json!({ "ports": [{ "port": 80 }] })),
        &[
            ("/spec/type", json!("ClusterIP")),
            ("/spec/sessionAffinity", json!("None")),
            ("/spec/internalTrafficPolicy", json!("Cluster")),
            ("/spec/ports/0", json!({ "port": 80, "protocol": "TCP", "targetPort": 80 })),
        ],
    );
    defaults(
        service(json!({ "type": "LoadBalancer" })),
        &[
            ("/spec/externalTrafficPolicy", json!("Cluster")),
            ("/spec/allocateLoadBalancerNodePorts", json!(true)),
        ],
    );
    defaults(service(json!({ "type": "ExternalName" })), &[("/spec/internalTrafficPolicy", Value::Null)]);
}

#[test]
fn workloads() {
    let of = |api_version: &str, kind: &str| json!({ "apiVersion": api_version, "kind": kind, "spec": {} });
    defaults(
        of("apps/v1", "Deployment"),
        &[
            ("/spec/replicas", json!(1)),
            ("/spec/strategy/rollingUpdate", json!({ "maxSurge": "25%", "maxUnavailable": "25%" })),
            ("/spec/progressDeadlineSeconds", json!(600)),
        ],
    );
    defaults(
        of("apps/v1", "StatefulSet"),
        &[
            ("/spec/podManagementPolicy", json!("OrderedReady")),
            ("/spec/updateStrategy", json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": 0 } })),
            (
                "/spec/persistentVolumeClaimRetentionPolicy",
                json!({ "whenDeleted": "Retain", "whenScaled": "Retain" }),
            ),
        ],
    );
    defaults(
        of("batch/v1", "Job"),
        &[
            ("/spec/completions", json!(1)),
            ("/spec/backoffLimit", json!(6)),
            ("/spec/podReplacementPolicy", json!("TerminatingOrFailed")),
        ],
    );
    defaults(of("batch/v1", "CronJob"), &[("/spec/concurrencyPolicy", json!("Allow"))]);
}

#[test]
fn definitions_get_names_and_no_conversion() {
    let obj = json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "spec": { "names": { "kind": "Boat", "plural": "boats" }, "versions": [{ "name": "v1", "storage": true }] } });
    defaults(
        obj,
        &[
            ("/spec/names/singular", json!("boat")),
            ("/spec/names/listKind", json!("BoatList")),
            ("/spec/conversion", json!({ "strategy": "None" })),
            ("/status/storedVersions", json!(["v1"])),
        ],
    );
}

#[test]
fn subjects_get_their_group() {
    let obj = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "subjects": [{ "kind": "User", "name": "u" }, { "kind": "ServiceAccount", "name": "s" }],
        "roleRef": { "kind": "Role", "name": "r" } });
    defaults(
        obj,
        &[
            ("/subjects/0/apiGroup", json!("rbac.authorization.k8s.io")),
            ("/subjects/1/apiGroup", Value::Null),
            ("/roleRef/apiGroup", json!("rbac.authorization.k8s.io")),
        ],
    );
}

#[test]
fn namespaces_carry_their_name_and_finalizer() {
    let (obj, errors) =
        create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "boat" } }));
    assert_eq!(errors, [""; 0]);
    assert_eq!(obj["metadata"]["labels"]["kubernetes.io/metadata.name"], "boat");
    assert_eq!(obj["spec"]["finalizers"], json!(["kubernetes"]));
    assert_eq!(obj["status"]["phase"], "Active");
}
