//! An embedded cluster is not an open door.

use crate::support::{Embedded, send};
use lifeboat_apiserver::{Config, User};
use serde_json::{Value, json};

async fn ask(client: &kube::Client, method: &str, path: &str, body: Value) -> (u16, Value) {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let answer = send(client, method, path, &[("content-type", "application/json")], body).await;
    (answer.code, answer.body)
}

fn as_user(cluster: &Embedded, user: User) -> kube::Client {
    kube::Client::new(cluster.server.service_as(user), "default")
}

#[tokio::test]
async fn without_credentials_only_health_and_version_are_shown() {
    let cluster = Embedded::start();
    let nobody = kube::Client::new(cluster.server.service(), "default");
    for path in ["/healthz", "/readyz", "/livez", "/version"] {
        assert_eq!(ask(&nobody, "GET", path, Value::Null).await.0, 200, "{path}");
    }
    for path in ["/api/v1/namespaces", "/api", "/openapi/v2", "/api/v1/namespaces/default/secrets"] {
        let (code, body) = ask(&nobody, "GET", path, Value::Null).await;
        assert_eq!(code, 403, "{path}");
        assert!(body["message"].as_str().is_some_and(|text| text.contains("system:anonymous")), "{body}");
    }
}

#[tokio::test]
async fn a_bad_token_is_not_anonymous() {
    let cluster = Embedded::start();
    let nobody = kube::Client::new(cluster.server.service(), "default");
    let answer = send(&nobody, "GET", "/version", &[("authorization", "Bearer nonsense")], Vec::new()).await;
    assert_eq!((answer.code, &answer.body["reason"]), (401, &json!("Unauthorized")));
}

#[tokio::test]
async fn fixed_tokens_name_their_user() {
    let config =
        Config { tokens: [("secret".to_owned(), User::new("ann", &["ops"]))].into(), ..Config::default() };
    let cluster = Embedded::with(config);
    let client = kube::Client::new(cluster.server.service(), "default");
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
        .to_string()
        .into_bytes();
    let headers = [("authorization", "Bearer secret"), ("content-type", "application/json")];
    let answer =
        send(&client, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", &headers, review).await;
    assert_eq!(answer.body["status"]["userInfo"]["username"], "ann");
    assert_eq!(answer.body["status"]["userInfo"]["groups"], json!(["ops", "system:authenticated"]));
}

#[tokio::test]
async fn roles_decide_and_nobody_grants_what_they_do_not_have() {
    let cluster = Embedded::start();
    let (admin, bob) = (cluster.client(), as_user(&cluster, User::new("bob", &[])));
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let role = |name: &str, rules: Value| json!({"metadata": {"name": name}, "rules": rules});
    let rules = json!([
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]},
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": ["create", "patch"]},
    ]);
    assert_eq!(ask(&admin, "POST", &format!("{rbac}/roles"), role("reader", rules)).await.0, 201);
    assert_eq!(ask(&bob, "GET", "/api/v1/namespaces/default/configmaps", Value::Null).await.0, 403);
    let binding = |role: &str, kind: &str| json!({"metadata": {"name": format!("bind-{role}")}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}, "subjects": [{"kind": "User", "name": "bob", "apiGroup": "rbac.authorization.k8s.io"}]});
    assert_eq!(ask(&admin, "POST", &format!("{rbac}/rolebindings"), binding("reader", "Role")).await.0, 201);
    assert_eq!(ask(&bob, "GET", "/api/v1/namespaces/default/configmaps", Value::Null).await.0, 200);
    assert_eq!(ask(&bob, "GET", "/api/v1/namespaces/kube-system/configmaps", Value::Null).await.0, 403);
    assert_eq!(ask(&bob, "GET", "/api/v1/namespaces/default/secrets", Value::Null).await.0, 403);

    let small = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
    assert_eq!(ask(&bob, "POST", &format!("{rbac}/roles"), role("small", small)).await.0, 201);
    let large = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]);
    let (code, body) = ask(&bob, "POST", &format!("{rbac}/roles"), role("large", large.clone())).await;
    assert_eq!(code, 403);
    assert!(body["message"].as_str().is_some_and(|text| text.contains("not currently held")), "{body}");
    assert_eq!(
        ask(&bob, "POST", &format!("{rbac}/rolebindings"), binding("cluster-admin", "ClusterRole")).await.0,
        403
    );
    let patch = json!({"rules": large}).to_string().into_bytes();
    let sneaky = send(
        &bob,
        "PATCH",
        &format!("{rbac}/roles/small"),
        &[("content-type", "application/merge-patch+json")],
        patch,
    )
    .await;
    assert_eq!(sneaky.code, 403, "a patch grants no more than a post");
}

#[tokio::test]
async fn a_service_account_token_is_good_until_its_account_goes() {
    let cluster = Embedded::start();
    let admin = cluster.client();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    ask(&admin, "POST", accounts, json!({"metadata": {"name": "robot"}})).await;
    let (code, token) =
        ask(&admin, "POST", &format!("{accounts}/robot/token"), json!({"spec": {"expirationSeconds": 3600}}))
            .await;
    assert_eq!(code, 201, "{token}");
    let bearer = format!("Bearer {}", token["status"]["token"].as_str().expect("a token"));
    let door = kube::Client::new(cluster.server.service(), "default");
    let review = json!({"kind": "SelfSubjectReview"}).to_string().into_bytes();
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let answer = send(&door, "POST", path, &headers, review.clone()).await;
    assert_eq!(answer.body["status"]["userInfo"]["username"], "system:serviceaccount:default:robot");
    let forged = format!("{bearer}x");
    assert_eq!(
        send(&door, "POST", path, &[("authorization", forged.as_str())], review.clone()).await.code,
        401
    );
    let (code, _) =
        ask(&admin, "POST", &format!("{accounts}/robot/token"), json!({"spec": {"expirationSeconds": 60}}))
            .await;
    assert_eq!(code, 422, "ten minutes at least");
    ask(&admin, "DELETE", &format!("{accounts}/robot"), Value::Null).await;
    ask(&admin, "POST", accounts, json!({"metadata": {"name": "robot"}})).await;
    assert_eq!(
        send(&door, "POST", path, &headers, review).await.code,
        401,
        "another account of the same name"
    );
}

#[tokio::test]
async fn taking_on_an_identity_needs_permission() {
    let cluster = Embedded::start();
    let path = "/api/v1/namespaces";
    let as_bob = [("impersonate-user", "bob")];
    assert_eq!(send(&cluster.client(), "GET", path, &as_bob, Vec::new()).await.code, 403, "bob may not list");
    let ann = as_user(&cluster, User::new("ann", &[]));
    let as_root = [("impersonate-user", "root"), ("impersonate-group", "system:masters")];
    assert_eq!(send(&ann, "GET", path, &as_root, Vec::new()).await.code, 403);
    assert_eq!(send(&cluster.client(), "GET", path, &as_root, Vec::new()).await.code, 200);
}
