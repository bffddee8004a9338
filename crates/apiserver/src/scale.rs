//! The `scale` subresource: one small object through which replicas are read and set, whatever the kind keeps them in.

use crate::error::{ApiError, Result};
use crate::object::Object;
use crate::registry::{Nature, Resource};
use lifeboat_schema::jsonpath::JsonPath;
use lifeboat_schema::selector::LabelSelector;
use serde_json::{Value, json};

/// Where a kind keeps what scale shows.
struct Paths {
    spec: String,
    status: String,
    selector: Option<String>,
}

fn paths(resource: &Resource) -> Paths {
    match &resource.nature {
        Nature::Custom(custom) => match &custom.scale {
            Some(scale) => Paths {
                spec: scale.spec.clone(),
                status: scale.status.clone(),
                selector: scale.selector.clone(),
            },
            None => Paths { spec: String::new(), status: String::new(), selector: None },
        },
        Nature::BuiltIn(_) => Paths {
            spec: ".spec.replicas".into(),
            status: ".status.replicas".into(),
            selector: Some(".spec.selector".into()),
        },
    }
}

/// The Scale of an object.
pub fn of(resource: &Resource, object: &Value) -> Value {
    let paths = paths(resource);
    let at = |path: &str| {
        JsonPath::parse(path).ok().and_then(|path| path.first(object).cloned()).unwrap_or_default()
    };
    let selector = paths.selector.map(|path| at(&path)).unwrap_or_default();
    let selector = match &selector {
        Value::String(text) => text.clone(),
        // A ReplicationController's selector is a bare map of labels.
        Value::Object(map) if map.get("matchLabels").is_none() && map.get("matchExpressions").is_none() => {
            map.iter()
                .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
                .collect::<Vec<_>>()
                .join(",")
        }
        other => LabelSelector::from_json(other).map(|selector| selector.to_string()).unwrap_or_default(),
    };
    let meta = object.meta();
    let mut metadata = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = meta.get(field) {
            metadata[field] = value.clone();
        }
    }
    let mut status = json!({"replicas": at(&paths.status).as_i64().unwrap_or(0)});
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": at(&paths.spec).as_i64().unwrap_or(0)},
        "status": status,
    })
}

/// The object with the replicas and version that a Scale names.
pub fn set(resource: &Resource, object: &Value, scale: &Value) -> Result<Value> {
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
    if replicas < 0 {
        return Err(ApiError::unprocessable(format!(
            "Scale.autoscaling {:?} is invalid: spec.replicas: Invalid value: {replicas}: must be greater than or equal to 0",
            object.meta_str("name")
        )));
    }
    let path = paths(resource).spec;
    let mut new = object.clone();
    let mut place = &mut new;
    for part in path.split('.').filter(|part| !part.is_empty()) {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[part];
    }
    *place = replicas.into();
    for field in ["resourceVersion", "uid"] {
        let version = scale.meta_str(field);
        if !version.is_empty() {
            crate::object::set_meta(&mut new, field, Some(version.into()));
        }
    }
    Ok(new)
}
