//! A death at every effect: of the API server's writes, of the disks' changes, of the store's.

use super::ground::{
    Ground, create, delete, gone, grown, in_phase, made, released_by_node, stand_in, volumes,
};
use kube::api::{Patch, PatchParams};
use lifeboat_api::topolvm::{LogicalVolume, SnapshotPhase};
use lifeboat_node::volume::may_publish;
use lifeboat_testbed::{CrashStory, Kind, Process, Scene};
use serde_json::json;
use std::fs;

async fn run(process: Process<Ground>) {
    process.world.run(process.client, process.clock, process.points, "n1").await;
}

/// Whatever is on disk under an object's UID is complete: what people may use holds what it was restored from.
fn what_is_published_is_complete(scene: &Scene<'_, Ground>) -> Result<(), String> {
    for volume in scene.list::<LogicalVolume>() {
        let uid = volume.metadata.uid.clone().unwrap_or_default();
        let files = scene.world.files("n1", &uid);
        let restored = volume.metadata.name == Some(scene.world.name("pvc-2"));
        if restored
            && files
                .is_some_and(|files| fs::read_to_string(files.join("ledger")).ok().as_deref() != Some("ten"))
        {
            return Err("a half-restored volume is published".to_owned());
        }
        if may_publish(&volume).is_ok()
            && scene.world.files("n1", &uid).is_none()
            && volume.metadata.deletion_timestamp.is_none()
        {
            return Err(format!("{:?} may be used and is not there", volume.metadata.name));
        }
        if volume.status.as_ref().and_then(|status| status.code).unwrap_or(0) != 0 {
            return Err("a crash became a failure".to_owned());
        }
    }
    Ok(())
}

fn story(name: &str) -> CrashStory<Ground> {
    CrashStory::with(name, Ground::alone)
        .install(crate::definitions())
        .account("node")
        .controller(run)
        .expects(Kind::Api)
        .expects(Kind::Lvm)
        .order_may_differ()
        .invariant("what is published is complete", what_is_published_is_complete)
}

fn nothing_left(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let left = scene.world.volumes("n1");
    if left.is_empty() && scene.list::<LogicalVolume>().is_empty() {
        Ok(())
    } else {
        Err(format!("{left:?}"))
    }
}

#[test]
fn a_volumes_life_survives_a_death_at_every_effect() {
    let points = story("life")
        .story(|cluster, ground| async move {
            create(&cluster, &ground.plain("pvc-1", "n1")).await;
            made(&cluster, &ground.name("pvc-1")).await;
            let more = Patch::Merge(json!({"spec": {"size": "128Mi"}}));
            volumes(&cluster).patch(&ground.name("pvc-1"), &PatchParams::default(), &more).await.unwrap();
            grown(&cluster, &ground.name("pvc-1"), 128 << 20).await;
            delete(&cluster, &ground.name("pvc-1")).await;
            gone(&cluster, &ground.name("pvc-1")).await;
        })
        .converges(nothing_left)
        .run();
    assert!(points.len() >= 5, "{points:#?}");
}

#[test]
fn backup_and_restore_survive_a_death_at_every_effect() {
    let points = story("backup and restore")
        .story(|cluster, ground| async move {
            ground.offer_store(&cluster).await;
            create(&cluster, &ground.plain("pvc-1", "n1")).await;
            let origin = made(&cluster, &ground.name("pvc-1")).await;
            let files = ground.files("n1", origin.metadata.uid.as_deref().unwrap()).unwrap();
            fs::write(files.join("ledger"), "ten").unwrap();
            let taken = create(&cluster, &ground.online_snapshot("snapshot-1", &origin)).await;
            in_phase(&cluster, &ground.name("snapshot-1"), SnapshotPhase::Succeeded).await;
            // One thing after the other, so that every telling has its effects in the same order.
            released_by_node(&cluster, &ground.name("snapshot-1")).await;
            stand_in(&cluster, &ground.name("pvc-2")).await;
            create(&cluster, &ground.restored("pvc-2", "n1", taken.metadata.uid.as_deref().unwrap())).await;
            made(&cluster, &ground.name("pvc-2")).await;
        })
        .expects(Kind::Mover)
        .converges(|scene| {
            let left = scene.world.volumes("n1").len();
            let cleaned =
                scene.list::<LogicalVolume>().iter().filter(|volume| may_publish(volume).is_ok()).count();
            if (left, cleaned) == (2, 2) { Ok(()) } else { Err(format!("{left} on disk, {cleaned} usable")) }
        })
        .ends_may_differ()
        .run();
    assert!(points.len() >= 15, "{points:#?}");
}
