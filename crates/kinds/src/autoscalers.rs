//! Autoscalers have two faces, autoscaling/v1 and autoscaling/v2, and one stored form, v2.
//!
//! The older face knows one metric, the use of CPU. What it has no field for travels in annotations, named and written as
//! Kubernetes does it, so that reading and writing through it loses nothing.

mod metrics;

use crate::json::{Object, blank, object, text};
use lifeboat_schema::Reach;
use metrics::{Side, rename_keys, to_v1, to_v2};
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

/// Turns an autoscaling/v1 autoscaler into the v2 form that is stored; one that is in that form already stays as it is.
pub(crate) fn v1_to_v2(obj: &mut Value) {
    let Value::Object(o) = obj else { return };
    o.insert("apiVersion".into(), "autoscaling/v2".into());
    for (annotation, part, field) in CARRIED {
        let carried = take_annotation(o, annotation).and_then(|s| serde_json::from_str::<Value>(&s).ok());
        let carried = match (field, carried) {
            ("behavior", Some(v @ Value::Object(_))) => rename_keys(&v, |c| c.to_ascii_lowercase()),
            ("metrics", Some(Value::Array(items))) => items.iter().map(|m| to_v2(m, Side::Target)).collect(),
            ("currentMetrics", Some(Value::Array(items))) => {
                items.iter().map(|m| to_v2(m, Side::Current)).collect()
            }
            ("conditions", Some(v @ Value::Array(_))) => v,
            _ => continue,
        };
        object(o, part).insert(field.into(), carried);
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
        let carried = match (field, from.remove(field)) {
            ("behavior", Some(v)) => rename_keys(&v, |c| c.to_ascii_uppercase()),
            ("metrics", Some(Value::Array(items))) => {
                let pointer = "/resource/target/averageUtilization";
                if let Some(percent) = items.iter().find_map(|m| of_cpu(m, pointer)) {
                    from.insert(TARGET.into(), percent.clone());
                }
                items
                    .iter()
                    .filter(|m| of_cpu(m, pointer).is_none())
                    .map(|m| to_v1(m, Side::Target))
                    .collect()
            }
            ("currentMetrics", Some(Value::Array(items))) => {
                let pointer = "/resource/current/averageUtilization";
                if let Some(percent) = items.iter().rev().find_map(|m| of_cpu(m, pointer)) {
                    from.insert(CURRENT.into(), percent.clone());
                }
                items.iter().map(|m| to_v1(m, Side::Current)).collect()
            }
            (_, Some(v)) => v,
            (_, None) => continue,
        };
        if !blank(Some(&carried)) {
            object(object(o, "metadata"), "annotations")
                .insert(annotation.into(), carried.to_string().into());
        }
    }
}

/// A value of a metric, where the metric is about the use of CPU.
fn of_cpu<'a>(metric: &'a Value, pointer: &str) -> Option<&'a Value> {
    let cpu = text(metric, "/type") == "Resource" && text(metric, "/resource/name") == "cpu";
    metric.reach(pointer).filter(|_| cpu)
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
