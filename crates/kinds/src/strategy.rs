//! What a write may change: the fields that each way of writing keeps, drops or carries over, and the generation.
//!
//! The rules follow the registry strategies of Kubernetes. Metadata that the server owns for every kind (uid, creationTimestamp,
//! resourceVersion, deletionTimestamp, managedFields) is not handled here, except that the generation is.
//!
//! A status write takes the metadata of the body too: Kubernetes lets labels, annotations, finalizers and owner references through
//! there. Exceptions: VolumeAttachment keeps all of it, Deployment keeps its labels, Pod keeps its owner references.

use crate::Kind;
use crate::defaults::{labels_from_template, name_label, stored_version};
use crate::json::{Object, blank, carry, fill, int, list, object, text};
use serde_json::{Value, json};

impl Kind {
    /// Drops what a client may not set at creation and starts the generation. To be called after [`Kind::default`].
    pub fn prepare_create(&self, obj: &mut Value) {
        let Value::Object(o) = obj else { return };
        if self.resets_status() {
            o.remove("status");
        }
        let metadata = object(o, "metadata");
        // CSIDriver counts its changes but does not start at one.
        if self.generation && self.kind != "CSIDriver" {
            metadata.insert("generation".into(), 1.into());
        } else {
            metadata.remove("generation");
        }
        match self.kind {
            "Namespace" => namespace_finalizer(object(o, "spec")),
            "PersistentVolumeClaim" => {
                let spec = object(o, "spec");
                legacy_data_source(spec, None);
                data_sources(spec);
            }
            "Pod" => {
                let class = qos_class(o);
                let mut status = json!({ "phase": "Pending", "qosClass": class });
                if !blank(o.get("spec").and_then(|s| s.get("schedulingGates"))) {
                    let message = "Scheduling is blocked due to non-empty scheduling gates";
                    status["conditions"] = json!([{ "type": "PodScheduled", "status": "False",
                        "reason": "SchedulingGated", "message": message }]);
                }
                o.insert("status".into(), status);
                let spec = object(o, "spec");
                default_tolerations(spec);
                if !spec.contains_key("priorityClassName") {
                    fill(spec, "priority", 0);
                    fill(spec, "preemptionPolicy", "PreemptLowerPriority");
                }
            }
            "Service" => cluster_ips(object(o, "spec"), None),
            "Lease" => coordinated(object(o, "spec"), None),
            "DaemonSet" => template_generation(o, 1),
            "CustomResourceDefinition" => {
                let stored = stored_version(object(o, "spec"));
                o.insert("status".into(), json!({ "storedVersions": stored.as_slice() }));
            }
            "ServiceAccount" => secret_references(o),
            _ => {}
        }
        // What every answer shows (an empty status, a phase) comes back in its stored form.
        self.default(obj);
    }

    /// Puts back what this way of writing may not change and moves the generation on. `subresource` is empty for the
    /// object itself. To be called after [`Kind::default`].
    pub fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        let Value::Object(o) = new else { return };
        match subresource {
            "" => self.main_write(o, old),
            "status" => self.status_write(o, old),
            "finalize" => carry(o, old, "status"),
            "ephemeralcontainers" | "resize" => {
                let wanted = object(o, "spec").clone();
                for key in ["spec", "status"] {
                    carry(o, old, key);
                }
                keep_metadata(o, old);
                let spec = object(o, "spec");
                if subresource == "resize" {
                    take_resources(spec, &wanted);
                } else {
                    let wanted = Value::Object(wanted);
                    carry(spec, &wanted, "ephemeralContainers");
                }
            }
            _ => {}
        }
        if self.kind == "Namespace" {
            name_label(o);
        }
        self.move_generation(o, old, subresource);
    }

    /// Writes what depends on the clock or on the uid and name that the server gave: a volume's phase transition time, a
    /// job's selector, the name label of a namespace with a generated name. To be called once those are in place,
    /// before validation.
    pub fn stamp(&self, new: &mut Value, old: Option<&Value>, now: jiff::Timestamp) {
        let Value::Object(o) = new else { return };
        match (self.kind, old) {
            ("PersistentVolume", old) => transition_time(o, old, now),
            ("Job", None) => {
                job_selector(o);
                labels_from_template(o);
            }
            ("Pod", None) => {
                let conditions = object(o, "status").get_mut("conditions").and_then(Value::as_array_mut);
                for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
                    fill(condition, "lastTransitionTime", format!("{now:.0}"));
                }
            }
            ("Namespace", None) => name_label(o),
            _ => {}
        }
    }

    /// Whether creation starts with an empty status. A Node may bring its own.
    fn resets_status(&self) -> bool {
        self.has_subresource("status") && self.kind != "Node"
    }

    fn main_write(&self, o: &mut Object, old: &Value) {
        if self.has_subresource("status") {
            carry(o, old, "status");
        }
        match self.kind {
            "Namespace" => {
                if let Some(spec) = old.get("spec") {
                    carry(object(o, "spec"), spec, "finalizers");
                }
            }
            "PersistentVolumeClaim" => {
                let spec = object(o, "spec");
                legacy_data_source(spec, old.get("spec"));
                data_sources(spec);
            }
            "Pod" => default_tolerations(object(o, "spec")),
            "Lease" => coordinated(object(o, "spec"), old.get("spec")),
            "Service" => {
                cluster_ips(object(o, "spec"), old.get("spec"));
                service(o, old);
            }
            "ServiceAccount" => secret_references(o),
            "DaemonSet" => {
                let before = text(old, "/metadata/annotations/deprecated.daemonset.template.generation");
                let before = before.parse().unwrap_or_else(|_| int(old, "/spec/templateGeneration").max(1));
                let same = o.get("spec").and_then(|s| s.get("template")) == old.pointer("/spec/template");
                template_generation(o, if same { before } else { before + 1 });
            }
            "CustomResourceDefinition" => {
                if let Some(version) = stored_version(object(o, "spec")) {
                    let stored = object(o, "status").entry("storedVersions").or_insert_with(|| json!([]));
                    if let Value::Array(stored) = stored
                        && !stored.iter().any(|v| *v == version.as_str())
                    {
                        stored.push(version.into());
                    }
                }
            }
            _ => {}
        }
    }

    fn status_write(&self, o: &mut Object, old: &Value) {
        carry(o, old, "spec");
        match self.kind {
            "VolumeAttachment" => keep_metadata(o, old),
            "Deployment" => {
                if let Some(metadata) = old.get("metadata") {
                    carry(object(o, "metadata"), metadata, "labels");
                }
            }
            "DaemonSet" => {
                let before = text(old, "/metadata/annotations/deprecated.daemonset.template.generation");
                template_generation(o, before.parse().unwrap_or(1));
            }
            "Pod" => {
                if let Some(metadata) = old.get("metadata") {
                    carry(object(o, "metadata"), metadata, "ownerReferences");
                }
                if let Some(class) = old.pointer("/status/qosClass") {
                    fill(object(o, "status"), "qosClass", class.clone());
                }
            }
            _ => {}
        }
    }

    fn move_generation(&self, o: &mut Object, old: &Value, subresource: &str) {
        let before = int(old, "/metadata/generation");
        let changed = self.generation && subresource != "status" && self.counts(o, old);
        let now = if changed { before + 1 } else { before };
        let metadata = object(o, "metadata");
        if now == 0 {
            metadata.remove("generation");
        } else {
            metadata.insert("generation".into(), now.into());
        }
    }

    /// Whether what the generation is about differs.
    fn counts(&self, o: &Object, old: &Value) -> bool {
        let differs = |key: &str| o.get(key) != old.get(key);
        let meta_differs = |key: &str| {
            let new = o.get("metadata").and_then(|m| m.get(key));
            new != old.get("metadata").and_then(|m| m.get(key))
        };
        match self.kind {
            "PriorityClass" => false,
            "PodTemplate" => differs("template"),
            "Deployment" => differs("spec") || meta_differs("annotations"),
            "EndpointSlice" => {
                differs("addressType") || differs("endpoints") || differs("ports") || meta_differs("labels")
            }
            _ => differs("spec"),
        }
    }
}

/// Keeps the metadata that a status write may not touch.
fn keep_metadata(o: &mut Object, old: &Value) {
    let Some(before) = old.get("metadata") else { return };
    let metadata = object(o, "metadata");
    for key in ["labels", "annotations", "finalizers", "ownerReferences"] {
        carry(metadata, before, key);
    }
}

/// Resizing takes the resources of containers that are still the same ones, and nothing else.
fn take_resources(spec: &mut Object, wanted: &Object) {
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

fn namespace_finalizer(spec: &mut Object) {
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
    use base64::Engine as _;
    let data = object(o, "data");
    for (key, value) in strings {
        let bytes = value.as_str().unwrap_or_default().as_bytes();
        data.insert(key, base64::engine::general_purpose::STANDARD.encode(bytes).into());
    }
}

/// Without `dataSourceRef`, a `dataSource` that is neither a claim nor a snapshot is ignored.
fn legacy_data_source(spec: &mut Object, old: Option<&Value>) {
    let in_use = |s: &Value| !blank(s.get("dataSource")) || !blank(s.get("dataSourceRef"));
    // Namespaced sources are behind a gate that is off.
    let namespaced = spec.get("dataSourceRef").is_some_and(|r| !text(r, "/namespace").is_empty());
    if namespaced && !old.is_some_and(|s| !blank(s.get("dataSourceRef"))) {
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
fn data_sources(spec: &mut Object) {
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
fn secret_references(o: &mut Object) {
    if let Some(Value::Array(secrets)) = o.get_mut("secrets") {
        for secret in secrets {
            *secret = json!({ "name": text(secret, "/name") });
        }
    }
}

/// The template's own generation lives on as an annotation since the field left the API.
fn template_generation(o: &mut Object, generation: i64) {
    let annotations = object(object(o, "metadata"), "annotations");
    let key = "deprecated.daemonset.template.generation";
    annotations.insert(key.into(), generation.to_string().into());
}

/// A pod stays on a node that is lost for five minutes, unless it says otherwise.
fn default_tolerations(spec: &mut Object) {
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
fn coordinated(spec: &mut Object, old: Option<&Value>) {
    for key in ["strategy", "preferredHolder"] {
        if !old.is_some_and(|s| s.get(key).is_some()) {
            spec.remove(key);
        }
    }
}

/// `clusterIP` is the first of `clusterIPs`; clients that know only the one may write only the one.
fn cluster_ips(spec: &mut Object, old: Option<&Value>) {
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
fn service(o: &mut Object, old: &Value) {
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

fn transition_time(o: &mut Object, old: Option<&Value>, now: jiff::Timestamp) {
    let status = object(o, "status");
    let set = |status: &mut Object| {
        status.insert("lastPhaseTransitionTime".into(), format!("{now:.0}").into());
    };
    let Some(old) = old else { return set(status) };
    let before = old.pointer("/status/lastPhaseTransitionTime");
    let time = status.get("lastPhaseTransitionTime");
    if status.get("phase") == old.pointer("/status/phase") {
        if let (None, Some(before)) = (time, before) {
            status.insert("lastPhaseTransitionTime".into(), before.clone());
        }
    } else if time.is_none() || time == before {
        set(status);
    }
}

/// Gives a job a selector that no other job has, unless it asks to bring its own.
fn job_selector(o: &mut Object) {
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
fn qos_class(o: &Object) -> &'static str {
    let Some(spec) = o.get("spec") else { return "BestEffort" };
    let (mut any, mut all_equal) = (false, true);
    for container in list(spec, "/containers").iter().chain(list(spec, "/initContainers")) {
        for resource in ["cpu", "memory"] {
            let request = container.pointer(&format!("/resources/requests/{resource}")).filter(|v| *v != "0");
            let limit = container.pointer(&format!("/resources/limits/{resource}")).filter(|v| *v != "0");
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
