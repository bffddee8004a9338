//! Pods and pod templates: what keeps them consistent, and what of a pod may change.

use super::volumes::changes;
use super::{Check, IMMUTABLE, meta, names, without};
use crate::json::{blank, int, list, text};
use lifeboat_schema::{FieldError, Reach};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn pod(check: &mut Check, obj: &Value, old: Option<&Value>) {
    spec(check, obj, "spec");
    if let Some(old) = old {
        update(check, obj, old);
    }
}

/// A template at `path` within a workload.
pub(super) fn template(check: &mut Check, obj: &Value, path: &str) {
    let Some(template) = super::at(obj, path) else {
        return check.required(path, "");
    };
    meta::labels(check, template.reach("/metadata/labels"), &format!("{path}.metadata.labels"));
    spec(check, obj, &format!("{path}.spec"));
}

fn spec(check: &mut Check, obj: &Value, path: &str) {
    let Some(spec) = super::at(obj, path) else {
        return check.required(format!("{path}.containers"), "");
    };
    let mut volumes = BTreeSet::new();
    for (i, volume) in list(spec, "/volumes").iter().enumerate() {
        let at = format!("{path}.volumes[{i}]");
        let name = text(volume, "/name");
        if name.is_empty() {
            check.required(format!("{at}.name"), "");
        } else {
            for problem in names::label(name) {
                check.invalid(format!("{at}.name"), name, problem);
            }
            if !volumes.insert(name) {
                check.push(FieldError::duplicate(format!("{at}.name"), name));
            }
        }
        if volume.get("persistentVolumeClaim").is_some_and(|c| text(c, "/claimName").is_empty()) {
            check.required(format!("{at}.persistentVolumeClaim.claimName"), "");
        }
        let sources = volume.as_object().into_iter().flat_map(serde_json::Map::keys).filter(|k| *k != "name");
        for extra in sources.skip(1) {
            check.forbidden(format!("{at}.{extra}"), "may not specify more than 1 volume type");
        }
    }
    if list(spec, "/containers").is_empty() {
        check.required(format!("{path}.containers"), "");
    }
    let mut seen = BTreeSet::new();
    for key in ["containers", "initContainers"] {
        for (i, container) in list(spec, &format!("/{key}")).iter().enumerate() {
            let at = format!("{path}.{key}[{i}]");
            if !seen.insert(text(container, "/name")) {
                check.push(FieldError::duplicate(format!("{at}.name"), text(container, "/name")));
            }
            one_container(check, container, &at, &volumes);
        }
    }
    let policies = ["Always", "OnFailure", "Never"];
    check.one_of(obj, &format!("{path}.restartPolicy"), &policies);
    check.one_of(
        obj,
        &format!("{path}.dnsPolicy"),
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
    );
    check.not_negative(obj, &format!("{path}.terminationGracePeriodSeconds"));
    check.named(obj, &format!("{path}.serviceAccountName"), names::subdomain);
    check.named(obj, &format!("{path}.nodeName"), names::subdomain);
    check.named(obj, &format!("{path}.hostname"), names::label);
    check.named(obj, &format!("{path}.subdomain"), names::label);
    check.named(obj, &format!("{path}.priorityClassName"), names::subdomain);
}

fn one_container(check: &mut Check, container: &Value, at: &str, volumes: &BTreeSet<&str>) {
    let name = text(container, "/name");
    if name.is_empty() {
        check.required(format!("{at}.name"), "");
    } else {
        for problem in names::label(name) {
            check.invalid(format!("{at}.name"), name, problem);
        }
    }
    let image = text(container, "/image");
    if image.is_empty() {
        check.required(format!("{at}.image"), "");
    } else if image.trim() != image {
        check.invalid(format!("{at}.image"), image, "must not have leading or trailing whitespace");
    }
    let policy = text(container, "/imagePullPolicy");
    if !["Always", "IfNotPresent", "Never"].contains(&policy) {
        let supported = ["Always", "IfNotPresent", "Never"];
        check.push(FieldError::not_supported(format!("{at}.imagePullPolicy"), policy, &supported));
    }
    let mut paths = BTreeSet::new();
    for (i, mount) in list(container, "/volumeMounts").iter().enumerate() {
        let (name, path) = (text(mount, "/name"), text(mount, "/mountPath"));
        let at = format!("{at}.volumeMounts[{i}]");
        if name.is_empty() {
            check.required(format!("{at}.name"), "");
        } else if !volumes.contains(name) {
            check.push(FieldError::not_found(format!("{at}.name"), name));
        }
        if path.is_empty() {
            check.required(format!("{at}.mountPath"), "");
        } else if !paths.insert(path) {
            check.invalid(format!("{at}.mountPath"), path, "must be unique");
        }
    }
    for (i, device) in list(container, "/volumeDevices").iter().enumerate() {
        let name = text(device, "/name");
        if !volumes.contains(name) {
            check.push(FieldError::not_found(format!("{at}.volumeDevices[{i}].name"), name));
        }
    }
    for (i, port) in list(container, "/ports").iter().enumerate() {
        let number = int(port, "/containerPort");
        if number == 0 {
            check.required(format!("{at}.ports[{i}].containerPort"), "");
        } else if !(1..=65535).contains(&number) {
            let detail = "must be between 1 and 65535, inclusive";
            check.invalid(format!("{at}.ports[{i}].containerPort"), number, detail);
        }
    }
}

fn update(check: &mut Check, new: &Value, old: &Value) {
    for key in ["containers", "initContainers"] {
        let path = format!("/spec/{key}");
        if list(new, &path).len() != list(old, &path).len() {
            return check.forbidden(format!("spec.{key}"), "pod updates may not add or remove containers");
        }
    }
    if !deadline(check, new, old) {
        return;
    }
    let tolerations = list(new, "/spec/tolerations");
    if !list(old, "/spec/tolerations").iter().all(|t| tolerations.iter().any(|n| same_toleration(n, t))) {
        check.forbidden(
            "spec.tolerations",
            "existing toleration can not be modified except its tolerationSeconds",
        );
    }
    let gates = list(old, "/spec/schedulingGates");
    for (i, gate) in list(new, "/spec/schedulingGates").iter().enumerate() {
        if !gates.contains(gate) {
            let detail =
                format!("only deletion is allowed, but found new scheduling gate '{}'", text(gate, "/name"));
            check.forbidden(format!("spec.schedulingGates[{i}].name"), detail);
        }
    }
    let mut freed = vec!["activeDeadlineSeconds", "tolerations", "schedulingGates"];
    let grace = "/spec/terminationGracePeriodSeconds";
    if int(old, grace) < 0 && int(new, grace) == 1 {
        freed.push("terminationGracePeriodSeconds");
    }
    // A pod that waits at a gate may still be directed to other nodes.
    if !gates.is_empty() {
        freed.extend(["nodeSelector", "affinity"]);
    }
    let comparable = |v: &Value| {
        let mut spec = without(v, "/spec", &freed);
        for key in ["containers", "initContainers"] {
            let Some(Value::Array(containers)) = spec.get_mut(key) else { continue };
            for container in containers.iter_mut().filter_map(Value::as_object_mut) {
                container.remove("image");
            }
        }
        spec
    };
    let (now, before) = (comparable(new), comparable(old));
    if now != before {
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,\
                      `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to \
                      existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                      previously negative)";
        check.forbidden("spec", format!("{detail}{}", changes(&before, &now)));
    }
}

/// The deadline may only come nearer; false where nothing else needs to be said.
fn deadline(check: &mut Check, new: &Value, old: &Value) -> bool {
    let field = "spec.activeDeadlineSeconds";
    let get = |v: &Value| super::at(v, field).and_then(Value::as_i64);
    match (get(new), get(old)) {
        (Some(n), _) if !(0..=i64::from(i32::MAX)).contains(&n) => {
            check.invalid(field, n, "must be between 0 and 2147483647, inclusive");
            false
        }
        (Some(n), Some(o)) if o < n => {
            check.invalid(field, n, "must be less than or equal to previous value");
            false
        }
        (None, Some(_)) => {
            check.invalid(field, Value::Null, "must not update from a positive integer to nil value");
            true
        }
        _ => true,
    }
}

fn same_toleration(a: &Value, b: &Value) -> bool {
    without(a, "", &["tolerationSeconds"]) == without(b, "", &["tolerationSeconds"])
}

pub(super) fn status(check: &mut Check, new: &Value, old: &Value) {
    let class = "/status/qosClass";
    if !blank(old.reach(class)) && new.reach(class) != old.reach(class) {
        check.invalid("status.qosClass", new.reach(class).cloned().unwrap_or_default(), IMMUTABLE);
    }
    check.named(new, "status.nominatedNodeName", names::subdomain);
    check.not_negative(new, "status.observedGeneration");
}
