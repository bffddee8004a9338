//! Puts the controller on an engine and says what wakes it.

use crate::cluster::Shared;
use crate::drpc::fleet_key::FleetKey;
use crate::drpc::look::{Drpcs, Watched, placement_of, placement_of_decision};
use crate::drpc::stores::{Ledger, Shelves};
use crate::recall::Recall;
use crate::secrets::{Chance, Courier};
use crate::views::{LEASE, Pulse};
use crate::words::Words as _;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Resource;
use lifeboat_api::annotations;
use lifeboat_api::apps::{self, PlacementRule};
use lifeboat_api::cluster::{ManagedCluster, Placement, PlacementDecision};
use lifeboat_api::ramen::{DRCluster, DRPlacementControl, DRPolicy};
use lifeboat_api::view::ManagedClusterView;
use lifeboat_api::work::ManifestWork;
use lifeboat_engine::{Change, Clock, Engine, ObjectKey, Objects, Selection, Settings, Wiring};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The name that events and writes carry.
pub const NAME: &str = "lifeboat-hub";

/// Which optional kinds a hub has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kinds {
    /// PlacementRule, which newer hubs have given up.
    pub placement_rules: bool,
}

/// What the controller is told.
#[derive(Clone)]
pub struct Setup {
    /// The object stores, for what a hub without memory must find out.
    pub ledger: Arc<dyn Ledger>,
    /// Where new keys come from.
    pub chance: Chance,
    /// Only DRPlacementControls of this namespace are served; all where absent.
    pub only: Option<String>,
    /// Where the hub's own key is; groups name no fleet where absent.
    pub home: Option<String>,
}

impl Setup {
    /// The stores of the configuration in the hub's namespace, and the machine's own chance.
    pub fn usual(client: kube::Client, namespace: &str) -> Self {
        let ledger = Arc::new(Shelves::new(client, namespace));
        let chance: Chance = Arc::new(|bytes: &mut [u8]| {
            let filled = ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), bytes);
            filled.expect("invariant: the system's source of chance does not run dry");
        });
        let home = Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty());
        Self { ledger, chance, only: None, home }
    }
}

/// The controller of DRPlacementControls on an engine of its own, ready to run.
pub struct Hub {
    engine: Engine,
    wiring: Wiring<ObjectKey>,
    watched: Watched,
}

impl Hub {
    /// The engine, so that more controllers can be put on it.
    pub fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// Wakes a DRPlacementControl for a reason that no watch tells of.
    pub fn wiring(&self) -> Wiring<ObjectKey> {
        self.wiring.clone()
    }

    /// What the controllers of DRClusters and DRPolicies watch too, for those on the same engine.
    pub fn shared(&self) -> Shared {
        let watched = &self.watched;
        Shared {
            clusters: watched.drclusters.clone(),
            policies: watched.policies.clone(),
            drpcs: watched.drpcs.clone(),
            managed: watched.managed.clone(),
            works: watched.works.clone(),
            views: watched.views.clone(),
            leases: watched.leases.clone(),
            pulse: watched.pulse.clone(),
            shown: watched.shown.clone(),
        }
    }

    /// Runs until told to stop.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) {
        self.engine.run(stop).await;
    }
}

/// The controller on an engine of its own.
pub fn serve(client: kube::Client, clock: Clock, settings: Settings, kinds: Kinds, setup: Setup) -> Hub {
    let mut engine = Engine::new(NAME, client.clone(), clock, settings);
    let fleet = FleetKey::of(setup.home.clone());
    let watched =
        Watched { strict: true, fleet, ..watched(&mut engine, &client, kinds, setup.only.as_deref()) };
    let wiring = controller(&mut engine, client, &watched, setup);
    Hub { engine, wiring, watched }
}

fn controller(
    engine: &mut Engine,
    client: kube::Client,
    watched: &Watched,
    setup: Setup,
) -> Wiring<ObjectKey> {
    let courier = Courier { client: client.clone(), works: watched.works.clone(), chance: setup.chance };
    let drpcs = Drpcs {
        watched: watched.clone(),
        client,
        recorder: engine.recorder(),
        courier,
        ledger: setup.ledger,
        readings: parking_lot::Mutex::default(),
    };
    wire(engine.controller(drpcs), watched)
}

pub(super) fn watched(
    engine: &mut Engine,
    client: &kube::Client,
    kinds: Kinds,
    only: Option<&str>,
) -> Watched {
    let served = only.map_or_else(Selection::all, Selection::namespace);
    let drpcs = engine.objects::<DRPlacementControl>(served);
    let decisions = engine.objects::<PlacementDecision>(Selection::all());
    let policies = engine.objects::<DRPolicy>(Selection::all());
    let works = engine.objects::<ManifestWork>(Selection::all());
    let views = engine.objects::<ManagedClusterView>(Selection::all());
    let leases = engine.objects::<Lease>(Selection::all().fields(format!("metadata.name={LEASE}")));
    let rules = match kinds.placement_rules {
        true => engine.objects::<PlacementRule>(Selection::all()),
        false => Objects::new(client.clone(), NAME),
    };
    Watched {
        by_placement: drpcs.index(|drpc: &DRPlacementControl| [placement_of(drpc)]),
        by_policy: drpcs.index(|drpc: &DRPlacementControl| drpc.spec.dr_policy_ref.name.clone()),
        placements: engine.objects::<Placement>(Selection::all()),
        decisions_by_placement: decisions.index(placement_of_decision),
        rules,
        policies_by_cluster: policies.index(|policy: &DRPolicy| policy.spec.dr_clusters.clone()),
        drclusters: engine.objects::<DRCluster>(Selection::all()),
        managed: engine.objects::<ManagedCluster>(Selection::all()),
        works_by_drpc: works.index(|work: &ManifestWork| named(work)),
        views_by_drpc: views.index(|view: &ManagedClusterView| named(view)),
        pulse: Pulse::of(&leases, engine.clock()),
        strict: false,
        fleet: FleetKey::default(),
        clock: engine.clock(),
        asked: Recall::of(&works),
        shown: Recall::of(&views),
        leases,
        drpcs,
        decisions,
        policies,
        works,
        views,
    }
}

/// The DRPlacementControl that an object names.
fn named<K: Resource>(object: &K) -> Option<ObjectKey> {
    object.named_by(annotations::DRPC_NAMESPACE, annotations::DRPC_NAME)
}

fn wire(wiring: Wiring<ObjectKey>, watched: &Watched) -> Wiring<ObjectKey> {
    let placed = |watched: &Watched| {
        let by = watched.by_placement.clone();
        move |key: &ObjectKey| by.get(key).iter().map(|drpc| ObjectKey::of(&**drpc)).collect::<Vec<_>>()
    };
    let (of_placement, of_rule, of_decision) = (placed(watched), placed(watched), placed(watched));
    let of_policy = watched.by_policy.clone();
    let by_policy = move |name: &str| {
        of_policy.get(&name.to_owned()).iter().map(|drpc| ObjectKey::of(&**drpc)).collect::<Vec<_>>()
    };
    let (of_drcluster, of_cluster, of_lease) =
        (of_members(watched), of_members(watched), of_members(watched));
    let (pulse, managed) = (watched.pulse.clone(), watched.managed.clone());
    wiring
        .woken_by(&watched.drpcs, |change: &Change<DRPlacementControl>| is_news(change).then(|| change.key()))
        .woken_by(&watched.works, |change: &Change<ManifestWork>| {
            change.versions().filter_map(|one| named(&**one)).collect::<BTreeSet<_>>()
        })
        .woken_by(&watched.views, |change: &Change<ManagedClusterView>| {
            change.versions().filter_map(|one| named(&**one)).collect::<BTreeSet<_>>()
        })
        .woken_by(&watched.placements, move |change: &Change<Placement>| of_placement(&change.key()))
        .woken_by(&watched.rules, move |change: &Change<PlacementRule>| of_rule(&change.key()))
        .woken_by(&watched.decisions, move |change: &Change<PlacementDecision>| {
            let placements = change.versions().filter_map(|one| placement_of_decision(one));
            placements.flat_map(|key| of_decision(&key)).collect::<BTreeSet<_>>()
        })
        .woken_by(&watched.policies, move |change: &Change<DRPolicy>| by_policy(change.latest().name()))
        .woken_by(&watched.drclusters, move |change: &Change<DRCluster>| of_drcluster(change.latest().name()))
        .woken_by(&watched.managed, move |change: &Change<ManagedCluster>| of_cluster(change.latest().name()))
        // A lease is renewed all the time; only the end of a long silence is news.
        .woken_by(&watched.leases, move |change: &Change<Lease>| {
            let cluster = change.latest().space();
            let known = managed.get(&ObjectKey::cluster_wide(cluster));
            match pulse.has_revived(cluster, known.as_deref()) {
                true => of_lease(cluster),
                false => Vec::new(),
            }
        })
}

/// The DRPlacementControls of all policies that name a cluster.
fn of_members(watched: &Watched) -> impl Fn(&str) -> Vec<ObjectKey> + Send + Sync + 'static {
    let (policies, drpcs) = (watched.policies_by_cluster.clone(), watched.by_policy.clone());
    move |cluster| {
        let policies = policies.get(&cluster.to_owned());
        let found = policies.iter().flat_map(|policy| drpcs.get(&policy.name().to_owned()));
        found.map(|drpc| ObjectKey::of(&*drpc)).collect()
    }
}

/// Whether a change of the object itself is more than what we say about it.
fn is_news(change: &Change<DRPlacementControl>) -> bool {
    let (Some(old), Some(new)) = (&change.old, &change.new) else { return true };
    let (old, new) = (&old.metadata, &new.metadata);
    old.uid != new.uid
        || old.generation != new.generation
        || old.annotations != new.annotations
        || old.labels != new.labels
        || old.finalizers != new.finalizers
        || old.owner_references != new.owner_references
        || old.deletion_timestamp != new.deletion_timestamp
}

/// Which optional kinds a hub has at this moment.
///
/// # Errors
/// The hub does not answer.
pub async fn kinds(client: &kube::Client) -> Result<Kinds, kube::Error> {
    let listed = client.list_api_group_resources(&format!("{}/v1", apps::GROUP)).await;
    let placement_rules = match listed {
        Ok(listed) => listed.resources.iter().any(|resource| resource.kind == "PlacementRule"),
        Err(kube::Error::Api(status)) if status.code == 404 => false,
        Err(error) => return Err(error),
    };
    Ok(Kinds { placement_rules })
}
