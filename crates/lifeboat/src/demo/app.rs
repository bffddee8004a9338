//! The application of the demo, as a user writes it: a claim and a deployment in a ConfigMap of the hub, and a placement that says where it runs.

use serde_json::{Value, json};

/// Its name, and that of its placement and its DRPlacementControl.
pub const NAME: &str = "writer";
/// Its namespace, on the hub and on its clusters.
pub const NAMESPACE: &str = "demo";
/// Its claim.
pub const CLAIM: &str = "records";

/// A claim, and a deployment that writes records into it.
pub fn manifests(class: &str, every_ms: u64) -> String {
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": CLAIM, "labels": {"app": NAME}},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "resources": {"requests": {"storage": "64Mi"}},
        },
    });
    let command = [
        "lifeboat",
        "write-records",
        "--folder=$(LIFEBOAT_VOLUME_RECORDS)",
        &format!("--every={every_ms}"),
        "--writer=$(NODE)",
        "--while-watched",
    ];
    let node = json!({"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": NAME, "labels": {"app": NAME}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": NAME}},
            "template": {
                "metadata": {"labels": {"app": NAME}},
                "spec": {
                    "terminationGracePeriodSeconds": 5,
                    "containers": [{
                        "name": "main", "image": "lifeboat", "command": command, "env": [node],
                        "volumeMounts": [{"name": "records", "mountPath": "/records"}],
                    }],
                    "volumes": [{"name": "records", "persistentVolumeClaim": {"claimName": CLAIM}}],
                },
            },
        },
    });
    format!("{claim}\n---\n{deployment}\n")
}

/// Where the manifests are: what a repository is to a GitOps tool.
pub fn source(class: &str, every_ms: u64) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": NAME, "namespace": NAMESPACE,
            "labels": {lifeboat_api::labels::MANIFESTS_OF: NAME},
        },
        "data": {"app.yaml": manifests(class, every_ms)},
    })
}

/// The placement; whoever protects the application decides it.
pub fn placement() -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {
            "name": NAME, "namespace": NAMESPACE,
            "annotations": {"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"},
        },
        "spec": {"numberOfClusters": 1},
    })
}

/// What protects it.
pub fn protection(policy: &str, home: &str) -> Value {
    json!({
        "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "DRPlacementControl",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "placementRef": {"kind": "Placement", "name": NAME},
            "drPolicyRef": {"name": policy},
            "preferredCluster": home,
            "pvcSelector": {"matchLabels": {"app": NAME}},
        },
    })
}
