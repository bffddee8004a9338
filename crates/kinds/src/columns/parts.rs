//! Cells that take some putting together: services, endpoints, nodes, events, quotas, autoscalers.

use super::age::age;
use super::cells::{join, or, plain};
use crate::json::{entries, int, list, text};
use lifeboat_schema::Reach;
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn load_balancer(obj: &Value) -> String {
    let address = |i: &Value| {
        let ip = text(i, "/ip");
        (if ip.is_empty() { text(i, "/hostname") } else { ip }).to_owned()
    };
    let found: BTreeSet<String> = list(obj, "/status/loadBalancer/ingress").iter().map(address).collect();
    join(found.iter().map(String::as_str).filter(|a| !a.is_empty()), ",")
}

pub(super) fn external_ip(obj: &Value) -> String {
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

pub(super) fn service_ports(obj: &Value) -> String {
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

pub(super) fn hosts(obj: &Value) -> String {
    let rules = list(obj, "/spec/rules");
    let named: Vec<&str> = rules.iter().map(|r| text(r, "/host")).filter(|h| !h.is_empty()).collect();
    match named.len() {
        0 => "*".into(),
        1..=3 => named.join(","),
        _ => format!("{} + {} more...", named[..3].join(","), rules.len() - 3),
    }
}

pub(super) fn endpoints(obj: &Value) -> String {
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

pub(super) fn up_to_three(all: &[String]) -> String {
    match all.len() {
        0 => "<unset>".into(),
        1..=3 => all.join(","),
        n => format!("{} + {} more...", all[..3].join(","), n - 3),
    }
}

pub(super) fn node(obj: &Value, aged: &Value) -> Vec<Value> {
    let ready = list(obj, "/status/conditions").iter().find(|c| text(c, "/type") == "Ready");
    let mut status = match ready.map(|c| text(c, "/status")) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if obj.reach("/spec/unschedulable") == Some(&Value::Bool(true)) {
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

pub(super) fn event(obj: &Value, now: jiff::Timestamp) -> Vec<Value> {
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

pub(super) fn subjects(obj: &Value, kind: &str) -> Value {
    let show = |s: &Value| match (kind, text(s, "/namespace")) {
        ("ServiceAccount", namespace) if !namespace.is_empty() => format!("{namespace}/{}", text(s, "/name")),
        _ => text(s, "/name").to_owned(),
    };
    let all: Vec<String> =
        list(obj, "/subjects").iter().filter(|s| text(s, "/kind") == kind).map(show).collect();
    all.join(", ").into()
}

pub(super) fn quota(obj: &Value) -> (String, String) {
    let (mut request, mut limit) = (Vec::new(), Vec::new());
    for (resource, hard) in entries(obj, "/status/hard") {
        let used = obj.reach("/status/used").and_then(|u| u.get(resource)).map_or("0".into(), plain);
        let entry = format!("{resource}: {used}/{}", plain(hard));
        if resource.starts_with("limits.") { limit.push(entry) } else { request.push(entry) }
    }
    (request.join(", "), limit.join(", "))
}

/// The targets of an autoscaler with their current values, where they are known.
pub(super) fn metrics(obj: &Value) -> String {
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
            list(obj, "/status/currentMetrics").get(i).and_then(|m| m.reach(&format!("/{key}/current")));
        let target = spec.reach(&format!("/{key}/target"));
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
