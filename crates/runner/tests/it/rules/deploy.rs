//! Rules about the pods of a Deployment.

use crate::things::{plain_deployment, ready};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lifeboat_engine::{Decision, Next};
use lifeboat_runner::deploy::{Effect, TEMPLATE_HASH, Wait, World, decide};
use std::collections::BTreeSet;
use std::sync::Arc;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// The pod that the deployment would make, under another number.
fn pod(deployment: &Deployment, number: usize) -> Pod {
    let world = World {
        deployment: Arc::new(deployment.clone()),
        pods: vec![],
        taken: BTreeSet::new(),
        trouble: None,
    };
    let Next::Do(effects) = decide(&world, NOW).next else { panic!("it makes no pod") };
    let Some(Effect::CreatePod(pod)) = effects.into_iter().next() else { panic!("it makes no pod") };
    let mut pod = *pod;
    let name = pod.metadata.name.take().unwrap();
    pod.metadata.name = Some(format!("{}-{number}", name.rsplit_once('-').unwrap().0));
    pod
}

fn going(mut pod: Pod) -> Pod {
    pod.metadata.deletion_timestamp = Some(Time(NOW));
    pod
}

fn of_old_template(mut pod: Pod) -> Pod {
    pod.metadata.labels.as_mut().unwrap().insert(TEMPLATE_HASH.to_owned(), "old".to_owned());
    pod
}

#[derive(Debug, PartialEq)]
enum Does {
    Creates(Vec<usize>),
    Deletes(Vec<usize>),
    Waits(Wait),
    Rests,
}

fn number(pod: &Pod) -> usize {
    pod.metadata.name.as_deref().unwrap().rsplit_once('-').unwrap().1.parse().unwrap()
}

fn does(decision: Decision<Effect, Wait, k8s_openapi::api::apps::v1::DeploymentStatus>) -> Does {
    match decision.next {
        Next::Settled => Does::Rests,
        Next::Wait { why, .. } => Does::Waits(why),
        Next::Do(effects) => {
            let created = effects.iter().filter_map(|effect| match effect {
                Effect::CreatePod(pod) => Some(number(pod)),
                Effect::DeletePod(_) => None,
            });
            let deleted = effects.iter().filter_map(|effect| match effect {
                Effect::DeletePod(pod) => Some(number(pod)),
                Effect::CreatePod(_) => None,
            });
            let (created, deleted): (Vec<usize>, Vec<usize>) = (created.collect(), deleted.collect());
            assert!(created.is_empty() || deleted.is_empty());
            if deleted.is_empty() { Does::Creates(created) } else { Does::Deletes(deleted) }
        }
    }
}

fn check(rule: &str, replicas: i32, pods: impl Fn(&Deployment) -> Vec<Pod>, expected: Does) {
    let deployment = plain_deployment("web", 1, &["sleep"]);
    let pods = pods(&deployment);
    let mut deployment = deployment;
    deployment.spec.as_mut().unwrap().replicas = Some(replicas);
    let taken = pods.iter().map(|pod| pod.metadata.name.clone().unwrap()).collect();
    let pods = pods.into_iter().map(Arc::new).collect();
    let world = World { deployment: Arc::new(deployment), pods, taken, trouble: None };
    assert_eq!(does(decide(&world, NOW)), expected, "{rule}");
}

#[test]
fn as_many_pods_as_are_asked_for() {
    check("none are there", 2, |_| vec![], Does::Creates(vec![0, 1]));
    check("one is missing", 2, |d| vec![ready(pod(d, 1))], Does::Creates(vec![0]));
    check("a name that is taken is passed over", 1, |d| vec![going(pod(d, 0))], Does::Creates(vec![1]));
    check("all are there", 1, |d| vec![ready(pod(d, 0))], Does::Rests);
    let waits = Does::Waits(Wait::NotReady { ready: 1, wanted: 2 });
    check("one is not ready", 2, |d| vec![ready(pod(d, 0)), pod(d, 1)], waits);
    check("too many: the unready goes", 1, |d| vec![pod(d, 0), ready(pod(d, 1))], Does::Deletes(vec![0]));
    check("none are wanted", 0, |d| vec![ready(pod(d, 0))], Does::Deletes(vec![0]));
    check("none are wanted and none are there", 0, |_| vec![], Does::Rests);
    check(
        "one that is over is replaced",
        1,
        |d| {
            let mut pod = ready(pod(d, 0));
            pod.status.as_mut().unwrap().phase = Some("Failed".to_owned());
            vec![pod]
        },
        Does::Deletes(vec![0]),
    );
}

#[test]
fn a_new_template_comes_after_the_old_is_gone() {
    check("the old is told to go", 1, |d| vec![of_old_template(ready(pod(d, 0)))], Does::Deletes(vec![0]));
    let waits = Does::Waits(Wait::OldPodsStopping { count: 1 });
    check("and waited for", 1, |d| vec![going(of_old_template(ready(pod(d, 0))))], waits);
}

#[test]
fn a_deployment_that_goes_or_pauses_makes_nothing() {
    let mut deployment = plain_deployment("web", 1, &["sleep"]);
    deployment.spec.as_mut().unwrap().paused = Some(true);
    let world = |deployment: &Deployment| World {
        deployment: Arc::new(deployment.clone()),
        pods: vec![],
        taken: BTreeSet::new(),
        trouble: None,
    };
    assert_eq!(does(decide(&world(&deployment), NOW)), Does::Rests);
    deployment.spec.as_mut().unwrap().paused = None;
    deployment.metadata.deletion_timestamp = Some(Time(NOW));
    assert_eq!(does(decide(&world(&deployment), NOW)), Does::Rests);
}

#[test]
fn counts_are_what_kubectl_rollout_reads() {
    let deployment = plain_deployment("web", 2, &["sleep"]);
    let pods = vec![Arc::new(ready(pod(&deployment, 0))), Arc::new(going(pod(&deployment, 1)))];
    let world = World { deployment: Arc::new(deployment), pods, taken: BTreeSet::new(), trouble: None };
    let status = decide(&world, NOW).status.unwrap();
    let counts =
        (status.replicas, status.updated_replicas, status.ready_replicas, status.unavailable_replicas);
    assert_eq!(counts, (Some(1), Some(1), Some(1), Some(1)));
    assert_eq!(status.observed_generation, Some(1));
    let said: Vec<(String, String)> =
        status.conditions.unwrap().into_iter().map(|one| (one.type_, one.status)).collect();
    let expected = [("Available", "False"), ("Progressing", "True")];
    assert_eq!(said, expected.map(|(one, other)| (one.to_owned(), other.to_owned())));
}
