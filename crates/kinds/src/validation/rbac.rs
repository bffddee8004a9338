//! Roles and who gets them.

use super::{Check, names};
use crate::json::{list, text};
use lifeboat_schema::FieldError;
use serde_json::Value;

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn role(check: &mut Check, obj: &Value, namespaced: bool) {
    for (i, rule) in list(obj, "/rules").iter().enumerate() {
        let path = format!("rules[{i}]");
        let empty = |key: &str| list(rule, &format!("/{key}")).is_empty();
        if empty("verbs") {
            check.required(format!("{path}.verbs"), "verbs must contain at least one value");
        }
        if !empty("nonResourceURLs") {
            let (field, urls) = (format!("{path}.nonResourceURLs"), rule["nonResourceURLs"].clone());
            if namespaced {
                check.invalid(
                    field.as_str(),
                    urls.clone(),
                    "namespaced rules cannot apply to non-resource URLs",
                );
            }
            if !empty("apiGroups") || !empty("resources") || !empty("resourceNames") {
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                check.invalid(field, urls, detail);
            }
            continue;
        }
        if empty("apiGroups") {
            check.required(format!("{path}.apiGroups"), "resource rules must supply at least one api group");
        }
        if empty("resources") {
            check.required(format!("{path}.resources"), "resource rules must supply at least one resource");
        }
    }
    if let Some(aggregation) = obj.get("aggregationRule") {
        let selectors = list(aggregation, "/clusterRoleSelectors");
        if selectors.is_empty() {
            let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
            check.required("aggregationRule.clusterRoleSelectors", detail);
        }
    }
}

pub(super) fn binding(check: &mut Check, obj: &Value, old: Option<&Value>, namespaced: bool) {
    let group = text(obj, "/roleRef/apiGroup");
    if group != GROUP {
        check.push(FieldError::not_supported("roleRef.apiGroup", group, &[GROUP]));
    }
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    let kind = text(obj, "/roleRef/kind");
    if !kinds.contains(&kind) {
        check.push(FieldError::not_supported("roleRef.kind", kind, kinds));
    }
    check.need(obj, "roleRef.name");
    check.named(obj, "roleRef.name", names::path_segment);
    for (i, subject) in list(obj, "/subjects").iter().enumerate() {
        one_subject(check, subject, &format!("subjects[{i}]"), namespaced);
    }
    if old.is_some_and(|old| old.get("roleRef") != obj.get("roleRef")) {
        check.invalid("roleRef", obj.get("roleRef").cloned().unwrap_or_default(), "cannot change roleRef");
    }
}

fn one_subject(check: &mut Check, subject: &Value, path: &str, namespaced: bool) {
    let (kind, name, group) = (text(subject, "/kind"), text(subject, "/name"), text(subject, "/apiGroup"));
    if name.is_empty() {
        check.required(format!("{path}.name"), "");
    }
    match kind {
        "ServiceAccount" => {
            if !name.is_empty() {
                for problem in names::subdomain(name) {
                    check.invalid(format!("{path}.name"), name, problem);
                }
            }
            if !group.is_empty() {
                check.push(FieldError::not_supported(format!("{path}.apiGroup"), group, &[""]));
            }
            if !namespaced && text(subject, "/namespace").is_empty() {
                check.required(format!("{path}.namespace"), "");
            }
        }
        "User" | "Group" if group != GROUP => {
            check.push(FieldError::not_supported(format!("{path}.apiGroup"), group, &[GROUP]));
        }
        "User" | "Group" => {}
        other => {
            let kinds = ["ServiceAccount", "User", "Group"];
            check.push(FieldError::not_supported(format!("{path}.kind"), other, &kinds));
        }
    }
}
