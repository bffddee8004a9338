//! Rules about a pod on this node.

use crate::things::pod;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, Pod, PodStatus};
use lifeboat_engine::{Next, ObjectKey};
use lifeboat_runner::pods::{Effect, Source, Wait, World, decide};
use lifeboat_runner::{End, Process, ProcessId, Signal, State};
use lifeboat_testbed::fixtures::With;
use serde_json::json;
use std::sync::Arc;

fn at(second: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_000 + second)
}

fn process(life: &str, state: State) -> Process {
    Process {
        id: ProcessId { pod: life.to_owned(), container: "main".to_owned() },
        pid: 1,
        began: at(0),
        restarts: 0,
        in_a_row: 0,
        state,
        before: None,
        volumes: ["h".to_owned()].into(),
    }
}

fn runs(told: Option<Signal>) -> Process {
    process("uid-p", State::Running { told })
}

fn ended(second: i64, code: i32) -> Process {
    process("uid-p", State::Ended(End { at: at(second), code, signal: None }))
}

fn world(pod: Pod, processes: Vec<Process>) -> World {
    World {
        pod: Some(Arc::new(pod)),
        volumes: [("data".to_owned(), bound())].into(),
        processes,
        used: [].into(),
        programs: ["sleep".to_owned()].into(),
        trouble: None,
    }
}

fn bound() -> Source {
    Source::Bound { claim: "data".to_owned(), handle: "h".to_owned(), one_writer: true }
}

fn p() -> Pod {
    pod("p", &["sleep", "9"])
}

fn policy(policy: &str) -> Pod {
    p().with(|pod| pod.spec.as_mut().unwrap().restart_policy = Some(policy.to_owned()))
}

fn container(change: impl FnOnce(&mut Container)) -> Pod {
    p().with(|pod| change(&mut pod.spec.as_mut().unwrap().containers[0]))
}

/// A pod being deleted, whose time is over at `second`.
fn going(second: i64) -> Pod {
    p().with(|pod| {
        pod.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(second)));
        pod.metadata.deletion_grace_period_seconds = Some(30);
    })
}

fn told(world: &World, second: i64) -> (String, Option<PodStatus>) {
    let decision = decide(world, at(second));
    let told = match decision.next {
        Next::Settled => "rests".to_owned(),
        Next::Wait { why, until } => {
            let until = until.map(|until| format!(" until {}", until.duration_since(at(0)).as_secs()));
            format!("waits {}{}", lifeboat_engine::variant(&why), until.unwrap_or_default())
        }
        Next::Do(effects) => {
            let one = |effect: &Effect| match effect {
                Effect::Start(run) => format!("start {} {}", run.restarts, run.in_a_row),
                Effect::Tell { signal, .. } => format!("{signal:?}"),
                Effect::Clear { pod } => format!("clear {pod}"),
                Effect::Remove { uid } => format!("remove {uid}"),
            };
            effects.iter().map(one).collect::<Vec<_>>().join(", ")
        }
    };
    (told, decision.status)
}

fn check(rule: &str, world: &World, second: i64, expected: &str) {
    assert_eq!(told(world, second).0, expected, "{rule}");
}

/// What `kubectl get pod` would show: phase, the container's state and how often it was started again.
fn shows(rule: &str, world: &World, second: i64, expected: (&str, &str, i32)) {
    let status = told(world, second).1.unwrap();
    let container = &status.container_statuses.as_ref().unwrap()[0];
    let state = container.state.as_ref().unwrap();
    let state = match (&state.running, &state.terminated, &state.waiting) {
        (Some(_), _, _) => "running".to_owned(),
        (_, Some(end), _) => format!("terminated {}", end.exit_code),
        (_, _, Some(waiting)) => waiting.reason.clone().unwrap(),
        _ => "nothing".to_owned(),
    };
    assert_eq!(
        (status.phase.as_deref().unwrap(), state.as_str(), container.restart_count),
        expected,
        "{rule}"
    );
    let ready = status.conditions.unwrap().into_iter().find(|one| one.type_ == "Ready").unwrap();
    assert_eq!(ready.status == "True", state == "running", "{rule}: ready is running");
}

#[test]
fn containers_are_started_and_started_again() {
    check("new", &world(p(), vec![]), 0, "start 0 0");
    shows("new", &world(p(), vec![]), 0, ("Pending", "ContainerCreating", 0));
    check("running", &world(p(), vec![runs(None)]), 0, "rests");
    shows("running", &world(p(), vec![runs(None)]), 0, ("Running", "running", 0));
    check("ended just now", &world(p(), vec![ended(5, 1)]), 5, "waits BackingOff until 6");
    shows("ended just now", &world(p(), vec![ended(5, 1)]), 5, ("Running", "CrashLoopBackOff", 0));
    check("after the pause", &world(p(), vec![ended(5, 1)]), 6, "start 1 1");
    let third = Process { restarts: 7, in_a_row: 3, ..ended(5, 1) };
    check("the pause doubles", &world(p(), vec![third.clone()]), 6, "waits BackingOff until 13");
    let long = Process { state: State::Ended(End { at: at(700), code: 1, signal: None }), ..third };
    check("who ran long begins anew", &world(p(), vec![long]), 701, "start 8 1");
    let many = Process { in_a_row: 40, ..ended(0, 1) };
    check("the pause has an end", &world(p(), vec![many]), 1, "waits BackingOff until 300");
}

#[test]
fn the_restart_policy_counts() {
    check("never", &world(policy("Never"), vec![ended(5, 1)]), 60, "rests");
    shows("never, failed", &world(policy("Never"), vec![ended(5, 1)]), 60, ("Failed", "terminated 1", 0));
    shows("never, done", &world(policy("Never"), vec![ended(5, 0)]), 60, ("Succeeded", "terminated 0", 0));
    check("on failure, failed", &world(policy("OnFailure"), vec![ended(5, 1)]), 60, "start 1 1");
    check("on failure, done", &world(policy("OnFailure"), vec![ended(5, 0)]), 60, "rests");
    check("always, done", &world(p(), vec![ended(5, 0)]), 60, "start 1 1");
    let over =
        policy("Never").with(|pod| pod.status = serde_json::from_value(json!({"phase": "Failed"})).unwrap());
    check("over stays over", &world(over, vec![]), 60, "rests");
}

#[test]
fn a_runner_that_was_started_anew_starts_what_it_had() {
    let shown = |state: serde_json::Value, policy_: &str| {
        policy(policy_).with(|pod| {
            let one = json!({"name": "main", "image": "none", "imageID": "", "ready": true, "restartCount": 4, "state": state});
            pod.status = serde_json::from_value(json!({"phase": "Running", "containerStatuses": [one]})).unwrap();
        })
    };
    let running = shown(json!({"running": {}}), "Always");
    check("it ran", &world(running.clone(), vec![]), 0, "start 5 0");
    let status = told(&world(running, vec![]), 0).1.unwrap();
    let last = status.container_statuses.unwrap()[0].last_state.clone().unwrap().terminated.unwrap();
    assert_eq!((last.reason.as_deref(), last.exit_code), (Some("ContainerStatusUnknown"), 137));
    check(
        "it was about to be started",
        &world(shown(json!({"waiting": {}}), "Always"), vec![]),
        0,
        "start 0 0",
    );
    check("it must not be started again", &world(shown(json!({"running": {}}), "Never"), vec![]), 0, "rests");
    shows(
        "and has failed",
        &world(shown(json!({"running": {}}), "Never"), vec![]),
        0,
        ("Failed", "terminated 137", 4),
    );
}

#[test]
fn a_pod_that_goes_is_stopped_first() {
    check("told", &world(going(30), vec![runs(None)]), 0, "Terminate");
    let waits = world(going(30), vec![runs(Some(Signal::Terminate))]);
    check("given its time", &waits, 0, "waits Stopping until 30");
    check("killed when it is over", &waits, 30, "Kill");
    let killed = world(going(30), vec![runs(Some(Signal::Kill))]);
    check("and waited for", &killed, 30, "waits Stopping");
    check("then removed", &world(going(30), vec![ended(1, 0)]), 1, "remove uid-p");
    shows("with its end shown", &world(going(30), vec![ended(1, 143)]), 1, ("Failed", "terminated 143", 0));
    check("never started", &world(going(30), vec![]), 1, "remove uid-p");
    let held = going(30).with(|pod| {
        pod.metadata.deletion_grace_period_seconds = Some(0);
        pod.metadata.finalizers = Some(vec!["x".to_owned()]);
    });
    check("others hold it", &world(held, vec![ended(1, 0)]), 60, "waits Held");
}

#[test]
fn what_belongs_to_no_pod_is_killed() {
    let none = |processes| World { pod: None, ..world(p(), processes) };
    check("the pod is gone", &none(vec![runs(None)]), 0, "Kill");
    check("killed", &none(vec![runs(Some(Signal::Kill))]), 0, "waits Leftover");
    check("dead", &none(vec![ended(1, 137)]), 1, "clear uid-p");
    check("nothing", &none(vec![]), 1, "rests");
    let older = process("an earlier life", State::Running { told: None });
    check("an earlier pod of this name", &world(p(), vec![older.clone(), runs(None)]), 0, "Kill");
    check(
        "one that was told to end",
        &world(p(), vec![Process { state: State::Running { told: Some(Signal::Terminate) }, ..older }]),
        0,
        "Kill",
    );
}

#[test]
fn volumes_are_there_and_have_one_writer() {
    let with = |source: Source| World { volumes: [("data".to_owned(), source)].into(), ..world(p(), vec![]) };
    check("unbound", &with(Source::Unbound { claim: "data".to_owned() }), 0, "waits Unbound");
    let mut used = world(p(), vec![]);
    used.used = [("h".to_owned(), ObjectKey::new("default", "q"))].into();
    check("another pod writes", &used, 0, "waits VolumeInUse");
    used.volumes = [(
        "data".to_owned(),
        Source::Bound { claim: "data".to_owned(), handle: "h".to_owned(), one_writer: false },
    )]
    .into();
    check("many may write", &used, 0, "start 0 0");
}

#[test]
fn what_cannot_be_had_is_said() {
    let refused = |rule: &str, pod: Pod| {
        let world = World { volumes: [("odd".to_owned(), Source::Other)].into(), ..world(pod, vec![]) };
        check(rule, &world, 0, "waits Unsupported");
        shows(rule, &world, 0, ("Pending", "CreateContainerConfigError", 0));
    };
    refused("no command", container(|one| one.command = None));
    refused("a program that is not on the list", pod("p", &["sh"]));
    refused("probes", container(|one| one.readiness_probe = Some(Default::default())));
    refused(
        "an odd volume",
        container(|one| {
            one.volume_mounts = serde_json::from_value(json!([{"name": "odd", "mountPath": "/x"}])).unwrap();
        }),
    );
    refused(
        "a secret's value",
        container(|one| {
            one.env = serde_json::from_value(
                json!([{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]),
            )
            .unwrap();
        }),
    );
    refused(
        "a block device",
        container(|one| {
            one.volume_devices =
                serde_json::from_value(json!([{"name": "odd", "devicePath": "/x"}])).unwrap();
        }),
    );
    refused(
        "init containers",
        p().with(|pod| {
            let spec = pod.spec.as_mut().unwrap();
            spec.init_containers = Some(spec.containers.clone());
        }),
    );
    let why = Wait::BackingOff { container: "main".to_owned(), restarts: 2 };
    assert!(why.to_string().contains("ended 3 times"));
}
