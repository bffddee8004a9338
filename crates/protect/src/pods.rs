//! Pods that use an application's PVCs, as facts: read once, at the edge. Whether they are ready is what people mean by "the application runs".

use crate::words::Words as _;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};

/// A pod that uses a PVC and is not being deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsingPod {
    /// Its name.
    pub name: String,
    /// Whether Kubernetes calls it ready, or what keeps it.
    pub ready: Result<(), String>,
}

impl UsingPod {
    /// Reads a pod.
    pub fn of(pod: &Pod) -> Self {
        Self { name: pod.name().to_owned(), ready: ready(pod) }
    }
}

fn ready(pod: &Pod) -> Result<(), String> {
    let status = pod.status.clone().unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let of_type = |type_: &str| conditions.iter().find(|one| one.type_ == type_);
    if of_type("Ready").is_some_and(|one| one.status == "True") {
        return Ok(());
    }
    let started = [status.init_container_statuses, status.container_statuses];
    let stopped = started.iter().flatten().flatten().find_map(stopped);
    let unmet = ["PodScheduled", "Initialized", "ContainersReady", "Ready"];
    let unmet = unmet.iter().find_map(|type_| of_type(type_).filter(|one| one.status != "True")).map(said);
    Err(stopped.or(unmet).unwrap_or_else(|| status.phase.unwrap_or_else(|| "Pending".to_owned())))
}

/// Why a container does not run, in kubelet's words.
fn stopped(container: &ContainerStatus) -> Option<String> {
    let state = container.state.as_ref()?;
    let waiting = state.waiting.as_ref().map(|one| (one.reason.as_deref(), one.message.as_deref()));
    // A container that ended well is an init container that is done.
    let failed = state.terminated.as_ref().filter(|one| one.exit_code != 0);
    let failed = failed.map(|one| (one.reason.as_deref(), one.message.as_deref()));
    let (reason, message) = waiting.or(failed)?;
    Some(joined(reason.unwrap_or("Waiting"), message))
}

fn said(condition: &PodCondition) -> String {
    joined(condition.reason.as_deref().unwrap_or(&condition.type_), condition.message.as_deref())
}

fn joined(reason: &str, message: Option<&str>) -> String {
    match message.filter(|text| !text.is_empty()) {
        Some(message) => format!("{reason}: {message}"),
        None => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_pod_that_is_not_ready_says_why_in_kubelets_words() {
        let check = |status: Value, expected: Result<(), &str>| {
            let pod = json!({"metadata": {"name": "web-0"}, "status": status});
            let pod: Pod = serde_json::from_value(pod).unwrap();
            assert_eq!(UsingPod::of(&pod).ready, expected.map_err(str::to_owned), "{status}");
        };
        let ready = json!([{"type": "Ready", "status": "True"}]);
        check(json!({"phase": "Running", "conditions": ready}), Ok(()));
        check(json!({}), Err("Pending"));
        check(json!({"phase": "Running"}), Err("Running"));
        let unscheduled = json!([
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"},
        ]);
        check(json!({"phase": "Pending", "conditions": unscheduled}), Err("Unschedulable: 0/1 nodes"));
        let waiting = json!([{
            "name": "main", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"waiting": {"reason": "CreateContainerError", "message": "no volume"}},
        }]);
        let unready = json!([
            {"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "unready: [main]"},
        ]);
        check(
            json!({"phase": "Pending", "conditions": unready, "containerStatuses": waiting}),
            Err("CreateContainerError: no volume"),
        );
        let ended = json!([{
            "name": "setup", "image": "", "imageID": "", "ready": true, "restartCount": 0,
            "state": {"terminated": {"exitCode": 0, "reason": "Completed"}},
        }]);
        check(
            json!({"phase": "Running", "conditions": unready, "initContainerStatuses": ended}),
            Err("ContainersNotReady: unready: [main]"),
        );
    }
}
