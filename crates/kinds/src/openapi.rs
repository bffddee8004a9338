//! The definitions of the OpenAPI documents: what `kubectl explain`, `apply` and client generators read.
//!
//! Descriptions, formats and required fields come from the crate k8s-openapi; how lists and maps merge comes from the table
//! of types. Building them takes a while and the result is large, so nothing is kept here: the caller turns it into a document
//! once and keeps the bytes.

use crate::schemas::extensions;
use crate::types::{Shape, Ty, types};
use k8s_openapi::api::{
    admissionregistration::v1 as admission, apps::v1 as apps, authentication::v1 as authentication,
    authorization::v1 as authorization, autoscaling::v1 as autoscaling, autoscaling::v2 as autoscaling2,
    batch::v1 as batch, certificates::v1 as certificates, coordination::v1 as coordination, core::v1 as core,
    discovery::v1 as discovery, events::v1 as events, flowcontrol::v1 as flowcontrol,
    networking::v1 as networking, node::v1 as node, policy::v1 as policy, rbac::v1 as rbac,
    scheduling::v1 as scheduling, storage::v1 as storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1 as apiregistration;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

/// The two forms of an OpenAPI document, which differ in where definitions stand and how a reference is described.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    V2,
    V3,
}

/// The schemas of one group and version with everything they refer to, for `components.schemas` of an OpenAPI v3
/// document; references have the form `#/components/schemas/NAME`. With the kinds come their lists, the bodies of their
/// subresources, `DeleteOptions`, `Patch` and `Status`.
#[must_use]
pub fn v3_schemas(group: &str, version: &str) -> Map<String, Value> {
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    build(Form::V3, |row| row.0 == api_version)
}

/// The schemas of every kind, for `definitions` of an OpenAPI v2 document; references have the form `#/definitions/NAME`.
#[must_use]
pub fn v2_definitions() -> Map<String, Value> {
    build(Form::V2, |_| true)
}

/// The name of the schema of a kind, such as `io.k8s.api.core.v1.Pod`; that of its list ends in `List`. Knows the bodies of
/// subresources too.
#[must_use]
pub fn schema_name(api_version: &str, kind: &str) -> Option<&'static str> {
    let ty = types().root(api_version, kind)?;
    Some(types().types[ty].name.as_str())
}

type Row = (&'static str, &'static str, fn(&mut SchemaGenerator));

/// One row per body: the apiVersion of the document it belongs to, its kind, and how to add its schema.
macro_rules! rows {
    ($($api_version:literal { $($module:ident::$kind:ident),* $(,)? })*) => {
        &[$($(($api_version, stringify!($kind), |g| { g.subschema_for::<$module::$kind>(); })),*),*]
    };
}

static ROWS: &[Row] = rows! {
    "v1" {
        core::ConfigMap, core::Endpoints, core::Event, core::LimitRange, core::Namespace, core::Node,
        core::PersistentVolumeClaim, core::PersistentVolume, core::Pod, core::PodTemplate,
        core::ReplicationController, core::ResourceQuota, core::Secret, core::ServiceAccount, core::Service,
        core::Binding, policy::Eviction, authentication::TokenRequest, autoscaling::Scale,
    }
    "admissionregistration.k8s.io/v1" {
        admission::MutatingWebhookConfiguration, admission::ValidatingAdmissionPolicy,
        admission::ValidatingAdmissionPolicyBinding, admission::ValidatingWebhookConfiguration,
    }
    "apiregistration.k8s.io/v1" { apiregistration::APIService }
    "apps/v1" {
        apps::ControllerRevision, apps::DaemonSet, apps::Deployment, apps::ReplicaSet, apps::StatefulSet,
        autoscaling::Scale,
    }
    "authentication.k8s.io/v1" { authentication::SelfSubjectReview, authentication::TokenReview }
    "authorization.k8s.io/v1" {
        authorization::LocalSubjectAccessReview, authorization::SelfSubjectAccessReview,
        authorization::SelfSubjectRulesReview, authorization::SubjectAccessReview,
    }
    "autoscaling/v1" { autoscaling::HorizontalPodAutoscaler }
    "autoscaling/v2" { autoscaling2::HorizontalPodAutoscaler }
    "batch/v1" { batch::CronJob, batch::Job }
    "certificates.k8s.io/v1" { certificates::CertificateSigningRequest }
    "coordination.k8s.io/v1" { coordination::Lease }
    "discovery.k8s.io/v1" { discovery::EndpointSlice }
    "events.k8s.io/v1" { events::Event }
    "flowcontrol.apiserver.k8s.io/v1" { flowcontrol::FlowSchema, flowcontrol::PriorityLevelConfiguration }
    "networking.k8s.io/v1" { networking::Ingress, networking::IngressClass, networking::NetworkPolicy }
    "node.k8s.io/v1" { node::RuntimeClass }
    "policy/v1" { policy::PodDisruptionBudget }
    "rbac.authorization.k8s.io/v1" { rbac::ClusterRole, rbac::ClusterRoleBinding, rbac::Role, rbac::RoleBinding }
    "scheduling.k8s.io/v1" { scheduling::PriorityClass }
    "storage.k8s.io/v1" {
        storage::CSIDriver, storage::CSINode, storage::CSIStorageCapacity, storage::StorageClass,
        storage::VolumeAttachment, storage::VolumeAttributesClass,
    }
    "apiextensions.k8s.io/v1" { apiextensions::CustomResourceDefinition }
};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

fn build(form: Form, wanted: impl Fn(&Row) -> bool) -> Map<String, Value> {
    let path = match form {
        Form::V2 => "/definitions",
        Form::V3 => "/components/schemas",
    };
    let mut generator = SchemaSettings::default()
        .with(|s| {
            s.definitions_path = path.into();
            s.meta_schema = None;
        })
        .into_generator();
    let rows: Vec<&Row> = ROWS.iter().filter(|row| wanted(row)).collect();
    for (_, _, add) in &rows {
        add(&mut generator);
    }
    generator.subschema_for::<meta::ListMeta>();
    generator.subschema_for::<meta::DeleteOptions>();
    generator.subschema_for::<meta::Status>();
    generator.subschema_for::<meta::Patch>();
    let mut schemas = generator.take_definitions(false);
    for (name, schema) in &mut schemas {
        special(name, schema, form);
        merge_facts(name, schema);
        if form == Form::V3 {
            wrap_references(schema);
        }
    }
    for root in types().roots.iter().filter(|root| root.api_version != "*") {
        mark_kind(&mut schemas, root.api_version, root.kind, path);
    }
    delete_options(&mut schemas);
    schemas
}

/// Types that JSON schema cannot say plainly, in the words that Kubernetes' documents have for them.
fn special(name: &str, schema: &mut Value, form: Form) {
    let Some(short) = name.rsplit('.').next() else { return };
    let description = schema.get("description").cloned().unwrap_or_else(|| "".into());
    let plain = match (short, form) {
        ("Quantity", Form::V2) => json!({ "type": "string" }),
        ("Quantity", Form::V3) => json!({ "oneOf": [{ "type": "string" }, { "type": "number" }] }),
        ("IntOrString", Form::V2) => json!({ "type": "string", "format": "int-or-string" }),
        ("IntOrString", Form::V3) => {
            json!({ "format": "int-or-string", "oneOf": [{ "type": "integer" }, { "type": "string" }] })
        }
        ("JSON" | "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrStringArray", _) => {
            json!({})
        }
        _ => return,
    };
    *schema = plain;
    schema["description"] = description;
}

/// Adds how lists and maps merge, from the table of types.
fn merge_facts(name: &str, schema: &mut Value) {
    let Some(&ty) = types().by_name.get(name) else { return };
    if types().types[ty].atomic {
        schema["x-kubernetes-map-type"] = "atomic".into();
    }
    types().each_json_field(ty, &mut |field| {
        let Some(property) = schema.pointer_mut("/properties").and_then(|p| p.get_mut(field.name)) else {
            return;
        };
        for (key, value) in extensions(field) {
            property[key] = value;
        }
        if let (Shape::One, Ty::Struct(_), Some(map_type)) = (field.shape, field.ty, field.map_type) {
            property["x-kubernetes-map-type"] = map_type.into();
        }
    });
}

/// In v3 a reference with anything beside it stands in an `allOf`.
fn wrap_references(schema: &mut Value) {
    match schema {
        Value::Object(o) => {
            o.values_mut().for_each(wrap_references);
            // A field that is itself called `$ref` (a JSON schema has one) holds a schema, not a string.
            if o.len() > 1 && o.get("$ref").is_some_and(Value::is_string) {
                let reference = o.remove("$ref");
                o.insert("allOf".into(), json!([{ "$ref": reference }]));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(wrap_references),
        _ => {}
    }
}

/// Says which kind a schema is of, and adds the schema of its list.
fn mark_kind(schemas: &mut Map<String, Value>, api_version: &str, kind: &str, path: &str) {
    let Some(name) = schema_name(api_version, kind) else { return };
    let Some(schema) = schemas.get_mut(name) else { return };
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let of_kind = |kind: &str| json!([{ "group": group, "version": version, "kind": kind }]);
    schema["x-kubernetes-group-version-kind"] = of_kind(kind);
    for key in ["apiVersion", "kind"] {
        if schema["properties"].get(key).is_none() {
            schema["properties"][key] = type_meta(key);
        }
    }
    // The crate's types always have metadata; on the wire it may be left out.
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|r| r != "metadata");
        if required.is_empty()
            && let Value::Object(o) = schema
        {
            o.remove("required");
        }
    }
    let stored = crate::find_kind(api_version, kind).is_some_and(|k| k.storage != crate::Storage::Virtual);
    if stored {
        let list = json!({
            "description": format!("{kind}List is a list of {kind} objects."),
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": type_meta("apiVersion"),
                "kind": type_meta("kind"),
                "items": {
                    "description": format!("The {kind} objects."),
                    "type": "array",
                    "items": { "$ref": format!("#{path}/{name}") },
                },
                "metadata": { "$ref": format!("#{path}/{META}.ListMeta") },
            },
            "x-kubernetes-group-version-kind": of_kind(&format!("{kind}List")),
        });
        schemas.insert(format!("{name}List"), list);
    }
}

fn type_meta(key: &str) -> Value {
    let description = match key {
        "kind" => "What the object is: the kind's name in CamelCase.",
        _ => "The group and version of the schema that the object is written in.",
    };
    json!({ "type": "string", "description": description })
}

/// Every group takes the same options for deletion.
fn delete_options(schemas: &mut Map<String, Value>) {
    let Some(schema) = schemas.get_mut(&format!("{META}.DeleteOptions")) else { return };
    let mut versions: Vec<(&str, &str)> = crate::all().iter().map(|k| (k.group, k.version)).collect();
    versions.dedup();
    let kinds =
        versions.iter().map(|(g, v)| json!({ "group": g, "version": v, "kind": "DeleteOptions" })).collect();
    schema["x-kubernetes-group-version-kind"] = Value::Array(kinds);
}
