//! What a new cluster starts with: the namespaces of the system, and the roles that everybody expects to find.

use crate::cluster::Cluster;
use crate::query::WriteOptions;
use crate::write::{At, Changed};
use serde_json::{Value, json};

/// Creates what is missing; what is there is left alone.
pub fn bootstrap(cluster: &Cluster) {
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        ensure(cluster, "", "v1", "namespaces", json!({"metadata": {"name": name}}));
    }
    // What pods and clients find the API server by; nothing here routes to the address.
    let api = json!({
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {"clusterIP": "10.96.0.1", "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}]},
    });
    ensure(cluster, "", "v1", "services", api);
    let group = "rbac.authorization.k8s.io";
    for role in roles() {
        ensure(cluster, group, "v1", "clusterroles", role);
    }
    for (name, groups) in [
        ("cluster-admin", &["system:masters"][..]),
        ("system:discovery", &["system:authenticated"]),
        ("system:basic-user", &["system:authenticated"]),
        ("system:public-info-viewer", &["system:authenticated", "system:unauthenticated"]),
    ] {
        let subjects: Vec<Value> =
            groups.iter().map(|name| json!({"kind": "Group", "name": name, "apiGroup": group})).collect();
        let binding = json!({
            "metadata": {"name": name, "labels": bootstrapped()},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": subjects,
        });
        ensure(cluster, group, "v1", "clusterrolebindings", binding);
    }
}

fn bootstrapped() -> Value {
    json!({"kubernetes.io/bootstrapping": "rbac-defaults"})
}

fn ensure(cluster: &Cluster, group: &str, version: &str, plural: &str, object: Value) {
    let registry = cluster.registry();
    let Some(resource) = registry.find(group, version, plural) else { return };
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let (namespace, name) = (text("namespace"), text("name"));
    if cluster.store.get(&resource.collection, &namespace, &name).is_some() {
        return;
    }
    let at = At::object(resource, &namespace, "");
    if let Err(error) = cluster.create(at, Changed::plain(object), &WriteOptions::internal("kube-apiserver"))
    {
        tracing::error!(plural, name, %error, "the cluster could not be furnished");
    }
}

fn roles() -> Vec<Value> {
    let role = |name: &str, rules: Value| json!({"metadata": {"name": name, "labels": bootstrapped()}, "rules": rules});
    let discovery = [
        "/api",
        "/api/*",
        "/apis",
        "/apis/*",
        "/openapi",
        "/openapi/*",
        "/version",
        "/version/",
        "/healthz",
        "/livez",
        "/readyz",
    ];
    let public = ["/version", "/version/", "/healthz", "/livez", "/readyz"];
    let read = ["get", "list", "watch"];
    let write = ["create", "delete", "deletecollection", "patch", "update"];
    let objects = |verbs: &[&str], secrets: bool| {
        let mut core = vec![
            "configmaps",
            "endpoints",
            "events",
            "persistentvolumeclaims",
            "persistentvolumeclaims/status",
            "pods",
            "pods/status",
            "pods/log",
            "replicationcontrollers",
            "replicationcontrollers/scale",
            "serviceaccounts",
            "services",
            "services/status",
        ];
        if secrets {
            core.push("secrets");
        }
        json!([
            {"verbs": verbs, "apiGroups": [""], "resources": core},
            {"verbs": verbs, "apiGroups": ["apps"], "resources": ["controllerrevisions", "daemonsets", "deployments", "deployments/scale", "replicasets", "replicasets/scale", "statefulsets", "statefulsets/scale"]},
            {"verbs": verbs, "apiGroups": ["batch"], "resources": ["cronjobs", "jobs"]},
            {"verbs": verbs, "apiGroups": ["networking.k8s.io"], "resources": ["ingresses", "networkpolicies"]},
            {"verbs": verbs, "apiGroups": ["policy"], "resources": ["poddisruptionbudgets"]},
            {"verbs": verbs, "apiGroups": ["coordination.k8s.io"], "resources": ["leases"]},
        ])
    };
    let all: Vec<&str> = read.iter().chain(&write).copied().collect();
    let mut admin = objects(&all, true);
    if let Some(rules) = admin.as_array_mut() {
        rules.push(json!({"verbs": all, "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"]}));
        rules.push(json!({"verbs": ["create"], "apiGroups": ["authorization.k8s.io"], "resources": ["localsubjectaccessreviews"]}));
    }
    vec![
        role(
            "cluster-admin",
            json!([
                {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
                {"verbs": ["*"], "nonResourceURLs": ["*"]},
            ]),
        ),
        role("system:discovery", json!([{"verbs": ["get"], "nonResourceURLs": discovery}])),
        role("system:public-info-viewer", json!([{"verbs": ["get"], "nonResourceURLs": public}])),
        role(
            "system:basic-user",
            json!([
                {"verbs": ["create"], "apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]},
                {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]},
            ]),
        ),
        role("admin", admin),
        role("edit", objects(&all, true)),
        role("view", objects(&read, false)),
    ]
}
