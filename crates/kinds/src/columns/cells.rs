//! The cells of every kind but the pod: one arm each, with what it takes from elsewhere.

use super::age::{age, human};
use super::extensions;
use super::parts::{
    endpoints, event, external_ip, hosts, load_balancer, metrics, node, quota, service_ports, subjects,
    up_to_three,
};
use super::pod::is_true;
use super::storage::{claim, volume};
use crate::json::{entries, int, list, text};
use lifeboat_schema::Reach;
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
    let selector = || json!(selector(obj.reach("/spec/selector")));
    match kind {
        "PodTemplate" => vec![name, containers, images, json!(labels(obj, "/template/metadata/labels"))],
        "PodDisruptionBudget" => {
            let amount = |pointer: &str| obj.reach(pointer).map_or("N/A".into(), plain);
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
                json!(requirements(obj.reach("/spec/selector"))),
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
            let suspend = match obj.reach("/spec/suspend") {
                Some(Value::Bool(true)) => "True",
                Some(Value::Bool(false)) => "False",
                _ => "<unset>",
            };
            let (schedule, zone) = (t("/spec/schedule"), or(text(obj, "/spec/timeZone"), "<none>"));
            let active = json!(list(obj, "/status/active").len());
            let matches = json!(self::selector(obj.reach("/spec/jobTemplate/spec/selector")));
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
            let parameters = obj.reach("/spec/parameters").map_or("<none>".into(), |p| {
                let group = text(p, "/apiGroup");
                let dot = if group.is_empty() { "" } else { "." };
                format!("{}{dot}{group}/{}", text(p, "/kind"), text(p, "/name"))
            });
            vec![marked_default(obj, default == "true"), t("/spec/controller"), json!(parameters), aged]
        }
        "NetworkPolicy" => vec![name, json!(self::selector(obj.reach("/spec/podSelector"))), aged],
        "Endpoints" => vec![name, json!(endpoints(obj)), aged],
        "EndpointSlice" => {
            let port = |p: &Value| match (p.get("port"), text(p, "/name")) {
                (Some(port), _) => plain(port),
                (None, "") if p.get("name").is_none() => "*".into(),
                (None, name) => name.to_owned(),
            };
            let ports: Vec<String> = list(obj, "/ports").iter().map(port).collect();
            let addresses: Vec<String> =
                list(obj, "/endpoints").iter().flat_map(|e| list(e, "/addresses")).map(plain).collect();
            vec![name, t("/addressType"), json!(up_to_three(&ports)), json!(up_to_three(&addresses)), aged]
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
            let tokens = obj.reach("/spec/tokenRequests").map_or("<unset>".into(), |_| {
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
            let least = obj.reach("/spec/minReplicas").map_or("<unset>".into(), plain);
            let (most, current) = (n("/spec/maxReplicas"), n("/status/currentReplicas"));
            vec![name, json!(target), json!(metrics(obj)), json!(least), most, current, aged]
        }
        "APIService"
        | "CertificateSigningRequest"
        | "FlowSchema"
        | "PriorityLevelConfiguration"
        | "MutatingWebhookConfiguration"
        | "ValidatingWebhookConfiguration"
        | "ValidatingAdmissionPolicy"
        | "ValidatingAdmissionPolicyBinding"
        | "RuntimeClass" => extensions::cells(kind, obj, aged),
        _ => vec![name, t("/metadata/creationTimestamp")],
    }
}

pub(super) fn plain(v: &Value) -> String {
    v.as_str().map_or_else(|| v.to_string(), str::to_owned)
}

pub(super) fn join<'a>(items: impl Iterator<Item = &'a str>, between: &str) -> String {
    items.collect::<Vec<_>>().join(between)
}

fn flag(obj: &Value, pointer: &str, otherwise: bool) -> Value {
    obj.reach(pointer).and_then(Value::as_bool).unwrap_or(otherwise).into()
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

pub(super) fn requirements(selector: Option<&Value>) -> String {
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
    match (obj.reach("/spec/completions"), int(obj, "/spec/parallelism")) {
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
    } else if obj.reach("/metadata/deletionTimestamp").is_some() {
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
