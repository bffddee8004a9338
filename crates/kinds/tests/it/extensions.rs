//! Kinds that clients expect of every API server: requests for certificates, webhooks, flows, autoscalers of the older version.

use super::{create, now, stored, update, with};
use lifeboat_kinds::{Storage, all, find};
use serde_json::{Value, json};

/// The PEM header is all that is looked at.
const REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K";

fn request() -> Value {
    json!({ "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": { "name": "Any Name:is-fine" },
        "spec": { "request": REQUEST, "signerName": "example.com/s", "usages": ["server auth"], "username": "forged" } })
}

#[test]
fn a_request_says_who_asked_only_by_the_server() {
    let kind = find("certificates.k8s.io", "v1", "certificatesigningrequests").unwrap();
    let mut obj = stored(request());
    assert!(obj["spec"].get("username").is_none());
    kind.record_requester(&mut obj, &json!({ "username": "ann", "groups": ["g"], "other": 1 }));
    assert_eq!((&obj["spec"]["username"], &obj["spec"]["groups"]), (&json!("ann"), &json!(["g"])));
    let (kept, errors) = update(with(&obj, "/spec/username", json!("bob")), &obj, "");
    assert_eq!((kept["spec"]["username"].clone(), errors), (json!("ann"), vec![]));
}

#[test]
fn approval_changes_conditions_and_nothing_else() {
    let old = stored(request());
    let approved = json!({ "type": "Approved", "status": "True" });
    let new = with(&old, "/status", json!({ "conditions": [approved], "certificate": "eA==" }));
    let (written, errors) = update(new.clone(), &old, "approval");
    assert_eq!(errors, [""; 0]);
    assert!(written["status"].get("certificate").is_none());
    assert_eq!(written["status"]["conditions"][0]["lastTransitionTime"], format!("{:.0}", now()));
    let (_, errors) = update(new, &old, "status");
    assert_eq!(
        errors,
        [r#"status.conditions: Forbidden: updates may not add a condition of type "Approved""#]
    );
    let (_, errors) = update(old, &written, "approval");
    assert_eq!(
        errors,
        [r#"status.conditions: Forbidden: updates may not remove a condition of type "Approved""#]
    );
}

#[test]
fn a_certificate_is_written_once_and_by_status() {
    let old = stored(request());
    let (issued, errors) = update(with(&old, "/status", json!({ "certificate": "eA==" })), &old, "status");
    assert_eq!((issued["status"]["certificate"].clone(), errors), (json!("eA=="), vec![]));
    let (_, errors) = update(with(&issued, "/status/certificate", json!("eQ==")), &issued, "status");
    assert_eq!(
        errors,
        ["status.certificate: Forbidden: updates may not modify existing certificate content"]
    );
}

#[test]
fn rules() {
    fn check(obj: Value, expected: &[&str]) {
        assert_eq!(create(obj).1, expected);
    }
    check(with(&request(), "/spec/usages", json!([])), &["spec.usages: Required value"]);
    check(
        json!({ "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": { "name": "v1.b" },
            "spec": { "group": "a", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1 } }),
        &[r#"metadata.name: Invalid value: "v1.b": must be `spec.version+"."+spec.group`: "v1.a""#],
    );
    check(
        json!({ "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": { "name": "r" } }),
        &["handler: Required value"],
    );
    check(
        json!({ "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
            "metadata": { "name": "p" }, "spec": { "type": "Limited" } }),
        &["spec.limited: Required value: must not be empty when type is Limited"],
    );
    check(
        json!({ "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema",
            "metadata": { "name": "f" }, "spec": { "priorityLevelConfiguration": { "name": "p" } } }),
        &[],
    );
}

#[test]
fn every_change_of_webhooks_moves_the_generation() {
    let hook = json!({ "name": "a.b.c", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": { "service": { "namespace": "n", "name": "s" } } });
    let old = stored(
        json!({ "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": { "name": "w" }, "webhooks": [hook] }),
    );
    assert_eq!(old["metadata"]["generation"], 1);
    assert_eq!(old["webhooks"][0]["clientConfig"]["service"]["port"], 443);
    let (new, _) = update(with(&old, "/webhooks/0/timeoutSeconds", json!(5)), &old, "");
    assert_eq!(new["metadata"]["generation"], 2);
    let (new, _) = update(with(&old, "/metadata/labels", json!({ "a": "b" })), &old, "");
    assert_eq!(new["metadata"]["generation"], 1);
}

#[test]
fn an_autoscaler_survives_the_older_version() {
    let v1 = find("autoscaling", "v1", "horizontalpodautoscalers").unwrap();
    assert_eq!(v1.storage, Storage::As { group: "autoscaling", version: "v2" });
    let memory = json!({ "type": "Resource", "resource": { "name": "memory",
        "target": { "type": "AverageValue", "averageValue": "1Gi" } } });
    let cpu = json!({ "type": "Resource", "resource": { "name": "cpu",
        "target": { "type": "Utilization", "averageUtilization": 70 } } });
    let v2 = json!({ "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": "h" },
        "spec": { "scaleTargetRef": { "kind": "Deployment", "name": "d" }, "minReplicas": 1, "maxReplicas": 3,
            "metrics": [memory, cpu], "behavior": { "scaleDown": { "selectPolicy": "Min" } } },
        "status": { "currentReplicas": 1, "desiredReplicas": 1,
            "conditions": [{ "type": "AbleToScale", "status": "True" }] } });
    let mut older = v2.clone();
    v1.from_stored(&mut older);
    assert_eq!(older["spec"]["targetCPUUtilizationPercentage"], 70);
    assert!(older["spec"].get("metrics").is_none());
    assert_eq!(
        older["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"],
        r#"[{"resource":{"name":"memory","targetAverageValue":"1Gi"},"type":"Resource"}]"#
    );
    v1.to_stored(&mut older);
    assert_eq!(older, v2);
}

#[test]
fn what_has_no_effect_says_so() {
    let inert: Vec<&str> = all().iter().filter(|k| k.inert().is_some()).map(|k| k.kind).collect();
    for kind in ["ResourceQuota", "LimitRange", "APIService", "FlowSchema", "ValidatingAdmissionPolicy"] {
        assert!(inert.contains(&kind), "{kind}");
    }
    assert!(!inert.contains(&"Pod") && !inert.contains(&"CertificateSigningRequest"));
}
