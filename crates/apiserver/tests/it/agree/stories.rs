//! The stories, by what they are about. A new behaviour is a new story; the real server says what is right.

use super::*;

const CM: &str = "/api/v1/namespaces/{ns}/configmaps";

pub fn all() -> Vec<Story> {
    [
        objects(),
        updates(),
        patches(),
        apply_stories(),
        deletion(),
        lists(),
        fields(),
        storage(),
        custom(),
        reviews(),
        workloads(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

fn objects() -> Vec<Story> {
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

fn updates() -> Vec<Story> {
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

fn patches() -> Vec<Story> {
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

fn apply_stories() -> Vec<Story> {
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

fn deletion() -> Vec<Story> {
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

fn lists() -> Vec<Story> {
    let named = |name: &str, label: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": {"k": label}}, "type": format!("t/{label}")});
    const S: &str = "/api/v1/namespaces/{ns}/secrets";
    let made = || vec![post(S, named("a", "1")), post(S, named("b", "2")), post(S, named("c", "1"))];
    let asking = |queries: &[&str]| {
        let mut steps = made();
        steps.extend(queries.iter().map(|query| get(&format!("{S}?{query}"))));
        steps
    };
    vec![
        story(
            "selectors",
            asking(&[
                "labelSelector=k%3D1",
                "labelSelector=k!%3D1",
                "labelSelector=k+in+(1,3)",
                "labelSelector=k+notin+(1)",
                "labelSelector=!k",
                "labelSelector=k",
                "fieldSelector=metadata.name%3Db",
                "fieldSelector=type%3Dt/2",
                "fieldSelector=metadata.name!%3Db,type%3Dt/1",
            ]),
        ),
        story(
            "selectors that make no sense",
            asking(&[
                "labelSelector=k+in+1",
                "fieldSelector=spec.nothing%3D1",
                "labelSelector=%3D%3D",
                "limit=x",
                "resourceVersion=abc",
                "resourceVersionMatch=Exact",
                "resourceVersionMatch=Nonsense&resourceVersion=1",
            ]),
        ),
        story(
            "tables",
            vec![
                post(S, named("a", "1")),
                get_as(&format!("{S}/a"), "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"),
                get_as(
                    &format!("{S}?fieldSelector=metadata.name%3Da&resourceVersion=0"),
                    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
                ),
                get_as(
                    &format!("{S}/a"),
                    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json",
                ),
                get_as(&format!("{S}/a"), "application/json;as=Nonsense;v=v1;g=meta.k8s.io"),
                get_as(&format!("{S}/a?includeObject=None"), "application/json;as=Table;v=v1;g=meta.k8s.io"),
            ],
        ),
    ]
}

fn fields() -> Vec<Story> {
    let unknown = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","nonsense":1},"unknown":{"x":1},"data":{"a":"1","a":"2"}}"#;
    let deploy = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"unknownField":1,"replicas":1,"replicas":2,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i","bogus":true}]}}}}"#;
    vec![story(
        "unknown fields are dropped, told or refused",
        vec![
            post_text("/api/v1/namespaces/{ns}/configmaps?fieldValidation=Strict", unknown),
            post_text("/api/v1/namespaces/{ns}/configmaps?fieldValidation=Warn", unknown),
            post_text("/apis/apps/v1/namespaces/{ns}/deployments?fieldValidation=Strict", deploy),
            post_text("/apis/apps/v1/namespaces/{ns}/deployments", deploy),
            post_text("/api/v1/namespaces/{ns}/configmaps?fieldValidation=Nonsense", unknown),
            merge_patch(
                "/apis/apps/v1/namespaces/{ns}/deployments/d?fieldValidation=Strict",
                json!({"spec": {"nonsense": 1}}),
            ),
            json_patch(
                "/apis/apps/v1/namespaces/{ns}/deployments/d?fieldValidation=Strict",
                json!([{"op": "add", "path": "/spec/nonsense", "value": 1}]),
            ),
            strategic(
                "/apis/apps/v1/namespaces/{ns}/deployments/d?fieldValidation=Strict",
                json!({"spec": {"nonsense": 1}}),
            ),
        ],
    )]
}

fn storage() -> Vec<Story> {
    const PVC: &str = "/api/v1/namespaces/{ns}/persistentvolumeclaims";
    const PV: &str = "/api/v1/persistentvolumes";
    let claim = |name: &str, spec: Value| json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec});
    let volume = |name: &str, spec: Value| json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec});
    let good = || json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}});
    vec![
        story(
            "claims",
            vec![
                post(
                    PVC,
                    claim(
                        "a",
                        json!({"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}),
                    ),
                ),
                post(
                    PVC,
                    claim(
                        "b",
                        json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}),
                    ),
                ),
                post(PVC, claim("c", json!({"resources": {"requests": {"storage": "1Gi"}}}))),
                post(
                    PVC,
                    claim(
                        "c",
                        json!({"accessModes": ["Nonsense"], "resources": {"requests": {"storage": "-1Gi"}}}),
                    ),
                ),
                post(PVC, claim("c", json!({"accessModes": ["ReadWriteOnce"]}))),
                merge_patch(&format!("{PVC}/a"), json!({"spec": {"accessModes": ["ReadWriteMany"]}})),
                merge_patch(&format!("{PVC}/a"), json!({"spec": {"volumeName": "v"}})),
                merge_patch(
                    &format!("{PVC}/a/status"),
                    json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}}),
                ),
                merge_patch(
                    &format!("{PVC}/a"),
                    json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}}),
                ),
                merge_patch(
                    &format!("{PVC}/a"),
                    json!({"spec": {"resources": {"requests": {"storage": "512Mi"}}}}),
                ),
                merge_patch(&format!("{PVC}/a"), json!({"spec": {"storageClassName": "x"}})),
                delete(&format!("{PVC}/a")),
                get_as(&format!("{PVC}/b"), "application/json;as=Table;v=v1;g=meta.k8s.io"),
            ],
        ),
        story(
            "volumes",
            vec![
                post(PV, volume("{ns}-a", good())),
                post(PV, volume("{ns}-b", json!({"accessModes": ["ReadWriteOnce"]}))),
                post(
                    PV,
                    volume(
                        "{ns}-b",
                        json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}),
                    ),
                ),
                post(
                    PV,
                    volume(
                        "{ns}-b",
                        json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}, "nfs": {"server": "s", "path": "/p"}}),
                    ),
                ),
                post(
                    PV,
                    volume(
                        "{ns}-c",
                        json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Delete", "storageClassName": "s", "csi": {"driver": "d.e", "volumeHandle": "h"}}),
                    ),
                ),
                merge_patch(
                    "/api/v1/persistentvolumes/{ns}-c",
                    json!({"spec": {"csi": {"volumeHandle": "i"}}}),
                ),
                merge_patch(
                    "/api/v1/persistentvolumes/{ns}-c",
                    json!({"spec": {"capacity": {"storage": "2Gi"}, "persistentVolumeReclaimPolicy": "Retain", "claimRef": {"namespace": "n", "name": "c"}}}),
                ),
                merge_patch(
                    "/api/v1/persistentvolumes/{ns}-c/status",
                    json!({"status": {"phase": "Available"}}),
                ),
                get_as("/api/v1/persistentvolumes/{ns}-c", "application/json;as=Table;v=v1;g=meta.k8s.io"),
                delete("/api/v1/persistentvolumes/{ns}-a"),
            ],
        ),
        story(
            "classes",
            vec![
                post(
                    "/apis/storage.k8s.io/v1/storageclasses",
                    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "{ns}"}, "provisioner": "p.q/r"}),
                ),
                post(
                    "/apis/storage.k8s.io/v1/storageclasses",
                    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "{ns}-x"}, "provisioner": "", "volumeBindingMode": "Never"}),
                ),
                merge_patch("/apis/storage.k8s.io/v1/storageclasses/{ns}", json!({"provisioner": "other"})),
                merge_patch("/apis/storage.k8s.io/v1/storageclasses/{ns}", json!({"parameters": {"a": "b"}})),
                merge_patch(
                    "/apis/storage.k8s.io/v1/storageclasses/{ns}",
                    json!({"allowVolumeExpansion": true}),
                ),
                delete("/apis/storage.k8s.io/v1/storageclasses/{ns}"),
            ],
        ),
        story(
            "attachments, drivers and nodes",
            vec![
                post(
                    "/apis/storage.k8s.io/v1/volumeattachments",
                    json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": "{ns}"}, "spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "p"}}}),
                ),
                merge_patch(
                    "/apis/storage.k8s.io/v1/volumeattachments/{ns}",
                    json!({"spec": {"nodeName": "m"}}),
                ),
                merge_patch(
                    "/apis/storage.k8s.io/v1/volumeattachments/{ns}/status",
                    json!({"status": {"attached": true}}),
                ),
                delete("/apis/storage.k8s.io/v1/volumeattachments/{ns}"),
                post(
                    "/apis/storage.k8s.io/v1/csidrivers",
                    json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "{ns}.d"}, "spec": {}}),
                ),
                merge_patch(
                    "/apis/storage.k8s.io/v1/csidrivers/{ns}.d",
                    json!({"spec": {"attachRequired": false}}),
                ),
                post(
                    "/apis/storage.k8s.io/v1/csinodes",
                    json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "{ns}"}, "spec": {"drivers": [{"name": "d.e", "nodeID": "n", "topologyKeys": ["k"]}]}}),
                ),
                post(
                    "/apis/storage.k8s.io/v1/namespaces/{ns}/csistoragecapacities",
                    json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity", "metadata": {"name": "c"}, "storageClassName": "s", "capacity": "1Gi"}),
                ),
                post(
                    "/apis/storage.k8s.io/v1/namespaces/{ns}/csistoragecapacities",
                    json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity", "metadata": {"name": "d"}, "storageClassName": "", "capacity": "1Gi"}),
                ),
            ],
        ),
    ]
}

fn custom() -> Vec<Story> {
    const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = |group: &str, versions: Value| json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("things.{group}")}, "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"}, "versions": versions}});
    let version = |name: &str, storage: bool, schema: Value| json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema}});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 1, "maximum": 10},
            "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "name": {"type": "string", "maxLength": 5, "pattern": "^[a-z]*$"},
            "list": {"type": "array", "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "integer", "default": 3}}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
            "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "port": {"x-kubernetes-int-or-string": true},
        }, "x-kubernetes-validations": [{"rule": "!has(self.name) || self.name != 'bad'", "message": "no bad names"}, {"rule": "self.size >= oldSelf.size", "message": "may only grow"}]},
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
    }});
    let mut with_status = version("v1", true, schema.clone());
    with_status["subresources"] = json!({"status": {}});
    let thing = |spec: Value| json!({"apiVersion": "{ns}.example.org/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec});
    const T: &str = "/apis/{ns}.example.org/v1/namespaces/{ns}/things";
    vec![
        story(
            "definitions are checked",
            vec![
                post(CRDS, definition("example.org", json!([]))),
                post(
                    CRDS,
                    definition("example.org", json!([version("v1", false, json!({"type": "object"}))])),
                ),
                post(
                    CRDS,
                    definition(
                        "example.org",
                        json!([version(
                            "v1",
                            true,
                            json!({"type": "object", "properties": {"spec": {"properties": {"a": {"type": "string"}}}}})
                        )]),
                    ),
                ),
                post(
                    CRDS,
                    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "wrong.example.org"}, "spec": {"group": "example.org", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"}, "versions": [version("v1", true, json!({"type": "object"}))]}}),
                ),
                post(
                    CRDS,
                    definition(
                        "example.org",
                        json!([version(
                            "v1",
                            true,
                            json!({"type": "object", "properties": {"a": {"type": "string", "x-kubernetes-validations": [{"rule": "self +"}]}}})
                        )]),
                    ),
                ),
            ],
        ),
        story(
            "custom objects",
            vec![
                post(CRDS, definition("{ns}.example.org", json!([with_status]))),
                established(),
                post(
                    T,
                    thing(
                        json!({"size": 2, "list": [{"k": "a"}], "any": {"x": {"y": 1}}, "port": "http", "unknown": 1}),
                    ),
                ),
                post(&format!("{T}?fieldValidation=Strict"), thing(json!({"size": 2, "unknown": 1}))),
                put(&format!("{T}/t"), thing(json!({"size": 3}))),
                post(
                    T,
                    thing(
                        json!({"size": 0, "mode": "c", "name": "TOOLONG", "list": [{"k": "a"}, {"k": "a"}], "port": true}),
                    ),
                ),
                post(T, thing(json!({}))),
                post(
                    T,
                    json!({"apiVersion": "{ns}.example.org/v1", "kind": "Thing", "metadata": {"name": "u"}, "spec": {"size": "two"}}),
                ),
                merge_patch(&format!("{T}/t"), json!({"spec": {"size": 1}})),
                merge_patch(&format!("{T}/t"), json!({"spec": {"name": "bad"}})),
                merge_patch(&format!("{T}/t"), json!({"spec": {"size": 5}})),
                merge_patch(&format!("{T}/t"), json!({"status": {"phase": "ignored"}})),
                merge_patch(
                    &format!("{T}/t/status"),
                    json!({"spec": {"size": 9}, "status": {"phase": "Ready", "unknown": 1}}),
                ),
                get(&format!("{T}/t")),
                apply(
                    &format!("{T}/t?fieldManager=one"),
                    json!({"apiVersion": "{ns}.example.org/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"size": 5, "list": [{"k": "b", "v": 1}]}}),
                ),
                apply(
                    &format!("{T}/t?fieldManager=one"),
                    json!({"apiVersion": "{ns}.example.org/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"size": 5, "list": [{"k": "c"}]}}),
                ),
                get_as(&format!("{T}/t"), "application/json;as=Table;v=v1;g=meta.k8s.io"),
                strategic(&format!("{T}/t"), json!({})),
                delete(&format!("{T}/t")),
                delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.{ns}.example.org"),
            ],
        ),
    ]
}

/// Waits until a definition is served: the real server takes a moment.
fn established() -> Step {
    get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.{ns}.example.org").until(|body| {
        body["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|c| c["type"] == "Established" && c["status"] == "True")
    })
}

fn reviews() -> Vec<Story> {
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
                ),
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

fn workloads() -> Vec<Story> {
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
