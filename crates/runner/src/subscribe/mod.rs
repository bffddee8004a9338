//! Applications by placement: what a GitOps tool does in real fleets. The manifests are in a ConfigMap of the hub, labelled with the name
//! of a Placement; each cluster pulls those that its decisions name and takes off what runs elsewhere.
//!
//! What was deployed here carries the uid of a record on this cluster. So a claim that was restored from another cluster's records, with
//! all its annotations, is never taken for one that was deployed here.

mod decide;
mod manifests;

pub use decide::{Decided, Effect, Seen, Wait, World, decide};
pub use manifests::{Kind, Manifest, read};

use crate::words::{annotation, is_going, label, uid};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::api::Patch;
use lifeboat_api::annotations::{DEPLOYED_BY, DEPLOYED_FROM, MANIFEST_HASH};
use lifeboat_api::cluster::{ManagedCluster, PlacementDecision};
use lifeboat_api::conditions::fleet::IDENTITY_NAMESPACE;
use lifeboat_api::labels::{MANIFESTS_OF, PLACEMENT};
use lifeboat_engine::{
    Change, Clock, Controller, Decision, EffectError, Engine, ObjectKey, Objects, Selection, Settings,
    Trouble,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// The name that events and writes carry.
pub const NAME: &str = "lifeboat-subscription";

/// What subscriptions read on the hub; clones share it.
#[derive(Clone)]
pub struct HubView {
    sources: Objects<ConfigMap>,
    decisions: Objects<PlacementDecision>,
    clusters: Objects<ManagedCluster>,
}

/// The view of the hub that all clusters of this process share, and the engine that feeds it.
pub fn hub_view(client: kube::Client, clock: Clock, settings: Settings) -> (Engine, HubView) {
    let mut engine = Engine::new(NAME, client, clock, settings);
    let view = HubView {
        sources: engine.objects(Selection::all().labels(MANIFESTS_OF)),
        decisions: engine.objects(Selection::all().labels(PLACEMENT)),
        clusters: engine.objects(Selection::all()),
    };
    (engine, view)
}

/// The subscription of one cluster, ready to run.
pub fn subscriber(
    hub: &HubView,
    cluster: &str,
    client: kube::Client,
    clock: Clock,
    settings: Settings,
) -> Engine {
    let mut engine = Engine::new(NAME, client, clock, settings);
    let controller = Subscriptions {
        hub: hub.clone(),
        cluster: cluster.to_owned(),
        namespaces: engine.objects(Selection::all()),
        deployments: engine.objects(Selection::all()),
        claims: engine.objects(Selection::all()),
        maps: engine.objects(Selection::all()),
    };
    let (deployments, claims, maps) =
        (controller.deployments.clone(), controller.claims.clone(), controller.maps.clone());
    let namespaces = controller.namespaces.clone();
    let (a, b, c) = (maps.clone(), maps.clone(), maps.clone());
    let (of_decision, of_space) = (hub.sources.clone(), hub.sources.clone());
    let (of_cluster, own) = (hub.sources.clone(), cluster.to_owned());
    let (of_deployment, of_claim) = (hub.sources.clone(), hub.sources.clone());
    engine
        .controller(controller)
        .woken_by(&hub.sources, |change: &Change<ConfigMap>| [change.key()])
        .woken_by(&hub.decisions, move |change: &Change<PlacementDecision>| {
            let meta = &change.latest().metadata;
            let placement = label(meta, PLACEMENT).map(str::to_owned);
            let named = of_decision.in_namespace(meta.namespace.as_deref().unwrap_or_default());
            let named = named
                .into_iter()
                .filter(|source| label(&source.metadata, MANIFESTS_OF) == placement.as_deref());
            named.map(|source| ObjectKey::of(&*source)).collect::<Vec<_>>()
        })
        .woken_by(&hub.clusters, move |change: &Change<ManagedCluster>| {
            let [old, new] =
                [&change.old, &change.new].map(|one| one.as_deref().and_then(ManagedCluster::id));
            let all = if change.key().name == own && old != new { of_cluster.all() } else { Vec::new() };
            all.iter().map(|source| ObjectKey::of(&**source)).collect::<Vec<_>>()
        })
        .woken_by(&deployments, move |change: &Change<Deployment>| by_object(&of_deployment, &a, change))
        .woken_by(&claims, move |change: &Change<PersistentVolumeClaim>| by_object(&of_claim, &b, change))
        .woken_by(&maps, move |change: &Change<ConfigMap>| {
            let mut keys = by_record(&c, change);
            keys.extend(change.versions().filter_map(|map| source_of(map)));
            keys
        })
        .woken_by(&namespaces, move |_: &Change<Namespace>| {
            of_space.all().iter().map(|source| ObjectKey::of(&**source)).collect::<Vec<_>>()
        });
    engine
}

/// The applications that an object may concern: its own, and all when it is gone, for one may wait for its name.
fn by_object<K: Resource>(
    sources: &Objects<ConfigMap>,
    records: &Objects<ConfigMap>,
    change: &Change<K>,
) -> BTreeSet<ObjectKey> {
    match change.new {
        Some(_) => by_record(records, change),
        None => sources.all().iter().map(|source| ObjectKey::of(&**source)).collect(),
    }
}

/// The applications whose record an object carries.
fn by_record<K: Resource>(records: &Objects<ConfigMap>, change: &Change<K>) -> BTreeSet<ObjectKey> {
    let named: BTreeSet<&str> =
        change.versions().filter_map(|object| annotation(object.meta(), DEPLOYED_BY)).collect();
    if named.is_empty() {
        return BTreeSet::new();
    }
    let all = records.all();
    all.iter().filter(|map| named.contains(uid(&map.metadata))).filter_map(|map| source_of(map)).collect()
}

/// The ConfigMap on the hub that a record is about.
fn source_of(record: &ConfigMap) -> Option<ObjectKey> {
    let (namespace, name) = annotation(&record.metadata, DEPLOYED_FROM)?.split_once('/')?;
    Some(ObjectKey::new(namespace, name))
}

/// The controller of applications on one cluster; keys are ConfigMaps of the hub.
pub struct Subscriptions {
    hub: HubView,
    cluster: String,
    namespaces: Objects<Namespace>,
    deployments: Objects<Deployment>,
    claims: Objects<PersistentVolumeClaim>,
    maps: Objects<ConfigMap>,
}

impl Subscriptions {
    fn record_key(key: &ObjectKey) -> ObjectKey {
        ObjectKey::new(key.namespace.clone(), format!("{}-deployed", key.name))
    }

    fn decided(&self, source: &ConfigMap) -> Decided {
        if !self.hub.decisions.is_synced() || !self.hub.sources.is_synced() {
            return Decided::Unread;
        }
        let known = self.hub.clusters.get(&ObjectKey::cluster_wide(self.cluster.as_str()));
        let own = self.namespaces.get(&ObjectKey::cluster_wide(IDENTITY_NAMESPACE));
        if let (Some(known), Some(own)) = (known.as_ref().and_then(|known| known.id()), own)
            && known != uid(&own.metadata)
        {
            return Decided::ForAnother;
        }
        let placement = label(&source.metadata, MANIFESTS_OF);
        let all = self.hub.decisions.in_namespace(source.metadata.namespace.as_deref().unwrap_or_default());
        let told = all.iter().filter(|one| label(&one.metadata, PLACEMENT) == placement);
        Decided::of(told.map(|one| &**one), &self.cluster)
    }

    fn look(&self, kind: Kind, key: &ObjectKey) -> Option<Seen> {
        match kind {
            Kind::Deployment => self.deployments.get(key).map(|object| seen(&object.metadata)),
            Kind::PersistentVolumeClaim => self.claims.get(key).map(|object| seen(&object.metadata)),
            Kind::ConfigMap => self.maps.get(key).map(|object| seen(&object.metadata)),
        }
    }

    fn deployed(&self, record: &str) -> BTreeMap<(Kind, ObjectKey), Seen> {
        fn of<K: Resource<DynamicType = ()> + Send + Sync + 'static>(
            objects: &Objects<K>,
            kind: Kind,
            record: &str,
        ) -> Vec<((Kind, ObjectKey), Seen)> {
            let all = objects.all();
            let ours = all.iter().filter(|object| annotation(object.meta(), DEPLOYED_BY) == Some(record));
            ours.map(|object| ((kind, ObjectKey::of(&**object)), seen(object.meta()))).collect()
        }
        let mut found: BTreeMap<_, _> = of(&self.deployments, Kind::Deployment, record).into_iter().collect();
        found.extend(of(&self.claims, Kind::PersistentVolumeClaim, record));
        found.extend(of(&self.maps, Kind::ConfigMap, record));
        found
    }
}

fn seen(meta: &ObjectMeta) -> Seen {
    Seen {
        uid: uid(meta).to_owned(),
        version: meta.resource_version.clone().unwrap_or_default(),
        going: is_going(meta),
        deployed_by: annotation(meta, DEPLOYED_BY).map(str::to_owned),
        hash: annotation(meta, MANIFEST_HASH).map(str::to_owned),
    }
}

async fn apply<K>(objects: &Objects<K>, manifest: &Manifest, record: &str) -> Result<(), EffectError>
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
{
    let mut object = manifest.object.clone();
    object["metadata"]["annotations"][DEPLOYED_BY] = json!(record);
    object["metadata"]["annotations"][MANIFEST_HASH] = json!(manifest.hash);
    objects.patch(&manifest.key, &Patch::Apply(object)).await.map(drop)
}

async fn delete<K>(
    objects: &Objects<K>,
    key: &ObjectKey,
    life: &str,
    version: &str,
) -> Result<(), EffectError>
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
{
    match objects.get(key) {
        Some(object)
            if uid(object.meta()) == life && object.meta().resource_version.as_deref() == Some(version) =>
        {
            objects.delete(&object).await
        }
        // Another one, or another version: the next decision sees it.
        _ => Ok(()),
    }
}

impl Controller for Subscriptions {
    const NAME: &'static str = "subscriptions";
    type Key = ObjectKey;
    type World = World;
    type Effect = Effect;
    type Why = Wait;
    type Status = ();

    fn observe(&self, key: &ObjectKey, _: Option<&Trouble>) -> Option<World> {
        let source = self.hub.sources.get(key);
        let record = self.maps.get(&Self::record_key(key)).map(|record| uid(&record.metadata).to_owned());
        let Some(source) = source else {
            // What was deployed from a source that is gone is told of, and left alone.
            return record.map(|record| World {
                manifests: None,
                decided: if self.hub.sources.is_synced() { Decided::Here } else { Decided::Unread },
                missing_namespaces: Vec::new(),
                record: Some(record),
                seen: BTreeMap::new(),
            });
        };
        let manifests = read(&source);
        let named = manifests.as_deref().unwrap_or_default();
        let mut found = record.as_deref().map(|record| self.deployed(record)).unwrap_or_default();
        for manifest in named {
            if let Some(seen) = self.look(manifest.kind, &manifest.key) {
                found.insert((manifest.kind, manifest.key.clone()), seen);
            }
        }
        let spaces: BTreeSet<&str> =
            named.iter().map(|one| one.key.namespace.as_str()).chain([key.namespace.as_str()]).collect();
        let absent =
            spaces.into_iter().filter(|one| self.namespaces.get(&ObjectKey::cluster_wide(*one)).is_none());
        Some(World {
            decided: self.decided(&source),
            missing_namespaces: absent.map(str::to_owned).collect(),
            record,
            seen: found,
            manifests: Some(manifests),
        })
    }

    fn decide(world: &World, _: Timestamp) -> Decision<Effect, Wait, ()> {
        decide(world)
    }

    async fn act(&self, key: &ObjectKey, effect: Effect) -> Result<(), EffectError> {
        let record_key = Self::record_key(key);
        match effect {
            Effect::MakeNamespace(name) => {
                let mut namespace = Namespace::default();
                namespace.metadata.name = Some(name);
                self.namespaces.create(&namespace).await.map(drop)
            }
            Effect::Begin => {
                let mut record = ConfigMap::default();
                record.metadata.namespace = Some(record_key.namespace);
                record.metadata.name = Some(record_key.name);
                record.metadata.annotations = Some([(DEPLOYED_FROM.to_owned(), key.to_string())].into());
                self.maps.create(&record).await.map(drop)
            }
            Effect::Apply { manifest, record } => match manifest.kind {
                Kind::Deployment => apply(&self.deployments, &manifest, &record).await,
                Kind::PersistentVolumeClaim => apply(&self.claims, &manifest, &record).await,
                Kind::ConfigMap => apply(&self.maps, &manifest, &record).await,
            },
            Effect::Adopt { manifest, record } => {
                let ours =
                    json!({"metadata": {"annotations": {DEPLOYED_BY: record, MANIFEST_HASH: manifest.hash}}});
                self.claims.patch(&manifest.key, &Patch::Merge(ours)).await.map(drop)
            }
            Effect::Delete { kind, key, uid, version } => match kind {
                Kind::Deployment => delete(&self.deployments, &key, &uid, &version).await,
                Kind::PersistentVolumeClaim => delete(&self.claims, &key, &uid, &version).await,
                Kind::ConfigMap => delete(&self.maps, &key, &uid, &version).await,
            },
            Effect::End { uid } => match self.maps.get(&record_key) {
                Some(record) if record.metadata.uid.as_deref() == Some(uid.as_str()) => {
                    self.maps.delete(&record).await
                }
                _ => Ok(()),
            },
        }
    }

    fn shown(_: &World) -> Option<&()> {
        None
    }

    async fn show(&self, _: &World, (): ()) -> Result<(), EffectError> {
        Ok(())
    }
}
