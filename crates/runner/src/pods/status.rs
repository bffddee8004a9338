//! What people are told of a pod: phase, conditions and containers, as they are and not as they should be.

use super::decide::{Wait, World};
use crate::machine::{End, Process, State};
use crate::words::{set_condition, spec};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
    Pod, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lifeboat_engine::conditions::{Holds, whole_seconds};

/// What becomes of a container.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Container {
    /// It was never started.
    New,
    /// It ran under a runner that is gone.
    Lost { restarts: i32, again: bool },
    /// It runs.
    Runs(Process),
    /// It ended and is to be started now.
    Due { process: Process, in_a_row: u32 },
    /// It ended and is started later.
    Pauses { process: Process, due: Timestamp },
    /// It ended for good.
    Over(Process),
}

/// The status of a pod as its processes are now.
pub(super) fn status(
    world: &World,
    pod: &Pod,
    containers: &[(String, Container)],
    waits: Option<&Wait>,
    now: Timestamp,
) -> PodStatus {
    let mut shown = pod.status.clone().unwrap_or_default();
    let known = shown.container_statuses.take().unwrap_or_default();
    let wanted = spec(pod).map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let refused = waits.map(why_waiting).or_else(|| {
        let trouble = world.trouble.as_ref().filter(|trouble| trouble.effect == "Start")?;
        Some(("CreateContainerError".to_owned(), trouble.message.clone()))
    });
    let statuses: Vec<ContainerStatus> = wanted
        .iter()
        .map(|one| {
            let before = known.iter().find(|status| status.name == one.name);
            let now = containers.iter().find(|(name, _)| *name == one.name).map(|(_, now)| now);
            let mut status = container(now.unwrap_or(&Container::New), before, refused.as_ref());
            status.name.clone_from(&one.name);
            status.image = one.image.clone().unwrap_or_default();
            status
        })
        .collect();
    let all_ready = !statuses.is_empty() && statuses.iter().all(|status| status.ready);
    shown.phase = Some(phase(&statuses, containers).to_owned());
    shown.start_time = shown.start_time.or_else(|| Some(Time(whole_seconds(now))));
    let mut conditions = shown.conditions.take().unwrap_or_default();
    let over = matches!(shown.phase.as_deref(), Some("Succeeded" | "Failed"));
    let unready = |reason: &'static str| {
        let names: Vec<&str> =
            statuses.iter().filter(|status| !status.ready).map(|status| status.name.as_str()).collect();
        Some((reason, format!("containers with unready status: [{}]", names.join(" "))))
    };
    let told = match (all_ready, over) {
        (true, _) => None,
        (false, true) => unready("PodCompleted"),
        (false, false) => unready("ContainersNotReady"),
    };
    set_condition(&mut conditions, "Initialized", Holds::True, None, now);
    set_condition(&mut conditions, "ContainersReady", all_ready.into(), told.clone(), now);
    set_condition(&mut conditions, "Ready", all_ready.into(), told, now);
    shown.conditions = Some(conditions);
    shown.container_statuses = Some(statuses);
    shown
}

fn why_waiting(why: &Wait) -> (String, String) {
    let reason = match why {
        Wait::Unsupported(_) => "CreateContainerConfigError",
        _ => "ContainerCreating",
    };
    (reason.to_owned(), why.to_string())
}

fn phase(statuses: &[ContainerStatus], containers: &[(String, Container)]) -> &'static str {
    let over = |container: &Container| {
        matches!(container, Container::Over(_) | Container::Lost { again: false, .. })
    };
    let all_over = containers.len() == statuses.len() && containers.iter().all(|(_, now)| over(now));
    let failed = |status: &ContainerStatus| {
        let end = status.state.as_ref().and_then(|state| state.terminated.as_ref());
        end.is_none_or(|end| end.exit_code != 0)
    };
    let started = |status: &ContainerStatus| {
        let ran = |state: &Option<ContainerState>| {
            state.as_ref().is_some_and(|state| state.running.is_some() || state.terminated.is_some())
        };
        ran(&status.state) || ran(&status.last_state)
    };
    if all_over && !statuses.is_empty() {
        return if statuses.iter().any(failed) { "Failed" } else { "Succeeded" };
    }
    if statuses.iter().all(started) && !statuses.is_empty() { "Running" } else { "Pending" }
}

fn container(
    now: &Container,
    before: Option<&ContainerStatus>,
    refused: Option<&(String, String)>,
) -> ContainerStatus {
    let last = || before.and_then(|before| before.last_state.clone());
    let restarts = || before.map_or(0, |before| before.restart_count);
    let waiting = |reason: &str, message: Option<String>| ContainerState {
        waiting: Some(ContainerStateWaiting { reason: Some(reason.to_owned()), message }),
        ..ContainerState::default()
    };
    let status = |state: ContainerState, last_state: Option<ContainerState>, restart_count: i32| {
        let running = state.running.is_some();
        ContainerStatus {
            state: Some(state),
            last_state,
            restart_count,
            ready: running,
            started: Some(running),
            ..ContainerStatus::default()
        }
    };
    match now {
        Container::New => {
            let (reason, message) = refused
                .cloned()
                .map_or(("ContainerCreating".to_owned(), None), |(one, other)| (one, Some(other)));
            status(waiting(&reason, message), last(), restarts())
        }
        Container::Lost { again: true, .. } => {
            // The number grows with the start, so that it counts starts.
            status(waiting("ContainerCreating", None), Some(lost(before)), restarts())
        }
        Container::Lost { again: false, .. } => status(lost(before), last(), restarts()),
        Container::Runs(process) => {
            let running = ContainerStateRunning { started_at: Some(Time(whole_seconds(process.began))) };
            let state = ContainerState { running: Some(running), ..ContainerState::default() };
            let ended = process.before.as_ref().map(|end| ended(end, None));
            status(state, ended.or_else(last), process.restarts)
        }
        Container::Due { process, .. } => {
            let message = refused.map(|(_, message)| message.clone());
            status(waiting("ContainerCreating", message), end_of(process), process.restarts)
        }
        Container::Pauses { process, due } => {
            let due = whole_seconds(*due);
            let message =
                format!("back-off restarting failed container {}, next try at {due}", process.id.container);
            status(waiting("CrashLoopBackOff", Some(message)), end_of(process), process.restarts)
        }
        Container::Over(process) => status(
            end_of(process).unwrap_or_default(),
            process.before.as_ref().map(|end| ended(end, None)).or_else(last),
            process.restarts,
        ),
    }
}

fn end_of(process: &Process) -> Option<ContainerState> {
    match &process.state {
        State::Ended(end) => Some(ended(end, Some(process.began))),
        State::Running { .. } => None,
    }
}

fn ended(end: &End, began: Option<Timestamp>) -> ContainerState {
    let reason = if end.code == 0 { "Completed" } else { "Error" };
    let terminated = ContainerStateTerminated {
        exit_code: end.code,
        signal: end.signal,
        reason: Some(reason.to_owned()),
        started_at: began.map(|began| Time(whole_seconds(began))),
        finished_at: Some(Time(whole_seconds(end.at))),
        ..ContainerStateTerminated::default()
    };
    ContainerState { terminated: Some(terminated), ..ContainerState::default() }
}

/// What is known of a process that went with the runner that had started it.
fn lost(before: Option<&ContainerStatus>) -> ContainerState {
    let state = before.and_then(|before| before.state.as_ref());
    if let Some(ended) = state.filter(|state| state.terminated.is_some()) {
        return ended.clone();
    }
    let last = before.and_then(|before| before.last_state.as_ref());
    match (state.and_then(|state| state.running.as_ref()), last) {
        (None, Some(last)) => last.clone(),
        (running, _) => ContainerState {
            terminated: Some(ContainerStateTerminated {
                exit_code: 137,
                reason: Some("ContainerStatusUnknown".to_owned()),
                message: Some("the runner was started anew; how the process ended is not known".to_owned()),
                started_at: running.and_then(|running| running.started_at.clone()),
                ..ContainerStateTerminated::default()
            }),
            ..ContainerState::default()
        },
    }
}
