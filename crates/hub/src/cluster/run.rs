//! Puts the controller of DRClusters on an engine and says what wakes it.

use super::check::{Clerk, Desk, Prover};
use super::effects::Controlled;
use super::view::Watched;
use crate::words::Words as _;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use lifeboat_api::annotations;
use lifeboat_api::cluster::ManagedCluster;
use lifeboat_api::ramen::{DRCluster, DRPlacementControl, DRPolicy};
use lifeboat_api::view::ManagedClusterView;
use lifeboat_api::work::ManifestWork;
use lifeboat_engine::{Change, Engine, ObjectKey, Wiring};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What has to be run beside the engine: whoever tries the stores.
pub struct Clusters {
    clerk: Clerk,
    wiring: Wiring<ObjectKey>,
}

impl Clusters {
    /// Tries stores for ever.
    pub async fn run(self) {
        let Self { clerk, wiring } = self;
        clerk.run(|cluster| wiring.wake(ObjectKey::cluster_wide(cluster))).await;
    }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::cluster_wide(name)
}

/// Puts the controller on an engine; what it returns has to be run beside it.
pub fn controller(engine: &mut Engine, watched: &Watched, prover: Arc<dyn Prover>) -> Clusters {
    let (desk, clerk) = Desk::new(prover, engine.clock());
    let wiring = engine.controller(Controlled { watched: watched.clone(), desk });
    let wiring = by_clusters(wiring, watched);
    let wiring = by_what_is_carried(wiring, watched);
    Clusters { clerk, wiring }
}

fn by_clusters(wiring: Wiring<ObjectKey>, watched: &Watched) -> Wiring<ObjectKey> {
    let around = |watched: &Watched| {
        let watched = watched.clone();
        move |name: &str| watched.around(name).iter().map(|name| key(name)).collect::<Vec<_>>()
    };
    let (of_cluster, of_managed) = (around(watched), around(watched));
    let every = |watched: &Watched| {
        let clusters = watched.clusters.clone();
        move || clusters.all().iter().map(|one| ObjectKey::of(&**one)).collect::<Vec<_>>()
    };
    let (of_config, of_secret) = (every(watched), every(watched));
    wiring
        .woken_by(&watched.clusters, move |change: &Change<DRCluster>| of_cluster(change.latest().name()))
        .woken_by(&watched.managed, move |change: &Change<ManagedCluster>| of_managed(change.latest().name()))
        .woken_by(&watched.policies, |change: &Change<DRPolicy>| {
            let named = change.versions().flat_map(|policy| policy.spec.dr_clusters.clone());
            named.map(ObjectKey::cluster_wide).collect::<BTreeSet<_>>()
        })
        .woken_by(&watched.drpcs, |change: &Change<DRPlacementControl>| {
            let targets = change.versions().filter_map(|drpc| drpc.spec.failover_cluster.clone());
            targets.map(ObjectKey::cluster_wide).collect::<BTreeSet<_>>()
        })
        .woken_by(&watched.config, move |_: &Change<ConfigMap>| of_config())
        .woken_by(&watched.secrets, move |_: &Change<Secret>| of_secret())
}

fn by_what_is_carried(wiring: Wiring<ObjectKey>, watched: &Watched) -> Wiring<ObjectKey> {
    let seen = watched.clone();
    wiring
        .woken_by(&watched.works, |change: &Change<ManifestWork>| {
            let named = change.versions().filter_map(|work| work.note(annotations::DRCLUSTER_NAME).map(key));
            named.collect::<BTreeSet<_>>()
        })
        .woken_by(&watched.views, move |change: &Change<ManagedClusterView>| {
            let view = change.latest();
            let mut keys = BTreeSet::new();
            if let Some(name) = view.note(annotations::DRCLUSTER_NAME) {
                keys.insert(key(name));
            }
            // What a cluster has decides how its peers can be fenced.
            if let Some(name) = view.note(annotations::DRPOLICY) {
                keys.extend(seen.around(name).iter().map(|name| key(name)));
            }
            // What a group says decides what a failover needs of the storage.
            let of = view.named_by(annotations::DRPC_NAMESPACE, annotations::DRPC_NAME);
            let drpc = of.and_then(|of| seen.drpcs.get(&of));
            keys.extend(drpc.and_then(|drpc| drpc.spec.failover_cluster.as_deref().map(key)));
            keys
        })
}
