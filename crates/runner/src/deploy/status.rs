//! What people are told of a Deployment: the counts and conditions that `kubectl rollout status` reads.

use super::decide::{TEMPLATE_HASH, World, template_hash};
use crate::words::{is_going, is_ready, label};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DeploymentCondition, DeploymentStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lifeboat_engine::conditions::{Holds, whole_seconds};

/// The status of a Deployment as its pods are now.
pub fn status(world: &World, now: Timestamp) -> DeploymentStatus {
    let shown = world.deployment.status.clone().unwrap_or_default();
    let spec = world.deployment.spec.as_ref();
    let wanted = spec.and_then(|spec| spec.replicas).unwrap_or(1);
    let hash = template_hash(&world.deployment);
    let alive = || world.pods.iter().filter(|pod| !is_going(&pod.metadata));
    let count = |wanted: &dyn Fn(&Pod) -> bool| {
        i32::try_from(alive().filter(|pod| wanted(pod)).count()).unwrap_or(i32::MAX)
    };
    let some = |count: i32| (count > 0).then_some(count);
    let all = count(&|_| true);
    let updated = count(&|pod| label(&pod.metadata, TEMPLATE_HASH) == Some(hash.as_str()));
    let ready = count(&is_ready);
    let mut conditions = shown.conditions.unwrap_or_default();
    let enough = ready >= wanted;
    let told = match enough {
        true => ("MinimumReplicasAvailable", "as many pods are ready as are wanted".to_owned()),
        false => ("MinimumReplicasUnavailable", format!("{ready} of {wanted} pods are ready")),
    };
    set(&mut conditions, "Available", enough.into(), told, now);
    let progress = match &world.trouble {
        Some(trouble) => (Holds::False, ("FailedCreate", trouble.message.clone())),
        None if enough && updated >= wanted => {
            (Holds::True, ("NewReplicaSetAvailable", "all pods are of the newest template".to_owned()))
        }
        None => (Holds::True, ("ReplicaSetUpdated", "pods are being started or stopped".to_owned())),
    };
    set(&mut conditions, "Progressing", progress.0, progress.1, now);
    DeploymentStatus {
        observed_generation: world.deployment.metadata.generation,
        replicas: some(all),
        updated_replicas: some(updated),
        ready_replicas: some(ready),
        available_replicas: some(ready),
        unavailable_replicas: some((wanted - ready).max(0)),
        conditions: Some(conditions),
        collision_count: shown.collision_count,
        terminating_replicas: shown.terminating_replicas,
    }
}

fn set(
    conditions: &mut Vec<DeploymentCondition>,
    type_: &str,
    holds: Holds,
    (reason, message): (&str, String),
    now: Timestamp,
) {
    let now = Time(whole_seconds(now));
    let wanted = DeploymentCondition {
        type_: type_.to_owned(),
        status: holds.as_str().to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message),
        last_transition_time: Some(now.clone()),
        last_update_time: Some(now),
    };
    let Some(known) = conditions.iter_mut().find(|one| one.type_ == type_) else {
        return conditions.push(wanted);
    };
    let same = known.reason == wanted.reason && known.message == wanted.message;
    if known.status == wanted.status && same {
        return;
    }
    let since = match known.status == wanted.status {
        true => known.last_transition_time.clone(),
        false => wanted.last_transition_time.clone(),
    };
    *known = DeploymentCondition { last_transition_time: since, ..wanted };
}
