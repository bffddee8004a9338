//! The example on both clusters, with many objects, and on a bad network.

use crate::greeting::effects::{Post, text_of};
use crate::greeting::{Greeting, GreetingSpec, engine, status};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{CustomResourceExt, ResourceExt};
use lifeboat_engine::{FeedSettings, Selection, Settings, Waits};
use lifeboat_testbed::faults::{Odds, Seeded};
use lifeboat_testbed::{Cluster, NotYet, Task, on_both};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

fn greet(name: &str, whom: &str, after: Option<&str>) -> Greeting {
    Greeting::new(name, GreetingSpec { whom: whom.into(), after: after.map(str::to_owned), card: false })
}

/// Starts the controller on the cluster of a test.
fn start(cluster: &Cluster, namespace: &str) -> (Task, CancellationToken, Waits) {
    let of = Selection::namespace(namespace);
    let engine = engine(cluster.client(), cluster.clock(), of, Post::new(), Settings::default());
    let (stop, waits) = (CancellationToken::new(), engine.waits());
    let stopped = stop.clone();
    let task = Task::spawn(async move { engine.run(stopped.cancelled_owned()).await });
    (task, stop, waits)
}

async fn ready(cluster: &Cluster, api: &Api<Greeting>, name: &str) {
    let is_ready = |greeting: Option<&Greeting>| greeting.is_some_and(status::is_ready);
    cluster.until(api, name, is_ready).await;
}

on_both!(
    async fn a_greeting_is_written_changed_and_deleted(cluster: &Cluster) {
        cluster.install(&[Greeting::crd()]).await;
        let namespace = cluster.namespace("greet").await;
        let (task, stop, waits) = start(cluster, &namespace);
        let greetings: Api<Greeting> = Api::namespaced(cluster.client(), &namespace);
        let texts: Api<ConfigMap> = Api::namespaced(cluster.client(), &namespace);
        // The second comes first, waits, and says so: in the list, in its status and as an event.
        greetings.create(&PostParams::default(), &greet("second", "Bob", Some("first"))).await.unwrap();
        let waiting =
            |greeting: Option<&Greeting>| greeting.is_some_and(|greeting| greeting.status.is_some());
        let second = cluster.until(&greetings, "second", waiting).await.unwrap();
        let condition = second.status.unwrap().conditions.remove(0);
        assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("False", "FirstMissing"));
        let listed = cluster
            .eventually("the wait in the list", || async {
                waits.of("greeter", &format!("{namespace}/second")).ok_or(NotYet("not listed".into()))
            })
            .await;
        assert_eq!(listed.sentence, "it comes after first, which does not exist");
        let events: Api<Event> = Api::namespaced(cluster.client(), &namespace);
        cluster
            .eventually("the event", || async {
                let events = events.list(&ListParams::default()).await?.items;
                let told = |event: &&Event| event.reason.as_deref() == Some("FirstMissing");
                events.iter().find(told).map(drop).ok_or(NotYet(format!("{events:?}")))
            })
            .await;
        // Then the first, and both are written.
        greetings.create(&PostParams::default(), &greet("first", "Ada", None)).await.unwrap();
        ready(cluster, &greetings, "first").await;
        ready(cluster, &greetings, "second").await;
        assert_eq!(text_of(&texts.get("second").await.unwrap()), "Hello, Bob!");
        // A change is followed; somebody's meddling is put right.
        let change = Patch::Merge(json!({"spec": {"whom": "Grace"}}));
        greetings.patch("first", &PatchParams::default(), &change).await.unwrap();
        let says = |wanted: &'static str| {
            move |map: Option<&ConfigMap>| map.is_some_and(|map| text_of(map) == wanted)
        };
        cluster.until(&texts, "first", says("Hello, Grace!")).await;
        let meddling = Patch::Merge(json!({"data": {"text": "Boo!"}}));
        texts.patch("first", &PatchParams::default(), &meddling).await.unwrap();
        cluster.until(&texts, "first", says("Hello, Grace!")).await;
        // And it goes without a trace.
        greetings.delete("first", &DeleteParams::default()).await.unwrap();
        cluster.until(&greetings, "first", |greeting| greeting.is_none()).await;
        assert!(texts.get_opt("first").await.unwrap().is_none());
        stop.cancel();
        task.ended().await;
    }
);

on_both!(
    async fn a_taken_name_is_told_and_left_alone(cluster: &Cluster) {
        cluster.install(&[Greeting::crd()]).await;
        let namespace = cluster.namespace("taken").await;
        let texts: Api<ConfigMap> = Api::namespaced(cluster.client(), &namespace);
        let mut taken = ConfigMap::default();
        taken.metadata.name = Some("ada".into());
        taken.labels_mut().insert(crate::greeting::LABEL.into(), "ada".into());
        texts.create(&PostParams::default(), &taken).await.unwrap();
        let (_task, _stop, waits) = start(cluster, &namespace);
        let greetings: Api<Greeting> = Api::namespaced(cluster.client(), &namespace);
        greetings.create(&PostParams::default(), &greet("ada", "Ada", None)).await.unwrap();
        let told = |greeting: Option<&Greeting>| {
            let conditions =
                greeting.and_then(|greeting| greeting.status.as_ref()).map(|status| &status.conditions);
            conditions.is_some_and(|conditions| conditions[0].reason == "NameTaken")
        };
        cluster.until(&greetings, "ada", told).await;
        // The status is written before the pass that wrote it rests.
        let one_wait = || {
            let list = waits.list();
            async move { if list.len() == 1 { Ok(()) } else { Err(NotYet(format!("{list:?}"))) } }
        };
        cluster.eventually("exactly one wait", one_wait).await;
        // The other lets go of the name; a deletion wakes like any change.
        texts.delete("ada", &DeleteParams::default()).await.unwrap();
        ready(cluster, &greetings, "ada").await;
    }
);

#[tokio::test(start_paused = true)]
async fn a_thousand_greetings_settle_and_then_nothing_is_written() {
    let cluster = Cluster::embedded();
    cluster.install(&[Greeting::crd()]).await;
    let greetings: Api<Greeting> = Api::namespaced(cluster.client(), "default");
    for n in 0..1000 {
        let after = (n % 10 != 0).then(|| format!("g{}", n - 1));
        let greeting = greet(&format!("g{n}"), &n.to_string(), after.as_deref());
        greetings.create(&PostParams::default(), &greeting).await.unwrap();
    }
    let (_task, stop, _) = start(&cluster, "default");
    cluster
        .eventually("all greetings", || async {
            let all = greetings.list(&ListParams::default()).await?.items;
            let ready = all.iter().filter(|greeting| status::is_ready(greeting)).count();
            if ready == 1000 { Ok(()) } else { Err(NotYet(format!("{ready} are ready"))) }
        })
        .await;
    // Events about the waiting may still be on their way.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let revision = || cluster.server().cluster().store.revision();
    let before = revision();
    tokio::time::sleep(Duration::from_secs(3 * 3600)).await;
    assert_eq!(revision(), before, "three quiet hours, with new full pictures, write nothing");
    // A second controller that starts on the settled world writes nothing either.
    stop.cancel();
    let (_second, _stop, waits) = start(&cluster, "default");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(revision(), before);
    assert!(waits.list().is_empty());
}

/// Lost, late, repeated and stale: whatever the network did, once it is good again everything comes right.
/// Gives everything that was written, in order.
async fn bad_network(seed: u64) -> Vec<String> {
    let cluster = Cluster::embedded();
    let (_, mut written) = cluster.server().cluster().store.observe();
    cluster.install(&[Greeting::crd()]).await;
    let faults = Arc::new(Seeded::new(seed, Odds::bad()));
    let settings = Settings {
        feed: FeedSettings { picture_every: Duration::from_secs(300), ..FeedSettings::default() },
        ..Settings::default()
    };
    let client = cluster.client_with(faults.clone());
    let engine = engine(client, cluster.clock(), Selection::all(), Post::new(), settings);
    let _task = Task::spawn(async move { engine.run(std::future::pending()).await });
    let greetings: Api<Greeting> = Api::namespaced(cluster.client(), "default");
    for n in 0..20 {
        let after = (n % 5 == 1).then(|| format!("g{}", n + 1));
        let greeting = greet(&format!("g{n}"), &n.to_string(), after.as_deref());
        greetings.create(&PostParams::default(), &greeting).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    for n in (0..20).step_by(5) {
        let change = Patch::Merge(json!({"spec": {"whom": "Grace"}}));
        greetings.patch(&format!("g{n}"), &PatchParams::default(), &change).await.unwrap();
        greetings.delete(&format!("g{}", n + 3), &DeleteParams::default()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    faults.stop();
    // One full picture later at the latest.
    tokio::time::sleep(Duration::from_secs(400)).await;
    let all = greetings.list(&ListParams::default()).await.unwrap().items;
    let left: Vec<String> =
        all.iter().filter(|greeting| !status::is_ready(greeting)).map(ResourceExt::name_any).collect();
    assert_eq!((all.len(), &left), (16, &Vec::new()), "seed {seed}");
    let texts: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
    let texts = texts.list(&ListParams::default().labels(crate::greeting::LABEL)).await.unwrap().items;
    assert_eq!(texts.len(), 16, "seed {seed}");
    let mut log = Vec::new();
    while let Ok(event) = written.try_recv() {
        let key = &event.entry.key;
        log.push(format!("{} {:?} {} {}/{}", event.at, event.kind, key.collection, key.namespace, key.name));
    }
    log
}

#[tokio::test(start_paused = true)]
async fn a_bad_network_delays_and_harms_nothing() {
    for seed in 0..20 {
        bad_network(seed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_run() {
    let once = bad_network(3).await;
    assert!(once.len() > 80, "{once:#?}");
    assert_eq!(once, bad_network(3).await);
}
