//! The three kinds of patches.

use crate::schema;
use lifeboat_schema::Schema;
use lifeboat_schema::patch::{PatchError, json_patch, merge_patch, strategic};
use serde_json::{Value, json};

#[test]
fn json_patch_operations() {
    let doc = json!({"a": {"b": 1, "l": [1, 2]}, "x/y": 1});
    let check = |ops: Value, want: Value| assert_eq!(json_patch(&doc, &ops), Ok(want), "{ops}");
    let with = |pointer: &str, value: Value| {
        let mut doc = doc.clone();
        *doc.pointer_mut(pointer).unwrap() = value;
        doc
    };
    check(json!([{"op": "replace", "path": "/a/b", "value": 2}]), with("/a/b", json!(2)));
    check(json!([{"op": "add", "path": "/a/l/-", "value": 3}]), with("/a/l", json!([1, 2, 3])));
    check(json!([{"op": "add", "path": "/a/l/0", "value": 0}]), with("/a/l", json!([0, 1, 2])));
    check(json!([{"op": "remove", "path": "/a/l/1"}]), with("/a/l", json!([1])));
    check(json!([{"op": "remove", "path": "/a/l/-1"}]), with("/a/l", json!([1])));
    check(json!([{"op": "replace", "path": "/x~1y", "value": 2}]), with("/x~1y", json!(2)));
    check(json!([{"op": "test", "path": "/a/b", "value": 1.0}]), doc.clone());
    check(json!([{"op": "test", "path": "/a/none", "value": null}]), doc.clone());
    check(json!([{"op": "copy", "from": "/a/b", "path": "/a/l/0"}]), with("/a/l", json!([1, 1, 2])));
    check(json!([{"op": "move", "from": "/a/l", "path": "/x~1y"}]), json!({"a": {"b": 1}, "x/y": [1, 2]}));
    check(json!([{"op": "replace", "path": "", "value": {}}]), json!({}));
}

#[test]
fn json_patches_that_fail() {
    let doc = json!({"a": {"b": 1, "l": [1]}});
    let check = |ops: Value, want: PatchError| assert_eq!(json_patch(&doc, &ops), Err(want), "{ops}");
    let unfit = |text: &str| PatchError::Unprocessable(text.into());
    check(
        json!([{"op": "remove", "path": "/a/z"}]),
        unfit("error in remove for path: '/a/z': Unable to remove nonexistent key: z: missing value"),
    );
    check(
        json!([{"op": "replace", "path": "/a/z", "value": 1}]),
        unfit("replace operation does not apply: doc is missing key: /a/z: missing value"),
    );
    check(
        json!([{"op": "test", "path": "/a/b", "value": 2}]),
        unfit("testing value /a/b failed: test failed"),
    );
    check(
        json!([{"op": "add", "path": "/z/y", "value": 1}]),
        unfit("add operation does not apply: doc is missing path: \"/z/y\": missing value"),
    );
    check(json!([{"op": "frob", "path": "/a"}]), unfit("Unexpected kind: frob"));
    assert!(matches!(json_patch(&doc, &json!({})), Err(PatchError::BadRequest(_))));
    assert!(matches!(json_patch(&doc, &json!([1])), Err(PatchError::BadRequest(_))));
    let many = Value::Array(vec![json!({"op": "test", "path": "/a/b", "value": 1}); 10_001]);
    assert!(matches!(json_patch(&doc, &many), Err(PatchError::TooLarge(_))));
}

#[test]
fn copies_of_copies_are_bounded() {
    let double = json!({"op": "copy", "from": "/a", "path": "/a/-"});
    let ops = Value::Array(vec![double; 64]);
    assert!(matches!(json_patch(&json!({"a": ["x"]}), &ops), Err(PatchError::Unprocessable(_))));
}

#[test]
fn merge_patches() {
    let check = |doc: Value, patch: Value, want: Value| assert_eq!(merge_patch(&doc, &patch), want);
    check(json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"}));
    check(json!({"a": "b"}), json!({"a": null}), json!({}));
    check(json!({"a": ["b"]}), json!({"a": {"b": null}}), json!({"a": {}}));
    check(json!({"a": {"b": 1, "c": 2}}), json!({"a": {"c": null, "d": 3}}), json!({"a": {"b": 1, "d": 3}}));
    check(json!(["a"]), json!({"a": 1}), json!({"a": 1}));
    check(json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1}));
}

fn pod() -> Schema {
    let named = |properties: Value| {
        json!({"type": "array", "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name",
            "items": {"type": "object", "properties": properties}})
    };
    schema(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "containers": named(json!({
            "name": {"type": "string"}, "image": {"type": "string"},
            "args": {"type": "array", "items": {"type": "string"}},
            "env": named(json!({"name": {"type": "string"}, "value": {"type": "string"}})),
        })),
        "tolerations": {"type": "array", "items": {"type": "object"}},
        "volumes": {"type": "array", "x-kubernetes-patch-strategy": "merge,retainKeys",
            "x-kubernetes-patch-merge-key": "name", "items": {"type": "object"}},
        "nodeSelector": {"type": "object", "additionalProperties": {"type": "string"}},
    }}}}))
}

#[test]
fn strategic_patches() {
    let of = pod();
    let doc = json!({"metadata": {"finalizers": ["a", "b"], "labels": {"k": "v"}}, "spec": {
        "containers": [{"name": "x", "image": "1", "args": ["p"], "env": [{"name": "A", "value": "1"}]},
                       {"name": "y", "image": "2"}],
        "tolerations": [{"key": "t"}],
        "volumes": [{"name": "v", "emptyDir": {}}]}});
    let check = |patch: Value, pointer: &str, want: Value| {
        let patched = strategic(&of, &doc, &patch).unwrap_or_else(|e| panic!("{patch}: {e}"));
        assert_eq!(patched.pointer(pointer).cloned().unwrap_or_default(), want, "{patch}");
    };
    check(
        json!({"spec": {"containers": [{"name": "y", "image": "3"}]}}),
        "/spec/containers",
        json!([{"name": "x", "image": "1", "args": ["p"], "env": [{"name": "A", "value": "1"}]},
               {"name": "y", "image": "3"}]),
    );
    check(
        json!({"spec": {"containers": [{"name": "x", "env": [{"name": "B", "value": "2"}]}]}}),
        "/spec/containers/0/env",
        json!([{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]),
    );
    check(
        json!({"spec": {"containers": [{"name": "x", "args": ["q"]}]}}),
        "/spec/containers/0/args",
        json!(["q"]),
    );
    check(
        json!({"spec": {"containers": [{"name": "x", "$patch": "delete"}]}}),
        "/spec/containers",
        json!([{"name": "y", "image": "2"}]),
    );
    check(
        json!({"spec": {"containers": [{"$patch": "replace"}, {"name": "z"}]}}),
        "/spec/containers",
        json!([{"name": "z"}]),
    );
    check(json!({"spec": {"tolerations": [{"key": "u"}]}}), "/spec/tolerations", json!([{"key": "u"}]));
    check(json!({"spec": {"tolerations": null}}), "/spec/tolerations", json!(null));
    check(json!({"spec": {"nodeSelector": {"a": "b", "c": null}}}), "/spec/nodeSelector", json!({"a": "b"}));
    check(
        json!({"metadata": {"labels": {"$patch": "replace", "n": "w"}}}),
        "/metadata/labels",
        json!({"n": "w"}),
    );
    check(json!({"metadata": {"labels": {"$patch": "delete"}}}), "/metadata/labels", json!({}));
    check(json!({"metadata": {"finalizers": ["c"]}}), "/metadata/finalizers", json!(["c", "a", "b"]));
    check(
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}),
        "/metadata/finalizers",
        json!(["b"]),
    );
    check(
        json!({"metadata": {"$setElementOrder/finalizers": ["b", "a"]}}),
        "/metadata/finalizers",
        json!(["b", "a"]),
    );
    check(
        json!({"spec": {"$setElementOrder/containers": [{"name": "y"}, {"name": "x"}],
            "containers": [{"name": "x", "image": "9"}]}}),
        "/spec/containers",
        json!([{"name": "y", "image": "2"},
               {"name": "x", "image": "9", "args": ["p"], "env": [{"name": "A", "value": "1"}]}]),
    );
    check(
        json!({"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]}}),
        "/spec/volumes",
        json!([{"name": "v", "hostPath": {"path": "/"}}]),
    );
}

#[test]
fn strategic_patches_that_make_no_sense() {
    let of = pod();
    let doc = json!({"spec": {"containers": [{"name": "x"}], "nodeSelector": {}}});
    let check = |patch: Value, want: &str| {
        let error = strategic(&of, &doc, &patch).unwrap_err();
        assert!(matches!(&error, PatchError::BadRequest(text) if text.contains(want)), "{patch}: {error}");
    };
    check(json!({"spec": {"containers": [{"image": "1"}]}}), "does not contain declared merge key: name");
    check(json!({"spec": {"nodeSelector": {"$patch": "frob"}}}), "unknown patch type: frob");
    check(json!({"spec": {"$retainKeys": "x"}}), "invalid patch format of retainKeys");
    check(
        json!({"spec": {"$setElementOrder/containers": [{"name": "y"}], "containers": [{"name": "x"}]}}),
        "doesn't match",
    );
    assert!(strategic(&of, &doc, &json!([])).is_err());
}
