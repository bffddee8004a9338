//! What the schema of a definition may say.

use lifeboat_schema::{check_structural, check_structural_at};
use serde_json::{Value, json};

fn check(of: Value, want: &[&str]) {
    let found: Vec<String> = check_structural(&of).iter().map(ToString::to_string).collect();
    assert_eq!(found, want, "{of}");
}

/// Checks a schema with one property `x`.
fn property(x: Value, want: &[&str]) {
    check(json!({"type": "object", "properties": {"x": x}}), want);
}

#[test]
fn types_everywhere() {
    check(json!({}), &["type: Required value: must not be empty at the root"]);
    check(json!({"type": "string"}), &[r#"type: Invalid value: "string": must be object at the root"#]);
    property(
        json!({}),
        &["properties[x].type: Required value: must not be empty for specified object fields"],
    );
    property(json!({"type": "array"}), &["properties[x].items: Required value: must be specified"]);
    property(
        json!({"type": "array", "items": {}}),
        &["properties[x].items.type: Required value: must not be empty for specified array items"],
    );
    property(json!({"x-kubernetes-int-or-string": true}), &[]);
    property(
        json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        &[],
    );
    property(json!({"x-kubernetes-preserve-unknown-fields": true}), &[]);
    property(
        json!({"type": "frog"}),
        &[
            r#"properties[x].type: Unsupported value: "frog": supported values: "array", "boolean", "integer", "number", "object", "string""#,
        ],
    );
}

#[test]
fn paths_can_be_full() {
    let found =
        check_structural_at(&json!({"type": "object", "properties": {"x": {}}}), "spec.versions[0].schema");
    assert_eq!(found[0].field, "spec.versions[0].schema.properties[x].type");
}

#[test]
fn junctors_only_refine() {
    property(
        json!({"type": "string", "allOf": [{"type": "string"}]}),
        &["properties[x].allOf[0].type: Forbidden: must be empty to be structural"],
    );
    property(
        json!({"type": "string", "not": {"description": "d"}}),
        &["properties[x].not.description: Forbidden: must be empty to be structural"],
    );
    check(
        json!({"type": "object", "anyOf": [{"properties": {"y": {"minimum": 1}}}]}),
        &["properties[y]: Required value: because it is defined in anyOf[0].properties[y]"],
    );
    property(
        json!({"type": "string", "pattern": "("}),
        &[
            r#"properties[x].pattern: Invalid value: "(": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`"#,
        ],
    );
}

#[test]
fn metadata_is_given() {
    check(json!({"type": "object", "properties": {"metadata": {"type": "object"}}}), &[]);
    check(
        json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {
            "name": {"type": "string", "maxLength": 3}}}}}),
        &[],
    );
    check(
        json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {
            "labels": {"type": "object"}}}}}),
        &[
            "properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
        ],
    );
    check(
        json!({"type": "object", "properties": {"kind": {"type": "integer"}}}),
        &[r#"properties[kind].type: Invalid value: "integer": must be string"#],
    );
}

#[test]
fn what_is_not_supported() {
    property(
        json!({"type": "string", "$ref": "#/x"}),
        &["properties[x].$ref: Forbidden: $ref is not supported"],
    );
    property(
        json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
        &[
            "properties[x].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ],
    );
    property(
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false}),
        &[
            "properties[x].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ],
    );
    property(
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false}),
        &[
            "properties[x].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined",
        ],
    );
    check(
        json!({"type": "object", "nullable": true}),
        &["nullable: Forbidden: nullable cannot be true at the root"],
    );
}

#[test]
fn list_types() {
    let items = json!({"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "o": {"type": "string"}}});
    let list = |kind: &str, keys: Value, items: &Value| json!({"type": "array", "x-kubernetes-list-type": kind, "x-kubernetes-list-map-keys": keys, "items": items});
    property(list("map", json!(["k"]), &items), &[]);
    property(
        list("map", json!(["z"]), &items),
        &[
            r#"properties[x].x-kubernetes-list-map-keys: Invalid value: ["z"]: entries must all be names of item properties"#,
        ],
    );
    property(
        list("map", json!(["o"]), &items),
        &[
            "properties[x].items.properties[o].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ],
    );
    property(
        list("map", json!([]), &items),
        &[
            "properties[x].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
        ],
    );
    property(
        list("bag", json!([]), &items),
        &[
            r#"properties[x].x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map""#,
        ],
    );
    property(
        json!({"type": "string", "x-kubernetes-list-type": "set"}),
        &[
            r#"properties[x].type: Invalid value: "string": must be array if x-kubernetes-list-type is specified"#,
        ],
    );
}

#[test]
fn defaults_must_fit() {
    property(json!({"type": "integer", "default": 1}), &[]);
    property(
        json!({"type": "integer", "default": "a"}),
        &[r#"properties[x].default: Invalid value: "string":  in body must be of type integer: "string""#],
    );
    property(
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "default": {"b": 1}}),
        &[r#"properties[x].default: Invalid value: {"b":1}: must not have unknown fields"#],
    );
    check(
        json!({"type": "object", "properties": {"kind": {"type": "string", "default": "K"}}}),
        &["properties[kind].default: Forbidden: must not be set in top-level kind"],
    );
}

#[test]
fn rules_must_compile() {
    let rule = |text: &str| {
        json!({"type": "object", "properties": {"a": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": text}]})
    };
    let found =
        |of: Value| -> Vec<String> { check_structural(&of).iter().map(ToString::to_string).collect() };
    assert_eq!(found(rule("self.a > 1")), [""; 0]);
    let undefined = found(rule("self.z == 100"));
    assert!(
        undefined[0].ends_with(
            "compilation failed: ERROR: <input>:1:5: undefined field 'z'\n | self.z == 100\n | ....^"
        ),
        "{undefined:?}"
    );
    assert!(found(rule("self = 42"))[0].contains("Syntax error"), "{:?}", found(rule("self = 42")));
    assert!(found(rule("other == 1"))[0].contains("undeclared reference to 'other'"));
    assert!(found(rule("self.a"))[0].ends_with("cel expression must evaluate to a bool"));
    assert_eq!(found(rule("has(self.a) && self.a in [1, 2] && math.abs(self.a) > 0")), [""; 0]);
    assert_eq!(found(rule(" ")), ["x-kubernetes-validations[0].rule: Required value: rule is not specified"]);
}

#[test]
fn rules_must_be_cheap() {
    let nested = json!({"type": "object", "properties": {"x": {"type": "array", "items": {
        "type": "array", "items": {"type": "string"},
        "x-kubernetes-validations": [{"rule": "self.all(s, s == 'string constant')"}]}}}});
    let found: Vec<String> = check_structural(&nested).iter().map(ToString::to_string).collect();
    assert!(found[0].contains("estimated rule cost exceeds budget by factor of more than 100x"), "{found:?}");
    let bounded = json!({"type": "object", "properties": {
        "l": {"type": "array", "maxItems": 725, "items": {"type": "integer"}}},
        "x-kubernetes-validations": [{"rule": "self.l.all(x, self.l.all(y, y == x))"}]});
    check(bounded, &[]);
}

#[test]
fn old_self_needs_correlation() {
    let of = json!({"type": "object", "properties": {"x": {"type": "array", "maxItems": 3, "items": {
        "type": "integer", "x-kubernetes-validations": [{"rule": "self > oldSelf"}]}}}});
    check(
        of,
        &[
            r#"properties[x].items.x-kubernetes-validations[0].rule: Invalid value: "self > oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within properties[x]"#,
        ],
    );
}
