//! What the API server fills in where a client left a field out.
//!
//! Defaults that belong to one field stand in the table of types (`d` and `w`). Here are those that need to look
//! around: at the other fields of their struct (`by_struct`), or at the kind ([`Kind::default`]).

use crate::Kind;
use crate::form::{canonicalize, drops};
use crate::json::{Object, blank, fill, object, text};
use crate::types::{Shape, Ty, types};
use lifeboat_schema::Reach;
use serde_json::{Map, Value, json};

impl Kind {
    /// Brings a decoded object into the form that Kubernetes stores: nulls and empty optional fields dropped, what is always
    /// shown added, quantities and times in canonical text, defaults written. Doing it twice changes nothing.
    ///
    /// To be called on every body before [`Kind::prepare_create`] or [`Kind::prepare_update`], after unknown fields
    /// and wrong types were dealt with.
    pub fn default(&self, obj: &mut Value) {
        let Some(ty) = types().root(&self.api_version(), self.kind) else { return };
        let Value::Object(o) = obj else { return };
        canonicalize(ty, o);
        struct_defaults(ty, o);
        match self.kind {
            "Pod" => pod(object(o, "spec")),
            "Job" => job(o),
            "Secret" => crate::strategy::string_data(o),
            "ReplicationController" => replication_controller(o),
            "Namespace" => name_label(o),
            "CustomResourceDefinition" => crd(o),
            _ => {}
        }
    }
}

/// Writes the defaults of a struct and of everything within it.
fn struct_defaults(ty: usize, o: &mut Object) {
    by_struct(&types().types[ty].name, o);
    types().each_json_field(ty, &mut |field| {
        if let Some(written) = &field.written {
            let unset = match o.get(field.name) {
                None => true,
                Some(value) => !field.pointer && (value == "" || value == 0),
            };
            // A default that is the zero value of an omitted field would be dropped again.
            if unset && !drops(field, written) {
                o.insert(field.name.to_owned(), written.clone());
            }
        }
        let Ty::Struct(inner) = field.ty else { return };
        match (field.shape, o.get_mut(field.name)) {
            (Shape::One, Some(Value::Object(map))) => struct_defaults(inner, map),
            (Shape::List, Some(Value::Array(items))) => {
                items.iter_mut().filter_map(Value::as_object_mut).for_each(|map| struct_defaults(inner, map));
            }
            (Shape::Map, Some(Value::Object(map))) => {
                map.values_mut().filter_map(Value::as_object_mut).for_each(|map| struct_defaults(inner, map));
            }
            _ => {}
        }
    });
}

/// Defaults that depend on the other fields of their struct, before those of single fields are written.
fn by_struct(name: &str, o: &mut Object) {
    match name.strip_prefix("io.k8s.api.").unwrap_or(name) {
        "core.v1.Container" | "core.v1.EphemeralContainer" => pull_policy(o, "imagePullPolicy", "image"),
        "core.v1.ImageVolumeSource" => pull_policy(o, "pullPolicy", "reference"),
        "core.v1.Volume" if o.keys().all(|k| k == "name") => fill(o, "emptyDir", json!({})),
        "core.v1.PodSpec" => service_account(o),
        "core.v1.ServiceSpec" => service(o),
        "core.v1.NodeStatus" => {
            if let (false, Some(capacity)) = (o.contains_key("allocatable"), o.get("capacity").cloned()) {
                o.insert("allocatable".into(), capacity);
            }
        }
        "core.v1.LimitRangeItem" => limit_range(o),
        "apps.v1.DeploymentStrategy" => rolling(o, json!("25%"), json!("25%")),
        "apps.v1.DaemonSetUpdateStrategy" => rolling(o, json!(1), json!(0)),
        "apps.v1.StatefulSetSpec" => {
            let claims = o.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut);
            for claim in claims.into_iter().flatten().filter_map(Value::as_object_mut) {
                fill(claim, "apiVersion", "v1");
                fill(claim, "kind", "PersistentVolumeClaim");
            }
        }
        "apps.v1.StatefulSetUpdateStrategy" => stateful_set_update(o),
        "networking.v1.NetworkPolicySpec" if blank(o.get("policyTypes")) => {
            let mut types = vec!["Ingress"];
            if !blank(o.get("egress")) {
                types.push("Egress");
            }
            o.insert("policyTypes".into(), json!(types));
        }
        "rbac.v1.Subject"
            if blank(o.get("apiGroup"))
                && matches!(o.get("kind").and_then(Value::as_str), Some("User" | "Group")) =>
        {
            o.insert("apiGroup".into(), "rbac.authorization.k8s.io".into());
        }
        "autoscaling.v2.HorizontalPodAutoscalerSpec" => autoscaler(o),
        _ => {}
    }
}

fn pull_policy(o: &mut Object, key: &str, image: &str) {
    let image = o.get(image).and_then(Value::as_str).unwrap_or_default();
    let policy = if tag(image) == "latest" { "Always" } else { "IfNotPresent" };
    fill(o, key, policy);
}

/// The tag of an image reference: `latest` where it has neither tag nor digest. A name that cannot be read has none.
fn tag(image: &str) -> &str {
    let last = image.rsplit('/').next().unwrap_or(image);
    if last.is_empty()
        || image.chars().any(|c| c.is_ascii_uppercase() || c.is_whitespace()) && !last.contains(':')
    {
        return "";
    }
    let (name, digest) = last.split_once('@').map_or((last, false), |(n, _)| (n, true));
    match name.split_once(':') {
        Some((_, tag)) => tag,
        None if digest => "",
        None => "latest",
    }
}

/// The account has an old name and a new one; both are always shown.
fn service_account(o: &mut Object) {
    if let Some(name) = o.get("serviceAccountName").or_else(|| o.get("serviceAccount")).cloned() {
        o.insert("serviceAccount".into(), name.clone());
        o.insert("serviceAccountName".into(), name);
    }
}

fn service(o: &mut Object) {
    let kind =
        o.get("type").and_then(Value::as_str).filter(|s| !s.is_empty()).unwrap_or("ClusterIP").to_owned();
    match o.get("sessionAffinity").and_then(Value::as_str) {
        Some("ClientIP") => {
            if o.get("sessionAffinityConfig").and_then(|c| c.reach("/clientIP/timeoutSeconds")).is_none() {
                o.insert("sessionAffinityConfig".into(), json!({ "clientIP": { "timeoutSeconds": 10800 } }));
            }
        }
        None | Some("" | "None") => {
            o.remove("sessionAffinityConfig");
        }
        Some(_) => {}
    }
    if let Some(Value::Array(ports)) = o.get_mut("ports") {
        for port in ports.iter_mut().filter_map(Value::as_object_mut) {
            let target = port.get("targetPort");
            if target.is_none_or(|t| t == 0 || t == "") {
                let number = port.get("port").cloned().unwrap_or(json!(0));
                port.insert("targetPort".into(), number);
            }
        }
    }
    let external = kind == "NodePort" || kind == "LoadBalancer";
    if external || (kind == "ClusterIP" && !blank(o.get("externalIPs"))) {
        fill(o, "externalTrafficPolicy", "Cluster");
    }
    if external || kind == "ClusterIP" {
        fill(o, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        fill(o, "allocateLoadBalancerNodePorts", true);
    }
}

fn limit_range(o: &mut Object) {
    if o.get("type").and_then(Value::as_str) != Some("Container") {
        return;
    }
    let get = |o: &Object, key: &str| o.get(key).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut default = get(o, "default");
    for (k, v) in get(o, "max") {
        default.entry(k).or_insert(v);
    }
    let mut request = get(o, "defaultRequest");
    for (k, v) in default.clone().into_iter().chain(get(o, "min")) {
        request.entry(k).or_insert(v);
    }
    for (key, map) in [("default", default), ("defaultRequest", request)] {
        if !map.is_empty() {
            o.insert(key.into(), Value::Object(map));
        }
    }
}

fn rolling(o: &mut Object, max_unavailable: Value, max_surge: Value) {
    fill(o, "type", "RollingUpdate");
    if o["type"] == "RollingUpdate" {
        let rolling = object(o, "rollingUpdate");
        fill(rolling, "maxUnavailable", max_unavailable);
        fill(rolling, "maxSurge", max_surge);
    }
}

fn stateful_set_update(o: &mut Object) {
    if blank(o.get("type")) {
        o.insert("type".into(), "RollingUpdate".into());
        object(o, "rollingUpdate");
    }
    if o["type"] == "RollingUpdate"
        && let Some(Value::Object(rolling)) = o.get_mut("rollingUpdate")
    {
        fill(rolling, "partition", 0);
    }
}

fn autoscaler(o: &mut Object) {
    if blank(o.get("metrics")) {
        let target = json!({ "type": "Utilization", "averageUtilization": 80 });
        o.insert(
            "metrics".into(),
            json!([{ "type": "Resource", "resource": { "name": "cpu", "target": target } }]),
        );
    }
    if let Some(Value::Object(behavior)) = o.get_mut("behavior") {
        let percent = |seconds: i64| json!({ "type": "Percent", "value": 100, "periodSeconds": seconds });
        let up = object(behavior, "scaleUp");
        fill(up, "stabilizationWindowSeconds", 0);
        fill(up, "selectPolicy", "Max");
        fill(up, "policies", json!([{ "type": "Pods", "value": 4, "periodSeconds": 15 }, percent(15)]));
        let down = object(behavior, "scaleDown");
        fill(down, "selectPolicy", "Max");
        fill(down, "policies", json!([percent(15)]));
    }
}

/// A pod's own defaults: those that its template in a workload does not get.
fn pod(spec: &mut Object) {
    fill(spec, "enableServiceLinks", true);
    let host_network = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for key in ["containers", "initContainers"] {
        let Some(Value::Array(containers)) = spec.get_mut(key) else { continue };
        for container in containers.iter_mut().filter_map(Value::as_object_mut) {
            requests_from_limits(container);
            let Some(Value::Array(ports)) = container.get_mut("ports") else { continue };
            for port in ports.iter_mut().filter_map(Value::as_object_mut).filter(|_| host_network) {
                let number = port.get("containerPort").cloned().unwrap_or(json!(0));
                fill(port, "hostPort", number);
            }
        }
    }
}

fn requests_from_limits(container: &mut Object) {
    let Some(Value::Object(resources)) = container.get_mut("resources") else { return };
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { return };
    let requests = object(resources, "requests");
    for (name, amount) in limits {
        requests.entry(name).or_insert(amount);
    }
}

fn template_labels(o: &Object) -> Option<Map<String, Value>> {
    o.get("spec")?.reach("/template/metadata/labels")?.as_object().cloned()
}

pub(crate) fn labels_from_template(o: &mut Object) {
    if let Some(labels) = template_labels(o) {
        let own = object(object(o, "metadata"), "labels");
        if own.is_empty() {
            *own = labels;
        }
    }
}

fn job(o: &mut Object) {
    labels_from_template(o);
    let spec = object(o, "spec");
    if !spec.contains_key("parallelism") {
        fill(spec, "completions", 1);
        spec.insert("parallelism".into(), json!(1));
    }
    let backoff = if spec.contains_key("backoffLimitPerIndex") { i32::MAX } else { 6 };
    fill(spec, "backoffLimit", backoff);
    fill(spec, "completionMode", "NonIndexed");
    fill(spec, "suspend", false);
    let replacement = if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    fill(spec, "podReplacementPolicy", replacement);
    fill(spec, "manualSelector", false);
}

fn replication_controller(o: &mut Object) {
    if let Some(labels) = template_labels(o) {
        let selector = object(object(o, "spec"), "selector");
        if selector.is_empty() {
            *selector = labels;
        }
    }
    labels_from_template(o);
}

/// Every namespace carries its name as a label, so that selectors can name it.
pub(crate) fn name_label(o: &mut Object) {
    let metadata = object(o, "metadata");
    let name = metadata.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !name.is_empty() {
        object(metadata, "labels").insert("kubernetes.io/metadata.name".into(), name.into());
    }
}

fn crd(o: &mut Object) {
    let spec = object(o, "spec");
    let names = object(spec, "names");
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !kind.is_empty() {
        fill(names, "singular", kind.to_lowercase());
        fill(names, "listKind", format!("{kind}List"));
    }
    let storage = stored_version(spec);
    let status = object(o, "status");
    if blank(status.get("storedVersions")) {
        status.insert("storedVersions".into(), json!(storage.as_slice()));
    }
}

/// The version that a CRD's objects are stored in.
pub(crate) fn stored_version(spec: &Object) -> Option<String> {
    let versions = spec.get("versions")?.as_array()?;
    let storage = versions.iter().find(|v| v.get("storage") == Some(&Value::Bool(true)))?;
    Some(text(storage, "/name").to_owned())
}
