//! Observe: what is watched on the hub, found by what it points to, and the worlds read from it. No judgement beyond looking things up.

use super::check::Desk;
use super::decide::modes;
use super::manifests::STORES_WORK;
use super::settings::{CONFIG_MAP, Config};
use super::survey::{self, Survey};
use super::world::{Agent, Managed, Mode, Needs, Peer, Policy, World};
use crate::drpc::drill;
use crate::policy::is_metro;
use crate::recall::Recall;
use crate::secrets::version_of;
use crate::views::{self, Pulse, Reach, Shown};
use crate::words::Words as _;
use crate::works::types;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use lifeboat_api::annotations;
use lifeboat_api::cluster::ManagedCluster;
use lifeboat_api::conditions::{drpc, fleet};
use lifeboat_api::ramen::{DRAction, DRCluster, DRPlacementControl, DRPolicy, ReplicationState};
use lifeboat_api::view::ManagedClusterView;
use lifeboat_api::work::{ManifestWork, ManifestWorkSpec};
use lifeboat_engine::conditions::{find, holds};
use lifeboat_engine::{Change, Engine, Index, ObjectKey, Objects, Selection, Trouble};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the controllers are told about where they run.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The hub's own namespace: of its ConfigMap and of the Secrets of stores.
    pub namespace: String,
    /// Only DRClusters and DRPolicies with these labels are served, where several hubs share an API server.
    pub only: Option<String>,
}

/// What the controllers of DRCluster and DRPolicy watch; clones share it.
#[derive(Clone)]
pub struct Watched {
    /// DRClusters.
    pub clusters: Objects<DRCluster>,
    /// DRPolicies.
    pub policies: Objects<DRPolicy>,
    /// DRPlacementControls.
    pub drpcs: Objects<DRPlacementControl>,
    /// ManagedClusters.
    pub managed: Objects<ManagedCluster>,
    /// Works.
    pub works: Objects<ManifestWork>,
    /// Views.
    pub views: Objects<ManagedClusterView>,
    /// The hub's ConfigMap.
    pub config: Objects<ConfigMap>,
    /// Secrets of the hub's own namespace.
    pub secrets: Objects<Secret>,
    /// Namespaces of the hub.
    pub namespaces: Objects<Namespace>,
    /// Leases of clusters.
    pub leases: Objects<Lease>,
    /// When clusters were last heard of.
    pub pulse: Pulse,
    /// Works by the DRCluster they are for.
    pub works_of: Index<String, ManifestWork>,
    /// Views by the DRCluster they are for.
    pub views_of: Index<String, ManagedClusterView>,
    /// Views of groups by their DRPlacementControl.
    pub groups_of: Index<ObjectKey, ManagedClusterView>,
    /// Policies by the clusters they name.
    pub policies_of: Index<String, DRPolicy>,
    /// DRPlacementControls by their policy.
    pub users_of: Index<String, DRPlacementControl>,
    /// DRPlacementControls by the cluster they fail over to.
    pub coming_to: Index<String, DRPlacementControl>,
    shown: Shown,
    setup: Setup,
}

/// What several controllers of one hub watch anyway, for whoever has it already.
pub struct Shared {
    /// DRClusters.
    pub clusters: Objects<DRCluster>,
    /// DRPolicies.
    pub policies: Objects<DRPolicy>,
    /// DRPlacementControls.
    pub drpcs: Objects<DRPlacementControl>,
    /// ManagedClusters.
    pub managed: Objects<ManagedCluster>,
    /// Works.
    pub works: Objects<ManifestWork>,
    /// Views.
    pub views: Objects<ManagedClusterView>,
    /// Leases of clusters.
    pub leases: Objects<Lease>,
    /// When clusters were last heard of.
    pub pulse: Pulse,
    /// The groups that views show.
    pub shown: Shown,
}

impl Shared {
    /// Watches it all.
    pub fn on(engine: &mut Engine, setup: &Setup) -> Self {
        let served = || match &setup.only {
            Some(labels) => Selection::all().labels(labels.clone()),
            None => Selection::all(),
        };
        let leases =
            engine.objects::<Lease>(Selection::all().fields(format!("metadata.name={}", views::LEASE)));
        let views = engine.objects(Selection::all());
        Self {
            pulse: Pulse::of(&leases, engine.clock()),
            clusters: engine.objects(served()),
            policies: engine.objects(served()),
            drpcs: engine.objects(Selection::all()),
            managed: engine.objects(Selection::all()),
            works: engine.objects(Selection::all()),
            shown: Recall::of(&views),
            leases,
            views,
        }
    }
}

/// The cluster that an application fails over to.
fn target(drpc: &DRPlacementControl) -> Option<String> {
    // A drill is not served, so no storage is prepared for it.
    let fails_over = drpc.spec.action == Some(DRAction::Failover) && drill::refused(drpc).is_none();
    drpc.spec.failover_cluster.clone().filter(|_| fails_over)
}

impl Watched {
    /// Watches everything that these controllers need.
    pub fn on(engine: &mut Engine, setup: Setup) -> Self {
        let shared = Shared::on(engine, &setup);
        Self::beside(engine, setup, shared)
    }

    /// Watches what is needed beside what others watch already.
    pub fn beside(engine: &mut Engine, setup: Setup, shared: Shared) -> Self {
        let Shared { clusters, policies, drpcs, managed, works, views, leases, pulse, shown } = shared;
        let own = || Selection::namespace(setup.namespace.clone());
        let for_cluster = |note: Option<&str>| note.map(str::to_owned);
        Self {
            works_of: works
                .index(move |work: &ManifestWork| for_cluster(work.note(annotations::DRCLUSTER_NAME))),
            views_of: views
                .index(move |view: &ManagedClusterView| for_cluster(view.note(annotations::DRCLUSTER_NAME))),
            groups_of: views.index(|view: &ManagedClusterView| {
                view.named_by(annotations::DRPC_NAMESPACE, annotations::DRPC_NAME)
            }),
            policies_of: policies.index(|policy: &DRPolicy| policy.spec.dr_clusters.clone()),
            users_of: drpcs.index(|drpc: &DRPlacementControl| drpc.spec.dr_policy_ref.name.clone()),
            coming_to: drpcs.index(target),
            config: engine.objects(own().fields(format!("metadata.name={CONFIG_MAP}"))),
            secrets: engine.objects(own()),
            namespaces: engine.objects(Selection::all()),
            clusters,
            policies,
            drpcs,
            managed,
            works,
            views,
            leases,
            pulse,
            shown,
            setup,
        }
    }

    /// The hub's configuration, or why it cannot be used.
    ///
    /// # Errors
    /// A sentence for status.
    pub fn settings(&self) -> Result<Arc<Config>, String> {
        let map = self.config.get(&ObjectKey::new(self.setup.namespace.clone(), CONFIG_MAP));
        Config::of(map.as_deref()).map(Arc::new)
    }

    /// Whether a cluster is heard of.
    pub fn reach(&self, cluster: &str) -> Reach {
        let managed = self.managed.get(&ObjectKey::cluster_wide(cluster));
        // Nothing is placed by it, so a lease that was only listed is believed until it is too old.
        let beat = self.pulse.of_cluster(cluster).map(views::Beat::believed);
        views::reach(cluster, managed.as_deref(), beat.as_ref())
    }

    /// The cluster whose lease was renewed after so long a silence that it was taken for lost.
    pub(crate) fn revived(&self, change: &Change<Lease>) -> Option<String> {
        let cluster = change.latest().space();
        let managed = self.managed.get(&ObjectKey::cluster_wide(cluster));
        self.pulse.has_revived(cluster, managed.as_deref()).then(|| cluster.to_owned())
    }

    /// What the fleet knows about a cluster.
    pub fn managed(&self, cluster: &str) -> Managed {
        let known = self.managed.get(&ObjectKey::cluster_wide(cluster));
        let status = known.as_ref().and_then(|known| known.status.clone()).unwrap_or_default();
        let going = known.as_ref().is_some_and(|known| known.is_going());
        let joined =
            find(&status.conditions, fleet::TYPE_JOINED).is_some_and(|joined| joined.status == "True");
        Managed {
            joined: joined && !going,
            id: known.as_ref().and_then(|known| known.id()).map(str::to_owned),
            reach: self.reach(cluster),
        }
    }

    /// What a cluster has to offer.
    pub fn survey(&self, cluster: &str) -> Survey {
        survey::read(cluster, |name| self.views.get(&ObjectKey::new(cluster, name)))
    }

    fn agent(&self, cluster: &str) -> Agent {
        let name = views::name(cluster, "", types::CLUSTER_CONFIG);
        let view = self.views.get(&ObjectKey::new(cluster, name));
        let said = view.as_ref().and_then(|view| view.status.as_ref()).map(|status| &status.conditions[..]);
        match said {
            None | Some([]) => Agent::Unknown,
            Some(said) if find(said, fleet::TYPE_VIEW_OBSERVED).is_some() => Agent::Ours,
            Some(_) => Agent::Others,
        }
    }

    /// Clusters that share a policy with this one, it included.
    pub fn around(&self, cluster: &str) -> BTreeSet<String> {
        let policies = self.policies_of.get(&cluster.to_owned());
        let named = policies.iter().flat_map(|policy| policy.spec.dr_clusters.clone());
        named.chain([cluster.to_owned()]).collect()
    }

    /// The version of a store's secret; nothing where it does not exist.
    fn secret_of(&self, config: &Config, store: &str) -> Option<String> {
        let secret = &config.profiles.get(store)?.secret;
        let key = self.secret_key(&secret.namespace, &secret.name)?;
        self.secrets.get(&key).map(|secret| version_of(&secret.metadata))
    }

    /// Where a store's secret is. Only in the hub's own namespace: a profile gives nobody a way to read others' secrets.
    pub fn secret_key(&self, namespace: &str, name: &str) -> Option<ObjectKey> {
        let own = namespace.is_empty() || namespace == self.setup.namespace;
        (own && !name.is_empty()).then(|| ObjectKey::new(self.setup.namespace.clone(), name))
    }

    fn policies(&self, cluster: &str) -> Vec<Policy> {
        let mut policies = self.policies_of.get(&cluster.to_owned());
        policies.sort_by_key(|policy| (policy.metadata.creation_timestamp.clone(), policy.name().to_owned()));
        policies.dedup_by_key(|policy| policy.name().to_owned());
        let facts = policies.iter().map(|policy| Policy {
            name: policy.name().to_owned(),
            going: policy.is_going(),
            clusters: policy.spec.dr_clusters.clone(),
            interval: policy.spec.scheduling_interval.clone(),
            metro: is_metro(policy),
        });
        facts.collect()
    }

    /// What applications that fail over to a cluster need of its storage.
    fn needs(&self, cluster: &str) -> Needs {
        let mut needs = Needs::default();
        for drpc in self.coming_to.get(&cluster.to_owned()) {
            let Some((_, policy)) = coming(&drpc) else { continue };
            let policy = self.policies.get(&ObjectKey::cluster_wide(text(&policy)));
            if policy.is_some_and(|policy| is_metro(&policy)) {
                continue;
            }
            let shown = self.groups_of.get(&ObjectKey::of(&*drpc));
            let told: Vec<_> = shown.iter().filter_map(|view| self.tells(view, cluster)).collect();
            match told.is_empty() {
                true => needs.unknown.push(ObjectKey::of(&*drpc).to_string()),
                false => needs.modes.extend(told.into_iter().flatten()),
            }
        }
        needs
    }

    /// What a view tells of what its application needs of the storage of a cluster that it fails over to. What the others say counts, silent or not:
    /// which storage it is on does not change. Of that cluster's own words only a primary's count.
    pub(super) fn tells(&self, view: &Arc<ManagedClusterView>, cluster: &str) -> Option<BTreeSet<Mode>> {
        let group = self.shown.get(view, |view| views::seen(Some(view))).found().cloned()?;
        let primary = group.spec.replication_state == ReplicationState::Primary;
        (view.space() != cluster || primary).then(|| modes::needed(&group))
    }

    /// The world of a cluster.
    pub(super) fn world(&self, name: &str, desk: &Desk, trouble: Option<&Trouble>) -> Option<World> {
        let cluster = self.clusters.get(&ObjectKey::cluster_wide(name))?;
        let works = self.works_of.get(&name.to_owned());
        let works: BTreeMap<ObjectKey, Arc<ManifestWork>> =
            works.into_iter().map(|work| (ObjectKey::of(&*work), without_secrets(work))).collect();
        let shown = self.views_of.get(&name.to_owned());
        let around = self.around(name);
        let heard = around.iter().cloned().chain(works.keys().map(|key| key.namespace.clone()));
        let peers = around.iter().filter(|other| *other != name).map(|other| {
            let known = self.clusters.get(&ObjectKey::cluster_wide(other.clone()));
            let peer = Peer {
                region: known.as_ref().and_then(|known| known.spec.region.clone()),
                profile: known.as_ref().map(|known| known.spec.s3_profile_name.clone()).unwrap_or_default(),
                joined: self.managed(other).joined,
                survey: self.survey(other),
            };
            (other.clone(), peer)
        });
        let mut world = World {
            config: self.settings(),
            managed: self.managed(name),
            agent: self.agent(name),
            policies: self.policies(name),
            peers: peers.collect(),
            reaches: heard.map(|other| (other.clone(), self.reach(&other))).collect(),
            secrets: BTreeMap::new(),
            works,
            views: shown.into_iter().map(|view| (ObjectKey::of(&*view), view)).collect(),
            survey: self.survey(name),
            check: desk.of(name),
            needs: self.needs(name),
            trouble: trouble.cloned(),
            cluster,
        };
        if let Ok(config) = &world.config {
            let versions = world.stores().into_iter().map(|store| {
                let version = self.secret_of(config, &store);
                (store, version)
            });
            world.secrets = versions.collect();
        }
        Some(world)
    }
}

/// What a DRPlacementControl says to the storage of the cluster that it fails over to: which that is, by which policy, and whether it needs it still.
pub(super) fn coming(drpc: &DRPlacementControl) -> Option<(String, Option<String>)> {
    let needed = !drpc.is_going() && !has_arrived(drpc);
    target(drpc).filter(|_| needed).map(|target| (target, drpc.spec.dr_policy_ref.name.clone()))
}

fn text(name: &Option<String>) -> String {
    name.clone().unwrap_or_default()
}

/// Whether an application has failed over: it is available, as it is asked for now.
fn has_arrived(drpc: &DRPlacementControl) -> bool {
    let shown = drpc.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    holds(shown, drpc::TYPE_AVAILABLE, drpc.metadata.generation)
}

/// A work without what it carries, where that is secret.
fn without_secrets(work: Arc<ManifestWork>) -> Arc<ManifestWork> {
    match work.name() == STORES_WORK {
        true => Arc::new(ManifestWork { spec: ManifestWorkSpec::default(), ..(*work).clone() }),
        false => work,
    }
}
