//! Reviews, roles, workloads, nodes and events.

use super::*;

pub fn reviews() -> Vec<Story> {
    vec![
        story(
            "reviews",
            vec![
                post(
                    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
                    json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {"user": "nobody", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "{ns}"}}}),
                ),
                post(
                    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
                    json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}),
                ),
            ],
        ),
        story(
            "roles",
            vec![
                post(
                    "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles",
                    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
                ),
                post(
                    "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings",
                    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "b"}, "roleRef": {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}, "subjects": [{"kind": "User", "name": "nobody"}]}),
                ),
                post(
                    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
                    json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {"user": "nobody", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "{ns}"}}}),
                )
                .until(|review| review["status"]["allowed"] == true),
                merge_patch(
                    "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings/b",
                    json!({"roleRef": {"name": "other"}}),
                ),
                post(
                    "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles",
                    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "bad"}, "rules": [{"apiGroups": [""], "resources": ["pods"]}]}),
                ),
            ],
        ),
    ]
}

pub fn workloads() -> Vec<Story> {
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}});
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"}, "spec": {"serviceName": "s", "selector": {"matchLabels": {"a": "b"}}, "template": template, "volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]}});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}});
    const D: &str = "/apis/apps/v1/namespaces/{ns}/deployments";
    vec![
        story(
            "deployments",
            vec![
                post(D, deployment),
                get("/apis/apps/v1/namespaces/{ns}/deployments/d/scale"),
                merge_patch(
                    "/apis/apps/v1/namespaces/{ns}/deployments/d/scale",
                    json!({"spec": {"replicas": 3}}),
                ),
                get("/apis/apps/v1/namespaces/{ns}/deployments/d"),
                merge_patch(
                    "/apis/apps/v1/namespaces/{ns}/deployments/d",
                    json!({"spec": {"selector": {"matchLabels": {"a": "c"}}}}),
                ),
                merge_patch(
                    "/apis/apps/v1/namespaces/{ns}/deployments/d/status",
                    json!({"status": {"replicas": 3, "readyReplicas": 2}}),
                ),
                get_as(
                    "/apis/apps/v1/namespaces/{ns}/deployments/d",
                    "application/json;as=Table;v=v1;g=meta.k8s.io",
                ),
            ],
        ),
        story(
            "stateful sets",
            vec![
                post("/apis/apps/v1/namespaces/{ns}/statefulsets", set),
                merge_patch(
                    "/apis/apps/v1/namespaces/{ns}/statefulsets/s",
                    json!({"spec": {"serviceName": "other"}}),
                ),
                merge_patch("/apis/apps/v1/namespaces/{ns}/statefulsets/s", json!({"spec": {"replicas": 2}})),
            ],
        ),
        story(
            "nodes",
            vec![
                post(
                    "/api/v1/nodes",
                    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "{ns}"}}),
                ),
                merge_patch(
                    "/api/v1/nodes/{ns}/status",
                    json!({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "R", "message": "M"}]}}),
                ),
                get_as("/api/v1/nodes/{ns}", "application/json;as=Table;v=v1;g=meta.k8s.io"),
                delete("/api/v1/nodes/{ns}"),
            ],
        ),
        story("jobs", vec![post("/apis/batch/v1/namespaces/{ns}/jobs", job)]),
        story(
            "events",
            vec![
                post(
                    "/api/v1/namespaces/{ns}/events",
                    json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "{ns}", "uid": "u"}, "reason": "R", "message": "M", "type": "Normal", "source": {"component": "c"}, "firstTimestamp": "2020-01-01T00:00:00Z", "lastTimestamp": "2020-01-01T00:00:00Z", "count": 1}),
                ),
                get("/apis/events.k8s.io/v1/namespaces/{ns}/events/e"),
                post(
                    "/apis/events.k8s.io/v1/namespaces/{ns}/events",
                    json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "f"}, "regarding": {"kind": "Pod", "name": "p", "namespace": "{ns}"}, "eventTime": "2020-01-01T00:00:00.000000Z", "action": "A", "reason": "R", "note": "N", "type": "Normal", "reportingController": "x.y/z", "reportingInstance": "i"}),
                ),
                get("/api/v1/namespaces/{ns}/events/f"),
            ],
        ),
    ]
}
