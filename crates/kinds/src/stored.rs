//! Kinds that are served in one form and stored in another.

use crate::{Kind, autoscalers, events};
use serde_json::Value;

impl Kind {
    /// Turns an object of this kind into the form that is stored; most are stored as they are.
    pub fn to_stored(&self, obj: &mut Value) {
        match (self.group, self.version, self.kind) {
            ("events.k8s.io", _, "Event") => events::events_v1_to_core(obj),
            ("autoscaling", "v1", "HorizontalPodAutoscaler") => autoscalers::v1_to_v2(obj),
            _ => {}
        }
    }

    /// Turns a stored object into the form of this kind.
    pub fn from_stored(&self, obj: &mut Value) {
        match (self.group, self.version, self.kind) {
            ("events.k8s.io", _, "Event") => events::core_to_events_v1(obj),
            ("autoscaling", "v1", "HorizontalPodAutoscaler") => autoscalers::v2_to_v1(obj),
            _ => {}
        }
    }
}
