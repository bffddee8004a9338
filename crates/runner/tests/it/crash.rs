//! A death at every write and at every start and stop of a process.

use crate::fake::{Computer, FakeMachine};
use crate::things::deployment;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lifeboat_api::annotations::DEPLOYED_BY;
use lifeboat_api::cluster::PlacementDecision;
use lifeboat_engine::Settings;
use lifeboat_lvm::{Create, Directories, DirectoryClass, Lvm};
use lifeboat_runner::{Setup, runner, subscribe};
use lifeboat_testbed::fixtures::{self, With};
use lifeboat_testbed::{Cluster, CrashStory, Kind, Process, Scene};
use serde_json::json;
use std::sync::Arc;

#[derive(Clone)]
struct Ground {
    computer: Computer,
    disks: Arc<Directories>,
    _folder: Arc<tempfile::TempDir>,
}

fn ground() -> Ground {
    let folder = tempfile::tempdir().unwrap();
    let class = DirectoryClass::new("dir", folder.path()).default_class();
    let disks = Arc::new(Directories::new(vec![class]).unwrap());
    Ground { computer: Computer::default(), disks, _folder: Arc::new(folder) }
}

async fn run(process: Process<Ground>) {
    let machine =
        FakeMachine::open(process.world.computer.clone(), process.points.clone(), process.clock.clone());
    let setup =
        Setup { node: "node".to_owned(), machine: Arc::new(machine), disks: process.world.disks.clone() };
    runner(process.client, process.clock, Settings::default(), setup).run(std::future::pending()).await;
}

/// A node, and the claim `data` on a volume of its disks.
async fn prepare(cluster: &Cluster, ground: &Ground) {
    let create = Create {
        class: String::new(),
        name: "handle".to_owned(),
        size: 1 << 20,
        tags: [].into(),
        options: String::new(),
    };
    ground.disks.create(create).await.unwrap();
    let params = PostParams::default();
    Api::all(cluster.client()).create(&params, &fixtures::node("node")).await.unwrap();
    let volume = fixtures::volume("v").with(|volume| {
        let spec = volume.spec.as_mut().unwrap();
        spec.host_path = None;
        spec.csi =
            Some(serde_json::from_value(json!({"driver": "topolvm.io", "volumeHandle": "handle"})).unwrap());
    });
    Api::<PersistentVolume>::all(cluster.client()).create(&params, &volume).await.unwrap();
    let claim = fixtures::claim("default", "data")
        .with(|claim| claim.spec.as_mut().unwrap().volume_name = Some("v".to_owned()));
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(cluster.client(), "default");
    claims.create(&params, &claim).await.unwrap();
    let bound = Patch::Merge(json!({"status": {"phase": "Bound"}}));
    claims.patch_status("data", &PatchParams::default(), &bound).await.unwrap();
}

fn one_writer(scene: &Scene<'_, Ground>) -> Result<(), String> {
    match scene.world.computer.writers("handle") {
        0 | 1 => Ok(()),
        many => Err(format!("{many} processes write to one volume")),
    }
}

fn running(pod: &Pod) -> bool {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
        && pod.metadata.deletion_timestamp.is_none()
}

async fn until_runs(cluster: &Cluster, but: Option<&str>) -> Pod {
    let pods: Api<Pod> = Api::namespaced(cluster.client(), "default");
    cluster
        .eventually("a running pod", || async {
            let all = pods.list(&Default::default()).await?;
            let other = |pod: &Pod| pod.metadata.uid.as_deref() != but;
            all.items
                .into_iter()
                .find(|pod| running(pod) && other(pod))
                .ok_or_else(|| lifeboat_testbed::NotYet("no pod runs".to_owned()))
        })
        .await
}

fn story(name: &str) -> CrashStory<Ground> {
    CrashStory::with(name, ground)
        .controller(run)
        .expects(Kind::Api)
        .expects(Kind::Mover)
        .invariant("a volume has one writer", one_writer)
        // A pod's number depends on whether the one before was gone already.
        .ends_may_differ()
        .order_may_differ()
}

#[test]
fn running_and_replacing_a_pod_survives_a_death_at_every_effect() {
    let points = story("pods")
        .story(|cluster, ground| async move {
            prepare(&cluster, &ground).await;
            let deployments: Api<Deployment> = Api::namespaced(cluster.client(), "default");
            let writer = deployment("web", 1, &["writer", "--folder=$(LIFEBOAT_VOLUME_DATA)"]);
            deployments.create(&PostParams::default(), &writer).await.unwrap();
            let first = until_runs(&cluster, None).await;
            let pods: Api<Pod> = Api::namespaced(cluster.client(), "default");
            let name = first.metadata.name.clone().unwrap();
            pods.delete(&name, &DeleteParams::default()).await.unwrap();
            until_runs(&cluster, first.metadata.uid.as_deref()).await;
        })
        .converges(|scene| {
            let pods: Vec<Pod> = scene.list();
            let deployments: Vec<Deployment> = scene.list();
            let ready = deployments[0].status.as_ref().and_then(|status| status.ready_replicas);
            let told = (pods.len(), pods.iter().all(running), scene.world.computer.alive(), ready);
            if told == (1, true, 1, Some(1)) { Ok(()) } else { Err(format!("{told:?}")) }
        })
        .run();
    assert!(points.len() >= 14, "{points:#?}");
}

#[test]
fn taking_a_deployment_away_survives_a_death_at_every_effect() {
    let points = story("removal")
        .story(|cluster, ground| async move {
            prepare(&cluster, &ground).await;
            let deployments: Api<Deployment> = Api::namespaced(cluster.client(), "default");
            deployments.create(&PostParams::default(), &deployment("web", 1, &["writer"])).await.unwrap();
            until_runs(&cluster, None).await;
            deployments.delete("web", &DeleteParams::background()).await.unwrap();
        })
        .converges(|scene| {
            let told = (scene.list::<Pod>().len(), scene.world.computer.alive());
            if told == (0, 0) { Ok(()) } else { Err(format!("{told:?}")) }
        })
        .run();
    assert!(points.len() >= 9, "{points:#?}");
}

const MANIFESTS: &str = "
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: none, command: [writer]}]}
";

async fn decide(cluster: &Cluster, clusters: &[&str]) {
    let decisions: Vec<_> = clusters.iter().map(|name| json!({"clusterName": name, "reason": ""})).collect();
    let decided = Patch::Merge(json!({"status": {"decisions": decisions}}));
    let api: Api<PlacementDecision> = Api::namespaced(cluster.client(), "shop");
    api.patch_status("web-decision-1", &PatchParams::default(), &decided).await.unwrap();
}

async fn subscribes(process: Process<()>) {
    let settings = Settings::default();
    let (engine, hub) = subscribe::hub_view(process.client.clone(), process.clock.clone(), settings);
    let east = subscribe::subscriber(&hub, "east", process.client, process.clock, settings);
    tokio::join!(engine.run(std::future::pending()), east.run(std::future::pending()));
}

fn subscription(name: &str) -> CrashStory<()> {
    let definitions =
        lifeboat_api::crds().into_iter().filter(|crd| crd.spec.names.kind == "PlacementDecision");
    CrashStory::new(name).install(definitions.collect()).controller(subscribes).expects(Kind::Api)
}

async fn prepare_hub(cluster: &Cluster) {
    let params = PostParams::default();
    let namespace = json!({"metadata": {"name": "shop"}});
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(cluster.client());
    namespaces.create(&params, &serde_json::from_value(namespace).unwrap()).await.unwrap();
    let decision = json!({"metadata": {
        "name": "web-decision-1", "namespace": "shop",
        "labels": {"cluster.open-cluster-management.io/placement": "web"},
    }});
    let decisions: Api<PlacementDecision> = Api::namespaced(cluster.client(), "shop");
    decisions.create(&params, &serde_json::from_value(decision).unwrap()).await.unwrap();
    let source = json!({
        "metadata": {
            "name": "web-app", "namespace": "shop",
            "labels": {"apps.open-cluster-management.io/manifests-of": "web"},
        },
        "data": {"app.yaml": MANIFESTS},
    });
    let sources: Api<ConfigMap> = Api::namespaced(cluster.client(), "shop");
    sources.create(&params, &serde_json::from_value(source).unwrap()).await.unwrap();
}

async fn until_deployed(cluster: &Cluster) {
    let deployments: Api<Deployment> = Api::namespaced(cluster.client(), "shop");
    cluster.until(&deployments, "web", |web| web.is_some()).await;
}

#[test]
fn moving_an_application_survives_a_death_at_every_write() {
    let points = subscription("subscription")
        .story(|cluster, ()| async move {
            prepare_hub(&cluster).await;
            decide(&cluster, &["east"]).await;
            until_deployed(&cluster).await;
            // Retained: it stays, though another has it too.
            decide(&cluster, &["west", "east"]).await;
            decide(&cluster, &["west"]).await;
            let deployments: Api<Deployment> = Api::namespaced(cluster.client(), "shop");
            cluster.until(&deployments, "web", |web| web.is_none()).await;
            // Nobody else is there to see that no pod uses the claim.
            let claims: Api<PersistentVolumeClaim> = Api::namespaced(cluster.client(), "shop");
            let going = |claim: Option<&PersistentVolumeClaim>| {
                claim.is_none_or(|claim| claim.metadata.deletion_timestamp.is_some())
            };
            cluster.until(&claims, "data", going).await;
            let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            claims.patch("data", &PatchParams::default(), &free).await.unwrap();
        })
        .converges(|scene| {
            let maps: Vec<ConfigMap> = scene.list();
            let record = maps.iter().any(|map| map.metadata.name.as_deref() == Some("web-app-deployed"));
            let told =
                (scene.list::<Deployment>().len(), scene.list::<PersistentVolumeClaim>().len(), record);
            if told == (0, 0, false) { Ok(()) } else { Err(format!("{told:?}")) }
        })
        .run();
    assert!(points.len() >= 6, "{points:#?}");
}

#[test]
fn a_restored_claim_is_taken_over_and_never_taken_for_ones_own() {
    let points = subscription("restored")
        .story(|cluster, ()| async move {
            prepare_hub(&cluster).await;
            decide(&cluster, &["west"]).await;
            let claims: Api<PersistentVolumeClaim> = Api::namespaced(cluster.client(), "shop");
            let restored = fixtures::claim("shop", "data").with(|claim| {
                claim.metadata.annotations = Some([(DEPLOYED_BY.to_owned(), "west's".to_owned())].into());
            });
            claims.create(&PostParams::default(), &restored).await.unwrap();
            decide(&cluster, &["west", "east"]).await;
            until_deployed(&cluster).await;
        })
        .invariant("the restored claim is never deleted", |scene| {
            let claims: Vec<PersistentVolumeClaim> = scene.list();
            match claims.iter().any(|claim| claim.metadata.deletion_timestamp.is_some()) {
                true => Err("it is going".to_owned()),
                false => Ok(()),
            }
        })
        .converges(|scene| {
            let claim: PersistentVolumeClaim = scene.get("shop", "data").ok_or("the claim is gone")?;
            let maps: Vec<ConfigMap> = scene.list();
            let record = maps.iter().find(|map| map.metadata.name.as_deref() == Some("web-app-deployed"));
            let record = record.and_then(|record| record.metadata.uid.clone());
            let by = claim.metadata.annotations.unwrap_or_default().get(DEPLOYED_BY).cloned();
            if by.is_some() && by == record { Ok(()) } else { Err(format!("{by:?} {record:?}")) }
        })
        // Annotations hold the record's uid.
        .ends_may_differ()
        .run();
    assert!(points.len() >= 3, "{points:#?}");
}
