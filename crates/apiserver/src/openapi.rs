//! OpenAPI documents: version 3, one for each group-version, which kubectl's apply and explain live on; version 2, one
//! for all. Built on demand from the registry; schemas of built-in kinds come from `lifeboat_kinds`, those of
//! custom kinds from their definitions.

pub mod proto;

use crate::discovery::subresource_kind;
use crate::registry::{Custom, Nature, Registry, Resource};
use serde_json::{Map, Value, json};

const V3_REF: &str = "#/components/schemas/";
const V2_REF: &str = "#/definitions/";
/// What every kind shares: metadata, lists, deletion.
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// `/openapi/v3`: where the documents are. The hash in each address changes with what is served, because clients keep them.
pub fn index(registry: &Registry, hash: impl Fn(&str, &str) -> String) -> Value {
    let mut paths = Map::new();
    for (group, versions) in registry.groups() {
        for version in versions {
            let path =
                if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
            let address = format!("/openapi/v3/{path}?hash={}", hash(group, version));
            paths.insert(path, json!({"serverRelativeURL": address}));
        }
    }
    json!({"paths": paths})
}

/// A text that changes when the document of a group-version would.
pub fn identity(registry: &Registry, group: &str, version: &str) -> String {
    let parts = registry.of_version(group, version).into_iter().map(|resource| match &resource.nature {
        Nature::BuiltIn(kind) => kind.kind.to_owned(),
        Nature::Custom(custom) => format!("{} {} {}", resource.kind, resource.plural, custom.published),
    });
    parts.chain([crate::discovery::KUBERNETES_VERSION.2.to_owned()]).collect::<Vec<_>>().join("\n")
}

/// One group-version as OpenAPI v3.
pub fn v3(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let resources = registry.of_version(group, version);
    if resources.is_empty() {
        return None;
    }
    let mut schemas = lifeboat_kinds::openapi::v3_schemas(group, version);
    let mut paths = Map::new();
    for resource in &resources {
        if let Nature::Custom(custom) = &resource.nature {
            add_custom(&mut schemas, resource, custom, V3_REF);
            for (name, schema) in lifeboat_kinds::openapi::v3_schemas("", "v1") {
                if name.starts_with(META) {
                    schemas.entry(name).or_insert(schema);
                }
            }
        }
        add_paths(&mut paths, resource, Dialect::V3);
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": crate::discovery::KUBERNETES_VERSION.2},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header", "description": "Bearer Token authentication"}},
        },
    }))
}

/// Everything as OpenAPI v2.
pub fn v2(registry: &Registry) -> Value {
    let mut definitions = lifeboat_kinds::openapi::v2_definitions();
    let mut paths = Map::new();
    for resource in registry.all() {
        if let Nature::Custom(custom) = &resource.nature {
            add_custom(&mut definitions, resource, custom, V2_REF);
        }
        add_paths(&mut paths, resource, Dialect::V2);
    }
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": crate::discovery::KUBERNETES_VERSION.2},
        "paths": paths,
        "definitions": definitions,
        "securityDefinitions": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header", "description": "Bearer Token authentication"}},
        "security": [{"BearerToken": []}],
    })
}

/// The name of a custom kind's schema: the group's parts turned round, as Kubernetes names them.
pub fn schema_name(group: &str, version: &str, kind: &str) -> String {
    let turned: Vec<&str> = group.split('.').rev().collect();
    format!("{}.{version}.{kind}", turned.join("."))
}

fn name_of(resource: &Resource) -> String {
    match &resource.nature {
        Nature::BuiltIn(_) => lifeboat_kinds::openapi::schema_name(&resource.api_version, &resource.kind)
            .map_or_else(|| schema_name(&resource.group, &resource.version, &resource.kind), str::to_owned),
        Nature::Custom(_) => schema_name(&resource.group, &resource.version, &resource.kind),
    }
}

fn gvk(resource: &Resource, kind: &str) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": kind})
}

fn add_custom(schemas: &mut Map<String, Value>, resource: &Resource, custom: &Custom, prefix: &str) {
    let name = schema_name(&resource.group, &resource.version, &resource.kind);
    let mut schema = custom.published.clone();
    if prefix == V2_REF {
        plain_for_v2(&mut schema);
    }
    // OpenAPI v2 has no way to say that anything goes at the root, so Kubernetes says nothing there.
    let anything = prefix == V2_REF && custom.published["x-kubernetes-preserve-unknown-fields"] == true;
    if anything {
        schema = json!({"type": "object"});
    }
    if schema.get("type").is_none() {
        schema["type"] = "object".into();
    }
    if !anything {
        schema["properties"]["apiVersion"] = json!({"type": "string", "description": "APIVersion defines the versioned schema of this representation of an object."});
        schema["properties"]["kind"] = json!({"type": "string", "description": "Kind is a string value representing the REST resource this object represents."});
        let metadata = format!("{prefix}io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
        let about = "Standard object's metadata.";
        schema["properties"]["metadata"] = if prefix == V3_REF {
            json!({"description": about, "allOf": [{"$ref": metadata}]})
        } else {
            json!({"description": about, "$ref": metadata})
        };
    }
    schema["x-kubernetes-group-version-kind"] = json!([gvk(resource, &resource.kind)]);
    let list_meta = format!("{prefix}io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta");
    let list = json!({
        "description": format!("{} is a list of {}", resource.list_kind, resource.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": if prefix == V3_REF { json!({"allOf": [{"$ref": list_meta}]}) } else { json!({"$ref": list_meta}) },
            "items": {"type": "array", "items": {"$ref": format!("{prefix}{name}")}},
        },
        "x-kubernetes-group-version-kind": [gvk(resource, &resource.list_kind)],
    });
    schemas.insert(schema_name(&resource.group, &resource.version, &resource.list_kind), list);
    schemas.insert(name, schema);
}

/// OpenAPI v2 has no words for alternatives and nulls; what it cannot say is left out, as Kubernetes does.
fn plain_for_v2(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else { return };
    for word in ["oneOf", "anyOf", "allOf", "not"] {
        map.remove(word);
    }
    if map.remove("nullable") == Some(Value::Bool(true)) {
        map.remove("type");
        map.remove("properties");
        map.remove("items");
    }
    if map.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)) {
        map.remove("items");
        map.remove("properties");
    }
    if map.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        map.remove("type");
    }
    for word in ["properties", "patternProperties"] {
        for (_, below) in map.get_mut(word).and_then(Value::as_object_mut).into_iter().flatten() {
            plain_for_v2(below);
        }
    }
    for word in ["items", "additionalProperties"] {
        if let Some(below) = map.get_mut(word) {
            plain_for_v2(below);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    V2,
    V3,
}

fn add_paths(paths: &mut Map<String, Value>, resource: &Resource, dialect: Dialect) {
    let base = if resource.group.is_empty() {
        format!("/api/{}", resource.version)
    } else {
        format!("/apis/{}/{}", resource.group, resource.version)
    };
    let collection = if resource.namespaced {
        format!("{base}/namespaces/{{namespace}}/{}", resource.plural)
    } else {
        format!("{base}/{}", resource.plural)
    };
    let verbs = resource.verbs();
    let has = |verb: &str| verbs.contains(&verb);
    let mut item = Map::new();
    if has("list") {
        item.insert("get".into(), operation(resource, dialect, "list", None));
    }
    if has("create") {
        item.insert("post".into(), operation(resource, dialect, "post", None));
    }
    if has("deletecollection") {
        item.insert("delete".into(), operation(resource, dialect, "deletecollection", None));
    }
    paths.insert(collection.clone(), Value::Object(item));
    if resource.namespaced && has("list") {
        let everywhere = json!({"get": operation(resource, dialect, "list", None)});
        paths.insert(format!("{base}/{}", resource.plural), everywhere);
    }
    if !has("get") {
        return;
    }
    let one = format!("{collection}/{{name}}");
    let object = |subresource: Option<&str>| {
        let mut item = Map::new();
        for (method, verb) in [("get", "get"), ("put", "put"), ("patch", "patch"), ("delete", "delete")] {
            if subresource.is_none() || verb != "delete" {
                item.insert(method.into(), operation(resource, dialect, verb, subresource));
            }
        }
        Value::Object(item)
    };
    paths.insert(one.clone(), object(None));
    for subresource in resource.subresources() {
        let item = match subresource {
            "token" | "eviction" | "binding" => {
                json!({"post": operation(resource, dialect, "post", Some(subresource))})
            }
            _ => object(Some(subresource)),
        };
        paths.insert(format!("{one}/{subresource}"), item);
    }
}

fn operation(resource: &Resource, dialect: Dialect, action: &str, subresource: Option<&str>) -> Value {
    let (group, version, kind) = subresource_kind(resource, subresource.unwrap_or_default());
    let prefix = if dialect == Dialect::V3 { V3_REF } else { V2_REF };
    let schema = match subresource {
        Some("scale" | "token" | "eviction" | "binding") => json!({"type": "object"}),
        _ => json!({"$ref": format!("{prefix}{}", name_of(resource))}),
    };
    let response = match dialect {
        Dialect::V3 => json!({"description": "OK", "content": {"application/json": {"schema": schema}}}),
        Dialect::V2 => json!({"description": "OK", "schema": schema}),
    };
    let writes = matches!(action, "post" | "put" | "patch");
    let mut parameters = Vec::new();
    if writes {
        parameters.extend(["dryRun", "fieldManager", "fieldValidation"].map(|name| parameter(name, dialect)));
    }
    if action == "patch" {
        parameters.push(parameter("force", dialect));
    }
    let mut operation = json!({
        "operationId": operation_id(resource, action, subresource),
        "tags": [resource.group.replace('.', "_")],
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
        "responses": {"200": response},
    });
    match dialect {
        Dialect::V3 if writes => {
            operation["requestBody"] = json!({"required": true, "content": {"*/*": {"schema": schema}}});
        }
        Dialect::V2 if writes => {
            parameters.push(json!({"name": "body", "in": "body", "required": true, "schema": schema}));
        }
        _ => {}
    }
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    operation
}

fn parameter(name: &str, dialect: Dialect) -> Value {
    let kind = if name == "force" { "boolean" } else { "string" };
    match dialect {
        Dialect::V3 => json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}}),
        Dialect::V2 => json!({"name": name, "in": "query", "type": kind, "uniqueItems": true}),
    }
}

fn operation_id(resource: &Resource, action: &str, subresource: Option<&str>) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters
            .next()
            .map(|first| first.to_uppercase().chain(letters).collect::<String>())
            .unwrap_or_default()
    };
    let group: String = if resource.group.is_empty() {
        "Core".into()
    } else {
        resource.group.split('.').map(capital).collect()
    };
    let scope = if resource.namespaced { "Namespaced" } else { "" };
    format!(
        "{action}{group}{}{scope}{}{}",
        capital(&resource.version),
        resource.kind,
        capital(subresource.unwrap_or_default())
    )
}
