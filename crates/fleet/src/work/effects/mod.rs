//! Observes works and carries out what was decided about them: on the hub by typed writes, on the cluster by whatever kind a manifest
//! has. What an API server refuses is remembered and becomes part of the world; what may succeed later is left to the engine.

mod objects;

use super::decide::{self, Effect, EntryName, Why};
use super::manifest::Manifest;
use super::world::{Failure, Home, Item, Recorded, Whereabouts, World, config_of};
use crate::cluster::ground::Ground;
use crate::cluster::kinds::{Found, Target};
use crate::cluster::sight::{Follower, Seen};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{ObjectMeta, Patch};
use kube::{Resource as _, ResourceExt as _};
use lifeboat_api::finalizers;
use lifeboat_api::work::{
    AppliedManifestWork, AppliedManifestWorkSpec, AppliedManifestWorkStatus, AppliedResource, ManifestConfig,
    ManifestWork, ManifestWorkStatus, ResourceIdentifier,
};
use lifeboat_engine::{Backoff, Class, Controller, Decision, EffectError, ObjectKey, Objects, Trouble};
use parking_lot::Mutex;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The name that manifests are applied by, unless a rule gives another.
const MANAGER: &str = "work-agent";
/// Who keeps a record.
const AGENT: &str = "lifeboat";
/// On a record of OCM's own agent, which waits for it.
const RECORD_FINALIZER: &str = "cluster.open-cluster-management.io/applied-manifest-work-cleanup";
/// Pauses between tries of what was refused.
const REFUSED: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(60) };

/// Tries that an API server refused, by work and object.
#[derive(Default)]
pub(crate) struct Failures(Mutex<BTreeMap<(String, Target), Failure>>);

/// The controller of works.
pub(crate) struct Works {
    pub ground: Ground,
    pub works: Objects<ManifestWork>,
    pub records: Objects<AppliedManifestWork>,
    /// The first part of every record's name.
    pub hub_hash: String,
    pub failures: Failures,
}

impl Controller for Works {
    const NAME: &'static str = "works";
    type Key = ObjectKey;
    type World = World;
    type Effect = Effect;
    type Why = Why;
    type Status = ManifestWorkStatus;

    fn observe(&self, key: &ObjectKey, trouble: Option<&Trouble>) -> Option<World> {
        let work = self.works.get(key)?;
        let mut world = World {
            standing: self.ground.standing(),
            kinds_known: self.ground.kinds.known(),
            items: Vec::new(),
            record: self.records.get(&self.record_key(&key.name)),
            recorded: Vec::new(),
            trouble: trouble.cloned(),
            work,
        };
        if world.is_going() && !world.is_held() {
            return None;
        }
        world.items = self.items(&world.work);
        world.recorded = self.recorded(world.record.as_deref());
        self.follow(key, &mut world);
        Some(world)
    }

    fn decide(world: &World, now: Timestamp) -> Decision<Effect, Why, ManifestWorkStatus> {
        decide::decide(world, now)
    }

    async fn act(&self, key: &ObjectKey, effect: Effect) -> Result<(), EffectError> {
        match effect {
            Effect::Hold => {
                self.finalizers(key, |names| names.push(finalizers::MANIFEST_WORK.to_owned())).await
            }
            Effect::Release => {
                self.finalizers(key, |names| names.retain(|name| name != finalizers::MANIFEST_WORK)).await
            }
            Effect::OpenRecord => self.open_record(&key.name).await,
            Effect::Record { entries } => self.record(&key.name, entries).await,
            Effect::DropRecord => self.drop_record(&key.name).await,
            Effect::Make { target, hash } => self.make(key, &target, &hash).await,
            Effect::Replace { target, hash } => self.replace(key, &target, &hash).await,
            Effect::Apply { target, hash } => self.apply(key, &target, &hash).await,
            Effect::Delete { target, uid } => self.delete(&target, &uid).await,
        }
    }

    fn shown(world: &World) -> Option<&ManifestWorkStatus> {
        world.work.status.as_ref()
    }

    async fn show(&self, world: &World, status: ManifestWorkStatus) -> Result<(), EffectError> {
        let shown = ManifestWork { status: Some(status), ..(*world.work).clone() };
        self.works.replace_status(&shown).await.map(drop)
    }

    fn subject(world: &World) -> Option<ObjectReference> {
        Some(world.work.object_ref(&()))
    }

    fn forget(&self, key: &ObjectKey) {
        self.ground.sight.follow(&Follower::Work(key.name.clone()), BTreeSet::new());
        self.failures.0.lock().retain(|(work, _), _| *work != key.name);
    }
}

impl Works {
    fn record_key(&self, work: &str) -> ObjectKey {
        ObjectKey::cluster_wide(format!("{}-{work}", self.hub_hash))
    }

    fn items(&self, work: &ManifestWork) -> Vec<Item> {
        let manifests = work.spec.workload.iter().flat_map(|workload| &workload.manifests);
        let item = |raw| {
            let manifest = Manifest::read(raw);
            let (kind, carried) = match &manifest {
                Ok(manifest) => (
                    self.ground.kinds.kind(&manifest.group, &manifest.version, &manifest.kind),
                    self.ground.allowed.carries(&manifest.group, &manifest.kind),
                ),
                Err(_) => (Found::None, false),
            };
            let target = match (&manifest, &kind) {
                (Ok(manifest), Found::Kind(kind)) => manifest.target(kind.clone()).ok(),
                _ => None,
            };
            let config =
                target.as_ref().map_or_else(ManifestConfig::default, |target| config_of(&work.spec, target));
            Item {
                manifest,
                kind,
                carried,
                target,
                seen: Seen::NotYet,
                home: Home::Unknown,
                config,
                failure: None,
            }
        };
        manifests.map(item).collect()
    }

    fn recorded(&self, record: Option<&AppliedManifestWork>) -> Vec<Recorded> {
        let entries =
            record.iter().flat_map(|record| &record.status).flat_map(|status| &status.applied_resources);
        let recorded = |entry: &AppliedResource| {
            let identifier = &entry.identifier;
            let group = identifier.group.as_deref().unwrap_or_default();
            let target = match self.ground.kinds.resource(group, &entry.version, &identifier.resource) {
                Found::Kind(kind) => Whereabouts::Target(Target {
                    kind,
                    namespace: identifier.namespace.clone().unwrap_or_default(),
                    name: identifier.name.clone(),
                }),
                Found::None => Whereabouts::NoKind,
                Found::Unclear => Whereabouts::Unclear,
            };
            Recorded { entry: entry.clone(), target, seen: Seen::NotYet }
        };
        entries.map(recorded).collect()
    }

    /// Says what this work wants to see, and fills in what is seen.
    fn follow(&self, key: &ObjectKey, world: &mut World) {
        let mut targets = BTreeSet::new();
        for item in world.items.iter().filter(|item| item.carried) {
            let Some(target) = &item.target else { continue };
            if !target.namespace.is_empty() {
                targets.insert(Target::namespace(&target.namespace));
            }
            targets.insert(target.clone());
        }
        for recorded in &world.recorded {
            if let Whereabouts::Target(target) = &recorded.target {
                targets.insert(target.clone());
            }
        }
        let sight = &self.ground.sight;
        sight.follow(&Follower::Work(key.name.clone()), targets);
        let failures = self.failures.0.lock();
        for item in &mut world.items {
            let Some(target) = &item.target else { continue };
            item.seen = sight.get(target);
            item.home = match target.namespace.as_str() {
                "" => Home::There,
                namespace => home(&sight.get(&Target::namespace(namespace))),
            };
            item.failure = failures.get(&(key.name.clone(), target.clone())).cloned();
        }
        for recorded in &mut world.recorded {
            if let Whereabouts::Target(target) = &recorded.target {
                recorded.seen = sight.get(target);
            }
        }
    }

    async fn finalizers(
        &self,
        key: &ObjectKey,
        change: impl Fn(&mut Vec<String>),
    ) -> Result<(), EffectError> {
        let work = self.work(key)?;
        let mut names = work.metadata.finalizers.clone().unwrap_or_default();
        change(&mut names);
        let patch = json!({ "metadata": {
            "uid": work.metadata.uid,
            "resourceVersion": work.metadata.resource_version,
            "finalizers": names,
        }});
        match self.works.patch(key, &Patch::Merge(patch)).await {
            // The last finalizer was ours and somebody else had it gone already.
            Err(error) if error.class == Class::Stale && self.works.get(key).is_none() => Ok(()),
            Ok(left) if left.metadata.deletion_timestamp.is_some() && left.finalizers().is_empty() => {
                // Nothing keeps it any more, so it is gone, whatever version the answer carries.
                self.works.wrote_deletion(key, left.metadata.uid.as_deref().unwrap_or_default());
                Ok(())
            }
            patched => patched.map(drop),
        }
    }

    async fn open_record(&self, work: &str) -> Result<(), EffectError> {
        let spec = AppliedManifestWorkSpec {
            hub_hash: self.hub_hash.clone(),
            agent_id: AGENT.to_owned(),
            manifest_work_name: work.to_owned(),
        };
        let metadata = ObjectMeta { name: Some(self.record_key(work).name), ..ObjectMeta::default() };
        self.records.create(&AppliedManifestWork { metadata, spec, status: None }).await.map(drop)
    }

    async fn record(&self, work: &str, entries: Vec<EntryName>) -> Result<(), EffectError> {
        let mut record = (*self.current_record(work)?).clone();
        let applied_resources = entries.into_iter().map(applied_resource).collect();
        record.status = Some(AppliedManifestWorkStatus { applied_resources, eviction_start_time: None });
        self.records.replace_status(&record).await.map(drop)
    }

    async fn drop_record(&self, work: &str) -> Result<(), EffectError> {
        let mut record = self.current_record(work)?;
        if record.finalizers().iter().any(|name| name == RECORD_FINALIZER) {
            let mut freed = (*record).clone();
            freed.finalizers_mut().retain(|name| name != RECORD_FINALIZER);
            record = self.records.replace(&freed).await?;
        }
        self.records.delete(&record).await
    }

    fn current_record(&self, work: &str) -> Result<Arc<AppliedManifestWork>, EffectError> {
        let gone = || EffectError::new(Class::Stale, format!("the record of work {work} is gone"));
        self.records.get(&self.record_key(work)).ok_or_else(gone)
    }

    fn work(&self, key: &ObjectKey) -> Result<Arc<ManifestWork>, EffectError> {
        let gone = || EffectError::new(Class::Stale, format!("work {key} is gone"));
        self.works.get(key).ok_or_else(gone)
    }
}

fn home(seen: &Seen) -> Home {
    match seen {
        Seen::Present(namespace) if namespace.metadata.deletion_timestamp.is_some() => Home::Going,
        // Where it cannot be told, the server will tell.
        Seen::Present(_) | Seen::Failing(_) => Home::There,
        Seen::Absent => Home::Missing,
        Seen::NotYet => Home::Unknown,
    }
}

fn applied_resource(entry: EntryName) -> AppliedResource {
    let text = |text: String| (!text.is_empty()).then_some(text);
    AppliedResource {
        identifier: ResourceIdentifier {
            group: text(entry.group),
            resource: entry.resource,
            name: entry.name,
            namespace: text(entry.namespace),
        },
        version: entry.version,
        uid: entry.uid,
    }
}
