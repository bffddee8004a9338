//! Volumes.

use super::{Check, names};
use crate::form::{compare_quantities, whole};
use crate::json::{blank, int, list, text};
use lifeboat_schema::{FieldError, Reach};
use serde_json::{Value, json};
use std::cmp::Ordering;

const ACCESS_MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
pub(super) const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];

/// The fields of a volume's spec that say where its data is; exactly one is set.
const SOURCES: &[&str] = &[
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

pub(super) fn access_modes(check: &mut Check, modes: &[Value], path: &str) {
    let field = format!("{path}.accessModes");
    let known = |m: &Value| m.as_str().is_some_and(|m| ACCESS_MODES.contains(&m));
    for mode in modes.iter().filter(|m| !known(m)) {
        check.push(FieldError::not_supported(field.as_str(), mode.clone(), ACCESS_MODES));
    }
    let single = modes.iter().any(|m| m == "ReadWriteOncePod");
    if single && modes.iter().any(|m| known(m) && m != "ReadWriteOncePod") {
        check.forbidden(field, "may not use ReadWriteOncePod with other access modes");
    }
}

/// An amount of storage that has to be more than nothing.
pub(super) fn positive(check: &mut Check, field: String, amount: &Value) {
    match compare_quantities(amount, &json!(0)) {
        Some(Ordering::Greater) => {}
        Some(_) => check.invalid(field, amount.clone(), "must be greater than zero"),
        None => check.invalid(field, amount.clone(), "must be a valid resource quantity"),
    }
}

/// The fields that differ, one per line; Kubernetes shows a Go diff there, which nobody parses.
pub(super) fn changes(before: &Value, now: &Value) -> String {
    let mut out = String::new();
    let empty = serde_json::Map::new();
    let (b, n) = (before.as_object().unwrap_or(&empty), now.as_object().unwrap_or(&empty));
    for key in b.keys().chain(n.keys().filter(|k| !b.contains_key(*k))) {
        if b.get(key) != n.get(key) {
            let show = |v: Option<&Value>| v.map_or("<nil>".into(), Value::to_string);
            out.push_str(&format!("\n  {key}: {} -> {}", show(b.get(key)), show(n.get(key))));
        }
    }
    out
}

pub(super) fn not_negative(check: &mut Check, field: String, amount: &Value) {
    if compare_quantities(amount, &json!(0)).is_none_or(Ordering::is_lt) {
        let shown = whole(amount).map_or_else(|| amount.clone(), Value::from);
        check.invalid(field, shown, "must be a valid resource quantity");
    }
}

pub(super) fn volume(check: &mut Check, obj: &Value, old: Option<&Value>) {
    volume_spec(check, obj, "spec", false);
    let Some(old) = old else { return };
    // Most writes leave the source alone: it is copied only to find out how much of a change is allowed.
    if !sources(obj).eq(sources(old)) {
        source_update(check, obj, old);
    }
    check.immutable(obj, old, "spec.volumeMode", "volumeMode");
    let place = "/spec/nodeAffinity";
    let affinity = |v: &Value| v.reach(place).map(|a| modern_labels(a.clone()));
    if obj.reach(place) != old.reach(place)
        && let Some(before) = affinity(old)
        && affinity(obj).as_ref() != Some(&before)
    {
        let bad = obj.reach(place).cloned().unwrap_or_default();
        check.invalid("nodeAffinity", bad, "field is immutable, except for updating from beta label to GA");
    }
    let class = "/spec/volumeAttributesClassName";
    if old.reach(class).is_some() && obj.reach(class).is_none() {
        check.forbidden("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden");
    }
}

/// What a volume's spec says of where its data is.
fn sources(volume: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let spec = volume.get("spec").and_then(Value::as_object);
    spec.into_iter().flatten().filter(|(field, _)| SOURCES.contains(&field.as_str()))
}

fn source_update(check: &mut Check, obj: &Value, old: &Value) {
    let source =
        |v: &Value| -> Value { Value::Object(sources(v).map(|(k, v)| (k.clone(), v.clone())).collect()) };
    let (mut now, before) = (source(obj), source(old));
    // A secret for expansion may be given later.
    if before.get("csi").is_some_and(|c| c.get("controllerExpandSecretRef").is_none())
        && let Some(Value::Object(csi)) = now.get_mut("csi")
    {
        csi.remove("controllerExpandSecretRef");
    }
    if now != before {
        let detail = "spec.persistentvolumesource is immutable after creation";
        check.forbidden("spec.persistentvolumesource", format!("{detail}{}", changes(&before, &now)));
    }
}

/// Topology labels under their current names, so that renaming them is no change.
fn modern_labels(mut affinity: Value) -> Value {
    let terms = affinity.pointer_mut("/required/nodeSelectorTerms").and_then(Value::as_array_mut);
    for term in terms.into_iter().flatten() {
        let Some(Value::Array(expressions)) = term.get_mut("matchExpressions") else { continue };
        for expression in expressions {
            let modern = match text(expression, "/key") {
                "failure-domain.beta.kubernetes.io/zone" => "topology.kubernetes.io/zone",
                "failure-domain.beta.kubernetes.io/region" => "topology.kubernetes.io/region",
                "beta.kubernetes.io/os" => "kubernetes.io/os",
                "beta.kubernetes.io/arch" => "kubernetes.io/arch",
                "beta.kubernetes.io/instance-type" => "node.kubernetes.io/instance-type",
                _ => continue,
            };
            expression["key"] = modern.into();
        }
    }
    affinity
}

/// The rules for a volume's spec; `inline` for one within a VolumeAttachment, which has no life of its own.
pub(super) fn volume_spec(check: &mut Check, obj: &Value, path: &str, inline: bool) {
    let empty = json!({});
    let spec = super::at(obj, path).unwrap_or(&empty);
    let modes = list(spec, "/accessModes");
    if inline {
        for key in ["claimRef", "capacity", "nodeAffinity", "storageClassName"] {
            if !blank(spec.get(key)) {
                check.forbidden(
                    format!("{path}.{key}"),
                    "may not be specified in the context of inline volumes",
                );
            }
        }
        if spec.get("csi").is_none() {
            check.required(format!("{path}.csi"), "has to be specified in the context of inline volumes");
        }
    } else {
        capacity(check, spec, path);
    }
    if modes.is_empty() {
        check.required(format!("{path}.accessModes"), "");
    }
    access_modes(check, modes, path);
    if !inline {
        let policies = ["Delete", "Recycle", "Retain"];
        check.one_of(obj, &format!("{path}.persistentVolumeReclaimPolicy"), &policies);
        check.one_of(obj, &format!("{path}.volumeMode"), VOLUME_MODES);
        check.named(obj, &format!("{path}.storageClassName"), names::subdomain);
    }
    let affinity = spec.get("nodeAffinity");
    if affinity.is_some_and(|a| a.get("required").is_none()) {
        check.required(format!("{path}.nodeAffinity.required"), "must specify required node constraints");
    } else if affinity.is_some_and(|a| list(a, "/required/nodeSelectorTerms").is_empty()) {
        let field = format!("{path}.nodeAffinity.required.nodeSelectorTerms");
        check.required(field, "must have at least one node selector term");
    }
    volume_source(check, spec, path);
    if let Some(class) = spec.get("volumeAttributesClassName") {
        let field = format!("{path}.volumeAttributesClassName");
        if class == "" {
            check.required(field, "an empty string is disallowed");
        } else {
            check.named(obj, &field, names::subdomain);
        }
        if spec.get("csi").is_none() {
            check.required(format!("{path}.csi"), "has to be specified when using volumeAttributesClassName");
        }
    }
}

fn capacity(check: &mut Check, spec: &Value, path: &str) {
    let field = format!("{path}.capacity");
    let capacity = spec.get("capacity").and_then(Value::as_object);
    if capacity.is_none_or(serde_json::Map::is_empty) {
        check.required(field.as_str(), "");
    }
    if capacity.is_none_or(|c| !c.contains_key("storage") || c.len() > 1) {
        let shown = capacity.map_or(json!({}), |c| Value::Object(c.clone()));
        check.push(FieldError::not_supported(field.as_str(), shown, &["storage"]));
    }
    for (key, amount) in capacity.into_iter().flatten() {
        positive(check, format!("{field}[{key}]"), amount);
    }
}

fn volume_source(check: &mut Check, spec: &Value, path: &str) {
    let mut found = SOURCES.iter().filter(|s| spec.get(**s).is_some());
    let Some(first) = found.next() else {
        return check.required(path, "must specify a volume type");
    };
    let source = &spec[*first];
    match *first {
        "csi" => {
            driver_name(check, source, &format!("{path}.csi.driver"), "/driver");
            if text(source, "/volumeHandle").is_empty() {
                check.required(format!("{path}.csi.volumeHandle"), "");
            }
            for key in [
                "controllerPublishSecretRef",
                "controllerExpandSecretRef",
                "nodePublishSecretRef",
                "nodeExpandSecretRef",
            ] {
                let Some(secret) = source.get(key) else { continue };
                for part in ["name", "namespace"] {
                    if text(secret, &format!("/{part}")).is_empty() {
                        check.required(format!("{path}.csi.{key}.{part}"), "");
                    }
                }
            }
        }
        "hostPath" | "local" => {
            let at = format!("{path}.{first}.path");
            match text(source, "/path") {
                "" => check.required(at, ""),
                p if p.split('/').any(|part| part == "..") => check.invalid(at, p, "must not contain '..'"),
                "/" if *first == "hostPath" && text(spec, "/persistentVolumeReclaimPolicy") == "Recycle" => {
                    let detail = "may not be 'recycle' for a hostPath mount of '/'";
                    check.forbidden(format!("{path}.persistentVolumeReclaimPolicy"), detail);
                }
                _ => {}
            }
            if *first == "local" && spec.get("nodeAffinity").is_none() {
                check.required(format!("{path}.nodeAffinity"), "Local volume requires node affinity");
            }
        }
        "nfs" => {
            for key in ["server", "path"] {
                if text(source, &format!("/{key}")).is_empty() {
                    check.required(format!("{path}.nfs.{key}"), "");
                }
            }
            let at = text(source, "/path");
            if !at.is_empty() && !at.starts_with('/') {
                check.invalid(format!("{path}.nfs.path"), at, "must be an absolute path");
            }
        }
        "iscsi" if int(source, "/lun") < 0 || int(source, "/lun") > 255 => {
            check.invalid(
                format!("{path}.iscsi.lun"),
                int(source, "/lun"),
                "must be between 0 and 255, inclusive",
            );
        }
        _ => {}
    }
    for extra in found {
        check.forbidden(format!("{path}.{extra}"), "may not specify more than 1 volume type");
    }
}

/// The name of a CSI driver, which has to be there.
pub(super) fn driver_name(check: &mut Check, obj: &Value, field: &str, pointer: &str) {
    let name = text(obj, pointer);
    if name.is_empty() {
        return check.required(field, "");
    }
    if name.len() > 63 {
        check.push(FieldError::too_long(field, 63));
    }
    for problem in names::subdomain(&name.to_lowercase()) {
        check.invalid(field, name, problem);
    }
}
