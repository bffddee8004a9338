//! Autoscalers have two faces, autoscaling/v1 and autoscaling/v2, and one stored form, v2.
//!
//! The older face knows one metric, the use of CPU. What it has no field for travels in annotations, under the names
//! that Kubernetes gives them, so that reading and writing through it loses nothing.

use crate::json::{Object, blank, object, text};
use serde_json::{Value, json};

/// Annotation, then the part of a v2 object and the field there that it carries.
const CARRIED: [(&str, &str, &str); 4] = [
    ("autoscaling.alpha.kubernetes.io/metrics", "spec", "metrics"),
    ("autoscaling.alpha.kubernetes.io/behavior", "spec", "behavior"),
    ("autoscaling.alpha.kubernetes.io/current-metrics", "status", "currentMetrics"),
    ("autoscaling.alpha.kubernetes.io/conditions", "status", "conditions"),
];
const TARGET: &str = "targetCPUUtilizationPercentage";
const CURRENT: &str = "currentCPUUtilizationPercentage";

/// Turns an autoscaling/v1 autoscaler into the v2 form that is stored.
pub(crate) fn v1_to_v2(obj: &mut Value) {
    let Value::Object(o) = obj else { return };
    o.insert("apiVersion".into(), "autoscaling/v2".into());
    for (annotation, part, field) in CARRIED {
        let carried = take_annotation(o, annotation).and_then(|s| serde_json::from_str::<Value>(&s).ok());
        if let Some(carried) =
            carried.filter(|v| if field == "behavior" { v.is_object() } else { v.is_array() })
        {
            object(o, part).insert(field.into(), carried);
        }
    }
    if let Some(Value::Object(spec)) = o.get_mut("spec")
        && let Some(percent) = spec.remove(TARGET)
    {
        let cpu = json!({ "type": "Resource", "resource": { "name": "cpu",
            "target": { "type": "Utilization", "averageUtilization": percent } } });
        push(spec, "metrics", cpu);
    }
    if let Some(Value::Object(status)) = o.get_mut("status") {
        let percent = status.remove(CURRENT);
        if let (Some(percent), true) = (percent, blank(status.get("currentMetrics"))) {
            let cpu = json!({ "type": "Resource", "resource": { "name": "cpu",
                "current": { "averageUtilization": percent } } });
            push(status, "currentMetrics", cpu);
        }
    }
}

/// Turns a stored v2 autoscaler into the autoscaling/v1 form.
pub(crate) fn v2_to_v1(obj: &mut Value) {
    let Value::Object(o) = obj else { return };
    o.insert("apiVersion".into(), "autoscaling/v1".into());
    for (annotation, part, field) in CARRIED {
        take_annotation(o, annotation);
        let Some(Value::Object(from)) = o.get_mut(part) else { continue };
        let Some(mut carried) = from.remove(field) else { continue };
        let of_cpu = |m: &&Value, pointer: &str| {
            text(m, "/type") == "Resource"
                && text(m, "/resource/name") == "cpu"
                && m.pointer(pointer).is_some()
        };
        if let Value::Array(items) = &mut carried {
            let (pointer, name) = match field {
                "metrics" => ("/resource/target/averageUtilization", TARGET),
                _ => ("/resource/current/averageUtilization", CURRENT),
            };
            if let Some(percent) = items.iter().find(|m| of_cpu(m, pointer)).and_then(|m| m.pointer(pointer))
            {
                from.insert(name.into(), percent.clone());
            }
            if field == "metrics" {
                items.retain(|m| !of_cpu(&m, pointer));
            }
        }
        if !blank(Some(&carried)) {
            object(object(o, "metadata"), "annotations")
                .insert(annotation.into(), carried.to_string().into());
        }
    }
}

fn push(o: &mut Object, key: &str, item: Value) {
    if let Value::Array(items) = o.entry(key).or_insert_with(|| json!([])) {
        items.push(item);
    }
}

fn take_annotation(o: &mut Object, key: &str) -> Option<String> {
    let metadata = o.get_mut("metadata")?.as_object_mut()?;
    let annotations = metadata.get_mut("annotations")?.as_object_mut()?;
    let taken = annotations.remove(key)?.as_str().map(str::to_owned);
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    taken
}
