//! Every rule about a pod on this node: what to start, when to start it again, how to stop it, what to refuse.

use super::launch::{Source, Unsupported, run_of, unsupported};
use super::status::{Container, status};
use crate::machine::{Process, ProcessId, Run, Signal, State};
use crate::words::{is_going, is_over, spec, uid};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodStatus};
use lifeboat_engine::{Decision, Level, ObjectKey, Trouble, Why};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// The pause after the first end; it doubles with every further one.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(1);
/// The longest pause.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_secs(300);
/// Who ran this long is not in a loop.
const LONG_RUN: SignedDuration = SignedDuration::from_secs(600);

/// What a decision about a pod needs.
#[derive(Debug, Clone)]
pub struct World {
    /// The pod; `None` once it is gone, though something of it may still run.
    pub pod: Option<Arc<Pod>>,
    /// Its volumes by name.
    pub volumes: BTreeMap<String, Source>,
    /// Processes of this and earlier lives of the pod.
    pub processes: Vec<Process>,
    /// Other pods whose processes have a volume, by handle.
    pub used: BTreeMap<String, ObjectKey>,
    /// Programs that may be run.
    pub programs: BTreeSet<String>,
    /// The last failure.
    pub trouble: Option<Trouble>,
}

/// What can be done for a pod.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum Effect {
    /// Starts a container's process.
    Start(Box<Run>),
    /// Tells a process to end.
    Tell {
        /// The process.
        id: ProcessId,
        /// What it is told.
        signal: Signal,
    },
    /// Forgets ended processes of a life of the pod.
    Clear {
        /// Uid of the pod.
        pod: String,
    },
    /// Takes the stopped pod off the API server.
    Remove {
        /// Uid of the pod.
        uid: String,
    },
}

/// What a pod waits for.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum Wait {
    /// The pod asks for something that is not done here.
    Unsupported(Unsupported),
    /// A claim has no volume.
    Unbound {
        /// The claim.
        claim: String,
    },
    /// Another pod's process writes to a volume that has one writer at a time.
    VolumeInUse {
        /// The claim.
        claim: String,
        /// The other pod.
        by: String,
    },
    /// A container ended, and is started again after a pause.
    BackingOff {
        /// The container.
        container: String,
        /// How often it was started before.
        restarts: i32,
    },
    /// Told to stop, and still running.
    Stopping,
    /// Processes of an earlier pod of this name are ending.
    Leftover,
    /// Stopped and deleted; somebody's finalizers hold the object.
    Held {
        /// The finalizers.
        by: Vec<String>,
    },
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(what) => what.fmt(f),
            Self::Unbound { claim } => write!(f, "persistentvolumeclaim \"{claim}\" is not bound"),
            Self::VolumeInUse { claim, by } => {
                write!(
                    f,
                    "the volume of persistentvolumeclaim \"{claim}\" has one writer at a time, and pod {by} still runs"
                )
            }
            Self::BackingOff { container, restarts } => write!(
                f,
                "back-off restarting container {container}, which has ended {} times; its log says why",
                restarts + 1
            ),
            Self::Stopping => f.write_str("told to stop; it is killed when its time is over"),
            Self::Leftover => f.write_str("processes of an earlier pod of this name are ending"),
            Self::Held { by } => write!(f, "stopped; held by finalizers {}", by.join(", ")),
        }
    }
}

impl Why for Wait {
    fn reason(&self) -> String {
        match self {
            Self::BackingOff { .. } => "BackOff".to_owned(),
            Self::Unbound { .. } | Self::VolumeInUse { .. } => "FailedMount".to_owned(),
            Self::Unsupported(_) => "Failed".to_owned(),
            other => lifeboat_engine::variant(other),
        }
    }

    fn event(&self) -> Option<Level> {
        match self {
            Self::Unsupported(_) | Self::BackingOff { .. } | Self::VolumeInUse { .. } => Some(Level::Warning),
            _ => None,
        }
    }
}

type Decided = Decision<Effect, Wait, PodStatus>;

/// Every rule.
pub fn decide(world: &World, now: Timestamp) -> Decided {
    let life = world.pod.as_deref().map(|pod| uid(&pod.metadata));
    let (own, stray): (Vec<&Process>, Vec<&Process>) =
        world.processes.iter().partition(|process| Some(process.id.pod.as_str()) == life);
    // A pod that is gone from the API server was deleted by force, or with the server's memory: nobody waits for its end.
    if !stray.is_empty() {
        return stop_strays(&stray);
    }
    let Some(pod) = world.pod.as_deref() else { return Decision::settled() };
    if is_going(&pod.metadata) {
        return stop(world, pod, &own, now);
    }
    if is_over(pod) {
        return Decision::settled();
    }
    let containers = containers(pod, &own, now);
    match missing(world, pod) {
        Some(why) => {
            let shown = status(world, pod, &containers, Some(&why), now);
            Decision::wait(why).showing(shown)
        }
        None => run(world, pod, containers, now),
    }
}

fn stop_strays(stray: &[&Process]) -> Decided {
    let alive = stray.iter().filter(|process| process.is_alive());
    let kill: Vec<Effect> = alive
        .filter(|process| process.state != State::Running { told: Some(Signal::Kill) })
        .map(|process| Effect::Tell { id: process.id.clone(), signal: Signal::Kill })
        .collect();
    if !kill.is_empty() {
        return Decision::act(kill);
    }
    if stray.iter().any(|process| process.is_alive()) {
        return Decision::wait(Wait::Leftover);
    }
    let lives: BTreeSet<&str> = stray.iter().map(|process| process.id.pod.as_str()).collect();
    Decision::act(lives.into_iter().map(|pod| Effect::Clear { pod: pod.to_owned() }))
}

/// What keeps a pod from having its processes.
fn missing(world: &World, pod: &Pod) -> Option<Wait> {
    if let Some(what) = unsupported(pod, &world.volumes, &world.programs) {
        return Some(Wait::Unsupported(what));
    }
    for source in world.volumes.values() {
        match source {
            Source::Unbound { claim } => return Some(Wait::Unbound { claim: claim.clone() }),
            Source::Bound { claim, handle, one_writer: true } => {
                if let Some(by) = world.used.get(handle) {
                    return Some(Wait::VolumeInUse { claim: claim.clone(), by: by.to_string() });
                }
            }
            _ => {}
        }
    }
    None
}

/// What becomes of each container.
fn containers(pod: &Pod, own: &[&Process], now: Timestamp) -> Vec<(String, Container)> {
    let policy = spec(pod).and_then(|spec| spec.restart_policy.as_deref()).unwrap_or("Always");
    let wanted = spec(pod).map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let shown =
        pod.status.as_ref().and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    wanted
        .iter()
        .map(|container| {
            let process = own.iter().find(|process| process.id.container == container.name);
            let known = shown.iter().find(|status| status.name == container.name);
            (container.name.clone(), container_now(policy, process.copied(), known, now))
        })
        .collect()
}

fn container_now(
    policy: &str,
    process: Option<&Process>,
    known: Option<&ContainerStatus>,
    now: Timestamp,
) -> Container {
    let Some(process) = process else {
        return match known.filter(|known| had_started(known)) {
            None => Container::New,
            // The runner itself was started anew: the process went with the old one.
            Some(known) if policy == "Never" => {
                Container::Lost { restarts: known.restart_count, again: false }
            }
            Some(known) => Container::Lost { restarts: known.restart_count + 1, again: true },
        };
    };
    let State::Ended(end) = &process.state else { return Container::Runs(process.clone()) };
    let again = match policy {
        "Never" => false,
        "OnFailure" => end.code != 0,
        _ => true,
    };
    if !again {
        return Container::Over(process.clone());
    }
    let ran = end.at.duration_since(process.began);
    let in_a_row = if ran >= LONG_RUN { 0 } else { process.in_a_row };
    let due = end.at.saturating_add(pause(in_a_row)).unwrap_or(end.at);
    match now >= due {
        true => Container::Due { process: process.clone(), in_a_row: in_a_row + 1 },
        false => Container::Pauses { process: process.clone(), due },
    }
}

fn had_started(known: &ContainerStatus) -> bool {
    let ran = |state: &Option<k8s_openapi::api::core::v1::ContainerState>| {
        state.as_ref().is_some_and(|state| state.running.is_some() || state.terminated.is_some())
    };
    ran(&known.state) || ran(&known.last_state)
}

/// The pause after so many ends in a row.
fn pause(in_a_row: u32) -> SignedDuration {
    let doubled = 2i32.saturating_pow(in_a_row.min(16));
    FIRST_PAUSE.checked_mul(doubled).unwrap_or(LONGEST_PAUSE).min(LONGEST_PAUSE)
}

fn run(world: &World, pod: &Pod, containers: Vec<(String, Container)>, now: Timestamp) -> Decided {
    let shown = status(world, pod, &containers, None, now);
    let mut starts = Vec::new();
    let mut pauses: Option<(Timestamp, Wait)> = None;
    for (name, container) in &containers {
        let (restarts, in_a_row) = match container {
            Container::New => (0, 0),
            Container::Lost { restarts, again: true } => (*restarts, 0),
            Container::Due { process, in_a_row } => (process.restarts + 1, *in_a_row),
            Container::Pauses { process, due } => {
                let why = Wait::BackingOff { container: name.clone(), restarts: process.restarts };
                if pauses.as_ref().is_none_or(|(until, _)| due < until) {
                    pauses = Some((*due, why));
                }
                continue;
            }
            Container::Runs(_) | Container::Over(_) | Container::Lost { again: false, .. } => continue,
        };
        starts.extend(
            run_of(pod, name, &world.volumes, restarts, in_a_row).map(|run| Effect::Start(Box::new(run))),
        );
    }
    if !starts.is_empty() {
        return Decision::act(starts).showing(shown);
    }
    match pauses {
        Some((until, why)) => Decision::wait_until(why, until).showing(shown),
        None => Decision::settled().showing(shown),
    }
}

/// Stops a pod that is being deleted: told first, killed when its time is over, taken off the server when all is quiet.
fn stop(world: &World, pod: &Pod, own: &[&Process], now: Timestamp) -> Decided {
    let containers: Vec<(String, Container)> = own
        .iter()
        .map(|process| {
            let now = match process.state {
                State::Running { .. } => Container::Runs((*process).clone()),
                State::Ended(_) => Container::Over((*process).clone()),
            };
            (process.id.container.clone(), now)
        })
        .collect();
    let shown = status(world, pod, &containers, None, now);
    let alive: Vec<&&Process> = own.iter().filter(|process| process.is_alive()).collect();
    if alive.is_empty() {
        // Deleted with no time left: what holds it now is not us.
        if pod.metadata.deletion_grace_period_seconds == Some(0) {
            let by = pod.metadata.finalizers.clone().unwrap_or_default();
            let held = Decision::wait(Wait::Held { by });
            return if own.is_empty() { held } else { held.showing(shown) };
        }
        let remove = Effect::Remove { uid: uid(&pod.metadata).to_owned() };
        return Decision::act([remove]).showing(shown);
    }
    let deadline = pod.metadata.deletion_timestamp.as_ref().map_or(now, |time| time.0);
    let over = now >= deadline;
    let tell = |process: &&&Process| {
        let State::Running { told } = process.state else { return None };
        let signal = match (told, over) {
            (Some(Signal::Kill), _) | (Some(Signal::Terminate), false) => return None,
            (_, true) => Signal::Kill,
            (None, false) => Signal::Terminate,
        };
        Some(Effect::Tell { id: process.id.clone(), signal })
    };
    let told: Vec<Effect> = alive.iter().filter_map(tell).collect();
    if !told.is_empty() {
        return Decision::act(told).showing(shown);
    }
    match over {
        true => Decision::wait(Wait::Stopping).showing(shown),
        false => Decision::wait_until(Wait::Stopping, deadline).showing(shown),
    }
}
