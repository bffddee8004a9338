//! The binder inside `lifeboat up`: there unless it is left out.

use crate::process::{Up, client};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume, PersistentVolumeClaim};
use kube::api::{Api, PostParams};
use kube::runtime::wait::await_condition;
use serde_json::json;

pub fn volume(name: &str, size: &str) -> PersistentVolume {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "none.example.io", "volumeHandle": name},
        },
    }))
    .expect("a volume")
}

pub fn claim(name: &str, size: &str) -> PersistentVolumeClaim {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "storageClassName": "",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
        },
    }))
    .expect("a claim")
}

fn phase(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.status.as_ref()?.phase.as_deref()
}

pub fn bound(claim: Option<&PersistentVolumeClaim>) -> bool {
    claim.and_then(phase) == Some("Bound")
}

async fn pair(client: &kube::Client) -> (Api<PersistentVolumeClaim>, Api<PersistentVolume>) {
    let claims = Api::namespaced(client.clone(), "default");
    let volumes = Api::all(client.clone());
    volumes.create(&PostParams::default(), &volume("v", "1Gi")).await.expect("a volume");
    claims.create(&PostParams::default(), &claim("c", "1Gi")).await.expect("a claim");
    (claims, volumes)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_cluster_binds_claims_by_itself() {
    let data = tempfile::tempdir().expect("folder");
    let up = Up::start(data.path(), &["--clusters", "hub,east"]);
    for context in ["hub", "east"] {
        let (claims, _) = pair(&client(data.path(), context).await).await;
        let bound = await_condition(claims, "c", bound).await.expect("a watch").expect("a claim");
        let finalizers = bound.metadata.finalizers.unwrap_or_default();
        assert!(finalizers.contains(&"kubernetes.io/pvc-protection".to_owned()), "{finalizers:?}");
    }
    assert_eq!(up.interrupt(), Some(0), "Ctrl-C is a clean end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_the_binder_leaves_claims_alone() {
    let data = tempfile::tempdir().expect("folder");
    let up = Up::start(data.path(), &["--clusters", "hub", "--without", "binder"]);
    let hub = client(data.path(), "hub").await;
    let (claims, volumes) = pair(&hub).await;
    // Time enough for a binder: it needs four writes, and these are many more.
    let maps = Api::<ConfigMap>::namespaced(hub, "default");
    for n in 0..200 {
        let map = serde_json::from_value(json!({"metadata": {"name": format!("m{n}")}})).expect("a map");
        maps.create(&PostParams::default(), &map).await.expect("a write");
    }
    assert_eq!(phase(&claims.get("c").await.expect("a claim")), Some("Pending"));
    let volume = volumes.get("v").await.expect("a volume");
    assert_eq!(volume.status.expect("a status").phase.as_deref(), Some("Pending"));
    assert_eq!(up.interrupt(), Some(0));
    // Started with it, it finds what was left.
    let _up = Up::start(data.path(), &["--clusters", "hub"]);
    let claims = Api::namespaced(client(data.path(), "hub").await, "default");
    await_condition(claims, "c", bound).await.expect("a watch");
}
