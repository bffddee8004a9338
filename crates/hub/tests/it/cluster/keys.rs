//! Keys that both clusters of an application share.

use crate::cluster::scene::Scene;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, PostParams};
use lifeboat_api::ramen::DRPlacementControl;
use lifeboat_api::work::ManifestWork;
use lifeboat_engine::{Class, Clock, Engine, ObjectKey, Objects, Selection, Settings};
use lifeboat_hub::secrets::{self, Carriage, Chance, Courier};
use lifeboat_testbed::{Cluster, Task, on_both};
use serde_json::json;
use std::sync::Arc;

fn courier(scene: &Scene, byte: u8) -> (Courier, Task) {
    let client = scene.cluster.client();
    let clock: Clock = scene.cluster.clock();
    let mut engine = Engine::new("test", client.clone(), clock, Settings::default());
    let works: Objects<ManifestWork> = engine.objects(Selection::all());
    let task = Task::spawn(engine.run(std::future::pending()));
    let chance: Chance = Arc::new(move |bytes: &mut [u8]| bytes.fill(byte));
    (Courier { client, works, chance }, task)
}

async fn protected(scene: &Scene) -> DRPlacementControl {
    let drpc = json!({
        "metadata": { "name": "web" },
        "spec": { "placementRef": { "name": "web" }, "drPolicyRef": { "name": scene.policy_name() }, "pvcSelector": {} },
    });
    scene.drpcs.create(&PostParams::default(), &serde_json::from_value(drpc).unwrap()).await.unwrap()
}

on_both!(
    /// One key for one application, made once, on both clusters before anything is copied.
    async fn a_key_is_made_once_and_carried_to_both_clusters(cluster: &Cluster) {
        let (scene, _tasks) = Scene::open(cluster).await;
        let drpc = protected(&scene).await;
        let (courier, _task) = courier(&scene, 0xab);
        let both = [scene.east.name.clone(), scene.west.name.clone()];
        assert_eq!(secrets::carried(&courier.works, "web", "shop", &both[0]), Carriage::Missing);
        secrets::psk(&courier, &drpc, "shop", &both).await.unwrap();
        let hub: Api<Secret> = Api::namespaced(cluster.client(), &scene.mark);
        let made = hub.get("web-vs-secret-hub").await.unwrap();
        let owner = &made.metadata.owner_references.as_ref().unwrap()[0];
        assert_eq!(
            (owner.kind.as_str(), &owner.uid),
            ("DRPlacementControl", drpc.metadata.uid.as_ref().unwrap())
        );
        let text = String::from_utf8(made.data.as_ref().unwrap()["psk.txt"].0.clone()).unwrap();
        assert_eq!(text, format!("volsyncramen:{}", "ab".repeat(64)));
        for player in [&scene.east, &scene.west] {
            let look = || {
                let state = secrets::carried(&courier.works, "web", "shop", &player.name);
                let there = player.object("Secret", "shop", "web-vs-secret");
                async move {
                    match (state, there) {
                        (Carriage::Applied, Some(secret)) => Ok(secret),
                        (state, _) => Err(lifeboat_testbed::NotYet(format!("{state:?}"))),
                    }
                }
            };
            let carried = cluster.eventually("the key", look).await;
            assert_eq!(carried["data"], serde_json::to_value(made.data.as_ref().unwrap()).unwrap());
        }
        // Again, with other chance: nothing is made or written anew.
        let versions = || {
            let keys = both.iter().map(|name| ObjectKey::new(name.clone(), "web-shop-vs-secret-mw"));
            keys.map(|key| courier.works.get(&key).unwrap().metadata.resource_version.clone())
                .collect::<Vec<_>>()
        };
        let before = versions();
        let later = Courier { chance: Arc::new(|bytes: &mut [u8]| bytes.fill(1)), ..courier.clone() };
        secrets::psk(&later, &drpc, "shop", &both).await.unwrap();
        assert_eq!(versions(), before);
        assert_eq!(
            hub.get("web-vs-secret-hub").await.unwrap().metadata.resource_version,
            made.metadata.resource_version
        );
    }
);

#[tokio::test(start_paused = true)]
async fn a_secret_without_a_key_is_told_and_not_replaced() {
    let cluster = Cluster::embedded();
    let (scene, _tasks) = Scene::open(&cluster).await;
    let drpc = protected(&scene).await;
    let hub: Api<Secret> = Api::namespaced(cluster.client(), &scene.mark);
    let empty =
        json!({ "metadata": { "name": "web-vs-secret-hub" }, "stringData": { "other": "volsyncramen:77" } });
    hub.create(&PostParams::default(), &serde_json::from_value(empty).unwrap()).await.unwrap();
    let (courier, _task) = courier(&scene, 1);
    let failed = secrets::psk(&courier, &drpc, "shop", &["east".to_owned()]).await.unwrap_err();
    assert_eq!(failed.class, Class::BadInput);
    assert!(failed.sentence().contains("has no psk.txt") && !failed.sentence().contains("volsyncramen"));
    assert_eq!(secrets::carried(&courier.works, "web", "shop", "east"), Carriage::Missing);
}
