//! What a user is promised, on both kinds of clusters.

use crate::drpc::fleet::{DRPC, Stage, said};
use kube::api::DeleteParams;
use lifeboat_api::annotations;
use lifeboat_hub::drpc::world::GroupWords as _;
use lifeboat_hub::words::Words as _;
use lifeboat_testbed::on_both;
use serde_json::json;

fn yes(reason: &str) -> (String, String) {
    ("True".to_owned(), reason.to_owned())
}

on_both!(
    /// An application is deployed, placed and replicated, and all of it is said.
    async fn an_application_is_deployed(cluster: &Cluster) {
        let stage = Stage::new(cluster).await;
        stage.east.with(|state| state.copied = vec!["data".into()]);
        stage.protect(|_| {}).await;
        let drpc = stage.is("Deployed", "Completed").await;
        assert_eq!(stage.placed().await, std::slice::from_ref(&stage.names.east));
        assert_eq!(said(&drpc, "Available"), yes("Deployed"));
        assert_eq!(said(&drpc, "PeerReady"), yes("Success"));
        assert_eq!(said(&drpc, "Protected"), yes("Protected"));
        let types: Vec<String> =
            drpc.status.clone().unwrap().conditions.into_iter().map(|one| one.type_).collect();
        assert_eq!(types, ["Available", "PeerReady", "Protected"]);
        assert!(drpc.has_finalizer("drpc.ramendr.openshift.io/finalizer"));
        assert_eq!(drpc.label("cluster.open-cluster-management.io/backup"), Some("ramen"));
        assert_eq!(drpc.note(annotations::APP_NAMESPACE), Some(stage.names.space.as_str()));
        assert_eq!(drpc.note(annotations::EPOCH), Some("1"));
        let (east, west) =
            (stage.intent(&stage.east).await.unwrap(), stage.intent(&stage.west).await.unwrap());
        assert!(east.is_primary() && west.is_secondary());
        assert_eq!(
            east.note(annotations::FIRST_DEPLOYMENT),
            Some("false"),
            "it is no first deployment any more"
        );
        let named = |group: &lifeboat_api::ramen::VolumeReplicationGroup| {
            group.spec.vol_sync.iter().flat_map(|volsync| &volsync.rd_spec).count()
        };
        assert_eq!((named(&east), named(&west)), (0, 1));
        let space = &stage.names.space;
        let expected = [
            format!("web-{space}-ns-mw"),
            format!("web-{space}-vrg-mw"),
            format!("web-{space}-vs-secret-mw"),
        ];
        assert_eq!(stage.works(&stage.west).await, expected);
        assert_eq!(stage.views(&stage.west).await, [format!("web-{space}-vrg-mcv")]);
    }
);

on_both!(
    /// The source is dead for good: the application fails over, the old side is cleaned up when it returns, and goes home without loss.
    async fn an_application_fails_over_and_goes_home(cluster: &Cluster) {
        let stage = Stage::new(cluster).await;
        stage.east.with(|state| state.copied = vec!["data".into()]);
        stage.west.with(|state| state.copied = vec!["data".into()]);
        stage.protect(|_| {}).await;
        stage.is("Deployed", "Completed").await;
        stage.kill(&stage.east).await;
        stage.failover(&stage.west).await;
        let drpc = stage.is("FailedOver", "Cleaning Up").await;
        assert_eq!(said(&drpc, "Available"), yes("FailedOver"));
        assert_eq!(said(&drpc, "PeerReady").0, "False");
        let (east, west) = (stage.names.east.clone(), stage.names.west.clone());
        assert_eq!(stage.placed().await, [west.clone(), format!("({east})")]);
        let lost = drpc.status.clone().unwrap().last_failover.unwrap();
        assert!(lost.at_most_seconds.unwrap() >= 60, "{lost:?}");
        assert_eq!(drpc.status.unwrap().epoch, Some(2));
        // The dead cluster returns with what it had, as primary at an old epoch.
        assert!(stage.east.group().unwrap().is_primary());
        stage.wake(&stage.east).await;
        let drpc = stage.is("FailedOver", "Completed").await;
        assert_eq!(said(&drpc, "PeerReady"), yes("Success"));
        assert_eq!(stage.placed().await, std::slice::from_ref(&west));
        assert!(stage.east.group().unwrap().is_secondary());
        stage.relocate(&stage.east).await;
        let drpc = stage.is("Relocated", "Completed").await;
        assert_eq!(stage.placed().await, [east]);
        assert_eq!(drpc.status.unwrap().epoch, Some(3));
        assert_eq!(stage.west.state.lock().last_copies, 1);
        assert_eq!(stage.east.state.lock().reigns, [1, 3]);
        assert_eq!(stage.west.state.lock().reigns, [2]);
    }
);

on_both!(
    /// Deleting protection leaves the application where it is, and nothing of ours behind.
    async fn protection_is_removed(cluster: &Cluster) {
        let stage = Stage::new(cluster).await;
        stage.protect(|_| {}).await;
        stage.is("Deployed", "Completed").await;
        stage.drpcs.delete(DRPC, &DeleteParams::default()).await.unwrap();
        stage.gone().await;
        assert_eq!(stage.placed().await, std::slice::from_ref(&stage.names.east));
        cluster
            .eventually("all works are gone", || async {
                let left = [stage.works(&stage.east).await, stage.works(&stage.west).await].concat();
                if left.is_empty() { Ok(()) } else { Err(lifeboat_testbed::NotYet(format!("{left:?}"))) }
            })
            .await;
        assert!(stage.views(&stage.east).await.is_empty() && stage.views(&stage.west).await.is_empty());
        let placement = stage.placements.get("web-placement").await.unwrap();
        assert!(!placement.has_finalizer("drpc.ramendr.openshift.io/finalizer"));
        assert_eq!(placement.note(annotations::DRPC_NAME), None);
        assert_eq!((stage.east.group(), stage.west.group()), (None, None));
    }
);

on_both!(
    /// A cluster that is gone for ever does not keep anybody from letting go.
    async fn a_dead_cluster_does_not_hold_a_deletion(cluster: &Cluster) {
        let stage = Stage::new(cluster).await;
        stage.protect(|_| {}).await;
        stage.is("Deployed", "Completed").await;
        stage.kill(&stage.west).await;
        stage.drpcs.delete(DRPC, &DeleteParams::default()).await.unwrap();
        stage.gone().await;
        assert_eq!(stage.placed().await, std::slice::from_ref(&stage.names.east));
    }
);

on_both!(
    /// In the middle of a relocation the application is nowhere: a deletion first brings it somewhere.
    async fn a_deletion_amid_a_relocation_loses_nothing(cluster: &Cluster) {
        let stage = Stage::new(cluster).await;
        stage.protect(|_| {}).await;
        stage.is("Deployed", "Completed").await;
        stage.east.with(|state| state.cannot_copy = true);
        stage.relocate(&stage.west).await;
        stage.is("Relocating", "RunningFinalSync").await;
        assert!(stage.placed().await.is_empty());
        stage.drpcs.delete(DRPC, &DeleteParams::default()).await.unwrap();
        stage.gone().await;
        assert_eq!(stage.placed().await, std::slice::from_ref(&stage.names.east));
    }
);

on_both!(
    /// A relocation that was asked for by mistake is taken back by taking back the request.
    async fn a_relocation_can_be_called_off(cluster: &Cluster) {
        let stage = Stage::new(cluster).await;
        stage.protect(|_| {}).await;
        stage.is("Deployed", "Completed").await;
        stage.east.with(|state| state.cannot_copy = true);
        stage.relocate(&stage.west).await;
        stage.is("Relocating", "RunningFinalSync").await;
        stage.ask(json!({ "action": null, "preferredCluster": stage.names.east })).await;
        stage.is("Deployed", "Completed").await;
        assert_eq!(stage.placed().await, std::slice::from_ref(&stage.names.east));
        assert_eq!(stage.west.state.lock().reigns, Vec::<i64>::new());
    }
);

on_both!(
    /// The target dies in a relocation after the point of no return; a failover back brings the application home.
    async fn a_relocation_whose_target_dies_can_fail_over_back(cluster: &Cluster) {
        let stage = Stage::new(cluster).await;
        stage.protect(|_| {}).await;
        stage.is("Deployed", "Completed").await;
        stage.west.with(|state| state.cannot_restore = true);
        stage.relocate(&stage.west).await;
        stage.is("Relocating", "WaitingForResourceRestore").await;
        stage.kill(&stage.west).await;
        stage.failover(&stage.east).await;
        let drpc = stage.is("FailedOver", "Cleaning Up").await;
        assert_eq!(stage.placed().await, std::slice::from_ref(&stage.names.east));
        assert_eq!(drpc.status.unwrap().epoch, Some(3));
    }
);

on_both!(
    /// A cluster that is only silent counts as lost for a relocation: its last word is not its state.
    async fn a_relocation_needs_both_clusters(cluster: &Cluster) {
        let stage = Stage::new(cluster).await;
        stage.protect(|_| {}).await;
        stage.is("Deployed", "Completed").await;
        stage.kill(&stage.west).await;
        stage.relocate(&stage.west).await;
        // Before the wish is taken up, the silence is waited for as well: as a peer that is not ready.
        stage.is("Initiating", "PreparingFinalSync").await;
        stage.waits("ClusterSilent").await;
        assert_eq!(stage.placed().await, std::slice::from_ref(&stage.names.east));
        stage.wake(&stage.west).await;
        stage.is("Relocated", "Completed").await;
        assert_eq!(stage.placed().await, std::slice::from_ref(&stage.names.west));
    }
);

on_both!(
    /// A PlacementRule is moved by its status.
    async fn a_placement_rule_is_moved_too(cluster: &Cluster) {
        let stage = Stage::new(cluster).await;
        stage.placements.delete("web-placement", &DeleteParams::default()).await.unwrap();
        let rule = serde_json::from_value(json!({
            "apiVersion": "apps.open-cluster-management.io/v1", "kind": "PlacementRule",
            "metadata": { "name": "web-placement", "namespace": stage.names.space },
            "spec": { "schedulerName": "ramen", "clusterReplicas": 1 },
        }))
        .unwrap();
        stage.rules.create(&Default::default(), &rule).await.unwrap();
        stage.protect(|_| {}).await;
        stage.is("Deployed", "Completed").await;
        let home = |rule: &lifeboat_api::apps::PlacementRule| {
            let chosen = rule.status.clone().unwrap_or_default().decisions;
            chosen.into_iter().filter_map(|one| one.cluster_name).collect::<Vec<_>>()
        };
        assert_eq!(
            home(&stage.rules.get("web-placement").await.unwrap()),
            std::slice::from_ref(&stage.names.east)
        );
        stage.failover(&stage.west).await;
        stage.is("FailedOver", "Completed").await;
        assert_eq!(
            home(&stage.rules.get("web-placement").await.unwrap()),
            std::slice::from_ref(&stage.names.west)
        );
    }
);

on_both!(
    /// A hub that lost everything but the request finds the application where it is, and moves nothing.
    async fn a_lost_hub_finds_everything_again(cluster: &Cluster) {
        let mut stage = Stage::new(cluster).await;
        stage.protect(|_| {}).await;
        stage.is("Deployed", "Completed").await;
        stage.failover(&stage.west).await;
        stage.is("FailedOver", "Completed").await;
        for keeps_notes in [true, false] {
            stage.lose_hub(keeps_notes, |_| {}).await;
            let drpc = stage.is("FailedOver", "Completed").await;
            assert_eq!(drpc.note(annotations::EPOCH), Some("2"));
            assert_eq!(stage.placed().await, std::slice::from_ref(&stage.names.west));
            let uid =
                stage.intent(&stage.west).await.unwrap().note(annotations::DRPC_UID).unwrap().to_owned();
            assert_eq!(uid, drpc.uid(), "the groups are the new object's");
        }
        assert_eq!(stage.east.state.lock().reigns, [1]);
        assert_eq!(stage.west.state.lock().reigns, [2]);
    }
);

on_both!(
    /// A hub restored from an old backup, with an old request, does not carry it out again; the user may fail over.
    async fn a_hub_from_an_old_backup_asks(cluster: &Cluster) {
        let mut stage = Stage::new(cluster).await;
        stage.protect(|_| {}).await;
        stage.is("Deployed", "Completed").await;
        stage.failover(&stage.west).await;
        stage.is("FailedOver", "Completed").await;
        let east = stage.names.east.clone();
        stage
            .lose_hub(false, |drpc| {
                drpc["spec"]["action"] = json!("Relocate");
                drpc["spec"]["preferredCluster"] = json!(east);
            })
            .await;
        let drpc = stage.is("WaitForUser", "Paused").await;
        assert_eq!(said(&drpc, "PeerReady"), yes("Success"));
        stage.waits("UserMustChoose").await;
        assert!(stage.west.group().unwrap().is_primary(), "nothing has changed its role");
        assert!(stage.intent(&stage.west).await.unwrap().is_primary(), "and its group is asked for again");
        stage.failover(&stage.east).await;
        let drpc = stage.is("FailedOver", "Completed").await;
        assert_eq!(drpc.note(annotations::EPOCH), Some("3"));
        assert_eq!(stage.placed().await, std::slice::from_ref(&stage.names.east));
        assert_eq!(stage.east.state.lock().reigns, [1, 3]);
    }
);

on_both!(
    /// The hub and the primary's site are lost together: the user is asked, and a failover brings the application up.
    async fn a_lost_hub_and_a_lost_site(cluster: &Cluster) {
        let mut stage = Stage::new(cluster).await;
        stage.protect(|_| {}).await;
        stage.is("Deployed", "Completed").await;
        stage.kill(&stage.east).await;
        stage.lose_hub(true, |_| {}).await;
        stage.is("WaitForUser", "Paused").await;
        assert!(stage.placed().await.is_empty());
        stage.failover(&stage.west).await;
        stage.is("FailedOver", "Cleaning Up").await;
        assert_eq!(stage.placed().await, std::slice::from_ref(&stage.names.west));
        stage.wake(&stage.east).await;
        stage.is("FailedOver", "Completed").await;
        assert!(stage.east.group().unwrap().is_secondary());
    }
);
