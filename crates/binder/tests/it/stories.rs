//! What people rely on, on both clusters. The real one is shared, so everything carries the namespace in its name.

use crate::things::{ClaimThings, VolumeThings};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod, ServiceAccount};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use lifeboat_binder::metrics::Metrics;
use lifeboat_binder::words::{
    BIND_COMPLETED, BOUND_BY_CONTROLLER, ClaimWords, PROVISIONED_BY, SELECTED_NODE, STORAGE_PROVISIONER,
    VolumeWords, annotation,
};
use lifeboat_binder::{Binder, Protection};
use lifeboat_engine::Settings;
use lifeboat_testbed::fixtures::{self, With};
use lifeboat_testbed::{Cluster, NotYet, Task, on_both};
use serde_json::json;

struct Scene<'a> {
    cluster: &'a Cluster,
    namespace: String,
    claims: Api<PersistentVolumeClaim>,
    volumes: Api<PersistentVolume>,
    classes: Api<StorageClass>,
    metrics: Metrics,
    _binder: Task,
}

/// A namespace, a class of the same name, and the binder at work.
async fn scene<'a>(cluster: &'a Cluster, prefix: &str) -> Scene<'a> {
    let namespace = cluster.namespace(prefix).await;
    let Binder { engine, metrics } =
        lifeboat_binder::binder(cluster.client(), cluster.clock(), Settings::default(), Protection::Here);
    Scene {
        cluster,
        claims: Api::namespaced(cluster.client(), &namespace),
        volumes: Api::all(cluster.client()),
        classes: Api::all(cluster.client()),
        _binder: Task::spawn(async move { engine.run(std::future::pending()).await }),
        metrics,
        namespace,
    }
}

impl Scene<'_> {
    fn claim(&self, name: &str) -> PersistentVolumeClaim {
        fixtures::claim(&self.namespace, name).of_class(Some(&self.namespace))
    }

    fn volume(&self, name: &str) -> PersistentVolume {
        fixtures::volume(&self.named(name)).of_class(Some(&self.namespace)).csi("none.example.io").with(
            |volume| {
                let csi = volume.spec.as_mut().unwrap().csi.as_mut().unwrap();
                csi.volume_handle = name.to_owned();
            },
        )
    }

    fn named(&self, name: &str) -> String {
        format!("{}-{name}", self.namespace)
    }

    async fn create_claim(&self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim {
        self.claims.create(&PostParams::default(), &claim).await.unwrap()
    }

    async fn create_volume(&self, volume: PersistentVolume) -> PersistentVolume {
        self.volumes.create(&PostParams::default(), &volume).await.unwrap()
    }

    async fn create_class(&self, provisioner: &str, mode: &str) {
        let class = fixtures::storage_class(&self.namespace).with(|class| {
            class.provisioner = provisioner.to_owned();
            class.volume_binding_mode = Some(mode.to_owned());
        });
        self.classes.create(&PostParams::default(), &class).await.unwrap();
    }

    async fn claim_in(&self, name: &str, phase: &'static str) -> PersistentVolumeClaim {
        let is = move |claim: Option<&PersistentVolumeClaim>| {
            claim.and_then(|claim| claim.status.as_ref()?.phase.as_deref()) == Some(phase)
        };
        self.cluster.until(&self.claims, name, is).await.unwrap()
    }

    async fn volume_in(&self, name: &str, phase: &'static str) -> PersistentVolume {
        let is =
            move |volume: Option<&PersistentVolume>| volume.is_some_and(|volume| volume.phase() == phase);
        self.cluster.until(&self.volumes, &self.named(name), is).await.unwrap()
    }

    async fn event(&self, reason: &str) -> String {
        let events: Api<Event> = Api::namespaced(self.cluster.client(), &self.namespace);
        self.cluster
            .eventually(reason, || async {
                let all = events.list(&ListParams::default()).await?.items;
                let found = all.iter().find(|event| event.reason.as_deref() == Some(reason));
                found.and_then(|event| event.note.clone()).ok_or(NotYet(format!("{all:?}")))
            })
            .await
    }
}

on_both!(
    async fn a_pair_is_bound_lost_and_released(cluster: &Cluster) {
        let scene = scene(cluster, "pair").await;
        scene.create_volume(scene.volume("v").sized("2Gi")).await;
        scene.volume_in("v", "Available").await;
        let claim = scene.create_claim(scene.claim("c")).await;
        let bound = scene.claim_in("c", "Bound").await;
        assert_eq!(bound.volume_name(), scene.named("v"));
        assert!(bound.bind_completed() && annotation(&bound.metadata, BOUND_BY_CONTROLLER).is_some());
        assert_eq!(bound.status.unwrap().capacity.unwrap()["storage"].0, "2Gi");
        let volume = scene.volume_in("v", "Bound").await;
        assert_eq!(volume.claim_ref().unwrap().uid, claim.metadata.uid);
        // The claim goes, and the volume is released and kept.
        scene.claims.delete("c", &DeleteParams::default()).await.unwrap();
        scene.volume_in("v", "Released").await;
        // A namesake is not its claim; it says so, and takes the volume once somebody frees it.
        scene.create_claim(scene.claim("c")).await;
        let free = Patch::Merge(json!({"spec": {"claimRef": null}}));
        scene.volumes.patch(&scene.named("v"), &PatchParams::default(), &free).await.unwrap();
        scene.claim_in("c", "Bound").await;
        // The volume is not deleted while it is bound. Forced, it goes, and the claim is lost.
        scene.volumes.delete(&scene.named("v"), &DeleteParams::default()).await.unwrap();
        let going = |volume: Option<&PersistentVolume>| {
            volume.is_some_and(|volume| volume.metadata.deletion_timestamp.is_some())
        };
        cluster.until(&scene.volumes, &scene.named("v"), going).await;
        let force = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        scene.volumes.patch(&scene.named("v"), &PatchParams::default(), &force).await.unwrap();
        scene.claim_in("c", "Lost").await;
        assert_eq!(
            scene.event("ClaimLost").await,
            "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
        );
    }
);

on_both!(
    async fn a_claim_that_waits_is_bound_as_soon_as_a_volume_comes(cluster: &Cluster) {
        let scene = scene(cluster, "waits").await;
        scene.create_class("kubernetes.io/no-provisioner", "Immediate").await;
        for n in 0..5 {
            scene.create_claim(scene.claim(&format!("c{n}"))).await;
        }
        assert_eq!(
            scene.event("ProvisioningFailed").await,
            "no volume plugin matched name: kubernetes.io/no-provisioner"
        );
        for n in 0..5 {
            scene.create_volume(scene.volume(&format!("v{n}"))).await;
        }
        let mut taken = std::collections::BTreeSet::new();
        for n in 0..5 {
            taken.insert(scene.claim_in(&format!("c{n}"), "Bound").await.volume_name().to_owned());
        }
        assert_eq!(taken.len(), 5);
    }
);

on_both!(
    async fn reservations_are_kept_from_either_side(cluster: &Cluster) {
        let scene = scene(cluster, "reserved").await;
        let mut volume = scene.volume("for").sized("9Gi").for_claim("c", "");
        volume.spec.as_mut().unwrap().claim_ref.as_mut().unwrap().namespace = Some(scene.namespace.clone());
        scene.create_volume(volume).await;
        scene.create_volume(scene.volume("small")).await;
        scene.create_claim(scene.claim("c")).await;
        assert_eq!(scene.claim_in("c", "Bound").await.volume_name(), scene.named("for"));
        let volume = scene.volume_in("for", "Bound").await;
        assert!(annotation(&volume.metadata, BOUND_BY_CONTROLLER).is_none(), "a person chose it");
        // A claim that names its volume gets that one; a second that names it waits and says why.
        scene.create_claim(scene.claim("d").naming(&scene.named("small"))).await;
        scene.claim_in("d", "Bound").await;
        scene.create_claim(scene.claim("e").naming(&scene.named("small"))).await;
        let note = scene.event("FailedBinding").await;
        assert_eq!(note, format!("volume {:?} already bound to a different claim.", scene.named("small")));
    }
);

on_both!(
    async fn a_provisioner_is_asked_and_its_volume_bound(cluster: &Cluster) {
        let scene = scene(cluster, "made").await;
        scene.create_class("made.example.io", "WaitForFirstConsumer").await;
        let claim = scene.create_claim(scene.claim("c")).await;
        assert_eq!(
            scene.event("WaitForFirstConsumer").await,
            "waiting for first consumer to be created before binding"
        );
        let node = Patch::Merge(json!({"metadata": {"annotations": {SELECTED_NODE: "n1"}}}));
        scene.claims.patch("c", &PatchParams::default(), &node).await.unwrap();
        let asked = |claim: Option<&PersistentVolumeClaim>| {
            claim.is_some_and(|claim| {
                annotation(&claim.metadata, STORAGE_PROVISIONER) == Some("made.example.io")
            })
        };
        cluster.until(&scene.claims, "c", asked).await;
        scene.event("ExternalProvisioning").await;
        // What the provisioner does.
        let mut volume = scene
            .volume("made")
            .for_claim("c", claim.uid())
            .policy("Delete")
            .noted(PROVISIONED_BY, "made.example.io");
        volume.spec.as_mut().unwrap().claim_ref.as_mut().unwrap().namespace = Some(scene.namespace.clone());
        scene.create_volume(volume).await;
        let bound = scene.claim_in("c", "Bound").await;
        assert_eq!(bound.volume_name(), scene.named("made"));
        assert!(annotation(&bound.metadata, BIND_COMPLETED).is_some());
        // It deletes what is released.
        scene.claims.delete("c", &DeleteParams::default()).await.unwrap();
        scene.volume_in("made", "Released").await;
    }
);

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

/// A default class is everybody's, so only a cluster of one's own can have one.
#[tokio::test(start_paused = true)]
async fn a_claim_is_given_the_default_class_when_there_is_one() {
    let cluster = &Cluster::embedded();
    let scene = scene(cluster, "default").await;
    scene.create_claim(scene.claim("c").of_class(None)).await;
    scene.event("FailedBinding").await;
    scene.create_class("made.example.io", "Immediate").await;
    let default =
        Patch::Merge(json!({"metadata": {"annotations": {lifeboat_binder::words::DEFAULT_CLASS: "true"}}}));
    scene.classes.patch(&scene.namespace, &PatchParams::default(), &default).await.unwrap();
    let given = |claim: Option<&PersistentVolumeClaim>| {
        claim.is_some_and(|claim| annotation(&claim.metadata, STORAGE_PROVISIONER).is_some())
    };
    let claim = cluster.until(&scene.claims, "c", given).await.unwrap();
    assert_eq!(claim.class(), scene.namespace);
}

on_both!(
    async fn a_claim_in_use_is_kept_until_its_pod_is_gone(cluster: &Cluster) {
        let scene = scene(cluster, "used").await;
        scene.create_volume(scene.volume("v")).await;
        scene.create_claim(scene.claim("c")).await;
        scene.claim_in("c", "Bound").await;
        let pods: Api<Pod> = Api::namespaced(cluster.client(), &scene.namespace);
        let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client(), &scene.namespace);
        cluster.until(&accounts, "default", |account| account.is_some()).await;
        let pod = fixtures::pod(&scene.namespace, "p", &["c"]).with(|pod| {
            pod.spec.as_mut().unwrap().node_name = Some("somewhere".into());
        });
        pods.create(&PostParams::default(), &pod).await.unwrap();
        scene.claims.delete("c", &DeleteParams::default()).await.unwrap();
        let waits = || async {
            let claim = scene.claims.get("c").await?;
            let going = claim.metadata.deletion_timestamp.is_some();
            if going { Ok(()) } else { Err(NotYet("it is not even going".into())) }
        };
        cluster.eventually("the claim to wait", waits).await;
        let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        pods.delete("p", &now).await.unwrap();
        cluster.until(&scene.claims, "c", |claim| claim.is_none()).await;
        scene.volume_in("v", "Released").await;
        scene.volumes.delete(&scene.named("v"), &DeleteParams::default()).await.unwrap();
        cluster.until(&scene.volumes, &scene.named("v"), |volume| volume.is_none()).await;
    }
);

/// Writes of the server since a revision.
fn revision(cluster: &Cluster) -> u64 {
    cluster.server().cluster().store.revision()
}

#[tokio::test(start_paused = true)]
async fn many_pairs_bind_with_four_writes_each_and_then_nothing_is_written() {
    const PAIRS: u64 = 500;
    let cluster = Cluster::embedded();
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(cluster.client(), "default");
    let volumes: Api<PersistentVolume> = Api::all(cluster.client());
    for n in 0..PAIRS {
        let volume = fixtures::volume(&format!("v{n}")).sized(&format!("{}Gi", 1 + n % 50));
        volumes.create(&PostParams::default(), &volume).await.unwrap();
        let claim = fixtures::claim("default", &format!("c{n}")).sized(&format!("{}Gi", 1 + n % 50));
        claims.create(&PostParams::default(), &claim).await.unwrap();
    }
    let before = revision(&cluster);
    let (_, mut written) = cluster.server().cluster().store.observe();
    let start = || {
        let engine =
            lifeboat_binder::engine(cluster.client(), cluster.clock(), Settings::default(), Protection::Here);
        Task::spawn(async move { engine.run(std::future::pending()).await })
    };
    let binder = start();
    cluster
        .eventually("all pairs", || async {
            let all = claims.list(&ListParams::default()).await?.items;
            let bound = |claim: &&PersistentVolumeClaim| {
                claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound")
            };
            let count = all.iter().filter(bound).count() as u64;
            if count == PAIRS { Ok(()) } else { Err(NotYet(format!("{count} are bound"))) }
        })
        .await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    let mut writes: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
    while let Ok(event) = written.try_recv() {
        *writes.entry(event.entry.key.collection.to_string()).or_default() += 1;
    }
    assert_eq!(writes.values().sum::<u64>(), 4 * PAIRS, "four writes for each pair and no event: {writes:?}");
    // Starting again on what is bound writes nothing.
    binder.kill().await.unwrap();
    let _binder = start();
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    assert_eq!(revision(&cluster) - before, 4 * PAIRS);
}
