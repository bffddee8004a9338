//! Lists and watches, through kube's own client and watcher.

use crate::support::{Embedded, send};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::watcher::{self, Event};
use serde_json::json;

fn map(name: &str, label: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"k": label}}})).expect("a config map")
}

#[tokio::test(start_paused = true)]
async fn a_watcher_sees_the_state_and_then_every_change() {
    for streaming in [false, true] {
        let cluster = Embedded::start();
        let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), "kube-public");
        maps.create(&PostParams::default(), &map("a", "1")).await.expect("created");
        let mut config = watcher::Config::default().labels("k");
        if streaming {
            config = config.streaming_lists();
        }
        let mut events = watcher::watcher(maps.clone(), config).boxed();
        let mut next = async || events.try_next().await.expect("no error").expect("an event");
        assert!(matches!(next().await, Event::Init));
        assert!(
            matches!(next().await, Event::InitApply(object) if object.metadata.name.as_deref() == Some("a"))
        );
        assert!(matches!(next().await, Event::InitDone));
        maps.create(&PostParams::default(), &map("b", "1")).await.expect("created");
        maps.delete("a", &DeleteParams::default()).await.expect("deleted");
        assert!(matches!(next().await, Event::Apply(object) if object.metadata.name.as_deref() == Some("b")));
        assert!(
            matches!(next().await, Event::Delete(object) if object.metadata.name.as_deref() == Some("a"))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn leaving_a_selection_is_a_deletion_and_entering_it_an_addition() {
    let cluster = Embedded::start();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), "kube-public");
    let params = WatchParams::default().labels("k=1").timeout(60);
    let mut events = maps.watch(&params, "0").await.expect("a watch").boxed();
    maps.create(&PostParams::default(), &map("a", "1")).await.expect("created");
    for label in ["2", "3", "1"] {
        let patch = json!({"metadata": {"labels": {"k": label}}});
        maps.patch("a", &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched");
    }
    let mut seen = Vec::new();
    while seen.len() < 3 {
        match events.try_next().await.expect("no error").expect("an event") {
            WatchEvent::Added(object) => {
                seen.push(("added", object.metadata.labels.unwrap_or_default()["k"].clone()));
            }
            WatchEvent::Modified(object) => {
                seen.push(("modified", object.metadata.labels.unwrap_or_default()["k"].clone()));
            }
            WatchEvent::Deleted(object) => {
                seen.push(("deleted", object.metadata.labels.unwrap_or_default()["k"].clone()));
            }
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {}
        }
    }
    assert_eq!(seen, [("added", "1".into()), ("deleted", "1".into()), ("added", "1".into())]);
}

#[tokio::test(start_paused = true)]
async fn an_idle_watch_gets_bookmarks_and_ends_in_time() {
    let cluster = Embedded::start();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), "kube-public");
    let began = tokio::time::Instant::now();
    let params = WatchParams::default().timeout(150);
    let events: Vec<_> = maps.watch(&params, "1").await.expect("a watch").collect().await;
    let bookmarks = events.iter().filter(|event| matches!(event, Ok(WatchEvent::Bookmark(_)))).count();
    assert_eq!(bookmarks, 3, "one a minute and one at the end");
    assert_eq!(began.elapsed().as_secs(), 150);
}

#[tokio::test(start_paused = true)]
async fn pages_show_one_version_and_an_old_token_says_how_to_go_on() {
    let cluster = Embedded::start();
    let client = cluster.client();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-public");
    for name in ["a", "b", "c", "d", "e"] {
        maps.create(&PostParams::default(), &map(name, "1")).await.expect("created");
    }
    let first = maps.list(&ListParams::default().labels("k").limit(2)).await.expect("a page");
    maps.delete("c", &DeleteParams::default()).await.expect("deleted");
    maps.create(&PostParams::default(), &map("cc", "1")).await.expect("created");
    let token = first.metadata.continue_.expect("there is more");
    let rest = maps.list(&ListParams::default().labels("k").continue_token(&token)).await.expect("the rest");
    let names: Vec<_> = rest.items.iter().filter_map(|item| item.metadata.name.clone()).collect();
    assert_eq!(names, ["c", "d", "e"], "as it was when the list began");
    assert_eq!(rest.metadata.resource_version, first.metadata.resource_version);

    tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
    // The clock of objects is the machine's here; the token carries its own time.
    let stale = "eyJydiI6MSwibmFtZXNwYWNlIjoia3ViZS1wdWJsaWMiLCJuYW1lIjoiYiIsImF0IjowfQ";
    let path = format!("/api/v1/namespaces/kube-public/configmaps?labelSelector=k&continue={stale}");
    let answer = send(&client, "GET", &path, &[], Vec::new()).await;
    assert_eq!((answer.code, answer.body["reason"].as_str()), (410, Some("Expired")));
    let resume = answer.body["metadata"]["continue"].as_str().expect("a token to go on with");
    let path = format!("/api/v1/namespaces/kube-public/configmaps?labelSelector=k&continue={resume}");
    let answer = send(&client, "GET", &path, &[], Vec::new()).await;
    let names: Vec<_> = answer.body["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| item["metadata"]["name"].clone())
        .collect();
    assert_eq!(names, ["cc", "d", "e"], "as it is now");
}

#[tokio::test(start_paused = true)]
async fn a_version_of_the_future_is_refused() {
    let cluster = Embedded::start();
    let answer =
        send(&cluster.client(), "GET", "/api/v1/configmaps?resourceVersion=99999999", &[], Vec::new()).await;
    assert_eq!((answer.code, answer.body["reason"].as_str()), (504, Some("Timeout")));
}
