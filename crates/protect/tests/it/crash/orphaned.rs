//! Groups that are deleted without the order to end protection, told with a death at every effect.

use super::{Ground, SPACE, story, volume_of};
use crate::scene::Scene as Stage;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use lifeboat_api::annotations;
use lifeboat_protect::words::{ClaimWords as _, VolumeWords as _, Words as _};
use lifeboat_testbed::{Kind, Scene};
use serde_json::{Value, json};

fn mirrored(group: &mut Value) {
    group["metadata"]["annotations"] = json!({ annotations::EPOCH: "3" });
}

fn by_mover(group: &mut Value) {
    group["metadata"]["annotations"] = json!({ annotations::EPOCH: "3", annotations::USE_VOLSYNC: "true" });
}

/// The claim has the volume that it always had, which is not an orphan any more.
fn is_back(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let claim = scene.get::<PersistentVolumeClaim>(SPACE, "one").ok_or("no claim")?;
    let volume = volume_of(scene, &claim).ok_or("no volume")?;
    let epoch = scene.world.stores.record("west", SPACE, "web").map(|record| record.epoch);
    match (volume.name(), volume.note(annotations::ORPHANED_FROM), volume.is_retained(), epoch) {
        ("app-one", None, true, Some(3)) if claim.is_bound() => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

/// Deletes the group by hand; the agent makes it again.
async fn again(stage: &Stage, change: fn(&mut Value)) {
    stage.delete(&stage.groups, "web").await;
    stage.gone(&stage.groups, "web").await;
    stage.group("web", "primary", change).await;
}

#[test]
fn a_group_deleted_by_hand_survives_a_death_at_every_effect() {
    for (name, change) in [("mirrored", mirrored as fn(&mut Value)), ("copied", by_mover)] {
        let points = story(&format!("deleted by hand, {name}"))
            .expects(Kind::ObjectStore)
            .story(move |cluster, ground| async move {
                let stage = ground.stage(&cluster).await;
                stage.claim("one").await;
                stage.key("web").await;
                stage.group("web", "primary", change).await;
                stage.recorded("web").await;
                again(&stage, change).await;
                stage.recorded("web").await;
                stage.state("web", "Primary").await;
            })
            .converges(is_back)
            .run();
        assert!(points.len() >= 15, "{points:#?}");
    }
}

#[test]
fn an_orphan_and_its_restore_survive_a_death_at_every_effect() {
    for (name, change) in [("mirrored", mirrored as fn(&mut Value)), ("copied", by_mover)] {
        let points = story(&format!("orphaned, {name}"))
            .expects(Kind::ObjectStore)
            .story(move |cluster, ground| async move {
                let stage = ground.stage(&cluster).await;
                ground.given_up.lock().insert("one".to_owned());
                stage.claim("one").await;
                stage.key("web").await;
                stage.group("web", "primary", change).await;
                stage.recorded("web").await;
                // Both go, as with a namespace.
                stage.delete(&stage.groups, "web").await;
                stage.delete(&stage.claims, "one").await;
                stage.gone(&stage.groups, "web").await;
                stage.gone(&stage.claims, "one").await;
                stage.group("web", "primary", change).await;
                stage.says("web", "ClusterDataReady", "False", "Orphaned").await;
                let asked = json!({"metadata": {"annotations": {annotations::RESTORE_ORPHANS: "3"}}});
                stage.merge(&stage.groups, "web", asked).await;
                stage.recorded("web").await;
                stage.state("web", "Primary").await;
            })
            .converges(|scene| {
                is_back(scene)?;
                match scene.list::<PersistentVolume>().len() {
                    1 => Ok(()),
                    other => Err(format!("{other} volumes")),
                }
            })
            .run();
        assert!(points.len() >= 20, "{points:#?}");
    }
}
