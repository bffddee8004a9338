//! Nothing that was acknowledged is lost, whenever the process dies. The process here is this test's own copy of the
//! store's folder: a crash leaves exactly the bytes that were on disk, so copying the folder at any moment is a crash.

use crate::support::{Embedded, send};
use lifeboat_apiserver::Config;
use serde_json::{Value, json};
use std::path::Path;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn on(folder: &Path) -> Config {
    Config { data: Some(folder.to_owned()), ..Config::default() }
}

async fn create(client: &kube::Client, name: &str) -> Value {
    let body = json!({"metadata": {"name": name}, "data": {"x": name}}).to_string().into_bytes();
    let answer = send(client, "POST", MAPS, &[("content-type", "application/json")], body).await;
    assert_eq!(answer.code, 201, "{}", answer.body);
    answer.body
}

fn crash_copy(from: &Path, to: &Path) {
    for file in ["log", "snapshot"] {
        if from.join(file).exists() {
            std::fs::copy(from.join(file), to.join(file)).expect("copied");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_acknowledged_write_survives_a_crash_right_after_it() {
    let folder = tempfile::tempdir().expect("folder");
    let cluster = Embedded::with(on(folder.path()));
    let client = cluster.client();
    for n in 0..20 {
        let name = format!("m{n}");
        let written = create(&client, &name).await;
        let copy = tempfile::tempdir().expect("folder");
        crash_copy(folder.path(), copy.path());
        let again = Embedded::with(on(copy.path()));
        let found = send(&again.client(), "GET", &format!("{MAPS}/{name}"), &[], Vec::new()).await;
        assert_eq!(found.body, written, "the same object, version and uid");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_and_versions_go_on_after_a_restart() {
    let folder = tempfile::tempdir().expect("folder");
    let definition = json!({
        "metadata": {"name": "things.example.org"},
        "spec": {"group": "example.org", "scope": "Cluster", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]},
    });
    let before = {
        let cluster = Embedded::with(on(folder.path()));
        let client = cluster.client();
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let made = send(
            &client,
            "POST",
            path,
            &[("content-type", "application/json")],
            definition.to_string().into_bytes(),
        )
        .await;
        assert_eq!(made.code, 201, "{}", made.body);
        create(&client, "a").await
    };
    let copy = tempfile::tempdir().expect("folder");
    crash_copy(folder.path(), copy.path());
    let cluster = Embedded::with(on(copy.path()));
    let client = cluster.client();
    assert_eq!(send(&client, "GET", "/apis/example.org/v1/things", &[], Vec::new()).await.code, 200);
    let after = create(&client, "b").await;
    let version = |object: &Value| {
        object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse::<u64>().ok())
    };
    assert!(version(&after) > version(&before), "versions never go back");
    let old = version(&before).expect("a version") - 1;
    let answer = send(
        &client,
        "GET",
        &format!("{MAPS}?watch=true&resourceVersion={old}&timeoutSeconds=1"),
        &[],
        Vec::new(),
    )
    .await;
    assert_eq!(answer.body["object"]["code"], 410, "the past is gone, and says so: {}", answer.body);
}
