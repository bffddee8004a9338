//! The example survives a death at every write, and the harness notices what does not.

use crate::greeting::effects::{Cards, Post, text_of};
use crate::greeting::{FINALIZER, Greeting, GreetingSpec, engine, status};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{CustomResourceExt, ResourceExt};
use lifeboat_engine::{Selection, Settings};
use lifeboat_testbed::{Cluster, CrashStory, Kind, NotYet, Process, Scene};
use serde_json::json;

fn greet(name: &str, whom: &str, after: Option<&str>) -> Greeting {
    let after = after.map(str::to_owned);
    Greeting::new(name, GreetingSpec { whom: whom.into(), after, card: true })
}

async fn run(process: Process<Cards>) {
    let post = Post { cards: process.world, points: process.points };
    engine(process.client, process.clock, Selection::all(), post, Settings::default())
        .run(std::future::pending())
        .await;
}

/// Two greetings, the second after the first; the first is changed, a third comes and goes.
async fn story(cluster: Cluster, _: Cards) {
    let greetings: Api<Greeting> = Api::namespaced(cluster.client(), "default");
    let create = PostParams::default();
    greetings.create(&create, &greet("second", "Bob", Some("first"))).await.unwrap();
    greetings.create(&create, &greet("third", "Eve", None)).await.unwrap();
    greetings.create(&create, &greet("first", "Ada", None)).await.unwrap();
    cluster
        .eventually("the second greeting", || async {
            let second = greetings.get("second").await?;
            status::is_ready(&second).then_some(()).ok_or(NotYet("not ready".into()))
        })
        .await;
    let change = Patch::Merge(json!({"spec": {"whom": "Grace"}}));
    greetings.patch("first", &PatchParams::default(), &change).await.unwrap();
    greetings.delete("third", &DeleteParams::default()).await.unwrap();
}

fn ended(scene: &Scene<'_, Cards>) -> Result<(), String> {
    let greetings: Vec<Greeting> = scene.list();
    let names: Vec<String> = greetings.iter().map(ResourceExt::name_any).collect();
    if names != ["first", "second"] {
        return Err(format!("greetings {names:?}"));
    }
    if let Some(unready) = greetings.iter().find(|greeting| !status::is_ready(greeting)) {
        return Err(format!("{unready:?} is not ready"));
    }
    let texts: Vec<ConfigMap> = scene.list();
    let texts: Vec<&str> = texts.iter().map(text_of).filter(|text| !text.is_empty()).collect();
    if texts != ["Hello, Grace!", "Hello, Bob!"] {
        return Err(format!("texts {texts:?}"));
    }
    Ok(())
}

/// A text without a guarded greeting would be forgotten when the greeting goes.
fn texts_are_guarded(scene: &Scene<'_, Cards>) -> Result<(), String> {
    for text in scene.list::<ConfigMap>() {
        let Some(owner) = text.owner_references().first() else { continue };
        let greeting: Option<Greeting> = scene.get("default", &owner.name);
        if !greeting.is_some_and(|greeting| greeting.finalizers().iter().any(|name| name == FINALIZER)) {
            return Err(format!("the text {} has no guarded greeting", text.name_any()));
        }
    }
    Ok(())
}

fn crash_story() -> CrashStory<Cards> {
    CrashStory::with("greetings", Cards::default)
        .install(vec![Greeting::crd()])
        .controller(run)
        .story(story)
        .expects(Kind::Api)
        .invariant("a text belongs to a guarded greeting", texts_are_guarded)
        .converges(ended)
}

#[test]
fn greetings_survive_a_death_at_every_write() {
    let points = crash_story().expects(Kind::ObjectStore).run();
    let api = points.iter().filter(|point| point.kind == Kind::Api).count();
    let cards = points.iter().filter(|point| point.kind == Kind::ObjectStore).count();
    assert!(api >= 12 && cards == 3, "{points:#?}");
}

fn failure_of<W: Clone + Send + Sync + 'static>(story: CrashStory<W>) -> String {
    let failed = std::thread::spawn(|| story.run()).join().expect_err("the story must fail");
    let message = failed.downcast_ref::<String>().cloned();
    message.or_else(|| failed.downcast_ref::<&str>().map(ToString::to_string)).unwrap()
}

#[test]
fn a_kind_that_does_not_occur_is_a_failure() {
    let why = failure_of(crash_story().expects(Kind::Lvm));
    assert!(why.contains("lvm") && why.contains("shows none"), "{why}");
}

#[test]
fn a_broken_invariant_is_a_failure_that_names_the_write() {
    let broken = |scene: &Scene<'_, Cards>| match scene.get::<ConfigMap>("default", "second") {
        Some(_) => Err("it is here".to_owned()),
        None => Ok(()),
    };
    let why = failure_of(crash_story().invariant("no second text", broken));
    assert!(why.contains("no second text") && why.contains("configmaps default/second"), "{why}");
}

#[test]
fn an_end_that_does_not_come_is_a_failure() {
    let why = failure_of(crash_story().converges(|_| Err("never".into())));
    assert!(why.contains("did not end") && why.contains("never"), "{why}");
}

/// A controller with a memory: it writes one map, then another only if it remembers the first.
async fn forgetful(process: Process<()>) {
    let maps: Api<ConfigMap> = Api::namespaced(process.client, "default");
    let map = |name: &str| {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(name.to_owned());
        map
    };
    if maps.create(&PostParams::default(), &map("one")).await.is_ok() {
        let _ = maps.create(&PostParams::default(), &map("two")).await;
    }
    std::future::pending::<()>().await;
}

#[test]
fn a_controller_that_needs_its_memory_is_found_out() {
    let story = CrashStory::new("forgetful")
        .controller(forgetful)
        .story(|_, ()| async {})
        .expects(Kind::Api)
        .converges(|scene| {
            let two: Option<ConfigMap> = scene.get("default", "two");
            two.map(drop).ok_or_else(|| "no second map".to_owned())
        });
    let why = failure_of(story);
    assert!(why.contains("dying after effect 0") && why.contains("no second map"), "{why}");
}

#[test]
fn a_controller_that_keeps_writing_is_found_out() {
    let restless = |process: Process<()>| async move {
        let maps: Api<ConfigMap> = Api::namespaced(process.client, "default");
        for count in 0.. {
            let patch = Patch::Merge(json!({"data": {"count": count.to_string()}}));
            let _ = maps.patch("kube-root-ca.crt", &PatchParams::default(), &patch).await;
            process.clock.sleep_until(process.clock.now() + jiff::SignedDuration::from_secs(60)).await;
        }
    };
    let story =
        CrashStory::new("restless").controller(restless).story(|_, ()| async {}).converges(|_| Ok(()));
    let why = failure_of(story);
    assert!(why.contains("and yet did"), "{why}");
}
