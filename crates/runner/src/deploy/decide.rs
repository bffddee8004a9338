//! Every rule about the pods of a Deployment: how many, of which template, under which names.

use super::status::status;
use crate::words::{is_going, is_over, is_ready, label, name, short_hash, uid};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use lifeboat_engine::{Decision, Trouble, Why};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Label of a pod that names the template it was made from.
pub const TEMPLATE_HASH: &str = "pod-template-hash";

/// What a decision about a Deployment needs.
#[derive(Debug, Clone)]
pub struct World {
    /// The Deployment.
    pub deployment: Arc<Deployment>,
    /// The pods that it owns, in order of name.
    pub pods: Vec<Arc<Pod>>,
    /// Names of all pods of the namespace: a new pod takes none of them.
    pub taken: BTreeSet<String>,
    /// The last failure.
    pub trouble: Option<Trouble>,
}

/// What can be done for a Deployment.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum Effect {
    /// Makes a pod that it owns.
    CreatePod(Box<Pod>),
    /// Deletes a pod that it owns, in this version.
    DeletePod(Box<Pod>),
}

/// What a Deployment waits for.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum Wait {
    /// Pods of an older template are stopping; the new ones come when they are gone.
    OldPodsStopping {
        /// How many.
        count: usize,
    },
    /// Its pods are not all ready.
    NotReady {
        /// Ready ones.
        ready: usize,
        /// Wanted ones.
        wanted: usize,
    },
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OldPodsStopping { count } => {
                write!(
                    f,
                    "{count} pods of an older template are stopping; the new ones start when they are gone"
                )
            }
            Self::NotReady { ready, wanted } => {
                write!(
                    f,
                    "{ready} of {wanted} pods are ready; `kubectl describe pod` says what the others wait for"
                )
            }
        }
    }
}

impl Why for Wait {}

/// Name of the template that a Deployment has now.
pub fn template_hash(deployment: &Deployment) -> String {
    short_hash(&deployment.spec.as_ref().map(|spec| &spec.template))
}

/// Every rule.
pub fn decide(world: &World, now: Timestamp) -> Decision<Effect, Wait, DeploymentStatus> {
    let deployment = &*world.deployment;
    let shown = status(world, now);
    let Some(wanted) = deployment.spec.as_ref() else { return Decision::settled() };
    // The garbage collector takes its pods along.
    if is_going(&deployment.metadata) || wanted.paused == Some(true) {
        return Decision::settled().showing(shown);
    }
    let hash = template_hash(deployment);
    let is_current = |pod: &Pod| label(&pod.metadata, TEMPLATE_HASH) == Some(hash.as_str());
    let (current, old): (Vec<&Arc<Pod>>, Vec<&Arc<Pod>>) = world.pods.iter().partition(|pod| is_current(pod));
    let delete = |pod: &&Arc<Pod>| Effect::DeletePod(Box::new(Pod::clone(pod)));

    // One volume has one writer: the new pods come after the old ones, whatever strategy is asked for.
    if !old.is_empty() {
        let doomed: Vec<Effect> = old.iter().filter(|pod| !is_going(&pod.metadata)).map(delete).collect();
        if !doomed.is_empty() {
            return Decision::act(doomed).showing(shown);
        }
        return Decision::wait(Wait::OldPodsStopping { count: old.len() }).showing(shown);
    }
    let replicas = usize::try_from(wanted.replicas.unwrap_or(1)).unwrap_or_default();
    let staying: Vec<&Arc<Pod>> = current.iter().filter(|pod| !is_going(&pod.metadata)).copied().collect();
    let (over, mut active): (Vec<&Arc<Pod>>, Vec<&Arc<Pod>>) =
        staying.into_iter().partition(|pod| is_over(pod));
    // The ready and the old ones stay.
    active.sort_by_key(|pod| {
        (
            !is_ready(pod),
            pod.metadata.creation_timestamp.as_ref().map(|time| time.0),
            name(&pod.metadata).to_owned(),
        )
    });
    let surplus = active.iter().skip(replicas);
    let doomed: Vec<Effect> = over.iter().chain(surplus).map(delete).collect();
    if !doomed.is_empty() {
        return Decision::act(doomed).showing(shown);
    }
    if active.len() < replicas {
        let free = (0..).map(|number: u64| format!("{}-{hash}-{number}", name(&deployment.metadata)));
        let free = free.filter(|name| !world.taken.contains(name));
        let made = free.take(replicas - active.len()).map(|name| new_pod(deployment, &hash, name));
        return Decision::act(made).showing(shown);
    }
    let ready = active.iter().filter(|pod| is_ready(pod)).count();
    if ready < replicas {
        return Decision::wait(Wait::NotReady { ready, wanted: replicas }).showing(shown);
    }
    Decision::settled().showing(shown)
}

fn new_pod(deployment: &Deployment, hash: &str, name: String) -> Effect {
    let template = deployment.spec.as_ref().map(|spec| spec.template.clone()).unwrap_or_default();
    let meta = template.metadata.unwrap_or_default();
    let mut labels = meta.labels.unwrap_or_default();
    labels.insert(TEMPLATE_HASH.to_owned(), hash.to_owned());
    let owner = OwnerReference {
        api_version: "apps/v1".to_owned(),
        kind: "Deployment".to_owned(),
        name: deployment.metadata.name.clone().unwrap_or_default(),
        uid: uid(&deployment.metadata).to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    Effect::CreatePod(Box::new(Pod {
        metadata: ObjectMeta {
            namespace: deployment.metadata.namespace.clone(),
            name: Some(name),
            labels: Some(labels),
            annotations: meta.annotations,
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: template.spec,
        status: None,
    }))
}
