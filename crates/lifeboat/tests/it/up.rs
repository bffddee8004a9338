//! `lifeboat up`: contexts, persistence, kill -9, Ctrl-C.

use crate::process::{Up, client};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, PostParams};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"name": name}})).expect("a config map")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_cluster_has_a_context_and_keeps_to_itself() {
    let data = tempfile::tempdir().expect("folder");
    let up = Up::start(data.path(), &["--clusters", "hub,east"]);
    let maps = |client| Api::<ConfigMap>::namespaced(client, "default");
    let (hub, east) = (client(data.path(), "hub").await, client(data.path(), "east").await);
    maps(hub.clone()).create(&PostParams::default(), &map("only-here")).await.expect("created");
    assert!(maps(hub.clone()).get_opt("only-here").await.expect("asked").is_some());
    assert!(maps(east).get_opt("only-here").await.expect("asked").is_none());
    let served = hub.list_api_groups().await.expect("discovery").groups;
    assert!(served.iter().any(|group| group.name == "ramendr.openshift.io"), "our kinds are installed");
    assert!(up.said.contains("kubectl --context east get namespaces"), "{}", up.said);
    assert_eq!(up.interrupt(), Some(0), "Ctrl-C is a clean end");
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_9_under_load_loses_no_acknowledged_write() {
    let data = tempfile::tempdir().expect("folder");
    let folder = data.path().to_owned();
    let mut acknowledged = Vec::new();
    for round in 0..3 {
        let up = Up::start(&folder, &["--clusters", "hub", "--bare"]);
        let hub = client(&folder, "hub").await;
        let count = Arc::new(AtomicU32::new(0));
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let (maps, count) = (Api::<ConfigMap>::namespaced(hub.clone(), "default"), count.clone());
                tokio::spawn(async move {
                    let mut done = Vec::new();
                    for n in 0.. {
                        let name = format!("r{round}-w{writer}-{n}");
                        match maps.create(&PostParams::default(), &map(&name)).await {
                            Ok(_) => done.push(name),
                            Err(_) => break,
                        }
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                    done
                })
            })
            .collect();
        while count.load(Ordering::Relaxed) < 200 {
            tokio::task::yield_now().await;
        }
        up.kill();
        for writer in writers {
            acknowledged.extend(writer.await.expect("a writer"));
        }
    }
    let up = Up::start(&folder, &["--clusters", "hub", "--bare"]);
    let maps = Api::<ConfigMap>::namespaced(client(&folder, "hub").await, "default");
    let found = maps.list(&ListParams::default()).await.expect("listed").items;
    let found: std::collections::BTreeSet<String> =
        found.into_iter().filter_map(|item| item.metadata.name).collect();
    let lost: Vec<_> = acknowledged.iter().filter(|name| !found.contains(*name)).collect();
    assert!(
        acknowledged.len() >= 600 && lost.is_empty(),
        "of {} acknowledged writes lost {lost:?}",
        acknowledged.len()
    );
    drop(up);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_credentials_and_objects() {
    let data = tempfile::tempdir().expect("folder");
    let up = Up::start(data.path(), &["--clusters", "hub", "--bare"]);
    let hub = client(data.path(), "hub").await;
    let made: Namespace = serde_json::from_value(json!({"metadata": {"name": "kept"}})).expect("a namespace");
    let made = Api::<Namespace>::all(hub).create(&PostParams::default(), &made).await.expect("created");
    let authority = std::fs::read(data.path().join("hub/pki/ca.crt")).expect("an authority");
    assert_eq!(up.interrupt(), Some(0));
    let _up = Up::start(data.path(), &["--clusters", "hub", "--bare"]);
    let hub = client(data.path(), "hub").await;
    let found = Api::<Namespace>::all(hub).get("kept").await.expect("kept");
    assert_eq!(found.metadata.uid, made.metadata.uid);
    assert_eq!(std::fs::read(data.path().join("hub/pki/ca.crt")).expect("an authority"), authority);
}

#[test]
fn a_bad_name_is_refused_before_anything_is_made() {
    let data = tempfile::tempdir().expect("folder");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_lifeboat"))
        .args(["up", "--clusters", "East!", "--data"])
        .arg(data.path().join("new"))
        .output()
        .expect("ran");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("\"East!\" is no cluster name: use"), "{said}");
    assert!(!data.path().join("new").exists());
}

#[test]
fn crds_prints_what_can_be_applied() {
    let output =
        std::process::Command::new(env!("CARGO_BIN_EXE_lifeboat")).arg("crds").output().expect("ran");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(text.matches("kind: CustomResourceDefinition").count(), lifeboat_api::crds().len());
}
