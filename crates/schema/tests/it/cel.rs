//! Rules in CEL: what they see, what they cost, how they fail.

use crate::schema;
use lifeboat_schema::validate;
use serde_json::{Value, json};

fn errors(of: &Value, new: &Value, old: Option<&Value>) -> Vec<String> {
    validate(&schema(of), new, old).iter().map(ToString::to_string).collect()
}

fn spec(properties: Value, rules: Value) -> Value {
    json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": properties, "x-kubernetes-validations": rules},
    }})
}

#[test]
fn a_rule_that_fails() {
    let of = spec(json!({"a": {"type": "integer"}}), json!([{"rule": "self.a > 1"}]));
    assert_eq!(errors(&of, &json!({"spec": {"a": 2}}), None), [""; 0]);
    assert_eq!(
        errors(&of, &json!({"spec": {"a": 1}}), None),
        ["spec: Invalid value: failed rule: self.a > 1"]
    );
}

#[test]
fn the_words_of_a_rule() {
    let check = |rule: Value, want: &str| {
        let of = spec(json!({"a": {"type": "integer"}}), json!([rule]));
        assert_eq!(errors(&of, &json!({"spec": {"a": 1}}), None), [want]);
    };
    check(json!({"rule": "false", "message": " too small "}), "spec: Invalid value: too small");
    check(
        json!({"rule": "false", "messageExpression": "'a is ' + string(self.a)"}),
        "spec: Invalid value: a is 1",
    );
    check(json!({"rule": "false", "message": "m", "messageExpression": "''"}), "spec: Invalid value: m");
    check(
        json!({"rule": "false", "fieldPath": ".a", "reason": "FieldValueForbidden", "message": "no"}),
        "spec.a: Forbidden: no",
    );
    check(
        json!({"rule": "false", "reason": "FieldValueRequired", "message": "m"}),
        "spec: Required value: m",
    );
    check(
        json!({"rule": "self.b == 1"}),
        r#"spec: Invalid value: "object": no such key: b evaluating rule: self.b == 1"#,
    );
}

#[test]
fn scalars_show_their_value() {
    let of = json!({"type": "object", "properties": {
        "n": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 5", "message": "m"}]},
    }});
    assert_eq!(errors(&of, &json!({"n": 1}), None), ["n: Invalid value: 1: m"]);
}

#[test]
fn transition_rules() {
    let of = json!({"type": "object", "properties": {
        "n": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > oldSelf"}]},
        "once": {"type": "string", "x-kubernetes-validations": [
            {"rule": "!oldSelf.hasValue() || oldSelf.value() == self", "optionalOldSelf": true, "message": "fixed"},
        ]},
        "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {
            "type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v", "message": "shrinks"}]}},
    }});
    let check = |new: Value, old: Option<Value>, want: &[&str]| {
        assert_eq!(errors(&of, &new, old.as_ref()), want, "{new} after {old:?}");
    };
    check(json!({"n": 1}), None, &[]);
    check(json!({"n": 2}), Some(json!({"n": 1})), &[]);
    check(json!({"n": 1}), Some(json!({"n": 1})), &["n: Invalid value: 1: failed rule: self > oldSelf"]);
    check(json!({"once": "a"}), None, &[]);
    check(json!({"once": "b"}), Some(json!({"once": "a"})), &[r#"once: Invalid value: "b": fixed"#]);
    check(
        json!({"l": [{"k": "b", "v": 1}, {"k": "a", "v": 1}]}),
        Some(json!({"l": [{"k": "a", "v": 2}]})),
        &["l[1]: Invalid value: shrinks"],
    );
}

#[test]
fn rules_see_names_escaped_and_metadata_by_name() {
    let of = json!({"type": "object", "properties": {
        "a-b": {"type": "integer"}, "namespace": {"type": "string"}, "snake_case": {"type": "integer"},
        "m": {"type": "object", "additionalProperties": {"type": "string"}},
    }, "x-kubernetes-validations": [
        {"rule": "self.a__dash__b == 1"},
        {"rule": "self.__namespace__ == 'x'"},
        {"rule": "self.snake_case == 2"},
        {"rule": "self.m['k-1'] == 'v'"},
        {"rule": "self.metadata.name == 'n'"},
    ]});
    let object = json!({"metadata": {"name": "n", "labels": {}}, "a-b": 1, "namespace": "x", "snake_case": 2, "m": {"k-1": "v"}});
    assert_eq!(errors(&of, &object, None), [""; 0]);
}

#[test]
fn values_have_the_type_the_schema_says() {
    let of = spec(
        json!({"n": {"type": "number"}, "t": {"type": "string", "format": "date-time"},
               "d": {"type": "string", "format": "duration"}, "b": {"type": "string", "format": "byte"}}),
        json!([
            {"rule": "self.n == 1.0"},
            {"rule": "self.t < timestamp('2025-01-01T00:00:00Z')"},
            {"rule": "self.d > duration('1m')"},
            {"rule": "size(self.b) == 2"},
        ]),
    );
    let object = json!({"spec": {"n": 1, "t": "2024-01-01T00:00:00Z", "d": "1h", "b": "aGk="}});
    assert_eq!(errors(&of, &object, None), [""; 0]);
}

#[test]
fn rules_wait_for_the_structure() {
    let of = spec(json!({"a": {"type": "integer"}}), json!([{"rule": "self.a > 1"}]));
    assert_eq!(
        errors(&of, &json!({"spec": {"a": "x"}}), None),
        [
            r#"spec.a: Invalid value: "string": spec.a in body must be of type integer: "string""#,
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
        ]
    );
}

#[test]
fn an_unchanged_object_is_forgiven() {
    let of = spec(json!({"a": {"type": "integer"}}), json!([{"rule": "self.a > 1"}]));
    let old = json!({"spec": {"a": 1}});
    assert_eq!(
        errors(&of, &json!({"spec": {"a": 1}, "metadata": {"labels": {"x": "y"}}}), Some(&old)),
        [""; 0]
    );
    assert_eq!(errors(&of, &json!({"spec": {"a": 0}}), Some(&old)).len(), 1);
}

#[test]
fn a_costly_rule_is_not_run() {
    let of = spec(
        json!({"l": {"type": "array", "items": {"type": "integer"}}}),
        json!([{"rule": "self.l.all(x, self.l.all(y, y == x))"}]),
    );
    let large: Vec<i32> = (0..725).map(|_| 20).collect();
    let found = errors(&of, &json!({"spec": {"l": large}}), None);
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("call cost exceeds limit"), "{found:?}");
    let chained = spec(
        json!({"l": {"type": "array", "items": {"type": "integer"}}}),
        json!([{"rule": "self.l.filter(x, x > 0).map(x, x * 1000000000).all(x, x < 900000000000)"}]),
    );
    assert_eq!(errors(&chained, &json!({"spec": {"l": large}}), None), [""; 0]);
    let small: Vec<i32> = (0..50).map(|_| 20).collect();
    assert_eq!(errors(&of, &json!({"spec": {"l": small}}), None), [""; 0]);
}

#[test]
fn what_kubernetes_has_beyond_the_engine() {
    let of = |rule: &str| {
        spec(
            json!({"u": {"type": "string"}, "i": {"type": "integer"}, "n": {"type": "string", "nullable": true}}),
            json!([{"rule": rule}]),
        )
    };
    let object = json!({"spec": {"u": "äöü", "i": 5, "n": null}});
    for rule in [
        "size(self.u) == 3 && self.u.size() == 3",
        "type(self.i) == int && type(self.u) == string",
        "dyn(self.i) == 5 && bool('true')",
        "self.?u.hasValue() && self.?none.orValue('z') == 'z'",
        "!!(self.i == 5) && !!!!true",
        "!has(self.n)",
    ] {
        assert_eq!(errors(&of(rule), &object, None), [""; 0], "{rule}");
    }
}

#[test]
fn hostile_rules_neither_hang_nor_overflow_the_stack() {
    let object = json!({"a": {}});
    for rule in [
        format!("{}true{}", "(".repeat(5000), ")".repeat(5000)),
        format!("{}true{}", "(".repeat(49), ")".repeat(49)),
        "[".repeat(5000),
        format!("{}true", "!".repeat(5000)),
        format!("{}1 == 1", "1 + ".repeat(2900)),
        format!("{}1 == 1", "1 + ".repeat(200)),
        format!("self{} == 1", ".a".repeat(2900)),
        format!("{}true{}", "[1,2].all(x, ".repeat(45), ")".repeat(45)),
        format!("{}true", "true ? true : ".repeat(700)),
    ] {
        let of = json!({"type": "object", "x-kubernetes-validations": [{"rule": rule}]});
        let _ = lifeboat_schema::check_structural(&of);
        let _ = errors(&of, &object, None);
    }
}
