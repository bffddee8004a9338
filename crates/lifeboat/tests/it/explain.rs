//! `lifeboat explain`, by itself and as a plugin of kubectl: what it says and how it exits.

use crate::binder::{bound, claim, volume};
use crate::process::{Up, client};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::{Api, PostParams};
use kube::runtime::wait::await_condition;
use lifeboat_reference::{Binaries, skip};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn explain(data: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lifeboat"))
        .args(["explain", "pvc", "--kubeconfig"])
        .arg(data.join("kubeconfig"))
        .args(more)
        .output()
        .expect("ran")
}

/// A cluster with a bound claim `c` and a claim `big` that one volume nearly fits.
async fn scene(data: &Path) -> Up {
    let up = Up::start(data, &["--clusters", "hub"]);
    let hub = client(data, "hub").await;
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(hub.clone(), "default");
    let volumes: Api<PersistentVolume> = Api::all(hub);
    let new = PostParams::default();
    volumes.create(&new, &volume("v", "1Gi")).await.expect("a volume");
    claims.create(&new, &claim("c", "1Gi")).await.expect("a claim");
    await_condition(claims.clone(), "c", bound).await.expect("a watch");
    volumes.create(&new, &volume("near", "2Gi")).await.expect("a volume");
    claims.create(&new, &claim("big", "3Gi")).await.expect("a claim");
    up
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exit_code_says_how_the_claim_is_doing() {
    let data = tempfile::tempdir().expect("folder");
    let _up = scene(data.path()).await;
    let said = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    let fine = explain(data.path(), &["c", "-n", "default"]);
    assert_eq!(fine.status.code(), Some(0), "{fine:?}");
    assert!(said(&fine).starts_with("default/c is bound. It is bound to the volume v."), "{}", said(&fine));
    let waits = explain(data.path(), &["big", "--context", "hub"]);
    assert_eq!(waits.status.code(), Some(3), "{waits:?}");
    assert!(said(&waits).contains("near: too small, 2Gi of 3Gi"), "{}", said(&waits));
    let json = explain(data.path(), &["big", "-o", "json"]);
    let account: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(account["reason"], "NothingFits");
    assert_eq!(account["nearMisses"][0]["volume"], "near");
    assert_eq!(explain(data.path(), &["nobody"]).status.code(), Some(5));
    assert_eq!(explain(data.path(), &["c", "--context", "nowhere"]).status.code(), Some(1));
    assert_eq!(explain(data.path(), &[]).status.code(), Some(2), "a name is needed");
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_runs_it_as_a_plugin() {
    let Ok(kubectl) = Binaries::in_cache().kubectl() else {
        return skip("lifeboat kubectl_runs_it_as_a_plugin", "kubectl is not built: cargo xtask tools");
    };
    let data = tempfile::tempdir().expect("folder");
    let _up = scene(data.path()).await;
    let plugins = tempfile::tempdir().expect("folder");
    let link = plugins.path().join("kubectl-lifeboat");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_lifeboat"), link).expect("a link");
    let output = Command::new(kubectl)
        .args(["lifeboat", "explain", "pvc", "c"])
        .env("PATH", plugins.path())
        .env("KUBECONFIG", data.path().join("kubeconfig"))
        .output()
        .expect("ran");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("bound to the volume v"), "{output:?}");
}

/// kubectl checks what is in a List by the OpenAPI document in protobuf, and by nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn kubectl_checks_and_applies_a_list() {
    let Ok(kubectl) = Binaries::in_cache().kubectl() else {
        return skip("lifeboat kubectl_checks_and_applies_a_list", "kubectl is not built: cargo xtask tools");
    };
    let data = tempfile::tempdir().expect("folder");
    let _up = scene(data.path()).await;
    let apply = |field: &str| {
        let map = serde_json::json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "listed", "namespace": "default"}, field: {"a": "b"},
        });
        let cluster = serde_json::json!({
            "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "DRCluster",
            "metadata": {"name": "far"}, "spec": {"region": "far", "s3ProfileName": "store"},
        });
        let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": [map, cluster]});
        let file = data.path().join("list.json");
        std::fs::write(&file, list.to_string()).expect("written");
        let mut command = Command::new(&kubectl);
        command.arg("apply").arg("-f").arg(file).env("KUBECONFIG", data.path().join("kubeconfig"));
        command.output().expect("ran")
    };
    let refused = apply("dota");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("unknown field \"dota\""), "{refused:?}");
    let applied = apply("data");
    assert_eq!(applied.status.code(), Some(0), "{applied:?}");
    assert!(String::from_utf8_lossy(&applied.stdout).contains("far created"), "{applied:?}");
}
