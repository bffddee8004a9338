//! Webhooks, policies, aggregated services, flow control and runtime classes. Nothing here acts on them, so the rules are those
//! that keep an object meaningful to its readers: names, enumerations, required fields. Expressions are not compiled.

use super::{Check, names};
use crate::json::{blank, int, list, text};
use lifeboat_schema::{FieldError, Reach};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn webhooks(check: &mut Check, obj: &Value) {
    let mut seen = BTreeSet::new();
    for (i, hook) in list(obj, "/webhooks").iter().enumerate() {
        let path = format!("webhooks[{i}]");
        let name = text(hook, "/name");
        if name.is_empty() {
            check.required(format!("{path}.name"), "");
        }
        for problem in names::subdomain(name).into_iter().filter(|_| !name.is_empty()) {
            check.invalid(format!("{path}.name"), name, problem);
        }
        if !name.is_empty() && name.split('.').count() < 3 {
            let detail = "should be a domain with at least three segments separated by dots";
            check.invalid(format!("{path}.name"), name, detail);
        }
        if !name.is_empty() && !seen.insert(name) {
            check.push(FieldError::duplicate(format!("{path}.name"), name));
        }
        for (field, supported) in [
            ("failurePolicy", &["Fail", "Ignore"][..]),
            ("matchPolicy", &["Equivalent", "Exact"]),
            ("sideEffects", &["None", "NoneOnDryRun"]),
            ("reinvocationPolicy", &["IfNeeded", "Never"]),
        ] {
            one_of(check, hook, &path, field, supported);
        }
        if hook.get("sideEffects").is_none() {
            check.required(format!("{path}.sideEffects"), "must specify one of None, NoneOnDryRun");
        }
        let timeout = int(hook, "/timeoutSeconds");
        if !(1..=30).contains(&timeout) {
            let detail = "the timeout value must be between 1 and 30 seconds";
            check.invalid(format!("{path}.timeoutSeconds"), timeout, detail);
        }
        let (url, service) = (hook.reach("/clientConfig/url"), hook.reach("/clientConfig/service"));
        if url.is_some() == service.is_some() {
            check.required(format!("{path}.clientConfig"), "exactly one of url or service is required");
        }
        let versions = list(hook, "/admissionReviewVersions");
        let path = format!("{path}.admissionReviewVersions");
        if versions.is_empty() {
            check.required(path, "must specify one of v1, v1beta1");
        } else if !versions.iter().any(|v| v == "v1" || v == "v1beta1") {
            check.invalid(path, versions.to_vec(), "must include at least one of v1, v1beta1");
        }
    }
}

pub(super) fn policy(check: &mut Check, obj: &Value) {
    check.one_of(obj, "spec.failurePolicy", &["Fail", "Ignore"]);
    if blank(obj.reach("/spec/validations")) && blank(obj.reach("/spec/auditAnnotations")) {
        let detail = "validations or auditAnnotations must contain at least one item";
        check.required("spec.validations", detail);
        check.required("spec.auditAnnotations", detail);
    }
    if obj.reach("/spec/matchConstraints").is_none() {
        check.required("spec.matchConstraints", "");
    } else if blank(obj.reach("/spec/matchConstraints/resourceRules")) {
        check.required("spec.matchConstraints.resourceRules", "");
    }
    for (i, validation) in list(obj, "/spec/validations").iter().enumerate() {
        if text(validation, "/expression").trim().is_empty() {
            check.required(format!("spec.validations[{i}].expression"), "expression is not specified");
        }
    }
}

pub(super) fn policy_binding(check: &mut Check, obj: &Value) {
    check.need(obj, "spec.policyName");
    check.named(obj, "spec.policyName", names::subdomain);
    let actions = list(obj, "/spec/validationActions");
    if actions.is_empty() {
        check.required("spec.validationActions", "at least one validation action is required");
    }
    for (i, action) in actions.iter().enumerate() {
        let supported = ["Audit", "Deny", "Warn"];
        if !action.as_str().is_some_and(|a| supported.contains(&a)) {
            check.push(FieldError::not_supported(
                format!("spec.validationActions[{i}]"),
                action.clone(),
                &supported,
            ));
        }
    }
}

pub(super) fn api_service(check: &mut Check, obj: &Value) {
    let (group, version) = (text(obj, "/spec/group"), text(obj, "/spec/version"));
    let (name, wanted) = (text(obj, "/metadata/name"), format!("{version}.{group}"));
    if name != wanted {
        let detail = format!("must be `spec.version+\".\"+spec.group`: {wanted:?}");
        check.invalid("metadata.name", name, detail);
    }
    if group.is_empty() && version != "v1" {
        check.required("spec.group", "only v1 may have an empty group and it better be legacy kube");
    }
    check.named(obj, "spec.group", names::subdomain);
    for problem in names::dns1035_label(version) {
        check.invalid("spec.version", version, problem);
    }
    for (key, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let value = int(obj, &format!("/spec/{key}"));
        if !(1..=most).contains(&value) {
            check.invalid(format!("spec.{key}"), value, format!("must be positive and less than {most}"));
        }
    }
    let insecure = obj.reach("/spec/insecureSkipTLSVerify") == Some(&Value::Bool(true));
    if obj.reach("/spec/service").is_none() {
        if insecure {
            let detail = "local APIServices may not have insecureSkipTLSVerify";
            check.invalid("spec.insecureSkipTLSVerify", true, detail);
        }
        return;
    }
    check.need(obj, "spec.service.namespace");
    check.need(obj, "spec.service.name");
    if insecure && !blank(obj.reach("/spec/caBundle")) {
        check.invalid("spec.insecureSkipTLSVerify", true, "may not be true if caBundle is present");
    }
}

pub(super) fn flow_schema(check: &mut Check, obj: &Value) {
    let precedence = int(obj, "/spec/matchingPrecedence");
    let field = "spec.matchingPrecedence";
    if precedence <= 0 {
        check.invalid(field, precedence, "must be a positive value");
    } else if precedence > 10_000 {
        check.invalid(field, precedence, "must not be greater than 10000");
    } else if precedence == 1 && text(obj, "/metadata/name") != "exempt" {
        let detail = "only the schema named 'exempt' may have matchingPrecedence 1";
        check.invalid(field, precedence, detail);
    }
    check.one_of(obj, "spec.distinguisherMethod.type", &["ByNamespace", "ByUser"]);
    if blank(obj.reach("/spec/priorityLevelConfiguration/name")) {
        check.required("spec.priorityLevelConfiguration.name", "must reference a priority level");
    }
    check.named(obj, "spec.priorityLevelConfiguration.name", names::subdomain);
    for (i, rule) in list(obj, "/spec/rules").iter().enumerate() {
        let path = format!("spec.rules[{i}]");
        if list(rule, "/subjects").is_empty() {
            check.required(format!("{path}.subjects"), "subjects must contain at least one value");
        }
        for (n, subject) in list(rule, "/subjects").iter().enumerate() {
            let path = format!("{path}.subjects[{n}]");
            one_of(check, subject, &path, "kind", &["Group", "ServiceAccount", "User"]);
        }
        if list(rule, "/resourceRules").is_empty() && list(rule, "/nonResourceRules").is_empty() {
            check.required(path, "at least one of resourceRules and nonResourceRules has to be non-empty");
        }
    }
}

pub(super) fn priority_level(check: &mut Check, obj: &Value) {
    let kind = text(obj, "/spec/type");
    if (text(obj, "/metadata/name") == "exempt") != (kind == "Exempt") {
        check.invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'");
    }
    let (limited, exempt) = (obj.reach("/spec/limited"), obj.reach("/spec/exempt"));
    match kind {
        "" => check.required("spec.type", ""),
        "Exempt" if limited.is_some() => {
            check.forbidden("spec.limited", "must be nil if the type is not Limited");
        }
        "Exempt" => {}
        "Limited" => {
            if exempt.is_some() {
                check.forbidden("spec.exempt", "must be nil if the type is Limited");
            }
            match limited {
                None => check.required("spec.limited", "must not be empty when type is Limited"),
                Some(limited) => limits(check, limited),
            }
        }
        _ => check.one_of(obj, "spec.type", &["Exempt", "Limited"]),
    }
}

fn limits(check: &mut Check, limited: &Value) {
    let path = "spec.limited";
    let shares = int(limited, "/nominalConcurrencyShares");
    if shares < 0 {
        check.invalid(format!("{path}.nominalConcurrencyShares"), shares, "must be a non-negative integer");
    }
    let lendable = int(limited, "/lendablePercent");
    if !(0..=100).contains(&lendable) {
        check.invalid(format!("{path}.lendablePercent"), lendable, "must be between 0 and 100, inclusive");
    }
    let response = format!("{path}.limitResponse");
    let queuing = limited.reach("/limitResponse/queuing");
    match (text(limited, "/limitResponse/type"), queuing) {
        ("", _) => check.required(format!("{response}.type"), ""),
        ("Reject", Some(_)) => check.forbidden(
            format!("{response}.queuing"),
            "must be nil if limited.limitResponse.type is not Limited",
        ),
        ("Queue", None) => check.required(
            format!("{response}.queuing"),
            "must not be empty if limited.limitResponse.type is Limited",
        ),
        ("Queue", Some(queuing)) => {
            for key in ["queueLengthLimit", "queues", "handSize"] {
                let value = int(queuing, &format!("/{key}"));
                if value <= 0 {
                    check.invalid(format!("{response}.queuing.{key}"), value, "must be positive");
                }
            }
            let (hand, queues) = (int(queuing, "/handSize"), int(queuing, "/queues"));
            if queues > 0 && hand > queues {
                let detail = format!("should not be greater than queues ({queues})");
                check.invalid(format!("{response}.queuing.handSize"), hand, detail);
            }
        }
        (kind, _) if kind != "Reject" => {
            one_of(check, limited, path, "limitResponse.type", &["Queue", "Reject"]);
        }
        _ => {}
    }
}

pub(super) fn runtime_class(check: &mut Check, obj: &Value, old: Option<&Value>) {
    check.need(obj, "handler");
    check.named(obj, "handler", names::label);
    if let Some(old) = old {
        check.immutable(obj, old, "handler", "handler");
    }
}

/// Conditions that are known by their type: each once, with a status where the kind wants one.
pub(super) fn conditions(check: &mut Check, obj: &Value, kind: &str) {
    let mut seen = BTreeSet::new();
    for (i, condition) in list(obj, "/status/conditions").iter().enumerate() {
        let path = format!("status.conditions[{i}]");
        if kind == "APIService" {
            one_of(check, condition, &path, "status", &["True", "False", "Unknown"]);
            continue;
        }
        let name = text(condition, "/type");
        if !seen.insert(name) {
            check.push(FieldError::duplicate(format!("{path}.type"), name));
        }
        if name.is_empty() {
            check.required(format!("{path}.type"), "");
        }
    }
}

/// A field of a part of the object that has to have one of a few values; missing is fine.
fn one_of(check: &mut Check, part: &Value, path: &str, field: &str, supported: &[&str]) {
    let Some(value) = super::at(part, field) else { return };
    if !value.as_str().is_some_and(|v| supported.contains(&v)) {
        check.push(FieldError::not_supported(format!("{path}.{field}"), value.clone(), supported));
    }
}
