//! Events arrive, add up, and harm nobody when they do not.

use crate::Cluster;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use lifeboat_apiserver::fault::{Asked, Faults, RequestFault};
use lifeboat_engine::{Engine, Level, Settings};
use std::sync::Arc;
use std::time::Duration;

fn subject(name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".into()),
        kind: Some("ConfigMap".into()),
        namespace: Some("default".into()),
        name: Some(name.into()),
        uid: Some(format!("uid-of-{name}")),
        ..ObjectReference::default()
    }
}

pub async fn events(cluster: &Cluster) -> Vec<(String, String, Option<i32>)> {
    let api: Api<Event> = Api::namespaced(cluster.client(), "default");
    let events = api.list(&ListParams::default()).await.unwrap().items;
    let mut told: Vec<_> = events
        .into_iter()
        .map(|event| {
            let name = event.regarding.and_then(|subject| subject.name).unwrap_or_default();
            (name, event.reason.unwrap_or_default(), event.series.map(|series| series.count))
        })
        .collect();
    told.sort();
    told
}

#[tokio::test(start_paused = true)]
async fn repetitions_are_counted_on_one_event() {
    let cluster = Cluster::new();
    let engine = Engine::new("test", cluster.client(), cluster.clock.clone(), Settings::default());
    let recorder = engine.recorder();
    let _engine = tokio::spawn(engine.run(std::future::pending()));
    for _ in 0..3 {
        recorder.record(subject("a"), Level::Warning, "NoVolume", "there is no volume");
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
    recorder.record(subject("b"), Level::Normal, "Bound", "it is bound");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let expected = [("a".into(), "NoVolume".into(), Some(3)), ("b".into(), "Bound".into(), None)];
    assert_eq!(events(&cluster).await, expected);
}

struct Refuses;

impl Faults for Refuses {
    fn on_request(&self, _: Asked<'_>) -> RequestFault {
        RequestFault::DropRequest
    }
}

#[tokio::test(start_paused = true)]
async fn events_that_cannot_be_written_are_dropped() {
    let cluster = Cluster::new();
    let client = cluster.client_with(Arc::new(Refuses));
    let engine = Engine::new("test", client, cluster.clock.clone(), Settings::default());
    let recorder = engine.recorder();
    for n in 0..5000 {
        recorder.record(subject(&n.to_string()), Level::Normal, "Bound", "it is bound");
    }
    let _engine = tokio::spawn(engine.run(std::future::pending()));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(events(&cluster).await, []);
}
