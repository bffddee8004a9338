//! What users are promised about clusters, on both kinds of API server.

use crate::cluster::scene::{CANARY, Scene, said};
use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use lifeboat_api::ramen::{DRCluster, DRPolicy};
use lifeboat_hub::cluster::check::{Buckets, Opening, Prover as _};
use lifeboat_hub::cluster::settings::Profile;
use lifeboat_store::{Directory, Secret};
use lifeboat_testbed::{Cluster, on_both};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The class's fence as the peer has it.
fn fence_of(scene: &Scene) -> Option<Value> {
    scene.west.object("NetworkFence", "", &format!("network-fence-wall-{}", scene.east.name))
}

on_both!(
    /// A cluster gets what it needs, says what it has, and is validated.
    async fn a_cluster_is_told_what_it_needs_and_validated(cluster: &Cluster) {
        let (scene, _tasks) = Scene::open(cluster).await;
        scene.pair().await;
        let east = scene.says(&scene.east.name, "Validated", "True", "Succeeded").await;
        assert_eq!(east.status.as_ref().unwrap().phase.as_ref().unwrap().as_str(), "Available");
        assert_eq!(
            said(&east.status.as_ref().unwrap().conditions, "Clean", Some(1)),
            Some(("True", "Clean"))
        );
        let carried = |what: &'static str| {
            let east = scene.east.clone();
            move || {
                let found = match what {
                    "schedules" => east
                        .object("DRClusterConfig", "", &east.name)
                        .is_some_and(|config| config["spec"]["replicationSchedules"] == json!(["5m"])),
                    _ => {
                        let map =
                            east.object("ConfigMap", "ramen-system", "ramen-dr-cluster-operator-config");
                        let text = map.map(|map| map["data"].to_string()).unwrap_or_default();
                        text.contains("dr-cluster") && text.matches("s3ProfileName").count() == 2
                    }
                };
                async move { if found { Ok(()) } else { Err(lifeboat_testbed::NotYet(what.into())) } }
            }
        };
        cluster.eventually("the schedules of the policy", carried("schedules")).await;
        cluster.eventually("the configuration with both stores", carried("config")).await;
        // Keys to its own store and to its peer's, in its operator's namespace.
        for name in [&scene.east.name, &scene.west.name] {
            let look = || {
                let secret = scene.east.object("Secret", "ramen-system", &format!("keys-{name}"));
                async move { secret.ok_or_else(|| lifeboat_testbed::NotYet("no secret".into())) }
            };
            let secret = cluster.eventually("the keys", look).await;
            assert!(secret["data"]["AWS_SECRET_ACCESS_KEY"].is_string());
        }
        // A changed key follows.
        let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(cluster.client(), &scene.mark);
        let changed = Patch::Merge(json!({ "stringData": { "AWS_ACCESS_KEY_ID": "rotated" } }));
        secrets.patch(&format!("keys-{}", scene.west.name), &PatchParams::default(), &changed).await.unwrap();
        let look = || {
            let secret = scene.east.object("Secret", "ramen-system", &format!("keys-{}", scene.west.name));
            let key = secret.map(|secret| secret["data"]["AWS_ACCESS_KEY_ID"].clone());
            // "rotated", as secrets are written.
            let found = key == Some(json!("cm90YXRlZA=="));
            async move { if found { Ok(()) } else { Err(lifeboat_testbed::NotYet(format!("{key:?}"))) } }
        };
        cluster.eventually("the rotated key", look).await;
        no_secret_is_told(&scene).await;
    }
);

/// Nothing that people are shown has a key in it.
async fn no_secret_is_told(scene: &Scene) {
    let client = scene.cluster.client();
    let clusters: Api<DRCluster> = Api::all(client.clone());
    let policies: Api<DRPolicy> = Api::all(client.clone());
    let events: Api<Event> = Api::all(client);
    let all = ListParams::default();
    let mut texts = vec![serde_json::to_string(&clusters.list(&all).await.unwrap()).unwrap()];
    texts.push(serde_json::to_string(&policies.list(&all).await.unwrap()).unwrap());
    texts.push(serde_json::to_string(&events.list(&all).await.unwrap()).unwrap());
    assert!(texts.iter().all(|text| !text.contains(CANARY)));
}

on_both!(
    /// A store that fails marks its own cluster only, says how, and is tried again by itself.
    async fn a_broken_store_spoils_one_cluster_and_is_tried_again(cluster: &Cluster) {
        let (scene, _tasks) = Scene::open(cluster).await;
        let bucket = scene.bucket(&scene.east.name);
        std::fs::remove_dir_all(&bucket).unwrap();
        // A file where the folder should be: not even an obliging store can make it.
        std::fs::write(&bucket, "in the way").unwrap();
        scene.pair().await;
        let failed = scene
            .cluster_is(&scene.east.name, |cluster| {
                let shown =
                    cluster.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
                shown.iter().any(|one| {
                    one.type_ == "Validated" && one.status == "False" && one.reason.starts_with("s3")
                })
            })
            .await;
        let told =
            failed.status.unwrap().conditions.iter().find(|one| one.type_ == "Validated").cloned().unwrap();
        assert!(
            told.message.contains(&scene.east.name) && told.message.contains("tried again"),
            "{}",
            told.message
        );
        scene.says(&scene.west.name, "Validated", "True", "Succeeded").await;
        scene
            .policy_is(|policy| {
                crate::cluster::scene::policy_says(policy, "Validated").is_some_and(|said| said.0 == "True")
            })
            .await;
        std::fs::remove_file(&bucket).unwrap();
        std::fs::create_dir(&bucket).unwrap();
        scene.says(&scene.east.name, "Validated", "True", "Succeeded").await;
        assert_eq!(
            std::fs::read_dir(bucket.join("lifeboat-check")).map_or(0, Iterator::count),
            0,
            "nothing is left there"
        );
        no_secret_is_told(&scene).await;
    }
);

on_both!(
    /// A cluster is cut off through its peer, let in again, and nothing is left.
    async fn a_cluster_is_fenced_and_let_in_again(cluster: &Cluster) {
        let (scene, _tasks) = Scene::open(cluster).await;
        scene.pair().await;
        let east = scene.east.name.clone();
        scene.says(&east, "Validated", "True", "Succeeded").await;
        // Dead, store and all: that is when a fence is needed.
        scene.east.with(|state| state.dead = true);
        scene.heard(&east, "Unknown").await;
        std::fs::remove_dir_all(scene.bucket(&east)).unwrap();
        scene.west.with(|state| state.fences = None);
        scene.fence(&east, Some("Fenced")).await;
        let fencing = scene.says(&east, "Fenced", "False", "Fencing").await;
        assert_eq!(fencing.status.unwrap().phase.unwrap().as_str(), "Fencing");
        scene.west.with(|state| state.fences = Some("Failed".into()));
        let failed = scene.says(&east, "Fenced", "False", "FenceError").await;
        assert!(failed.status.unwrap().conditions.iter().any(|one| one.message.contains("says the storage")));
        scene.west.with(|state| state.fences = Some("Succeeded".into()));
        let fenced = scene.says(&east, "Fenced", "True", "Fenced").await;
        assert_eq!(fenced.status.unwrap().phase.unwrap().as_str(), "Fenced");
        let fence = fence_of(&scene).unwrap();
        assert_eq!(
            (&fence["spec"]["fenceState"], &fence["spec"]["cidrs"]),
            (&json!("Fenced"), &json!(["10.0.0.0/24"]))
        );
        // Clearing the field lifts nothing.
        scene.fence(&east, None).await;
        scene
            .cluster_is(&east, |cluster| {
                let shown =
                    cluster.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
                shown.iter().any(|one| {
                    one.type_ == "Fenced" && one.status == "True" && one.message.contains("cleared")
                })
            })
            .await;
        assert_eq!(fence_of(&scene).unwrap()["spec"]["fenceState"], "Fenced");
        scene.fence(&east, Some("Unfenced")).await;
        scene.says(&east, "Clean", "True", "Clean").await;
        assert_eq!(fence_of(&scene), None);
        let works =
            scene.works(&scene.west.name).list(&ListParams::default().labels("app=NF")).await.unwrap();
        assert_eq!(works.items.len(), 0);
        scene.fence(&east, Some("ManuallyFenced")).await;
        scene.says(&east, "Fenced", "True", "Fenced").await;
        scene.fence(&east, Some("ManuallyUnfenced")).await;
        scene.says(&east, "Clean", "True", "Clean").await;
    }
);

on_both!(
    /// Storage is prepared while an application fails over to its cluster, with a broken store too, and released afterwards.
    async fn storage_is_prepared_for_a_failover_and_released(cluster: &Cluster) {
        let (scene, _tasks) = Scene::open(cluster).await;
        scene.pair().await;
        let (east, west) = (scene.east.name.clone(), scene.west.name.clone());
        scene.says(&west, "Validated", "True", "Succeeded").await;
        std::fs::remove_dir_all(scene.bucket(&west)).unwrap();
        // The application's group on the cluster that is lost, as it was seen last.
        scene.east.put(json!({
            "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "VolumeReplicationGroup",
            "metadata": { "name": "web", "namespace": "shop" },
            "spec": { "replicationState": "primary", "pvcSelector": {}, "s3Profiles": [] },
            "status": { "protectedPVCs": [{
                "name": "data", "csiProvisioner": "csi", "replicationID": { "id": "rep-1", "modes": ["Failover"] },
            }] },
        }));
        let view = json!({
            "metadata": { "name": "web-shop-vrg-mcv", "annotations": {
                "drplacementcontrol.ramendr.openshift.io/drpc-name": "web",
                "drplacementcontrol.ramendr.openshift.io/drpc-namespace": scene.mark,
            } },
            "spec": { "scope": { "apiGroup": "ramendr.openshift.io", "version": "v1alpha1", "kind": "VolumeReplicationGroup", "name": "web", "namespace": "shop" } },
        });
        let views = scene.views(&east);
        views.create(&PostParams::default(), &serde_json::from_value(view).unwrap()).await.unwrap();
        cluster
            .until(&views, "web-shop-vrg-mcv", |view| {
                view.and_then(|view| view.status.as_ref()).is_some_and(|status| status.result.is_some())
            })
            .await;
        scene.east.with(|state| state.dead = true);
        scene.heard(&east, "Unknown").await;
        let drpc = json!({
            "metadata": { "name": "web" },
            "spec": {
                "placementRef": { "name": "web" }, "drPolicyRef": { "name": scene.policy_name() }, "pvcSelector": {},
                "preferredCluster": east, "failoverCluster": west, "action": "Failover",
            },
        });
        scene.drpcs.create(&PostParams::default(), &serde_json::from_value(drpc).unwrap()).await.unwrap();
        let active = |cluster: &DRCluster| {
            let modes =
                cluster.status.as_ref().map(|status| status.maintenance_modes.clone()).unwrap_or_default();
            modes.iter().any(|mode| {
                mode.target_id == "rep-1"
                    && mode.storage_provisioner == "csi"
                    && mode
                        .conditions
                        .iter()
                        .any(|one| one.type_ == "FailoverActivated" && one.status == "True")
            })
        };
        scene.cluster_is(&west, active).await;
        let done = json!({ "status": { "phase": "FailedOver", "conditions": [{
            "type": "Available", "status": "True", "reason": "FailedOver", "message": "", "observedGeneration": 1,
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        }] } });
        scene.drpcs.patch_status("web", &PatchParams::default(), &Patch::Merge(done)).await.unwrap();
        scene
            .cluster_is(&west, |cluster| cluster.status.as_ref().unwrap().maintenance_modes.is_empty())
            .await;
        scene.gone(&scene.works(&west), "rep-1-mmode-mw").await;
        assert_eq!(scene.west.object("MaintenanceMode", "", "rep-1"), None);
    }
);

on_both!(
    /// Deleting goes from the top down, each step saying what keeps it; a dead cluster keeps nothing.
    async fn deleting_ends_also_with_a_dead_cluster(cluster: &Cluster) {
        let (scene, _tasks) = Scene::open(cluster).await;
        scene.pair().await;
        let (east, west, policy) = (scene.east.name.clone(), scene.west.name.clone(), scene.policy_name());
        scene.says(&east, "Validated", "True", "Succeeded").await;
        scene.says(&west, "Validated", "True", "Succeeded").await;
        scene.delete(&scene.clusters, &east).await;
        let kept = scene.says(&east, "Deleted", "False", "InUse").await;
        assert!(kept.status.unwrap().conditions.iter().any(|one| one.message.contains(&policy)));
        scene.delete(&scene.policies, &policy).await;
        scene.gone(&scene.policies, &policy).await;
        scene.gone(&scene.clusters, &east).await;
        assert_eq!(scene.works(&east).list(&ListParams::default()).await.unwrap().items.len(), 0);
        assert_eq!(scene.views(&east).list(&ListParams::default()).await.unwrap().items.len(), 0);
        assert_eq!(scene.east.object("DRClusterConfig", "", &east), None);
        assert!(scene.east.object("Namespace", "", "ramen-system").is_some(), "others live there");
        scene.west.with(|state| state.dead = true);
        scene.heard(&west, "Unknown").await;
        scene.delete(&scene.clusters, &west).await;
        scene.gone(&scene.clusters, &west).await;
        let left = scene.works(&west).list(&ListParams::default()).await.unwrap().items;
        assert!(!left.is_empty() && left.iter().all(|work| work.metadata.deletion_timestamp.is_some()));
        // When it returns, it removes what it was told to.
        scene.west.with(|state| state.dead = false);
        for work in &left {
            scene.gone(&scene.works(&west), work.metadata.name.as_deref().unwrap()).await;
        }
        assert_eq!(scene.west.object("DRClusterConfig", "", &west), None);
    }
);

#[tokio::test(start_paused = true)]
async fn nothing_is_written_when_nothing_changes() {
    let cluster = Cluster::embedded();
    let (scene, mut tasks) = Scene::open(&cluster).await;
    scene.pair().await;
    scene.says("east", "Validated", "True", "Succeeded").await;
    scene.says("west", "Validated", "True", "Succeeded").await;
    scene.policy_is(|policy| policy.status.as_ref().is_some_and(|status| status.async_.is_some())).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let versions = || async {
        let all = ListParams::default();
        let mut versions = Vec::new();
        let mut note =
            |meta: &kube::api::ObjectMeta| versions.push((meta.name.clone(), meta.resource_version.clone()));
        scene.clusters.list(&all).await.unwrap().items.iter().for_each(|one| note(&one.metadata));
        scene.policies.list(&all).await.unwrap().items.iter().for_each(|one| note(&one.metadata));
        for name in ["east", "west"] {
            scene.works(name).list(&all).await.unwrap().items.iter().for_each(|one| note(&one.metadata));
            scene.views(name).list(&all).await.unwrap().items.iter().for_each(|one| note(&one.metadata));
        }
        versions
    };
    let before = versions().await;
    assert!(before.len() > 10, "{before:?}");
    // The clusters rest; a touch of what wakes the controllers, and an hour.
    drop(tasks.drain(..2));
    scene.configure_again().await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(versions().await, before);
}

#[tokio::test]
async fn a_store_behind_the_protocol_is_really_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let content: Arc<dyn lifeboat_s3::Content> = Arc::new(Directory::new(folder.path()));
    let credentials = lifeboat_s3::Credentials { access_key: "id".into(), secret_key: CANARY.into() };
    let service = lifeboat_s3::service([("records".to_owned(), content)].into(), &credentials);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let _task = lifeboat_testbed::Task::spawn(lifeboat_s3::serve(listener, service));
    let store = |bucket: &str, key: &str| Opening {
        profile: Profile {
            name: "east".into(),
            bucket: bucket.into(),
            endpoint: format!("http://{address}"),
            ..Profile::default()
        },
        access_key: Secret::new("id"),
        secret_key: Secret::new(key),
    };
    let prove = async |store: Opening| Buckets.prove(&store, "lifeboat-check/east", "hello".into()).await;
    assert_eq!(prove(store("records", CANARY)).await, Ok(()));
    let failed = prove(store("records", "wrong")).await.unwrap_err();
    assert_eq!(failed.reason, "s3ConnectionFailed");
    assert!(!failed.sentence.contains("wrong") && !failed.sentence.contains(CANARY), "{}", failed.sentence);
    assert_eq!(prove(store("missing", CANARY)).await.unwrap_err().reason, "s3BucketNotFound");
}
