//! Selectors, tables, and fields that nobody knows.

use super::*;

pub fn lists() -> Vec<Story> {
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

pub fn fields() -> Vec<Story> {
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
