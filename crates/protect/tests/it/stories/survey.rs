//! What a cluster tells of itself, and what a store tells of groups. On embedded clusters: these objects belong to a whole cluster, which tests
//! on a real one share.

use crate::ledger::Shelves;
use crate::scene::{Scene, furnish};
use kube::api::{Api, PostParams};
use lifeboat_api::ramen::{DRClusterConfig, ProtectedVolumeReplicationGroupList};
use lifeboat_engine::Settings;
use lifeboat_protect::ledger::Record;
use lifeboat_protect::run::{kinds, protector};
use lifeboat_protect::view::Setup;
use lifeboat_testbed::{Cluster, Task};
use serde_json::json;
use std::sync::Arc;

async fn whole(cluster: &Cluster, stores: &Shelves) -> (Scene, Task) {
    cluster.install(&lifeboat_api::crds()).await;
    let mark = cluster.namespace("survey").await;
    furnish(cluster, &mark).await;
    let scene = Scene::over(cluster, &mark, stores.clone());
    let client = cluster.client();
    let setup = Setup { namespace: mark, cluster: "c".into(), only: None };
    let known = kinds(&client).await.unwrap();
    let made =
        protector(client, cluster.clock(), Settings::default(), known, Arc::new(stores.clone()), setup);
    (scene, Task::spawn(made.run(std::future::pending())))
}

#[tokio::test(start_paused = true)]
async fn d35_a_survey_is_in_order_and_written_once() {
    let cluster = Cluster::embedded();
    let (scene, _task) = whole(&cluster, &Shelves::default()).await;
    let configs: Api<DRClusterConfig> = Api::all(cluster.client());
    let config = |name: &str| -> DRClusterConfig {
        serde_json::from_value(json!({
            "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "DRClusterConfig", "metadata": { "name": name },
            "spec": { "clusterID": "c" },
        }))
        .unwrap()
    };
    configs.create(&PostParams::default(), &config("local")).await.unwrap();
    let processed = |config: Option<&DRClusterConfig>| {
        config.and_then(|config| config.status.as_ref()).is_some_and(|status| {
            status.conditions.iter().any(|one| one.type_ == "Processed" && one.status == "True")
        })
    };
    let told = cluster.until(&configs, "local", processed).await.unwrap();
    let status = told.status.clone().unwrap();
    assert_eq!(status.storage_classes, [scene.mark.as_str()]);
    assert_eq!(status.volume_replication_classes, [scene.mark.as_str()]);
    // Nothing has changed an hour later.
    tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
    let later = configs.get("local").await.unwrap();
    assert_eq!(later.metadata.resource_version, told.metadata.resource_version);
    // A second one is one too many.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    configs.create(&PostParams::default(), &config("another")).await.unwrap();
    let refused = |config: Option<&DRClusterConfig>| {
        config.and_then(|config| config.status.as_ref()).is_some_and(|status| {
            status.conditions.iter().any(|one| one.reason == "Failed" && one.message.contains("local"))
        })
    };
    cluster.until(&configs, "another", refused).await;
    scene.delete(&configs, "local").await;
    scene.gone(&configs, "local").await;
    cluster.until(&configs, "another", processed).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_tells_which_groups_it_has() {
    let cluster = Cluster::embedded();
    let stores = Shelves::default();
    let (scene, _task) = whole(&cluster, &stores).await;
    let group = serde_json::from_value(scene.group_json("web", "primary")).unwrap();
    stores.put("east", &scene.mark, "web", Record { epoch: 1, group, ..Record::default() });
    let lists: Api<ProtectedVolumeReplicationGroupList> = Api::all(cluster.client());
    let list: ProtectedVolumeReplicationGroupList = serde_json::from_value(json!({
        "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "ProtectedVolumeReplicationGroupList",
        "metadata": { "name": "l" }, "spec": { "s3ProfileName": "east" },
    }))
    .unwrap();
    lists.create(&PostParams::default(), &list).await.unwrap();
    let answered =
        |list: Option<&ProtectedVolumeReplicationGroupList>| list.is_some_and(|list| list.status.is_some());
    let status = cluster.until(&lists, "l", answered).await.unwrap().status.unwrap();
    assert_eq!(status.items.len(), 1);
    assert_eq!(status.items[0].metadata.name.as_deref(), Some("web"));
}

fn reachable(config: Option<&DRClusterConfig>) -> Option<(String, String)> {
    let conditions = &config?.status.as_ref()?.conditions;
    let found = conditions.iter().find(|one| one.type_ == "Reachable")?;
    Some((found.status.clone(), found.message.clone()))
}

/// A store that this cluster cannot use is named, with the reason, and tried again by itself; nothing is written while nothing changes.
#[tokio::test(start_paused = true)]
async fn stores_are_tried_from_the_cluster() {
    let cluster = Cluster::embedded();
    let stores = Shelves::default();
    stores.down("west", true);
    let (_scene, _task) = whole(&cluster, &stores).await;
    let configs: Api<DRClusterConfig> = Api::all(cluster.client());
    let config: DRClusterConfig = serde_json::from_value(json!({
        "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "DRClusterConfig", "metadata": { "name": "local" },
        "spec": { "clusterID": "c" },
    }))
    .unwrap();
    configs.create(&PostParams::default(), &config).await.unwrap();
    let says = |status: &'static str| {
        move |config: Option<&DRClusterConfig>| reachable(config).is_some_and(|said| said.0 == status)
    };
    let told = cluster.until(&configs, "local", says("False")).await.unwrap();
    let status = told.status.clone().unwrap();
    assert_eq!(status.store_failures.keys().collect::<Vec<_>>(), ["west"]);
    assert!(reachable(Some(&told)).unwrap().1.contains("the store west:"), "{status:?}");
    tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
    let later = configs.get("local").await.unwrap();
    assert_eq!(later.metadata.resource_version, told.metadata.resource_version);
    stores.down("west", false);
    let well = |config: Option<&DRClusterConfig>| {
        says("True")(config)
            && config.is_some_and(|one| one.status.clone().unwrap().store_failures.is_empty())
    };
    // The longest pause between two tries is longer than a test waits by itself.
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    cluster.until(&configs, "local", well).await;
    stores.down("east", true);
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    cluster.until(&configs, "local", says("False")).await;
}

fn at(seconds: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(1_900_000_000 + seconds).unwrap()
}

#[test]
fn what_came_of_trying_stores_is_said() {
    use lifeboat_protect::survey::{Effect, Told, Tried, World, decide};
    let config: DRClusterConfig = serde_json::from_value(json!({
        "metadata": { "name": "local", "finalizers": ["drclusterconfigs.ramendr.openshift.io/finalizer"] },
        "spec": { "clusterID": "c" },
    }))
    .unwrap();
    let told = |outcome: Result<(), &str>, again: i64| {
        let outcome = outcome.map_err(str::to_owned);
        Told::Tried(Tried { outcome, again: at(again), failures: 1 })
    };
    let check = |stores: &[(&str, Told)], untold: Option<&str>, next: &str, says: (&str, &str)| {
        let world = World {
            config: Arc::new(config.clone()),
            earlier: None,
            found: Default::default(),
            stores: stores.iter().map(|(name, told)| ((*name).to_owned(), told.clone())).collect(),
            untold: untold.map(str::to_owned),
        };
        let decision = decide(&world, at(0));
        let done = match &decision.next {
            lifeboat_engine::Next::Do(effects) => match &effects[..] {
                [Effect::Try(names)] => format!("try {}", names.join(" ")),
                other => format!("{other:?}"),
            },
            lifeboat_engine::Next::Wait { until, .. } => {
                format!(
                    "wait {}",
                    until.map_or("".into(), |until| until.duration_since(at(0)).as_secs().to_string())
                )
            }
            lifeboat_engine::Next::Settled => "settled".to_owned(),
        };
        assert_eq!(done, next);
        let status = decision.status.unwrap();
        let found = status.conditions.iter().find(|one| one.type_ == "Reachable").unwrap();
        assert!(found.status == says.0 && found.message.contains(says.1), "{found:?}");
    };
    check(&[], Some("no ConfigMap"), "settled", ("Unknown", "no ConfigMap"));
    check(&[], None, "settled", ("Unknown", "told of no store"));
    check(&[("east", Told::Untried)], None, "try east", ("Unknown", "being tried"));
    check(&[("east", told(Ok(()), 300))], None, "wait 300", ("True", "all stores"));
    check(&[("east", told(Ok(()), 0))], None, "try east", ("True", "all stores"));
    let failing = ("west", told(Err("timed out"), 5));
    check(
        &[("east", told(Ok(()), 300)), failing.clone()],
        None,
        "wait 5",
        ("False", "the store west: timed out"),
    );
    check(&[("east", Told::Untried), failing], None, "try east", ("False", "the store west"));
    check(&[("bad", Told::Bad("it names no bucket".into()))], None, "wait ", ("False", "the store bad"));
}

#[test]
fn a_store_that_fails_is_tried_soon_and_then_less_often() {
    use lifeboat_protect::survey::Tried;
    let first = Tried::after(None, Err("refused".into()), at(0));
    let second = Tried::after(Some(&first), Err("refused again".into()), first.again);
    let later =
        (0..20).fold(second.clone(), |before, _| Tried::after(Some(&before), Err("no".into()), at(0)));
    let pause = |tried: &Tried, since: jiff::Timestamp| tried.again.duration_since(since).as_secs();
    assert!(pause(&first, at(0)) < pause(&second, first.again));
    assert!(pause(&later, at(0)) <= 300);
    assert_eq!(second.outcome, Err("refused again".to_owned()));
    let well = Tried::after(Some(&later), Ok(()), at(0));
    assert_eq!((well.outcome.clone(), well.failures, pause(&well, at(0))), (Ok(()), 0, 300));
}
