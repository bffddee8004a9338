//! The hub's own part: clusters that were let in get their namespace, their lease and their agent's rights, and a cluster whose lease
//! runs out is said to be silent.
//!
//! Woken by ManagedClusters, their leases, namespaces and rights, and by the time at which a lease runs out. It stands in for OCM's
//! registration controllers; where those run, it does not.
//!
//! A lease is timed by when this process saw it change, as far as it did: an agent whose clock is wrong is neither
//! lost nor immortal. What was written before this process looked is taken by the time it carries, and never for newer than now.

pub mod decide;
mod effects;

use effects::{Clusters, Sightings};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::Resource;
use lifeboat_api::cluster::ManagedCluster;
use lifeboat_api::conditions::fleet as words;
use lifeboat_api::labels;
use lifeboat_engine::{Change, Clock, Engine, ObjectKey, Selection, Settings};
use std::sync::Arc;

/// The hub's part of the fleet, ready to run.
pub fn availability(client: kube::Client, clock: Clock, settings: Settings) -> Engine {
    let mut engine = Engine::new("lifeboat-fleet", client, clock.clone(), settings);
    join(&mut engine, clock);
    engine
}

/// The same, on an engine that the hub has already.
pub fn join(engine: &mut Engine, clock: Clock) {
    let ours = || Selection::all().labels(labels::CLUSTER_NAME);
    let lease = Selection::all().fields(format!("metadata.name={}", words::CLUSTER_LEASE));
    let clusters = Clusters {
        clusters: engine.objects::<ManagedCluster>(Selection::all()),
        namespaces: engine.objects::<Namespace>(Selection::all()),
        leases: engine.objects::<Lease>(lease),
        roles: engine.objects::<Role>(ours()),
        role_bindings: engine.objects::<RoleBinding>(ours()),
        cluster_roles: engine.objects::<ClusterRole>(ours()),
        cluster_role_bindings: engine.objects::<ClusterRoleBinding>(ours()),
        sightings: Arc::new(Sightings::default()),
    };
    let sightings = clusters.sightings.clone();
    clusters.leases.listen(move |change: &Change<Lease>| sightings.saw(change, clock.now()));
    let (all, namespaces, leases) =
        (clusters.clusters.clone(), clusters.namespaces.clone(), clusters.leases.clone());
    let (roles, bindings) = (clusters.roles.clone(), clusters.role_bindings.clone());
    let (wide, wide_bindings) = (clusters.cluster_roles.clone(), clusters.cluster_role_bindings.clone());
    engine
        .controller(clusters)
        .woken_by(&all, |change| [change.key()])
        .woken_by(&namespaces, |change: &Change<Namespace>| [change.key()])
        .woken_by(&leases, |change: &Change<Lease>| [ObjectKey::cluster_wide(change.key().namespace)])
        .woken_by(&roles, named)
        .woken_by(&bindings, named)
        .woken_by(&wide, named)
        .woken_by(&wide_bindings, named);
}

fn named<K: Resource>(change: &Change<K>) -> Vec<ObjectKey> {
    let label = |object: &Arc<K>| object.meta().labels.as_ref()?.get(labels::CLUSTER_NAME).cloned();
    change.versions().filter_map(label).map(ObjectKey::cluster_wide).collect()
}
