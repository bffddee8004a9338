//! Custom resource definitions.

use super::{Check, names};
use crate::json::{blank, list, text};
use lifeboat_schema::{Reach, check_structural};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn definition(check: &mut Check, obj: &Value, old: Option<&Value>) {
    let (group, plural) = (text(obj, "/spec/group"), text(obj, "/spec/names/plural"));
    let name = text(obj, "/metadata/name");
    if name != format!("{plural}.{group}") {
        check.invalid("metadata.name", name, "must be spec.names.plural+\".\"+spec.group");
    }
    if group.is_empty() {
        check.required("spec.group", "");
    } else {
        let problems = names::subdomain(group);
        if !problems.is_empty() {
            check.invalid("spec.group", group, problems.join(","));
        } else if !group.contains('.') {
            check.invalid("spec.group", group, "should be a domain with at least one dot");
        }
    }
    if text(obj, "/spec/scope").is_empty() {
        check.required("spec.scope", "");
    } else {
        check.one_of(obj, "spec.scope", &["Cluster", "Namespaced"]);
    }
    if obj.reach("/spec/preserveUnknownFields") == Some(&Value::Bool(true)) {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        check.invalid("spec.preserveUnknownFields", true, detail);
    }
    versions(check, obj);
    for key in ["plural", "singular", "kind", "listKind"] {
        check.need(obj, &format!("spec.names.{key}"));
    }
    names_within(check, obj);
    check.one_of(obj, "spec.conversion.strategy", &["None", "Webhook"]);
    if text(obj, "/spec/conversion/strategy") == "Webhook"
        && obj.reach("/spec/conversion/webhook/clientConfig").is_none()
    {
        let detail = "required when strategy is set to Webhook";
        check.required("spec.conversion.webhookClientConfig", detail);
    }
    if text(obj, "/spec/conversion/strategy") == "Webhook"
        && list(obj, "/spec/conversion/webhook/conversionReviewVersions").is_empty()
    {
        check.required("spec.conversion.conversionReviewVersions", "");
    }
    approved_group(check, obj, group);
    stored_versions(check, obj);
    if let Some(old) = old {
        update(check, obj, old);
    }
}

fn update(check: &mut Check, obj: &Value, old: &Value) {
    let established = list(old, "/status/conditions")
        .iter()
        .any(|c| text(c, "/type") == "Established" && text(c, "/status") == "True");
    if established {
        check.immutable(obj, old, "spec.scope", "spec.scope");
        check.immutable(obj, old, "spec.names.kind", "spec.names.kind");
    }
    check.immutable(obj, old, "spec.group", "spec.group");
    check.immutable(obj, old, "spec.names.plural", "spec.names.plural");
}

fn versions(check: &mut Check, obj: &Value) {
    let versions = list(obj, "/spec/versions");
    let shown = || Value::from(versions);
    let (mut seen, mut storage, mut unique) = (BTreeSet::new(), 0, true);
    for (i, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{i}]");
        let name = text(version, "/name");
        storage += usize::from(version.get("storage") == Some(&Value::Bool(true)));
        unique &= seen.insert(name);
        let problems = names::dns1035_label(name);
        if !problems.is_empty() {
            check.invalid(format!("{path}.name"), name, problems.join(","));
        }
        if version.reach("/schema/openAPIV3Schema").is_none() {
            check.required(format!("{path}.schema.openAPIV3Schema"), "");
        }
        if version.get("deprecationWarning").is_some()
            && version.get("deprecated") != Some(&Value::Bool(true))
        {
            let detail = "can only be set for deprecated versions";
            check.invalid(
                format!("{path}.deprecationWarning"),
                version["deprecationWarning"].clone(),
                detail,
            );
        }
    }
    each(check, versions, "schema", "validation", schema);
    each(check, versions, "subresources", "subresources", scale);
    each(check, versions, "additionalPrinterColumns", "additionalPrinterColumns", printer_columns);
    if !unique {
        check.invalid("spec.versions", shown(), "must contain unique version names");
    }
    if storage != 1 {
        check.invalid("spec.versions", shown(), "must have exactly one version marked as storage version");
    }
}

/// Checks a part of every version. A part that is the same in all of them is checked once, under the name it had when a definition
/// had one version: that is how Kubernetes reports it.
fn each(check: &mut Check, versions: &[Value], part: &str, shared: &str, rule: fn(&mut Check, &Value, &str)) {
    let Some(first) = versions.first() else { return };
    if versions.iter().all(|v| v.get(part) == first.get(part)) {
        if let Some(value) = first.get(part) {
            rule(check, value, &format!("spec.{shared}"));
        }
        return;
    }
    for (i, version) in versions.iter().enumerate() {
        if let Some(value) = version.get(part) {
            rule(check, value, &format!("spec.versions[{i}].{part}"));
        }
    }
}

fn schema(check: &mut Check, part: &Value, path: &str) {
    let Some(schema) = part.get("openAPIV3Schema") else { return };
    for mut error in check_structural(schema) {
        let dot = if error.field.is_empty() || error.field.starts_with('[') { "" } else { "." };
        error.field = format!("{path}.openAPIV3Schema{dot}{}", error.field);
        check.push(error);
    }
}

fn scale(check: &mut Check, subresources: &Value, path: &str) {
    let Some(scale) = subresources.get("scale") else { return };
    for (key, prefixes, detail, needed) in [
        ("specReplicasPath", &[".spec."][..], "should be a json path under .spec", true),
        ("statusReplicasPath", &[".status."][..], "should be a json path under .status", true),
        (
            "labelSelectorPath",
            &[".spec.", ".status."][..],
            "should be a json path under either .spec or .status",
            false,
        ),
    ] {
        let field = format!("{path}.scale.{key}");
        match text(scale, &format!("/{key}")) {
            "" if needed => check.required(field, ""),
            "" => {}
            p if !p.starts_with('.') => check.invalid(field, p, "must be a simple json path starting with ."),
            p if !prefixes.iter().any(|prefix| p.starts_with(prefix)) => check.invalid(field, p, detail),
            _ => {}
        }
    }
}

fn printer_columns(check: &mut Check, columns: &Value, path: &str) {
    let types = ["boolean", "date", "integer", "number", "string"];
    let formats = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    for (i, column) in list(columns, "").iter().enumerate() {
        let path = format!("{path}[{i}]");
        if text(column, "/name").is_empty() {
            check.required(format!("{path}.name"), "");
        }
        let one_of = format!("must be one of {}", types.join(","));
        match text(column, "/type") {
            "" => check.required(format!("{path}.type"), one_of),
            kind if !types.contains(&kind) => check.invalid(format!("{path}.type"), kind, one_of),
            _ => {}
        }
        let format_name = text(column, "/format");
        if !format_name.is_empty() && !formats.contains(&format_name) {
            let detail = format!("must be one of {}", formats.join(","));
            check.invalid(format!("{path}.format"), format_name, detail);
        }
        match text(column, "/jsonPath") {
            "" => check.required(format!("{path}.JSONPath"), ""),
            p if !p.starts_with('.') => {
                check.invalid(format!("{path}.JSONPath"), p, "must be a simple json path starting with .");
            }
            _ => {}
        }
    }
}

fn names_within(check: &mut Check, obj: &Value) {
    for (key, mixed) in [("plural", false), ("singular", false), ("kind", true), ("listKind", true)] {
        let name = text(obj, &format!("/spec/names/{key}"));
        if name.is_empty() {
            continue;
        }
        let problems = names::dns1035_label(&if mixed { name.to_lowercase() } else { name.to_owned() });
        if !problems.is_empty() {
            let hint = if mixed { "may have mixed case, but should otherwise match: " } else { "" };
            check.invalid(format!("spec.names.{key}"), name, format!("{hint}{}", problems.join(",")));
        }
    }
    for key in ["shortNames", "categories"] {
        for (i, name) in list(obj, &format!("/spec/names/{key}")).iter().filter_map(Value::as_str).enumerate()
        {
            let problems = names::dns1035_label(name);
            if !problems.is_empty() {
                check.invalid(format!("spec.names.{key}[{i}]"), name, problems.join(","));
            }
        }
    }
    let (kind, list_kind) = (text(obj, "/spec/names/kind"), text(obj, "/spec/names/listKind"));
    if !kind.is_empty() && kind == list_kind {
        check.invalid("spec.names.listKind", list_kind, "kind and listKind may not be the same");
    }
}

/// Groups of the Kubernetes project need its approval, given as an annotation.
fn approved_group(check: &mut Check, obj: &Value, group: &str) {
    let protected =
        ["k8s.io", "kubernetes.io"].iter().any(|g| group == *g || group.ends_with(&format!(".{g}")));
    let annotation = "/metadata/annotations/api-approved.kubernetes.io";
    if protected && blank(obj.reach(annotation)) {
        let detail = "protected groups must have approval annotation \"api-approved.kubernetes.io\", see \
                      https://github.com/kubernetes/enhancements/pull/1111";
        check.required("metadata.annotations[api-approved.kubernetes.io]", detail);
    }
}

/// Versions that objects may still be stored in have to stay.
pub(super) fn stored_versions(check: &mut Check, obj: &Value) {
    let field = "status.storedVersions";
    let stored = list(obj, "/status/storedVersions");
    if stored.is_empty() {
        return check.invalid(field, Value::Null, "must have at least one stored version");
    }
    let versions = list(obj, "/spec/versions");
    for version in versions.iter().filter(|v| v.get("storage") == Some(&Value::Bool(true))) {
        let name = text(version, "/name");
        if !stored.iter().any(|s| s == name) {
            check.invalid(field, Value::from(stored), format!("must have the storage version {name}"));
        }
    }
    for (i, name) in stored.iter().filter_map(Value::as_str).enumerate() {
        if !versions.iter().any(|v| text(v, "/name") == name) {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until \
                 a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            check.invalid(format!("{field}[{i}]"), name, detail);
        }
    }
}
