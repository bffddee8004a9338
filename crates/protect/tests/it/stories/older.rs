//! A group that an older Ramen served: what it left is taken over, and nothing of the application goes with the group.

use crate::scene::{Scene, note};
use kube::api::PostParams;
use lifeboat_api::replication::VolumeReplication;
use lifeboat_api::{annotations, labels};
use lifeboat_testbed::on_both;
use serde_json::json;

on_both!(
    async fn a_replication_that_the_group_only_owns_is_taken_over(cluster: &Cluster) {
        let scene = Scene::new(cluster, "taken").await;
        scene.group("web", "primary", |_| {}).await;
        let group = scene.state("web", "Primary").await;
        let old: VolumeReplication = serde_json::from_value(json!({
            "apiVersion": "replication.storage.openshift.io/v1alpha1", "kind": "VolumeReplication",
            "metadata": { "name": "one", "namespace": scene.mark, "ownerReferences": [{
                "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "VolumeReplicationGroup", "name": "web",
                "uid": group.metadata.uid, "controller": true, "blockOwnerDeletion": true }] },
            "spec": { "volumeReplicationClass": scene.mark, "replicationState": "primary", "autoResync": false,
                "dataSource": { "kind": "PersistentVolumeClaim", "name": "one" } },
        }))
        .unwrap();
        let made = scene.replications.create(&PostParams::default(), &old).await.unwrap();
        scene.claim("one").await;
        let ours = |one: Option<&VolumeReplication>| {
            one.and_then(|one| one.metadata.labels.as_ref()?.get(labels::OWNER_NAME)).is_some()
        };
        let taken = cluster.until(&scene.replications, "one", ours).await.unwrap();
        assert_eq!(taken.metadata.uid, made.metadata.uid, "the storage goes on with what it has");
        assert!(taken.metadata.owner_references.is_none_or(|owners| owners.is_empty()));
        scene.says("web", "ClusterDataProtected", "True", "Uploaded").await;
        let group = scene.state("web", "Primary").await;
        assert!(group.status.unwrap().blockers.iter().all(|blocker| blocker.reason != "Foreign"));
        scene.end("web").await;
        scene.gone(&scene.groups, "web").await;
        scene.gone(&scene.replications, "one").await;
    }
);

on_both!(
    async fn a_claim_that_the_group_owns_stays_when_the_group_goes(cluster: &Cluster) {
        // Older hubs asked for it with an annotation; here it is always so.
        for (name, asked) in [("web", json!({})), ("shop", json!({ annotations::DO_NOT_DELETE_PVC: "true" }))]
        {
            let scene = Scene::new(cluster, "disown").await;
            let change = |group: &mut serde_json::Value| {
                group["metadata"]["annotations"] = asked;
                group["spec"]["s3Profiles"] = json!(["NoS3"]);
            };
            let group = scene.group(name, "primary", change).await;
            // One that was never protected here: it has no class.
            let mut classless = scene.claim_json("one");
            classless.spec.as_mut().unwrap().storage_class_name = Some(String::new());
            let old = json!([{ "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "VolumeReplicationGroup",
                "name": name, "uid": group.metadata.uid }]);
            classless.metadata.owner_references = serde_json::from_value(old).unwrap();
            classless.metadata.annotations =
                Some([(annotations::OCM_DO_NOT_DELETE.to_owned(), "true".to_owned())].into());
            let made = scene.claims.create(&PostParams::default(), &classless).await.unwrap();
            scene.blocked(name, "BadClass").await;
            scene.end(name).await;
            scene.gone(&scene.groups, name).await;
            let claim = scene.claims.get("one").await.unwrap();
            assert_eq!(claim.metadata.uid, made.metadata.uid);
            assert!(claim.metadata.owner_references.as_ref().is_none_or(Vec::is_empty));
            assert_eq!(note(&claim, annotations::OCM_DO_NOT_DELETE), None);
        }
    }
);
