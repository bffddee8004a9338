//! A bad network between the agent and either side: it heals, and nothing is lost or done twice.

use crate::things::{
    accepted, config_map, definitions, group_scope, hub, is_done, make, namespace, serve, serve_with, view,
    work,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch};
use lifeboat_api::cluster::ManagedCluster;
use lifeboat_api::view::ManagedClusterView;
use lifeboat_api::work::ManifestWork;
use lifeboat_apiserver::fault::{Asked, EventFault, Faults, RequestFault};
use lifeboat_apiserver::path::ResourcePath;
use lifeboat_apiserver::store::Event;
use lifeboat_engine::conditions::find;
use lifeboat_fleet::AgentSettings;
use lifeboat_testbed::Cluster;
use lifeboat_testbed::faults::{Odds, Seeded};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A link that can be cut.
#[derive(Default)]
struct Cable(AtomicBool);

impl Cable {
    fn cut(&self, cut: bool) {
        self.0.store(cut, Ordering::Relaxed);
    }
}

impl Faults for Cable {
    fn on_request(&self, _: Asked<'_>) -> RequestFault {
        if self.0.load(Ordering::Relaxed) { RequestFault::DropRequest } else { RequestFault::None }
    }

    fn on_event(&self, _: &ResourcePath, _: &Event) -> EventFault {
        if self.0.load(Ordering::Relaxed) { EventFault::Close } else { EventFault::None }
    }
}

async fn clusters() -> (Cluster, Cluster) {
    let (main, east) = (Cluster::embedded(), Cluster::embedded());
    main.install(&definitions()).await;
    east.install(&definitions()).await;
    make(&Api::all(main.client()), &accepted("east")).await;
    (main, east)
}

fn available(status: &'static str) -> impl Fn(Option<&ManagedCluster>) -> bool {
    move |cluster| {
        let conditions = cluster.and_then(|cluster| cluster.status.as_ref()).map(|status| &status.conditions);
        conditions.is_some_and(|all| {
            find(all, "ManagedClusterConditionAvailable").is_some_and(|condition| condition.status == status)
        })
    }
}

fn says(reason: &'static str) -> impl Fn(Option<&ManagedClusterView>) -> bool {
    move |view| {
        let conditions = view.and_then(|view| view.status.as_ref()).map(|status| &status.conditions);
        conditions
            .is_some_and(|all| find(all, "Processing").is_some_and(|condition| condition.reason == reason))
    }
}

/// The link to the hub is cut: the hub says so, the cluster keeps what it has, and what was wanted meanwhile arrives.
#[tokio::test(start_paused = true)]
async fn a_cut_link_to_the_hub_heals() {
    let (main, east) = clusters().await;
    let cable = Arc::new(Cable::default());
    let _hub = hub(&main);
    let _agent = serve(main.client_with(cable.clone()), &east, east.client(), "east");
    let clusters: Api<ManagedCluster> = Api::all(main.client());
    let works: Api<ManifestWork> = Api::namespaced(main.client(), "east");
    main.until(&clusters, "east", available("True")).await;
    make(&works, &work("east", "shop", &[namespace("shop"), config_map("shop", "a", "1")])).await;
    main.until(&works, "shop", is_done).await;
    cable.cut(true);
    main.until(&clusters, "east", available("Unknown")).await;
    let wanted = [namespace("shop"), config_map("shop", "a", "2")];
    let patch = Patch::Merge(json!({ "spec": { "workload": { "manifests": wanted } } }));
    works.patch("shop", &Default::default(), &patch).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(east.client(), "shop");
    assert_eq!(maps.get("a").await.unwrap().data.unwrap()["key"], "1");
    cable.cut(false);
    main.until(&works, "shop", is_done).await;
    assert_eq!(maps.get("a").await.unwrap().data.unwrap()["key"], "2");
    main.until(&clusters, "east", available("True")).await;
}

/// The agent's own cluster is out of its reach: it says so where it can, and does not renew the lease that vouches for what it shows.
#[tokio::test(start_paused = true)]
async fn an_agent_without_its_cluster_does_not_vouch_for_it() {
    let (main, east) = clusters().await;
    let cable = Arc::new(Cable::default());
    let _hub = hub(&main);
    let _agent = serve(main.client(), &east, east.client_with(cable.clone()), "east");
    let clusters: Api<ManagedCluster> = Api::all(main.client());
    let works: Api<ManifestWork> = Api::namespaced(main.client(), "east");
    let views: Api<ManagedClusterView> = Api::namespaced(main.client(), "east");
    main.until(&clusters, "east", available("True")).await;
    make(&works, &work("east", "shop", &[namespace("shop"), config_map("shop", "a", "1")])).await;
    make(&views, &view("east", "shop", group_scope("shop", "none"))).await;
    main.until(&works, "shop", is_done).await;
    main.until(&views, "shop", says("GetResourceFailed")).await;
    cable.cut(true);
    // A watch notices a cut when something passes it.
    let other: Api<ConfigMap> = Api::namespaced(east.client(), "shop");
    let edit = Patch::Merge(json!({ "data": { "key": "edited" } }));
    other.patch("a", &Default::default(), &edit).await.unwrap();
    main.until(&clusters, "east", available("Unknown")).await;
    let unknown = |work: Option<&ManifestWork>| {
        let conditions = work.and_then(|work| work.status.as_ref()).map(|status| &status.conditions);
        conditions
            .is_some_and(|all| find(all, "Available").is_some_and(|condition| condition.status == "Unknown"))
    };
    main.until(&works, "shop", unknown).await;
    cable.cut(false);
    main.until(&clusters, "east", available("True")).await;
    main.until(&works, "shop", is_done).await;
    assert_eq!(
        other.get("a").await.unwrap().data.unwrap()["key"],
        "1",
        "what was edited meanwhile is mended"
    );
}

/// Requests, answers and events are lost, late, stale and repeated: once that ends, all is as wanted.
#[tokio::test(start_paused = true)]
async fn a_bad_network_delays_and_breaks_nothing() {
    let mut settings = AgentSettings::default();
    settings.engine.feed.picture_every = Duration::from_secs(60);
    for seed in 1..=6 {
        let (main, east) = clusters().await;
        let (up, down) =
            (Arc::new(Seeded::new(seed, Odds::bad())), Arc::new(Seeded::new(seed + 100, Odds::bad())));
        let _hub = hub(&main);
        let (above, below) = (main.client_with(up.clone()), east.client_with(down.clone()));
        let _agent = serve_with(settings.clone(), east.clock(), above, below, "east");
        let works: Api<ManifestWork> = Api::namespaced(main.client(), "east");
        let clusters: Api<ManagedCluster> = Api::all(main.client());
        let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(main.client());
        main.until(&namespaces, "east", |namespace| namespace.is_some()).await;
        for round in 0..4 {
            let name = format!("shop{round}");
            let wanted = [namespace(&name), config_map(&name, "a", "1"), config_map(&name, "b", "1")];
            make(&works, &work("east", &name, &wanted)).await;
            tokio::time::sleep(Duration::from_secs(7)).await;
            let patch = Patch::Merge(
                json!({ "spec": { "workload": { "manifests": [namespace(&name), config_map(&name, "a", "2")] } } }),
            );
            works.patch(&name, &Default::default(), &patch).await.unwrap();
        }
        works.delete("shop0", &Default::default()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
        up.stop();
        down.stop();
        // A lost event is made good by the next full picture.
        tokio::time::sleep(Duration::from_secs(120)).await;
        main.until(&works, "shop0", |work| work.is_none()).await;
        for round in 1..4 {
            let name = format!("shop{round}");
            main.until(&works, &name, is_done).await;
            let maps: Api<ConfigMap> = Api::namespaced(east.client(), &name);
            east.until(&maps, "b", |map| map.is_none()).await;
            assert_eq!(maps.get("a").await.unwrap().data.unwrap()["key"], "2", "seed {seed}");
        }
        main.until(&clusters, "east", available("True")).await;
    }
}
