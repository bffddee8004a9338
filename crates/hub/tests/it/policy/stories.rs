//! What users are promised about policies, on both kinds of API server.

use crate::cluster::scene::{Scene, policy_says};
use kube::api::PostParams;
use lifeboat_api::ramen::DRPolicy;
use lifeboat_testbed::{Cluster, on_both};
use serde_json::json;

fn valid(policy: &DRPolicy) -> bool {
    policy_says(policy, "Validated").is_some_and(|said| said.0 == "True")
}

fn peers(policy: &DRPolicy) -> Vec<(String, Vec<String>)> {
    let copied = policy.status.as_ref().and_then(|status| status.async_.clone()).unwrap_or_default();
    let line = |peer: &lifeboat_api::ramen::PeerClass| {
        (peer.replication_id.clone().unwrap_or_default(), peer.storage_id.clone())
    };
    copied.peer_classes.iter().map(line).collect()
}

on_both!(
    /// A policy finds out what its clusters have in common, follows them, and forgets nothing when one falls silent.
    async fn a_policy_follows_what_its_clusters_have(cluster: &Cluster) {
        let (scene, _tasks) = Scene::open(cluster).await;
        // The policy first: it says what it waits for, and goes on by itself.
        scene.policy().await;
        scene
            .policy_is(|policy| {
                policy_says(policy, "Validated").is_some_and(|said| said.1 == "DRClusterNotFound")
            })
            .await;
        scene.dr_cluster(&scene.east.name).await;
        scene.dr_cluster(&scene.west.name).await;
        let common = [("rep-1".to_owned(), vec!["s1".to_owned(), "s2".to_owned()])];
        let policy = scene.policy_is(|policy| valid(policy) && peers(policy) == common).await;
        let ids = &policy.status.unwrap().async_.unwrap().peer_classes[0].cluster_ids;
        assert_eq!(*ids, [format!("id-of-{}", scene.east.name), format!("id-of-{}", scene.west.name)]);
        // West falls silent, and what it has changes where nobody sees it.
        scene.west.with(|state| state.dead = true);
        scene.heard(&scene.west.name, "Unknown").await;
        let kept = scene
            .policy_is(|policy| {
                let shown =
                    policy.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
                shown.iter().any(|one| one.type_ == "Validated" && one.message.contains("as last known"))
            })
            .await;
        assert!(valid(&kept) && peers(&kept) == common);
        // It returns, and its storage is now the same as east's.
        scene.west.with(|state| {
            state.dead = false;
            for object in state.objects.values_mut().filter(|object| object["kind"] == "StorageClass") {
                object["metadata"]["labels"]["ramendr.openshift.io/storageid"] = json!("s1");
            }
        });
        scene.heard(&scene.west.name, "True").await;
        let shared = |policy: &DRPolicy| {
            policy.status.as_ref().is_some_and(|status| status.sync.is_some() && status.async_.is_none())
        };
        scene.policy_is(|policy| valid(policy) && shared(policy)).await;
    }
);

on_both!(
    /// A policy that is used stays until it is not, and says who uses it.
    async fn a_policy_in_use_stays_and_says_so(cluster: &Cluster) {
        let (scene, _tasks) = Scene::open(cluster).await;
        scene.pair().await;
        scene.policy_is(valid).await;
        let drpc = json!({
            "metadata": { "name": "web" },
            "spec": {
                "placementRef": { "name": "web" }, "drPolicyRef": { "name": scene.policy_name() }, "pvcSelector": {},
                "preferredCluster": scene.east.name,
            },
        });
        scene.drpcs.create(&PostParams::default(), &serde_json::from_value(drpc).unwrap()).await.unwrap();
        scene.delete(&scene.policies, &scene.policy_name()).await;
        let kept = scene
            .policy_is(|policy| policy_says(policy, "Deleted").is_some_and(|said| said.1 == "InUse"))
            .await;
        let told = kept.status.unwrap().conditions.into_iter().find(|one| one.type_ == "Deleted").unwrap();
        assert!(told.message.contains("/web"), "{}", told.message);
        scene.delete(&scene.drpcs, "web").await;
        scene.gone(&scene.policies, &scene.policy_name()).await;
    }
);

#[tokio::test(start_paused = true)]
async fn the_operations_namespace_is_made_on_the_hub() {
    let cluster = Cluster::embedded();
    let (scene, _tasks) = Scene::open(&cluster).await;
    scene.configure(r#"{ "ramenOpsNamespace": "ramen-ops" }"#).await;
    scene.pair().await;
    let spaces: kube::Api<k8s_openapi::api::core::v1::Namespace> = kube::Api::all(cluster.client());
    cluster.until(&spaces, "ramen-ops", |found: Option<&_>| found.is_some()).await;
}
