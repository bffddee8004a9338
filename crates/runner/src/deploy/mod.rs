//! Deployments, straight to pods: an embedded cluster has neither ReplicaSets nor kube-controller-manager. Pods of a changed template replace
//! the old ones after these are gone, as the strategy `Recreate` has it.

mod decide;
mod status;

pub use decide::{Effect, TEMPLATE_HASH, Wait, World, decide, template_hash};
pub use status::status;

use crate::words::{controller, name, uid};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus};
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use lifeboat_engine::{Controller, Decision, EffectError, Index, ObjectKey, Objects, Trouble};

/// The controller of Deployments.
pub struct Deployments {
    /// All Deployments.
    pub deployments: Objects<Deployment>,
    /// All pods.
    pub pods: Objects<Pod>,
    /// Pods by the uid of who controls them.
    pub by_controller: Index<String, Pod>,
}

/// What a pod is found by.
pub(crate) fn controller_uid(pod: &Pod) -> Option<String> {
    controller(&pod.metadata).map(|owner| owner.uid.clone())
}

/// The Deployment that a pod belongs to.
pub(crate) fn deployment_of(pod: &Pod) -> Option<ObjectKey> {
    let owner = controller(&pod.metadata).filter(|owner| owner.kind == "Deployment")?;
    Some(ObjectKey::new(pod.metadata.namespace.clone().unwrap_or_default(), owner.name.clone()))
}

impl Controller for Deployments {
    const NAME: &'static str = "deployments";
    type Key = ObjectKey;
    type World = World;
    type Effect = Effect;
    type Why = Wait;
    type Status = DeploymentStatus;

    fn observe(&self, key: &ObjectKey, trouble: Option<&Trouble>) -> Option<World> {
        let deployment = self.deployments.get(key)?;
        let pods = self.by_controller.get(&uid(&deployment.metadata).to_owned());
        let taken = self.pods.in_namespace(&key.namespace);
        let taken = taken.iter().map(|pod| name(&pod.metadata).to_owned()).collect();
        Some(World { deployment, pods, taken, trouble: trouble.cloned() })
    }

    fn decide(world: &World, now: Timestamp) -> Decision<Effect, Wait, DeploymentStatus> {
        decide(world, now)
    }

    async fn act(&self, _: &ObjectKey, effect: Effect) -> Result<(), EffectError> {
        match effect {
            Effect::CreatePod(pod) => self.pods.create(&pod).await.map(drop),
            Effect::DeletePod(pod) => {
                let key = ObjectKey::of(&*pod);
                self.pods.delete(&pod).await?;
                // A pod that a node runs is only marked; what it looks like now is what the next decision needs.
                self.pods.read(&key).await.map(drop)
            }
        }
    }

    fn shown(world: &World) -> Option<&DeploymentStatus> {
        world.deployment.status.as_ref()
    }

    async fn show(&self, world: &World, status: DeploymentStatus) -> Result<(), EffectError> {
        let mut deployment = Deployment::clone(&world.deployment);
        deployment.status = Some(status);
        self.deployments.replace_status(&deployment).await.map(drop)
    }

    fn subject(world: &World) -> Option<ObjectReference> {
        let meta = &world.deployment.metadata;
        Some(ObjectReference {
            api_version: Some("apps/v1".to_owned()),
            kind: Some("Deployment".to_owned()),
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
            ..ObjectReference::default()
        })
    }
}
