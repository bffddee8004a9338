//! Caches follow the server through everything that happens to a watch.

use crate::Cluster;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Resource, ResourceExt};
use lifeboat_apiserver::User;
use lifeboat_apiserver::error::ApiError;
use lifeboat_apiserver::fault::{Asked, EventFault, Faults, RequestFault};
use lifeboat_apiserver::path::{ResourcePath, Verb};
use lifeboat_apiserver::store::Event;
use lifeboat_engine::{Class, Clock, Engine, FeedSettings, ObjectKey, Objects, Selection, Settings, expose};
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tower::Service as _;

/// Faults in the order they are to happen; then none. Requests that are not of the named verb pass.
#[derive(Default)]
struct Scripted {
    requests: Mutex<VecDeque<(Verb, RequestFault)>>,
    events: Mutex<VecDeque<EventFault>>,
    asked: Mutex<Vec<Verb>>,
}

impl Faults for Scripted {
    fn on_request(&self, asked: Asked<'_>) -> RequestFault {
        self.asked.lock().push(asked.verb);
        let mut requests = self.requests.lock();
        match requests.front() {
            Some((verb, _)) if *verb == asked.verb => requests.pop_front().unwrap().1,
            _ => RequestFault::None,
        }
    }

    fn on_event(&self, _: &ResourcePath, event: &Event) -> EventFault {
        if !event.entry.key.name.starts_with("map-") {
            return EventFault::None;
        }
        self.events.lock().pop_front().unwrap_or(EventFault::None)
    }
}

struct Run {
    cluster: Cluster,
    faults: Arc<Scripted>,
    maps: Objects<ConfigMap>,
    registry: Registry,
    _task: tokio::task::JoinHandle<()>,
}

const EVERY: Duration = Duration::from_secs(1000);

async fn run(faults: Scripted, count: usize) -> Run {
    let (cluster, faults) = (Cluster::new(), Arc::new(faults));
    for n in 0..count {
        create(&cluster, &format!("map-{n}")).await;
    }
    let feed = FeedSettings { picture_every: EVERY, page: 2, ..FeedSettings::default() };
    let settings = Settings { feed, ..Settings::default() };
    let mut engine =
        Engine::new("test", cluster.client_with(faults.clone()), cluster.clock.clone(), settings);
    let maps = engine.objects::<ConfigMap>(Selection::namespace("default").labels("test=feed"));
    let mut registry = Registry::default();
    engine.metrics().register(&mut registry);
    let task = tokio::spawn(async move { engine.run(std::future::pending()).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    Run { cluster, faults, maps, registry, _task: task }
}

fn map(name: &str) -> ConfigMap {
    let labels = [("test".to_owned(), "feed".to_owned())].into();
    let metadata = ObjectMeta { name: Some(name.into()), labels: Some(labels), ..ObjectMeta::default() };
    ConfigMap { metadata, ..ConfigMap::default() }
}

async fn create(cluster: &Cluster, name: &str) {
    api(cluster).create(&PostParams::default(), &map(name)).await.unwrap();
}

fn api(cluster: &Cluster) -> Api<ConfigMap> {
    Api::namespaced(cluster.client(), "default")
}

impl Run {
    fn names(&self) -> Vec<String> {
        self.maps.all().iter().map(|map| map.name_any()).collect()
    }

    fn pictures(&self) -> u64 {
        let text = expose(&self.registry);
        let line =
            text.lines().find(|line| line.starts_with("lifeboat_watch_pictures_total{kind=\"ConfigMap\"}"));
        line.and_then(|line| line.split(' ').nth(1)).map_or(0, |count| count.parse().unwrap())
    }

    async fn change(&self) {
        create(&self.cluster, "map-new").await;
        api(&self.cluster).delete("map-0", &DeleteParams::default()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_and_then_its_watch() {
    let run = run(Scripted::default(), 5).await;
    assert!(run.maps.is_synced());
    assert_eq!(run.names().len(), 5);
    run.change().await;
    assert_eq!(run.names(), ["map-1", "map-2", "map-3", "map-4", "map-new"]);
    assert_eq!((run.pictures(), &run.faults.asked.lock()[..]), (1, &[Verb::Watch] as &[Verb]));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_stream_is_listed_page_by_page() {
    let refused = RequestFault::Refuse(Box::new(ApiError::bad_request("sendInitialEvents is forbidden")));
    let faults = Scripted { requests: Mutex::new([(Verb::Watch, refused)].into()), ..Scripted::default() };
    let run = run(faults, 5).await;
    assert_eq!(run.names().len(), 5);
    run.change().await;
    assert_eq!(run.names(), ["map-1", "map-2", "map-3", "map-4", "map-new"]);
    let asked = run.faults.asked.lock().clone();
    assert_eq!(asked, [Verb::Watch, Verb::List, Verb::List, Verb::List, Verb::Watch]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_where_it_ended() {
    let run = run(Scripted::default(), 3).await;
    for fault in [EventFault::Close, EventFault::Repeat, EventFault::Delay(Duration::from_secs(1))] {
        *run.faults.events.lock() = [fault].into();
        create(&run.cluster, &format!("map-{fault:?}").to_lowercase().replace(['(', ')'], "")).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    assert_eq!(run.names().len(), 6, "{:?}", run.names());
    assert_eq!(run.pictures(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_past_takes_a_new_picture() {
    let run = run(Scripted::default(), 3).await;
    *run.faults.events.lock() = [EventFault::Expire].into();
    run.change().await;
    assert_eq!(run.names(), ["map-1", "map-2", "map-new"]);
    assert_eq!(run.pictures(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_lost_event_is_found_by_the_next_picture() {
    let run = run(Scripted::default(), 3).await;
    *run.faults.events.lock() = [EventFault::Lose, EventFault::Lose].into();
    run.change().await;
    assert_eq!(run.names(), ["map-0", "map-1", "map-2"]);
    tokio::time::sleep(EVERY).await;
    assert_eq!(run.names(), ["map-1", "map-2", "map-new"]);
}

#[tokio::test(start_paused = true)]
async fn an_old_picture_is_refused() {
    let refused = RequestFault::Refuse(Box::new(ApiError::bad_request("no")));
    let requests = [(Verb::Watch, refused)].into();
    let run = run(Scripted { requests: Mutex::new(requests), ..Scripted::default() }, 3).await;
    api(&run.cluster).delete("map-0", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(run.names(), ["map-1", "map-2"]);
    // A server that lags behind shows the deleted map again; nobody is told that it is back.
    let told = Arc::new(Mutex::new(0));
    let counter = told.clone();
    run.maps.listen(move |_| *counter.lock() += 1);
    *run.faults.requests.lock() =
        [(Verb::List, RequestFault::Stale(1)), (Verb::List, RequestFault::Stale(1))].into();
    tokio::time::sleep(EVERY).await;
    assert_eq!((run.names(), *told.lock()), (vec!["map-1".to_owned(), "map-2".to_owned()], 0));
    assert!(run.faults.requests.lock().is_empty(), "the lagging server was asked");
}

/// Two servers behind one address, of which the second comes in the place of the first, after an outage if one is wanted.
async fn rebuilt(before: &Cluster, after: &Cluster, outage: bool) -> Objects<ConfigMap> {
    let answers = Arc::new(AtomicUsize::new(0));
    let (chosen, servers) =
        (answers.clone(), [before, after].map(|one| one.server.service_as(User::admin())));
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let server = servers.get(chosen.load(Ordering::Relaxed)).cloned();
        async move {
            match server {
                Some(mut server) => server.call(request).await.map_err(std::io::Error::other),
                None => Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused)),
            }
        }
    });
    let client = kube::Client::new(service, "default");
    let mut engine = Engine::new("test", client, before.clock.clone(), Settings::default());
    let maps = engine.objects::<ConfigMap>(Selection::namespace("default").labels("test=feed"));
    tokio::spawn(async move { engine.run(std::future::pending()).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(maps.all().len(), 3);
    if outage {
        answers.store(2, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(400)).await;
    }
    answers.store(1, Ordering::Relaxed);
    // The watch ends in time; that it cannot be resumed is no reason to wait for the next picture that is due.
    tokio::time::sleep(Duration::from_secs(400)).await;
    maps
}

async fn fill(cluster: &Cluster, labelled: &[&str], others: usize) {
    for name in labelled {
        create(cluster, name).await;
    }
    for n in 0..others {
        let mut other = map(&format!("other-{n}"));
        other.metadata.labels = None;
        api(cluster).create(&PostParams::default(), &other).await.unwrap();
    }
}

/// How many objects that nobody looks at the servers have beside the others says which has come further.
async fn sees_the_new_one(others: [usize; 2], outage: bool) {
    let (before, after) = (Cluster::new(), Cluster::new());
    fill(&before, &["map-0", "map-1", "map-2"], others[0]).await;
    let later = Patch::Merge(json!({"data": {"a": "1"}}));
    api(&before).patch("map-1", &PatchParams::default(), &later).await.unwrap();
    fill(&after, &["map-1", "map-other"], others[1]).await;
    let old = api(&before).get("map-1").await.unwrap().metadata.uid;
    let maps = rebuilt(&before, &after, outage).await;
    let names: Vec<String> = maps.all().iter().map(|map| map.name_any()).collect();
    assert_eq!(names, ["map-1", "map-other"], "what the server does not have is not there");
    let new = maps.get(&ObjectKey::new("default", "map-1")).unwrap();
    assert_ne!(new.metadata.uid, old, "under the same name it is another one");
    create(&after, "map-later").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(maps.get(&ObjectKey::new("default", "map-later")).is_some(), "and it is followed");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_gone_back_is_seen_as_it_is_now() {
    sees_the_new_one([9, 0], false).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_rebuilt_is_not_taken_for_the_former_one_gone_on() {
    sees_the_new_one([0, 20], true).await;
}

#[tokio::test(start_paused = true)]
async fn our_own_writes_are_known_at_once_and_their_events_are_no_news() {
    let run = run(Scripted::default(), 1).await;
    let told = Arc::new(Mutex::new(0));
    let counter = told.clone();
    run.maps.listen(move |_| *counter.lock() += 1);
    let mut changed = (*run.maps.get(&ObjectKey::new("default", "map-0")).unwrap()).clone();
    changed.data = Some([("a".to_owned(), "1".to_owned())].into());
    run.maps.replace(&changed).await.unwrap();
    let mut made = map("map-made");
    made.metadata.namespace = Some("default".into());
    run.maps.create(&made).await.unwrap();
    assert_eq!((run.names().len(), *told.lock()), (2, 2), "before any event");
    let known = run.maps.get(&ObjectKey::new("default", "map-made")).unwrap();
    run.maps.delete(&known).await.unwrap();
    assert_eq!((run.names().len(), *told.lock()), (1, 3));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((run.names().len(), *told.lock()), (1, 3), "the events add nothing");
    // A write on an old version is refused, and the new version is known when the refusal is.
    let patch = Patch::Merge(json!({"data": {"a": "2"}}));
    api(&run.cluster).patch("map-0", &PatchParams::default(), &patch).await.unwrap();
    let refused = run.maps.replace(&changed).await.unwrap_err();
    assert_eq!(refused.class, Class::Stale);
    let data = run.maps.get(&ObjectKey::new("default", "map-0")).unwrap().data.clone().unwrap();
    assert_eq!(data["a"], "2");
}

/// ConfigMaps as somebody might read them who is strict about one field.
#[derive(Resource, Debug, Clone, Serialize, Deserialize)]
#[resource(inherit = ConfigMap)]
struct Strict {
    metadata: ObjectMeta,
    data: Must,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Must {
    must: String,
}

#[tokio::test(start_paused = true)]
async fn one_object_that_cannot_be_read_hides_no_other() {
    let cluster = Cluster::new();
    let put = async |name: &str, data: serde_json::Value| {
        let patch = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"labels": {"test": "feed"}}, "data": data});
        api(&cluster).patch(name, &PatchParams::apply("test"), &Patch::Apply(patch)).await.unwrap();
    };
    put("good", json!({"must": "yes"})).await;
    put("bad", json!({"other": "yes"})).await;
    let mut engine = Engine::new("test", cluster.client(), Clock::system(), Settings::default());
    let strict = engine.objects::<Strict>(Selection::namespace("default").labels("test=feed"));
    let _task = tokio::spawn(async move { engine.run(std::future::pending()).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(strict.len(), 1);
    let bad = ObjectKey::new("default", "bad");
    assert!(strict.unreadable(&bad).unwrap().contains("must"));
    put("bad", json!({"must": "now"})).await;
    put("good", json!({"other": "now"})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((strict.len(), strict.unreadable(&bad)), (2, None));
    assert!(strict.unreadable(&ObjectKey::new("default", "good")).is_some());
}
