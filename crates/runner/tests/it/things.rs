//! Objects that several tests begin with.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use serde_json::json;

/// A deployment of one container that runs `argv`, with the claim `data` at `/data`.
pub fn deployment(name: &str, replicas: i32, argv: &[&str]) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"namespace": "default", "name": name, "uid": format!("uid-{name}"), "generation": 1},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "containers": [{
                        "name": "main", "image": "none", "command": argv,
                        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    }],
                    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
                },
            },
        },
    }))
    .unwrap()
}

/// The same without a volume.
pub fn plain_deployment(name: &str, replicas: i32, argv: &[&str]) -> Deployment {
    let mut deployment = deployment(name, replicas, argv);
    let spec = deployment.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
    spec.volumes = None;
    spec.containers[0].volume_mounts = None;
    deployment
}

/// A pod of one container that runs `argv` on node `node`.
pub fn pod(name: &str, argv: &[&str]) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"namespace": "default", "name": name, "uid": format!("uid-{name}")},
        "spec": {
            "nodeName": "node",
            "restartPolicy": "Always",
            "containers": [{"name": "main", "image": "none", "command": argv}],
        },
    }))
    .unwrap()
}

/// Says that a pod runs and is ready.
pub fn ready(mut pod: Pod) -> Pod {
    let status = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    pod.status = Some(serde_json::from_value::<PodStatus>(status).unwrap());
    pod
}
