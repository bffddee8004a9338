//! What is made of stored objects, row by row.

use super::*;
use serde_json::{Value, json};

fn stored() -> PersistentVolume {
    serde_json::from_value(json!({
        "metadata": {
            "name": "pv-1", "uid": "u-1", "resourceVersion": "5", "generation": 3,
            "creationTimestamp": "2026-01-02T03:04:05Z", "deletionTimestamp": "2026-01-02T03:04:05Z",
            "finalizers": ["kubernetes.io/pv-protection"], "labels": {"app": "shop"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "y"}],
            "annotations": {
                "ramendr.openshift.io/destination-volume-handle": "handle-west",
                "volumereplicationgroups.ramendr.openshift.io/vr-archived": "archiveV1-1",
                "volumereplicationgroups.ramendr.openshift.io/vr-retained": "retained",
                "pv.kubernetes.io/bound-by-controller": "yes",
                "pv.kubernetes.io/provisioned-by": "east.example.com",
                "user": "note",
            },
        },
        "spec": {
            "capacity": {"storage": "1Gi"}, "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "fast",
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "shop", "name": "data",
                "uid": "c-1", "resourceVersion": "9"},
            "csi": {"driver": "east.example.com", "volumeHandle": "handle-east", "fsType": "ext4",
                "volumeAttributes": {"clusterID": "east", "pool": "p"},
                "controllerExpandSecretRef": {"name": "old-expand", "namespace": "old"},
                "nodeStageSecretRef": {"name": "old-stage", "namespace": "old"}},
        },
        "status": {"phase": "Bound"},
    }))
    .unwrap()
}

fn class(parameters: Value) -> StorageClass {
    serde_json::from_value(json!({
        "metadata": {"name": "fast"}, "provisioner": "west.example.com", "parameters": parameters,
    }))
    .unwrap()
}

#[test]
fn a_volume_names_its_claim_and_its_handle_here() {
    let restored = volume(stored(), None, Sharing::Copied);
    let expected = json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": "pv-1", "labels": {"app": "shop"}, "annotations": {
            "volumereplicationgroups.ramendr.openshift.io/ramen-restore": "True",
            "volumereplicationgroups.ramendr.openshift.io/vr-retained": "retained",
            "pv.kubernetes.io/provisioned-by": "east.example.com",
            "user": "note",
        }},
        "spec": {
            "capacity": {"storage": "1Gi"}, "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "fast",
            "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "shop", "name": "data"},
            "csi": {"driver": "east.example.com", "volumeHandle": "handle-west", "fsType": "ext4",
                "volumeAttributes": {"clusterID": "east", "pool": "p"},
                "controllerExpandSecretRef": {"name": "old-expand", "namespace": "old"},
                "nodeStageSecretRef": {"name": "old-stage", "namespace": "old"}},
        },
    });
    assert_eq!(serde_json::to_value(&restored).unwrap(), expected);
    assert_eq!(volume(restored.clone(), None, Sharing::Copied), restored, "twice is once");
}

#[test]
fn a_volume_without_a_handle_for_the_peer_keeps_its_own() {
    for handle in [None, Some("")] {
        let mut stored = stored();
        let notes = stored.metadata.annotations.as_mut().unwrap();
        notes.remove(annotations::DESTINATION_VOLUME_HANDLE);
        if let Some(handle) = handle {
            notes.insert(annotations::DESTINATION_VOLUME_HANDLE.to_owned(), handle.to_owned());
        }
        let restored = volume(stored, None, Sharing::Copied);
        assert_eq!(restored.spec.unwrap().csi.unwrap().volume_handle, "handle-east");
        assert!(!restored.metadata.annotations.unwrap().contains_key(annotations::DESTINATION_VOLUME_HANDLE));
    }
}

#[test]
fn the_cluster_id_is_this_clusters_unless_storage_is_shared() {
    let check = |parameters: Value, sharing: Sharing, expected: &str| {
        let restored = volume(stored(), Some(&class(parameters)), sharing);
        let attributes = restored.spec.unwrap().csi.unwrap().volume_attributes.unwrap();
        assert_eq!(attributes["clusterID"], expected);
        assert_eq!(attributes["pool"], "p");
    };
    check(json!({"clusterID": "west"}), Sharing::Copied, "west");
    check(json!({"clusterID": "west"}), Sharing::Shared, "east");
    check(json!({"clusterID": ""}), Sharing::Copied, "east");
    check(json!({}), Sharing::Copied, "east");
    check(json!(null), Sharing::Copied, "east");
}

#[test]
fn d30_each_secret_goes_to_its_own_field() {
    let kinds = ["node-stage", "node-publish", "node-expand", "controller-expand", "controller-publish"];
    let refs = |volume: &PersistentVolume| {
        let csi = volume.spec.as_ref().unwrap().csi.clone().unwrap();
        [
            csi.node_stage_secret_ref,
            csi.node_publish_secret_ref,
            csi.node_expand_secret_ref,
            csi.controller_expand_secret_ref,
            csi.controller_publish_secret_ref,
        ]
        .map(|found| found.and_then(|found| found.name))
    };
    let before = refs(&stored());
    for (index, kind) in kinds.iter().enumerate() {
        let parameters = json!({
            format!("csi.storage.k8s.io/{kind}-secret-name"): kind,
            format!("csi.storage.k8s.io/{kind}-secret-namespace"): "vault",
        });
        let mut expected = before.clone();
        expected[index] = Some((*kind).to_owned());
        assert_eq!(refs(&volume(stored(), Some(&class(parameters)), Sharing::Copied)), expected, "{kind}");
    }
    let parameters = json!({
        "csi.storage.k8s.io/provisioner-secret-name": "prov",
        "csi.storage.k8s.io/provisioner-secret-namespace": "vault",
    });
    let restored = volume(stored(), Some(&class(parameters)), Sharing::Copied);
    assert_eq!(refs(&restored), before);
    let notes = restored.metadata.annotations.unwrap();
    assert_eq!(notes[DELETION_SECRET_NAME], "prov");
    assert_eq!(notes[DELETION_SECRET_NAMESPACE], "vault");
    assert_eq!(notes[PROVISIONED_BY], "west.example.com");
}

#[test]
fn a_claim_keeps_its_volume_and_what_its_user_said() {
    let stored: PersistentVolumeClaim = serde_json::from_value(json!({
        "metadata": {
            "name": "data", "namespace": "shop", "uid": "c-1", "resourceVersion": "9",
            "finalizers": ["kubernetes.io/pvc-protection", "volumereplicationgroups.ramendr.openshift.io/pvc-vr-protection"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "y"}],
            "labels": {"app": "shop"},
            "annotations": {
                "pv.kubernetes.io/bind-completed": "yes",
                "volume.kubernetes.io/storage-provisioner": "x",
                "replication.storage.openshift.io/volume-replication-name": "x",
                "volumereplicationgroups.ramendr.openshift.io/vr-archived": "x",
                "volsync.backube/use-copy-trigger": "x",
                "apps.open-cluster-management.io/hosting-subscription": "x",
                "user": "note",
            },
        },
        "spec": {"volumeName": "pv-1", "resources": {"requests": {"storage": "2Gi"}}},
        "status": {"phase": "Bound"},
    }))
    .unwrap();
    let restored = claim(stored);
    let expected = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "shop", "labels": {"app": "shop"}, "annotations": {
            "apps.open-cluster-management.io/hosting-subscription": "x",
            "volumereplicationgroups.ramendr.openshift.io/ramen-restore": "True",
            "user": "note",
        }},
        "spec": {"volumeName": "pv-1", "resources": {"requests": {"storage": "2Gi"}}},
    });
    assert_eq!(serde_json::to_value(&restored).unwrap(), expected);
}

#[test]
fn odd_objects_do_not_stop_a_restore() {
    let restored = volume(PersistentVolume::default(), Some(&class(json!({}))), Sharing::Copied);
    assert!(restored.spec.is_none());
    let restored = claim(PersistentVolumeClaim::default());
    assert_eq!(restored.metadata.annotations.unwrap()[annotations::RESTORE], "True");
}
