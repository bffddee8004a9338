//! A hub and two clusters: intent goes down, observations come up, and silence is noticed.

use crate::things::{
    accepted, definitions, group, group_scope, hub, is_done, make, namespace, serve_by, view, work,
};
use kube::api::{Api, Patch, PatchParams};
use lifeboat_api::cluster::ManagedCluster;
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_api::view::ManagedClusterView;
use lifeboat_api::work::ManifestWork;
use lifeboat_engine::conditions::find;
use lifeboat_testbed::Cluster;
use lifeboat_testbed::real::RealCluster;
use serde_json::json;

fn available(cluster: Option<&ManagedCluster>, status: &str) -> bool {
    let conditions =
        cluster.and_then(|cluster| cluster.status.as_ref()).map(|status| status.conditions.as_slice());
    find(conditions.unwrap_or_default(), "ManagedClusterConditionAvailable")
        .is_some_and(|condition| condition.status == status)
}

/// A group in a work on the hub appears on east and on east alone, its status is on the hub through the view, and when the agent is gone
/// the hub says that it does not know.
async fn story(main: &Cluster, east: kube::Client, west: kube::Client) {
    let (e, w) = match main.is_embedded() {
        true => ("east".to_owned(), "west".to_owned()),
        // A real hub is shared with other stories.
        false => (main.namespace("east").await, main.namespace("west").await),
    };
    let clusters: Api<ManagedCluster> = Api::all(main.client());
    for name in [&e, &w] {
        let mut cluster = accepted(name);
        cluster.spec.lease_duration_seconds = Some(1);
        make(&clusters, &cluster).await;
    }
    let _hub = hub(main);
    let eastern = serve_by(main.clock(), main.client(), east.clone(), &e);
    let _western = serve_by(main.clock(), main.client(), west.clone(), &w);
    main.until(&clusters, &e, |cluster| available(cluster, "True")).await;
    main.until(&clusters, &w, |cluster| available(cluster, "True")).await;
    let joined = clusters.get(&e).await.unwrap().status.unwrap();
    let claims: Vec<_> = joined.cluster_claims.iter().map(|claim| claim.name.clone().unwrap()).collect();
    assert_eq!(claims, ["id.k8s.io", "name"]);

    let works: Api<ManifestWork> = Api::namespaced(main.client(), &e);
    let views: Api<ManagedClusterView> = Api::namespaced(main.client(), &e);
    make(&works, &work(&e, "shop-vrg-mw", &[group("shop", "shop", "primary"), namespace("shop")])).await;
    make(&views, &view(&e, "shop-vrg-mcv", group_scope("shop", "shop"))).await;
    main.until(&works, "shop-vrg-mw", is_done).await;
    let groups: Api<VolumeReplicationGroup> = Api::namespaced(east.clone(), "shop");
    assert!(groups.get("shop").await.is_ok());
    let elsewhere: Api<VolumeReplicationGroup> = Api::namespaced(west, "shop");
    assert!(elsewhere.list(&Default::default()).await.unwrap().items.is_empty());

    let status = json!({ "status": { "state": "Primary", "observedGeneration": 1 } });
    groups.patch_status("shop", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    let shows_primary = |view: Option<&ManagedClusterView>| {
        let result = view.and_then(|view| view.status.as_ref()?.result.as_ref());
        result.is_some_and(|result| result.0["status"]["state"] == "Primary")
    };
    let seen = main.until(&views, "shop-vrg-mcv", shows_primary).await.unwrap();
    let conditions = seen.status.unwrap().conditions;
    let processing = find(&conditions, "Processing").unwrap();
    assert_eq!((processing.status.as_str(), processing.reason.as_str()), ("True", "GetResourceProcessing"));
    assert_eq!(find(&conditions, "Observed").unwrap().reason, "Seen");

    eastern.kill().await.unwrap();
    let silent = main.until(&clusters, &e, |cluster| available(cluster, "Unknown")).await.unwrap();
    let conditions = silent.status.unwrap().conditions;
    let said = find(&conditions, "ManagedClusterConditionAvailable").unwrap();
    assert_eq!(said.reason, "ManagedClusterLeaseUpdateStopped");
    assert!(available(clusters.get_opt(&w).await.unwrap().as_ref(), "True"));

    let _again = serve_by(main.clock(), main.client(), east, &e);
    main.until(&clusters, &e, |cluster| available(cluster, "True")).await;
    works.delete("shop-vrg-mw", &Default::default()).await.unwrap();
    main.until(&works, "shop-vrg-mw", |work| work.is_none()).await;
    assert!(groups.get_opt("shop").await.unwrap().is_none());
}

/// An agent that comes from another cluster under a name that is taken does nothing there, and the hub keeps the one it knows.
#[tokio::test(start_paused = true)]
async fn another_cluster_of_the_same_name_is_kept_out() {
    let (main, east) = (Cluster::embedded(), Cluster::embedded());
    main.install(&definitions()).await;
    east.install(&definitions()).await;
    let all: Api<ManagedCluster> = Api::all(main.client());
    make(&all, &accepted("east")).await;
    let _hub = hub(&main);
    let id = json!({ "status": { "clusterClaims": [{ "name": "id.k8s.io", "value": "of-another" }] } });
    all.patch_status("east", &PatchParams::default(), &Patch::Merge(id)).await.unwrap();
    let _eastern = serve_by(main.clock(), main.client(), east.client(), "east");
    let works: Api<ManifestWork> = Api::namespaced(main.client(), "east");
    let leases: Api<k8s_openapi::api::coordination::v1::Lease> = Api::namespaced(main.client(), "east");
    main.until(&leases, "managed-cluster-lease", |lease| lease.is_some()).await;
    make(&works, &work("east", "shop", &[namespace("shop")])).await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert!(works.get("shop").await.unwrap().metadata.finalizers.is_none());
    assert!(leases.get("managed-cluster-lease").await.unwrap().spec.unwrap().renew_time.is_none());
    // A person says that it is the same cluster, made anew.
    let none = json!({ "status": { "clusterClaims": null } });
    all.patch_status("east", &PatchParams::default(), &Patch::Merge(none)).await.unwrap();
    main.until(&works, "shop", is_done).await;
    main.until(&all, "east", |cluster| available(cluster, "True")).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_wanted_goes_to_its_cluster_and_what_is_seen_comes_back() {
    let clusters = [Cluster::embedded(), Cluster::embedded(), Cluster::embedded()];
    for cluster in &clusters {
        cluster.install(&definitions()).await;
    }
    let [main, east, west] = &clusters;
    story(main, east.client(), west.client()).await;
}

/// The same with a real hub and a real cluster, and an embedded one beside it.
#[tokio::test]
async fn real_clusters_and_embedded_ones_are_one_fleet() {
    let test = "lifeboat-fleet stories::fleet::real_clusters_and_embedded_ones_are_one_fleet";
    let Some(main) = Cluster::real(test).await else { return };
    let east = RealCluster::start().unwrap();
    let west = Cluster::embedded();
    let client = east.client().await.unwrap();
    for cluster in [&main, &west, &main.through(client.clone())] {
        cluster.install(&definitions()).await;
    }
    story(&main, client, west.client()).await;
}
