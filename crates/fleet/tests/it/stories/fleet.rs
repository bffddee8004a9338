//! A hub and two clusters: intent goes down, observations come up, and silence is noticed.

use crate::things::{
    accepted, definitions, group, group_scope, hub, is_done, make, namespace, serve, view, work,
};
use kube::api::{Api, Patch, PatchParams};
use lifeboat_api::cluster::ManagedCluster;
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_api::view::ManagedClusterView;
use lifeboat_api::work::ManifestWork;
use lifeboat_engine::conditions::find;
use lifeboat_testbed::Cluster;
use serde_json::json;

fn available(cluster: Option<&ManagedCluster>, status: &str) -> bool {
    let conditions =
        cluster.and_then(|cluster| cluster.status.as_ref()).map(|status| status.conditions.as_slice());
    find(conditions.unwrap_or_default(), "ManagedClusterConditionAvailable")
        .is_some_and(|condition| condition.status == status)
}

/// A group in a work on the hub appears on east and on east alone, its status is on the hub through the view, and when the agent is gone
/// the hub says that it does not know.
#[tokio::test(start_paused = true)]
async fn what_is_wanted_goes_to_its_cluster_and_what_is_seen_comes_back() {
    let (main, east, west) = (Cluster::embedded(), Cluster::embedded(), Cluster::embedded());
    for cluster in [&main, &east, &west] {
        cluster.install(&definitions()).await;
    }
    let clusters: Api<ManagedCluster> = Api::all(main.client());
    make(&clusters, &accepted("east")).await;
    make(&clusters, &accepted("west")).await;
    let _hub = hub(&main);
    let eastern = serve(main.client(), &east, east.client(), "east");
    let _western = serve(main.client(), &west, west.client(), "west");
    main.until(&clusters, "east", |cluster| available(cluster, "True")).await;
    main.until(&clusters, "west", |cluster| available(cluster, "True")).await;
    let joined = clusters.get("east").await.unwrap().status.unwrap();
    let claims: Vec<_> = joined.cluster_claims.iter().map(|claim| claim.name.clone().unwrap()).collect();
    assert_eq!(claims, ["id.k8s.io", "name"]);

    let works: Api<ManifestWork> = Api::namespaced(main.client(), "east");
    let views: Api<ManagedClusterView> = Api::namespaced(main.client(), "east");
    make(&works, &work("east", "shop-vrg-mw", &[group("shop", "shop", "primary"), namespace("shop")])).await;
    make(&views, &view("east", "shop-vrg-mcv", group_scope("shop", "shop"))).await;
    main.until(&works, "shop-vrg-mw", is_done).await;
    let groups: Api<VolumeReplicationGroup> = Api::namespaced(east.client(), "shop");
    assert!(groups.get("shop").await.is_ok());
    let elsewhere: Api<VolumeReplicationGroup> = Api::all(west.client());
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
    let silent = main.until(&clusters, "east", |cluster| available(cluster, "Unknown")).await.unwrap();
    let conditions = silent.status.unwrap().conditions;
    let said = find(&conditions, "ManagedClusterConditionAvailable").unwrap();
    assert_eq!(said.reason, "ManagedClusterLeaseUpdateStopped");
    assert!(available(clusters.get_opt("west").await.unwrap().as_ref(), "True"));

    let _again = serve(main.client(), &east, east.client(), "east");
    main.until(&clusters, "east", |cluster| available(cluster, "True")).await;
}
