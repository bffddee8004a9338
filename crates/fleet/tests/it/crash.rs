//! A death at every write of an agent: while it makes, changes and removes objects, and while it joins. The cluster is its own hub here, so that
//! the writes to both sides are counted.

use crate::things::{
    accepted, config_map, definitions, group, group_scope, hub, is_done, make, namespace, view, work,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, Patch};
use lifeboat_api::cluster::ManagedCluster;
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_api::view::ManagedClusterView;
use lifeboat_api::work::{AppliedManifestWork, ManifestWork};
use lifeboat_engine::Settings;
use lifeboat_fleet::{Agent, AgentSettings, Allowed, agent, availability};
use lifeboat_testbed::{Cluster, CrashStory, Kind, Process, Scene};
use serde_json::json;
use std::time::Duration;

async fn run(process: Process<()>) {
    let made = agent(Agent {
        hub: process.client.clone(),
        cluster: process.client,
        name: "east".to_owned(),
        clock: process.clock,
        settings: AgentSettings::default(),
        allowed: Allowed::default(),
    });
    made.run(std::future::pending()).await;
}

/// The namespace that a work has for its objects, and one object that was there before.
async fn prepare(cluster: &Cluster) -> Api<ManifestWork> {
    let clusters: Api<ManagedCluster> = Api::all(cluster.client());
    cluster.until(&clusters, "east", |cluster| cluster.is_some()).await;
    let accept = Patch::Merge(json!({ "spec": { "hubAcceptsClient": true } }));
    clusters.patch("east", &Default::default(), &accept).await.unwrap();
    let says = |count: usize| {
        move |cluster: Option<&ManagedCluster>| {
            cluster
                .and_then(|cluster| cluster.status.as_ref())
                .is_some_and(|status| status.conditions.len() >= count)
        }
    };
    cluster.until(&clusters, "east", says(1)).await;
    // The hub's own part would write at its own times; the story is that of the agent.
    let hub = hub(cluster);
    cluster.until(&clusters, "east", says(3)).await;
    hub.kill().await.unwrap();
    let before: Namespace = serde_json::from_value(namespace("before")).unwrap();
    make(&Api::all(cluster.client()), &before).await;
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), "before");
    make(&maps, &serde_json::from_value(config_map("before", "theirs", "0")).unwrap()).await;
    Api::namespaced(cluster.client(), "east")
}

/// What was there before stays, whoever dies when.
fn theirs_stays(scene: &Scene<'_, ()>) -> Result<(), String> {
    let works: Vec<ManifestWork> = scene.list();
    match (works.is_empty(), scene.get::<ConfigMap>("before", "theirs")) {
        (false, None) => Err("an object that the agent did not make is gone".to_owned()),
        _ => Ok(()),
    }
}

/// No object of a work without a record that names it: it could never be removed.
fn made_is_recorded(scene: &Scene<'_, ()>) -> Result<(), String> {
    let records: Vec<AppliedManifestWork> = scene.list();
    for map in scene.list::<ConfigMap>() {
        let Some(mark) =
            map.metadata.annotations.iter().flatten().find(|(key, _)| key.ends_with("made-by-record"))
        else {
            continue;
        };
        let record = records.iter().find(|record| record.metadata.uid.as_ref() == Some(mark.1));
        let entries =
            record.and_then(|record| record.status.as_ref()).map(|status| &status.applied_resources);
        let named = entries.is_some_and(|all| {
            all.iter().any(|one| Some(&one.identifier.name) == map.metadata.name.as_ref())
        });
        if !named {
            return Err(format!("{:?} is in no record", map.metadata.name));
        }
    }
    Ok(())
}

/// Who says applied has it applied.
fn applied_is_applied(scene: &Scene<'_, ()>) -> Result<(), String> {
    let Some(work) = scene.get::<ManifestWork>("east", "shop") else { return Ok(()) };
    if work.metadata.deletion_timestamp.is_some() || !is_done(Some(&work)) {
        return Ok(());
    }
    for manifest in work.spec.workload.unwrap().manifests {
        let name = manifest.0["metadata"]["name"].as_str().unwrap().to_owned();
        let value = manifest.0["data"]["key"].as_str().map(str::to_owned);
        let (Some(value), Some(space)) = (value, manifest.0["metadata"]["namespace"].as_str()) else {
            continue;
        };
        let map = scene.get::<ConfigMap>(space, &name).ok_or(format!("{name} is said to be there"))?;
        if map.data.unwrap()["key"] != value {
            return Err(format!("{name} is said to be as wanted"));
        }
    }
    Ok(())
}

#[test]
fn a_work_is_made_changed_and_removed() {
    let points = CrashStory::new("a work from its beginning to its end")
        .install(definitions())
        .controller(run)
        .story(|cluster, ()| async move {
            let works = prepare(&cluster).await;
            let first = [
                config_map("shop", "a", "1"),
                config_map("shop", "b", "1"),
                config_map("before", "theirs", "1"),
                namespace("shop"),
            ];
            make(&works, &work("east", "shop", &first)).await;
            cluster.until(&works, "shop", is_done).await;
            let second =
                [config_map("shop", "a", "2"), config_map("before", "theirs", "1"), namespace("shop")];
            let patch = Patch::Merge(json!({ "spec": { "workload": { "manifests": second } } }));
            works.patch("shop", &Default::default(), &patch).await.unwrap();
            cluster.until(&works, "shop", is_done).await;
            let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), "shop");
            cluster.until(&maps, "b", |map| map.is_none()).await;
            works.delete("shop", &Default::default()).await.unwrap();
            cluster.until(&works, "shop", |work| work.is_none()).await;
        })
        .expects(Kind::Api)
        .invariant("what was there before stays", theirs_stays)
        .invariant("what was made is recorded", made_is_recorded)
        .invariant("applied is applied", applied_is_applied)
        .converges(|scene| {
            if scene.get::<ConfigMap>("before", "theirs").is_none() {
                return Err("what was there before is gone".to_owned());
            }
            if scene.get::<Namespace>("", "shop").is_some() {
                return Err("the namespace is still there".to_owned());
            }
            match scene.list::<AppliedManifestWork>().len() {
                0 => Ok(()),
                left => Err(format!("{left} records are left")),
            }
        })
        .quiet_for(Duration::from_secs(60))
        .run();
    assert!(points.len() > 15, "{points:#?}");
}

#[test]
fn a_view_is_kept_up() {
    CrashStory::new("a view of a group that comes, changes and goes")
        .install(definitions())
        .controller(run)
        .story(|cluster, ()| async move {
            prepare(&cluster).await;
            let views: Api<ManagedClusterView> = Api::namespaced(cluster.client(), "east");
            make(&views, &view("east", "shop", group_scope("before", "shop"))).await;
            let groups: Api<VolumeReplicationGroup> = Api::namespaced(cluster.client(), "before");
            let shows = |part: &'static str| {
                move |view: Option<&ManagedClusterView>| {
                    let status = view.and_then(|view| view.status.as_ref());
                    status.is_some_and(|status| serde_json::to_string(status).unwrap().contains(part))
                }
            };
            cluster.until(&views, "shop", shows("not found")).await;
            make(&groups, &serde_json::from_value(group("before", "shop", "primary")).unwrap()).await;
            cluster.until(&views, "shop", shows("Watching resources successfully")).await;
            let status = Patch::Merge(json!({ "status": { "state": "Primary" } }));
            groups.patch_status("shop", &Default::default(), &status).await.unwrap();
            cluster.until(&views, "shop", shows("\"state\":\"Primary\"")).await;
            groups.delete("shop", &Default::default()).await.unwrap();
            cluster.until(&views, "shop", shows("not found")).await;
        })
        .expects(Kind::Api)
        .quiet_for(Duration::from_secs(60))
        .run();
}

#[test]
fn a_cluster_is_let_in_by_a_hub_that_dies() {
    CrashStory::new("a cluster is let in, turned away and let in again")
        .install(definitions())
        .controller(|process: Process<()>| async move {
            let engine = availability(process.client, process.clock, Settings::default());
            engine.run(std::future::pending()).await;
        })
        .story(|cluster, ()| async move {
            let clusters: Api<ManagedCluster> = Api::all(cluster.client());
            make(&clusters, &accepted("east")).await;
            let said = |status: &'static str| {
                move |cluster: Option<&ManagedCluster>| {
                    let conditions =
                        cluster.and_then(|cluster| cluster.status.as_ref()).map(|status| &status.conditions);
                    conditions.is_some_and(|all| {
                        all.iter().any(|one| one.type_ == "HubAcceptedManagedCluster" && one.status == status)
                    })
                }
            };
            cluster.until(&clusters, "east", said("True")).await;
            for (accepts, status) in [(false, "False"), (true, "True")] {
                let patch = Patch::Merge(json!({ "spec": { "hubAcceptsClient": accepts } }));
                clusters.patch("east", &Default::default(), &patch).await.unwrap();
                cluster.until(&clusters, "east", said(status)).await;
            }
        })
        .expects(Kind::Api)
        .invariant("nobody has rights who was not let in", |scene| {
            let bound = scene.list::<k8s_openapi::api::rbac::v1::RoleBinding>();
            let rights = bound.iter().any(|one| one.metadata.namespace.as_deref() == Some("east"));
            let denied = scene.get::<ManagedCluster>("", "east").is_none();
            if rights && denied {
                Err("the agent of an unknown cluster has rights".to_owned())
            } else {
                Ok(())
            }
        })
        .quiet_for(Duration::from_secs(60))
        .run();
}
