//! Looks: puts the world of a DRPlacementControl together from the caches, through indexes.

use crate::drpc::fleet_key::FleetKey;
use crate::drpc::stores::{Books, Reading};
use crate::drpc::world::{Site, World};
use crate::recall::Recall;
use crate::secrets::Courier;
use crate::views::{self, Pulse, Shown};
use crate::words::Words as _;
use crate::works;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use lifeboat_api::apps::PlacementRule;
use lifeboat_api::cluster::{ManagedCluster, Placement, PlacementDecision};
use lifeboat_api::ramen::{DRCluster, DRPlacementControl, DRPolicy, VolumeReplicationGroup};
use lifeboat_api::view::ManagedClusterView;
use lifeboat_api::work::ManifestWork;
use lifeboat_engine::{Clock, Index, ObjectKey, Objects, Recorder, Trouble};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Everything that is watched, with its indexes.
#[derive(Clone)]
pub(crate) struct Watched {
    pub(crate) drpcs: Objects<DRPlacementControl>,
    pub(crate) by_placement: Index<ObjectKey, DRPlacementControl>,
    pub(crate) by_policy: Index<String, DRPlacementControl>,
    pub(crate) placements: Objects<Placement>,
    pub(crate) decisions: Objects<PlacementDecision>,
    pub(crate) decisions_by_placement: Index<ObjectKey, PlacementDecision>,
    pub(crate) rules: Objects<PlacementRule>,
    pub(crate) policies: Objects<DRPolicy>,
    pub(crate) policies_by_cluster: Index<String, DRPolicy>,
    pub(crate) drclusters: Objects<DRCluster>,
    pub(crate) managed: Objects<ManagedCluster>,
    pub(crate) works: Objects<ManifestWork>,
    pub(crate) works_by_drpc: Index<ObjectKey, ManifestWork>,
    pub(crate) views: Objects<ManagedClusterView>,
    pub(crate) views_by_drpc: Index<ObjectKey, ManagedClusterView>,
    pub(crate) leases: Objects<Lease>,
    pub(crate) pulse: Pulse,
    /// Whether a lease counts only once it was renewed: for a hub that decides by it.
    pub(crate) strict: bool,
    pub(crate) clock: Clock,
    pub(crate) fleet: FleetKey,
    /// The groups that works ask for.
    pub(crate) asked: Recall<ManifestWork, Option<Arc<VolumeReplicationGroup>>>,
    /// The groups that views show.
    pub(crate) shown: Shown,
}

/// The controller of DRPlacementControls.
pub struct Drpcs {
    pub(crate) watched: Watched,
    pub(crate) client: kube::Client,
    pub(crate) recorder: Recorder,
    pub(crate) courier: Courier,
    pub(crate) ledger: Arc<dyn crate::drpc::stores::Ledger>,
    pub(crate) readings: Mutex<BTreeMap<ObjectKey, (Reading, Timestamp)>>,
}

/// The placement that a DRPlacementControl names.
pub(crate) fn placement_of(drpc: &DRPlacementControl) -> ObjectKey {
    ObjectKey::new(drpc.space(), drpc.spec.placement_ref.name.as_deref().unwrap_or_default())
}

/// The placement that a decision belongs to.
pub(crate) fn placement_of_decision(decision: &PlacementDecision) -> Option<ObjectKey> {
    let name = decision.label(lifeboat_api::labels::PLACEMENT)?;
    Some(ObjectKey::new(decision.space(), name))
}

impl Drpcs {
    pub(crate) fn world(&self, key: &ObjectKey, trouble: Option<&Trouble>) -> Option<World> {
        let seen = &self.watched;
        let drpc = seen.drpcs.get(key)?;
        let placed = placement_of(&drpc);
        let policy = drpc.spec.dr_policy_ref.name.as_deref().unwrap_or_default();
        let policy = seen.policies.get(&ObjectKey::cluster_wide(policy));
        let (reading, read_at) = self.readings.lock().get(key).cloned().unzip();
        let books = Books { reading, read_at };
        let mut world = World {
            placement: seen.placements.get(&placed),
            decisions: seen.decisions_by_placement.get(&placed),
            rule: seen.rules.get(&placed),
            policy,
            sites: BTreeMap::new(),
            books,
            trouble: trouble.cloned(),
            fleet: seen.fleet.id(),
            fleet_wanted: seen.fleet.is_wanting(seen.clock.now()),
            drpc,
        };
        let mut names: BTreeSet<String> = world.members().into_iter().map(str::to_owned).collect();
        names.extend(seen.works_by_drpc.get(key).iter().map(|work| work.space().to_owned()));
        names.extend(seen.views_by_drpc.get(key).iter().map(|view| view.space().to_owned()));
        world.sites = names.into_iter().map(|name| (name.clone(), self.site(&world, name))).collect();
        Some(world)
    }

    fn site(&self, world: &World, name: String) -> Site {
        let seen = &self.watched;
        let (drpc, space) = (world.drpc.name(), world.space());
        let work =
            |type_: &str| seen.works.get(&ObjectKey::new(name.as_str(), works::name(drpc, space, type_)));
        let view = views::name(drpc, space, works::types::GROUP);
        let view = seen.views.get(&ObjectKey::new(name.as_str(), view));
        let group_work = work(works::types::GROUP);
        let asked =
            group_work.as_ref().and_then(|work| seen.asked.get(work, |work| works::read(work).map(Arc::new)));
        Site {
            drcluster: seen.drclusters.get(&ObjectKey::cluster_wide(name.as_str())),
            managed: seen.managed.get(&ObjectKey::cluster_wide(name.as_str())),
            beat: seen.pulse.of_cluster(&name).map(|beat| if seen.strict { beat } else { beat.believed() }),
            space_work: work(works::types::NAMESPACE),
            key_work: work(works::types::MOVER_SECRET),
            work: group_work,
            intent: asked.map(|asked| (*asked).clone()),
            seen: view
                .as_ref()
                .map_or(views::Seen::NotYet, |view| seen.shown.get(view, |view| views::seen(Some(view)))),
            view,
            name,
        }
    }
}
