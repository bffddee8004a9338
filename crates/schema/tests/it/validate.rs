//! Objects against their schemas, new and changed.

use crate::schema;
use lifeboat_schema::validate;
use serde_json::{Value, json};

fn errors(of: &Value, new: &Value, old: Option<&Value>) -> Vec<String> {
    validate(&schema(of), new, old).iter().map(ToString::to_string).collect()
}

/// Checks one property called `x`.
fn check(property: Value, value: Value, want: &[&str]) {
    let of = json!({"type": "object", "properties": {"x": property}});
    assert_eq!(errors(&of, &json!({"x": value}), None), want, "{of} with {value}");
}

#[test]
fn types() {
    let integer = || json!({"type": "integer"});
    check(integer(), json!(1), &[]);
    check(integer(), json!(1.0), &[]);
    check(
        integer(),
        json!("a"),
        &[r#"x: Invalid value: "string": x in body must be of type integer: "string""#],
    );
    check(
        integer(),
        json!(1.5),
        &[
            r#"x: Invalid value: "number": x in body must be of type integer: "number""#,
            r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in x"#,
        ],
    );
    check(
        integer(),
        json!(null),
        &[r#"x: Invalid value: "null": x in body must be of type integer: "null""#],
    );
    check(json!({"type": "integer", "nullable": true}), json!(null), &[]);
    check(json!({"type": "number"}), json!(1), &[]);
    check(json!({"type": "string"}), json!("s"), &[]);
    check(
        json!({"type": "boolean"}),
        json!([]),
        &[r#"x: Invalid value: "array": x in body must be of type boolean: "array""#],
    );
    check(json!({"x-kubernetes-int-or-string": true}), json!(1), &[]);
    check(json!({"x-kubernetes-int-or-string": true}), json!("1"), &[]);
    check(
        json!({"x-kubernetes-int-or-string": true}),
        json!(true),
        &[r#"x: Invalid value: "boolean": x in body must be of type integer,string: "boolean""#],
    );
    check(json!({"x-kubernetes-preserve-unknown-fields": true}), json!({"any": [1]}), &[]);
}

#[test]
fn required_and_additional() {
    let of = json!({"type": "object", "required": ["a"], "properties": {
        "a": {"type": "string"},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
    }});
    assert_eq!(errors(&of, &json!({}), None), ["a: Required value"]);
    assert_eq!(
        errors(&of, &json!({"a": "", "m": {"k": "v"}}), None),
        [r#"m.k: Invalid value: "string": m.k in body must be of type integer: "string""#]
    );
    let closed =
        json!({"type": "object", "additionalProperties": false, "properties": {"a": {"type": "string"}}});
    assert_eq!(
        errors(&closed, &json!({"b": 1}), None),
        [r#"<nil>: Invalid value: "b": .b in body is a forbidden property"#]
    );
}

#[test]
fn bounds() {
    check(
        json!({"type": "integer", "minimum": 2}),
        json!(1),
        &["x: Invalid value: 1: x in body should be greater than or equal to 2"],
    );
    check(
        json!({"type": "integer", "maximum": 2, "exclusiveMaximum": true}),
        json!(2),
        &["x: Invalid value: 2: x in body should be less than 2"],
    );
    check(
        json!({"type": "number", "maximum": 1_000_000}),
        json!(1_000_000.5),
        &["x: Invalid value: 1.0000005e+06: x in body should be less than or equal to 1e+06"],
    );
    check(
        json!({"type": "integer", "multipleOf": 3}),
        json!(4),
        &["x: Invalid value: 4: x in body should be a multiple of 3"],
    );
    check(
        json!({"type": "integer", "format": "int32"}),
        json!(3_000_000_000_i64),
        &[r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in x"#],
    );
    check(
        json!({"type": "string", "maxLength": 2}),
        json!("äöü"),
        &["x: Too long: may not be more than 2 bytes"],
    );
    check(json!({"type": "string", "maxLength": 3}), json!("äöü"), &[]);
    check(
        json!({"type": "string", "minLength": 2}),
        json!("a"),
        &[r#"x: Invalid value: "a": x in body should be at least 2 chars long"#],
    );
    check(
        json!({"type": "string", "pattern": "^a+$"}),
        json!("b"),
        &[r#"x: Invalid value: "b": x in body should match '^a+$'"#],
    );
    check(
        json!({"type": "string", "enum": ["a", "b"]}),
        json!("c"),
        &[r#"x: Unsupported value: "c": supported values: "a", "b""#],
    );
    let list = |extra: Value| {
        let mut list = json!({"type": "array", "items": {"type": "integer"}});
        list.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        list
    };
    check(list(json!({"maxItems": 1})), json!([1, 2]), &["x: Too many: 2: must have at most 1 item"]);
    check(
        list(json!({"minItems": 1})),
        json!([]),
        &["x: Invalid value: 0: x in body should have at least 1 items"],
    );
    let map = json!({"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 0});
    check(map, json!({"a": 1}), &["x: Too many: 1: must have at most 0 items"]);
}

#[test]
fn formats() {
    let fits = |format: &str, text: &str, want: bool| {
        let of = json!({"type": "object", "properties": {"x": {"type": "string", "format": format}}});
        let found = errors(&of, &json!({"x": text}), None);
        assert_eq!(found.is_empty(), want, "{format}: {text}: {found:?}");
    };
    fits("date-time", "2024-01-02T03:04:05Z", true);
    fits("date-time", "2024-01-02T03:04:05.123+02:00", true);
    fits("date-time", "2024-01-02", false);
    fits("date", "2024-01-02", true);
    fits("date", "2024-13-02", false);
    fits("duration", "1h30m", true);
    fits("duration", "3 days", true);
    fits("duration", "soon", false);
    fits("ipv4", "10.0.0.1", true);
    fits("ipv4", "10.0.0.256", false);
    fits("ipv6", "::1", true);
    fits("cidr", "10.0.0.0/8", true);
    fits("cidr", "10.0.0.0/33", false);
    fits("uuid", "123e4567-e89b-12d3-a456-426614174000", true);
    fits("uuid", "no", false);
    fits("byte", "aGk=", true);
    fits("byte", "a", false);
    fits("hostname", "example.com", true);
    fits("hostname", "-a-", false);
    fits("uri", "https://example.com/x?y", true);
    fits("uri", "no uri", false);
    fits("email", "a@b.c", true);
    fits("email", "ab", false);
    fits("mac", "01:23:45:67:89:ab", true);
    fits("mac", "01:23", false);
    fits("isbn", "978-0321751041", true);
    fits("isbn10", "0321751043", true);
    fits("isbn10", "0321751044", false);
    fits("k8s-short-name", "a-b", true);
    fits("k8s-short-name", "A", false);
    fits("k8s-long-name", "a.b", true);
    fits("something-nobody-knows", "x", true);
    check(
        json!({"type": "string", "format": "ipv4"}),
        json!("x"),
        &[r#"x: Invalid value: "x": x in body must be of type ipv4: "x""#],
    );
}

#[test]
fn alternatives() {
    let one_of = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}]});
    assert_eq!(errors(&one_of, &json!({"a": ""}), None), [""; 0]);
    assert_eq!(
        errors(&one_of, &json!({"a": "", "b": ""}), None),
        [
            r#"<nil>: Invalid value: "": "" must validate one and only one schema (oneOf). Found 2 valid alternatives"#
        ]
    );
    assert_eq!(
        errors(&one_of, &json!({}), None),
        [
            r#"<nil>: Invalid value: "": "" must validate one and only one schema (oneOf). Found none valid"#,
            "a: Required value"
        ]
    );
    check(
        json!({"type": "integer", "anyOf": [{"minimum": 10}, {"maximum": 1}]}),
        json!(5),
        &[
            r#"<nil>: Invalid value: "": "x" must validate at least one schema (anyOf)"#,
            "x: Invalid value: 5: x in body should be greater than or equal to 10",
        ],
    );
    check(
        json!({"type": "integer", "allOf": [{"minimum": 10}]}),
        json!(5),
        &[
            "x: Invalid value: 5: x in body should be greater than or equal to 10",
            r#"<nil>: Invalid value: "": "x" must validate all the schemas (allOf). None validated"#,
        ],
    );
    check(
        json!({"type": "integer", "not": {"minimum": 10}}),
        json!(11),
        &[r#"<nil>: Invalid value: "": "x" must not validate the schema (not)"#],
    );
}

#[test]
fn lists_keep_their_promise() {
    let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    check(set, json!(["a", "b", "a", "a"]), &[r#"x[2]: Duplicate value: "a""#]);
    let map = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "properties": {"k": {"type": "string"}}}});
    check(map, json!([{"k": "a"}, {"k": "a", "v": 1}]), &[r#"x[1]: Duplicate value: {"k":"a"}"#]);
}

#[test]
fn embedded_resources_have_an_identity() {
    let embedded = json!({"type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true});
    check(embedded.clone(), json!({"apiVersion": "v1", "kind": "Pod"}), &[]);
    check(
        embedded,
        json!({"kind": ""}),
        &["x.apiVersion: Required value", r#"x.kind: Invalid value: "": must not be empty"#],
    );
}

#[test]
fn what_was_wrong_before_is_forgiven() {
    let of = json!({"type": "object", "properties": {
        "a": {"type": "string", "maxLength": 2},
        "l": {"type": "array", "items": {"type": "string", "maxLength": 2}},
    }});
    let old = json!({"a": "long", "l": ["long"]});
    assert_eq!(errors(&of, &old, Some(&old)), [""; 0]);
    let changed = json!({"a": "longer", "l": ["long"]});
    assert_eq!(errors(&of, &changed, Some(&old)), ["a: Too long: may not be more than 2 bytes"]);
    // Items of an atomic list do not correlate: one change brings all of them back.
    let appended = json!({"a": "long", "l": ["long", "b"]});
    assert_eq!(errors(&of, &appended, Some(&old)), ["l[0]: Too long: may not be more than 2 bytes"]);
}
