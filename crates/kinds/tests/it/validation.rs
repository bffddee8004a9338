//! Rules of metadata and of the kinds that are not about storage.

use super::{create, stored, update, with};
use serde_json::{Value, json};

fn refused(obj: Value, beginnings: &[&str]) {
    same(&create(obj).1, beginnings);
}

fn change(old: &Value, pointer: &str, value: Value, beginnings: &[&str]) {
    same(&update(with(old, pointer, value), old, "").1, beginnings);
}

fn same(errors: &[String], beginnings: &[&str]) {
    assert_eq!(errors.len(), beginnings.len(), "{errors:#?}");
    for (error, beginning) in errors.iter().zip(beginnings) {
        assert!(error.starts_with(beginning), "{error:?} does not start with {beginning:?}");
    }
}

fn config(metadata: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata })
}

#[test]
fn names_by_kind() {
    let named = |kind: &str, api_version: &str, name: &str| json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name } });
    refused(named("ConfigMap", "v1", "a.b"), &[]);
    refused(
        named("ConfigMap", "v1", "A"),
        &["metadata.name: Invalid value: \"A\": a lowercase RFC 1123 subdomain"],
    );
    refused(
        named("Namespace", "v1", "a.b"),
        &["metadata.name: Invalid value: \"a.b\": must not contain dots"],
    );
    refused(named("ClusterRole", "rbac.authorization.k8s.io/v1", "system:Any"), &[]);
    refused(
        named("ClusterRole", "rbac.authorization.k8s.io/v1", "a/b"),
        &["metadata.name: Invalid value: \"a/b\": may not contain '/'"],
    );
    let long = "x".repeat(254);
    refused(
        named("ConfigMap", "v1", &long),
        &[&format!("metadata.name: Invalid value: {long:?}: must be no more than 253")],
    );
    refused(config(json!({})), &["metadata.name: Required value: name or generateName is required"]);
    refused(config(json!({ "name": "a", "generateName": "a-" })), &[]);
}

#[test]
fn labels_annotations_and_finalizers() {
    let with_meta = |key: &str, value: Value| {
        let mut metadata = json!({ "name": "a" });
        metadata[key] = value;
        config(metadata)
    };
    refused(
        with_meta("labels", json!({ "a b": "c" })),
        &["metadata.labels: Invalid value: \"a b\": name part must consist"],
    );
    refused(
        with_meta("labels", json!({ "x.io/a": "b c" })),
        &["metadata.labels: Invalid value: \"b c\": a valid label must be"],
    );
    refused(
        with_meta("labels", json!({ "/a": "b" })),
        &["metadata.labels: Invalid value: \"/a\": prefix part must be non-empty"],
    );
    refused(with_meta("annotations", json!({ "A.io/Any": "any text" })), &[]);
    refused(
        with_meta("annotations", json!({ "a": "x".repeat(262_144) })),
        &["metadata.annotations: Too long"],
    );
    refused(
        with_meta("finalizers", json!(["plain"])),
        &["metadata.finalizers[0]: Invalid value: \"plain\": name is neither a standard finalizer name"],
    );
    refused(with_meta("finalizers", json!(["x.io/f"])), &[]);
    let owner = json!({ "apiVersion": "v1", "kind": "X", "name": "x", "uid": "u", "controller": true });
    refused(
        with_meta("ownerReferences", json!([owner, owner])),
        &["metadata.ownerReferences: Invalid value"],
    );
}

#[test]
fn what_metadata_may_not_change() {
    let old = stored(config(json!({ "name": "a" })));
    change(
        &old,
        "/metadata/uid",
        json!("other"),
        &["metadata.uid: Invalid value: \"other\": field is immutable"],
    );
    let deleted = with(&old, "/metadata/deletionTimestamp", json!("2024-01-01T00:00:00Z"));
    change(
        &deleted,
        "/metadata/finalizers",
        json!(["x.io/f"]),
        &[
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"x.io/f\"}",
        ],
    );
}

#[test]
fn custom_resources_have_the_same_metadata_rules() {
    let obj = json!({ "metadata": { "name": "B", "namespace": "n" } });
    assert_eq!(lifeboat_kinds::validate_meta(&obj, true).len(), 1);
    assert_eq!(lifeboat_kinds::validate_meta(&obj, false).len(), 2);
    assert!(lifeboat_kinds::validate_meta_update(&obj, &obj).is_empty());
}

#[test]
fn configuration_that_is_immutable() {
    let old = stored(
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "a": "b" }, "immutable": true }),
    );
    change(&old, "/data/a", json!("c"), &["data: Forbidden: field is immutable when `immutable` is set"]);
    change(&old, "/immutable", json!(false), &["immutable: Forbidden"]);
    let secret = stored(json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" } }));
    change(&secret, "/type", json!("other"), &["type: Invalid value: \"other\": field is immutable"]);
}

#[test]
fn configuration_keys_and_secret_types() {
    refused(
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "a/b": "" } }),
        &["data[a/b]: Invalid value: \"a/b\": a valid config key"],
    );
    refused(
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" }, "type": "kubernetes.io/tls" }),
        &["data[tls.crt]: Required value", "data[tls.key]: Required value"],
    );
}

#[test]
fn namespace_phase_follows_deletion() {
    let old = stored(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "n" } }));
    let (_, errors) = update(with(&old, "/status/phase", json!("Terminating")), &old, "status");
    same(&errors, &["status.Phase: Invalid value: \"Terminating\": may only be 'Active'"]);
}

#[test]
fn pod_spec_is_immutable_but_for_images_and_tolerations() {
    let old = stored(json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" },
        "spec": { "containers": [{ "name": "c", "image": "i" }] } }));
    change(&old, "/spec/containers/0/image", json!("j"), &[]);
    change(&old, "/spec/activeDeadlineSeconds", json!(5), &[]);
    change(
        &old,
        "/spec/nodeName",
        json!("n"),
        &["spec: Forbidden: pod updates may not change fields other than"],
    );
    change(
        &old,
        "/spec/containers",
        json!([]),
        &[
            "spec.containers: Required value",
            "spec.containers: Forbidden: pod updates may not add or remove containers",
        ],
    );
}

#[test]
fn pod_mounts_only_its_volumes() {
    refused(
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" }, "spec": { "containers": [
            { "name": "c", "image": "i", "volumeMounts": [{ "name": "v", "mountPath": "/v" }] }] } }),
        &["spec.containers[0].volumeMounts[0].name: Not found: \"v\""],
    );
}

fn workload(kind: &str) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": kind, "metadata": { "name": "w" }, "spec": {
        "selector": { "matchLabels": { "a": "b" } },
        "template": { "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "c", "image": "i" }] } } } })
}

#[test]
fn selectors_match_templates_and_stay() {
    for kind in ["Deployment", "ReplicaSet", "DaemonSet", "StatefulSet"] {
        refused(
            with(&workload(kind), "/spec/selector", json!({ "matchLabels": { "a": "c" } })),
            &[
                "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`",
            ],
        );
        refused(
            with(&workload(kind), "/spec/selector", json!({})),
            &["spec.selector: Invalid value: {}: empty selector"],
        );
    }
    let old = stored(workload("Deployment"));
    let new = with(&old, "/spec/template/metadata/labels", json!({ "a": "b", "c": "d" }));
    change(&old, "/spec/template/metadata/labels", json!({ "a": "b", "c": "d" }), &[]);
    let (_, errors) = update(with(&new, "/spec/selector/matchLabels", json!({ "c": "d" })), &old, "");
    same(&errors, &["spec.selector: Invalid value"]);
}

#[test]
fn stateful_set_keeps_what_its_pods_were_made_from() {
    let old = stored(workload("StatefulSet"));
    change(&old, "/spec/replicas", json!(3), &[]);
    change(
        &old,
        "/spec/serviceName",
        json!("s"),
        &["spec: Forbidden: updates to statefulset spec for fields other than"],
    );
    let claims = json!([{ "metadata": { "name": "d" }, "spec": {} }]);
    refused(
        with(&workload("StatefulSet"), "/spec/volumeClaimTemplates", claims),
        &[
            "spec.volumeClaimTemplates[0].spec.accessModes: Required value",
            "spec.volumeClaimTemplates[0].spec.resources[storage]: Required value",
        ],
    );
}

#[test]
fn jobs_keep_template_and_completions() {
    let job = json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "j" }, "spec": {
        "template": { "spec": { "restartPolicy": "Never", "containers": [{ "name": "c", "image": "i" }] } } } });
    let old = stored(job.clone());
    change(&old, "/spec/parallelism", json!(2), &[]);
    change(&old, "/spec/completions", json!(2), &["spec.completions: Invalid value: 2: field is immutable"]);
    change(&old, "/spec/template/spec/containers/0/image", json!("k"), &["spec.template: Invalid value"]);
    refused(
        with(&job, "/spec/template/spec/restartPolicy", json!("Always")),
        &["spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\""],
    );
}

#[test]
fn bindings_keep_their_role() {
    let binding = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": "b" },
        "roleRef": { "kind": "Role", "name": "r" } });
    change(&stored(binding.clone()), "/roleRef/name", json!("s"), &["roleRef: Invalid value"]);
    refused(with(&binding, "/roleRef/kind", json!("Group")), &["roleRef.kind: Unsupported value: \"Group\""]);
    refused(
        with(&binding, "/subjects", json!([{ "kind": "Robot", "name": "x" }])),
        &["subjects[0].kind: Unsupported value"],
    );
}

#[test]
fn roles_say_what_is_allowed_on_what() {
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "name": "r" },
        "rules": [{ "verbs": ["get"], "nonResourceURLs": ["/x"] }, { "verbs": [], "apiGroups": [""], "resources": ["pods"] }] });
    refused(
        role,
        &[
            "rules[0].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to non-resource URLs",
            "rules[1].verbs: Required value: verbs must contain at least one value",
        ],
    );
}

#[test]
fn leases_have_a_duration() {
    refused(
        json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "l" }, "spec": { "leaseDurationSeconds": 0 } }),
        &["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
    );
}

#[test]
fn events_are_strict_only_in_their_new_group() {
    let about = json!({ "kind": "Pod", "name": "p", "namespace": "default" });
    refused(
        json!({ "apiVersion": "v1", "kind": "Event", "metadata": { "name": "Any_Name" }, "involvedObject": about }),
        &[],
    );
    refused(
        json!({ "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": { "name": "e" }, "regarding": about }),
        &["eventTime: Required value", "type: Invalid value: \"\": has invalid value: "],
    );
}

fn definition() -> Value {
    json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "boats.x.io" }, "spec": { "group": "x.io", "scope": "Namespaced",
            "names": { "kind": "Boat", "plural": "boats" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object" } } }] } })
}

#[test]
fn definitions() {
    let with = |pointer: &str, value: Value| with(&definition(), pointer, value);
    refused(definition(), &[]);
    refused(
        with("/metadata/name", json!("ships.x.io")),
        &["metadata.name: Invalid value: \"ships.x.io\": must be spec.names.plural"],
    );
    refused(with("/spec/scope", json!("Galaxy")), &["spec.scope: Unsupported value: \"Galaxy\""]);
    refused(
        with("/spec/versions/0/storage", json!(false)),
        &[
            "spec.versions: Invalid value",
            "status.storedVersions: Invalid value: null: must have at least one stored version",
        ],
    );
    refused(
        with("/spec/versions/0/schema", Value::Null),
        &["spec.versions[0].schema.openAPIV3Schema: Required value"],
    );
    refused(
        with("/spec/names/shortNames", json!(["B"])),
        &["spec.names.shortNames[0]: Invalid value: \"B\""],
    );
    let columns = json!([{ "name": "a", "type": "colour", "jsonPath": ".spec.a" }]);
    refused(
        with("/spec/versions/0/additionalPrinterColumns", columns),
        &[
            "spec.additionalPrinterColumns[0].type: Invalid value: \"colour\": must be one of boolean,date,integer,number,string",
        ],
    );
    let old = stored(definition());
    change(
        &old,
        "/spec/group",
        json!("y.io"),
        &["metadata.name: Invalid value", "spec.group: Invalid value"],
    );
}
