//! A real cluster is given, shared and usable through kube.

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, ObjectMeta, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use lifeboat_testbed::real;

#[tokio::test]
async fn objects_are_written_and_watched() {
    let Some(cluster) = real::shared("testbed::objects_are_written_and_watched") else { return };
    let client = cluster.client().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let wanted = watcher::Config::default().labels("test=watched");
    let mut events = watcher(maps.clone(), wanted).applied_objects().boxed();
    let labels = [("test".to_owned(), "watched".to_owned())].into();
    let metadata = ObjectMeta { name: Some("watched".into()), labels: Some(labels), ..ObjectMeta::default() };
    maps.create(&PostParams::default(), &ConfigMap { metadata, ..ConfigMap::default() }).await.unwrap();
    let seen = events.next().await.unwrap().unwrap();
    assert_eq!(seen.metadata.name.as_deref(), Some("watched"));
}

#[tokio::test]
async fn a_namespace_can_be_deleted() {
    let Some(cluster) = real::shared("testbed::a_namespace_can_be_deleted") else { return };
    let namespaces: Api<Namespace> = Api::all(cluster.client().await.unwrap());
    let metadata = ObjectMeta { name: Some("short-lived".into()), ..ObjectMeta::default() };
    namespaces.create(&PostParams::default(), &Namespace { metadata, ..Namespace::default() }).await.unwrap();
    namespaces.delete("short-lived", &DeleteParams::default()).await.unwrap();
    kube::runtime::wait::await_condition(namespaces, "short-lived", |object: Option<&Namespace>| {
        object.is_none()
    })
    .await
    .unwrap();
}
