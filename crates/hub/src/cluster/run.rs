//! Puts the controller of DRClusters on an engine and says what wakes it.

use super::check::{Clerk, Desk, Prover};
use super::effects::Controlled;
use super::view::{Watched, coming};
use crate::words::Words as _;
use k8s_openapi::api::coordination::v1::Lease;
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
    let (of_cluster, of_managed, of_lease) = (around(watched), around(watched), around(watched));
    let seen = watched.clone();
    let every = |watched: &Watched| {
        let clusters = watched.clusters.clone();
        move || clusters.all().iter().map(|one| ObjectKey::of(&**one)).collect::<Vec<_>>()
    };
    let (of_config, of_secret) = (every(watched), every(watched));
    wiring
        .woken_by(&watched.clusters, move |change: &Change<DRCluster>| of_cluster(change.latest().name()))
        .woken_by(&watched.managed, move |change: &Change<ManagedCluster>| of_managed(change.latest().name()))
        .woken_by(&watched.leases, move |change: &Change<Lease>| {
            seen.revived(change).map(|name| of_lease(&name)).unwrap_or_default()
        })
        .woken_by(&watched.policies, |change: &Change<DRPolicy>| {
            let named = change.versions().flat_map(|policy| policy.spec.dr_clusters.clone());
            named.map(ObjectKey::cluster_wide).collect::<BTreeSet<_>>()
        })
        .woken_by(&watched.drpcs, |change: &Change<DRPlacementControl>| {
            // How far an application is changes all the time; only whether it comes, where to, and that it has come is news to the storage there.
            let (old, new) = (change.old.as_deref().and_then(coming), change.new.as_deref().and_then(coming));
            let targets = [&old, &new].into_iter().flatten().map(|(target, _)| target.clone());
            targets.filter(|_| old != new).map(ObjectKey::cluster_wide).collect::<BTreeSet<_>>()
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
            // What a group says decides what a failover needs of the storage. It says much, and mostly something else.
            let of = view.named_by(annotations::DRPC_NAMESPACE, annotations::DRPC_NAME);
            let drpc = of.and_then(|of| seen.drpcs.get(&of));
            if let Some((target, _)) = drpc.as_deref().and_then(coming) {
                let told = |view: &Option<Arc<ManagedClusterView>>| seen.tells(view.as_ref()?, &target);
                let news = change.new.is_none() || told(&change.old) != told(&change.new);
                keys.extend(news.then(|| key(&target)));
            }
            keys
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn how_far_an_application_is_is_no_news_to_the_storage_that_it_comes_to() {
        let check = |action: &str, status: Value, expected: Option<&str>| {
            let drpc: DRPlacementControl = serde_json::from_value(json!({
                "metadata": { "name": "a", "namespace": "b", "generation": 2 },
                "spec": {
                    "action": action, "failoverCluster": "west", "preferredCluster": "east", "drPolicyRef": { "name": "p" },
                    "placementRef": { "kind": "Placement", "name": "a" }, "pvcSelector": {},
                },
                "status": status,
            }))
            .unwrap();
            let expected = expected.map(|target| (target.to_owned(), Some("p".to_owned())));
            assert_eq!(coming(&drpc), expected, "{action} {status}");
        };
        let available = |generation: i64| {
            json!({ "conditions": [{
                "type": "Available", "status": "True", "reason": "r", "message": "", "observedGeneration": generation,
                "lastTransitionTime": "2030-01-01T00:00:00Z",
            }] })
        };
        check("Relocate", json!({}), None);
        check("Failover", json!({}), Some("west"));
        check("Failover", json!({ "phase": "FailingOver", "progression": "WaitForReadiness" }), Some("west"));
        check("Failover", available(1), Some("west"));
        check("Failover", available(2), None);
    }
}
