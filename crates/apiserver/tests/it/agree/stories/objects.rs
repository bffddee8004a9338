//! Objects as such: creating, changing and deleting them.

use super::*;

pub fn objects() -> Vec<Story> {
    vec![
        story(
            "create, get, create again",
            vec![
                post(CM, config_map("a", json!({"x": "1"}))),
                get("/api/v1/namespaces/{ns}/configmaps/a"),
                post(CM, config_map("a", json!({"x": "1"}))),
                get("/api/v1/namespaces/{ns}/configmaps/none"),
            ],
        ),
        story(
            "names are checked",
            vec![
                post(CM, config_map("Bad_Name", json!({}))),
                post(CM, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}})),
                post(
                    "/api/v1/namespaces",
                    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a.b"}}),
                ),
                post(
                    CM,
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "labels": {"a b": "c", "ok": "not ok!"}}}),
                ),
                post(
                    CM,
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "annotations": {"a b": "c"}}}),
                ),
                post(
                    CM,
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "finalizers": ["nope"]}}),
                ),
                post(
                    CM,
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]}}),
                ),
            ],
        ),
        story(
            "what the body says must be what the path says",
            vec![
                post(CM, json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}})),
                post(CM, json!({"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "a"}})),
                post(
                    CM,
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "other"}}),
                ),
                post(
                    CM,
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": "1"}}),
                ),
                post("/api/v1/namespaces/no-such-namespace/configmaps", config_map("a", json!({}))),
                post_text(CM, "{not json"),
                post_text(CM, "[]"),
                post_text(CM, ""),
            ],
        ),
        story(
            "paths that do not exist",
            vec![
                get("/api/v1/namespaces/{ns}/nothings"),
                get("/apis/no.such.group/v1/things"),
                get("/apis/apps/v9/deployments"),
                get("/api/v1/namespaces/{ns}/configmaps/a/status"),
                post("/api/v1/configmaps", config_map("a", json!({}))),
                delete("/api/v1/namespaces"),
                put(CM, config_map("a", json!({}))),
            ],
        ),
        story(
            "a secret and its text",
            vec![
                post(
                    "/api/v1/namespaces/{ns}/secrets",
                    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}, "data": {"c": "ZA=="}}),
                ),
                get("/api/v1/namespaces/{ns}/secrets/s"),
                post(
                    "/api/v1/namespaces/{ns}/secrets",
                    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bad"}, "data": {"a b": "ZA=="}}),
                ),
                merge_patch("/api/v1/namespaces/{ns}/secrets/s", json!({"type": "other"})),
                merge_patch("/api/v1/namespaces/{ns}/secrets/s", json!({"immutable": true})),
                merge_patch("/api/v1/namespaces/{ns}/secrets/s", json!({"data": {"c": "ZQ=="}})),
            ],
        ),
        story(
            "types are checked",
            vec![
                post(
                    CM,
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": 1}}),
                ),
                post(
                    CM,
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": "x"}),
                ),
            ],
        ),
        story(
            "dry run writes nothing",
            vec![
                post("/api/v1/namespaces/{ns}/configmaps?dryRun=All", config_map("a", json!({"x": "1"}))),
                get("/api/v1/namespaces/{ns}/configmaps/a"),
                post(CM, config_map("a", json!({"x": "1"}))),
                merge_patch("/api/v1/namespaces/{ns}/configmaps/a?dryRun=All", json!({"data": {"x": "2"}})),
                get("/api/v1/namespaces/{ns}/configmaps/a"),
                delete("/api/v1/namespaces/{ns}/configmaps/a?dryRun=All"),
                get("/api/v1/namespaces/{ns}/configmaps/a"),
            ],
        ),
        story(
            "namespaces",
            vec![
                get("/api/v1/namespaces/{ns}"),
                merge_patch("/api/v1/namespaces/{ns}", json!({"metadata": {"labels": {"a": "b"}}})),
                merge_patch(
                    "/api/v1/namespaces/{ns}/status",
                    json!({"status": {"conditions": [{"type": "A", "status": "True", "reason": "R", "message": "M"}]}}),
                ),
            ],
        ),
    ]
}

pub fn updates() -> Vec<Story> {
    const A: &str = "/api/v1/namespaces/{ns}/configmaps/a";
    vec![
        story(
            "update by version",
            vec![
                post(CM, config_map("a", json!({"x": "1"}))),
                put_edited(A, 0, |o| o["data"]["x"] = "2".into()),
                put_edited(A, 0, |o| o["data"]["x"] = "3".into()),
                put(A, config_map("a", json!({"x": "4"}))),
                put_edited(A, 3, |_| {}),
                put(A, config_map("b", json!({"x": "4"}))),
                put_edited(A, 4, |o| o["metadata"]["uid"] = "another".into()),
                put("/api/v1/namespaces/{ns}/configmaps/none", config_map("none", json!({}))),
            ],
        ),
        story(
            "what the server owns cannot be set",
            vec![
                post(
                    CM,
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "deletionTimestamp": "2001-01-01T00:00:00Z", "generation": 7}}),
                ),
                merge_patch(
                    A,
                    json!({"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z", "generation": 9, "deletionTimestamp": "2001-01-01T00:00:00Z"}}),
                ),
            ],
        ),
        story(
            "an immutable config map",
            vec![
                post(
                    CM,
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}, "immutable": true}),
                ),
                merge_patch(A, json!({"data": {"x": "2"}})),
                merge_patch(A, json!({"immutable": null})),
                merge_patch(A, json!({"metadata": {"labels": {"a": "b"}}})),
            ],
        ),
        story(
            "a lease may be made by updating",
            vec![
                put(
                    "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/l",
                    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}}),
                ),
                get("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/l"),
                post(
                    "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
                    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "bad"}, "spec": {"leaseDurationSeconds": -1}}),
                ),
            ],
        ),
    ]
}

pub fn deletion() -> Vec<Story> {
    const A: &str = "/api/v1/namespaces/{ns}/configmaps/a";
    vec![
        story("delete", vec![post(CM, config_map("a", json!({}))), delete(A), delete(A)]),
        story(
            "finalizers hold an object",
            vec![
                post(
                    CM,
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "finalizers": ["x.y/z"]}}),
                ),
                delete(A),
                delete(A),
                merge_patch(A, json!({"metadata": {"finalizers": ["x.y/z", "k.l/m"]}})),
                merge_patch(A, json!({"metadata": {"labels": {"still": "here"}}})),
                merge_patch(A, json!({"metadata": {"finalizers": null}})),
                get(A),
            ],
        ),
        story(
            "preconditions",
            vec![
                post(CM, config_map("a", json!({}))),
                delete_with(A, json!({"preconditions": {"uid": "another"}})),
                delete_with(A, json!({"preconditions": {"resourceVersion": "1"}})),
                delete_with(A, json!({"propagationPolicy": "Nonsense"})),
                get(A),
            ],
        ),
        story(
            "a collection",
            vec![
                post(
                    CM,
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"k": "1"}}}),
                ),
                post(
                    CM,
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "labels": {"k": "2"}}}),
                ),
                delete(&format!("{CM}?labelSelector=k%3D1")),
                get(A),
                get("/api/v1/namespaces/{ns}/configmaps/b"),
            ],
        ),
    ]
}
