//! Both clusters see the same storage: nothing is copied, and records move the claims.

use crate::scene::{Scene, condition, has_finalizer, note};
use lifeboat_api::{annotations, finalizers};
use lifeboat_testbed::on_both;
use serde_json::{Value, json};

fn metro(group: &mut Value) {
    group["spec"]["async"] = json!(null);
    group["spec"]["sync"] = json!({});
}

on_both!(
    async fn a_shared_volume_is_kept_recorded_and_let_go(cluster: &Cluster) {
        let scene = Scene::new(cluster, "metro").await;
        scene.claim("one").await;
        scene.group("web", "primary", metro).await;
        let group = scene.says("web", "DataReady", "True", "Ready").await;
        assert_eq!(condition(&group, "DataReady").unwrap().observed_generation, group.metadata.generation);
        scene.says("web", "DataProtected", "True", "DataProtected").await;
        scene.says("web", "ClusterDataProtected", "True", "Uploaded").await;
        scene.state("web", "Primary").await;
        let claim = scene.claims.get("one").await.unwrap();
        assert!(has_finalizer(&claim, finalizers::PVC_VR));
        assert_eq!(note(&scene.volume("one").await, annotations::VR_RETAINED).as_deref(), Some("retained"));
        assert!(scene.replications.get_opt("one").await.unwrap().is_none(), "nothing is replicated");
        // It moves: in use it stays, deleted and at rest it is let go, and its volume stays.
        scene.pod("app", &["one"]).await;
        let away = json!({"spec": {"replicationState": "secondary", "action": "Relocate"}});
        scene.merge(&scene.groups, "web", away).await;
        scene.blocked("web", "InUse").await;
        scene.delete(&scene.claims, "one").await;
        scene.unpod("app").await;
        scene.gone(&scene.claims, "one").await;
        scene.state("web", "Secondary").await;
        assert_eq!(
            scene.volume("one").await.spec.unwrap().persistent_volume_reclaim_policy.as_deref(),
            Some("Retain")
        );
        // And comes back with the same volume.
        scene.merge(&scene.groups, "web", json!({"spec": {"replicationState": "primary"}})).await;
        scene.state("web", "Primary").await;
        scene.bound("one").await;
        scene.end("web").await;
        scene.gone(&scene.groups, "web").await;
    }
);

on_both!(
    async fn r3_without_stores_nothing_is_restored_and_the_group_can_go(cluster: &Cluster) {
        let scene = Scene::new(cluster, "storeless").await;
        scene
            .group("web", "primary", |group| {
                metro(group);
                group["spec"]["s3Profiles"] = json!([]);
            })
            .await;
        // R3: what was recorded cannot be read.
        scene.says("web", "ClusterDataReady", "False", "Error").await;
        scene.end("web").await;
        scene.gone(&scene.groups, "web").await;
    }
);

on_both!(
    async fn with_both_modes_what_is_shared_is_not_copied(cluster: &Cluster) {
        let scene = Scene::new(cluster, "modes").await;
        scene.claim("one").await;
        scene.group("web", "primary", |group| group["spec"]["sync"] = json!({})).await;
        scene.state("web", "Primary").await;
        scene.says("web", "DataProtected", "True", "DataProtected").await;
        assert!(scene.replications.get_opt("one").await.unwrap().is_none());
    }
);
