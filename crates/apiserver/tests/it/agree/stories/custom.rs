//! Definitions and their objects.

use super::*;

pub fn custom() -> Vec<Story> {
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
