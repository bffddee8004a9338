//! The cells of every kind but the pod.

use super::age::{age, human};
use super::pod::is_true;
use crate::form::quantity;
use crate::json::{entries, int, list, text};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The text, or another where it is empty.
pub(super) fn or(text: &str, otherwise: &str) -> Value {
    Value::from(if text.is_empty() { otherwise } else { text })
}

pub(super) fn cells(kind: &str, obj: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let t = |pointer: &str| Value::from(text(obj, pointer));
    let n = |pointer: &str| Value::from(int(obj, pointer));
    let count = |pointer: &str| entries(obj, pointer).count();
    let name = t("/metadata/name");
    let aged = json!(age(text(obj, "/metadata/creationTimestamp"), now));
    let (containers, images) = containers(obj, kind);
    let selector = || json!(selector(obj.pointer("/spec/selector")));
    match kind {
        "PodTemplate" => vec![name, containers, images, json!(labels(obj, "/template/metadata/labels"))],
        "PodDisruptionBudget" => {
            let amount = |pointer: &str| obj.pointer(pointer).map_or("N/A".into(), plain);
            vec![
                name,
                json!(amount("/spec/minAvailable")),
                json!(amount("/spec/maxUnavailable")),
                n("/status/disruptionsAllowed"),
                aged,
            ]
        }
        "ReplicationController" => {
            let (desired, current, ready) =
                (n("/spec/replicas"), n("/status/replicas"), n("/status/readyReplicas"));
            vec![
                name,
                desired,
                current,
                ready,
                aged,
                containers,
                images,
                json!(labels(obj, "/spec/selector")),
            ]
        }
        "ReplicaSet" => {
            let (desired, current, ready) =
                (n("/spec/replicas"), n("/status/replicas"), n("/status/readyReplicas"));
            vec![name, desired, current, ready, aged, containers, images, selector()]
        }
        "DaemonSet" => vec![
            name,
            n("/status/desiredNumberScheduled"),
            n("/status/currentNumberScheduled"),
            n("/status/numberReady"),
            n("/status/updatedNumberScheduled"),
            n("/status/numberAvailable"),
            json!(labels(obj, "/spec/template/spec/nodeSelector")),
            aged,
            containers,
            images,
            selector(),
        ],
        "Deployment" => {
            let (updated, available) = (n("/status/updatedReplicas"), n("/status/availableReplicas"));
            vec![
                name,
                ready_of(obj),
                updated,
                available,
                aged,
                containers,
                images,
                json!(requirements(obj.pointer("/spec/selector"))),
            ]
        }
        "StatefulSet" => vec![name, ready_of(obj), aged, containers, images],
        "Job" => {
            let duration = json!(job_duration(obj, now));
            vec![
                name,
                json!(job_status(obj)),
                json!(completions(obj)),
                duration,
                aged,
                containers,
                images,
                selector(),
            ]
        }
        "CronJob" => {
            let last = text(obj, "/status/lastScheduleTime");
            let last = if last.is_empty() { "<none>".into() } else { age(last, now) };
            let suspend = match obj.pointer("/spec/suspend") {
                Some(Value::Bool(true)) => "True",
                Some(Value::Bool(false)) => "False",
                _ => "<unset>",
            };
            let (schedule, zone) = (t("/spec/schedule"), or(text(obj, "/spec/timeZone"), "<none>"));
            let active = json!(list(obj, "/status/active").len());
            let matches = json!(self::selector(obj.pointer("/spec/jobTemplate/spec/selector")));
            vec![name, schedule, zone, json!(suspend), active, json!(last), aged, containers, images, matches]
        }
        "Service" => vec![
            name,
            t("/spec/type"),
            or(text(obj, "/spec/clusterIPs/0"), "<none>"),
            json!(external_ip(obj)),
            json!(service_ports(obj)),
            aged,
            json!(labels(obj, "/spec/selector")),
        ],
        "Ingress" => {
            let ports = if list(obj, "/spec/tls").is_empty() { "80" } else { "80, 443" };
            let class = or(text(obj, "/spec/ingressClassName"), "<none>");
            vec![name, class, json!(hosts(obj)), json!(load_balancer(obj)), json!(ports), aged]
        }
        "IngressClass" => {
            let default = text(obj, "/metadata/annotations/ingressclass.kubernetes.io~1is-default-class");
            let parameters = obj.pointer("/spec/parameters").map_or("<none>".into(), |p| {
                let group = text(p, "/apiGroup");
                let dot = if group.is_empty() { "" } else { "." };
                format!("{}{dot}{group}/{}", text(p, "/kind"), text(p, "/name"))
            });
            vec![marked_default(obj, default == "true"), t("/spec/controller"), json!(parameters), aged]
        }
        "NetworkPolicy" => vec![name, json!(self::selector(obj.pointer("/spec/podSelector"))), aged],
        "Endpoints" => vec![name, json!(endpoints(obj)), aged],
        "EndpointSlice" => {
            let port = |p: &Value| match (p.get("port"), text(p, "/name")) {
                (Some(port), _) => plain(port),
                (None, "") if p.get("name").is_none() => "*".into(),
                (None, name) => name.to_owned(),
            };
            let ports = list(obj, "/ports").iter().map(port).collect();
            let addresses =
                list(obj, "/endpoints").iter().flat_map(|e| list(e, "/addresses")).map(plain).collect();
            vec![name, t("/addressType"), json!(up_to_three(ports)), json!(up_to_three(addresses)), aged]
        }
        "Node" => node(obj, &aged),
        "Event" => event(obj, now),
        "Namespace" => vec![name, t("/status/phase"), aged],
        "Secret" => vec![name, t("/type"), json!(count("/data")), aged],
        "ConfigMap" => vec![name, json!(count("/data") + count("/binaryData")), aged],
        "ServiceAccount" => vec![name, aged],
        "PersistentVolume" => volume(obj, aged),
        "PersistentVolumeClaim" => claim(obj, aged),
        "StorageClass" => {
            let default = |group: &str| {
                text(obj, &format!("/metadata/annotations/{group}~1is-default-class")) == "true"
            };
            let default = default("storageclass.kubernetes.io") || default("storageclass.beta.kubernetes.io");
            vec![
                marked_default(obj, default),
                t("/provisioner"),
                or(text(obj, "/reclaimPolicy"), "Delete"),
                or(text(obj, "/volumeBindingMode"), "Immediate"),
                flag(obj, "/allowVolumeExpansion", false),
                aged,
            ]
        }
        "VolumeAttributesClass" => vec![name, t("/driverName"), aged],
        "VolumeAttachment" => vec![
            name,
            t("/spec/attacher"),
            t("/spec/source/persistentVolumeName"),
            t("/spec/nodeName"),
            flag(obj, "/status/attached", false),
            aged,
        ],
        "CSIDriver" => {
            let tokens = obj.pointer("/spec/tokenRequests").map_or("<unset>".into(), |_| {
                join(list(obj, "/spec/tokenRequests").iter().map(|r| text(r, "/audience")), ",")
            });
            let modes = join(list(obj, "/spec/volumeLifecycleModes").iter().filter_map(Value::as_str), ",");
            vec![
                name,
                flag(obj, "/spec/attachRequired", true),
                flag(obj, "/spec/podInfoOnMount", false),
                flag(obj, "/spec/storageCapacity", false),
                json!(tokens),
                flag(obj, "/spec/requiresRepublish", false),
                or(&modes, "<none>"),
                aged,
            ]
        }
        "CSINode" => vec![name, json!(list(obj, "/spec/drivers").len()), aged],
        "CSIStorageCapacity" => vec![name, t("/storageClassName"), or(text(obj, "/capacity"), "<unset>")],
        "RoleBinding" | "ClusterRoleBinding" => {
            let role = format!("{}/{}", text(obj, "/roleRef/kind"), text(obj, "/roleRef/name"));
            vec![
                name,
                json!(role),
                aged,
                subjects(obj, "User"),
                subjects(obj, "Group"),
                subjects(obj, "ServiceAccount"),
            ]
        }
        "Lease" => vec![name, t("/spec/holderIdentity"), aged],
        "PriorityClass" => {
            vec![name, n("/value"), flag(obj, "/globalDefault", false), aged, t("/preemptionPolicy")]
        }
        "ControllerRevision" => vec![name, json!(controller(obj)), n("/revision"), aged],
        "ResourceQuota" => {
            let (request, limit) = quota(obj);
            vec![name, json!(request), json!(limit), aged]
        }
        "HorizontalPodAutoscaler" => {
            let target = format!(
                "{}/{}",
                text(obj, "/spec/scaleTargetRef/kind"),
                text(obj, "/spec/scaleTargetRef/name")
            );
            let least = obj.pointer("/spec/minReplicas").map_or("<unset>".into(), plain);
            let (most, current) = (n("/spec/maxReplicas"), n("/status/currentReplicas"));
            vec![name, json!(target), json!(metrics(obj)), json!(least), most, current, aged]
        }
        _ => vec![name, t("/metadata/creationTimestamp")],
    }
}

fn plain(v: &Value) -> String {
    v.as_str().map_or_else(|| v.to_string(), str::to_owned)
}

fn join<'a>(items: impl Iterator<Item = &'a str>, between: &str) -> String {
    items.collect::<Vec<_>>().join(between)
}

fn flag(obj: &Value, pointer: &str, otherwise: bool) -> Value {
    obj.pointer(pointer).and_then(Value::as_bool).unwrap_or(otherwise).into()
}

fn marked_default(obj: &Value, default: bool) -> Value {
    format!("{}{}", text(obj, "/metadata/name"), if default { " (default)" } else { "" }).into()
}

fn ready_of(obj: &Value) -> Value {
    format!("{}/{}", int(obj, "/status/readyReplicas"), int(obj, "/spec/replicas")).into()
}

/// The names and images of a workload's containers.
fn containers(obj: &Value, kind: &str) -> (Value, Value) {
    let pointer = match kind {
        "PodTemplate" => "/template/spec/containers",
        "CronJob" => "/spec/jobTemplate/spec/template/spec/containers",
        _ => "/spec/template/spec/containers",
    };
    let list = list(obj, pointer);
    let all = |key| Value::from(join(list.iter().map(|c| text(c, key)), ","));
    (all("/name"), all("/image"))
}

/// `a=b,c=d`, or `<none>`.
fn labels(obj: &Value, pointer: &str) -> String {
    let pairs: Vec<String> =
        entries(obj, pointer).map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default())).collect();
    if pairs.is_empty() { "<none>".into() } else { pairs.join(",") }
}

/// A label selector in its short form; `<none>` selects everything or nothing.
fn selector(selector: Option<&Value>) -> String {
    let text = requirements(selector);
    if text.is_empty() { "<none>".into() } else { text }
}

fn requirements(selector: Option<&Value>) -> String {
    let Some(selector) = selector else { return String::new() };
    let mut terms: Vec<(String, String)> = entries(selector, "/matchLabels")
        .map(|(k, v)| (k.to_owned(), format!("{k}={}", v.as_str().unwrap_or_default())))
        .collect();
    for e in list(selector, "/matchExpressions") {
        let key = text(e, "/key");
        let values: BTreeSet<&str> = list(e, "/values").iter().filter_map(Value::as_str).collect();
        let values = join(values.into_iter(), ",");
        let term = match text(e, "/operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => continue,
        };
        terms.push((key.to_owned(), term));
    }
    terms.sort_by(|a, b| a.0.cmp(&b.0));
    join(terms.iter().map(|(_, t)| t.as_str()), ",")
}

fn completions(obj: &Value) -> String {
    let succeeded = int(obj, "/status/succeeded");
    match (obj.pointer("/spec/completions"), int(obj, "/spec/parallelism")) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn job_status(obj: &Value) -> &'static str {
    let has = |name: &str| is_true(list(obj, "/status/conditions"), name);
    if has("Complete") {
        "Complete"
    } else if has("Failed") {
        "Failed"
    } else if obj.pointer("/metadata/deletionTimestamp").is_some() {
        "Terminating"
    } else {
        ["Suspended", "FailureTarget", "SuccessCriteriaMet"].into_iter().find(|c| has(c)).unwrap_or("Running")
    }
}

fn job_duration(obj: &Value, now: jiff::Timestamp) -> String {
    let Ok(start) = text(obj, "/status/startTime").parse::<jiff::Timestamp>() else { return String::new() };
    let end = text(obj, "/status/completionTime").parse().unwrap_or(now);
    human(end.as_second() - start.as_second())
}

fn load_balancer(obj: &Value) -> String {
    let address = |i: &Value| {
        let ip = text(i, "/ip");
        (if ip.is_empty() { text(i, "/hostname") } else { ip }).to_owned()
    };
    let found: BTreeSet<String> = list(obj, "/status/loadBalancer/ingress").iter().map(address).collect();
    join(found.iter().map(String::as_str).filter(|a| !a.is_empty()), ",")
}

fn external_ip(obj: &Value) -> String {
    let external = join(list(obj, "/spec/externalIPs").iter().filter_map(Value::as_str), ",");
    let or_none = |s: String| if s.is_empty() { "<none>".to_owned() } else { s };
    match text(obj, "/spec/type") {
        "ClusterIP" | "NodePort" => or_none(external),
        "LoadBalancer" => {
            let both =
                join([load_balancer(obj).as_str(), &external].into_iter().filter(|s| !s.is_empty()), ",");
            if both.is_empty() { "<pending>".into() } else { both }
        }
        "ExternalName" => text(obj, "/spec/externalName").to_owned(),
        _ => "<unknown>".into(),
    }
}

fn service_ports(obj: &Value) -> String {
    let show = |p: &Value| {
        let (port, protocol) = (int(p, "/port"), text(p, "/protocol"));
        match int(p, "/nodePort") {
            0 => format!("{port}/{protocol}"),
            node => format!("{port}:{node}/{protocol}"),
        }
    };
    let all: Vec<String> = list(obj, "/spec/ports").iter().map(show).collect();
    if all.is_empty() { "<none>".into() } else { all.join(",") }
}

fn hosts(obj: &Value) -> String {
    let rules = list(obj, "/spec/rules");
    let named: Vec<&str> = rules.iter().map(|r| text(r, "/host")).filter(|h| !h.is_empty()).collect();
    match named.len() {
        0 => "*".into(),
        1..=3 => named.join(","),
        _ => format!("{} + {} more...", named[..3].join(","), rules.len() - 3),
    }
}

fn endpoints(obj: &Value) -> String {
    let mut all = Vec::new();
    for subset in list(obj, "/subsets") {
        let addresses = || list(subset, "/addresses").iter().map(|a| text(a, "/ip"));
        let ports = list(subset, "/ports");
        if ports.is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in ports.iter().map(|p| int(p, "/port")) {
            all.extend(
                addresses().map(|ip| {
                    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
                }),
            );
        }
    }
    match (list(obj, "/subsets").is_empty(), all.len()) {
        (true, _) => "<none>".into(),
        (false, 0..=3) => all.join(","),
        (false, n) => format!("{} + {} more...", all[..3].join(","), n - 3),
    }
}

fn up_to_three(all: Vec<String>) -> String {
    match all.len() {
        0 => "<unset>".into(),
        1..=3 => all.join(","),
        n => format!("{} + {} more...", all[..3].join(","), n - 3),
    }
}

fn node(obj: &Value, aged: &Value) -> Vec<Value> {
    let ready = list(obj, "/status/conditions").iter().find(|c| text(c, "/type") == "Ready");
    let mut status = match ready.map(|c| text(c, "/status")) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if obj.pointer("/spec/unschedulable") == Some(&Value::Bool(true)) {
        status.push_str(",SchedulingDisabled");
    }
    let roles: BTreeSet<&str> = entries(obj, "/metadata/labels")
        .filter_map(|(k, v)| match k.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if k == "kubernetes.io/role" => v.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    let address = |kind: &str| {
        let found = list(obj, "/status/addresses").iter().find(|a| text(a, "/type") == kind);
        or(found.map_or("", |a| text(a, "/address")), "<none>")
    };
    let info = |key: &str| text(obj, &format!("/status/nodeInfo/{key}"));
    let mut kernel = plain(&or(info("kernelVersion"), "<unknown>"));
    if !info("architecture").is_empty() {
        kernel = format!("{kernel} ({})", info("architecture"));
    }
    vec![
        text(obj, "/metadata/name").into(),
        status.into(),
        or(&join(roles.into_iter(), ","), "<none>"),
        aged.clone(),
        info("kubeletVersion").into(),
        address("InternalIP"),
        address("ExternalIP"),
        or(info("osImage"), "<unknown>"),
        kernel.into(),
        or(info("containerRuntimeVersion"), "<unknown>"),
    ]
}

fn event(obj: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let core;
    let obj = if obj.get("regarding").is_some() {
        let mut copy = obj.clone();
        crate::events_v1_to_core(&mut copy);
        core = copy;
        &core
    } else {
        obj
    };
    let first_of = |a: &'static str, b: &'static str| {
        let first = text(obj, a);
        if first.is_empty() { text(obj, b) } else { first }
    };
    let first = age(first_of("/firstTimestamp", "/eventTime"), now);
    let mut last = if text(obj, "/lastTimestamp").is_empty() {
        first.clone()
    } else {
        age(text(obj, "/lastTimestamp"), now)
    };
    let mut count = int(obj, "/count").max(1);
    if let Some(series) = obj.get("series") {
        last = age(text(series, "/lastObservedTime"), now);
        count = int(series, "/count");
    }
    let (kind, name) = (text(obj, "/involvedObject/kind").to_lowercase(), text(obj, "/involvedObject/name"));
    let target = if name.is_empty() { kind } else { format!("{kind}/{name}") };
    let component = first_of("/source/component", "/reportingComponent");
    let instance = first_of("/source/host", "/reportingInstance");
    let source = if instance.is_empty() { component.to_owned() } else { format!("{component}, {instance}") };
    vec![
        last.into(),
        text(obj, "/type").into(),
        text(obj, "/reason").into(),
        target.into(),
        text(obj, "/involvedObject/fieldPath").into(),
        source.into(),
        text(obj, "/message").trim().into(),
        first.into(),
        count.into(),
        text(obj, "/metadata/name").into(),
    ]
}

fn access_modes(obj: &Value, pointer: &str) -> Value {
    let modes = list(obj, pointer);
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let has = |mode: &str| modes.iter().any(|m| m == mode);
    join(short.into_iter().filter(|(mode, _)| has(mode)).map(|(_, s)| s), ",").into()
}

fn storage(obj: &Value, pointer: &str) -> Value {
    let amount = obj.pointer(pointer).map(plain).unwrap_or_default();
    quantity(&amount).unwrap_or_else(|| "0".into()).into()
}

fn class(obj: &Value) -> Value {
    let old = obj.pointer("/metadata/annotations/volume.beta.kubernetes.io~1storage-class");
    old.or_else(|| obj.pointer("/spec/storageClassName")).map_or("".into(), Clone::clone)
}

fn phase(obj: &Value) -> Value {
    let deleted = obj.pointer("/metadata/deletionTimestamp").is_some();
    (if deleted { "Terminating" } else { text(obj, "/status/phase") }).into()
}

fn unset(obj: &Value, pointer: &str) -> Value {
    obj.pointer(pointer).map_or("<unset>".into(), Clone::clone)
}

fn volume(obj: &Value, aged: Value) -> Vec<Value> {
    let claim = obj
        .pointer("/spec/claimRef")
        .map_or(String::new(), |c| format!("{}/{}", text(c, "/namespace"), text(c, "/name")));
    vec![
        text(obj, "/metadata/name").into(),
        storage(obj, "/spec/capacity/storage"),
        access_modes(obj, "/spec/accessModes"),
        text(obj, "/spec/persistentVolumeReclaimPolicy").into(),
        phase(obj),
        claim.into(),
        class(obj),
        unset(obj, "/spec/volumeAttributesClassName"),
        text(obj, "/status/reason").into(),
        aged,
        unset(obj, "/spec/volumeMode"),
    ]
}

fn claim(obj: &Value, aged: Value) -> Vec<Value> {
    let bound = !text(obj, "/spec/volumeName").is_empty();
    vec![
        text(obj, "/metadata/name").into(),
        phase(obj),
        text(obj, "/spec/volumeName").into(),
        if bound { storage(obj, "/status/capacity/storage") } else { "".into() },
        if bound { access_modes(obj, "/status/accessModes") } else { "".into() },
        class(obj),
        unset(obj, "/spec/volumeAttributesClassName"),
        aged,
        unset(obj, "/spec/volumeMode"),
    ]
}

fn subjects(obj: &Value, kind: &str) -> Value {
    let show = |s: &Value| match (kind, text(s, "/namespace")) {
        ("ServiceAccount", namespace) if !namespace.is_empty() => format!("{namespace}/{}", text(s, "/name")),
        _ => text(s, "/name").to_owned(),
    };
    let all: Vec<String> =
        list(obj, "/subjects").iter().filter(|s| text(s, "/kind") == kind).map(show).collect();
    all.join(", ").into()
}

fn controller(obj: &Value) -> String {
    let owners = list(obj, "/metadata/ownerReferences");
    let Some(owner) = owners.iter().find(|o| o.get("controller") == Some(&Value::Bool(true))) else {
        return "<none>".into();
    };
    let group = text(owner, "/apiVersion").split_once('/').map_or("", |(group, _)| group);
    let dot = if group.is_empty() { "" } else { "." };
    let kind = format!("{}{dot}{group}", text(owner, "/kind")).to_lowercase();
    format!("{kind}/{}", text(owner, "/name"))
}

fn quota(obj: &Value) -> (String, String) {
    let (mut request, mut limit) = (Vec::new(), Vec::new());
    for (resource, hard) in entries(obj, "/status/hard") {
        let used = obj.pointer("/status/used").and_then(|u| u.get(resource)).map_or("0".into(), plain);
        let entry = format!("{resource}: {used}/{}", plain(hard));
        if resource.starts_with("limits.") { limit.push(entry) } else { request.push(entry) }
    }
    (request.join(", "), limit.join(", "))
}

/// The targets of an autoscaler with their current values, where they are known.
fn metrics(obj: &Value) -> String {
    let specs = list(obj, "/spec/metrics");
    let show = |(i, spec): (usize, &Value)| {
        let kind = text(spec, "/type");
        let key = match kind {
            "External" => "external",
            "Pods" => "pods",
            "Object" => "object",
            "Resource" => "resource",
            "ContainerResource" => "containerResource",
            _ => return "<unknown type>".into(),
        };
        let current =
            list(obj, "/status/currentMetrics").get(i).and_then(|m| m.pointer(&format!("/{key}/current")));
        let target = spec.pointer(&format!("/{key}/target"));
        let amount = |v: Option<&Value>, field: &str| v.and_then(|v| v.get(field)).map(plain);
        let unknown = || "<unknown>".to_owned();
        let of_resource = key == "resource" || key == "containerResource";
        let shown = if let Some(wanted) = amount(target, "averageValue") {
            let average = if of_resource || key == "pods" { "" } else { " (avg)" };
            format!("{}/{wanted}{average}", amount(current, "averageValue").unwrap_or_else(unknown))
        } else if of_resource {
            let percent =
                |v: Option<String>, otherwise: &str| v.map_or(otherwise.to_owned(), |v| format!("{v}%"));
            let now = percent(amount(current, "averageUtilization"), "<unknown>");
            format!("{now}/{}", percent(amount(target, "averageUtilization"), "<auto>"))
        } else {
            let wanted = amount(target, "value").unwrap_or_default();
            format!("{}/{wanted}", amount(current, "value").unwrap_or_else(unknown))
        };
        let name = text(spec, &format!("/{key}/name"));
        if of_resource { format!("{name}: {shown}") } else { shown }
    };
    let all: Vec<String> = specs.iter().enumerate().map(show).collect();
    match all.len() {
        0 => "<none>".into(),
        1..=2 => all.join(", "),
        n => format!("{} + {} more...", all[..2].join(", "), n - 2),
    }
}
