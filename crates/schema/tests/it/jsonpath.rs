//! The paths of printer columns.

use lifeboat_schema::jsonpath::JsonPath;
use serde_json::{Value, json};

#[test]
fn paths_lead_to_values() {
    let object = json!({
        "spec": {"x": 1, "list": [{"b": "p"}, {"b": "q"}, {"c": 1}]},
        "metadata": {"labels": {"x/y": "z", "a.b": "c"}},
        "status": {"conditions": [
            {"type": "Ready", "status": "True", "n": 3}, {"type": "Old", "status": "False", "n": 1}]},
    });
    let check = |path: &str, want: Value| {
        let found: Vec<Value> = JsonPath::parse(path).unwrap().find(&object).into_iter().cloned().collect();
        assert_eq!(Value::Array(found), want, "{path}");
    };
    check(".spec.x", json!([1]));
    check("spec.x", json!([1]));
    check("{.spec.x}", json!([1]));
    check("$.spec.x", json!([1]));
    check(".spec.nothing.x", json!([]));
    check(".spec.list[0].b", json!(["p"]));
    check(".spec.list[-1].c", json!([1]));
    check(".spec.list[9].b", json!([]));
    check(".spec.list[*].b", json!(["p", "q"]));
    check(".spec.list[0:2].b", json!(["p", "q"]));
    check(".spec.list[0,2]", json!([{"b": "p"}, {"c": 1}]));
    check(".metadata.labels['x/y']", json!(["z"]));
    check(r#".metadata.labels["x/y"]"#, json!(["z"]));
    check(r".metadata.labels.a\.b", json!(["c"]));
    check(r#".status.conditions[?(@.type=="Ready")].status"#, json!(["True"]));
    check(".status.conditions[?(@.type == 'Ready')].status", json!(["True"]));
    check(".status.conditions[?(@.n>2)].type", json!(["Ready"]));
    check(".status.conditions[?(@.type!='Ready')].type", json!(["Old"]));
    check(".spec.list[?(@.c)]", json!([{"c": 1}]));
    check("..type", json!(["Ready", "Old"]));
    check(
        ".spec.*",
        json!([1, [{"b": "p"}, {"b": "q"}, {"c": 1}]]).as_array().map(|a| json!([a[1], a[0]])).unwrap(),
    );
}

#[test]
fn what_is_no_path() {
    for text in [".a[", ".a[x]", ".a[?(@.b==)]", ".a['b]", ".a]", ".a[?(@.b=='c']"] {
        assert!(JsonPath::parse(text).is_err(), "{text}");
    }
}
