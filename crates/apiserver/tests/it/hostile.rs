//! Requests that make no sense: a clear refusal, nothing written, nobody hurt.

use crate::support::{Embedded, send};
use serde_json::json;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(start_paused = true)]
async fn what_cannot_be_answered_is_not_carried_out() {
    let cluster = Embedded::start();
    let client = cluster.client();
    let body = || json!({"metadata": {"name": "z"}}).to_string().into_bytes();
    let json_body = ("content-type", "application/json");
    let refused = send(&client, "POST", MAPS, &[json_body, ("accept", "text/html")], body()).await;
    assert_eq!(refused.code, 406);
    let refused = send(&client, "POST", &format!("{MAPS}?includeObject=x"), &[json_body], body()).await;
    assert_eq!(refused.code, 400);
    assert_eq!(send(&client, "GET", &format!("{MAPS}/z"), &[], Vec::new()).await.code, 404);
    assert_eq!(send(&client, "POST", MAPS, &[json_body], body()).await.code, 201);
    let refused = send(&client, "DELETE", &format!("{MAPS}/z?includeObject=x"), &[], Vec::new()).await;
    assert_eq!(refused.code, 400);
    assert_eq!(send(&client, "GET", &format!("{MAPS}/z"), &[], Vec::new()).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn bodies_of_the_wrong_shape_are_refused() {
    let cluster = Embedded::start();
    let client = cluster.client();
    let rows = [
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json!("x")),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json!([1])),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json!({"spec": "x"})),
        ("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", json!("x")),
        ("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", json!({"spec": ["x"]})),
        ("POST", "/api/v1/namespaces/default/pods/a/eviction", json!("x")),
        ("PUT", "/apis/apps/v1/namespaces/default/deployments/a/scale", json!("x")),
        ("POST", MAPS, json!({"apiVersion": 1, "kind": "ConfigMap", "metadata": {"name": "a"}})),
        ("POST", MAPS, json!({"metadata": "a"})),
    ];
    for (method, path, body) in rows {
        let answer = send(
            &client,
            method,
            path,
            &[("content-type", "application/json")],
            body.to_string().into_bytes(),
        )
        .await;
        assert_eq!(answer.code, 400, "{method} {path} {body}: {}", answer.body);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_for_ever_is_one_that_ends() {
    let cluster = Embedded::start();
    let began = tokio::time::Instant::now();
    let path = format!("{MAPS}?watch=true&timeoutSeconds={}", u64::MAX);
    assert_eq!(send(&cluster.client(), "GET", &path, &[], Vec::new()).await.code, 200);
    assert_eq!(began.elapsed().as_secs(), 24 * 3600);
}
