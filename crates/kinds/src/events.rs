//! Events have two faces, core/v1 and events.k8s.io/v1, and one stored form, core/v1.

use serde_json::Value;

/// Turns an events.k8s.io/v1 Event into the core/v1 form that is stored.
pub fn events_v1_to_core(_obj: &mut Value) {}

/// Turns a stored core/v1 Event into the events.k8s.io/v1 form.
pub fn core_to_events_v1(_obj: &mut Value) {}
