//! What is deleted by accident, what cannot go on, and who changes his mind: stories on both kinds of clusters.

use crate::drpc::fleet::{DRPC, Stage, said};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use lifeboat_api::annotations;
use lifeboat_api::ramen::DRPolicy;
use lifeboat_api::work::ManifestWork;
use lifeboat_hub::drpc::world::GroupWords as _;
use lifeboat_hub::words::Words as _;
use lifeboat_hub::works;
use lifeboat_testbed::{NotYet, on_both};
use serde_json::json;

async fn deployed(cluster: &lifeboat_testbed::Cluster) -> Stage {
    let stage = Stage::new(cluster).await;
    stage.east.with(|state| state.copied = vec!["data".into()]);
    stage.west.with(|state| state.copied = vec!["data".into()]);
    stage.protect(|_| {}).await;
    stage.is("Deployed", "Completed").await;
    stage
}

async fn annotate(stage: &Stage, key: &str, value: &str) {
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { key: value } } }));
    stage.drpcs.patch(DRPC, &PatchParams::default(), &patch).await.unwrap();
}

async fn nowhere(stage: &Stage) {
    stage
        .cluster
        .eventually("the application is placed nowhere", || async {
            let placed = stage.placed().await;
            if placed.is_empty() { Ok(()) } else { Err(NotYet(format!("{placed:?}"))) }
        })
        .await;
}

on_both!(
    /// The namespace is deleted on the primary: the application is taken off, nothing is ended, and the copy takes over.
    async fn a_deleted_namespace_is_failed_over(cluster: &Cluster) {
        let stage = deployed(cluster).await;
        stage.east.with(crate::drpc::spoke::State::delete);
        let drpc = stage.is("WaitForUser", "Paused").await;
        stage.waits("Orphaned").await;
        nowhere(&stage).await;
        assert_eq!(said(&drpc, "Available"), ("False".to_owned(), "Orphaned".to_owned()));
        assert_eq!(stage.east.state.lock().ended, 0);
        stage.failover(&stage.west).await;
        stage.is("FailedOver", "Completed").await;
        assert_eq!(stage.placed().await, std::slice::from_ref(&stage.names.west));
        assert_eq!((stage.east.state.lock().ended, stage.west.state.lock().ended), (0, 0));
    }
);

on_both!(
    /// The same, and the user chooses to use what was left on the cluster.
    async fn a_deleted_namespace_is_restored_in_place(cluster: &Cluster) {
        let stage = deployed(cluster).await;
        stage.east.with(crate::drpc::spoke::State::delete);
        stage.waits("Orphaned").await;
        nowhere(&stage).await;
        annotate(&stage, annotations::RESTORE_ORPHANS, "1").await;
        stage.is("Deployed", "Completed").await;
        assert_eq!(stage.placed().await, std::slice::from_ref(&stage.names.east));
        // The hub takes the order back by itself, so that the next accident is asked about anew.
        cluster
            .eventually("the order is taken back", || async {
                let order =
                    stage.drpcs.get(DRPC).await?.note(annotations::RESTORE_ORPHANS).map(str::to_owned);
                let sent = stage.intent(&stage.east).await;
                let sent = sent.and_then(|group| group.note(annotations::RESTORE_ORPHANS).map(str::to_owned));
                let done = order.is_none() && sent.as_deref() == Some("");
                if done { Ok(()) } else { Err(NotYet(format!("{order:?} {sent:?}"))) }
            })
            .await;
        stage.is("Deployed", "Completed").await;
        stage.east.with(crate::drpc::spoke::State::delete);
        stage.waits("Orphaned").await;
        nowhere(&stage).await;
        assert_eq!(stage.west.state.lock().reigns, Vec::<i64>::new());
    }
);

on_both!(
    /// A work that somebody deletes by hand is made again, and says nothing of an end.
    async fn a_work_deleted_by_hand_ends_nothing(cluster: &Cluster) {
        let stage = deployed(cluster).await;
        let api: Api<ManifestWork> = Api::namespaced(cluster.client(), &stage.west.name);
        let name = works::name(DRPC, &stage.names.space, works::types::GROUP);
        let before = api.get(&name).await.unwrap().metadata.uid;
        api.delete(&name, &DeleteParams::default()).await.unwrap();
        cluster
            .eventually("the work is made again", || async {
                let made = api.get_opt(&name).await?.and_then(|work| work.metadata.uid);
                if made.is_some() && made != before { Ok(()) } else { Err(NotYet(format!("{made:?}"))) }
            })
            .await;
        stage.is("Deployed", "Completed").await;
        let west = stage.intent(&stage.west).await.unwrap();
        assert!(west.is_secondary() && !west.ends_protection());
        assert_eq!(stage.west.state.lock().ended, 0);
    }
);

on_both!(
    /// Deleting the placement ends protection by order, on both clusters.
    async fn a_deleted_placement_ends_protection(cluster: &Cluster) {
        let stage = deployed(cluster).await;
        stage.placements.delete("web-placement", &DeleteParams::default()).await.unwrap();
        cluster
            .eventually("both groups are gone by order", || async {
                let ended = (stage.east.state.lock().ended, stage.west.state.lock().ended);
                if ended == (1, 1) { Ok(()) } else { Err(NotYet(format!("{ended:?}"))) }
            })
            .await;
    }
);

on_both!(
    /// A relocation that the hub has called off, after the application was stopped for it: it comes back, and is not tried again. When it calls one
    /// off is in the tables.
    async fn a_relocation_that_was_called_off_comes_back(cluster: &Cluster) {
        let stage = deployed(cluster).await;
        stage.east.with(|state| state.cannot_copy = true);
        stage.relocate(&stage.west).await;
        stage.is("Relocating", "RunningFinalSync").await;
        stage.kill(&stage.west).await;
        let generation = stage.drpcs.get(DRPC).await.unwrap().metadata.generation.unwrap();
        annotate(&stage, annotations::CALLED_OFF, &format!("{generation}: cluster west is silent")).await;
        stage.waits("CalledOff").await;
        // Not by what east showed while its final sync ran.
        cluster
            .eventually("the application is placed on east again", || async {
                let placed = stage.placed().await;
                if placed == std::slice::from_ref(&stage.names.east) {
                    Ok(())
                } else {
                    Err(NotYet(format!("{placed:?}")))
                }
            })
            .await;
        stage.wake(&stage.west).await;
        stage.is("Deployed", "Completed").await;
        assert_eq!(stage.west.state.lock().reigns, Vec::<i64>::new(), "it is not tried again");
    }
);

on_both!(
    /// A policy that is called invalid keeps no deployed application from failing over.
    async fn an_invalid_policy_does_not_hold_a_failover(cluster: &Cluster) {
        let stage = deployed(cluster).await;
        let policies: Api<DRPolicy> = Api::all(cluster.client());
        let said = stage.condition("Validated", "False", "Error");
        let patch = Patch::Merge(json!({ "status": { "conditions": [said] } }));
        policies.patch_status(&stage.names.policy, &PatchParams::default(), &patch).await.unwrap();
        stage.waits("PolicyNotReady").await;
        stage.kill(&stage.east).await;
        stage.failover(&stage.west).await;
        stage.is("FailedOver", "Cleaning Up").await;
        assert_eq!(stage.placed().await[0], stage.names.west);
    }
);

on_both!(
    /// Stores that cannot be read hide nothing by that: a new application waits until they can, and is asked for again.
    async fn a_new_application_waits_for_stores(cluster: &Cluster) {
        let stage = Stage::new(cluster).await;
        stage.stores.reading.lock().unread.insert("s3-east".into(), "connection refused".into());
        stage.protect(|_| {}).await;
        stage.waits("StoresUnread").await;
        assert!(stage.intent(&stage.east).await.is_none());
        stage.stores.reading.lock().unread.clear();
        annotate(&stage, "touched", "1").await;
        annotate(&stage, annotations::FIRST_DEPLOYMENT, "true").await;
        stage.is("Deployed", "Completed").await;
    }
);

on_both!(
    /// Who changes his mind right after a failover began gets the application where he wants it in the end.
    async fn a_change_of_mind_ends(cluster: &Cluster) {
        let stage = deployed(cluster).await;
        stage.west.with(|state| state.cannot_restore = true);
        stage.failover(&stage.west).await;
        stage.is("FailingOver", "WaitingForResourceRestore").await;
        stage.failover(&stage.east).await;
        stage.is("FailedOver", "Completed").await;
        assert_eq!(stage.placed().await, std::slice::from_ref(&stage.names.east));
        assert_eq!(stage.east.state.lock().reigns, [1, 3]);
    }
);
