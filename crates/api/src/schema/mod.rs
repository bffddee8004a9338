//! Schema shapes of the Kubernetes types that our CRDs embed.
//!
//! The Rust types come from `k8s-openapi`; its schemas lack what makes a CRD behave (atomic lists, map
//! keys, patterns) and carry pages of text. The markers here stand in for them in
//! `#[schemars(with = "...")]` and say nothing about decoding.

mod pod;

pub(crate) use pod::{
    Affinity, NfsVolumeSource, PersistentVolumeClaimVolumeSource, PodSecurityContext, ResourceRequirements,
    SecretVolumeSource, VolumeResourceRequirements,
};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;
use std::marker::PhantomData;

pub(crate) const QUANTITY_PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";
/// A label key or condition type: an optional DNS prefix, a slash, and a name.
pub(crate) const QUALIFIED_NAME: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
/// A cron line of five fields, or one of the `@daily`-like words.
pub(crate) const CRON: &str =
    r"^(@(annually|yearly|monthly|weekly|daily|hourly))|((((\d+,)*\d+|(\d+(\/|-)\d+)|\*(\/\d+)?)\s?){5})$";

/// Declares a marker type whose schema is what the expression says.
macro_rules! stand_in {
    ($(#[$meta:meta])* $name:ident => |$generator:ident| $schema:expr) => {
        $(#[$meta])*
        pub(crate) struct $name;

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema($generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $schema
            }
        }
    };
}
pub(crate) use stand_in;

stand_in! {
    /// `metav1.Condition`.
    Condition => |_generator| json_schema!({
        "type": "object",
        "description": "One observation about the object.",
        "required": ["lastTransitionTime", "message", "reason", "status", "type"],
        "properties": {
            "lastTransitionTime": {
                "type": "string", "format": "date-time",
                "description": "When the status last changed from one value to another.",
            },
            "message": {
                "type": "string", "maxLength": 32768,
                "description": "Details for people.",
            },
            "observedGeneration": {
                "type": "integer", "format": "int64", "minimum": 0,
                "description": "The metadata.generation that this condition was computed from.",
            },
            "reason": {
                "type": "string", "minLength": 1, "maxLength": 1024,
                "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                "description": "Why the status is what it is, as one CamelCase word for programs.",
            },
            "status": {
                "type": "string", "enum": ["True", "False", "Unknown"],
                "description": "True, False or Unknown.",
            },
            "type": {
                "type": "string", "maxLength": 316, "pattern": QUALIFIED_NAME,
                "description": "What is observed.",
            },
        },
    })
}

stand_in! {
    /// `metav1.LabelSelector`.
    LabelSelector => |_generator| json_schema!({
        "type": "object",
        "description": "Selects objects by their labels; all given requirements must hold.",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchExpressions": {
                "type": "array", "x-kubernetes-list-type": "atomic",
                "description": "Requirements on single label keys.",
                "items": selector_requirement("label"),
            },
            "matchLabels": {
                "type": "object", "additionalProperties": { "type": "string" },
                "description": "Labels that must be present with exactly these values.",
            },
        },
    })
}

stand_in! {
    /// Requirements on cluster claims: OCM's selector without plain labels.
    ClaimSelector => |_generator| json_schema!({
        "type": "object",
        "description": "Selects clusters by their claims.",
        "properties": {
            "matchExpressions": {
                "type": "array",
                "description": "Requirements on single claims.",
                "items": selector_requirement("claim"),
            },
        },
    })
}

/// `metav1.LabelSelectorRequirement`, over labels or whatever else has keys and values.
fn selector_requirement(thing: &str) -> Schema {
    json_schema!({
        "type": "object",
        "required": ["key", "operator"],
        "properties": {
            "key": { "type": "string", "description": format!("The {thing}'s key.") },
            "operator": {
                "type": "string",
                "description": "In, NotIn, Exists or DoesNotExist.",
            },
            "values": {
                "type": "array", "x-kubernetes-list-type": "atomic",
                "items": { "type": "string" },
                "description": "Values for In and NotIn; empty for the other operators.",
            },
        },
    })
}

stand_in! {
    /// `corev1.ObjectReference`.
    ObjectReference => |_generator| json_schema!({
        "type": "object",
        "description": "Names another object.",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "apiVersion": { "type": "string", "description": "API version of the referent." },
            "fieldPath": { "type": "string", "description": "A part of the referent." },
            "kind": { "type": "string", "description": "Kind of the referent." },
            "name": { "type": "string", "description": "Name of the referent." },
            "namespace": { "type": "string", "description": "Namespace of the referent." },
            "resourceVersion": { "type": "string", "description": "The version meant, if any." },
            "uid": { "type": "string", "description": "UID of the referent." },
        },
    })
}

stand_in! {
    /// `corev1.TypedLocalObjectReference`.
    TypedLocalObjectReference => |_generator| json_schema!({
        "type": "object",
        "description": "Names an object of the same namespace.",
        "x-kubernetes-map-type": "atomic",
        "required": ["kind", "name"],
        "properties": {
            "apiGroup": { "type": "string", "description": "API group; empty for the core group." },
            "kind": { "type": "string", "description": "Kind of the referent." },
            "name": { "type": "string", "description": "Name of the referent." },
        },
    })
}

stand_in! {
    /// `corev1.LocalObjectReference`.
    LocalObjectReference => |_generator| json_schema!({
        "type": "object",
        "description": "Names an object by name alone.",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "name": { "type": "string", "default": "", "description": "Name of the referent." },
        },
    })
}

stand_in! {
    /// `resource.Quantity`.
    Quantity => |_generator| json_schema!({
        "anyOf": [{ "type": "integer" }, { "type": "string" }],
        "pattern": QUANTITY_PATTERN,
        "x-kubernetes-int-or-string": true,
    })
}

stand_in! {
    /// A whole object of any kind, kept as it is.
    EmbeddedResource => |_generator| json_schema!({
        "type": "object",
        "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// A custom resource inside another one: its schema plus the envelope that an API server adds only at
/// the top.
pub(crate) struct Embedded<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for Embedded<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        schema.remove("required");
        let strings = json_schema!({ "type": "object", "additionalProperties": { "type": "string" } });
        let envelope = [
            ("apiVersion", json_schema!({ "type": "string" })),
            ("kind", json_schema!({ "type": "string" })),
            (
                "metadata",
                json_schema!({
                    "type": "object",
                    "properties": {
                        "annotations": strings,
                        "finalizers": { "type": "array", "items": { "type": "string" } },
                        "labels": strings,
                        "name": { "type": "string" },
                        "namespace": { "type": "string" },
                    },
                }),
            ),
        ];
        if let Some(properties) = schema
            .ensure_object()
            .entry("properties")
            .or_insert_with(|| serde_json::json!({}))
            .as_object_mut()
        {
            for (name, part) in envelope {
                properties.insert(name.to_owned(), part.into());
            }
        }
        schema
    }
}
