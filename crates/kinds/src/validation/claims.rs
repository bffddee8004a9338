//! Claims.

use super::volumes::{VOLUME_MODES, access_modes, changes, not_negative, positive};
use super::{Check, IMMUTABLE, names, without};
use crate::form::compare_quantities;
use crate::json::{blank, entries, list, text};
use lifeboat_schema::{FieldError, Reach};
use serde_json::{Value, json};
use std::cmp::Ordering;

const BETA_CLASS: &str = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";

pub(super) fn claim(check: &mut Check, obj: &Value, old: Option<&Value>) {
    claim_spec(check, obj, "spec");
    if let Some(old) = old {
        claim_update(check, obj, old);
    }
}

/// The rules for a claim's spec, which a StatefulSet's templates have too.
pub(super) fn claim_spec(check: &mut Check, obj: &Value, path: &str) {
    let Some(spec) = super::at(obj, path).filter(|s| s.is_object()) else {
        return check.required(format!("{path}.accessModes"), "at least 1 access mode is required");
    };
    let modes = list(spec, "/accessModes");
    if modes.is_empty() {
        check.required(format!("{path}.accessModes"), "at least 1 access mode is required");
    }
    check.selector(obj, &format!("{path}.selector"));
    access_modes(check, modes, path);
    let storage = format!("{path}.resources[storage]");
    match spec.reach("/resources/requests/storage") {
        None => check.required(storage, ""),
        Some(amount) => positive(check, storage, amount),
    }
    check.named(obj, &format!("{path}.storageClassName"), names::subdomain);
    check.one_of(obj, &format!("{path}.volumeMode"), VOLUME_MODES);
    for key in ["dataSource", "dataSourceRef"] {
        if let Some(source) = spec.get(key) {
            data_source(check, source, &format!("{path}.{key}"));
        }
    }
    if let (Some(source), Some(reference)) = (spec.get("dataSource"), spec.get("dataSourceRef")) {
        let namespaced = !text(reference, "/namespace").is_empty();
        let same = ["/kind", "/name", "/apiGroup"].iter().all(|p| text(source, p) == text(reference, p));
        if namespaced {
            let detail = "may not be specified when dataSourceRef.namespace is specified";
            check.invalid(path, json!({}), detail);
        } else if !same {
            check.invalid(path, json!({}), "must match dataSourceRef");
        }
    }
    check.named(obj, &format!("{path}.volumeAttributesClassName"), names::subdomain);
}

fn data_source(check: &mut Check, source: &Value, path: &str) {
    for key in ["name", "kind"] {
        if text(source, &format!("/{key}")).is_empty() {
            check.required(format!("{path}.{key}"), "");
        }
    }
    let (group, kind) = (text(source, "/apiGroup"), text(source, "/kind"));
    if group.is_empty() && kind != "PersistentVolumeClaim" {
        check.invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
    }
    if !group.is_empty() {
        for problem in names::subdomain(group) {
            check.invalid(format!("{path}.apiGroup"), group, problem);
        }
    }
}

fn claim_update(check: &mut Check, new: &Value, old: &Value) {
    // What may change is put back as it was; the rest has to be the same.
    let mut freed = vec![];
    if text(old, "/spec/volumeName").is_empty() {
        freed.push("volumeName");
    }
    let (old_class, new_class) = (old.reach("/spec/storageClassName"), new.reach("/spec/storageClassName"));
    let annotation = old.reach(BETA_CLASS);
    let moved_to_field = annotation.is_some()
        && old_class.is_none()
        && new_class == annotation
        && (new.reach(BETA_CLASS).is_none() || new.reach(BETA_CLASS) == annotation);
    if !moved_to_field && new.reach(BETA_CLASS) != annotation {
        let field = "metadata.annotations[volume.beta.kubernetes.io/storage-class]";
        check.invalid(field, new.reach(BETA_CLASS).cloned().unwrap_or_default(), IMMUTABLE);
    }
    // A class may be given to a claim that had none: the default class of a cluster that got one later.
    let given_late =
        new_class.is_some() && old_class.is_none() && annotation.is_none_or(|a| new_class == Some(a));
    if moved_to_field || given_late {
        freed.push("storageClassName");
    }
    let bound = text(new, "/status/phase") == "Bound";
    if bound {
        freed.push("volumeAttributesClassName");
    }
    let (mut now, mut before) = (without(new, "/spec", &freed), without(old, "/spec", &freed));
    if bound {
        for spec in [&mut now, &mut before] {
            if let Some(Value::Object(requests)) = spec.pointer_mut("/resources/requests") {
                requests.remove("storage");
            }
        }
    }
    if now != before {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound \
                      claims";
        check.forbidden("spec", format!("{detail}{}", changes(&before, &now)));
    }
    let size = "/spec/resources/requests/storage";
    let zero = json!(0);
    let (new_size, old_size) = (new.reach(size).unwrap_or(&zero), old.reach(size).unwrap_or(&zero));
    let capacity = old.reach("/status/capacity/storage").unwrap_or(&zero);
    // Smaller than before is for recovery from a failed expansion, and never down to what is there already.
    if compare_quantities(new_size, old_size) == Some(Ordering::Less)
        && compare_quantities(new_size, capacity) != Some(Ordering::Greater)
    {
        check.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity");
    }
    check.immutable(new, old, "spec.volumeMode", "volumeMode");
    attributes_class_kept(check, new, old);
}

fn attributes_class_kept(check: &mut Check, new: &Value, old: &Value) {
    let path = "/spec/volumeAttributesClassName";
    if new.reach(path) == old.reach(path) || old.reach("/status/currentVolumeAttributesClassName").is_none() {
        return;
    }
    let detail = match new.reach(path) {
        None => "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil",
        Some(v) if v == "" => {
            "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil"
        }
        Some(_) => return,
    };
    check.forbidden("spec.volumeAttributesClassName", detail);
}

pub(super) fn claim_status(check: &mut Check, new: &Value) {
    if blank(new.reach("/spec/accessModes")) {
        check.required("Spec.accessModes", "");
    }
    for (key, amount) in entries(new, "/status/capacity") {
        not_negative(check, format!("status.capacity[{key}]"), amount);
    }
    let states = [
        "ControllerResizeInProgress",
        "ControllerResizeInfeasible",
        "NodeResizePending",
        "NodeResizeInProgress",
        "NodeResizeInfeasible",
    ];
    for (key, state) in entries(new, "/status/allocatedResourceStatuses") {
        if !state.as_str().is_some_and(|s| states.contains(&s)) {
            check.push(FieldError::not_supported("status.allocatedResourceStatuses", key, &states));
        }
    }
    for (key, amount) in entries(new, "/status/allocatedResources") {
        not_negative(check, format!("status.allocatedResources[{key}]"), amount);
    }
}
