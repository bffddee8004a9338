//! Workloads: selectors and templates that fit each other, and what may not change.

use super::{Check, claims, names, pod, without};
use crate::json::{blank, int, list, text};
use lifeboat_schema::selector::LabelSelector;
use lifeboat_schema::{FieldError, Reach};
use serde_json::{Value, json};

pub(super) fn replicated(check: &mut Check, kind: &str, obj: &Value, old: Option<&Value>) {
    check.not_negative(obj, "spec.replicas");
    check.not_negative(obj, "spec.minReadySeconds");
    check.not_negative(obj, "spec.revisionHistoryLimit");
    selector(check, kind, obj);
    pod::template(check, obj, "spec.template");
    let policy = text(obj, "/spec/template/spec/restartPolicy");
    if policy != "Always" && !policy.is_empty() {
        check.push(FieldError::not_supported("spec.template.spec.restartPolicy", policy, &["Always"]));
    }
    if obj.reach("/spec/template/spec/activeDeadlineSeconds").is_some() {
        // A Deployment's template is a ReplicaSet's.
        let owner = if kind == "Deployment" { "ReplicaSet" } else { kind };
        let detail = format!("activeDeadlineSeconds in {owner} is not Supported");
        check.forbidden("spec.template.spec.activeDeadlineSeconds", detail);
    }
    match kind {
        "Deployment" => deployment(check, obj),
        "StatefulSet" => stateful_set(check, obj, old),
        "DaemonSet" => check.one_of(obj, "spec.updateStrategy.type", &["OnDelete", "RollingUpdate"]),
        _ => {}
    }
    if let Some(old) = old
        && matches!(kind, "Deployment" | "ReplicaSet" | "DaemonSet")
    {
        check.immutable(obj, old, "spec.selector", "spec.selector");
    }
}

/// The selector has to be there, select something, and match the template.
fn selector(check: &mut Check, kind: &str, obj: &Value) {
    let field = "spec.selector";
    let labels = obj.reach("/spec/template/metadata/labels").cloned().unwrap_or_default();
    if kind == "ReplicationController" {
        let wanted = obj.reach("/spec/selector");
        if blank(wanted) {
            return check.required(field, "");
        }
        let all = wanted.and_then(Value::as_object).into_iter().flatten();
        if all.into_iter().any(|(k, v)| labels.get(k) != Some(v)) {
            check.invalid("spec.template.metadata.labels", labels, MISMATCH);
        }
        return;
    }
    let Some(selector) = obj.reach("/spec/selector") else {
        if kind != "DaemonSet" {
            check.required(field, "");
        }
        return check.invalid("spec.template.metadata.labels", labels, MISMATCH);
    };
    check.selector(obj, field);
    if blank(selector.get("matchLabels")) && blank(selector.get("matchExpressions")) {
        let name = if kind == "ReplicaSet" { "deployment".to_owned() } else { kind.to_lowercase() };
        check.invalid(field, selector.clone(), format!("empty selector is invalid for {name}"));
        return;
    }
    match matches(selector, &labels) {
        Some(true) => {}
        Some(false) => check.invalid("spec.template.metadata.labels", labels, MISMATCH),
        None => check.invalid(field, selector.clone(), "invalid label selector"),
    }
}

const MISMATCH: &str = "`selector` does not match template `labels`";

/// Whether a selector selects these labels; `None` where it is malformed.
fn matches(selector: &Value, labels: &Value) -> Option<bool> {
    LabelSelector::from_json(selector).ok().map(|s| s.matches(labels))
}

fn deployment(check: &mut Check, obj: &Value) {
    if !matches!(text(obj, "/spec/strategy/type"), "Recreate" | "RollingUpdate") {
        let shown = obj.reach("/spec/strategy").cloned().unwrap_or_default();
        check.push(FieldError::not_supported("spec.strategy", shown, &["Recreate", "RollingUpdate"]));
    }
    let field = "spec.strategy.rollingUpdate";
    if text(obj, "/spec/strategy/type") == "Recreate" && obj.reach("/spec/strategy/rollingUpdate").is_some() {
        check.forbidden(field, "may not be specified when strategy `type` is 'Recreate'");
    }
    let none = |key: &str| matches!(obj.reach(&format!("/spec/strategy/rollingUpdate/{key}")), Some(v) if *v == 0 || v == "0%");
    if none("maxUnavailable") && none("maxSurge") {
        let shown = obj.reach("/spec/strategy/rollingUpdate/maxUnavailable").cloned().unwrap_or_default();
        check.invalid(format!("{field}.maxUnavailable"), shown, "may not be 0 when `maxSurge` is 0");
    }
    let (deadline, ready) = (int(obj, "/spec/progressDeadlineSeconds"), int(obj, "/spec/minReadySeconds"));
    if obj.reach("/spec/progressDeadlineSeconds").is_some() && deadline <= ready {
        check.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds");
    }
}

fn stateful_set(check: &mut Check, obj: &Value, old: Option<&Value>) {
    let policy = text(obj, "/spec/podManagementPolicy");
    if policy != "OrderedReady" && policy != "Parallel" {
        check.invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'");
    }
    let strategy = text(obj, "/spec/updateStrategy/type");
    if strategy != "RollingUpdate" && strategy != "OnDelete" {
        let shown = obj.reach("/spec/updateStrategy").cloned().unwrap_or_default();
        check.invalid("spec.updateStrategy", shown, "must be 'RollingUpdate' or 'OnDelete'");
    }
    for key in ["whenDeleted", "whenScaled"] {
        check.one_of(obj, &format!("spec.persistentVolumeClaimRetentionPolicy.{key}"), &["Delete", "Retain"]);
    }
    let Some(old) = old else {
        check.named(obj, "spec.serviceName", names::label);
        for (i, template) in list(obj, "/spec/volumeClaimTemplates").iter().enumerate() {
            let mut nested = Check::default();
            claims::claim_spec(&mut nested, template, "spec");
            for mut error in nested.errors {
                error.field = format!("spec.volumeClaimTemplates[{i}].{}", error.field);
                check.push(error);
            }
        }
        return;
    };
    let freed = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    if without(obj, "/spec", &freed) != without(old, "/spec", &freed) {
        let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                      'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                      'minReadySeconds' are forbidden";
        check.forbidden("spec", detail);
    }
}

pub(super) fn job(check: &mut Check, obj: &Value, old: Option<&Value>) {
    job_spec(check, obj, "spec");
    let labels = obj.reach("/spec/template/metadata/labels").cloned().unwrap_or_default();
    match obj.reach("/spec/selector") {
        None => {
            check.required("spec.selector", "");
            check.invalid("spec.template.metadata.labels", labels, MISMATCH);
        }
        Some(selector) if matches(selector, &labels) != Some(true) => {
            check.invalid("spec.template.metadata.labels", labels, MISMATCH);
        }
        Some(_) => {}
    }
    let Some(old) = old else { return generated_selector(check, obj) };
    // A suspended job may still be told where to run.
    let suspended =
        old.reach("/spec/suspend") == Some(&Value::Bool(true)) && old.reach("/status/startTime").is_none();
    if !suspended {
        check.immutable(obj, old, "spec.template", "spec.template");
    }
    let indexed = text(obj, "/spec/completionMode") == "Indexed";
    let both = obj.reach("/spec/completions") == obj.reach("/spec/parallelism");
    if !(indexed && both) {
        check.immutable(obj, old, "spec.completions", "spec.completions");
    }
    for key in [
        "selector",
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ] {
        check.immutable(obj, old, &format!("spec.{key}"), &format!("spec.{key}"));
    }
}

/// A selector that was not brought along has to be the one that was made for this job.
fn generated_selector(check: &mut Check, obj: &Value) {
    if obj.reach("/spec/manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let (uid, name) = (text(obj, "/metadata/uid"), text(obj, "/metadata/name"));
    let own = json!({ "controller-uid": uid, "batch.kubernetes.io/controller-uid": uid, "job-name": name,
        "batch.kubernetes.io/job-name": name });
    if let Some(selector) = obj.reach("/spec/selector")
        && matches(selector, &own) != Some(true)
    {
        check.invalid("spec.selector", selector.clone(), "`selector` not auto-generated");
    }
}

fn job_spec(check: &mut Check, obj: &Value, path: &str) {
    for key in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        check.not_negative(obj, &format!("{path}.{key}"));
    }
    check.one_of(obj, &format!("{path}.completionMode"), &["NonIndexed", "Indexed"]);
    let spec = super::at(obj, path).cloned().unwrap_or_default();
    if text(&spec, "/completionMode") == "Indexed" && spec.get("completions").is_none() {
        check.required(format!("{path}.completions"), "when completion mode is Indexed");
    }
    pod::template(check, obj, &format!("{path}.template"));
    let field = format!("{path}.template.spec.restartPolicy");
    match text(&spec, "/template/spec/restartPolicy") {
        "" | "Always" => check.required(field, "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" | "Never" => {}
        other => check.push(FieldError::not_supported(field, other, &["OnFailure", "Never"])),
    }
}

pub(super) fn cron_job(check: &mut Check, obj: &Value) {
    job_spec(check, obj, "spec.jobTemplate.spec");
    if text(obj, "/spec/schedule").is_empty() {
        check.required("spec.schedule", "");
    }
    check.one_of(obj, "spec.concurrencyPolicy", &["Allow", "Forbid", "Replace"]);
    for key in ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        check.not_negative(obj, &format!("spec.{key}"));
    }
}

pub(super) fn revision(check: &mut Check, obj: &Value, old: Option<&Value>) {
    if obj.get("data").is_none() {
        check.required("data", "data is mandatory");
    }
    check.not_negative(obj, "revision");
    if let Some(old) = old {
        check.immutable(obj, old, "data", "data");
    }
}
