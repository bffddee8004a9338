//! Volumes that live and die with a pod: for each that a pod asks for, a claim that the pod owns. The garbage collector takes the
//! claim away with its pod.
//!
//! kube-controller-manager has the same controller; where it runs, this one stays off.

use crate::effects::Office;
use crate::lean::PersistentVolumeClaim;
use crate::words::{ephemeral_claims, is_made_for, text};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use lifeboat_engine::{Controller, Decision, EffectError, Level, ObjectKey, Trouble, Why};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What a pod's volume waits for.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum PodWhy {
    /// Somebody else's claim has the name that its claim must have.
    NameTaken {
        /// Its volume.
        volume: String,
        /// The claim, with its namespace.
        claim: String,
        /// The pod, with its namespace.
        pod: String,
    },
}

impl fmt::Display for PodWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::NameTaken { volume, claim, pod } = self;
        write!(f, "ephemeral volume {volume}: PVC {claim} was not created for pod {pod} (pod is not owner)")
    }
}

impl Why for PodWhy {
    fn reason(&self) -> String {
        "FailedBinding".to_owned()
    }

    fn event(&self) -> Option<Level> {
        Some(Level::Warning)
    }
}

/// What can be done for a pod.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum PodEffect {
    /// Makes a claim that it owns.
    CreateClaim(Box<PersistentVolumeClaim>),
}

/// What a decision about a pod needs.
#[derive(Debug, Clone)]
pub struct PodWorld {
    /// The pod.
    pub pod: Arc<Pod>,
    /// Claims that there are, of the names that its volumes' claims must have.
    pub claims: BTreeMap<String, Arc<PersistentVolumeClaim>>,
}

/// Every rule about volumes that live with a pod.
pub fn decide(world: &PodWorld) -> Decision<PodEffect, PodWhy, ()> {
    let pod = &*world.pod;
    if pod.metadata.deletion_timestamp.is_some() {
        return Decision::settled();
    }
    let mut missing = Vec::new();
    let mut taken = None;
    for (volume, name) in ephemeral_claims(pod) {
        match world.claims.get(&name) {
            None => missing.extend(claim(pod, volume, &name)),
            Some(claim) if is_made_for(claim, pod) => {}
            Some(claim) => {
                taken = taken.or(Some(PodWhy::NameTaken {
                    volume: volume.to_owned(),
                    claim: ObjectKey::of(&**claim).to_string(),
                    pod: ObjectKey::of(pod).to_string(),
                }));
            }
        }
    }
    match taken {
        _ if !missing.is_empty() => Decision::act(missing),
        Some(why) => Decision::wait(why),
        None => Decision::settled(),
    }
}

fn claim(pod: &Pod, volume: &str, name: &str) -> Option<PodEffect> {
    let volumes = pod.spec.as_ref()?.volumes.as_ref()?;
    let volume = volumes.iter().find(|one| one.name == volume)?;
    let template = volume.ephemeral.as_ref()?.volume_claim_template.as_ref()?;
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        name: text(pod.metadata.name.as_ref()).to_owned(),
        uid: text(pod.metadata.uid.as_ref()).to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    let meta = template.metadata.clone().unwrap_or_default();
    Some(PodEffect::CreateClaim(Box::new(PersistentVolumeClaim {
        metadata: ObjectMeta {
            namespace: pod.metadata.namespace.clone(),
            name: Some(name.to_owned()),
            owner_references: Some(vec![owner]),
            annotations: meta.annotations,
            labels: meta.labels,
            ..ObjectMeta::default()
        },
        spec: Some(template.spec.clone().into()),
        status: None,
    })))
}

/// The controller of pods with volumes of their own.
pub struct Ephemeral(pub Office);

impl Controller for Ephemeral {
    const NAME: &'static str = "ephemeral-volume";
    type Key = ObjectKey;
    type World = PodWorld;
    type Effect = PodEffect;
    type Why = PodWhy;
    type Status = ();

    fn observe(&self, key: &ObjectKey, _: Option<&Trouble>) -> Option<PodWorld> {
        let pod = self.0.pods.get(key)?;
        let known = |name: String| {
            let claim = self.0.claims.get(&ObjectKey::new(key.namespace.as_str(), name.as_str()))?;
            Some((name, claim))
        };
        let claims = ephemeral_claims(&pod).filter_map(|(_, name)| known(name)).collect();
        Some(PodWorld { pod, claims })
    }

    fn decide(world: &PodWorld, _: Timestamp) -> Decision<PodEffect, PodWhy, ()> {
        decide(world)
    }

    async fn act(&self, _: &ObjectKey, effect: PodEffect) -> Result<(), EffectError> {
        let PodEffect::CreateClaim(claim) = effect;
        let created = self.0.claims.create(&claim).await;
        self.0.metrics.made_ephemeral(created.is_ok());
        created.map(drop)
    }

    fn shown(_: &PodWorld) -> Option<&()> {
        None
    }

    async fn show(&self, _: &PodWorld, (): ()) -> Result<(), EffectError> {
        Ok(())
    }

    fn subject(world: &PodWorld) -> Option<ObjectReference> {
        let meta = &world.pod.metadata;
        Some(ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
            field_path: None,
        })
    }
}
