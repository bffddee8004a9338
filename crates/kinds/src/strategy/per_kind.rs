//! What single kinds do on a write beyond keeping and dropping whole parts.

use crate::json::{Object, blank, carry, fill, list, object, text};
use base64::Engine as _;
use lifeboat_schema::Reach;
use serde_json::{Value, json};

/// Resizing takes the resources of containers that are still the same ones, and nothing else.
pub(super) fn take_resources(spec: &mut Object, wanted: &Object) {
    for key in ["containers", "initContainers"] {
        let (Some(Value::Array(kept)), Some(Value::Array(wanted))) = (spec.get_mut(key), wanted.get(key))
        else {
            continue;
        };
        if kept.len() != wanted.len() || kept.iter().zip(wanted).any(|(k, w)| k.get("name") != w.get("name"))
        {
            *kept = wanted.clone();
            continue;
        }
        for (kept, wanted) in kept.iter_mut().zip(wanted) {
            if let Value::Object(kept) = kept {
                carry(kept, wanted, "resources");
                carry(kept, wanted, "resizePolicy");
            }
        }
    }
}

pub(super) fn namespace_finalizer(spec: &mut Object) {
    let finalizers = spec.entry("finalizers").or_insert_with(|| json!([]));
    if let Value::Array(list) = finalizers
        && !list.iter().any(|f| f == "kubernetes")
    {
        list.push("kubernetes".into());
    }
}

/// `stringData` is for writing only: it ends up in `data`.
pub(crate) fn string_data(o: &mut Object) {
    let Some(Value::Object(strings)) = o.remove("stringData") else { return };
    let data = object(o, "data");
    for (key, value) in strings {
        let bytes = value.as_str().unwrap_or_default().as_bytes();
        data.insert(key, base64::engine::general_purpose::STANDARD.encode(bytes).into());
    }
}

/// Without `dataSourceRef`, a `dataSource` that is neither a claim nor a snapshot is ignored.
pub(super) fn legacy_data_source(spec: &mut Object, old: Option<&Value>) {
    let in_use = |s: &Value| !blank(s.get("dataSource")) || !blank(s.get("dataSourceRef"));
    // Namespaced sources are behind a gate that is off.
    let namespaced = spec.get("dataSourceRef").is_some_and(|r| !text(r, "/namespace").is_empty());
    if namespaced && old.is_none_or(|s| blank(s.get("dataSourceRef"))) {
        spec.remove("dataSourceRef");
    }
    if old.is_some_and(in_use) || spec.contains_key("dataSourceRef") {
        return;
    }
    if let Some(source) = spec.get("dataSource") {
        let known = match text(source, "/kind") {
            "PersistentVolumeClaim" => text(source, "/apiGroup").is_empty(),
            "VolumeSnapshot" => text(source, "/apiGroup") == "snapshot.storage.k8s.io",
            _ => false,
        };
        if !known {
            spec.remove("dataSource");
        }
    }
}

/// Each of the two ways to name a source fills in the other.
pub(super) fn data_sources(spec: &mut Object) {
    match (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned()) {
        (Some(source), None) => {
            spec.insert("dataSourceRef".into(), source);
        }
        (None, Some(mut source)) if text(&source, "/namespace").is_empty() => {
            if let Value::Object(o) = &mut source {
                o.remove("namespace");
            }
            spec.insert("dataSource".into(), source);
        }
        _ => {}
    }
}

/// A ServiceAccount names secrets, and nothing else about them.
pub(super) fn secret_references(o: &mut Object) {
    if let Some(Value::Array(secrets)) = o.get_mut("secrets") {
        for secret in secrets {
            *secret = json!({ "name": text(secret, "/name") });
        }
    }
}

/// The template's own generation lives on as an annotation since the field left the API.
pub(super) fn template_generation(o: &mut Object, generation: i64) {
    let annotations = object(object(o, "metadata"), "annotations");
    let key = "deprecated.daemonset.template.generation";
    annotations.insert(key.into(), generation.to_string().into());
}

/// A pod stays on a node that is lost for five minutes, unless it says otherwise.
pub(super) fn default_tolerations(spec: &mut Object) {
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Value::Array(tolerations) = tolerations else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let covers = |t: &Value| {
            let any_key = text(t, "/key").is_empty() && text(t, "/operator") == "Exists";
            (any_key || text(t, "/key") == key) && matches!(text(t, "/effect"), "" | "NoExecute")
        };
        if !tolerations.iter().any(covers) {
            tolerations.push(json!({ "key": key, "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": 300 }));
        }
    }
}

/// Coordinated leader election is behind a gate that is off; what is there already may stay.
pub(super) fn coordinated(spec: &mut Object, old: Option<&Value>) {
    for key in ["strategy", "preferredHolder"] {
        if old.is_none_or(|s| s.get(key).is_none()) {
            spec.remove(key);
        }
    }
}

/// `clusterIP` is the first of `clusterIPs`; clients that know only the one may write only the one.
pub(super) fn cluster_ips(spec: &mut Object, old: Option<&Value>) {
    let ip = spec.get("clusterIP").and_then(Value::as_str).unwrap_or_default().to_owned();
    let before = old.map_or("", |s| text(s, "/clusterIP"));
    let list_kept = match old {
        None => blank(spec.get("clusterIPs")),
        Some(old) => spec.get("clusterIPs") == old.get("clusterIPs"),
    };
    if list_kept && !ip.is_empty() && ip != before {
        spec.insert("clusterIPs".into(), json!([ip]));
    }
}

/// Drops what the server had allocated for the old type of a service, and brings an address along that the client
/// left out.
pub(super) fn service(o: &mut Object, old: &Value) {
    let type_of = |v: Option<&Value>| v.map_or("", |s| text(s, "/type")).to_owned();
    let (was, is) = (type_of(old.get("spec")), type_of(o.get("spec")));
    let before = old.get("spec").cloned().unwrap_or_default();
    let spec = object(o, "spec");
    let same = |spec: &Object, key: &str| spec.get(key) == before.get(key);
    if is != "ExternalName" && was != "ExternalName" {
        for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if blank(spec.get(key)) {
                carry(spec, &before, key);
            }
        }
    } else if was != "ExternalName" && is == "ExternalName" {
        for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if same(spec, key) {
                spec.remove(key);
            }
        }
    }
    if is == "ExternalName" && was != is && same(spec, "internalTrafficPolicy") {
        spec.remove("internalTrafficPolicy");
    }
    let node_ports = |t: &str| t == "NodePort" || t == "LoadBalancer";
    if node_ports(&was) && !node_ports(&is) {
        if let Some(Value::Array(ports)) = spec.get_mut("ports") {
            for port in ports.iter_mut().filter_map(Value::as_object_mut) {
                port.remove("nodePort");
            }
        }
        if same(spec, "externalTrafficPolicy") {
            spec.remove("externalTrafficPolicy");
        }
    }
    if was == "LoadBalancer" && is != "LoadBalancer" {
        for key in ["allocateLoadBalancerNodePorts", "loadBalancerClass", "healthCheckNodePort"] {
            if same(spec, key) {
                spec.remove(key);
            }
        }
        o.insert("status".into(), json!({ "loadBalancer": {} }));
    }
}

pub(super) fn transition_time(o: &mut Object, old: Option<&Value>, now: jiff::Timestamp) {
    let status = object(o, "status");
    let set = |status: &mut Object| {
        status.insert("lastPhaseTransitionTime".into(), format!("{now:.0}").into());
    };
    let Some(old) = old else { return set(status) };
    let before = old.reach("/status/lastPhaseTransitionTime");
    let time = status.get("lastPhaseTransitionTime");
    if status.get("phase") == old.reach("/status/phase") {
        if let (None, Some(before)) = (time, before) {
            status.insert("lastPhaseTransitionTime".into(), before.clone());
        }
    } else if time.is_none() || time == before {
        set(status);
    }
}

/// Gives a job a selector that no other job has, unless it asks to bring its own.
pub(super) fn job_selector(o: &mut Object) {
    let name = o.get("metadata").map_or("", |m| text(m, "/name")).to_owned();
    let uid = o.get("metadata").map_or("", |m| text(m, "/uid")).to_owned();
    let spec = object(o, "spec");
    if spec.get("manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let labels = object(object(object(spec, "template"), "metadata"), "labels");
    for (key, value) in [
        ("job-name", &name),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("batch.kubernetes.io/controller-uid", &uid),
    ] {
        fill(labels, key, value.as_str());
    }
    let selector = object(object(spec, "selector"), "matchLabels");
    fill(selector, "batch.kubernetes.io/controller-uid", uid);
}

/// A pod's quality of service: `Guaranteed` where every container's requests equal its limits for cpu and memory,
/// `BestEffort` where none asks for anything, else `Burstable`.
pub(super) fn qos_class(o: &Object) -> &'static str {
    let Some(spec) = o.get("spec") else { return "BestEffort" };
    let (mut any, mut all_equal) = (false, true);
    for container in list(spec, "/containers").iter().chain(list(spec, "/initContainers")) {
        for resource in ["cpu", "memory"] {
            let request = container.reach(&format!("/resources/requests/{resource}")).filter(|v| *v != "0");
            let limit = container.reach(&format!("/resources/limits/{resource}")).filter(|v| *v != "0");
            any |= request.is_some() || limit.is_some();
            all_equal &= limit.is_some() && request.is_none_or(|r| Some(r) == limit);
        }
    }
    match (any, all_equal) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
