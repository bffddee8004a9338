//! Names, verbs and OpenAPI.

use lifeboat_kinds::{Storage, all, find, openapi};

#[test]
fn found_by_path_and_by_kind() {
    assert_eq!(find("", "v1", "pods").unwrap().kind, "Pod");
    assert_eq!(find("storage.k8s.io", "v1", "csinodes").unwrap().kind, "CSINode");
    assert!(find("apps", "v1beta1", "deployments").is_none());
    assert_eq!(lifeboat_kinds::find_kind("batch/v1", "Job").unwrap().plural, "jobs");
}

#[test]
fn events_of_both_groups_share_storage() {
    let events = find("events.k8s.io", "v1", "events").unwrap();
    assert_eq!(events.storage, Storage::As { group: "", version: "v1" });
}

#[test]
fn reviews_are_only_created() {
    assert_eq!(find("authentication.k8s.io", "v1", "tokenreviews").unwrap().verbs(), ["create"]);
    assert!(!find("", "v1", "namespaces").unwrap().verbs().contains(&"deletecollection"));
}

#[test]
fn updates_without_a_version_and_of_missing_objects() {
    for (group, plural, unconditional, creates) in [
        ("", "pods", true, false),
        ("", "services", true, true),
        ("coordination.k8s.io", "leases", false, true),
        ("storage.k8s.io", "volumeattachments", false, false),
        ("policy", "poddisruptionbudgets", false, false),
        ("rbac.authorization.k8s.io", "roles", true, true),
    ] {
        let kind = find(group, "v1", plural).unwrap();
        assert_eq!(
            (kind.allows_unconditional_update(), kind.allows_create_on_update()),
            (unconditional, creates),
            "{plural}"
        );
    }
}

#[test]
fn v3_schemas_stand_alone() {
    for kind in all() {
        let schemas = openapi::v3_schemas(kind.group, kind.version);
        let name = openapi::schema_name(&kind.api_version(), kind.kind).unwrap();
        assert_eq!(schemas[name]["x-kubernetes-group-version-kind"][0]["kind"], kind.kind);
        let text = serde_json::to_string(&schemas).unwrap();
        for reference in text.split("\"#/components/schemas/").skip(1) {
            let target = reference.split('"').next().unwrap();
            assert!(schemas.contains_key(target), "{target} is missing for {}", kind.kind);
        }
    }
}

#[test]
fn v3_schemas_say_how_lists_merge() {
    let schemas = openapi::v3_schemas("", "v1");
    let containers = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["x-kubernetes-list-type"], "map");
    let ports = &schemas["io.k8s.api.core.v1.Container"]["properties"]["ports"];
    assert_eq!(ports["x-kubernetes-list-map-keys"], serde_json::json!(["containerPort", "protocol"]));
    assert!(schemas.contains_key("io.k8s.api.core.v1.PodList"));
}

#[test]
fn a_json_schema_keeps_its_field_named_ref() {
    let schemas = openapi::v3_schemas("apiextensions.k8s.io", "v1");
    let props = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
    assert_eq!(schemas[props]["properties"]["$ref"]["type"], "string");
}

#[test]
fn v2_definitions_have_every_kind() {
    let definitions = openapi::v2_definitions();
    for kind in all() {
        let name = openapi::schema_name(&kind.api_version(), kind.kind).unwrap();
        assert!(definitions.contains_key(name), "{name}");
    }
    let text = serde_json::to_string(&definitions).unwrap();
    assert!(!text.contains("#/components/"));
}

#[test]
fn bodies_of_subresources_have_schemas() {
    for (api_version, kind) in [
        ("policy/v1", "Eviction"),
        ("autoscaling/v1", "Scale"),
        ("authentication.k8s.io/v1", "TokenRequest"),
        ("v1", "Binding"),
        ("apps/v1", "DeleteOptions"),
    ] {
        assert!(lifeboat_kinds::schema(api_version, kind).is_some(), "{api_version} {kind}");
    }
    assert!(lifeboat_kinds::schema("v1", "Nothing").is_none());
}
