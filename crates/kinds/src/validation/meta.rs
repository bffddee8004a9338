//! The rules for metadata, the same for every kind.

use super::names::{self, Rule};
use super::{Check, IMMUTABLE};
use crate::json::{entries, int, list, text};
use lifeboat_schema::{FieldError, Reach};
use serde_json::Value;
use std::collections::BTreeSet;

const MAX_ANNOTATIONS: usize = 256 * 1024;

/// What is wrong with the metadata of a new object whose name has to be a DNS subdomain, as that of a custom resource.
#[must_use]
pub fn validate_meta(obj: &Value, namespaced: bool) -> Vec<FieldError> {
    create(obj, namespaced, names::subdomain)
}

/// The finalizers that have no prefix: what Kubernetes itself puts on.
const STANDARD_FINALIZERS: &[&str] = &["kubernetes", "orphan", "foregroundDeletion"];

/// Built-in kinds take only finalizers that are well known or have a prefix.
pub(super) fn standard_finalizer(check: &mut Check, finalizer: &str, field: String) {
    if !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer) {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        check.invalid(field, finalizer, detail);
    }
}

/// The rules for a new object of a built-in kind.
pub(super) fn create_built_in(obj: &Value, namespaced: bool, rule: Rule) -> Vec<FieldError> {
    let mut check = Check { errors: create(obj, namespaced, rule) };
    for (i, finalizer) in list(obj, "/metadata/finalizers").iter().filter_map(Value::as_str).enumerate() {
        standard_finalizer(&mut check, finalizer, format!("metadata.finalizers[{i}]"));
    }
    check.errors
}

fn create(obj: &Value, namespaced: bool, rule: Rule) -> Vec<FieldError> {
    let mut check = Check::default();
    let generate = text(obj, "/metadata/generateName");
    if !generate.is_empty() {
        // A prefix may end in a dash, because something will follow.
        let mut prefix = generate.to_owned();
        if prefix.len() > 1 && prefix.ends_with('-') {
            prefix.replace_range(prefix.len() - 1.., "a");
        }
        for problem in rule(&prefix) {
            check.invalid("metadata.generateName", generate, problem);
        }
    }
    let name = text(obj, "/metadata/name");
    if name.is_empty() {
        check.required("metadata.name", "name or generateName is required");
    } else {
        for problem in rule(name) {
            check.invalid("metadata.name", name, problem);
        }
    }
    let namespace = text(obj, "/metadata/namespace");
    match (namespaced, namespace.is_empty()) {
        (true, true) => check.required("metadata.namespace", ""),
        (true, false) => {
            for problem in names::label(namespace) {
                check.invalid("metadata.namespace", namespace, problem);
            }
        }
        (false, false) => check.forbidden("metadata.namespace", "not allowed on this type"),
        (false, true) => {}
    }
    check.not_negative(obj, "metadata.generation");
    common(&mut check, obj);
    finalizers(&mut check, obj);
    check.errors
}

/// What is wrong with the metadata of a changed object. That a resourceVersion is there is the server's to see to.
#[must_use]
pub fn validate_meta_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut check = Check::default();
    if old.reach("/metadata/deletionTimestamp").is_some() {
        no_new_finalizers(&mut check, new, old);
    }
    if int(new, "/metadata/generation") < int(old, "/metadata/generation") {
        check.invalid("metadata.generation", int(new, "/metadata/generation"), "must not be decremented");
    }
    let (new_meta, old_meta) = (new.get("metadata"), old.get("metadata"));
    for field in
        ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"]
    {
        let (new, old) =
            (new_meta.and_then(|meta| meta.get(field)), old_meta.and_then(|meta| meta.get(field)));
        if new != old {
            check.invalid(format!("metadata.{field}"), new.cloned().unwrap_or(Value::Null), IMMUTABLE);
        }
    }
    common(&mut check, new);
    finalizers(&mut check, new);
    check.errors
}

fn common(check: &mut Check, obj: &Value) {
    labels(check, obj.reach("/metadata/labels"), "metadata.labels");
    let mut size = 0;
    for (key, value) in entries(obj, "/metadata/annotations") {
        size += key.len() + value.as_str().map_or(0, str::len);
        for problem in names::qualified(&key.to_lowercase()) {
            check.invalid("metadata.annotations", key, problem);
        }
    }
    if size > MAX_ANNOTATIONS {
        check.push(FieldError::too_long("metadata.annotations", 262_144));
    }
    owners(check, obj);
}

/// The keys and values of a map of labels.
pub(super) fn labels(check: &mut Check, labels: Option<&Value>, field: &str) {
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        for problem in names::qualified(key) {
            check.invalid(field, key.as_str(), problem);
        }
        let value = value.as_str().unwrap_or_default();
        for problem in names::label_value(value) {
            check.invalid(field, value, problem);
        }
    }
}

fn owners(check: &mut Check, obj: &Value) {
    let field = "metadata.ownerReferences";
    let owners = list(obj, "/metadata/ownerReferences");
    let mut controller: Option<String> = None;
    for owner in owners {
        if text(owner, "/apiVersion").is_empty() {
            check.invalid(format!("{field}.apiVersion"), "", "version must not be empty");
        }
        for key in ["kind", "name", "uid"] {
            if text(owner, &format!("/{key}")).is_empty() {
                check.invalid(format!("{field}.{key}"), "", "must not be empty");
            }
        }
        if text(owner, "/apiVersion") == "v1" && text(owner, "/kind") == "Event" {
            check.invalid(field, owner.clone(), "/v1, Kind=Event is disallowed from being an owner");
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            let this = format!("{}/{}", text(owner, "/kind"), text(owner, "/name"));
            if let Some(first) = &controller {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                );
                check.invalid(field, Value::from(owners), detail);
            } else {
                controller = Some(this);
            }
        }
    }
}

fn finalizers(check: &mut Check, obj: &Value) {
    let all = list(obj, "/metadata/finalizers");
    for finalizer in all.iter().filter_map(Value::as_str) {
        for problem in names::qualified(finalizer) {
            check.invalid("metadata.finalizers", finalizer, problem);
        }
    }
    let has = |name: &str| all.iter().any(|f| f == name);
    if has("orphan") && has("foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        check.invalid("metadata.finalizers", Value::from(all), detail);
    }
}

fn no_new_finalizers(check: &mut Check, new: &Value, old: &Value) {
    let set = |v: &Value| -> BTreeSet<String> {
        list(v, "/metadata/finalizers").iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let extra: Vec<String> = set(new).difference(&set(old)).map(|f| format!("{f:?}")).collect();
    if !extra.is_empty() {
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            extra.join(", ")
        );
        check.forbidden("metadata.finalizers", detail);
    }
}
