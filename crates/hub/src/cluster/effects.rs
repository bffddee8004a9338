//! Act: carries out what was decided about a cluster. Every write names the object by uid and version. Keys are read when they are used.

use super::check::{Desk, Failure, Opening};
use super::decide::{ClusterDecision, Effect, decide};
use super::manifests;
use super::view::Watched;
use super::why::Wait;
use super::world::World;
use crate::secrets::{hidden, version_of};
use crate::words::{Words as _, difference};
use crate::{views, works};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ObjectReference, Secret};
use kube::api::Patch;
use lifeboat_api::ramen::{DRCluster, DRClusterStatus};
use lifeboat_api::{finalizers, labels};
use lifeboat_engine::{Class, Controller, EffectError, ObjectKey, Trouble};
use lifeboat_store as store;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where the keys are in a store's secret.
const ACCESS_KEY: &str = "AWS_ACCESS_KEY_ID";
const SECRET_KEY: &str = "AWS_SECRET_ACCESS_KEY";

/// The controller of DRClusters.
pub struct Controlled {
    pub(super) watched: Watched,
    pub(super) desk: Desk,
}

impl Controlled {
    fn cluster(&self, key: &ObjectKey) -> Result<Arc<DRCluster>, EffectError> {
        let gone = || EffectError::new(Class::Stale, format!("DRCluster {key} is gone"));
        self.watched.clusters.get(key).ok_or_else(gone)
    }

    fn now_world(&self, key: &ObjectKey) -> Result<World, EffectError> {
        let gone = || EffectError::new(Class::Stale, format!("DRCluster {key} is gone"));
        self.watched.world(&key.name, &self.desk, None).ok_or_else(gone)
    }

    async fn adopt(&self, key: &ObjectKey) -> Result<(), EffectError> {
        let cluster = self.cluster(key)?;
        let mut metadata = cluster.guard();
        let mut names = cluster.metadata.finalizers.clone().unwrap_or_default();
        if !cluster.has_finalizer(finalizers::DRCLUSTER) {
            names.push(finalizers::DRCLUSTER.to_owned());
        }
        metadata["finalizers"] = json!(names);
        metadata["labels"] = json!({ labels::OCM_BACKUP: labels::OCM_BACKUP_VALUE });
        self.watched.clusters.patch(key, &Patch::Merge(json!({ "metadata": metadata }))).await.map(drop)
    }

    async fn release(&self, key: &ObjectKey) -> Result<(), EffectError> {
        let cluster = self.cluster(key)?;
        let mut metadata = cluster.guard();
        let names = cluster.metadata.finalizers.iter().flatten();
        let left: Vec<&String> = names.filter(|name| *name != finalizers::DRCLUSTER).collect();
        metadata["finalizers"] = json!(left);
        self.watched.clusters.patch(key, &Patch::Merge(json!({ "metadata": metadata }))).await?;
        self.watched.clusters.read(key).await.map(drop)
    }

    /// The secret of a store as it is now, not as it was seen last.
    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Arc<Secret>>, EffectError> {
        match self.watched.secret_key(namespace, name) {
            Some(key) => self.watched.secrets.read(&key).await,
            None => Ok(None),
        }
    }

    async fn send_stores(&self, key: &ObjectKey) -> Result<(), EffectError> {
        let world = self.now_world(key)?;
        let Ok(config) = &world.config else { return Ok(()) };
        let (mut carried, mut versions) = (BTreeMap::new(), Vec::new());
        for name in world.stores() {
            let Ok(profile) = config.profile(&name) else { continue };
            let Some(secret) = self.secret(&profile.secret.namespace, &profile.secret.name).await? else {
                continue;
            };
            versions.push(format!("{name}={}", version_of(&secret.metadata)));
            let data = serde_json::to_value(&secret.data).unwrap_or(Value::Null);
            carried.insert(profile.secret.name.clone(), data);
        }
        let work = manifests::stores(&key.name, config, &versions.join(","), &carried);
        let sent = works::put(&self.watched.works, &work).await;
        sent.map_err(|error| hidden(error, &format!("sending the keys to stores to cluster {}", key.name)))
    }

    /// Hands the store of a cluster to the clerk.
    async fn try_store(&self, key: &ObjectKey, question: String) -> Result<(), EffectError> {
        let world = self.now_world(key)?;
        let name = &world.cluster.spec.s3_profile_name;
        let profile =
            match world.config.as_ref().map_err(Clone::clone).and_then(|config| config.profile(name)) {
                Ok(profile) => profile.clone(),
                Err(why) => {
                    self.desk.answer(&key.name, question, Err(Failure::unasked(why)));
                    return Ok(());
                }
            };
        let secret = self.secret(&profile.secret.namespace, &profile.secret.name).await?;
        let text = |field: &str| {
            let bytes = secret.as_ref()?.data.as_ref()?.get(field)?.0.clone();
            String::from_utf8(bytes).ok().map(|text| store::Secret::new(text.trim()))
        };
        match (text(ACCESS_KEY), text(SECRET_KEY)) {
            (Some(access_key), Some(secret_key)) => {
                self.desk.ask(&key.name, question, Opening { profile, access_key, secret_key });
            }
            _ => {
                let secret = &profile.secret.name;
                let why =
                    format!("the secret {secret} of the store {name} has no {ACCESS_KEY} and {SECRET_KEY}");
                self.desk.answer(&key.name, question, Err(Failure::unasked(why)));
            }
        }
        Ok(())
    }
}

impl Controller for Controlled {
    const NAME: &'static str = "drclusters";
    type Key = ObjectKey;
    type World = World;
    type Effect = Effect;
    type Why = Wait;
    type Status = DRClusterStatus;

    fn observe(&self, key: &ObjectKey, trouble: Option<&Trouble>) -> Option<World> {
        self.watched.world(&key.name, &self.desk, trouble)
    }

    fn decide(world: &World, now: Timestamp) -> ClusterDecision {
        decide(world, now)
    }

    async fn act(&self, key: &ObjectKey, effect: Effect) -> Result<(), EffectError> {
        match effect {
            Effect::Adopt => self.adopt(key).await,
            Effect::Release => self.release(key).await,
            Effect::Send(work) => works::put(&self.watched.works, &work).await,
            Effect::SendStores { .. } => self.send_stores(key).await,
            Effect::TakeBack { cluster, name } => {
                works::take_back(&self.watched.works, &ObjectKey::new(cluster, name)).await
            }
            Effect::Ask(view) => views::ask(&self.watched.views, &view).await,
            Effect::StopAsking { cluster, name } => {
                views::stop_asking(&self.watched.views, &ObjectKey::new(cluster, name)).await
            }
            Effect::Try { question } => self.try_store(key, question).await,
        }
    }

    fn shown(world: &World) -> Option<&DRClusterStatus> {
        world.cluster.status.as_ref()
    }

    async fn show(&self, world: &World, status: DRClusterStatus) -> Result<(), EffectError> {
        let shown = world.cluster.status.clone().unwrap_or_default();
        let patch = json!({ "metadata": world.cluster.guard(), "status": difference(&shown, &status)? });
        let key = ObjectKey::of(&*world.cluster);
        self.watched.clusters.patch_status(&key, &Patch::Merge(patch)).await.map(drop)
    }

    fn subject(world: &World) -> Option<ObjectReference> {
        Some(reference("DRCluster", &*world.cluster))
    }

    fn forget(&self, key: &ObjectKey) {
        self.desk.forget(&key.name);
    }
}

/// What events about an object are attached to.
pub(crate) fn reference(kind: &str, object: &impl kube::Resource) -> ObjectReference {
    let meta = object.meta();
    ObjectReference {
        api_version: Some(format!("{}/v1alpha1", lifeboat_api::ramen::GROUP)),
        kind: Some(kind.to_owned()),
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        ..ObjectReference::default()
    }
}
