//! Puts the controllers on an engine, says what wakes them, and runs beside them the clerk and whoever waits for keys. Kinds that the cluster
//! lacks are not watched.

use crate::books::{Clerk, Desk};
use crate::effects::Usages;
use crate::keys::{KeyWatch, Keys};
use crate::ledger::Ledger;
use crate::listing::Listings;
use crate::mishaps::Mishaps;
pub use crate::serve::{kinds, kinds_changed, serve};
use crate::settings::{CONFIG_MAP, LastGood};
use crate::survey::Surveys;
use crate::triggers;
use crate::view::{Groups, Setup, Watched, claim_of, claims_of, clues, clues_of, handle_of, orphan_of};
use crate::words::{GroupWords as _, OwnedWords as _, Words as _};
use crate::world::Kinds;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::{StorageClass, VolumeAttachment};
use kube::Resource;
use lifeboat_api::conditions::vrg as words;
use lifeboat_api::ramen::{DRClusterConfig, ProtectedVolumeReplicationGroupList, VolumeReplicationGroup};
use lifeboat_api::replication::{self, VolumeReplicationClass};
use lifeboat_api::snapshot::{VolumeSnapshot, VolumeSnapshotClass};
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_api::{csiaddons, volsync};
use lifeboat_engine::conditions::holds;
use lifeboat_engine::{Change, Clock, Engine, ObjectKey, Objects, Selection, Settings, Wiring};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

/// The name that events and writes carry.
pub const NAME: &str = "lifeboat-protector";

/// Everything that protects applications on one cluster, ready to run.
pub struct Protector {
    engine: Engine,
    clerk: Clerk,
    missing: KeyWatch,
    wiring: Wiring<ObjectKey>,
}

/// Watches a kind, or only pretends to where the cluster does not have it.
pub(crate) fn watch<K>(engine: &mut Engine, client: &kube::Client, there: bool) -> Objects<K>
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
{
    if there { engine.objects(Selection::all()) } else { Objects::new(client.clone(), NAME) }
}

fn watched(engine: &mut Engine, client: &kube::Client, kinds: Kinds, setup: &Setup) -> Watched {
    let served = setup.only.as_ref().map_or_else(Selection::all, |only| Selection::namespace(only.clone()));
    let groups = engine.objects::<VolumeReplicationGroup>(served);
    let claims = engine.objects::<PersistentVolumeClaim>(Selection::all());
    let volumes = engine.objects::<PersistentVolume>(Selection::all());
    let pods = engine.objects::<Pod>(Selection::all());
    let attachments = engine.objects::<VolumeAttachment>(Selection::all());
    let replications = watch::<replication::VolumeReplication>(engine, client, kinds.replication);
    let sources = watch::<volsync::ReplicationSource>(engine, client, kinds.volsync);
    let destinations = watch::<volsync::ReplicationDestination>(engine, client, kinds.volsync);
    let images = watch::<VolumeSnapshot>(engine, client, kinds.snapshots);
    let logical = watch::<LogicalVolume>(engine, client, kinds.local);
    let namespaces = setup
        .only
        .as_ref()
        .map_or_else(Selection::all, |only| Selection::all().fields(format!("metadata.name={only}")));
    let of_config =
        Selection::namespace(setup.namespace.clone()).fields(format!("metadata.name={CONFIG_MAP}"));
    Watched {
        by_clue: groups.index(clues),
        claims_by_owner: claims.index(|claim: &PersistentVolumeClaim| claim.owner()),
        claims_by_clue: claims.index(clues_of),
        volumes_by_claim: volumes.index(claim_of),
        orphans: volumes.index(orphan_of),
        namespaces: engine.objects::<Namespace>(namespaces),
        pods_by_claim: pods.index(claims_of),
        attachments_by_volume: attachments
            .index(|one: &VolumeAttachment| one.spec.source.persistent_volume_name.clone()),
        classes: engine.objects::<StorageClass>(Selection::all()),
        replication_classes: watch::<VolumeReplicationClass>(engine, client, kinds.replication),
        snapshot_classes: watch::<VolumeSnapshotClass>(engine, client, kinds.snapshots),
        replications_by_owner: replications.index(|one: &replication::VolumeReplication| one.owner()),
        sources_by_owner: sources.index(|one: &volsync::ReplicationSource| one.owner()),
        destinations_by_owner: destinations.index(|one: &volsync::ReplicationDestination| one.owner()),
        images_by_owner: images.index(|one: &VolumeSnapshot| one.owner()),
        exports: watch(engine, client, kinds.exports),
        logical_by_handle: logical.index(handle_of),
        config: engine.objects::<ConfigMap>(of_config),
        groups,
        claims,
        volumes,
        pods,
        attachments,
        replications,
        sources,
        destinations,
        images,
        logical,
    }
}

/// A look at a group reads all its claims, and each claim's replication has a word to say: words that come within this time are heard together.
const GATHER: Duration = Duration::from_millis(50);

/// Puts the protector of a cluster together.
pub fn protector(
    client: kube::Client,
    clock: Clock,
    settings: Settings,
    kinds: Kinds,
    ledger: Arc<dyn Ledger>,
    setup: Setup,
) -> Protector {
    let mut engine = Engine::new(NAME, client.clone(), clock.clone(), settings);
    let watched = watched(&mut engine, &client, kinds, &setup);
    around(&mut engine, &client, kinds, &watched, ledger.clone(), &setup, &clock);
    let (desk, clerk) = Desk::new(ledger, clock.clone());
    let (keys, missing) = Keys::new(client.clone());
    let controller = Groups {
        watched: watched.clone(),
        setup,
        kinds,
        config: LastGood::default(),
        desk,
        mishaps: Mishaps::default(),
        keys,
        usages: Usages::default(),
        client,
        clock,
        recorder: engine.recorder(),
    };
    let wiring = engine.controller_with(controller, Settings { gather: GATHER, ..settings });
    let wiring = by_members(wiring, &watched);
    let wiring = by_surroundings(wiring, &watched);
    Protector { engine, clerk, missing, wiring }
}

/// The controllers that stand around the groups: the survey of this cluster, and lists of what stores hold. Not beside a protector of one
/// namespace, for these objects are the cluster's.
fn around(
    engine: &mut Engine,
    client: &kube::Client,
    kinds: Kinds,
    watched: &Watched,
    ledger: Arc<dyn Ledger>,
    setup: &Setup,
    clock: &Clock,
) {
    if setup.only.is_some() || !kinds.surveys {
        return;
    }
    let configs = engine.objects::<DRClusterConfig>(Selection::all());
    let group_classes = watch(engine, client, kinds.group_replication);
    let fences = watch(engine, client, kinds.fences);
    let surveys = Surveys {
        configs: configs.clone(),
        classes: watched.classes.clone(),
        snapshot_classes: watched.snapshot_classes.clone(),
        replication_classes: watched.replication_classes.clone(),
        group_classes: group_classes.clone(),
        fences: fences.clone(),
        config: watched.config.clone(),
        ledger: ledger.clone(),
        setup: setup.clone(),
        client: client.clone(),
        clock: clock.clone(),
        tried: parking_lot::Mutex::default(),
    };
    let every = |configs: &Objects<DRClusterConfig>| {
        let configs = configs.clone();
        move || configs.all().iter().map(|one| ObjectKey::of(&**one)).collect::<Vec<_>>()
    };
    let (a, b, c, d, e, f, g) = (
        every(&configs),
        every(&configs),
        every(&configs),
        every(&configs),
        every(&configs),
        every(&configs),
        every(&configs),
    );
    engine
        .controller(surveys)
        .woken_by(&configs, move |change: &Change<DRClusterConfig>| {
            a().into_iter().chain([change.key()]).collect::<Vec<_>>()
        })
        .woken_by(&watched.classes, move |_: &Change<StorageClass>| b())
        .woken_by(&watched.snapshot_classes, move |_: &Change<VolumeSnapshotClass>| c())
        .woken_by(&watched.replication_classes, move |_: &Change<VolumeReplicationClass>| d())
        .woken_by(&group_classes, move |_: &Change<replication::VolumeGroupReplicationClass>| e())
        .woken_by(&fences, move |_: &Change<csiaddons::NetworkFenceClass>| f())
        .woken_by(&watched.config, move |_: &Change<ConfigMap>| g());
    let lists = engine.objects::<ProtectedVolumeReplicationGroupList>(Selection::all());
    let listings = Listings {
        lists: lists.clone(),
        config: watched.config.clone(),
        ledger,
        setup: setup.clone(),
        client: client.clone(),
        clock: clock.clone(),
    };
    engine
        .controller(listings)
        .woken_by(&lists, |change: &Change<ProtectedVolumeReplicationGroupList>| [change.key()]);
}

/// What belongs to a group wakes it.
fn by_members(wiring: Wiring<ObjectKey>, watched: &Watched) -> Wiring<ObjectKey> {
    let seen = watched.clone();
    let groups = move |change: &Change<VolumeReplicationGroup>| match triggers::group(change) {
        // Others of the namespace may want the same claims.
        true => {
            let mut keys = seen.groups_in(change.latest().space());
            keys.push(change.key());
            keys
        }
        false => Vec::new(),
    };
    let seen = watched.clone();
    let claims = move |change: &Change<PersistentVolumeClaim>| match triggers::claim(change) {
        true => {
            let mut keys: Vec<ObjectKey> =
                change.versions().flat_map(|claim| seen.groups_of(claim)).collect();
            // One that a group waits for, to restore or to receive, may be selected by nobody yet.
            let came_or_went = change.old.is_none() || change.new.is_none();
            if came_or_went && keys.is_empty() {
                keys = seen.groups_in(change.latest().space());
            }
            keys
        }
        false => Vec::new(),
    };
    wiring
        .woken_by(&watched.groups, groups)
        .woken_by(&watched.claims, claims)
        .woken_by(&watched.replications, owned(watched))
        .woken_by(&watched.sources, owned(watched))
        .woken_by(&watched.destinations, owned(watched))
        .woken_by(&watched.images, owned(watched))
        .woken_by(&watched.exports, owned(watched))
}

/// The group whose labels an object carries; where it carries none, all groups of its namespace, one of which may be in its way.
fn owned<K: Resource<DynamicType = ()> + Send + Sync + 'static>(
    watched: &Watched,
) -> impl Fn(&Change<K>) -> Vec<ObjectKey> + Send + Sync + 'static {
    let seen = watched.clone();
    move |change| {
        let owners: Vec<ObjectKey> = change.versions().filter_map(|one| one.owner()).collect();
        if owners.is_empty() { seen.groups_in(change.latest().space()) } else { owners }
    }
}

/// What stands around the claims of a group wakes it.
fn by_surroundings(wiring: Wiring<ObjectKey>, watched: &Watched) -> Wiring<ObjectKey> {
    let seen = watched.clone();
    let of_claim = move |key: &ObjectKey| match seen.claims.get(key) {
        Some(claim) => seen.groups_of(&claim),
        None => seen.groups_in(&key.namespace),
    };
    let (of_volume, of_pod) = (of_claim.clone(), of_claim.clone());
    let seen = watched.clone();
    let attachments = move |change: &Change<VolumeAttachment>| {
        let volumes = change.versions().filter_map(|one| one.spec.source.persistent_volume_name.clone());
        let volumes = volumes.filter_map(|name| seen.volumes.get(&ObjectKey::cluster_wide(name)));
        volumes.filter_map(|volume| claim_of(&volume)).flat_map(|key| of_claim(&key)).collect::<Vec<_>>()
    };
    let seen = watched.clone();
    let namespaces = move |change: &Change<Namespace>| match triggers::namespace(change) {
        true => seen.groups_in(change.latest().name()),
        false => Vec::new(),
    };
    wiring
        .woken_by(&watched.namespaces, namespaces)
        .woken_by(&watched.volumes, move |change: &Change<PersistentVolume>| {
            change
                .versions()
                .filter_map(|volume| claim_of(volume))
                .flat_map(|key| of_volume(&key))
                .collect::<Vec<_>>()
        })
        .woken_by(&watched.pods, move |change: &Change<Pod>| match triggers::pod(change) {
            true => claims_of(change.latest()).iter().flat_map(&of_pod).collect::<Vec<_>>(),
            false => Vec::new(),
        })
        .woken_by(&watched.attachments, attachments)
        .woken_by(&watched.classes, all(watched))
        .woken_by(&watched.replication_classes, all(watched))
        .woken_by(&watched.snapshot_classes, all(watched))
        .woken_by(&watched.config, all(watched))
        .woken_by(&watched.logical, restoring(watched))
}

/// Groups that have not got back yet what was recorded: a volume that came to a node may be what they wait for.
fn restoring(watched: &Watched) -> impl Fn(&Change<LogicalVolume>) -> Vec<ObjectKey> + Send + Sync + 'static {
    let seen = watched.clone();
    move |change| {
        let before = change.old.as_ref().map(|one| handle_of(one));
        if before.is_some() && before == change.new.as_ref().map(|one| handle_of(one)) {
            return Vec::new();
        }
        let waits = |group: &Arc<VolumeReplicationGroup>| {
            let conditions = group.status.as_ref().map_or(&[][..], |status| &status.conditions);
            group.wants_primary()
                && !holds(conditions, words::TYPE_CLUSTER_DATA_READY, group.metadata.generation)
        };
        let groups = seen.groups.all();
        groups.iter().filter(|group| waits(group)).map(|group| ObjectKey::of(&**group)).collect()
    }
}

/// Every group.
fn all<K>(watched: &Watched) -> impl Fn(&Change<K>) -> Vec<ObjectKey> + Send + Sync + 'static {
    let seen = watched.clone();
    move |_| seen.groups.all().iter().map(|group| ObjectKey::of(&**group)).collect()
}

impl Protector {
    /// The engine, so that more controllers can be put on it.
    pub fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// Runs until told to stop.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) {
        let Self { engine, clerk, missing, wiring } = self;
        tokio::select! {
            biased;
            // First, so that no amount of deciding keeps answers waiting.
            () = clerk.run(|key| wiring.wake(key)) => {}
            () = missing.run(|key| wiring.wake(key)) => {}
            () = engine.run(stop) => {}
        }
    }
}
