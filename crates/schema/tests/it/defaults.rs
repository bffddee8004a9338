//! Defaults of custom resources, and what they leave alone.

use crate::schema;
use lifeboat_schema::apply_defaults;
use serde_json::{Value, json};

#[test]
fn defaults_fill_what_is_missing() {
    let of = schema(&json!({"type": "object", "properties": {
        "a": {"type": "integer", "default": 1},
        "n": {"type": "string", "nullable": true, "default": "d"},
        "s": {"type": "object", "default": {}, "properties": {"b": {"type": "string", "default": "x"}}},
        "l": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "boolean", "default": true}}}},
        "m": {"type": "object", "additionalProperties": {"type": "object", "properties": {
            "d": {"type": "integer", "default": 2}}}},
        "v": {"type": "object", "additionalProperties": {"type": "integer", "default": 7}},
        "plain": {"type": "string"},
    }}));
    let check = |object: Value, want: Value| {
        let mut filled = object.clone();
        apply_defaults(&of, &mut filled);
        let expected = want.as_object().unwrap();
        for (name, value) in expected {
            assert_eq!(filled.get(name), Some(value), "{name} of {object}");
        }
    };
    check(json!({}), json!({"a": 1, "n": "d", "s": {"b": "x"}}));
    check(json!({"a": 5, "s": {"b": "y"}}), json!({"a": 5, "s": {"b": "y"}}));
    check(json!({"a": null, "n": null}), json!({"a": 1, "n": null}));
    check(json!({"l": [{}, {"c": false}]}), json!({"l": [{"c": true}, {"c": false}]}));
    check(json!({"m": {"k": {}}}), json!({"m": {"k": {"d": 2}}}));
    check(json!({"v": {"k": null}}), json!({"v": {"k": 7}}));
    let mut object = json!({"plain": null});
    apply_defaults(&of, &mut object);
    assert!(object.get("plain").is_none(), "a null that is neither allowed nor defaulted goes");
}
