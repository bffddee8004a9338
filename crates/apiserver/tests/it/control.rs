//! What a control plane does by itself, in virtual time.

use crate::support::{Embedded, send};
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/kube-public/configmaps";

async fn post(client: &kube::Client, path: &str, body: Value) -> Value {
    let answer =
        send(client, "POST", path, &[("content-type", "application/json")], body.to_string().into_bytes())
            .await;
    assert_eq!(answer.code, 201, "{}", answer.body);
    answer.body
}

async fn delete(client: &kube::Client, path: &str, options: Value) {
    let answer = send(
        client,
        "DELETE",
        path,
        &[("content-type", "application/json")],
        options.to_string().into_bytes(),
    )
    .await;
    assert!(answer.code < 300, "{}", answer.body);
}

async fn get(client: &kube::Client, path: &str) -> (u16, Value) {
    let answer = send(client, "GET", path, &[], Vec::new()).await;
    (answer.code, answer.body)
}

/// In virtual time a minute passes as soon as nothing is left to do.
async fn settle() {
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
}

fn owned(name: &str, owners: &[(&Value, bool)]) -> Value {
    let owners: Vec<Value> = owners
        .iter()
        .map(|(owner, block)| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "blockOwnerDeletion": block}))
        .collect();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": owners}})
}

fn map(name: &str) -> Value {
    owned(name, &[])
}

#[tokio::test(start_paused = true)]
async fn dependents_go_when_the_last_owner_goes() {
    let cluster = Embedded::start();
    let client = cluster.client();
    let (a, b) = (post(&client, MAPS, map("a")).await, post(&client, MAPS, map("b")).await);
    post(&client, MAPS, owned("child", &[(&a, false), (&b, false)])).await;
    delete(&client, &format!("{MAPS}/a"), json!({})).await;
    settle().await;
    let (code, child) = get(&client, &format!("{MAPS}/child")).await;
    assert_eq!((code, child["metadata"]["ownerReferences"].as_array().map(Vec::len)), (200, Some(1)));
    delete(&client, &format!("{MAPS}/b"), json!({})).await;
    settle().await;
    assert_eq!(get(&client, &format!("{MAPS}/child")).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_never_was_takes_its_dependent_along() {
    let cluster = Embedded::start();
    let client = cluster.client();
    let ghost = json!({"metadata": {"name": "ghost", "uid": "no-such-uid"}});
    post(&client, MAPS, owned("child", &[(&ghost, false)])).await;
    settle().await;
    assert_eq!(get(&client, &format!("{MAPS}/child")).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn an_owner_of_an_unknown_kind_proves_nothing() {
    let cluster = Embedded::start();
    let client = cluster.client();
    let mut child = map("child");
    child["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "no.such/v1", "kind": "Thing", "name": "x", "uid": "y"}]);
    post(&client, MAPS, child).await;
    settle().await;
    assert_eq!(get(&client, &format!("{MAPS}/child")).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn in_the_foreground_the_owner_goes_last() {
    let cluster = Embedded::start();
    let client = cluster.client();
    let owner = post(&client, MAPS, map("owner")).await;
    let mut child = owned("child", &[(&owner, true)]);
    child["metadata"]["finalizers"] = json!(["a.b/hold"]);
    post(&client, MAPS, child).await;
    delete(&client, &format!("{MAPS}/owner"), json!({"propagationPolicy": "Foreground"})).await;
    settle().await;
    let (code, owner) = get(&client, &format!("{MAPS}/owner")).await;
    assert_eq!((code, &owner["metadata"]["finalizers"]), (200, &json!(["foregroundDeletion"])));
    let (_, child) = get(&client, &format!("{MAPS}/child")).await;
    assert!(child["metadata"]["deletionTimestamp"].is_string());
    let release = json!({"metadata": {"finalizers": null}}).to_string().into_bytes();
    send(
        &client,
        "PATCH",
        &format!("{MAPS}/child"),
        &[("content-type", "application/merge-patch+json")],
        release,
    )
    .await;
    settle().await;
    assert_eq!(get(&client, &format!("{MAPS}/owner")).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn orphans_stay_and_forget_their_owner() {
    let cluster = Embedded::start();
    let client = cluster.client();
    let owner = post(&client, MAPS, map("owner")).await;
    post(&client, MAPS, owned("child", &[(&owner, true)])).await;
    delete(&client, &format!("{MAPS}/owner"), json!({"propagationPolicy": "Orphan"})).await;
    settle().await;
    let (code, child) = get(&client, &format!("{MAPS}/child")).await;
    assert_eq!((code, &child["metadata"]["ownerReferences"]), (200, &Value::Null));
    assert_eq!(get(&client, &format!("{MAPS}/owner")).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_furnished_and_goes_with_all_it_has() {
    let cluster = Embedded::start();
    let client = cluster.client();
    post(&client, "/api/v1/namespaces", json!({"metadata": {"name": "n"}})).await;
    settle().await;
    assert_eq!(get(&client, "/api/v1/namespaces/n/serviceaccounts/default").await.0, 200);
    assert_eq!(get(&client, "/api/v1/namespaces/n/configmaps/kube-root-ca.crt").await.0, 200);
    let mut held = map("held");
    held["metadata"]["finalizers"] = json!(["a.b/hold"]);
    post(&client, "/api/v1/namespaces/n/configmaps", held).await;
    delete(&client, "/api/v1/namespaces/n", json!({})).await;
    settle().await;
    let (code, namespace) = get(&client, "/api/v1/namespaces/n").await;
    assert_eq!((code, &namespace["status"]["phase"]), (200, &json!("Terminating")));
    let conditions = namespace["status"]["conditions"].as_array().expect("conditions");
    let remaining = conditions.iter().find(|c| c["type"] == "NamespaceFinalizersRemaining").expect("told");
    assert_eq!(remaining["status"], "True");
    assert!(remaining["message"].as_str().is_some_and(|text| text.contains("a.b/hold in 1")), "{remaining}");
    let late = send(
        &client,
        "POST",
        "/api/v1/namespaces/n/configmaps",
        &[("content-type", "application/json")],
        map("late").to_string().into_bytes(),
    )
    .await;
    assert_eq!(
        (late.code, &late.body["details"]["causes"][0]["reason"]),
        (403, &json!("NamespaceTerminating"))
    );
    let release = json!({"metadata": {"finalizers": null}}).to_string().into_bytes();
    send(
        &client,
        "PATCH",
        "/api/v1/namespaces/n/configmaps/held",
        &[("content-type", "application/merge-patch+json")],
        release,
    )
    .await;
    settle().await;
    assert_eq!(get(&client, "/api/v1/namespaces/n").await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_definition_takes_its_instances_along() {
    let cluster = Embedded::start();
    let client = cluster.client();
    let definition = json!({
        "metadata": {"name": "things.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    post(&client, path, definition.clone()).await;
    let things = "/apis/example.org/v1/namespaces/kube-public/things";
    post(
        &client,
        things,
        json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "t"}}),
    )
    .await;
    delete(&client, &format!("{path}/things.example.org"), json!({})).await;
    settle().await;
    assert_eq!(get(&client, &format!("{path}/things.example.org")).await.0, 404);
    assert_eq!(get(&client, things).await.0, 404);
    post(&client, path, definition).await;
    assert_eq!(
        get(&client, things).await.1["items"],
        json!([]),
        "the instances of the old definition are gone"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cluster_at_rest_writes_nothing() {
    let cluster = Embedded::start();
    settle().await;
    let before = cluster.server.cluster().store.revision();
    tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
    assert_eq!(cluster.server.cluster().store.revision(), before);
}
