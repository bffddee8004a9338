//! The cells of a pod: its status is summed up from those of its containers.

use super::age::age;
use super::cells::or;
use crate::json::{int, list, text};
use lifeboat_schema::Reach;
use serde_json::{Value, json};

pub(super) fn cells(obj: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let summary = summarize(obj);
    let mut restarts = summary.restarts.to_string();
    if summary.restarts != 0 && !summary.last_restart.is_empty() {
        restarts = format!("{restarts} ({} ago)", age(&summary.last_restart, now));
    }
    vec![
        json!(text(obj, "/metadata/name")),
        json!(format!("{}/{}", summary.ready, summary.total)),
        json!(summary.reason),
        json!(restarts),
        json!(age(text(obj, "/metadata/creationTimestamp"), now)),
        or(text(obj, "/status/podIPs/0/ip"), "<none>"),
        or(text(obj, "/spec/nodeName"), "<none>"),
        or(text(obj, "/status/nominatedNodeName"), "<none>"),
        json!(readiness_gates(obj)),
    ]
}

struct Summary {
    reason: String,
    restarts: i64,
    /// When a container ended last; RFC 3339 in UTC sorts as text.
    last_restart: String,
    ready: usize,
    total: usize,
}

impl Summary {
    fn count_restarts(&mut self, status: &Value) {
        self.restarts += int(status, "/restartCount");
        let ended = text(status, "/lastState/terminated/finishedAt");
        if ended > self.last_restart.as_str() {
            ended.clone_into(&mut self.last_restart);
        }
    }
}

fn summarize(obj: &Value) -> Summary {
    let phase = text(obj, "/status/phase");
    let mut reason = phase;
    if !text(obj, "/status/reason").is_empty() {
        reason = text(obj, "/status/reason");
    }
    let conditions = list(obj, "/status/conditions");
    if conditions
        .iter()
        .any(|c| text(c, "/type") == "PodScheduled" && text(c, "/reason") == "SchedulingGated")
    {
        reason = "SchedulingGated";
    }
    let init = list(obj, "/spec/initContainers");
    let restartable =
        |name: &str| init.iter().any(|c| text(c, "/name") == name && text(c, "/restartPolicy") == "Always");
    let sidecars = init.iter().filter(|c| text(c, "/restartPolicy") == "Always").count();
    let mut all = Summary {
        reason: reason.to_owned(),
        restarts: 0,
        last_restart: String::new(),
        ready: 0,
        total: list(obj, "/spec/containers").len() + sidecars,
    };
    let mut running = Summary { reason: String::new(), last_restart: String::new(), ..all };
    let mut initializing = false;
    for (i, status) in list(obj, "/status/initContainerStatuses").iter().enumerate() {
        all.count_restarts(status);
        let sidecar = restartable(text(status, "/name"));
        if sidecar {
            running.count_restarts(status);
        }
        let terminated = status.reach("/state/terminated");
        if terminated.is_some_and(|t| int(t, "/exitCode") == 0) {
            continue;
        }
        if sidecar && status.get("started") == Some(&Value::Bool(true)) {
            all.ready += usize::from(status.get("ready") == Some(&Value::Bool(true)));
            continue;
        }
        let waiting = text(status, "/state/waiting/reason");
        all.reason = if let Some(t) = terminated {
            format!("Init:{}", ended(t))
        } else if !waiting.is_empty() && waiting != "PodInitializing" {
            format!("Init:{waiting}")
        } else {
            format!("Init:{i}/{}", init.len())
        };
        initializing = true;
        break;
    }
    if !initializing || is_true(conditions, "Initialized") {
        all.restarts = running.restarts;
        all.last_restart = running.last_restart;
        main_containers(obj, &mut all);
    }
    if obj.reach("/metadata/deletionTimestamp").is_some() {
        if text(obj, "/status/reason") == "NodeLost" {
            all.reason = "Unknown".into();
        } else if phase != "Succeeded" && phase != "Failed" {
            all.reason = "Terminating".into();
        }
    }
    all
}

fn main_containers(obj: &Value, all: &mut Summary) {
    let (mut running, mut failed) = (false, String::new());
    for status in list(obj, "/status/containerStatuses").iter().rev() {
        all.count_restarts(status);
        let waiting = text(status, "/state/waiting/reason");
        if !waiting.is_empty() {
            waiting.clone_into(&mut all.reason);
        } else if let Some(terminated) = status.reach("/state/terminated") {
            all.reason = ended(terminated);
            if int(terminated, "/exitCode") != 0 {
                failed.clone_from(&all.reason);
            }
        } else if status.get("ready") == Some(&Value::Bool(true)) && status.reach("/state/running").is_some()
        {
            running = true;
            all.ready += 1;
        }
    }
    if all.reason == "Completed" {
        if running && is_true(list(obj, "/status/conditions"), "Ready") {
            all.reason = "Running".into();
        } else if !failed.is_empty() {
            all.reason = failed;
        } else if running {
            all.reason = "NotReady".into();
        }
    }
}

/// Why a container ended.
fn ended(terminated: &Value) -> String {
    let (reason, signal) = (text(terminated, "/reason"), int(terminated, "/signal"));
    if !reason.is_empty() {
        reason.to_owned()
    } else if signal != 0 {
        format!("Signal:{signal}")
    } else {
        format!("ExitCode:{}", int(terminated, "/exitCode"))
    }
}

/// Whether a condition is there and true.
/// The condition of this type.
pub(super) fn condition<'a>(conditions: &'a [Value], name: &str) -> Option<&'a Value> {
    conditions.iter().find(|c| text(c, "/type") == name)
}

pub(super) fn is_true(conditions: &[Value], name: &str) -> bool {
    condition(conditions, name).is_some_and(|c| text(c, "/status") == "True")
}

fn readiness_gates(obj: &Value) -> String {
    let gates = list(obj, "/spec/readinessGates");
    if gates.is_empty() {
        return "<none>".into();
    }
    let conditions = list(obj, "/status/conditions");
    let open = gates.iter().filter(|g| is_true(conditions, text(g, "/conditionType"))).count();
    format!("{open}/{}", gates.len())
}
