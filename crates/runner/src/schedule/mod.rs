//! Puts pods on the one node of an embedded cluster. A claim whose class waits for its first consumer is told the node first, and the pod
//! follows when all its claims are bound.

mod decide;

pub use decide::{Effect, Wait, Wanted, World, decide};

use crate::words::{bound_to, claims, status};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Node, ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod, PodCondition, PodStatus,
};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::Resource as _;
use kube::api::Patch;
use lifeboat_api::annotations::SELECTED_NODE;
use lifeboat_engine::{Class, Controller, Decision, EffectError, ObjectKey, Objects, Trouble};
use serde_json::json;

/// The scheduler.
pub struct Scheduler {
    /// All pods.
    pub pods: Objects<Pod>,
    /// All claims.
    pub claims: Objects<PersistentVolumeClaim>,
    /// All volumes.
    pub volumes: Objects<PersistentVolume>,
    /// All storage classes.
    pub classes: Objects<StorageClass>,
    /// All nodes.
    pub nodes: Objects<Node>,
    /// The node that pods are put on.
    pub node: String,
    /// For the one write that is no write of an object.
    pub client: kube::Client,
}

impl Scheduler {
    fn wanted(&self, namespace: &str, claim: &str) -> Wanted {
        let claim = self.claims.get(&ObjectKey::new(namespace, claim));
        let volume = claim.as_deref().and_then(bound_to).map(ObjectKey::cluster_wide);
        let class = claim.as_ref().and_then(|claim| claim.spec.as_ref()?.storage_class_name.clone());
        let class = class.and_then(|class| self.classes.get(&ObjectKey::cluster_wide(class)));
        Wanted {
            volume: volume.and_then(|key| self.volumes.get(&key)),
            delayed: class
                .is_some_and(|class| class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer")),
            claim,
        }
    }
}

impl Controller for Scheduler {
    const NAME: &'static str = "scheduler";
    type Key = ObjectKey;
    type World = World;
    type Effect = Effect;
    type Why = Wait;
    type Status = Vec<PodCondition>;

    fn observe(&self, key: &ObjectKey, _: Option<&Trouble>) -> Option<World> {
        let pod = self.pods.get(key)?;
        let wanted = |(_, claim): (&str, String)| {
            let wanted = self.wanted(&key.namespace, &claim);
            (claim, wanted)
        };
        Some(World {
            claims: claims(&pod).into_iter().map(wanted).collect(),
            node_name: self.node.clone(),
            node: self.nodes.get(&ObjectKey::cluster_wide(self.node.clone())),
            pod,
        })
    }

    fn decide(world: &World, now: Timestamp) -> Decision<Effect, Wait, Vec<PodCondition>> {
        decide(world, now)
    }

    async fn act(&self, key: &ObjectKey, effect: Effect) -> Result<(), EffectError> {
        match effect {
            Effect::SelectNode { claim, node } => {
                let patch = json!({"metadata": {
                    "uid": claim.metadata.uid,
                    "resourceVersion": claim.metadata.resource_version,
                    "annotations": {SELECTED_NODE: node},
                }});
                self.claims.patch(&ObjectKey::of(&*claim), &Patch::Merge(patch)).await.map(drop)
            }
            Effect::Bind { uid, node } => {
                let tried = || format!("putting pod {key} on node {node}");
                let url = format!("{}/{}/binding", Pod::url_path(&(), Some(&key.namespace)), key.name);
                let body = json!({
                    "apiVersion": "v1", "kind": "Binding",
                    "metadata": {"name": key.name, "namespace": key.namespace, "uid": uid},
                    "target": {"apiVersion": "v1", "kind": "Node", "name": node},
                });
                let request = http::Request::post(url)
                    .header(http::header::CONTENT_TYPE, "application/json")
                    .body(body.to_string().into_bytes())
                    .map_err(|error| EffectError::caused(Class::BadInput, tried(), error))?;
                let bound = self.client.request::<serde_json::Value>(request).await;
                // Done or refused because it had been done: either way what is known of the pod is old.
                self.pods.read(key).await?;
                bound.map(drop).map_err(|error| EffectError::api(tried(), error))
            }
        }
    }

    fn shown(world: &World) -> Option<&Vec<PodCondition>> {
        status(&world.pod)?.conditions.as_ref()
    }

    async fn show(&self, world: &World, conditions: Vec<PodCondition>) -> Result<(), EffectError> {
        let mut pod = Pod::clone(&world.pod);
        pod.status.get_or_insert_with(PodStatus::default).conditions = Some(conditions);
        self.pods.replace_status(&pod).await.map(drop)
    }

    fn subject(world: &World) -> Option<ObjectReference> {
        Some(crate::pods::reference(&world.pod))
    }
}
