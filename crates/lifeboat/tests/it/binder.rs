//! The binder inside `lifeboat up`: there unless it is left out.

use crate::process::{Up, client};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume, PersistentVolumeClaim};
use kube::api::{Api, PostParams};
use kube::runtime::wait::await_condition;
use serde_json::json;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

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

/// One HTTP request, the whole answer as text.
fn ask(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("connected");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("asked");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binder_of_its_own_serves_its_metrics() {
    let data = tempfile::tempdir().expect("folder");
    let _up = Up::start(data.path(), &["--clusters", "hub", "--without", "binder"]);
    let (claims, _) = pair(&client(data.path(), "hub").await).await;
    let binder = Command::new(env!("CARGO_BIN_EXE_lifeboat"))
        .args(["binder", "--alone", "--metrics", "127.0.0.1:0", "--kubeconfig"])
        .arg(data.path().join("kubeconfig"))
        .stdout(Stdio::piped())
        .spawn();
    let mut binder = Ends(binder.expect("started"));
    let mut said = String::new();
    BufReader::new(binder.0.stdout.take().expect("piped")).read_line(&mut said).expect("a line");
    let (_, address) = said.split_once("http://").expect("an address");
    let address = address.trim_end().trim_end_matches("/metrics");
    await_condition(claims, "c", bound).await.expect("a watch");
    let metrics = ask(address, "/metrics");
    for line in [
        "pv_collector_bound_pv_count{storage_class=\"\"} 1",
        "lifeboat_effects_total{controller=\"claims\",effect=\"Reserve\",result=\"ok\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    assert!(ask(address, "/healthz").ends_with("ok"));
    assert!(ask(address, "/other").starts_with("HTTP/1.1 404"));
}

/// A process that ends with the test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        // Ended already, as a rule.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
