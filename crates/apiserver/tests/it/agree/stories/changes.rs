//! Patches and server-side apply.

use super::*;

pub fn patches() -> Vec<Story> {
    const A: &str = "/api/v1/namespaces/{ns}/configmaps/a";
    vec![
        story(
            "json patch",
            vec![
                post(CM, config_map("a", json!({"x": "1"}))),
                json_patch(
                    A,
                    json!([{"op": "add", "path": "/data/y", "value": "2"}, {"op": "remove", "path": "/data/x"}]),
                ),
                json_patch(
                    A,
                    json!([{"op": "test", "path": "/metadata/finalizers", "value": null}, {"op": "add", "path": "/metadata/finalizers", "value": ["a.b/c"]}]),
                ),
                json_patch(A, json!([{"op": "test", "path": "/data/y", "value": "wrong"}])),
                json_patch(A, json!([{"op": "remove", "path": "/data/none"}])),
                json_patch(A, json!({"op": "add"})),
                json_patch("/api/v1/namespaces/{ns}/configmaps/none", json!([])),
                json_patch(A, json!([{"op": "remove", "path": "/metadata/finalizers/0"}])),
            ],
        ),
        story(
            "merge patch",
            vec![
                post(CM, config_map("a", json!({"x": "1", "y": "2"}))),
                merge_patch(A, json!({"data": {"x": null, "z": "3"}})),
                merge_patch(A, json!({})),
                merge_patch(A, json!({"metadata": {"name": "other"}})),
                merge_patch(A, json!({"metadata": {"resourceVersion": "1"}})),
                merge_patch(A, json!({"data": {"x": 7}})),
            ],
        ),
        story(
            "strategic merge of a pod",
            vec![
                post(
                    "/api/v1/namespaces/{ns}/podtemplates",
                    json!({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "p", "labels": {"a": "b"}, "finalizers": ["x.y/z"]}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "one", "image": "i", "env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 80}]}, {"name": "two", "image": "j"}], "volumes": [{"name": "v", "emptyDir": {}}]}}}),
                ),
                strategic(
                    "/api/v1/namespaces/{ns}/podtemplates/p",
                    json!({"template": {"spec": {"containers": [{"name": "one", "image": "k", "env": [{"name": "B", "value": "2"}]}]}}}),
                ),
                strategic(
                    "/api/v1/namespaces/{ns}/podtemplates/p",
                    json!({"template": {"spec": {"containers": [{"name": "two", "$patch": "delete"}]}}}),
                ),
                strategic(
                    "/api/v1/namespaces/{ns}/podtemplates/p",
                    json!({"metadata": {"finalizers": ["k.l/m"], "labels": {"a": null, "c": "d"}}}),
                ),
                strategic(
                    "/api/v1/namespaces/{ns}/podtemplates/p",
                    json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.y/z"]}}),
                ),
                strategic(
                    "/api/v1/namespaces/{ns}/podtemplates/p",
                    json!({"template": {"spec": {"volumes": [{"name": "w", "emptyDir": {}}, {"$patch": "replace"}]}}}),
                ),
                strategic(
                    "/api/v1/namespaces/{ns}/podtemplates/p",
                    json!({"template": {"spec": {"$setElementOrder/containers": [{"name": "three"}, {"name": "one"}], "containers": [{"name": "three", "image": "m"}]}}}),
                ),
                strategic(
                    "/api/v1/namespaces/{ns}/podtemplates/p",
                    json!({"template": {"spec": {"volumes": [{"name": "w", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}, "emptyDir": null}]}}}),
                ),
            ],
        ),
        story(
            "a patch of an unknown kind",
            vec![
                post(CM, config_map("a", json!({"x": "1"}))),
                Step::new("PATCH", A, |_| b"{}".to_vec()).header("content-type", "application/json"),
            ],
        ),
    ]
}

pub fn apply_stories() -> Vec<Story> {
    const A: &str = "/api/v1/namespaces/{ns}/configmaps/a";
    let by = |manager: &str, more: &str| format!("{A}?fieldManager={manager}{more}");
    vec![
        story(
            "apply creates, changes and conflicts",
            vec![
                apply(&by("one", ""), config_map("a", json!({"x": "1", "y": "1"}))),
                apply(&by("one", ""), config_map("a", json!({"x": "1", "y": "1"}))),
                apply(&by("two", ""), config_map("a", json!({"x": "2"}))),
                apply(&by("two", "&force=true"), config_map("a", json!({"x": "2"}))),
                apply(&by("one", ""), config_map("a", json!({"y": "1"}))),
                apply(&by("one", ""), config_map("a", json!({}))),
                get(A),
                apply(A, config_map("a", json!({}))),
                merge_patch(&by("three", ""), json!({"data": {"x": "3"}})),
                apply(&by("two", ""), config_map("a", json!({"x": "2"}))),
            ],
        ),
        story(
            "apply keeps lists by their keys",
            vec![
                apply(
                    "/api/v1/namespaces/{ns}/services/s?fieldManager=one",
                    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"name": "a", "port": 80}]}}),
                ),
                apply(
                    "/api/v1/namespaces/{ns}/services/s?fieldManager=two",
                    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"name": "b", "port": 81, "protocol": "TCP"}]}}),
                ),
                apply(
                    "/api/v1/namespaces/{ns}/services/s?fieldManager=one",
                    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"name": "a", "port": 82}]}}),
                ),
            ],
        ),
        story(
            "apply refuses what makes no sense",
            vec![
                apply(&by("one", ""), json!({"kind": "ConfigMap", "metadata": {"name": "a"}})),
                apply(
                    &by("one", ""),
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}),
                ),
                apply(
                    &by("one", ""),
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "managedFields": [{"manager": "x"}]}}),
                ),
                apply(
                    &by("one", ""),
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "nonsense": 1}),
                ),
            ],
        ),
        story(
            "who made what by update",
            vec![
                post(&format!("{CM}?fieldManager=maker"), config_map("a", json!({"x": "1"}))),
                merge_patch(
                    &by("patcher", ""),
                    json!({"metadata": {"labels": {"l": "m"}, "finalizers": ["a.b/c"]}}),
                ),
                merge_patch(&by("maker", ""), json!({"data": {"x": null}})),
                put_edited(&by("putter", ""), 2, |o| o["metadata"]["managedFields"] = json!([{}])),
            ],
        ),
    ]
}
