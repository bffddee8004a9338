//! Server-side apply and the owners of fields.

use crate::schema;
use lifeboat_schema::Schema;
use lifeboat_schema::managed::{ApplyError, Manager, apply, update};
use serde_json::{Value, json};

fn thing() -> Schema {
    schema(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "n": {"type": "integer"},
            "s": {"type": "string"},
            "atoms": {"type": "array", "items": {"type": "string"}},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "ports": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port", "proto"], "items": {"type": "object", "properties": {
                    "port": {"type": "integer"}, "proto": {"type": "string", "default": "TCP"},
                    "name": {"type": "string"}}}},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }},
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
    }}))
}

fn manager(name: &str) -> Manager<'_> {
    Manager {
        name,
        api_version: "x.io/v1",
        subresource: "",
        time: "2024-01-01T00:00:00Z",
        reset_fields: &["status"],
    }
}

fn object(spec: Value) -> Value {
    json!({"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec})
}

fn applied(live: Option<&Value>, spec: Value, name: &str) -> Value {
    apply(&thing(), live, &object(spec), &manager(name), false).unwrap_or_else(|e| panic!("{e}"))
}

/// Who owns what: `manager operation` to its fieldsV1.
fn owners(object: &Value) -> Value {
    let entries =
        object.pointer("/metadata/managedFields").and_then(Value::as_array).cloned().unwrap_or_default();
    let named = entries.iter().map(|e| {
        let name = format!("{} {}", e["manager"].as_str().unwrap(), e["operation"].as_str().unwrap());
        (name, e["fieldsV1"].clone())
    });
    Value::Object(named.collect())
}

#[test]
fn an_apply_owns_what_it_names() {
    let made = applied(
        None,
        json!({"n": 1, "set": ["a"], "ports": [{"port": 80, "name": "web"}],
        "map": {"k": "v"}, "whole": {"a": "x"}, "free": {"deep": {"x": [1]}}, "atoms": ["p"]}),
        "one",
    );
    assert_eq!(
        owners(&made),
        json!({"one Apply": {"f:spec": {
            "f:n": {},
            "f:set": {"v:\"a\"": {}},
            "f:ports": {"k:{\"port\":80,\"proto\":\"TCP\"}": {".": {}, "f:port": {}, "f:name": {}}},
            "f:map": {"f:k": {}},
            "f:whole": {},
            "f:free": {"f:deep": {".": {}, "f:x": {}}},
            "f:atoms": {},
        }}})
    );
    assert_eq!(made["metadata"]["managedFields"][0]["time"], "2024-01-01T00:00:00Z");
    assert_eq!(made["metadata"]["managedFields"][0]["fieldsType"], "FieldsV1");
}

#[test]
fn an_identical_apply_changes_nothing() {
    let made = applied(None, json!({"n": 1, "set": ["a", "b"]}), "one");
    let later = Manager { time: "2030-01-01T00:00:00Z", ..manager("one") };
    let again =
        apply(&thing(), Some(&made), &object(json!({"n": 1, "set": ["a", "b"]})), &later, false).unwrap();
    assert_eq!(again, made);
}

#[test]
fn managers_stand_in_kubernetes_order() {
    let write = |live: &Value, name: &'static str, time: &'static str| {
        let mut new = live.clone();
        new["spec"]["map"][name] = json!("v");
        update(&thing(), Some(live), &mut new, &Manager { time, ..manager(name) });
        new
    };
    let mut made = applied(None, json!({"s": "x"}), "z");
    made = write(&made, "b", "2025-01-01T00:00:00Z");
    made = write(&made, "a", "2025-01-01T00:00:00Z");
    made = write(&made, "c", "2024-06-01T00:00:00Z");
    let order: Vec<&str> = made["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["manager"].as_str().unwrap())
        .collect();
    assert_eq!(order, ["z", "c", "a", "b"], "applies first, then by time, then by name");
}

#[test]
fn what_is_no_longer_applied_goes() {
    let made = applied(
        None,
        json!({"n": 1, "s": "x", "map": {"a": "1", "b": "2"}, "set": ["p", "q"],
        "ports": [{"port": 1}, {"port": 2}]}),
        "one",
    );
    let less =
        applied(Some(&made), json!({"n": 1, "map": {"b": "2"}, "set": ["q"], "ports": [{"port": 2}]}), "one");
    assert_eq!(less["spec"], json!({"n": 1, "map": {"b": "2"}, "set": ["q"], "ports": [{"port": 2}]}));
    let none = apply(
        &thing(),
        Some(&less),
        &json!({"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t"}}),
        &manager("one"),
        false,
    )
    .unwrap();
    assert!(none.get("spec").is_none(), "{none}");
    assert_eq!(owners(&none), json!({}));
}

#[test]
fn what_others_own_stays() {
    let made = applied(None, json!({"n": 1, "map": {"a": "1"}}), "one");
    let shared = applied(Some(&made), json!({"n": 1, "map": {"b": "2"}}), "two");
    assert_eq!(shared["spec"], json!({"n": 1, "map": {"a": "1", "b": "2"}}));
    let gone = applied(Some(&shared), json!({}), "one");
    assert_eq!(gone["spec"], json!({"n": 1, "map": {"b": "2"}}), "n is co-owned, map.a was not");
}

#[test]
fn conflicts_name_the_other_manager() {
    let made = applied(None, json!({"n": 1, "s": "x"}), "one");
    let error = apply(&thing(), Some(&made), &object(json!({"n": 2})), &manager("two"), false).unwrap_err();
    assert_eq!(error.to_string(), r#"Apply failed with 1 conflict: conflict with "one": .spec.n"#);
    assert_eq!(
        error.causes(),
        [json!({
        "reason": "FieldManagerConflict", "message": "conflict with \"one\"", "field": ".spec.n"})]
    );
    let mut updated = made.clone();
    updated["spec"]["n"] = json!(3);
    update(&thing(), Some(&made), &mut updated, &manager("kubectl"));
    let error = apply(&thing(), Some(&updated), &object(json!({"n": 2, "s": "y"})), &manager("two"), false)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 2 conflicts: conflicts with \"kubectl\" using x.io/v1:\n- .spec.n\nconflicts with \"one\":\n- .spec.s"
    );
    let forced = apply(&thing(), Some(&made), &object(json!({"n": 2})), &manager("two"), true).unwrap();
    assert_eq!(forced["spec"], json!({"n": 2, "s": "x"}));
    assert_eq!(
        owners(&forced),
        json!({"one Apply": {"f:spec": {"f:s": {}}}, "two Apply": {"f:spec": {"f:n": {}}}})
    );
}

#[test]
fn the_same_value_is_no_conflict() {
    let made = applied(None, json!({"n": 1}), "one");
    let both = applied(Some(&made), json!({"n": 1}), "two");
    assert_eq!(
        owners(&both),
        json!({"one Apply": {"f:spec": {"f:n": {}}}, "two Apply": {"f:spec": {"f:n": {}}}})
    );
}

#[test]
fn lists_merge_by_what_identifies_their_items() {
    let made = applied(
        None,
        json!({"ports": [{"port": 1, "name": "a"}, {"port": 2, "proto": "UDP"}], "set": ["x"], "atoms": ["1"]}),
        "one",
    );
    let merged = apply(
        &thing(),
        Some(&made),
        &object(json!({
        "ports": [{"port": 3}, {"port": 1, "proto": "TCP"}], "set": ["y"]})),
        &manager("two"),
        false,
    )
    .unwrap();
    assert_eq!(
        merged["spec"]["ports"],
        json!([
        {"port": 3}, {"port": 1, "name": "a", "proto": "TCP"}, {"port": 2, "proto": "UDP"}])
    );
    assert_eq!(merged["spec"]["set"], json!(["x", "y"]));
    let error =
        apply(&thing(), Some(&made), &object(json!({"atoms": ["2"]})), &manager("two"), false).unwrap_err();
    assert!(matches!(error, ApplyError::Conflict(c) if c[0].field == ".spec.atoms"));
}

#[test]
fn what_cannot_be_applied() {
    let check = |config: Value, want: &str| {
        let error = apply(&thing(), None, &config, &manager("one"), false).unwrap_err();
        assert_eq!(error.to_string(), want);
    };
    check(
        object(json!({"unknown": 1})),
        "failed to create typed patch object (/t; x.io/v1, Kind=Thing): .spec.unknown: field not declared in schema",
    );
    check(
        object(json!({"set": ["a", "a"]})),
        "failed to create typed patch object (/t; x.io/v1, Kind=Thing): .spec.set: duplicate entries for key [=\"a\"]",
    );
    check(
        object(json!({"ports": [1]})),
        "failed to create typed patch object (/t; x.io/v1, Kind=Thing): .spec.ports: element 0: associative list with keys may not have non-map elements",
    );
    check(
        json!({"apiVersion": "x.io/v2", "kind": "Thing"}),
        "Incorrect version specified in apply patch. Specified patch version: x.io/v2, expected: x.io/v1",
    );
    check(
        json!({"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"managedFields": []}}),
        "metadata.managedFields must be nil",
    );
}

#[test]
fn a_write_owns_what_it_changes() {
    let mut made = object(json!({"n": 1, "map": {"k": "v"}, "set": ["a"]}));
    made["metadata"]["labels"] = json!({"l": "v"});
    made["metadata"]["uid"] = json!("u");
    update(&thing(), None, &mut made, &manager("creator"));
    assert_eq!(
        owners(&made),
        json!({"creator Update": {
            "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
            "f:spec": {".": {}, "f:n": {}, "f:map": {".": {}, "f:k": {}}, "f:set": {".": {}, "v:\"a\"": {}}},
        }})
    );
    let mut next = made.clone();
    next["spec"]["n"] = json!(2);
    next["spec"]["map"] = json!({});
    let later = Manager { time: "2030-01-01T00:00:00Z", ..manager("changer") };
    update(&thing(), Some(&made), &mut next, &later);
    assert_eq!(owners(&next)["changer Update"], json!({"f:spec": {"f:n": {}}}));
    assert_eq!(
        owners(&next)["creator Update"]["f:spec"],
        json!({".": {}, "f:map": {}, "f:set": {".": {}, "v:\"a\"": {}}})
    );
    let mut same = next.clone();
    same["metadata"]["resourceVersion"] = json!("7");
    let much_later = Manager { time: "2040-01-01T00:00:00Z", ..manager("changer") };
    update(&thing(), Some(&next), &mut same, &much_later);
    assert_eq!(
        same["metadata"]["managedFields"], next["metadata"]["managedFields"],
        "nothing changed, not even times"
    );
}

#[test]
fn status_belongs_to_its_own_endpoint() {
    let mut made = object(json!({"n": 1}));
    made["status"] = json!({"phase": "Made"});
    update(&thing(), None, &mut made, &manager("creator"));
    assert_eq!(owners(&made), json!({"creator Update": {"f:spec": {".": {}, "f:n": {}}}}));
    let status =
        Manager { subresource: "status", reset_fields: &["spec", "metadata"], ..manager("controller") };
    let mut next = made.clone();
    next["status"]["phase"] = json!("Ready");
    next["spec"]["n"] = json!(5);
    update(&thing(), Some(&made), &mut next, &status);
    assert_eq!(owners(&next)["controller Update"], json!({"f:status": {"f:phase": {}}}));
    assert_eq!(next["metadata"]["managedFields"][0]["subresource"], "status");
}

#[test]
fn entries_can_be_cleared() {
    let mut made = object(json!({"n": 1}));
    made["metadata"]["uid"] = json!("u");
    update(&thing(), None, &mut made, &manager("creator"));
    for cleared in [json!([{}]), json!([])] {
        let mut next = made.clone();
        next["metadata"]["managedFields"] = cleared;
        update(&thing(), Some(&made), &mut next, &manager("eraser"));
        assert!(next["metadata"].get("managedFields").is_none());
        let after = applied(Some(&next), json!({"n": 1}), "one");
        assert_eq!(
            owners(&after),
            json!({
            "before-first-apply Update": {"f:spec": {".": {}, "f:n": {}}}, "one Apply": {"f:spec": {"f:n": {}}}})
        );
    }
    let mut without = made.clone();
    without["metadata"].as_object_mut().unwrap().remove("managedFields");
    update(&thing(), Some(&made), &mut without, &manager("other"));
    assert_eq!(owners(&without), owners(&made), "a client that does not send them does not lose them");
}

#[test]
fn old_updaters_become_one() {
    let mut live = object(json!({"map": {}}));
    for i in 0..15 {
        let mut next = live.clone();
        next["spec"]["map"][format!("k{i:02}")] = json!("v");
        let (name, time) = (format!("m{i:02}"), format!("2024-01-01T00:00:{i:02}Z"));
        update(&thing(), Some(&live), &mut next, &Manager { name: &name, time: &time, ..manager("") });
        live = next;
    }
    let entries = live["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 10);
    assert_eq!(entries[0]["manager"], "ancient-changes");
    let total: usize =
        entries.iter().map(|e| e["fieldsV1"]["f:spec"]["f:map"].as_object().unwrap().len()).sum();
    assert!(total >= 15, "nothing is lost: {total}");
}

#[test]
fn kubectl_moves_from_client_side_to_server_side() {
    let config = object(json!({"n": 1}));
    let mut live = config.clone();
    live["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": config.to_string()});
    live["metadata"]["uid"] = json!("u");
    update(&thing(), None, &mut live, &manager("kubectl-client-side-apply"));
    let next = apply(&thing(), Some(&live), &object(json!({"n": 2})), &manager("kubectl"), false).unwrap();
    assert_eq!(next["spec"]["n"], 2);
    let annotation = &next["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"];
    let kept: Value = serde_json::from_str(annotation.as_str().unwrap()).unwrap();
    assert_eq!(kept["spec"]["n"], 2);
    assert!(apply(&thing(), Some(&live), &object(json!({"n": 2})), &manager("other"), false).is_err());
}
