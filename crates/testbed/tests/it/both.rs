//! What the harness and the engine promise holds on either cluster.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    Namespace, Node, ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod,
};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use lifeboat_engine::lease::LeaseConfig;
use lifeboat_engine::{Election, Engine, Level, Metrics, Outcome, Settings};
use lifeboat_testbed::fixtures::{With, claim, node, pod, storage_class, volume};
use lifeboat_testbed::{Cluster, NotYet, Task, on_both};
use tokio_util::sync::CancellationToken;

on_both!(
    async fn fixtures_are_accepted(cluster: &Cluster) {
        let namespace = cluster.namespace("fixtures").await;
        let create = PostParams::default();
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(cluster.client(), &namespace);
        let made = claims.create(&create, &claim(&namespace, "data")).await.unwrap();
        assert_eq!(made.status.unwrap().phase.as_deref(), Some("Pending"));
        let pods: Api<Pod> = Api::namespaced(cluster.client(), &namespace);
        pods.create(&create, &pod(&namespace, "app", &["data"])).await.unwrap();
        // Cluster-wide things carry the namespace in their name, for the real cluster is shared.
        let volumes: Api<PersistentVolume> = Api::all(cluster.client());
        volumes
            .create(&create, &volume(&namespace).with(|volume| volume.metadata.labels = None))
            .await
            .unwrap();
        let classes: Api<StorageClass> = Api::all(cluster.client());
        classes.create(&create, &storage_class(&namespace)).await.unwrap();
        let nodes: Api<Node> = Api::all(cluster.client());
        nodes.create(&create, &node(&namespace)).await.unwrap();
        nodes.delete(&namespace, &DeleteParams::default()).await.unwrap();
    }
);

on_both!(
    async fn a_lease_is_taken_and_given_back(cluster: &Cluster) {
        let namespace = cluster.namespace("lease").await;
        let leases: Api<Lease> = Api::namespaced(cluster.client(), &namespace);
        let election = Election {
            client: cluster.client(),
            namespace,
            name: "boat".into(),
            me: "me".into(),
            config: LeaseConfig::default(),
            clock: cluster.clock(),
            metrics: Metrics::default(),
        };
        let holder = async || leases.get("boat").await.unwrap().spec.unwrap().holder_identity;
        let work = async |_: CancellationToken| assert_eq!(holder().await.as_deref(), Some("me"));
        assert_eq!(election.run(CancellationToken::new(), work).await, Outcome::Finished);
        assert_eq!(holder().await, None);
        // What was given back is taken at once.
        assert_eq!(election.run(CancellationToken::new(), work).await, Outcome::Finished);
    }
);

on_both!(
    async fn repeated_events_make_a_series(cluster: &Cluster) {
        let namespace = cluster.namespace("events").await;
        let engine = Engine::new("boat", cluster.client(), cluster.clock(), Settings::default());
        let recorder = engine.recorder();
        let _engine = Task::spawn(async move { engine.run(std::future::pending()).await });
        let subject = ObjectReference {
            api_version: Some("v1".into()),
            kind: Some("PersistentVolumeClaim".into()),
            namespace: Some(namespace.clone()),
            name: Some("data".into()),
            uid: Some("9d2f9f0e-0000-4000-8000-000000000001".into()),
            ..ObjectReference::default()
        };
        for _ in 0..3 {
            recorder.record(subject.clone(), Level::Warning, "NoVolume", "no volume fits");
        }
        let events: Api<Event> = Api::namespaced(cluster.client(), &namespace);
        let event = cluster
            .eventually("a series of three", || async {
                let events = events.list(&ListParams::default()).await?.items;
                let series = |event: &&Event| event.series.as_ref().is_some_and(|series| series.count == 3);
                events.iter().find(series).cloned().ok_or(NotYet(format!("{events:?}")))
            })
            .await;
        assert_eq!(event.note.as_deref(), Some("no volume fits"));
        assert_eq!(event.regarding.unwrap().name.as_deref(), Some("data"));
    }
);

#[tokio::test]
async fn an_embedded_cluster_is_reached_by_its_kubeconfig() {
    let cluster = Cluster::embedded();
    let path = cluster.kubeconfig().await;
    assert_eq!(cluster.kubeconfig().await, path, "it listens once");
    let kubeconfig = Kubeconfig::read_from(path).unwrap();
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let namespaces: Api<Namespace> = Api::all(kube::Client::try_from(config).unwrap());
    assert!(namespaces.get_opt("default").await.unwrap().is_some());
}
