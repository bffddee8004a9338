//! DRClusterConfig: what this cluster has to offer for disaster recovery, told to the hub. One object for each cluster; a second one is told
//! that it is one too many.

use crate::effects::{difference, guard};
use crate::words::Words as _;
use jiff::Timestamp;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::Patch;
use lifeboat_api::csiaddons::NetworkFenceClass;
use lifeboat_api::ramen::{DRClusterConfig, DRClusterConfigStatus};
use lifeboat_api::replication::{VolumeGroupReplicationClass, VolumeReplicationClass};
use lifeboat_api::snapshot::VolumeSnapshotClass;
use lifeboat_api::{annotations, finalizers, labels};
use lifeboat_engine::conditions::{Conditions, Holds};
use lifeboat_engine::{Class, Controller, Decision, EffectError, ObjectKey, Objects, Trouble, Why};
use serde::Serialize;
use serde_json::json;
use std::fmt;
use std::sync::Arc;

/// All that a decision needs: the object, whether it is the only one, and the names of what was found, in order.
#[derive(Debug, Clone)]
pub struct World {
    /// The object.
    pub config: Arc<DRClusterConfig>,
    /// The name of another one that was there before.
    pub earlier: Option<String>,
    /// What was found.
    pub found: DRClusterConfigStatus,
}

/// What can be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Effect {
    /// Puts our finalizer on.
    Adopt,
    /// Takes it off.
    Release,
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Wait {
    /// There is another one.
    OneTooMany(String),
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::OneTooMany(other) = self;
        write!(f, "there is a DRClusterConfig {other} already: a cluster has one, delete the other")
    }
}

impl Why for Wait {}

/// Every rule.
pub fn decide(world: &World, now: Timestamp) -> Decision<Effect, Wait, DRClusterConfigStatus> {
    let config = &world.config;
    let held = config.has_finalizer(finalizers::DRCLUSTERCONFIG);
    if config.is_going() {
        return Decision::act(held.then_some(Effect::Release));
    }
    let set = Conditions { generation: config.metadata.generation, now };
    let mut shown = config.status.clone().unwrap_or_default();
    let mut conditions = std::mem::take(&mut shown.conditions);
    if let Some(other) = &world.earlier {
        let why = Wait::OneTooMany(other.clone());
        set.set(&mut conditions, "Processed", Holds::False, "Failed", why.to_string());
        return Decision::wait(why).showing(DRClusterConfigStatus { conditions, ..shown });
    }
    if !held {
        return Decision::act([Effect::Adopt]);
    }
    set.set(&mut conditions, "Processed", Holds::True, "Succeeded", "Configuration processed and validated");
    // What neither of us surveys stays as others have written it.
    Decision::settled().showing(DRClusterConfigStatus {
        conditions,
        storage_access_details: shown.storage_access_details,
        network_attachments: shown.network_attachments,
        volume_group_snapshot_classes: shown.volume_group_snapshot_classes,
        ..world.found.clone()
    })
}

/// The controller of DRClusterConfigs.
pub struct Surveys {
    pub(crate) configs: Objects<DRClusterConfig>,
    pub(crate) classes: Objects<StorageClass>,
    pub(crate) snapshot_classes: Objects<VolumeSnapshotClass>,
    pub(crate) replication_classes: Objects<VolumeReplicationClass>,
    pub(crate) group_classes: Objects<VolumeGroupReplicationClass>,
    pub(crate) fences: Objects<NetworkFenceClass>,
}

/// Names of those with a label; a cache is in order, so a list that has not changed does not look changed.
fn labelled<K: kube::Resource>(all: &[Arc<K>], label: &str) -> Vec<String> {
    all.iter().filter(|one| one.label(label).is_some()).map(|one| one.name().to_owned()).collect()
}

impl Surveys {
    async fn finalizer(&self, key: &ObjectKey, on: bool) -> Result<(), EffectError> {
        let Some(config) = self.configs.get(key) else { return Ok(()) };
        let mut names: Vec<String> = config.metadata.finalizers.clone().unwrap_or_default();
        names.retain(|name| name != finalizers::DRCLUSTERCONFIG);
        if on {
            names.push(finalizers::DRCLUSTERCONFIG.to_owned());
        }
        let mut metadata = guard(&*config);
        metadata["finalizers"] = json!(names);
        self.configs.patch(key, &Patch::Merge(json!({ "metadata": metadata }))).await?;
        if !on {
            self.configs.read(key).await?;
        }
        Ok(())
    }
}

impl Controller for Surveys {
    const NAME: &'static str = "drclusterconfigs";
    type Key = ObjectKey;
    type World = World;
    type Effect = Effect;
    type Why = Wait;
    type Status = DRClusterConfigStatus;

    fn observe(&self, key: &ObjectKey, _: Option<&Trouble>) -> Option<World> {
        let config = self.configs.get(key)?;
        let age = |one: &DRClusterConfig| (one.metadata.creation_timestamp.clone(), one.name().to_owned());
        let all = self.configs.all();
        let earlier =
            all.iter().filter(|other| age(other) < age(&config)).map(|other| other.name().to_owned()).next();
        let fences = self.fences.all();
        let fencing = fences.iter().filter(|one| one.note(annotations::STORAGE_ID).is_some());
        let found = DRClusterConfigStatus {
            storage_classes: labelled(&self.classes.all(), labels::STORAGE_ID),
            volume_snapshot_classes: labelled(&self.snapshot_classes.all(), labels::STORAGE_ID),
            volume_replication_classes: labelled(&self.replication_classes.all(), labels::REPLICATION_ID),
            volume_group_replication_classes: labelled(
                &self.group_classes.all(),
                labels::GROUP_REPLICATION_ID,
            ),
            network_fence_classes: fencing.map(|one| one.name().to_owned()).collect(),
            ..DRClusterConfigStatus::default()
        };
        Some(World { config, earlier, found })
    }

    fn decide(world: &World, now: Timestamp) -> Decision<Effect, Wait, DRClusterConfigStatus> {
        decide(world, now)
    }

    async fn act(&self, key: &ObjectKey, effect: Effect) -> Result<(), EffectError> {
        self.finalizer(key, effect == Effect::Adopt).await
    }

    fn shown(world: &World) -> Option<&DRClusterConfigStatus> {
        world.config.status.as_ref()
    }

    async fn show(&self, world: &World, status: DRClusterConfigStatus) -> Result<(), EffectError> {
        let bad = |error| EffectError::caused(Class::BadInput, "writing the survey down", error);
        let before = serde_json::to_value(world.config.status.clone().unwrap_or_default()).map_err(bad)?;
        let after = serde_json::to_value(&status).map_err(bad)?;
        let patch = json!({ "metadata": guard(&*world.config), "status": difference(&before, &after) });
        let key = ObjectKey::of(&*world.config);
        self.configs.patch_status(&key, &Patch::Merge(patch)).await.map(drop)
    }
}
