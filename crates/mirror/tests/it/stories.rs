//! What is promised, told on two clusters with real bytes.

use crate::side::{DRIVER, Side, condition, state};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use lifeboat_api::annotations;
use lifeboat_api::csiaddons::{FenceResult, FenceSecret, FenceState, NetworkFence};
use lifeboat_api::ramen::{MMode, MModeState, MaintenanceMode};
use lifeboat_api::replication::VolumeReplication;
use lifeboat_testbed::{Cluster, fixtures};
use serde_json::json;

/// East has a volume with one file and mirrors it to west; gives both ids.
async fn protected(east: &Side, west: &Side) -> (String, String) {
    east.start().await;
    west.start().await;
    east.know(west, "1s").await;
    west.know(east, "1s").await;
    let uid = east.make(&format!("pvc-{}", east.mark)).await;
    east.write(&uid, "ledger", "one");
    east.bind("data", &uid).await;
    let since = east.now();
    east.wish("data", "primary", false).await;
    let told = east.synced("data", jiff::Timestamp::from_second(since.as_second()).unwrap()).await;
    let peer = told.status.unwrap().destination_volume_id.unwrap();
    (uid, peer)
}

async fn both() -> (Side, Side) {
    (Side::on(Cluster::embedded()).await, Side::on(Cluster::embedded()).await)
}

#[tokio::test]
async fn what_a_primary_writes_is_at_the_peer_after_every_interval() {
    let (east, west) = both().await;
    let (uid, peer) = protected(&east, &west).await;
    let told = east.primary("data").await;
    assert_eq!(condition(&told, "Replicating"), "True Replicating");
    assert_eq!(condition(&told, "DestinationInfoAvailable"), "True DestinationInfoUpdated");
    assert_eq!(condition(&told, "Validated"), "True PrerequisiteMet");
    let first = told.status.unwrap().last_sync_time.unwrap().0;
    east.write(&uid, "ledger", "two");
    east.write(&uid, "more", "three");
    east.synced("data", first + jiff::SignedDuration::from_secs(1)).await;
    let replica = format!("replica-{peer}");
    west.cluster
        .eventually("the second generation", || async {
            match west.volumes().contains(&replica) && west.content(&replica) == east.content(&uid) {
                true => Ok(()),
                false => Err(lifeboat_testbed::NotYet(format!("{:?}", west.volumes()))),
            }
        })
        .await;
}

#[tokio::test]
async fn a_lost_primary_is_replaced_by_the_last_complete_copy_and_takes_the_peers_data_when_it_returns() {
    let (east, west) = both().await;
    let (uid, peer) = protected(&east, &west).await;
    // Never sent: this is what the failover loses, and what is kept aside until it is replaced.
    east.write(&uid, "ledger", "lost");
    east.kill().await;
    west.bind("data", &peer).await;
    west.wish("data", "primary", false).await;
    west.primary("data").await;
    assert_eq!(west.content(&peer), [("ledger".to_owned(), "one".to_owned())].into());
    west.write(&peer, "ledger", "after");
    east.start().await;
    east.wish("data", "secondary", true).await;
    east.secondary("data").await;
    assert_eq!(east.replica(&uid).await, west.content(&peer));
    let kept = format!("diverged-{uid}");
    east.cluster
        .eventually("the diverged copy goes", || async {
            if east.volumes().contains(&kept) { Err(lifeboat_testbed::NotYet(kept.clone())) } else { Ok(()) }
        })
        .await;
    // And home again, with nothing lost.
    west.write(&peer, "ledger", "last");
    west.wish("data", "secondary", false).await;
    west.secondary("data").await;
    east.wish("data", "primary", false).await;
    east.primary("data").await;
    assert_eq!(east.content(&uid), [("ledger".to_owned(), "last".to_owned())].into());
}

#[tokio::test]
async fn a_relocation_loses_nothing() {
    let (east, west) = both().await;
    relocates(east, west).await;
}

#[tokio::test]
async fn a_real_api_server_agrees() {
    let Some(real) = Cluster::real("mirror::a_real_api_server_agrees").await else { return };
    relocates(Side::on(real).await, Side::on(Cluster::embedded()).await).await;
}

async fn relocates(east: Side, west: Side) {
    let (uid, peer) = protected(&east, &west).await;
    east.write(&uid, "ledger", "the last word");
    east.wish("data", "secondary", false).await;
    east.secondary("data").await;
    assert!(!east.volumes().contains(&uid), "a secondary cannot be used: {:?}", east.volumes());
    // The old side lets its claim and its VolumeReplication go; its volume stays the replica.
    east.delete("data").await;
    west.bind("data", &peer).await;
    west.wish("data", "primary", false).await;
    west.primary("data").await;
    assert_eq!(west.content(&peer), [("ledger".to_owned(), "the last word".to_owned())].into());
    west.write(&peer, "ledger", "from west");
    let since = west.now();
    west.synced("data", since).await;
    let replica = format!("replica-{uid}");
    east.cluster
        .eventually("west's writes", || async {
            match east.volumes().contains(&replica) && east.content(&replica) == west.content(&peer) {
                true => Ok(()),
                false => Err(lifeboat_testbed::NotYet(format!("{:?}", east.volumes()))),
            }
        })
        .await;
    let told = west.primary("data").await;
    assert_eq!(told.status.unwrap().destination_volume_id.as_deref(), Some(&*uid));
}

#[tokio::test]
async fn two_primaries_are_refused_until_somebody_insists() {
    let (east, west) = both().await;
    let (uid, peer) = protected(&east, &west).await;
    east.replications().patch("data", &PatchParams::default(), &epoch(7)).await.unwrap();
    east.says("data", |one, is| state(one) == "Primary" && is("Completed") == "True Promoted").await;
    west.bind("data", &peer).await;
    west.wish("data", "primary", false).await;
    // Its epoch is given to it, and is that of the living primary.
    west.replications().patch("data", &PatchParams::default(), &epoch(7)).await.unwrap();
    let refused = west
        .says("data", |one, is| {
            is("Completed") == "False FailedToPromote"
                && one.status.as_ref().unwrap().message.as_ref().unwrap().contains("primary at epoch")
        })
        .await;
    assert_ne!(state(&refused), "Primary");
    assert!(!west.volumes().contains(&peer));
    let insist =
        Patch::Merge(json!({ "metadata": { "annotations": { annotations::FORCE_PROMOTE: "true" } } }));
    west.replications().patch("data", &PatchParams::default(), &insist).await.unwrap();
    west.primary("data").await;
    assert_eq!(west.content(&peer), [("ledger".to_owned(), "one".to_owned())].into());
    let _ = uid;
}

#[tokio::test]
async fn a_claim_in_use_is_not_made_secondary() {
    let (east, west) = both().await;
    let (uid, peer) = protected(&east, &west).await;
    let pods: Api<Pod> = Api::namespaced(east.cluster.client(), &east.mark);
    pods.create(&PostParams::default(), &fixtures::pod(&east.mark, "web", &["data"])).await.unwrap();
    let pod =
        |one: &VolumeReplication| one.status.as_ref().unwrap().message.clone().unwrap().contains("pod web");
    east.wish("data", "secondary", false).await;
    east.says("data", |one, is| is("Completed") == "False FailedToDemote" && pod(one)).await;
    assert!(east.volumes().contains(&uid));
    // Written until the last moment: all of it is at the peer.
    east.write(&uid, "ledger", "until the end");
    pods.delete("web", &DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() })
        .await
        .unwrap();
    east.secondary("data").await;
    west.bind("data", &peer).await;
    west.wish("data", "primary", false).await;
    west.primary("data").await;
    assert_eq!(west.content(&peer), [("ledger".to_owned(), "until the end".to_owned())].into());
}

#[tokio::test]
async fn a_maintenance_mode_stands_when_nothing_is_received_any_more() {
    let (east, west) = both().await;
    let (_, peer) = protected(&east, &west).await;
    let modes: Api<MaintenanceMode> = Api::all(west.cluster.client());
    let mut mode = MaintenanceMode::default();
    mode.metadata.name = Some("pair-1".into());
    mode.spec.storage_provisioner = DRIVER.to_owned();
    mode.spec.target_id = Some("pair-1".into());
    mode.spec.modes = vec![MMode::Failover];
    modes.create(&PostParams::default(), &mode).await.unwrap();
    let active = |mode: Option<&MaintenanceMode>| {
        let status = mode.and_then(|mode| mode.status.clone()).unwrap_or_default();
        status.state == Some(MModeState::Completed)
            && status.conditions.iter().any(|it| it.type_ == "FailoverActivated" && it.status == "True")
    };
    west.wait(&modes, "pair-1", active).await;
    let told = east.says("data", |_, is| is("Replicating") == "False NotReplicating").await;
    assert_eq!(condition(&told, "Completed"), "True Promoted");
    // The copies stand still, and can be made primary.
    west.bind("data", &peer).await;
    east.kill().await;
    west.wish("data", "primary", false).await;
    west.primary("data").await;
}

#[tokio::test]
async fn who_is_fenced_gets_no_byte_in_until_it_is_let_in_again() {
    let (east, west) = both().await;
    let (uid, peer) = protected(&east, &west).await;
    let fences: Api<NetworkFence> = Api::all(west.cluster.client());
    let mut fence = NetworkFence::default();
    fence.metadata.name = Some("network-fence-east".into());
    fence.spec.driver = Some(DRIVER.to_owned());
    fence.spec.fence_state = FenceState::Fenced;
    fence.spec.cidrs = vec!["127.0.0.0/8".into()];
    fence.spec.secret = Some(FenceSecret { name: Some("x".into()), namespace: Some("x".into()) });
    fences.create(&PostParams::default(), &fence).await.unwrap();
    let answered = |word: &'static str| {
        move |fence: Option<&NetworkFence>| {
            let status = fence.and_then(|fence| fence.status.clone()).unwrap_or_default();
            status.result == Some(FenceResult::Succeeded) && status.message.as_deref() == Some(word)
        }
    };
    west.wait(&fences, "network-fence-east", answered("fencing operation successful")).await;
    east.write(&uid, "ledger", "behind the fence");
    let cut_off = |one: &VolumeReplication| {
        let conditions = &one.status.as_ref().unwrap().conditions;
        conditions.iter().any(|it| it.type_ == "Replicating" && it.message.contains("NetworkFence"))
    };
    east.says("data", |one, _| cut_off(one)).await;
    assert_eq!(west.replica(&peer).await["ledger"], "one");
    let lift = Patch::Merge(json!({ "spec": { "fenceState": "Unfenced" } }));
    fences.patch("network-fence-east", &PatchParams::default(), &lift).await.unwrap();
    west.wait(&fences, "network-fence-east", answered("unfencing operation successful")).await;
    west.cluster
        .eventually("what was written behind the fence", || async {
            match west.replica(&peer).await["ledger"].as_str() {
                "behind the fence" => Ok(()),
                other => Err(lifeboat_testbed::NotYet(other.to_owned())),
            }
        })
        .await;
}

#[tokio::test]
async fn the_peers_place_grows_with_the_volume_and_goes_when_it_is_deleted() {
    let (east, west) = both().await;
    let (_, peer) = protected(&east, &west).await;
    let name = format!("pvc-{}", east.mark);
    let more = Patch::Merge(json!({ "spec": { "size": "128Mi" } }));
    east.logical().patch(&name, &PatchParams::default(), &more).await.unwrap();
    west.wait(&west.logical(), &name, |place| place.is_some_and(|place| place.spec.size.0 == "128Mi")).await;
    let since = east.now();
    east.synced("data", since).await;
    east.delete("data").await;
    // The peer's copy stays.
    west.replica(&peer).await;
    west.logical().delete(&name, &DeleteParams::default()).await.unwrap();
    west.wait(&west.logical(), &name, |place| place.is_none()).await;
    assert_eq!(west.volumes(), [].into());
}

fn epoch(number: u64) -> Patch<serde_json::Value> {
    Patch::Merge(json!({ "metadata": { "annotations": { annotations::EPOCH: number.to_string() } } }))
}

/// What can be seen of a change of roles: it changes with every step of either side.
async fn step(sides: [&Side; 2]) -> String {
    let mut seen = String::new();
    for side in sides {
        let one = side.replications().get("data").await.unwrap();
        let told = one.status.unwrap_or_default();
        let volumes = side.logical().list(&Default::default()).await.unwrap();
        let notes: Vec<_> = volumes.items.iter().map(|one| one.metadata.annotations.clone()).collect();
        seen += &format!("{:?} {:?} {notes:?} {:?} ", told.state, told.message, side.volumes());
    }
    seen
}

/// Gives the roles as a hub does: the old primary hears of it first.
async fn hand_over(from: &Side, to: &Side, number: u64) {
    for (side, role) in [(from, "secondary"), (to, "primary")] {
        // In one write: an epoch that comes before its role is an order to be primary at it.
        let patch = Patch::Merge(json!({
            "metadata": { "annotations": { annotations::EPOCH: number.to_string() } },
            "spec": { "replicationState": role, "autoResync": role == "secondary" },
        }));
        side.replications().patch("data", &PatchParams::default(), &patch).await.unwrap();
    }
}

#[tokio::test]
async fn roles_that_are_changed_back_at_any_step_settle_by_themselves() {
    let (east, west) = both().await;
    let (uid, peer) = protected(&east, &west).await;
    west.bind("data", &peer).await;
    west.wish("data", "secondary", true).await;
    west.secondary("data").await;
    let mut number = 1;
    // A move has few steps that can be seen; which one a round ends in is chance as well.
    for steps in 0..6 {
        number += 1;
        hand_over(&east, &west, number).await;
        let (mut count, mut last) = (0, step([&east, &west]).await);
        let over = |one: &VolumeReplication| {
            state(one) == "Primary" && condition(one, "Completed") == "True Promoted"
        };
        let mut done = false;
        while count < steps && !done {
            tokio::task::yield_now().await;
            let now = step([&east, &west]).await;
            count += usize::from(now != last);
            last = now;
            done = over(&west.replications().get("data").await.unwrap());
        }
        // The user has changed their mind.
        number += 1;
        hand_over(&west, &east, number).await;
        east.primary("data").await;
        west.secondary("data").await;
        east.write(&uid, "ledger", &format!("after {steps}"));
        let replica = format!("replica-{peer}");
        let look = || async {
            match west.glimpse(&replica) == Some(east.content(&uid)) {
                true => Ok(()),
                false => Err(lifeboat_testbed::NotYet(format!("step {steps}: {:?}", west.volumes()))),
            }
        };
        west.cluster.eventually("what the primary writes arrives", look).await;
    }
}
