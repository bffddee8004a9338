//! Schemas and what is done with them: validation with CEL, and every kind of patch.

use crate::make::Source;
use crate::{Input, SEPARATOR, json_part, tolerate_fenced_panics};
use lifeboat_schema::managed::{self, Manager};
use lifeboat_schema::patch::{json_patch, merge_patch, strategic};
use lifeboat_schema::{
    Schema, apply_defaults, check_structural, prune, type_errors, unknown_fields, validate,
};
use serde_json::{Value, json};

/// A patch may make a document so much larger than the document and the patch together are.
const GROWTH: usize = 64 << 20;

/// The schema that patches are tried on: one property for each way to merge.
fn thing() -> Value {
    json!({"type": "object", "properties": {
    "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
    "spec": {"type": "object", "properties": {
        "n": {"type": "integer", "minimum": 0, "default": 1},
        "s": {"type": "string", "pattern": "^a*$"},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge",
            "items": {"type": "string"}},
        "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "k",
            "items": {"type": "object", "required": ["k"], "properties": {
                "k": {"type": "string"}, "v": {"type": "integer", "default": 3}}}},
        "map": {"type": "object", "additionalProperties": {"type": "string", "nullable": true}},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"k": {"type": "string"}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }}}})
}

/// Documents with patches of every kind, as text or as choices: no panic, and the laws that hold for every patch.
///
/// # Panics
/// When a promise is broken.
pub fn patch(data: &[u8]) {
    let raw = thing();
    let schema = Schema::parse(&raw).expect("invariant: the schema is sound");
    let pod = lifeboat_kinds::schema("v1", "Pod").expect("invariant: pods are known");
    let (document, patch) = match Input::read(data, SEPARATOR) {
        Input::Text(parts) => (json_part(&parts, 0), json_part(&parts, 1)),
        Input::Choices(mut source) => choose_patch(&mut source, &raw),
    };
    let size = |value: &Value| value.to_string().len();
    let input = size(&document) + size(&patch);
    if let Ok(outcome) = json_patch(&document, &patch) {
        assert!(size(&outcome) <= input + GROWTH, "a patch of {input} bytes makes {}", size(&outcome));
    }
    let merged = merge_patch(&document, &patch);
    assert_eq!(merge_patch(&merged, &patch), merged, "a merge patch applies twice as once");
    for schema in [&schema, pod] {
        let _ = strategic(schema, &document, &patch);
        applies(schema, &document, &patch);
    }
}

fn choose_patch(source: &mut Source<'_>, schema: &Value) -> (Value, Value) {
    let none = serde_json::Map::new();
    let mut document = source.shaped(schema, &none, 8);
    let mut patch = match source.below(3) {
        0 => source.json_patch(&document),
        1 => source.shaped(schema, &none, 8),
        _ => document.clone(),
    };
    for _ in 0..source.below(6) {
        source.edit(&mut patch);
    }
    for _ in 0..source.below(3) {
        source.edit(&mut document);
    }
    (document, patch)
}

/// Server-side apply by two managers with a plain write between them.
fn applies(schema: &Schema, document: &Value, config: &Value) {
    let manager = |name| Manager {
        name,
        api_version: "x/v1",
        subresource: "",
        time: "2024-01-01T00:00:00Z",
        reset_fields: &["status"],
    };
    let mut config = config.clone();
    if let Some(fields) = config.as_object_mut() {
        fields.insert("apiVersion".into(), "x/v1".into());
    }
    let _ = managed::apply(schema, Some(document), &config, &manager("kubectl"), false);
    let Ok(created) = managed::apply(schema, None, &config, &manager("one"), false) else { return };
    let again = managed::apply(schema, Some(&created), &config, &manager("one"), false);
    // Who applied nothing owns nothing, and what nobody owns is taken for older than apply.
    if created.pointer("/metadata/managedFields").is_some() {
        assert_eq!(again.as_ref(), Ok(&created), "what was applied can be applied again, to no effect");
    }
    let mut changed = document.clone();
    managed::update(schema, Some(&created), &mut changed, &manager("two"));
    let _ = managed::apply(schema, Some(&changed), &config, &manager("one"), false);
    let forced = managed::apply(schema, Some(&changed), &config, &manager("one"), true);
    assert!(!matches!(forced, Err(managed::ApplyError::Conflict(_))), "force leaves no conflict");
}

/// A schema with rules and two versions of an object: accepted or refused, never a panic, in bounded time.
///
/// # Panics
/// When a promise is broken.
pub fn cel(data: &[u8]) {
    tolerate_fenced_panics();
    let (schema, new, old) = match Input::read(data, SEPARATOR) {
        // A text that begins with a bracket is a schema, any other a rule.
        Input::Text(parts) if parts[0].starts_with('{') => {
            (json_part(&parts, 0), json_part(&parts, 1), json_part(&parts, 2))
        }
        Input::Text(parts) => (ruled(parts[0]), sample(), sample()),
        Input::Choices(mut source) => {
            let rule = expression(&mut source, 6);
            let mut schema = ruled(&rule);
            for _ in 0..source.below(4) {
                source.edit(&mut schema);
            }
            let (mut new, mut old) = (sample(), sample());
            source.edit(&mut new);
            source.edit(&mut old);
            (schema, new, old)
        }
    };
    let faults = check_structural(&schema);
    let Ok(parsed) = Schema::parse(&schema) else {
        assert!(!faults.is_empty(), "a schema that does not parse is not accepted");
        return;
    };
    let _ = validate(&parsed, &new, Some(&old));
    let _ = type_errors(&parsed, &new);
    let mut defaulted = new.clone();
    apply_defaults(&parsed, &mut defaulted);
    let unknown = unknown_fields(&parsed, &defaulted);
    let mut pruned = defaulted.clone();
    assert_eq!(prune(&parsed, &mut pruned).len(), unknown.len(), "what is pruned is what is unknown");
    if faults.is_empty() {
        assert_eq!(unknown_fields(&parsed, &pruned), Vec::<String>::new(), "pruning leaves nothing unknown");
        let mut again = defaulted.clone();
        apply_defaults(&parsed, &mut again);
        assert_eq!(again, defaulted, "defaults apply once");
    }
    let _ = validate(&parsed, &pruned, None);
}

fn ruled(rule: &str) -> Value {
    let rules = |rule: &str| json!([{"rule": rule, "messageExpression": rule}]);
    json!({"type": "object", "x-kubernetes-validations": rules(rule), "properties": {
        "n": {"type": "integer", "x-kubernetes-validations": rules(rule)},
        "s": {"type": "string", "maxLength": 50, "x-kubernetes-validations": rules(rule)},
        "d": {"type": "string", "format": "date-time"},
        "list": {"type": "array", "maxItems": 20, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {
                "k": {"type": "string", "maxLength": 10}, "v": {"type": "integer", "default": 1}},
                "x-kubernetes-validations": rules(rule)}},
        "map": {"type": "object", "maxProperties": 10, "additionalProperties": {"type": "string", "maxLength": 10}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }})
}

fn sample() -> Value {
    json!({"n": 3, "s": "aab", "d": "2024-01-01T00:00:00Z", "list": [{"k": "a", "v": 1}, {"k": "b"}],
        "map": {"x": "y", "z": "1Gi"}, "free": {"a": [1, "b", null]}})
}

/// An expression: mostly one that could mean something.
fn expression(source: &mut Source<'_>, depth: usize) -> String {
    if depth == 0 || source.is_empty() {
        return source
            .pick(&[
                "self",
                "oldSelf",
                "1",
                "0",
                "-1",
                "9223372036854775807",
                "1.5",
                "1u",
                "\"a\"",
                "''",
                "true",
                "null",
                "b'a'",
                "[]",
                "{}",
                "self.n",
                "self.s",
                "self.list",
                "self.map",
                "x",
                "self.list[0].v",
                "type(1)",
                "'1Gi'",
                "'2024-01-01T00:00:00Z'",
                "'10.0.0.1'",
                "'1h'",
                "'\\\\'",
                "r'('",
                "'.*.*.*x'",
            ])
            .to_owned();
    }
    let mut part = || expression(source, depth - 1);
    let (a, b, c) = (part(), part(), part());
    match source.below(12) {
        0 => {
            let operator = source.pick(&[
                "+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||", " in ", ".", "? :",
            ]);
            format!("({a} {operator} {b})")
        }
        1 => {
            let call = source.pick(&[
                "size",
                "matches",
                "startsWith",
                "contains",
                "split",
                "replace",
                "join",
                "substring",
                "indexOf",
                "lowerAscii",
                "sum",
                "min",
                "isSorted",
                "find",
                "findAll",
                "format",
                "getSeconds",
                "getFullYear",
                "isGreaterThan",
                "asInteger",
                "add",
                "ip",
                "containsCIDR",
                "orValue",
                "hasValue",
                "charAt",
                "trim",
            ]);
            format!("{a}.{call}({b})")
        }
        2 => {
            let many =
                source.pick(&["all", "exists", "exists_one", "map", "filter", "sortBy", "transformList"]);
            format!("{a}.{many}(x, {b})")
        }
        3 => {
            let call = source.pick(&[
                "has",
                "int",
                "uint",
                "double",
                "string",
                "bytes",
                "duration",
                "timestamp",
                "quantity",
                "url",
                "ip",
                "cidr",
                "size",
                "type",
                "dyn",
                "optional.of",
                "isQuantity",
                "format.dns1123Label",
                "semver",
                "bool",
                "!",
                "-",
            ]);
            format!("{call}({a})")
        }
        4 => format!("({a} ? {b} : {c})"),
        5 => format!("{a}[{b}]"),
        6 => format!("[{a}, {b}, {c}]"),
        7 => format!("{{{a}: {b}}}"),
        8 => format!("{a}.?{}", source.pick(&["n", "s", "list", "nothing"])),
        9 => format!("{a}.substring({b}, {c})"),
        10 => format!("{a}.replace({b}, {c})"),
        _ => format!("cel.bind(x, {a}, {b})"),
    }
}
