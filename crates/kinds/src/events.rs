//! Events have two faces, core/v1 and events.k8s.io/v1, and one stored form, core/v1.

use serde_json::Value;

/// Names of the same field: core/v1 and events.k8s.io/v1. The others are named alike.
const NAMES: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Turns an events.k8s.io/v1 Event into the core/v1 form that is stored.
pub fn events_v1_to_core(obj: &mut Value) {
    rename(obj, "v1", NAMES.iter().map(|&(core, events)| (events, core)));
    // These two are always shown in the core form and never in the other.
    for key in ["reportingComponent", "reportingInstance"] {
        if obj.get(key).is_none() && obj.is_object() {
            obj[key] = "".into();
        }
    }
}

/// Turns a stored core/v1 Event into the events.k8s.io/v1 form.
pub fn core_to_events_v1(obj: &mut Value) {
    rename(obj, "events.k8s.io/v1", NAMES.iter().copied());
    if let Value::Object(o) = obj {
        for key in ["reportingController", "reportingInstance"] {
            if o.get(key).is_some_and(|v| v == "") {
                o.remove(key);
            }
        }
    }
}

fn rename(obj: &mut Value, api_version: &str, names: impl Iterator<Item = (&'static str, &'static str)>) {
    let Value::Object(o) = obj else { return };
    o.insert("apiVersion".into(), api_version.into());
    for (from, to) in names {
        if let Some(value) = o.remove(from) {
            o.insert(to.into(), value);
        }
    }
}
