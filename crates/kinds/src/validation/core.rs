//! The smaller kinds: configuration, namespaces, nodes, services, events, leases.

use super::{Check, IMMUTABLE, names};
use crate::form::compare_quantities;
use crate::json::{blank, entries, int, list, text};
use base64::Engine as _;
use lifeboat_schema::{FieldError, Reach};
use serde_json::Value;
use std::collections::BTreeSet;

const MAX_DATA: usize = 1024 * 1024;
const WHEN_IMMUTABLE: &str = "field is immutable when `immutable` is set";

fn decoded(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap_or_default();
    base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default()
}

fn keys(check: &mut Check, obj: &Value, field: &str) {
    for (key, _) in entries(obj, &format!("/{field}")) {
        for problem in names::config_key(key) {
            check.invalid(format!("{field}[{key}]"), key, problem);
        }
    }
}

fn kept(check: &mut Check, obj: &Value, old: &Value, fields: &[&str]) {
    if old.get("immutable") != Some(&Value::Bool(true)) {
        return;
    }
    if obj.get("immutable") != Some(&Value::Bool(true)) {
        check.forbidden("immutable", WHEN_IMMUTABLE);
    }
    for field in fields {
        if obj.get(field) != old.get(field) {
            check.forbidden(*field, WHEN_IMMUTABLE);
        }
    }
}

pub(super) fn config_map(check: &mut Check, obj: &Value, old: Option<&Value>) {
    if let Some(old) = old {
        kept(check, obj, old, &["data", "binaryData"]);
    }
    keys(check, obj, "data");
    keys(check, obj, "binaryData");
    for (key, _) in entries(obj, "/data") {
        if obj.get("binaryData").is_some_and(|b| b.get(key).is_some()) {
            check.invalid(format!("data[{key}]"), key, "duplicate of key present in binaryData");
        }
    }
    let plain: usize = entries(obj, "/data").map(|(_, v)| v.as_str().map_or(0, str::len)).sum();
    let binary: usize = entries(obj, "/binaryData").map(|(_, v)| decoded(v).len()).sum();
    if plain + binary > MAX_DATA {
        check.push(FieldError::too_long("[]", 1_048_576));
    }
}

pub(super) fn secret(check: &mut Check, obj: &Value, old: Option<&Value>) {
    if let Some(old) = old {
        check.immutable(obj, old, "type", "type");
        kept(check, obj, old, &["data"]);
    }
    keys(check, obj, "data");
    let size: usize = entries(obj, "/data").map(|(_, v)| decoded(v).len()).sum();
    if size > MAX_DATA {
        check.push(FieldError::too_long("data", 1_048_576));
    }
    let has = |key: &str| obj.get("data").is_some_and(|d| d.get(key).is_some());
    let mut need = |keys: &[&str]| {
        for key in keys.iter().filter(|k| !has(k)) {
            check.required(format!("data[{key}]"), "");
        }
    };
    match text(obj, "/type") {
        "kubernetes.io/tls" => need(&["tls.crt", "tls.key"]),
        "kubernetes.io/ssh-auth" => need(&["ssh-privatekey"]),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => need(&["username", "password"]),
        "kubernetes.io/dockercfg" => docker(check, obj, ".dockercfg"),
        "kubernetes.io/dockerconfigjson" => docker(check, obj, ".dockerconfigjson"),
        "kubernetes.io/service-account-token" => {
            let key = "kubernetes.io/service-account.name";
            if text(obj, &format!("/metadata/annotations/{}", key.replace('/', "~1"))).is_empty() {
                check.required(format!("metadata.annotations[{key}]"), "");
            }
        }
        _ => {}
    }
}

fn docker(check: &mut Check, obj: &Value, key: &str) {
    let field = format!("data[{key}]");
    match obj.get("data").and_then(|d| d.get(key)) {
        None => check.required(field, ""),
        Some(value) => {
            let parsed: Result<serde_json::Map<String, Value>, _> = serde_json::from_slice(&decoded(value));
            if let Err(error) = parsed {
                check.invalid(field, "<secret contents redacted>", error.to_string());
            }
        }
    }
}

pub(super) fn finalize(check: &mut Check, obj: &Value) {
    for (i, finalizer) in list(obj, "/spec/finalizers").iter().filter_map(Value::as_str).enumerate() {
        let field = format!("spec.finalizers[{i}]");
        for problem in names::qualified(finalizer) {
            check.invalid(field.as_str(), finalizer, problem);
        }
        super::meta::standard_finalizer(check, finalizer, field);
    }
}

pub(super) fn namespace_phase(check: &mut Check, obj: &Value) {
    let phase = text(obj, "/status/phase");
    let deleted = obj.reach("/metadata/deletionTimestamp").is_some();
    if !deleted && phase != "Active" {
        check.invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty");
    } else if deleted && phase != "Terminating" {
        check.invalid("status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty");
    }
}

pub(super) fn node(check: &mut Check, obj: &Value, old: Option<&Value>) {
    let mut seen = BTreeSet::new();
    for (i, taint) in list(obj, "/spec/taints").iter().enumerate() {
        // Kubernetes names this path wrongly, and tools may have learnt it.
        let path = format!("metadata.taints[{i}]");
        for problem in names::qualified(text(taint, "/key")) {
            check.invalid(format!("{path}.key"), text(taint, "/key"), problem);
        }
        for problem in names::label_value(text(taint, "/value")) {
            check.invalid(format!("{path}.value"), text(taint, "/value"), problem);
        }
        let effect = text(taint, "/effect");
        if effect.is_empty() {
            check.required(format!("{path}.effect"), "");
        } else if !["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect) {
            let supported = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
            check.push(FieldError::not_supported(format!("{path}.effect"), effect, &supported));
        }
        if !seen.insert((effect, text(taint, "/key"))) {
            let mut error = FieldError::duplicate(path, taint.clone());
            error.detail = "taints must be unique by key and effect pair".into();
            check.push(error);
        }
    }
    let Some(old) = old else { return };
    let kept = |field: &str| {
        let path = format!("/spec/{field}");
        !blank(old.reach(&path)) && obj.reach(&path) != old.reach(&path)
    };
    if kept("podCIDRs") {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        check.forbidden("spec.podCIDRs", detail);
    }
    if kept("providerID") {
        let detail = "node updates may not change providerID except from \"\" to valid";
        check.forbidden("spec.providerID", detail);
    }
}

pub(super) fn service(check: &mut Check, obj: &Value, old: Option<&Value>) {
    let kind = text(obj, "/spec/type");
    let headless = text(obj, "/spec/clusterIP") == "None";
    let ports = list(obj, "/spec/ports");
    if ports.is_empty() && !headless && kind != "ExternalName" {
        check.required("spec.ports", "");
    }
    check.one_of(obj, "spec.type", &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]);
    check.one_of(obj, "spec.sessionAffinity", &["ClientIP", "None"]);
    if kind == "ExternalName" {
        let name = text(obj, "/spec/externalName").trim_end_matches('.');
        if name.is_empty() {
            check.required("spec.externalName", "");
        } else {
            for problem in names::subdomain(name) {
                check.invalid("spec.externalName", name, problem);
            }
        }
    }
    let (mut names_seen, mut ports_seen) = (BTreeSet::new(), BTreeSet::new());
    for (i, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{i}]");
        let name = text(port, "/name");
        if name.is_empty() {
            if ports.len() > 1 {
                check.required(format!("{path}.name"), "");
            }
        } else {
            for problem in names::label(name) {
                check.invalid(format!("{path}.name"), name, problem);
            }
            if !names_seen.insert(name) {
                check.push(FieldError::duplicate(format!("{path}.name"), name));
            }
        }
        let number = int(port, "/port");
        if !(1..=65535).contains(&number) {
            check.invalid(format!("{path}.port"), number, "must be between 1 and 65535, inclusive");
        }
        match port.get("targetPort") {
            Some(Value::Number(n)) if !n.as_i64().is_some_and(|n| (1..=65535).contains(&n)) => {
                check.invalid(
                    format!("{path}.targetPort"),
                    n.clone(),
                    "must be between 1 and 65535, inclusive",
                );
            }
            _ => {}
        }
        let protocol = text(port, "/protocol");
        if !["SCTP", "TCP", "UDP"].contains(&protocol) {
            let supported = ["SCTP", "TCP", "UDP"];
            check.push(FieldError::not_supported(format!("{path}.protocol"), protocol, &supported));
        }
        if !ports_seen.insert((protocol, number)) {
            check.push(FieldError::duplicate(path.as_str(), port.clone()));
        }
        if int(port, "/nodePort") != 0 && (kind == "ClusterIP" || kind == "ExternalName") {
            let detail = format!("may not be used when `type` is '{kind}'");
            check.forbidden(format!("{path}.nodePort"), detail);
        }
    }
    super::meta::labels(check, obj.reach("/spec/selector"), "spec.selector");
    let Some(old) = old else { return };
    let was = text(old, "/spec/type");
    let had = list(old, "/spec/clusterIPs");
    if kind != "ExternalName" && was != "ExternalName" && !had.is_empty() {
        let now = list(obj, "/spec/clusterIPs");
        if now.first() != had.first() {
            check.invalid("spec.clusterIPs[0]", Value::from(now), "may not change once set");
        }
    }
}

pub(super) fn event(check: &mut Check, obj: &Value, old: Option<&Value>, group: &str) {
    let core;
    let strict = !group.is_empty();
    // The rules are about the core form, which both are kept in.
    let obj = if strict {
        let mut copy = obj.clone();
        crate::events_v1_to_core(&mut copy);
        core = copy;
        &core
    } else {
        obj
    };
    any_event(check, obj, strict);
    if !strict {
        return;
    }
    if let Some(old) = old {
        let mut old = old.clone();
        crate::events_v1_to_core(&mut old);
        for (field, shown) in [
            ("involvedObject", "involvedObject"),
            ("reason", "reason"),
            ("message", "message"),
            ("source", "source"),
            ("type", "type"),
            ("eventTime", "eventTime"),
            ("action", "action"),
            ("related", "related"),
            ("reportingComponent", "reportingController"),
            ("reportingInstance", "reportingInstance"),
        ] {
            if obj.get(field) != old.get(field) {
                check.invalid(shown, obj.get(field).cloned().unwrap_or_default(), IMMUTABLE);
            }
        }
        return;
    }
    if text(obj, "/eventTime").is_empty() {
        check.required("eventTime", "");
    }
    let kind = text(obj, "/type");
    if kind != "Normal" && kind != "Warning" {
        check.invalid("type", "", format!("has invalid value: {kind}"));
    }
    for field in ["firstTimestamp", "lastTimestamp", "count", "source"] {
        if !blank(obj.get(field)) {
            check.invalid(field, "", "needs to be unset");
        }
    }
}

fn any_event(check: &mut Check, obj: &Value, strict: bool) {
    let (namespace, about) = (text(obj, "/metadata/namespace"), text(obj, "/involvedObject/namespace"));
    let controller = if strict { "reportingController" } else { "reportingComponent" };
    let new_style = !text(obj, "/eventTime").is_empty();
    let agrees = match (about.is_empty(), new_style) {
        (true, true) => namespace == "default" || namespace == "kube-system",
        (true, false) => namespace.is_empty() || namespace == "default",
        (false, true) => true,
        (false, false) => namespace == about,
    };
    if !agrees {
        check.invalid("involvedObject.namespace", about, "does not match event.namespace");
    }
    if new_style {
        let reporter = text(obj, "/reportingComponent");
        if reporter.is_empty() {
            check.required(controller, "");
        }
        for problem in names::qualified(reporter) {
            check.invalid(controller, reporter, problem);
        }
        for (field, limit) in [("reportingInstance", 128), ("action", 128), ("reason", 128)] {
            let value = text(obj, &format!("/{field}"));
            if value.is_empty() {
                check.required(field, "");
            }
            if value.len() > limit {
                check.invalid(field, "", format!("can have at most {limit} characters"));
            }
        }
        if text(obj, "/message").len() > 1024 {
            check.invalid("message", "", "can have at most 1024 characters");
        }
    }
    for problem in names::subdomain(namespace) {
        check.invalid("namespace", namespace, problem);
    }
}

pub(super) fn lease(check: &mut Check, obj: &Value) {
    let number = |field: &str| obj.reach(&format!("/spec/{field}")).and_then(Value::as_i64);
    if let Some(n) = number("leaseDurationSeconds").filter(|n| *n <= 0) {
        check.invalid("spec.leaseDurationSeconds", n, "must be greater than 0");
    }
    if let Some(n) = number("leaseTransitions").filter(|n| *n < 0) {
        check.invalid("spec.leaseTransitions", n, "must be greater than or equal to 0");
    }
    if !text(obj, "/spec/preferredHolder").is_empty() && text(obj, "/spec/strategy").is_empty() {
        check.forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined");
    }
}

pub(super) fn quota(check: &mut Check, obj: &Value) {
    for (resource, amount) in entries(obj, "/spec/hard") {
        if compare_quantities(amount, &Value::from(0)).is_none_or(std::cmp::Ordering::is_lt) {
            check.invalid(
                format!("spec.hard[{resource}]"),
                amount.clone(),
                "must be greater than or equal to 0",
            );
        }
    }
}

pub(super) fn priority_class(check: &mut Check, obj: &Value, old: Option<&Value>) {
    if let Some(old) = old {
        if obj.get("value") != old.get("value") {
            check.forbidden("value", "may not be changed in an update.");
        }
        check.immutable(obj, old, "preemptionPolicy", "preemptionPolicy");
    } else if int(obj, "/value") > 1_000_000_000 && !text(obj, "/metadata/name").starts_with("system-") {
        let detail = "maximum allowed value of a user defined priority is 1000000000";
        check.forbidden("value", detail);
    }
    check.one_of(obj, "preemptionPolicy", &["Never", "PreemptLowerPriority"]);
}

pub(super) fn disruption_budget(check: &mut Check, obj: &Value) {
    let (min, max) = (obj.reach("/spec/minAvailable"), obj.reach("/spec/maxUnavailable"));
    if let (Some(_), Some(_)) = (min, max) {
        let shown = obj.get("spec").cloned().unwrap_or_default();
        check.invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set");
    }
    check.selector(obj, "spec.selector");
}

pub(super) fn endpoint_slice(check: &mut Check, obj: &Value, old: Option<&Value>) {
    if let Some(old) = old {
        check.immutable(obj, old, "addressType", "addressType");
    }
    let supported = ["FQDN", "IPv4", "IPv6"];
    if blank(obj.get("addressType")) {
        check.required("addressType", "");
    } else {
        check.one_of(obj, "addressType", &supported);
    }
    for (i, endpoint) in list(obj, "/endpoints").iter().enumerate() {
        if list(endpoint, "/addresses").is_empty() {
            check.required(format!("endpoints[{i}].addresses"), "must contain at least 1 address");
        }
    }
}
