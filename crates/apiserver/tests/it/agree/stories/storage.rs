//! Claims, volumes, classes and what belongs to them.

use super::*;

pub fn storage() -> Vec<Story> {
    const PVC: &str = "/api/v1/namespaces/{ns}/persistentvolumeclaims";
    const PV: &str = "/api/v1/persistentvolumes";
    let claim = |name: &str, spec: Value| json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec});
    let volume = |name: &str, spec: Value| json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec});
    let good = || json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}});
    vec![
        story(
            "claims",
            vec![
                post(
                    PVC,
                    claim(
                        "a",
                        json!({"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}),
                    ),
                ),
                post(
                    PVC,
                    claim(
                        "b",
                        json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}),
                    ),
                ),
                post(PVC, claim("c", json!({"resources": {"requests": {"storage": "1Gi"}}}))),
                post(
                    PVC,
                    claim(
                        "c",
                        json!({"accessModes": ["Nonsense"], "resources": {"requests": {"storage": "-1Gi"}}}),
                    ),
                ),
                post(PVC, claim("c", json!({"accessModes": ["ReadWriteOnce"]}))),
                merge_patch(&format!("{PVC}/a"), json!({"spec": {"accessModes": ["ReadWriteMany"]}})),
                merge_patch(&format!("{PVC}/a"), json!({"spec": {"volumeName": "v"}})),
                merge_patch(
                    &format!("{PVC}/a/status"),
                    json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}}),
                ),
                merge_patch(
                    &format!("{PVC}/a"),
                    json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}}),
                ),
                merge_patch(
                    &format!("{PVC}/a"),
                    json!({"spec": {"resources": {"requests": {"storage": "512Mi"}}}}),
                ),
                merge_patch(&format!("{PVC}/a"), json!({"spec": {"storageClassName": "x"}})),
                delete(&format!("{PVC}/a")),
                get_as(&format!("{PVC}/b"), "application/json;as=Table;v=v1;g=meta.k8s.io"),
            ],
        ),
        story(
            "volumes",
            vec![
                post(PV, volume("{ns}-a", good())),
                post(PV, volume("{ns}-b", json!({"accessModes": ["ReadWriteOnce"]}))),
                post(
                    PV,
                    volume(
                        "{ns}-b",
                        json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}),
                    ),
                ),
                post(
                    PV,
                    volume(
                        "{ns}-b",
                        json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}, "nfs": {"server": "s", "path": "/p"}}),
                    ),
                ),
                post(
                    PV,
                    volume(
                        "{ns}-c",
                        json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Delete", "storageClassName": "s", "csi": {"driver": "d.e", "volumeHandle": "h"}}),
                    ),
                ),
                merge_patch(
                    "/api/v1/persistentvolumes/{ns}-c",
                    json!({"spec": {"csi": {"volumeHandle": "i"}}}),
                ),
                merge_patch(
                    "/api/v1/persistentvolumes/{ns}-c",
                    json!({"spec": {"capacity": {"storage": "2Gi"}, "persistentVolumeReclaimPolicy": "Retain", "claimRef": {"namespace": "n", "name": "c"}}}),
                ),
                merge_patch(
                    "/api/v1/persistentvolumes/{ns}-c/status",
                    json!({"status": {"phase": "Available"}}),
                ),
                get_as("/api/v1/persistentvolumes/{ns}-c", "application/json;as=Table;v=v1;g=meta.k8s.io"),
                delete("/api/v1/persistentvolumes/{ns}-a"),
            ],
        ),
        story(
            "classes",
            vec![
                post(
                    "/apis/storage.k8s.io/v1/storageclasses",
                    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "{ns}"}, "provisioner": "p.q/r"}),
                ),
                post(
                    "/apis/storage.k8s.io/v1/storageclasses",
                    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "{ns}-x"}, "provisioner": "", "volumeBindingMode": "Never"}),
                ),
                merge_patch("/apis/storage.k8s.io/v1/storageclasses/{ns}", json!({"provisioner": "other"})),
                merge_patch("/apis/storage.k8s.io/v1/storageclasses/{ns}", json!({"parameters": {"a": "b"}})),
                merge_patch(
                    "/apis/storage.k8s.io/v1/storageclasses/{ns}",
                    json!({"allowVolumeExpansion": true}),
                ),
                delete("/apis/storage.k8s.io/v1/storageclasses/{ns}"),
            ],
        ),
        story(
            "attachments, drivers and nodes",
            vec![
                post(
                    "/apis/storage.k8s.io/v1/volumeattachments",
                    json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": "{ns}"}, "spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "p"}}}),
                ),
                merge_patch(
                    "/apis/storage.k8s.io/v1/volumeattachments/{ns}",
                    json!({"spec": {"nodeName": "m"}}),
                ),
                merge_patch(
                    "/apis/storage.k8s.io/v1/volumeattachments/{ns}/status",
                    json!({"status": {"attached": true}}),
                ),
                delete("/apis/storage.k8s.io/v1/volumeattachments/{ns}"),
                post(
                    "/apis/storage.k8s.io/v1/csidrivers",
                    json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "{ns}.d"}, "spec": {}}),
                ),
                merge_patch(
                    "/apis/storage.k8s.io/v1/csidrivers/{ns}.d",
                    json!({"spec": {"attachRequired": false}}),
                ),
                post(
                    "/apis/storage.k8s.io/v1/csinodes",
                    json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "{ns}"}, "spec": {"drivers": [{"name": "d.e", "nodeID": "n", "topologyKeys": ["k"]}]}}),
                ),
                post(
                    "/apis/storage.k8s.io/v1/namespaces/{ns}/csistoragecapacities",
                    json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity", "metadata": {"name": "c"}, "storageClassName": "s", "capacity": "1Gi"}),
                ),
                post(
                    "/apis/storage.k8s.io/v1/namespaces/{ns}/csistoragecapacities",
                    json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity", "metadata": {"name": "d"}, "storageClassName": "", "capacity": "1Gi"}),
                ),
            ],
        ),
    ]
}
