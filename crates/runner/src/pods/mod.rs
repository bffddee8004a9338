//! Pods on this node: their containers as processes of a [`Machine`], from the first start to the last end. What a kubelet does, without
//! images, networks and namespaces.

mod decide;
pub(crate) mod launch;
mod status;

pub use decide::{Effect, Wait, World, decide};
pub use launch::{Source, Unsupported};

use crate::machine::{Machine, MachineError, Run};
use crate::words::{bound_to, claims, name, node_of, spec, status as status_of, uid};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod, PodStatus};
use kube::Resource as _;
use lifeboat_engine::{Class, Controller, Decision, EffectError, ObjectKey, Objects, Trouble};
use lifeboat_lvm::{Access, Lvm};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The controller of the pods of one node.
pub struct Pods {
    /// All pods.
    pub pods: Objects<Pod>,
    /// All claims.
    pub claims: Objects<PersistentVolumeClaim>,
    /// All volumes.
    pub volumes: Objects<PersistentVolume>,
    /// This node.
    pub node: String,
    /// What runs the processes.
    pub machine: Arc<dyn Machine>,
    /// Where the volumes are.
    pub disks: Arc<dyn Lvm>,
    /// For deletions with no time left.
    pub client: kube::Client,
}

/// A pod as events name it.
pub(crate) fn reference(pod: &Pod) -> ObjectReference {
    let meta = &pod.metadata;
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        ..ObjectReference::default()
    }
}

impl Pods {
    fn sources(&self, pod: &Pod) -> BTreeMap<String, Source> {
        let namespace = pod.metadata.namespace.clone().unwrap_or_default();
        let claimed: BTreeMap<&str, String> = claims(pod).into_iter().collect();
        let volumes = spec(pod).and_then(|spec| spec.volumes.as_ref());
        let source = |volume: &k8s_openapi::api::core::v1::Volume| match claimed.get(volume.name.as_str()) {
            Some(claim) => self.bound(&namespace, claim),
            None if volume.empty_dir.is_some() => Source::Scratch,
            None => Source::Other,
        };
        volumes.into_iter().flatten().map(|volume| (volume.name.clone(), source(volume))).collect()
    }

    fn bound(&self, namespace: &str, claim: &str) -> Source {
        let unbound = || Source::Unbound { claim: claim.to_owned() };
        let Some(there) = self.claims.get(&ObjectKey::new(namespace, claim)) else { return unbound() };
        let volume = bound_to(&there).and_then(|name| self.volumes.get(&ObjectKey::cluster_wide(name)));
        let handle =
            volume.and_then(|volume| volume.spec.as_ref()?.csi.as_ref().map(|csi| csi.volume_handle.clone()));
        let modes = there.spec.as_ref().and_then(|spec| spec.access_modes.as_ref());
        let shared = modes.into_iter().flatten().any(|mode| mode.ends_with("Many"));
        match handle {
            Some(handle) => Source::Bound { claim: claim.to_owned(), handle, one_writer: !shared },
            None => unbound(),
        }
    }

    /// Finds the folders of a run's volumes.
    async fn folders(&self, run: &mut Run) -> Result<(), EffectError> {
        for mount in run.mounts.iter_mut() {
            let Some(handle) = &mount.handle else { continue };
            mount.folder = Some(self.folder(handle).await?);
        }
        Ok(())
    }

    async fn folder(&self, handle: &str) -> Result<PathBuf, EffectError> {
        let tried = || format!("finding volume {handle} on the disks of {}", self.node);
        let failed = |error| EffectError::caused(Class::Transient, tried(), error);
        for class in self.disks.classes().await.map_err(failed)? {
            let volumes = self.disks.volumes(&class.name).await.map_err(failed)?;
            let found = volumes.into_iter().find(|volume| volume.name == handle);
            match found.map(|volume| volume.access) {
                Some(Access::Directory(folder)) => return Ok(folder),
                Some(_) => {
                    let why = format!(
                        "{}: it is a block device, and only folders can be given to a process",
                        tried()
                    );
                    return Err(EffectError::new(Class::BadInput, why));
                }
                None => {}
            }
        }
        Err(EffectError::new(Class::Transient, format!("{}: no class has it yet", tried())))
    }

    async fn remove(&self, key: &ObjectKey, life: &str) -> Result<(), EffectError> {
        let tried = || format!("removing stopped pod {key}");
        let url = format!("{}/{}", Pod::url_path(&(), Some(&key.namespace)), key.name);
        let body = json!({
            "apiVersion": "v1", "kind": "DeleteOptions",
            "gracePeriodSeconds": 0, "preconditions": {"uid": life},
        });
        let request = http::Request::delete(url)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(body.to_string().into_bytes())
            .map_err(|error| EffectError::caused(Class::BadInput, tried(), error))?;
        let removed = self.client.request::<serde_json::Value>(request).await;
        self.pods.read(key).await?;
        match removed {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            removed => removed.map(drop).map_err(|error| EffectError::api(tried(), error)),
        }
    }
}

fn failed(error: MachineError) -> EffectError {
    let class = match error {
        MachineError::NotAllowed(_) => Class::BadInput,
        MachineError::Failed { .. } => Class::Transient,
    };
    EffectError::new(class, error.to_string())
}

impl Controller for Pods {
    const NAME: &'static str = "pods";
    type Key = ObjectKey;
    type World = World;
    type Effect = Effect;
    type Why = Wait;
    type Status = PodStatus;

    fn observe(&self, key: &ObjectKey, trouble: Option<&Trouble>) -> Option<World> {
        let pod = self.pods.get(key).filter(|pod| node_of(pod) == Some(self.node.as_str()));
        let processes = self.machine.of(key);
        if pod.is_none() && processes.is_empty() {
            return None;
        }
        let life = pod.as_ref().map(|pod| uid(&pod.metadata).to_owned()).unwrap_or_default();
        let mut used = BTreeMap::new();
        for (volume, users) in self.machine.users() {
            let other = users.into_iter().find(|(_, user)| *user != life);
            used.extend(other.map(|(by, _)| (volume, by)));
        }
        Some(World {
            volumes: pod.as_ref().map(|pod| self.sources(pod)).unwrap_or_default(),
            pod,
            processes,
            used,
            programs: self.machine.programs(),
            trouble: trouble.cloned(),
        })
    }

    fn decide(world: &World, now: Timestamp) -> Decision<Effect, Wait, PodStatus> {
        decide(world, now)
    }

    async fn act(&self, key: &ObjectKey, effect: Effect) -> Result<(), EffectError> {
        match effect {
            Effect::Start(mut run) => {
                self.folders(&mut run).await?;
                self.machine.start(*run).await.map_err(failed)
            }
            Effect::Tell { id, signal } => self.machine.signal(&id, signal).await.map_err(failed),
            Effect::Clear { pod } => self.machine.clear(&pod).await.map_err(failed),
            Effect::Remove { uid } => self.remove(key, &uid).await,
        }
    }

    fn shown(world: &World) -> Option<&PodStatus> {
        status_of(world.pod.as_ref()?)
    }

    async fn show(&self, world: &World, status: PodStatus) -> Result<(), EffectError> {
        let Some(pod) = &world.pod else { return Ok(()) };
        let mut pod = Pod::clone(pod);
        pod.status = Some(status);
        tracing::debug!(pod = name(&pod.metadata), "showing the status of a pod");
        self.pods.replace_status(&pod).await.map(drop)
    }

    fn subject(world: &World) -> Option<ObjectReference> {
        world.pod.as_deref().map(reference)
    }
}
