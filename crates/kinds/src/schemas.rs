//! The schema of each kind, built from the table of types the first time it is asked for.

use crate::Kind;
use crate::types::{Field, JSON_SCHEMA_PROPS, Shape, Ty, types};
use lifeboat_schema::Schema;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LazyLock, OnceLock};

impl Kind {
    /// The shape of this kind: types, unknown fields and how lists and maps merge. It does not say `required`: for
    /// built-in kinds Kubernetes leaves that to validation.
    #[must_use]
    pub fn schema(&self) -> &'static Schema {
        schema(&self.api_version(), self.kind).expect("invariant: every kind of the table has a schema")
    }
}

/// The schema of any type that may be a whole body: the kinds, those that only subresources take (`TokenRequest`,
/// `Eviction`, `Scale`, `Binding`) and, in every group, `DeleteOptions`.
#[must_use]
pub fn schema(api_version: &str, kind: &str) -> Option<&'static Schema> {
    static SCHEMAS: LazyLock<BTreeMap<usize, OnceLock<Schema>>> =
        LazyLock::new(|| types().roots.iter().map(|r| (r.ty, OnceLock::new())).collect());
    let ty = types().root(api_version, kind)?;
    Some(SCHEMAS.get(&ty)?.get_or_init(|| build(ty)))
}

fn build(ty: usize) -> Schema {
    let mut definitions = Map::new();
    let mut seen = BTreeSet::new();
    let root = object(ty, &mut definitions, &mut seen);
    Schema::parse_with(&root, &Value::Object(definitions)).expect("invariant: the table gives valid schemas")
}

fn object(ty: usize, definitions: &mut Map<String, Value>, seen: &mut BTreeSet<usize>) -> Value {
    let mut properties = Map::new();
    types().each_json_field(ty, &mut |field| {
        properties.insert(field.name.to_owned(), property(field, definitions, seen));
    });
    // Within a StatefulSet a claim has them too.
    if types().roots.iter().any(|r| r.ty == ty) {
        for key in ["apiVersion", "kind"] {
            properties.insert(key.to_owned(), json!({ "type": "string" }));
        }
    }
    let mut schema = json!({ "type": "object", "properties": properties });
    if types().types[ty].atomic {
        schema["x-kubernetes-map-type"] = "atomic".into();
    }
    schema
}

fn property(field: &Field, definitions: &mut Map<String, Value>, seen: &mut BTreeSet<usize>) -> Value {
    let item = match (field.ty, field.map_type) {
        // The field says otherwise than its type: a copy of the type that says what the field says.
        (Ty::Struct(inner), Some(map_type)) if field.shape == Shape::One => {
            let mut copy = object(inner, definitions, seen);
            copy["x-kubernetes-map-type"] = map_type.into();
            copy
        }
        (ty, _) => item(ty, definitions, seen),
    };
    let mut schema = match field.shape {
        Shape::One => item,
        Shape::List => json!({ "type": "array", "items": item }),
        Shape::Map => json!({ "type": "object", "additionalProperties": item }),
    };
    for (key, value) in extensions(field) {
        schema[key] = value;
    }
    schema
}

/// What the table says beyond the type: how the field merges and its default.
pub(crate) fn extensions(field: &Field) -> Vec<(&'static str, Value)> {
    let mut out = Vec::new();
    if let Some(list_type) = field.list_type {
        out.push(("x-kubernetes-list-type", list_type.into()));
    }
    if !field.list_keys.is_empty() {
        out.push(("x-kubernetes-list-map-keys", json!(field.list_keys)));
    }
    if let (Some(map_type), true) = (field.map_type, field.shape == Shape::Map) {
        out.push(("x-kubernetes-map-type", map_type.into()));
    }
    if let Some(strategy) = field.patch_strategy {
        out.push(("x-kubernetes-patch-strategy", strategy.into()));
    }
    if let Some(key) = field.patch_key {
        out.push(("x-kubernetes-patch-merge-key", key.into()));
    }
    if let Some(default) = &field.default {
        out.push(("default", default.clone()));
    }
    out
}

fn item(ty: Ty, definitions: &mut Map<String, Value>, seen: &mut BTreeSet<usize>) -> Value {
    match ty {
        Ty::String => json!({ "type": "string" }),
        Ty::Bytes => json!({ "type": "string", "format": "byte" }),
        Ty::Time | Ty::MicroTime => json!({ "type": "string", "format": "date-time" }),
        Ty::Bool => json!({ "type": "boolean" }),
        Ty::Int32 => json!({ "type": "integer", "format": "int32" }),
        Ty::Int64 => json!({ "type": "integer", "format": "int64" }),
        Ty::Float => json!({ "type": "number", "format": "double" }),
        Ty::Quantity | Ty::IntOrString => json!({ "x-kubernetes-int-or-string": true }),
        Ty::Fields | Ty::Raw => json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
        Ty::Json | Ty::PropsOrArray | Ty::PropsOrBool | Ty::PropsOrStrings => {
            json!({ "x-kubernetes-preserve-unknown-fields": true })
        }
        Ty::Extra => json!({ "type": "array", "items": { "type": "string" } }),
        Ty::Struct(inner) => {
            let name = types().types[inner].name.as_str();
            if name == JSON_SCHEMA_PROPS {
                // A schema within a CRD has its own reader and its own rules.
                return json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
            }
            if seen.insert(inner) {
                let schema = object(inner, definitions, seen);
                definitions.insert(name.to_owned(), schema);
            }
            json!({ "$ref": format!("#/definitions/{name}") })
        }
    }
}
