//! What makes a schema structural: types everywhere, and value validations that only refine what is specified.

use super::raw::Raw;
use super::{child, keyed};
use crate::FieldError;
use crate::pattern::compile;
use serde_json::{Value, json};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// What keeps the schema from being structural, sorted by text.
pub(super) fn check(root: Raw<'_>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    spine(root, Level::Root, path, &mut errors);
    complete(root, Some(root), path, path, &mut errors);
    errors.sort_by_key(ToString::to_string);
    errors
}

/// Whether the schema uses, anywhere, what a structural one cannot even express.
pub(super) fn unreadable(s: Raw<'_>) -> bool {
    let unsupported =
        ["id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions"];
    let used =
        |name: &str| s.get(name).is_some_and(|v| *v != "" && v.as_object().is_none_or(|o| !o.is_empty()));
    let below = |name: &str| s.schema(name).is_some_and(unreadable);
    unsupported.into_iter().any(used)
        || s.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(false))
        || s.get("items").is_some_and(Value::is_array)
        || s.properties().any(|(_, property)| unreadable(property))
        || ["items", "additionalProperties", "not"].into_iter().any(below)
        || ["allOf", "anyOf", "oneOf"].into_iter().any(|j| s.branches(j).any(|(_, b)| unreadable(b)))
}

fn spine(s: Raw<'_>, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let kind = s.kind();
    let embedded = s.flag("x-kubernetes-embedded-resource");
    let int_or_string = s.flag("x-kubernetes-int-or-string");
    let preserve = s.flag("x-kubernetes-preserve-unknown-fields");
    match s.schema("items") {
        Some(items) => spine(items, Level::Item, &child(path, "items"), errors),
        None if kind == "array" => {
            errors.push(FieldError::required(child(path, "items"), "must be specified"));
        }
        None => {}
    }
    for (name, property) in s.properties() {
        spine(property, Level::Field, &keyed(path, "properties", name), errors);
    }
    if s.get("additionalProperties").is_some() {
        let at = child(path, "additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(&*at, "must not be used at the root"));
        }
        if embedded {
            let why = "must not be used if x-kubernetes-embedded-resource is set";
            errors.push(FieldError::forbidden(&*at, why));
        }
        if let Some(additional) = s.schema("additionalProperties") {
            spine(additional, Level::Field, &at, errors);
        }
    }
    if int_or_string {
        let why = "must be false if x-kubernetes-int-or-string is true";
        for (set, name) in
            [(preserve, "x-kubernetes-preserve-unknown-fields"), (embedded, "x-kubernetes-embedded-resource")]
        {
            if set {
                errors.push(FieldError::invalid(child(path, name), true, why));
            }
        }
    }
    values(s, path, true, errors);
    typed(s, level, path, errors);
    meta(s, level, path, errors);
    if embedded && !preserve && s.properties().next().is_none() {
        let why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(child(path, "properties"), why));
    }
}

fn typed(s: Raw<'_>, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let kind = s.kind();
    let at = || child(path, "type");
    let free = s.flag("x-kubernetes-int-or-string") || s.flag("x-kubernetes-preserve-unknown-fields");
    if s.flag("x-kubernetes-embedded-resource") && kind != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match kind {
            "" => FieldError::required(at(), why),
            _ => FieldError::invalid(at(), kind, why),
        });
    } else if kind.is_empty() && !free {
        let why = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(at(), why));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(at(), kind, "must be object at the root"));
    }
}

/// `kind`, `apiVersion` and `metadata` are given: a schema may narrow the name and no more.
fn meta(s: Raw<'_>, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let resource = level == Level::Root || s.flag("x-kubernetes-embedded-resource");
    for name in ["kind", "apiVersion"] {
        if let Some(property) = s.property(name).filter(|p| resource && p.kind() != "string") {
            let at = child(&keyed(path, "properties", name), "type");
            errors.push(FieldError::invalid(at, property.kind(), "must be string"));
        }
    }
    let Some(metadata) = s.property("metadata") else { return };
    let at = keyed(path, "properties", "metadata");
    if resource && metadata.kind() != "object" {
        errors.push(FieldError::invalid(child(&at, "type"), metadata.kind(), "must be object"));
    }
    let names = metadata.properties().all(|(name, _)| matches!(name.as_str(), "name" | "generateName"));
    let other = metadata.names().any(|n| !matches!(n, "type" | "properties" | "default"));
    if level == Level::Root && (!names || other) {
        let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(FieldError::forbidden(at, why));
    }
}

/// Value validations: the pattern, and what stands under the junctors.
fn values(s: Raw<'_>, path: &str, spine: bool, errors: &mut Vec<FieldError>) {
    let int_or_string =
        |s: Raw<'_>| s.get("anyOf") == Some(&json!([{ "type": "integer" }, { "type": "string" }]));
    // The two ways of writing int-or-string are the only places where a junctor may name types.
    let excused = spine && int_or_string(s);
    if !excused {
        for (i, branch) in s.branches("anyOf") {
            nested(branch, false, &format!("{}[{i}]", child(path, "anyOf")), errors);
        }
    }
    for (i, branch) in s.branches("allOf") {
        let excused = spine && i == 0 && int_or_string(branch);
        nested(branch, excused, &format!("{}[{i}]", child(path, "allOf")), errors);
    }
    for (i, branch) in s.branches("oneOf") {
        nested(branch, false, &format!("{}[{i}]", child(path, "oneOf")), errors);
    }
    if let Some(not) = s.schema("not") {
        nested(not, false, &child(path, "not"), errors);
    }
    let pattern = s.text("pattern");
    if let Err(error) = compile(pattern) {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        errors.push(FieldError::invalid(child(path, "pattern"), pattern, detail));
    }
}

fn nested(s: Raw<'_>, skip_any_of: bool, path: &str, errors: &mut Vec<FieldError>) {
    if !skip_any_of {
        values(s, path, false, errors);
    }
    if let Some(items) = s.schema("items") {
        nested(items, false, &child(path, "items"), errors);
    }
    for (name, property) in s.properties() {
        nested(property, false, &keyed(path, "properties", name), errors);
    }
    let forbidden = [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ];
    let empty = |v: &Value| v == "" || *v == json!(false) || v.as_array().is_some_and(Vec::is_empty);
    for (name, why) in forbidden {
        if s.get(name).is_some_and(|v| name == "additionalProperties" || !empty(v)) {
            errors.push(FieldError::forbidden(child(path, name), why));
        }
    }
    if s.property("metadata").is_some() {
        let why = "must not be specified in a nested context";
        errors.push(FieldError::forbidden(keyed(path, "properties", "metadata"), why));
    }
}

/// Whatever the junctors of the root validate must be specified outside of them as well.
fn complete(v: Raw<'_>, s: Option<Raw<'_>>, at: &str, from: &str, errors: &mut Vec<FieldError>) {
    if let Some(not) = v.schema("not") {
        refined(not, s, at, &child(from, "not"), errors);
    }
    for junctor in ["allOf", "anyOf", "oneOf"] {
        for (i, branch) in v.branches(junctor) {
            refined(branch, s, at, &format!("{}[{i}]", child(from, junctor)), errors);
        }
    }
}

fn refined(v: Raw<'_>, s: Option<Raw<'_>>, at: &str, from: &str, errors: &mut Vec<FieldError>) {
    let Some(s) = s else {
        return errors.push(FieldError::required(at, format!("because it is defined in {from}")));
    };
    complete(v, Some(s), at, from, errors);
    if let Some(items) = v.schema("items") {
        refined(items, s.schema("items"), &child(at, "items"), &child(from, "items"), errors);
    }
    for (name, property) in v.properties() {
        let at = keyed(at, "properties", name);
        refined(property, s.property(name), &at, &keyed(from, "properties", name), errors);
    }
}
