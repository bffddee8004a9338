//! The two faces of an event.

use lifeboat_kinds::{core_to_events_v1, events_v1_to_core, find};
use serde_json::json;

#[test]
fn there_and_back() {
    let events = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": { "name": "e" },
        "regarding": { "kind": "Pod" }, "note": "n", "deprecatedSource": { "component": "c" },
        "deprecatedFirstTimestamp": "a", "deprecatedLastTimestamp": "b", "deprecatedCount": 2,
        "reportingController": "r", "reportingInstance": "i", "reason": "R", "eventTime": "t",
    });
    let mut obj = events.clone();
    events_v1_to_core(&mut obj);
    assert_eq!(
        obj,
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": { "name": "e" },
            "involvedObject": { "kind": "Pod" }, "message": "n", "source": { "component": "c" },
            "firstTimestamp": "a", "lastTimestamp": "b", "count": 2,
            "reportingComponent": "r", "reportingInstance": "i", "reason": "R", "eventTime": "t",
        })
    );
    core_to_events_v1(&mut obj);
    assert_eq!(obj, events);
}

#[test]
fn selected_by_the_names_of_either() {
    let obj = json!({ "involvedObject": { "kind": "Pod", "uid": "u" }, "reportingComponent": "r", "type": "Normal" });
    let value = |group: &str, field: &str| {
        let fields = find(group, "v1", "events").unwrap().selectable_fields(&obj);
        fields.into_iter().find(|(f, _)| *f == field).map(|(_, v)| v)
    };
    assert_eq!(value("", "involvedObject.uid").as_deref(), Some("u"));
    assert_eq!(value("", "source").as_deref(), Some("r"));
    assert_eq!(value("", "regarding.uid"), None);
    assert_eq!(value("events.k8s.io", "regarding.uid").as_deref(), Some("u"));
    assert_eq!(value("events.k8s.io", "reportingController").as_deref(), Some("r"));
}
