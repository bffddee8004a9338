//! What is counted, and how many writes many pairs cost.

use super::scene;
use crate::things::{ClaimThings, VolumeThings, new_claim, new_volume};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use lifeboat_apiserver::fault::{Asked, Faults, RequestFault};
use lifeboat_binder::Neighbours;
use lifeboat_binder::lean::{PersistentVolume, PersistentVolumeClaim};
use lifeboat_binder::words::{ClaimWords, VolumeWords};
use lifeboat_engine::Settings;
use lifeboat_testbed::{Cluster, NotYet, Task};
use serde_json::json;
use std::sync::Arc;

/// Who is counted depends on who else is at work, so only a cluster of one's own has exact figures.
#[tokio::test(start_paused = true)]
async fn kubernetes_metrics_are_counted() {
    let cluster = &Cluster::embedded();
    let scene = scene(cluster, "counted").await;
    let counted = |line: &str| {
        let mut registry = prometheus_client::registry::Registry::default();
        scene.metrics.register(&mut registry);
        let text = lifeboat_engine::expose(&registry);
        assert!(text.lines().any(|one| one == line), "{line} is not in\n{text}");
    };
    let class = scene.namespace.as_str();
    scene.create_class("made.example.io", "Immediate").await;
    scene.create_volume(scene.volume("spare").of_class(None).of_mode("Block")).await;
    scene.volume_in("spare", "Available").await;
    let claim = scene.create_claim(scene.claim("c")).await;
    scene.event("ExternalProvisioning").await;
    counted(&format!(
        "pv_collector_unbound_pvc_count{{namespace=\"{class}\",storage_class=\"{class}\",volume_attributes_class=\"\"}} 1"
    ));
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    let mut volume = scene.volume("made").for_claim("c", claim.uid()).policy("Delete");
    volume.spec.as_mut().unwrap().claim_ref.as_mut().unwrap().namespace = Some(class.to_owned());
    scene.create_volume(volume).await;
    scene.claim_in("c", "Bound").await;
    counted("pv_collector_total_pv_count{plugin_name=\"N/A\",volume_mode=\"Block\"} 1");
    counted("pv_collector_total_pv_count{plugin_name=\"N/A\",volume_mode=\"Filesystem\"} 1");
    counted(&format!("pv_collector_bound_pv_count{{storage_class=\"{class}\"}} 1"));
    counted("pv_collector_unbound_pv_count{storage_class=\"\"} 1");
    counted(&format!(
        "pv_collector_bound_pvc_count{{namespace=\"{class}\",storage_class=\"{class}\",volume_attributes_class=\"\"}} 1"
    ));
    let operation = |name: &str, part: &str, count: u32| {
        counted(&format!("volume_operation_total_seconds_{part}operation_name=\"{name}\"}} {count}"));
    };
    let plugin = "plugin_name=\"made.example.io\",";
    operation("provision", &format!("count{{{plugin}"), 1);
    operation("provision", &format!("bucket{{le=\"2.5\",{plugin}"), 0);
    operation("provision", &format!("bucket{{le=\"5.0\",{plugin}"), 1);
    scene.claims.delete("c", &DeleteParams::default()).await.unwrap();
    scene.volume_in("made", "Released").await;
    scene.volumes.delete(&scene.named("made"), &DeleteParams::default()).await.unwrap();
    cluster.until(&scene.volumes, &scene.named("made"), |volume| volume.is_none()).await;
    operation("delete", &format!("count{{{plugin}"), 1);
    counted("retroactive_storageclass_total 0");
    let default =
        Patch::Merge(json!({"metadata": {"annotations": {lifeboat_binder::words::DEFAULT_CLASS: "true"}}}));
    scene.create_claim(scene.claim("d").of_class(None).sized("7Gi")).await;
    scene.event("FailedBinding").await;
    scene.classes.patch(class, &PatchParams::default(), &default).await.unwrap();
    let given = |claim: Option<&PersistentVolumeClaim>| claim.is_some_and(|claim| claim.class() == class);
    cluster.until(&scene.claims, "d", given).await;
    counted("retroactive_storageclass_total 1");
    counted("retroactive_storageclass_errors_total 0");
}

/// Writes of the server since a revision.
fn revision(cluster: &Cluster) -> u64 {
    cluster.server().cluster().store.revision()
}

/// Volumes and claims of fifty sizes, nobody bound to anybody.
async fn create_pairs(cluster: &Cluster, pairs: u64) {
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(cluster.client(), "default");
    let volumes: Api<PersistentVolume> = Api::all(cluster.client());
    for n in 0..pairs {
        let volume = new_volume(&format!("v{n}")).sized(&format!("{}Gi", 1 + n % 50));
        volumes.create(&PostParams::default(), &volume).await.unwrap();
        let claim = new_claim("default", &format!("c{n}")).sized(&format!("{}Gi", 1 + n % 50));
        claims.create(&PostParams::default(), &claim).await.unwrap();
    }
}

/// The binder, and what its engine counts.
fn start(cluster: &Cluster) -> (Task, lifeboat_engine::Metrics) {
    start_with(cluster, cluster.client())
}

fn start_with(cluster: &Cluster, client: kube::Client) -> (Task, lifeboat_engine::Metrics) {
    let engine = lifeboat_binder::engine(client, cluster.clock(), Settings::default(), Neighbours::Here);
    let metrics = engine.metrics();
    (Task::spawn(async move { engine.run(std::future::pending()).await }), metrics)
}

/// Virtual time passes only when nobody has anything to do, so that one look after a while is enough.
async fn all_bound(cluster: &Cluster, pairs: u64) {
    for_seconds(60).await;
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(cluster.client(), "default");
    let all = claims.list(&ListParams::default()).await.unwrap().items;
    let bound = |claim: &&PersistentVolumeClaim| {
        claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound")
    };
    assert_eq!(all.iter().filter(bound).count() as u64, pairs);
}

async fn for_seconds(seconds: u64) {
    tokio::time::sleep(std::time::Duration::from_secs(seconds)).await;
}

/// A server that takes its time over every write, so that most claims wait in line.
struct Slow;

impl Faults for Slow {
    fn on_request(&self, asked: Asked<'_>) -> RequestFault {
        let time = std::time::Duration::from_millis(200);
        if asked.verb.is_write() { RequestFault::Delay(time) } else { RequestFault::None }
    }
}

#[tokio::test(start_paused = true)]
async fn many_pairs_bind_with_four_writes_each_and_then_nothing_is_written() {
    const PAIRS: u64 = 500;
    let cluster = Cluster::embedded();
    create_pairs(&cluster, PAIRS).await;
    let (_, mut written) = cluster.server().cluster().store.observe();
    let _binder = start_with(&cluster, cluster.client_with(Arc::new(Slow)));
    all_bound(&cluster, PAIRS).await;
    for_seconds(600).await;
    let mut writes: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
    while let Ok(event) = written.try_recv() {
        *writes.entry(event.entry.key.collection.to_string()).or_default() += 1;
    }
    assert_eq!(writes.values().sum::<u64>(), 4 * PAIRS, "four writes for each pair and no event: {writes:?}");
}

#[tokio::test(start_paused = true)]
async fn starting_on_ten_thousand_objects_writes_nothing() {
    const PAIRS: u64 = 5_000;
    let cluster = Cluster::embedded();
    create_pairs(&cluster, PAIRS).await;
    let (binder, _) = start(&cluster);
    all_bound(&cluster, PAIRS).await;
    binder.kill().await.unwrap();
    let before = revision(&cluster);
    let (_binder, metrics) = start(&cluster);
    for_seconds(600).await;
    let mut registry = prometheus_client::registry::Registry::default();
    metrics.register(&mut registry);
    let text = lifeboat_engine::expose(&registry);
    for controller in ["claims", "volumes", "pvc-protection", "pv-protection", "volume-expand"] {
        let looked = format!("workqueue_work_duration_seconds_count{{name=\"{controller}\"}} {PAIRS}");
        assert!(text.lines().any(|line| line == looked), "{looked}: every object is looked at once\n{text}");
    }
    assert!(!text.contains("lifeboat_effects_total{"), "and nothing is done about any: {text}");
    assert_eq!(revision(&cluster), before);
}

/// Only virtual time shows that nobody waits for a timer.
#[tokio::test(start_paused = true)]
async fn volumes_that_nobody_takes_are_available_at_once() {
    const CLAIMS: usize = 3;
    const VOLUMES: usize = 90;
    let cluster = Cluster::embedded();
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(cluster.client(), "default");
    let volumes: Api<PersistentVolume> = Api::all(cluster.client());
    for n in 0..CLAIMS {
        claims.create(&PostParams::default(), &new_claim("default", &format!("c{n}"))).await.unwrap();
    }
    for n in 0..VOLUMES {
        volumes.create(&PostParams::default(), &new_volume(&format!("v{n}"))).await.unwrap();
    }
    let began = tokio::time::Instant::now();
    let _binder = start(&cluster);
    let shown = || async {
        let all = volumes.list(&ListParams::default()).await?.items;
        let count = |phase: &str| all.iter().filter(|volume| volume.phase() == phase).count();
        let (bound, available) = (count("Bound"), count("Available"));
        let all = (bound, available) == (CLAIMS, VOLUMES - CLAIMS);
        if all { Ok(()) } else { Err(NotYet(format!("{bound} are bound, {available} available"))) }
    };
    cluster.eventually("every volume to show what it is", shown).await;
    assert!(began.elapsed() < std::time::Duration::from_secs(2), "{:?}", began.elapsed());
}
