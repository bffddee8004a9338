//! An agent does all of its work with the rights that it is given on the hub, and can do nothing beside it.

use crate::things::{
    accepted, agent_on, config_map, definitions, group_scope, hub, is_done, make, namespace, serve, view,
    within, work,
};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use lifeboat_api::cluster::ManagedCluster;
use lifeboat_api::view::ManagedClusterView;
use lifeboat_api::work::ManifestWork;
use lifeboat_engine::conditions::find;
use lifeboat_fleet::access;
use lifeboat_testbed::Cluster;
use serde_json::json;

fn refused<T: std::fmt::Debug>(what: &str, answer: Result<T, kube::Error>) {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 403 => {}
        other => panic!("{what} should be refused and is {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_reaches_its_own_namespace_and_no_other() {
    let (main, east) = (Cluster::embedded(), Cluster::embedded());
    main.install(&definitions()).await;
    east.install(&definitions()).await;
    let clusters: Api<ManagedCluster> = Api::all(main.client());
    for name in ["east", "east-1"] {
        make(&clusters, &accepted(name)).await;
    }
    let _hub = hub(&main);
    let _agent = serve(agent_on(&main, "east").await, &east, east.account("agent").await, "east");

    // All of its work.
    let works: Api<ManifestWork> = Api::namespaced(main.client(), "east");
    let views: Api<ManagedClusterView> = Api::namespaced(main.client(), "east");
    let bindings: Api<RoleBinding> = Api::namespaced(main.client(), "east-1");
    let binding = access::of("east-1").role_binding.metadata.name.unwrap();
    main.until(&bindings, &binding, |binding| binding.is_some()).await;
    make(&works, &work("east", "shop", &[namespace("shop"), config_map("shop", "a", "1")])).await;
    make(&views, &view("east", "shop", group_scope("shop", "x"))).await;
    main.until(&works, "shop", is_done).await;
    main.until(&views, "shop", |view| view.is_some_and(|view| view.status.is_some())).await;
    let is_available = |cluster: Option<&ManagedCluster>| {
        let conditions = cluster.and_then(|cluster| cluster.status.as_ref()).map(|status| &status.conditions);
        conditions.is_some_and(|all| {
            ["ManagedClusterConditionAvailable", "ManagedClusterJoined"]
                .iter()
                .all(|type_| find(all, type_).is_some_and(|condition| condition.status == "True"))
        })
    };
    main.until(&clusters, "east", is_available).await;
    works.delete("shop", &DeleteParams::default()).await.unwrap();
    main.until(&works, "shop", |work| work.is_none()).await;

    // Nothing of its neighbour, whose name begins with its own, and nothing of the hub.
    make(&Api::namespaced(main.client(), "east-1"), &work("east-1", "theirs", &[])).await;
    let me = agent_on(&main, "east").await;
    for space in ["east-1", "default", "kube-system"] {
        let works: Api<ManifestWork> = Api::namespaced(me.clone(), space);
        refused("listing works", works.list(&ListParams::default()).await);
        refused("reading a work", works.get("theirs").await);
        let patch = Patch::Merge(json!({ "metadata": { "finalizers": [] } }));
        refused("changing a work", works.patch("theirs", &PatchParams::default(), &patch).await);
        let status = Patch::Merge(json!({ "status": {} }));
        refused("lying about a work", works.patch_status("theirs", &PatchParams::default(), &status).await);
        let views: Api<ManagedClusterView> = Api::namespaced(me.clone(), space);
        refused("lying about a view", views.patch_status("x", &PatchParams::default(), &status).await);
        let leases: Api<Lease> = Api::namespaced(me.clone(), space);
        refused("reading a lease", leases.get("managed-cluster-lease").await);
        let secrets: Api<Secret> = Api::namespaced(me.clone(), space);
        refused("reading secrets", secrets.list(&ListParams::default()).await);
    }
    let works: Api<ManifestWork> = Api::all(me.clone());
    refused("listing all works", works.list(&ListParams::default()).await);
    let clusters: Api<ManagedCluster> = Api::all(me.clone());
    refused("listing all clusters", clusters.list(&ListParams::default()).await);
    let status = Patch::Merge(json!({ "status": {} }));
    refused(
        "lying about another cluster",
        clusters.patch_status("east-1", &PatchParams::default(), &status).await,
    );
    let accepts = Patch::Merge(json!({ "spec": { "hubAcceptsClient": true } }));
    refused("letting itself in", clusters.patch("east", &PatchParams::default(), &accepts).await);

    // In its own namespace only what its work needs.
    let works: Api<ManifestWork> = Api::namespaced(me.clone(), "east");
    refused("making a work", works.create(&PostParams::default(), &work("east", "mine", &[])).await);
    refused("deleting a work", works.delete("shop", &DeleteParams::default()).await);
    let secrets: Api<Secret> = Api::namespaced(me.clone(), "east");
    refused("reading its secrets", secrets.list(&ListParams::default()).await);
    let maps: Api<ConfigMap> = Api::namespaced(me.clone(), "east");
    let map = ConfigMap { metadata: within("east", "m"), ..ConfigMap::default() };
    refused("making a config map", maps.create(&PostParams::default(), &map).await);
    let leases: Api<Lease> = Api::namespaced(me, "east");
    let lease = Lease { metadata: within("east", "other"), spec: None };
    refused("making a lease", leases.create(&PostParams::default(), &lease).await);
    refused("another lease", leases.get("other").await);
}

/// Who is turned away loses its rights at once.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_turned_away_has_no_rights() {
    let main = Cluster::embedded();
    main.install(&definitions()).await;
    let clusters: Api<ManagedCluster> = Api::all(main.client());
    make(&clusters, &accepted("east")).await;
    let _hub = hub(&main);
    let works: Api<ManifestWork> = Api::namespaced(agent_on(&main, "east").await, "east");
    main.eventually("its rights", || async {
        works.list(&ListParams::default()).await.map(drop).map_err(Into::into)
    })
    .await;
    let patch = Patch::Merge(json!({ "spec": { "hubAcceptsClient": false } }));
    clusters.patch("east", &PatchParams::default(), &patch).await.unwrap();
    let denied = |cluster: Option<&ManagedCluster>| {
        let conditions = cluster.and_then(|cluster| cluster.status.as_ref()).map(|status| &status.conditions);
        conditions.is_some_and(|all| {
            find(all, "HubAcceptedManagedCluster")
                .is_some_and(|condition| condition.reason == "HubClusterAdminDenied")
        })
    };
    main.until(&clusters, "east", denied).await;
    main.eventually("no rights", || async {
        match works.list(&ListParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(()),
            other => Err(lifeboat_testbed::NotYet(format!("{other:?}"))),
        }
    })
    .await;
}

/// A cluster that is removed from the hub leaves no rights behind.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_removed_has_no_rights() {
    let main = Cluster::embedded();
    main.install(&definitions()).await;
    let clusters: Api<ManagedCluster> = Api::all(main.client());
    make(&clusters, &accepted("east")).await;
    let _hub = hub(&main);
    let bindings: Api<RoleBinding> = Api::namespaced(main.client(), "east");
    let binding = access::of("east").role_binding.metadata.name.unwrap();
    main.until(&bindings, &binding, |binding| binding.is_some()).await;
    clusters.delete("east", &DeleteParams::default()).await.unwrap();
    main.until(&bindings, &binding, |binding| binding.is_none()).await;
}

/// A cluster cannot have the name of one of the hub's own namespaces: its agent would have rights there.
#[tokio::test(start_paused = true)]
async fn a_cluster_cannot_be_named_into_the_hubs_own_namespace() {
    let main = Cluster::embedded();
    main.install(&definitions()).await;
    make(&Api::all(main.client()), &accepted("kube-system")).await;
    make(&Api::all(main.client()), &accepted("west")).await;
    let _hub = hub(&main);
    let west: Api<RoleBinding> = Api::namespaced(main.client(), "west");
    main.until(&west, &access::of("west").role_binding.metadata.name.unwrap(), |binding| binding.is_some())
        .await;
    let system: Api<RoleBinding> = Api::namespaced(main.client(), "kube-system");
    let name = access::of("kube-system").role_binding.metadata.name.unwrap();
    assert!(system.get_opt(&name).await.unwrap().is_none());
}

/// What an agent may do on the hub is written down for people as well: the same, with a name in the place of the cluster's. `UPDATE_RIGHTS=1` rewrites it.
#[test]
fn the_document_says_what_a_hub_grants() {
    let access::Access { role, role_binding, cluster_role, cluster_role_binding } = access::of("CLUSTER");
    let objects = [json!(role), json!(role_binding), json!(cluster_role), json!(cluster_role_binding)];
    let head = "# What the agent of a managed cluster may do on the hub, where CLUSTER is its name. A hub of Lifeboat's grants this by itself to each cluster that\n\
                # was let in; this is for reading, and for hubs where people see to it.\n";
    let texts: Vec<String> = objects.iter().map(|one| serde_saphyr::to_string(one).unwrap()).collect();
    let wanted = format!("{head}{}", texts.join("---\n"));
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join("agent-on-hub.yaml");
    if std::env::var_os("UPDATE_RIGHTS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == wanted, "deploy/agent-on-hub.yaml is stale; UPDATE_RIGHTS=1 rewrites it");
}
