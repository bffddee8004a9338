//! Rows of `kubectl get`.

use super::{kind_of, now};
use serde_json::{Value, json};

/// The cells of `obj`, those of `-o wide` included.
fn shows(obj: Value, cells: Value) {
    assert_eq!(Value::Array(kind_of(&obj).row(&obj, now())), cells);
}

const CREATED: &str = "2024-05-01T04:08:09Z";

#[test]
fn volume() {
    shows(
        json!({ "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": "v", "creationTimestamp": CREATED },
            "spec": { "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain", "claimRef": { "namespace": "a", "name": "b" },
                "storageClassName": "fast", "volumeMode": "Filesystem" },
            "status": { "phase": "Bound" } }),
        json!(["v", "1Gi", "RWO,RWX", "Retain", "Bound", "a/b", "fast", "<unset>", "", "5d3h", "Filesystem"]),
    );
}

#[test]
fn claim_before_and_after_binding() {
    let pending = json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": { "name": "c", "creationTimestamp": CREATED },
        "spec": { "volumeMode": "Block" }, "status": { "phase": "Pending" } });
    shows(pending.clone(), json!(["c", "Pending", "", "", "", "", "<unset>", "5d3h", "Block"]));
    let mut bound = pending;
    bound["spec"]["volumeName"] = "v".into();
    bound["status"] =
        json!({ "phase": "Bound", "capacity": { "storage": "2Gi" }, "accessModes": ["ReadWriteOncePod"] });
    bound["metadata"]["deletionTimestamp"] = CREATED.into();
    shows(bound, json!(["c", "Terminating", "v", "2Gi", "RWOP", "", "<unset>", "5d3h", "Block"]));
}

#[test]
fn default_storage_class() {
    shows(
        json!({ "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "p", "metadata": {
            "name": "s", "annotations": { "storageclass.kubernetes.io/is-default-class": "true" } } }),
        json!(["s (default)", "p", "Delete", "Immediate", false, "<unknown>"]),
    );
}

#[test]
fn pod_that_crashes() {
    shows(
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p", "creationTimestamp": CREATED },
            "spec": { "containers": [{ "name": "a" }, { "name": "b" }], "nodeName": "n" },
            "status": { "phase": "Running", "containerStatuses": [
                { "name": "a", "ready": true, "state": { "running": {} } },
                { "name": "b", "restartCount": 3, "state": { "waiting": { "reason": "CrashLoopBackOff" } },
                  "lastState": { "terminated": { "finishedAt": "2024-05-06T07:05:09Z" } } }] } }),
        json!(["p", "1/2", "CrashLoopBackOff", "3 (3m ago)", "5d3h", "<none>", "n", "<none>", "<none>"]),
    );
}

#[test]
fn node_with_roles() {
    shows(
        json!({ "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": "n", "labels": { "node-role.kubernetes.io/worker": "" } },
            "spec": { "unschedulable": true },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }],
                "nodeInfo": { "kubeletVersion": "v1.36.3", "kernelVersion": "6.1", "architecture": "amd64" } } }),
        json!([
            "n",
            "Ready,SchedulingDisabled",
            "worker",
            "<unknown>",
            "v1.36.3",
            "<none>",
            "<none>",
            "<unknown>",
            "6.1 (amd64)",
            "<unknown>"
        ]),
    );
}

#[test]
fn event_of_either_face() {
    let cells =
        json!(["3h", "Normal", "Bound", "persistentvolumeclaim/c", "", "binder, b-0", "done", "3h", 1, "e"]);
    shows(
        json!({ "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": { "name": "e" }, "note": "done",
            "regarding": { "kind": "PersistentVolumeClaim", "name": "c" }, "reason": "Bound", "type": "Normal",
            "eventTime": "2024-05-06T04:08:09.000000Z", "reportingController": "binder", "reportingInstance": "b-0" }),
        cells.clone(),
    );
    shows(
        json!({ "apiVersion": "v1", "kind": "Event", "metadata": { "name": "e" }, "message": "done",
            "involvedObject": { "kind": "PersistentVolumeClaim", "name": "c" }, "reason": "Bound", "type": "Normal",
            "firstTimestamp": "2024-05-06T04:08:09Z", "source": { "component": "binder", "host": "b-0" } }),
        cells,
    );
}

#[test]
fn kinds_without_a_printer_show_when_they_were_created() {
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": { "name": "r", "creationTimestamp": CREATED } });
    let columns = kind_of(&role).columns();
    assert_eq!((columns[1].name, columns[1].kind), ("Created At", "date"));
    shows(role, json!(["r", CREATED]));
}
