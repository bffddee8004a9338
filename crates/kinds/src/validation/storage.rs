//! The kinds of storage.k8s.io.

use super::volumes::{driver_name, volume_spec};
use super::{Check, IMMUTABLE, names};
use crate::form::compare_quantities;
use crate::json::{blank, entries, int, list, text};
use lifeboat_schema::{FieldError, Reach};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const MAX_SIZE: usize = 256 * 1024;

pub(super) fn storage_class(check: &mut Check, obj: &Value, old: Option<&Value>) {
    if let Some(old) = old {
        for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            check.immutable(obj, old, field, field);
        }
        return;
    }
    provisioner(check, obj, "provisioner");
    parameters(check, obj);
    check.one_of(obj, "reclaimPolicy", &["Delete", "Retain"]);
    if obj.get("volumeBindingMode").is_none() {
        check.required("volumeBindingMode", "");
    }
    check.one_of(obj, "volumeBindingMode", &["Immediate", "WaitForFirstConsumer"]);
    let mut seen: Vec<&Value> = Vec::new();
    for (i, term) in list(obj, "/allowedTopologies").iter().enumerate() {
        let path = format!("allowedTopologies[{i}].matchLabelExpressions");
        for (n, e) in list(term, "/matchLabelExpressions").iter().enumerate() {
            if list(e, "/values").is_empty() {
                check.required(format!("{path}[{n}].values"), "");
            }
            for problem in names::qualified(text(e, "/key")) {
                check.invalid(format!("{path}[{n}].key"), text(e, "/key"), problem);
            }
        }
        if seen.contains(&term) {
            check.push(FieldError::duplicate(path, ""));
        }
        seen.push(term);
    }
}

fn provisioner(check: &mut Check, obj: &Value, field: &str) {
    let name = text(obj, &format!("/{field}"));
    if name.is_empty() {
        return check.required(field, "");
    }
    let lower = name.to_lowercase();
    for problem in names::qualified(&lower) {
        check.invalid(field, lower.as_str(), problem);
    }
}

fn parameters(check: &mut Check, obj: &Value) {
    let mut size = 0;
    if entries(obj, "/parameters").count() > 512 {
        return check.push(FieldError::too_long("parameters", 512));
    }
    for (key, value) in entries(obj, "/parameters") {
        if key.is_empty() {
            check.invalid("parameters", key, "field can not be empty.");
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > MAX_SIZE {
        check.push(FieldError::too_long("parameters", 262_144));
    }
}

pub(super) fn attributes_class(check: &mut Check, obj: &Value, old: Option<&Value>) {
    for field in ["driverName", "parameters"] {
        if old.is_some_and(|old| old.get(field) != obj.get(field)) {
            check.forbidden(field, format!("updates to {field} are forbidden."));
        }
    }
    provisioner(check, obj, "driverName");
    parameters(check, obj);
    if blank(obj.get("parameters")) {
        check.required("parameters", "must contain at least one key/value pair");
    }
}

pub(super) fn attachment(check: &mut Check, obj: &Value, old: Option<&Value>) {
    driver_name(check, obj, "spec.attacher", "/spec/attacher");
    let source = "spec.source";
    let (inline, volume) =
        (obj.reach("/spec/source/inlineVolumeSpec"), obj.reach("/spec/source/persistentVolumeName"));
    let exactly_one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (inline, volume) {
        (None, None) => check.required(source, exactly_one),
        (Some(_), Some(_)) => check.forbidden(source, exactly_one),
        (None, Some(name)) if name == "" => {
            check.required(
                format!("{source}.persistentVolumeName"),
                "must specify non empty persistentVolumeName",
            );
        }
        (None, Some(_)) => {}
        (Some(_), None) => volume_spec(check, obj, "spec.source.inlineVolumeSpec", true),
    }
    for problem in volume.and_then(Value::as_str).map(names::subdomain).unwrap_or_default() {
        check.invalid("spec.source.persistentVolumeName", volume.cloned().unwrap_or_default(), problem);
    }
    for problem in names::subdomain(text(obj, "/spec/nodeName")) {
        check.invalid("spec.nodeName", text(obj, "/spec/nodeName"), problem);
    }
    let size: usize =
        entries(obj, "/status/attachmentMetadata").map(|(k, v)| k.len() + text(v, "").len()).sum();
    if size > MAX_SIZE {
        check.push(FieldError::too_long("status.attachmentMetadata", 262_144));
    }
    for error in ["attachError", "detachError"] {
        if text(obj, &format!("/status/{error}/message")).len() > 1024 {
            check.push(FieldError::too_long(format!("status.{error}.message"), 262_144));
        }
        let code = int(obj, &format!("/status/{error}/errorCode"));
        if code < 0 {
            check.invalid(
                format!("status.{error}.errorCode"),
                code,
                "must be between 0 and 2147483647, inclusive",
            );
        }
    }
    if let Some(old) = old {
        check.immutable(obj, old, "spec", "spec");
    }
}

pub(super) fn driver(check: &mut Check, obj: &Value, old: Option<&Value>) {
    for (field, shown) in [
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
        ("seLinuxMount", "seLinuxMount"),
    ] {
        if obj.reach(&format!("/spec/{field}")).is_none() {
            check.required(format!("spec.{shown}"), "");
        }
    }
    check.one_of(obj, "spec.fsGroupPolicy", &["File", "None", "ReadWriteOnceWithFSType"]);
    let mut audiences = BTreeSet::new();
    for (i, request) in list(obj, "/spec/tokenRequests").iter().enumerate() {
        let path = format!("spec.tokenRequests[{i}]");
        if !audiences.insert(text(request, "/audience")) {
            check.push(FieldError::duplicate(format!("{path}.audience"), text(request, "/audience")));
            continue;
        }
        match request.get("expirationSeconds").and_then(Value::as_i64) {
            Some(n) if n < 600 => check.invalid(
                format!("{path}.expirationSeconds"),
                n,
                "may not specify a duration less than 10 minutes",
            ),
            Some(n) if n > 1 << 32 => check.invalid(
                format!("{path}.expirationSeconds"),
                n,
                "may not specify a duration larger than 2^32 seconds",
            ),
            _ => {}
        }
    }
    for mode in list(obj, "/spec/volumeLifecycleModes") {
        if mode != "Persistent" && mode != "Ephemeral" {
            let supported = ["Persistent", "Ephemeral"];
            check.push(FieldError::not_supported("spec.volumeLifecycleModes", mode.clone(), &supported));
        }
    }
    if let Some(n) =
        obj.reach("/spec/nodeAllocatableUpdatePeriodSeconds").and_then(Value::as_i64).filter(|n| *n < 10)
    {
        let detail = "must be greater than or equal to 10 seconds";
        check.invalid("spec.nodeAllocatableUpdatePeriodSeconds", n, detail);
    }
    if let Some(flag) = obj.reach("/spec/serviceAccountTokenInSecrets")
        && list(obj, "/spec/tokenRequests").is_empty()
    {
        let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        check.invalid("spec.serviceAccountTokenInSecrets", flag.clone(), detail);
    }
    if let Some(old) = old {
        check.immutable(obj, old, "spec.attachRequired", "spec.attachedRequired");
        check.immutable(obj, old, "spec.volumeLifecycleModes", "spec.volumeLifecycleModes");
    }
}

pub(super) fn node(check: &mut Check, obj: &Value, old: Option<&Value>) {
    let mut seen = BTreeSet::new();
    let drivers = list(obj, "/spec/drivers");
    for (i, driver) in drivers.iter().enumerate() {
        let path = format!("spec.drivers[{i}]");
        driver_name(check, driver, &format!("{path}.name"), "/name");
        match text(driver, "/nodeID") {
            "" => check.required(format!("{path}.nodeID"), ""),
            id if id.len() > 256 => {
                check.invalid(format!("{path}.nodeID"), id, "must be 256 characters or less");
            }
            _ => {}
        }
        let count = int(driver, "/allocatable/count");
        if count < 0 {
            check.invalid(format!("{path}.allocatable.count"), count, "must be greater than or equal to 0");
        }
        if !seen.insert(text(driver, "/name")) {
            check.push(FieldError::duplicate(format!("{path}.name"), text(driver, "/name")));
        }
        let mut keys = BTreeSet::new();
        for key in list(driver, "/topologyKeys").iter().filter_map(Value::as_str) {
            if key.is_empty() {
                check.required(path.as_str(), "");
            }
            if !keys.insert(key) {
                check.push(FieldError::duplicate(path.as_str(), key));
            }
            for problem in names::qualified(key) {
                check.invalid(path.as_str(), key, problem);
            }
        }
    }
    // A driver that stays keeps all but its limit.
    for before in old.map_or(&[][..], |old| list(old, "/spec/drivers")) {
        let same_name = drivers.iter().find(|d| text(d, "/name") == text(before, "/name"));
        if let Some(now) = same_name {
            let (now, before) =
                (super::without(now, "", &["allocatable"]), super::without(before, "", &["allocatable"]));
            if now != before {
                check.invalid("spec.drivers", now, IMMUTABLE);
            }
        }
    }
}

pub(super) fn capacity(check: &mut Check, obj: &Value, old: Option<&Value>) {
    if let Some(old) = old {
        check.immutable(obj, old, "nodeTopology", "nodeTopology");
        check.immutable(obj, old, "storageClassName", "storageClassName");
        return;
    }
    check.selector(obj, "nodeTopology");
    for problem in names::subdomain(text(obj, "/storageClassName")) {
        check.invalid("storageClassName", text(obj, "/storageClassName"), problem);
    }
    if let Some(amount) = obj.get("capacity")
        && compare_quantities(amount, &json!(0)).is_none_or(std::cmp::Ordering::is_lt)
    {
        check.invalid("capacity", amount.clone(), "must be greater than or equal to 0");
    }
}
