//! What Kubernetes supports of OpenAPI, and how its own extensions must be used.

use super::raw::Raw;
use super::rules::{self, Total};
use super::{child, keyed};
use crate::FieldError;
use crate::node::{Schema, View};
use crate::objectmeta::is_meta;
use serde_json::Value;

/// Where in the schema a check stands.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub root: bool,
    /// Why a default is not allowed here, where it is not.
    no_default: Option<&'a str>,
    inside_meta: bool,
    /// The schema whose items do not correlate between old and new object, where there is one around.
    pub uncorrelated: Option<&'a str>,
    /// The parsed node, where CEL rules are to be checked.
    pub view: Option<View<'a>>,
    /// How often a value of this schema can occur in an object, where something around bounds it.
    pub cardinality: Option<u64>,
}

/// What is wrong with the schema; CEL rules are only looked at where it is `sound`.
pub(super) fn check(root: Raw<'_>, parsed: &Schema, path: &str, sound: bool) -> Vec<FieldError> {
    let place = Place {
        root: true,
        no_default: None,
        inside_meta: false,
        uncorrelated: None,
        view: sound.then(|| parsed.view()),
        cardinality: Some(1),
    };
    let mut total = Total::default();
    let mut errors = Vec::new();
    let rules = walk(root, place, path, &mut errors, &mut total);
    if errors.is_empty() {
        errors.extend(rules);
        errors.extend(total.errors(path));
    }
    errors
}

/// Checks one schema and those below; returns what is wrong with CEL rules apart.
fn walk(
    s: Raw<'_>,
    place: Place<'_>,
    path: &str,
    errors: &mut Vec<FieldError>,
    total: &mut Total,
) -> Vec<FieldError> {
    let start = errors.len();
    let mut of_rules = Vec::new();
    standard(s, place, path, errors);
    if s.flag("uniqueItems") {
        let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(child(path, "uniqueItems"), why));
    }
    let below = Place { root: false, ..place };
    if let Some(additional) = s.get("additionalProperties") {
        let at = child(path, "additionalProperties");
        if s.properties().next().is_some() && *additional != Value::Bool(true) {
            let why = "additionalProperties and properties are mutual exclusive";
            errors.push(FieldError::forbidden(&*at, why));
        }
        if let Some(schema) = Raw::new(additional) {
            let reason = "inside additionalProperties applying to object metadata";
            let place = Place {
                no_default: if place.inside_meta { Some(reason) } else { place.no_default },
                view: place.view.and_then(View::additional),
                cardinality: repeated(place, s),
                ..below
            };
            of_rules.extend(walk(schema, place, &at, errors, total));
        }
    }
    for (name, property) in s.properties() {
        let meta = (place.root || s.flag("x-kubernetes-embedded-resource")) && is_meta(name);
        let reason = format!("in top-level {name}");
        let place = Place {
            inside_meta: place.inside_meta || meta,
            no_default: if meta && place.root { Some(&reason) } else { place.no_default },
            view: place.view.and_then(|v| v.property(name)),
            ..below
        };
        of_rules.extend(walk(property, place, &keyed(path, "properties", name), errors, total));
    }
    let plain = Place { view: None, ..below };
    if let Some(not) = s.schema("not") {
        walk(not, plain, &child(path, "not"), errors, total);
    }
    for junctor in ["allOf", "oneOf", "anyOf"] {
        for (i, branch) in s.branches(junctor) {
            walk(branch, plain, &format!("{}[{i}]", child(path, junctor)), errors, total);
        }
    }
    if let Some(items) = s.schema("items") {
        let correlates = s.text("x-kubernetes-list-type") == "map";
        let at = child(path, "items");
        let place = Place {
            uncorrelated: place.uncorrelated.or((!correlates).then_some(path)),
            view: place.view.and_then(View::items),
            cardinality: repeated(place, s),
            ..below
        };
        of_rules.extend(walk(items, place, &at, errors, total));
    }
    extensions(s, path, errors);
    list_map(s, path, errors);
    rules::written(s, place, path, errors);
    if errors.len() == start {
        of_rules.extend(rules::compiled(place, path, total));
    }
    of_rules
}

fn repeated(place: Place<'_>, s: Raw<'_>) -> Option<u64> {
    let most = s.get("maxItems").or_else(|| s.get("maxProperties")).and_then(Value::as_u64)?;
    Some(place.cardinality?.saturating_mul(most))
}

/// Keywords that a CRD may not use, or not like this.
fn standard(s: Raw<'_>, place: Place<'_>, path: &str, errors: &mut Vec<FieldError>) {
    let kind = s.kind();
    let known = ["array", "boolean", "integer", "number", "object", "string"];
    if !kind.is_empty() && !known.contains(&kind) {
        errors.push(FieldError::not_supported(child(path, "type"), kind, &known));
    }
    if let (Some(_), Some(reason)) = (s.get("default"), place.no_default) {
        errors.push(FieldError::forbidden(child(path, "default"), format!("must not be set {reason}")));
    }
    for name in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
        let present = s.get(name).is_some_and(|v| *v != "" && v.as_object().is_none_or(|o| !o.is_empty()));
        if present {
            errors.push(FieldError::forbidden(child(path, name), format!("{name} is not supported")));
        }
    }
    if kind == "null" {
        let why = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(child(path, "type"), why));
    }
    if s.get("items").is_some_and(Value::is_array) {
        let why = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(child(path, "items"), why));
    }
    if place.inside_meta && s.flag("x-kubernetes-embedded-resource") {
        let why = "must not be used inside of resource meta";
        errors.push(FieldError::forbidden(child(path, "x-kubernetes-embedded-resource"), why));
    }
}

fn extensions(s: Raw<'_>, path: &str, errors: &mut Vec<FieldError>) {
    if s.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let at = child(path, "x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(at, false, "must be true or undefined"));
    }
    let mut wants = |extension: &str, kind: &str| {
        let why = format!("must be {kind} if {extension} is specified");
        match s.kind() {
            _ if s.get(extension).is_none() => {}
            "" => errors.push(FieldError::required(child(path, "type"), why)),
            other if other != kind => errors.push(FieldError::invalid(child(path, "type"), other, why)),
            _ => {}
        }
    };
    wants("x-kubernetes-map-type", "object");
    wants("x-kubernetes-list-type", "array");
    let mut one_of = |extension: &str, allowed: &[&str]| {
        let value = s.text(extension);
        if s.get(extension).is_some() && !allowed.contains(&value) {
            errors.push(FieldError::not_supported(child(path, extension), value, allowed));
        }
    };
    one_of("x-kubernetes-map-type", &["atomic", "granular"]);
    one_of("x-kubernetes-list-type", &["atomic", "set", "map"]);
    let items = s.schema("items").filter(|_| s.text("x-kubernetes-list-type") == "set");
    if let Some(items) = items {
        let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let (extension, default) = match items.kind() {
            "array" => ("x-kubernetes-list-type", "atomic"),
            "object" => ("x-kubernetes-map-type", "granular"),
            _ => return,
        };
        let value = items.get(extension).and_then(Value::as_str).unwrap_or(default);
        if value != "atomic" {
            let at = child(&child(path, "items"), extension);
            let shown = items.get("x-kubernetes-list-type").cloned().unwrap_or_default();
            errors.push(FieldError::invalid(at, shown, why));
        }
    }
}

/// `x-kubernetes-list-type: map` and its keys.
fn list_map(s: Raw<'_>, path: &str, errors: &mut Vec<FieldError>) {
    let list_type = s.text("x-kubernetes-list-type");
    let keys = s.strings("x-kubernetes-list-map-keys");
    let at_keys = child(path, "x-kubernetes-list-map-keys");
    if !keys.is_empty() && list_type != "map" {
        let at = child(path, "x-kubernetes-list-type");
        let why = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match s.get("x-kubernetes-list-type") {
            None => FieldError::required(at, why),
            Some(value) => FieldError::invalid(at, value.clone(), why),
        });
    }
    let items = s.schema("items");
    let at_items = child(path, "items");
    if items.is_some_and(|i| matches!(list_type, "map" | "set") && i.flag("nullable")) {
        let why = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(child(&at_items, "nullable"), why));
    }
    if list_type != "map" {
        return;
    }
    if keys.is_empty() {
        errors.push(FieldError::required(&*at_keys, "must not be empty if x-kubernetes-list-type is map"));
    }
    let Some(items) = items else {
        let why = "must have a schema if x-kubernetes-list-type is map";
        return errors.push(FieldError::required(at_items, why));
    };
    if items.kind() != "object" {
        let why = "must be object if parent array's x-kubernetes-list-type is map";
        return errors.push(FieldError::invalid(child(&at_items, "type"), items.kind(), why));
    }
    let shown = s.get("x-kubernetes-list-map-keys").cloned().unwrap_or_default();
    let required = items.strings("required");
    for (i, key) in keys.iter().enumerate() {
        let at = keyed(&at_items, "properties", key);
        match items.property(key) {
            None => {
                let why = "entries must all be names of item properties";
                errors.push(FieldError::invalid(&*at_keys, shown.clone(), why));
            }
            Some(property) => {
                if matches!(property.kind(), "array" | "object") {
                    let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    errors.push(FieldError::invalid(child(&at, "type"), items.kind(), why));
                }
                if !required.contains(key) && property.get("default").is_none() {
                    let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                    errors.push(FieldError::required(child(&at, "default"), why));
                }
                if property.flag("nullable") {
                    let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                    errors.push(FieldError::forbidden(child(&at, "nullable"), why));
                }
            }
        }
        if keys[..i].contains(key) {
            errors.push(FieldError::invalid(&*at_keys, shown.clone(), "must not contain duplicate entries"));
        }
    }
}
