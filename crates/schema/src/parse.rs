//! From JSON to schema nodes. Lenient: what is not understood is left out; the rules for a CRD's schema are checked
//! elsewhere (`check_structural`), before a schema is ever used.

use crate::cel::Rule;
use crate::node::{Additional, Definitions, ListType, MapType, Node, Type};
use crate::pattern::Pattern;
use crate::{FieldError, MAX_DEPTH};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Parses one schema.
pub(crate) fn node(schema: &Value) -> Result<Node, Vec<FieldError>> {
    parse(schema, 0).map_err(|e| vec![e])
}

/// Parses an object from name to schema.
pub(crate) fn definitions(value: &Value) -> Result<Definitions, Vec<FieldError>> {
    let mut out = Definitions::default();
    let Some(all) = value.as_object() else { return Ok(out) };
    for (name, schema) in all {
        let mut parsed = node(schema)?;
        known_kind(name, &mut parsed);
        out.ruled |= parsed.ruled;
        out.nodes.insert(name.clone(), Arc::new(parsed));
    }
    Ok(out)
}

/// Kinds whose JSON form is wider than their published schema says.
fn known_kind(name: &str, node: &mut Node) {
    let short = name.rsplit('.').next().unwrap_or(name);
    match short {
        "Quantity" => {
            node.types = vec![Type::String, Type::Number, Type::Integer];
            node.one_of.clear();
        }
        "IntOrString" => {
            node.int_or_string = true;
            node.types.clear();
            node.one_of.clear();
        }
        "RawExtension"
        | "FieldsV1"
        | "JSON"
        | "JSONSchemaPropsOrArray"
        | "JSONSchemaPropsOrBool"
        | "JSONSchemaPropsOrStringArray" => {
            node.preserve_unknown = true;
            node.types.clear();
        }
        _ => {}
    }
}

fn parse(value: &Value, depth: usize) -> Result<Node, FieldError> {
    if depth > MAX_DEPTH {
        return Err(FieldError::invalid("", "", "schema is nested too deeply"));
    }
    let Some(map) = value.as_object() else {
        return match value {
            Value::Bool(true) => Ok(Node { preserve_unknown: true, ..Node::default() }),
            _ => Err(FieldError::type_invalid("", value.clone(), "schema must be an object")),
        };
    };
    if let Some(inner) = nullable_alternative(map) {
        let mut node = parse(inner, depth + 1)?;
        node.nullable = true;
        if node.default.is_none() {
            node.default = map.get("default").cloned();
        }
        return Ok(node);
    }
    let mut node = Node { reference: reference(map), ..Node::default() };
    types(map, &mut node);
    limits(map, &mut node);
    extensions(map, &mut node);
    children(map, &mut node, depth)?;
    let ruled_below = node.properties.values().chain(&node.items).chain(&node.all_of).any(|n| n.ruled);
    let ruled_extra = matches!(&node.additional, Additional::Fit(n) if n.ruled);
    node.ruled = !node.rules.is_empty() || ruled_below || ruled_extra;
    Ok(node)
}

/// Schema generators write an optional reference as `anyOf: [{$ref}, {type: null}]`.
fn nullable_alternative(map: &Map<String, Value>) -> Option<&Value> {
    let pair = map.get("anyOf")?.as_array()?;
    let [a, b] = pair.as_slice() else { return None };
    let null = |v: &Value| v.as_object().is_some_and(|o| o.len() == 1) && v["type"] == "null";
    match (null(a), null(b)) {
        (false, true) => Some(a),
        (true, false) => Some(b),
        _ => None,
    }
}

/// A reference, bare or as the only member of `allOf` (how a reference carries a description).
fn reference(map: &Map<String, Value>) -> Option<String> {
    let single = || match map.get("allOf")?.as_array()?.as_slice() {
        [only] => only.get("$ref"),
        _ => None,
    };
    let text = map.get("$ref").or_else(single)?.as_str()?;
    Some(text.rsplit('/').next().unwrap_or(text).to_owned())
}

fn types(map: &Map<String, Value>, node: &mut Node) {
    let names: Vec<&str> = match map.get("type") {
        Some(Value::String(s)) => vec![s],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    for kind in names.into_iter().filter_map(Type::parse) {
        if kind == Type::Null && map["type"].is_array() {
            node.nullable = true;
        } else {
            node.types.push(kind);
        }
    }
    node.nullable |= flag(map, "nullable");
    node.int_or_string =
        flag(map, "x-kubernetes-int-or-string") || map.get("format").is_some_and(|f| f == "int-or-string");
    if node.int_or_string {
        node.types.clear();
    }
    node.format = map.get("format").and_then(Value::as_str).map(str::to_owned);
}

fn limits(map: &Map<String, Value>, node: &mut Node) {
    let float = |name: &str| map.get(name).and_then(Value::as_f64);
    let int = |name: &str| map.get(name).and_then(Value::as_i64);
    node.minimum = float("minimum");
    node.maximum = float("maximum");
    node.exclusive_minimum = flag(map, "exclusiveMinimum");
    node.exclusive_maximum = flag(map, "exclusiveMaximum");
    node.multiple_of = float("multipleOf");
    node.min_length = int("minLength");
    node.max_length = int("maxLength");
    node.min_items = int("minItems");
    node.max_items = int("maxItems");
    node.min_properties = int("minProperties");
    node.max_properties = int("maxProperties");
    node.unique_items = flag(map, "uniqueItems");
    node.pattern = map.get("pattern").and_then(Value::as_str).filter(|p| !p.is_empty()).map(Pattern::new);
    node.enumeration = map.get("enum").and_then(Value::as_array).filter(|e| !e.is_empty()).cloned();
    node.required = strings(map, "required");
    node.default = map.get("default").filter(|d| !d.is_null()).cloned();
}

fn extensions(map: &Map<String, Value>, node: &mut Node) {
    node.preserve_unknown = flag(map, "x-kubernetes-preserve-unknown-fields");
    node.embedded = flag(map, "x-kubernetes-embedded-resource");
    node.list_type = match map.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("atomic") => Some(ListType::Atomic),
        Some("set") => Some(ListType::Set),
        Some("map") => Some(ListType::Map),
        _ => None,
    };
    node.list_keys = strings(map, "x-kubernetes-list-map-keys");
    node.map_type = match map.get("x-kubernetes-map-type").and_then(Value::as_str) {
        Some("atomic") => Some(MapType::Atomic),
        Some("granular") => Some(MapType::Granular),
        _ => None,
    };
    node.patch_strategy = map
        .get("x-kubernetes-patch-strategy")
        .and_then(Value::as_str)
        .map(|s| s.split(',').map(str::to_owned).collect())
        .unwrap_or_default();
    node.patch_merge_key = map.get("x-kubernetes-patch-merge-key").and_then(Value::as_str).map(str::to_owned);
    node.rules = map
        .get("x-kubernetes-validations")
        .and_then(Value::as_array)
        .map(|rules| rules.iter().map(Rule::parse).collect())
        .unwrap_or_default();
}

fn children(map: &Map<String, Value>, node: &mut Node, depth: usize) -> Result<(), FieldError> {
    let child = |value: &Value| parse(value, depth + 1).map(Arc::new);
    let list = |name: &str| match map.get(name).and_then(Value::as_array) {
        Some(all) => all.iter().map(child).collect::<Result<Vec<_>, _>>(),
        None => Ok(Vec::new()),
    };
    if let Some(properties) = map.get("properties").and_then(Value::as_object) {
        for (name, value) in properties {
            node.properties.insert(name.clone(), child(value)?);
        }
    }
    node.additional = match map.get("additionalProperties") {
        Some(Value::Bool(true)) => Additional::Any,
        Some(Value::Bool(false)) => Additional::No,
        Some(value @ Value::Object(_)) => Additional::Fit(child(value)?),
        _ => Additional::Unsaid,
    };
    node.items = map.get("items").filter(|v| v.is_object()).map(child).transpose()?;
    if node.reference.is_none() || map.contains_key("$ref") {
        node.all_of = list("allOf")?;
    }
    node.any_of = list("anyOf")?;
    node.one_of = list("oneOf")?;
    node.not = map.get("not").filter(|v| v.is_object()).map(child).transpose()?;
    Ok(())
}

fn flag(map: &Map<String, Value>, name: &str) -> bool {
    map.get(name).and_then(Value::as_bool).unwrap_or(false)
}

fn strings(map: &Map<String, Value>, name: &str) -> Vec<String> {
    let all = map.get(name).and_then(Value::as_array);
    all.map(|l| l.iter().filter_map(Value::as_str).map(str::to_owned).collect()).unwrap_or_default()
}
