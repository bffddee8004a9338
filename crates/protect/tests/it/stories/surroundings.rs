//! What stands around a group: its configuration, and volumes that are still attached to a node.

use crate::scene::{Scene, driver};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{Api, PostParams};
use lifeboat_testbed::on_both;
use serde_json::json;

/// A node has the volume of a claim.
pub async fn attach(scene: &Scene, claim: &str) -> Api<VolumeAttachment> {
    let attachments: Api<VolumeAttachment> = Api::all(scene.cluster.client());
    let volume = format!("{}-{claim}", scene.mark);
    let attached: VolumeAttachment = serde_json::from_value(json!({
        "metadata": { "name": volume },
        "spec": { "attacher": driver(&scene.mark), "nodeName": "n1", "source": { "persistentVolumeName": volume } },
    }))
    .unwrap();
    attachments.create(&PostParams::default(), &attached).await.unwrap();
    attachments
}

async fn in_use_by_a_node(scene: &Scene) {
    let group = scene.blocked("web", "InUse").await;
    let blockers = group.status.unwrap().blockers;
    assert!(blockers.iter().any(|one| one.message.contains("node n1")), "{blockers:?}");
}

on_both!(
    async fn a_volume_that_is_attached_is_not_demoted(cluster: &Cluster) {
        let scene = Scene::new(cluster, "attached").await;
        scene.claim("one").await;
        scene.group("web", "primary", |_| {}).await;
        scene.state("web", "Primary").await;
        let attachments = attach(&scene, "one").await;
        let secondary = json!({"spec": {"replicationState": "secondary", "action": "Failover"}});
        scene.merge(&scene.groups, "web", secondary).await;
        in_use_by_a_node(&scene).await;
        let replication = scene.replications.get("one").await.unwrap();
        assert_eq!(replication.spec.replication_state.as_str(), "primary");
        scene.delete(&attachments, &format!("{}-one", scene.mark)).await;
        scene.state("web", "Secondary").await;
    }
);

on_both!(
    async fn a_volume_that_is_attached_is_not_copied_for_the_last_time(cluster: &Cluster) {
        let scene = Scene::new(cluster, "mounted").await;
        scene.claim("one").await;
        scene.key("web").await;
        scene
            .group("web", "primary", |group| {
                let by_mover = "drplacementcontrol.ramendr.openshift.io/use-volsync-for-pvc-protection";
                group["metadata"]["annotations"] = json!({ by_mover: "true" });
            })
            .await;
        scene.says("web", "DataProtected", "True", "DataProtected").await;
        let attachments = attach(&scene, "one").await;
        let run = json!({"spec": {"runFinalSync": true, "action": "Relocate"}});
        scene.merge(&scene.groups, "web", run).await;
        in_use_by_a_node(&scene).await;
        let asked = scene.sources.get("one").await.unwrap().spec.trigger.unwrap().manual;
        assert!(
            !asked.unwrap_or_default().starts_with("vrg-final-sync"),
            "nothing is cut while it is attached"
        );
        scene.delete(&attachments, &format!("{}-one", scene.mark)).await;
        scene.group_is("web", |group| group.status.as_ref().unwrap().final_sync_complete).await;
    }
);

on_both!(
    async fn a_configuration_that_changes_wakes_every_group(cluster: &Cluster) {
        let scene = Scene::new(cluster, "config").await;
        let others = |group: &mut serde_json::Value| {
            group["spec"]["pvcSelector"] = json!({ "matchLabels": { "app": "shop" } });
        };
        scene.group("web", "primary", |_| {}).await;
        scene.group("shop", "primary", others).await;
        for name in ["web", "shop"] {
            scene.says(name, "ClusterDataProtected", "True", "Uploaded").await;
        }
        // Nothing else happens to them, and no time of theirs comes for minutes.
        scene.configure("volumeUnprotectionEnabled: [\n").await;
        for name in ["web", "shop"] {
            scene.blocked(name, "Configuration").await;
        }
        scene.configure("").await;
        for name in ["web", "shop"] {
            scene.group_is(name, |group| group.status.as_ref().unwrap().blockers.is_empty()).await;
        }
    }
);
