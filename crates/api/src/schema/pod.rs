//! Parts of a pod: their shape is `k8s-openapi`'s, with the list and map markers that Kubernetes' own
//! OpenAPI carries put back in, and its long texts left out.

use super::{LabelSelector, QUANTITY_PATTERN, stand_in};
use k8s_openapi::api::core::v1 as core;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

stand_in! {
    /// `corev1.PodSecurityContext`.
    PodSecurityContext => |generator| dressed::<core::PodSecurityContext>(generator)
}

stand_in! {
    /// `corev1.Affinity`.
    Affinity => |generator| dressed::<core::Affinity>(generator)
}

stand_in! {
    /// `corev1.ResourceRequirements`.
    ResourceRequirements => |generator| dressed::<core::ResourceRequirements>(generator)
}

stand_in! {
    /// `corev1.VolumeResourceRequirements`.
    VolumeResourceRequirements => |generator| dressed::<core::VolumeResourceRequirements>(generator)
}

stand_in! {
    /// `corev1.SecretVolumeSource`.
    SecretVolumeSource => |generator| dressed::<core::SecretVolumeSource>(generator)
}

stand_in! {
    /// `corev1.NFSVolumeSource`.
    NfsVolumeSource => |generator| dressed::<core::NFSVolumeSource>(generator)
}

stand_in! {
    /// `corev1.PersistentVolumeClaimVolumeSource`.
    PersistentVolumeClaimVolumeSource => |generator| {
        dressed::<core::PersistentVolumeClaimVolumeSource>(generator)
    }
}

fn dressed<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let mut value = T::json_schema(generator).to_value();
    dress(&mut value, generator);
    Schema::try_from(value).expect("invariant: dressing keeps a schema object an object")
}

fn dress(schema: &mut Value, generator: &mut SchemaGenerator) {
    let Value::Object(map) = schema else { return };
    map.remove("description");
    map.remove("title");
    // In pods every number-or-text is a quantity.
    if map.contains_key("x-kubernetes-int-or-string") {
        map.insert("anyOf".into(), json!([{ "type": "integer" }, { "type": "string" }]));
        map.insert("pattern".into(), json!(QUANTITY_PATTERN));
        map.remove("oneOf");
        return;
    }
    if has_properties(map, &["matchExpressions", "matchLabels"]) {
        *schema = LabelSelector::json_schema(generator).to_value();
        return;
    }
    if has_properties(map, &["matchExpressions", "matchFields"])
        || has_properties(map, &["nodeSelectorTerms"])
    {
        map.insert("x-kubernetes-map-type".into(), json!("atomic"));
    }
    if map.contains_key("items") {
        map.insert("x-kubernetes-list-type".into(), json!("atomic"));
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = map.get_mut(key) {
            dress(inner, generator);
        }
    }
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        for (name, property) in properties {
            dress(property, generator);
            // The only keyed list among these parts.
            if name == "claims"
                && let Some(claims) = property.as_object_mut()
            {
                claims.insert("x-kubernetes-list-type".into(), json!("map"));
                claims.insert("x-kubernetes-list-map-keys".into(), json!(["name"]));
            }
        }
    }
}

fn has_properties(map: &Map<String, Value>, names: &[&str]) -> bool {
    let Some(Value::Object(properties)) = map.get("properties") else {
        return false;
    };
    properties.len() == names.len() && names.iter().all(|name| properties.contains_key(*name))
}
