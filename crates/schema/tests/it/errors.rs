//! The wording of field errors.

use lifeboat_schema::FieldError;
use serde_json::json;

#[test]
fn worded_as_kubernetes_words_them() {
    let check = |error: FieldError, want: &str| assert_eq!(error.to_string(), want);
    check(
        FieldError::invalid("spec.x", "abc", "must be good"),
        r#"spec.x: Invalid value: "abc": must be good"#,
    );
    check(FieldError::invalid("spec.x", 5, "must be less"), "spec.x: Invalid value: 5: must be less");
    check(
        FieldError::invalid("spec.x", 1_000_000.0, "must be less"),
        "spec.x: Invalid value: 1e+06: must be less",
    );
    check(FieldError::invalid("spec", json!({"a": [1]}), "no"), r#"spec: Invalid value: {"a":[1]}: no"#);
    check(FieldError::required("spec.y", ""), "spec.y: Required value");
    check(FieldError::required("spec.y", "must be set"), "spec.y: Required value: must be set");
    check(
        FieldError::not_supported("spec.z", "a", &["b", "c"]),
        r#"spec.z: Unsupported value: "a": supported values: "b", "c""#,
    );
    check(FieldError::forbidden("spec.f", "may not change"), "spec.f: Forbidden: may not change");
    check(FieldError::duplicate("spec.l[1]", "x"), r#"spec.l[1]: Duplicate value: "x""#);
    check(FieldError::not_found("spec.n", "x"), r#"spec.n: Not found: "x""#);
    check(FieldError::too_long("spec.t", 63), "spec.t: Too long: may not be more than 63 bytes");
    check(FieldError::too_long("spec.t", 1), "spec.t: Too long: may not be more than 1 byte");
    check(FieldError::too_many("spec.m", 3, 2), "spec.m: Too many: 3: must have at most 2 items");
    check(FieldError::internal("spec.i", "boom"), "spec.i: Internal error: boom");
    check(FieldError::invalid("", json!(null), "x"), "<nil>: Invalid value: null: x");
    check(FieldError::invalid("s", "a\"b\n\u{1}", "x"), r#"s: Invalid value: "a\"b\n\x01": x"#);
}

#[test]
fn causes_carry_reason_message_and_field() {
    assert_eq!(
        FieldError::required("spec.y", "must be set").cause(),
        json!({"reason": "FieldValueRequired", "message": "Required value: must be set", "field": "spec.y"})
    );
}
