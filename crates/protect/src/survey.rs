//! DRClusterConfig: what this cluster has to offer for disaster recovery, told to the hub. One object for each cluster; a second one is told
//! that it is one too many.
//!
//! Every object store that the cluster is told of is tried from here, for that the hub reaches it says nothing about this cluster: when it is told of it,
//! when that changes, and then every few minutes, soon again where it failed. No record is written or read for that.

use crate::effects::store;
use crate::ledger::Ledger;
use crate::settings::{CONFIG_MAP, Config, Profile};
use crate::view::Setup;
use crate::words::Words as _;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::Patch;
use lifeboat_api::conditions::drcluster;
use lifeboat_api::csiaddons::NetworkFenceClass;
use lifeboat_api::ramen::{DRClusterConfig, DRClusterConfigStatus};
use lifeboat_api::replication::{VolumeGroupReplicationClass, VolumeReplicationClass};
use lifeboat_api::snapshot::VolumeSnapshotClass;
use lifeboat_api::{annotations, finalizers, labels};
use lifeboat_engine::conditions::{Conditions, Holds};
use lifeboat_engine::{
    Backoff, Clock, Controller, Decision, EffectError, ObjectKey, Objects, Trouble, Why, difference,
};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How long all stores together may take to answer.
const WITHIN: Duration = Duration::from_secs(20);

/// All that a decision needs: the object, whether it is the only one, and the names of what was found, in order.
#[derive(Debug, Clone)]
pub struct World {
    /// The object.
    pub config: Arc<DRClusterConfig>,
    /// The name of another one that was there before.
    pub earlier: Option<String>,
    /// What was found.
    pub found: DRClusterConfigStatus,
    /// The stores that the cluster is told of, and what came of trying them.
    pub stores: BTreeMap<String, Told>,
    /// Why it is told of none at all.
    pub untold: Option<String>,
}

/// A store that the cluster is told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// What is said of it cannot be used.
    Bad(String),
    /// It was not tried yet, as it is told now.
    Untried,
    /// It was.
    Tried(Tried),
}

/// What came of trying a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// Whether it can be used.
    pub outcome: Result<(), String>,
    /// When it is tried again.
    pub again: Timestamp,
    /// How often it failed in a row.
    pub failures: u32,
}

impl Tried {
    /// What is known after one more try.
    #[must_use]
    pub fn after(before: Option<&Self>, outcome: Result<(), String>, now: Timestamp) -> Self {
        let failed = before.filter(|before| before.outcome.is_err());
        let failures = match &outcome {
            Ok(()) => 0,
            Err(_) => failed.map_or(0, |before| before.failures) + 1,
        };
        let pause = if failures == 0 { EVERY } else { PAUSES.after(failures) };
        let pause = SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX);
        Self { outcome, again: now.checked_add(pause).unwrap_or(Timestamp::MAX), failures }
    }
}

/// How often a store that can be used is tried.
const EVERY: Duration = Duration::from_secs(300);
/// Pauses between tries of one that cannot.
const PAUSES: Backoff = Backoff { first: Duration::from_secs(5), longest: Duration::from_secs(300) };

/// What can be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Effect {
    /// Puts our finalizer on.
    Adopt,
    /// Takes it off.
    Release,
    /// Tries stores.
    Try(Vec<String>),
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Wait {
    /// There is another one.
    OneTooMany(String),
    /// Stores cannot be used from here.
    StoresFail(String),
    /// Nothing: stores are tried again after a while.
    NextTry,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OneTooMany(other) => {
                write!(f, "there is a DRClusterConfig {other} already: a cluster has one, delete the other")
            }
            Self::StoresFail(why) => f.write_str(why),
            Self::NextTry => f.write_str("stores are tried again after a while"),
        }
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
    let due = due(world, now);
    let stores = reach(world, &mut conditions, set);
    // What neither of us surveys stays as others have written it.
    let status = DRClusterConfigStatus {
        conditions,
        storage_access_details: shown.storage_access_details,
        network_attachments: shown.network_attachments,
        volume_group_snapshot_classes: shown.volume_group_snapshot_classes,
        store_failures: stores,
        ..world.found.clone()
    };
    if !due.is_empty() {
        return Decision::act([Effect::Try(due)]).showing(status);
    }
    let tried = world.stores.values().filter_map(|told| match told {
        Told::Tried(tried) => Some(tried.again),
        Told::Bad(_) | Told::Untried => None,
    });
    match (tried.min(), status.store_failures.is_empty()) {
        (Some(again), true) => Decision::wait_until(Wait::NextTry, again),
        (Some(again), false) => {
            Decision::wait_until(Wait::StoresFail(sentence(&status.store_failures)), again)
        }
        (None, false) => Decision::wait(Wait::StoresFail(sentence(&status.store_failures))),
        (None, true) => Decision::settled(),
    }
    .showing(status)
}

/// Stores that have to be tried now.
fn due(world: &World, now: Timestamp) -> Vec<String> {
    let due = world.stores.iter().filter(|(_, told)| match told {
        Told::Bad(_) => false,
        Told::Untried => true,
        Told::Tried(tried) => now >= tried.again,
    });
    due.map(|(name, _)| name.clone()).collect()
}

fn sentence(failures: &BTreeMap<String, String>) -> String {
    let each: Vec<String> = failures.iter().map(|(name, why)| format!("the store {name}: {why}")).collect();
    each.join("; ")
}

/// Says which stores cannot be used from here; the answer is true or false only when all were tried.
fn reach(world: &World, conditions: &mut Vec<Condition>, set: Conditions) -> BTreeMap<String, String> {
    let failures = world.stores.iter().filter_map(|(name, told)| match told {
        Told::Bad(why) => Some((name.clone(), why.clone())),
        Told::Tried(Tried { outcome: Err(why), .. }) => Some((name.clone(), why.clone())),
        Told::Untried | Told::Tried(_) => None,
    });
    let failures: BTreeMap<String, String> = failures.collect();
    let untried = world.stores.values().any(|told| *told == Told::Untried);
    let (holds, reason, said) = match (&world.untold, failures.is_empty()) {
        (Some(why), _) => (Holds::Unknown, drcluster::REASON_INITIALIZING, why.clone()),
        (None, false) => (Holds::False, drcluster::REASON_S3_CONNECTION_FAILED, sentence(&failures)),
        (None, true) if untried => {
            (Holds::Unknown, drcluster::REASON_INITIALIZING, "stores are being tried".to_owned())
        }
        (None, true) if world.stores.is_empty() => {
            (Holds::Unknown, drcluster::REASON_INITIALIZING, "the cluster is told of no store".to_owned())
        }
        (None, true) => {
            (Holds::True, drcluster::REASON_SUCCEEDED, "all stores can be used from here".to_owned())
        }
    };
    set.set(conditions, drcluster::TYPE_REACHABLE, holds, reason, said);
    failures
}

/// The controller of DRClusterConfigs.
pub struct Surveys {
    pub(crate) configs: Objects<DRClusterConfig>,
    pub(crate) classes: Objects<StorageClass>,
    pub(crate) snapshot_classes: Objects<VolumeSnapshotClass>,
    pub(crate) replication_classes: Objects<VolumeReplicationClass>,
    pub(crate) group_classes: Objects<VolumeGroupReplicationClass>,
    pub(crate) fences: Objects<NetworkFenceClass>,
    pub(crate) config: Objects<ConfigMap>,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) setup: Setup,
    pub(crate) client: kube::Client,
    pub(crate) clock: Clock,
    /// What came of trying stores, with what was told of them then.
    pub(crate) tried: Mutex<BTreeMap<String, (Profile, Tried)>>,
}

/// Names of those with a label; a cache is in order, so a list that has not changed does not look changed.
fn labelled<K: kube::Resource>(all: &[Arc<K>], label: &str) -> Vec<String> {
    all.iter().filter(|one| one.label(label).is_some()).map(|one| one.name().to_owned()).collect()
}

/// The group that a store is asked for to see whether it answers; that nobody has one of this name is an answer too.
fn anybody() -> ObjectKey {
    ObjectKey::new("lifeboat-check", "reach")
}

impl Surveys {
    fn settings(&self) -> Config {
        let map = self.config.get(&ObjectKey::new(self.setup.namespace.clone(), CONFIG_MAP));
        Config::of(map.as_deref())
    }

    /// The stores that the cluster is told of.
    fn stores(&self, config: &Config) -> BTreeMap<String, Told> {
        let tried = self.tried.lock();
        let good = config.profiles.iter().map(|(name, profile)| {
            let known = tried.get(name).filter(|(told, _)| told == profile);
            (name.clone(), known.map_or(Told::Untried, |(_, tried)| Told::Tried(tried.clone())))
        });
        let bad = config.bad_profiles.iter().map(|(name, why)| (name.clone(), Told::Bad(why.clone())));
        good.chain(bad).collect()
    }

    /// Tries stores, all at once.
    async fn try_stores(&self, names: &[String]) {
        let config = self.settings();
        let profiles: Vec<Profile> =
            names.iter().filter_map(|name| config.profiles.get(name).cloned()).collect();
        let mut outcomes: BTreeMap<String, Result<(), String>> = BTreeMap::new();
        let mut open = Vec::new();
        for profile in &profiles {
            match store(&self.client, &self.setup.namespace, profile.clone()).await {
                Ok(store) => open.push(store),
                Err(why) => drop(outcomes.insert(profile.name.clone(), Err(why))),
            }
        }
        let asked = tokio::time::timeout(WITHIN, self.ledger.read(&open, &anybody(), None)).await;
        for store in &open {
            let name = &store.profile.name;
            let told = asked.as_ref().ok().and_then(|reading| reading.stores.get(name).cloned());
            let late = || Err(format!("it did not answer within {} s", WITHIN.as_secs()));
            outcomes.insert(name.clone(), told.map_or_else(late, |told| told.map(drop)));
        }
        let mut tried = self.tried.lock();
        for profile in profiles {
            let Some(outcome) = outcomes.remove(&profile.name) else { continue };
            let before = tried.get(&profile.name).filter(|(told, _)| *told == profile);
            let after = Tried::after(before.map(|(_, tried)| tried), outcome, self.clock.now());
            tried.insert(profile.name.clone(), (profile, after));
        }
    }

    async fn finalizer(&self, key: &ObjectKey, on: bool) -> Result<(), EffectError> {
        let Some(config) = self.configs.get(key) else { return Ok(()) };
        let mut names: Vec<String> = config.metadata.finalizers.clone().unwrap_or_default();
        names.retain(|name| name != finalizers::DRCLUSTERCONFIG);
        if on {
            names.push(finalizers::DRCLUSTERCONFIG.to_owned());
        }
        let mut metadata = config.guard();
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
        let settings = self.settings();
        let stores = self.stores(&settings);
        Some(World { config, earlier, found, stores, untold: settings.problem })
    }

    fn decide(world: &World, now: Timestamp) -> Decision<Effect, Wait, DRClusterConfigStatus> {
        decide(world, now)
    }

    async fn act(&self, key: &ObjectKey, effect: Effect) -> Result<(), EffectError> {
        match effect {
            Effect::Adopt => self.finalizer(key, true).await,
            Effect::Release => self.finalizer(key, false).await,
            Effect::Try(names) => {
                self.try_stores(&names).await;
                Ok(())
            }
        }
    }

    fn shown(world: &World) -> Option<&DRClusterConfigStatus> {
        world.config.status.as_ref()
    }

    async fn show(&self, world: &World, status: DRClusterConfigStatus) -> Result<(), EffectError> {
        let before = world.config.status.clone().unwrap_or_default();
        let patch = json!({ "metadata": world.config.guard(), "status": difference(&before, &status)? });
        let key = ObjectKey::of(&*world.config);
        self.configs.patch_status(&key, &Patch::Merge(patch)).await.map(drop)
    }
}
