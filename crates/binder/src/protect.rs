//! Keeps what is in use from being deleted: a claim while a scheduled pod names it, a volume while it is bound. Admission puts the
//! finalizers on; here they are put on what came before, and taken off what is going and unused.
//!
//! kube-controller-manager has the same two controllers; where it runs, these stay off.

use crate::effects::Office;
use crate::lean::{PersistentVolume, PersistentVolumeClaim};
use crate::words::{
    ClaimWords, VolumeWords, ephemeral_claims, is_made_for, is_scheduled, is_shut_down, named_claims, text,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, ObjectMeta};
use lifeboat_engine::{Controller, Decision, EffectError, ObjectKey, Trouble, Why};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// On a claim, while it is in use.
pub const CLAIM_FINALIZER: &str = "kubernetes.io/pvc-protection";
/// On a volume, while it is bound.
pub const VOLUME_FINALIZER: &str = "kubernetes.io/pv-protection";

/// How soon a cache that lags behind the server is looked at again.
const CATCH_UP: SignedDuration = SignedDuration::from_secs(1);

/// What a guard waits for.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum InUse {
    /// Pods name the claim.
    ByPods(Vec<String>),
    /// The server knows of a pod that the cache has yet to hear of.
    ByUnseenPod,
    /// The volume is bound.
    ByClaim,
}

impl fmt::Display for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByPods(pods) => write!(f, "it is being deleted and still used by {}", pods.join(", ")),
            Self::ByUnseenPod => f.write_str("it is being deleted and still used by a pod"),
            Self::ByClaim => f.write_str("it is being deleted and still bound"),
        }
    }
}

impl Why for InUse {}

/// What a guard does.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum GuardEffect<K> {
    /// Puts the finalizer on.
    Guard(Box<K>),
    /// Asks the server for pods, before something that cannot be undone.
    AskForPods,
    /// Takes the finalizer off.
    Release(Box<K>),
}

/// What a decision about guarding a claim needs.
#[derive(Debug, Clone)]
pub struct ClaimGuardWorld {
    /// The claim.
    pub claim: Arc<PersistentVolumeClaim>,
    /// Scheduled pods that name it.
    pub pods: Vec<String>,
    /// Whether the server, asked about the claim in this version, knew a pod that uses it.
    pub asked: Option<bool>,
}

fn guarded(meta: &ObjectMeta, finalizer: &str) -> bool {
    meta.finalizers.iter().flatten().any(|name| name == finalizer)
}

fn with_finalizer<K: Clone + kube::Resource>(object: &K, finalizer: &str) -> Box<K> {
    let mut object = Box::new(object.clone());
    object.meta_mut().finalizers.get_or_insert_default().push(finalizer.to_owned());
    object
}

fn without_finalizer<K: Clone + kube::Resource>(object: &K, finalizer: &str) -> Box<K> {
    let mut object = Box::new(object.clone());
    object.meta_mut().finalizers.iter_mut().for_each(|names| names.retain(|name| name != finalizer));
    object
}

/// Every rule about guarding claims.
pub fn decide_claim(
    world: &ClaimGuardWorld,
    now: Timestamp,
) -> Decision<GuardEffect<PersistentVolumeClaim>, InUse, ()> {
    let meta = &world.claim.metadata;
    match (meta.deletion_timestamp.is_some(), guarded(meta, CLAIM_FINALIZER)) {
        (false, false) => Decision::act([GuardEffect::Guard(with_finalizer(&*world.claim, CLAIM_FINALIZER))]),
        (false, true) | (true, false) => Decision::settled(),
        (true, true) if !world.pods.is_empty() => Decision::wait(InUse::ByPods(world.pods.clone())),
        (true, true) => match world.asked {
            None => Decision::act([GuardEffect::AskForPods]),
            Some(true) => Decision::wait_until(InUse::ByUnseenPod, now + CATCH_UP),
            Some(false) => {
                Decision::act([GuardEffect::Release(without_finalizer(&*world.claim, CLAIM_FINALIZER))])
            }
        },
    }
}

/// Every rule about guarding volumes.
pub fn decide_volume(volume: &PersistentVolume) -> Decision<GuardEffect<PersistentVolume>, InUse, ()> {
    let meta = &volume.metadata;
    match (meta.deletion_timestamp.is_some(), guarded(meta, VOLUME_FINALIZER)) {
        (false, false) => Decision::act([GuardEffect::Guard(with_finalizer(volume, VOLUME_FINALIZER))]),
        (false, true) | (true, false) => Decision::settled(),
        (true, true) if volume.phase() == "Bound" => Decision::wait(InUse::ByClaim),
        (true, true) => Decision::act([GuardEffect::Release(without_finalizer(volume, VOLUME_FINALIZER))]),
    }
}

/// The controller that guards claims.
pub struct ClaimGuard {
    office: Office,
    client: kube::Client,
    /// By claim: its version when the server was asked, and whether a pod used it.
    asked: Mutex<BTreeMap<ObjectKey, (String, bool)>>,
}

impl ClaimGuard {
    /// A guard of the claims of a cluster.
    pub fn new(office: Office, client: kube::Client) -> Self {
        Self { office, client, asked: Mutex::default() }
    }

    /// Lists a namespace's pods once for all of its claims that are going: no pod can come to use one of those any more.
    async fn ask(&self, namespace: &str) -> Result<(), EffectError> {
        let mut going = self.office.claims.in_namespace(namespace);
        going.retain(|claim| {
            claim.metadata.deletion_timestamp.is_some() && guarded(&claim.metadata, CLAIM_FINALIZER)
        });
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let pods = pods.list(&ListParams::default()).await;
        let pods = pods.map_err(|error| EffectError::api("listing pods", error))?.items;
        let mut asked = self.asked.lock();
        for claim in going {
            let used = pods.iter().any(|pod| uses(pod, &claim));
            let version = text(claim.metadata.resource_version.as_ref()).to_owned();
            asked.insert(claim.key(), (version, used));
        }
        Ok(())
    }
}

/// Whether a pod uses a claim. One without a node does not: no node starts a pod whose claim is going. One that has ended does,
/// until it is deleted. A claim made for a volume of the pod is let go with its shut-down pod, which may wait for just that.
pub fn uses(pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    let name = text(claim.metadata.name.as_ref());
    let here = pod.metadata.namespace == claim.metadata.namespace;
    let named = || named_claims(pod).any(|claim| claim == name);
    let made = || {
        !is_shut_down(pod) && is_made_for(claim, pod) && ephemeral_claims(pod).any(|(_, claim)| claim == name)
    };
    here && is_scheduled(pod) && (named() || made())
}

impl Controller for ClaimGuard {
    const NAME: &'static str = "pvc-protection";
    type Key = ObjectKey;
    type World = ClaimGuardWorld;
    type Effect = GuardEffect<PersistentVolumeClaim>;
    type Why = InUse;
    type Status = ();

    fn observe(&self, key: &ObjectKey, _: Option<&Trouble>) -> Option<ClaimGuardWorld> {
        let claim = self.office.claims.get(key)?;
        let pods = self.office.by.pods_using.get(key);
        let pods = pods.iter().filter(|pod| uses(pod, &claim));
        let pods = pods.map(|pod| text(pod.metadata.name.as_ref()).to_owned()).collect();
        // An answer counts once: what it said may have changed by the next look.
        let asked = self.asked.lock().remove(key);
        let version = text(claim.metadata.resource_version.as_ref());
        let asked = asked.filter(|(of, _)| of == version).map(|(_, used)| used);
        Some(ClaimGuardWorld { claim, pods, asked })
    }

    fn decide(world: &ClaimGuardWorld, now: Timestamp) -> Decision<Self::Effect, InUse, ()> {
        decide_claim(world, now)
    }

    async fn act(&self, key: &ObjectKey, effect: Self::Effect) -> Result<(), EffectError> {
        match effect {
            GuardEffect::Guard(claim) | GuardEffect::Release(claim) => {
                self.office.claims.replace(&claim).await.map(drop)
            }
            GuardEffect::AskForPods => self.ask(&key.namespace).await,
        }
    }

    fn shown(_: &ClaimGuardWorld) -> Option<&()> {
        None
    }

    async fn show(&self, _: &ClaimGuardWorld, (): ()) -> Result<(), EffectError> {
        Ok(())
    }

    fn forget(&self, key: &ObjectKey) {
        self.asked.lock().remove(key);
    }
}

/// The controller that guards volumes.
pub struct VolumeGuard(pub Office);

impl Controller for VolumeGuard {
    const NAME: &'static str = "pv-protection";
    type Key = ObjectKey;
    type World = Arc<PersistentVolume>;
    type Effect = GuardEffect<PersistentVolume>;
    type Why = InUse;
    type Status = ();

    fn observe(&self, key: &ObjectKey, _: Option<&Trouble>) -> Option<Arc<PersistentVolume>> {
        self.0.volumes.get(key)
    }

    fn decide(world: &Arc<PersistentVolume>, _: Timestamp) -> Decision<Self::Effect, InUse, ()> {
        decide_volume(world)
    }

    async fn act(&self, _: &ObjectKey, effect: Self::Effect) -> Result<(), EffectError> {
        match effect {
            GuardEffect::Guard(volume) | GuardEffect::Release(volume) => {
                self.0.volumes.replace(&volume).await.map(drop)
            }
            GuardEffect::AskForPods => Ok(()),
        }
    }

    fn shown(_: &Arc<PersistentVolume>) -> Option<&()> {
        None
    }

    async fn show(&self, _: &Arc<PersistentVolume>, (): ()) -> Result<(), EffectError> {
        Ok(())
    }
}
