//! The flows, each told with a death at every effect.

use super::{SPACE, ours, story, volume_of};
use crate::scene::Scene as Stage;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::{Api, PostParams};
use lifeboat_api::annotations;
use lifeboat_api::replication::{ReplicationState, VolumeReplication};
use lifeboat_api::snapshot::VolumeSnapshot;
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_api::volsync::{ReplicationDestination, ReplicationSource};
use lifeboat_protect::ledger::Record;
use lifeboat_protect::words::{VolumeWords as _, Words as _};
use lifeboat_testbed::Kind;
use serde_json::{Value, json};

const BY_MOVER: &str = "drplacementcontrol.ramendr.openshift.io/use-volsync-for-pvc-protection";

fn by_mover(group: &mut Value) {
    group["metadata"]["annotations"] = json!({ BY_MOVER: "true" });
}

fn receives(group: &mut Value) {
    by_mover(group);
    group["spec"]["volSync"] = json!({ "rdSpec": [{ "protectedPVC": { "name": "one", "namespace": SPACE, "protectedByVolSync": true,
        "storageClassName": SPACE, "labels": { "app": "web" }, "accessModes": ["ReadWriteOnce"],
        "resources": { "requests": { "storage": "1Gi" } } } }] });
}

async fn turn(stage: &Stage, spec: Value) {
    stage.merge(&stage.groups, "web", json!({ "spec": spec })).await;
}

#[test]
fn a_primarys_life_survives_a_death_at_every_effect() {
    let points = story("primary")
        .expects(Kind::ObjectStore)
        .story(|cluster, ground| async move {
            let stage = ground.stage(&cluster).await;
            stage.claim("one").await;
            // Held by somebody else, too.
            let held = json!({"metadata": {"labels": {"held": "elsewhere"}, "finalizers": ["kubernetes.io/pvc-protection", "example.com/held"]}});
            stage.merge(&stage.claims, "one", held).await;
            stage.group("web", "primary", |_| {}).await;
            stage.says("web", "ClusterDataProtected", "True", "Uploaded").await;
            stage.state("web", "Primary").await;
            stage.end("web").await;
            stage.gone(&stage.groups, "web").await;
        })
        .converges(|scene| {
            let volume = scene.get::<PersistentVolume>("", "app-one").ok_or("no volume")?;
            if volume.policy() != "Delete" || volume.note(annotations::VR_RETAINED).is_some() {
                return Err(format!("{} was not given back", volume.name()));
            }
            match scene.world.stores.shelf.lock().records.is_empty() {
                true => Ok(()),
                false => Err("records are left".into()),
            }
        })
        .run();
    assert!(points.len() >= 12, "{points:#?}");
}

#[test]
fn going_and_coming_back_survives_a_death_at_every_effect() {
    let points = story("there and back")
        .expects(Kind::ObjectStore)
        .story(|cluster, ground| async move {
            let stage = ground.stage(&cluster).await;
            ground.promise("one", "handle-one");
            stage.claim("one").await;
            stage.group("web", "primary", |_| {}).await;
            stage.says("web", "ClusterDataProtected", "True", "Uploaded").await;
            stage.pod("app", &["one"]).await;
            turn(&stage, json!({"replicationState": "secondary", "action": "Relocate"})).await;
            stage.delete(&stage.claims, "one").await;
            stage.unpod("app").await;
            stage.gone(&stage.claims, "one").await;
            stage.state("web", "Secondary").await;
            turn(&stage, json!({"replicationState": "primary"})).await;
            stage.state("web", "Primary").await;
        })
        .converges(|scene| {
            let claim = scene.get::<PersistentVolumeClaim>(SPACE, "one").ok_or("the claim is not back")?;
            let volume = volume_of(scene, &claim).ok_or("no volume")?;
            let record = scene.world.stores.record("west", SPACE, "web").ok_or("no record")?;
            match (volume.claim_uid() == claim.uid(), record.epoch >= 2 && record.claims.len() == 1) {
                (true, true) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .run();
    assert!(points.len() >= 20, "{points:#?}");
}

#[test]
fn a_last_copy_survives_a_death_at_every_effect() {
    story("last copy")
        .story(|cluster, ground| async move {
            let stage = ground.stage(&cluster).await;
            stage.claim("one").await;
            stage.key("web").await;
            stage.group("web", "primary", by_mover).await;
            stage.says("web", "DataProtected", "True", "DataProtected").await;
            stage.pod("app", &["one"]).await;
            turn(&stage, json!({"runFinalSync": true, "action": "Relocate"})).await;
            stage.delete(&stage.claims, "one").await;
            stage.blocked("web", "InUse").await;
            stage.unpod("app").await;
            stage.group_is("web", |group| group.status.as_ref().unwrap().final_sync_complete).await;
            turn(&stage, json!({"replicationState": "secondary", "runFinalSync": false})).await;
            stage.gone(&stage.claims, "one").await;
            stage.state("web", "Secondary").await;
        })
        .converges(|scene| {
            let volume = scene.list::<PersistentVolume>().into_iter().next().ok_or("the volume is gone")?;
            match (volume.is_retained(), ours::<ReplicationSource>(scene).is_empty()) {
                (true, true) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .run();
}

/// A record as the other cluster wrote it: a volume on the disks of a node over there, which has another name here.
fn recorded(stage: &Stage, epoch: i64, here: &str) -> Record {
    let mut claim = stage.claim_json("one");
    claim.spec.as_mut().unwrap().volume_name = Some(format!("{SPACE}-one"));
    let mut volume = serde_json::to_value(stage.volume_json("one")).unwrap();
    let node = json!({ "key": "topology.topolvm.io/node", "operator": "In", "values": ["over-there"] });
    volume["spec"]["nodeAffinity"] =
        json!({ "required": { "nodeSelectorTerms": [{ "matchExpressions": [node] }] } });
    volume["spec"]["persistentVolumeReclaimPolicy"] = json!("Retain");
    volume["spec"]["claimRef"]["uid"] = json!("uid-over-there");
    volume["metadata"]["annotations"] =
        json!({ annotations::VR_RETAINED: "retained", annotations::DESTINATION_VOLUME_HANDLE: here });
    Record {
        epoch,
        cluster: "over-there".into(),
        volumes: vec![serde_json::from_value(volume).unwrap()],
        claims: vec![claim],
        group: serde_json::from_value(stage.group_json("web", "primary")).unwrap(),
        ..Record::default()
    }
}

async fn bytes(stage: &Stage, name: &str, node: &str) -> LogicalVolume {
    let volumes: Api<LogicalVolume> = Api::all(stage.cluster.client());
    let made = json!({
        "apiVersion": "topolvm.io/v1", "kind": "LogicalVolume", "metadata": { "name": name },
        "spec": { "name": name, "nodeName": node, "size": "1Gi", "deviceClass": "fast" },
    });
    volumes.create(&PostParams::default(), &serde_json::from_value(made).unwrap()).await.unwrap()
}

#[test]
fn a_failover_from_records_survives_a_death_at_every_effect() {
    let points = story("failover")
        .expects(Kind::ObjectStore)
        .story(|cluster, ground| async move {
            let stage = ground.stage(&cluster).await;
            let (old, new) = (bytes(&stage, "old", "node-a").await, bytes(&stage, "new", "node-b").await);
            ground.old.lock().insert(old.uid().to_owned());
            ground.promise("one", new.uid());
            // The nearer store missed the last change.
            stage.stores.put("east", SPACE, "web", recorded(&stage, 3, old.uid()));
            stage.stores.put("west", SPACE, "web", recorded(&stage, 7, new.uid()));
            stage.group("web", "primary", |group| group["spec"]["action"] = json!("Failover")).await;
            stage.says("web", "ClusterDataReady", "True", "Restored").await;
            stage.says("web", "ClusterDataProtected", "True", "Uploaded").await;
            stage.state("web", "Primary").await;
        })
        .converges(|scene| {
            for store in ["east", "west"] {
                let record = scene.world.stores.record(store, SPACE, "web").ok_or("no record")?;
                if record.epoch < 8 || record.claims.len() != 1 {
                    return Err(format!(
                        "{store} has {} claims of epoch {}",
                        record.claims.len(),
                        record.epoch
                    ));
                }
            }
            Ok(())
        })
        .run();
    assert!(points.len() >= 8, "{points:#?}");
}

#[test]
fn a_failover_from_images_survives_a_death_at_every_effect() {
    let points = story("failover from images")
        .story(|cluster, ground| async move {
            let stage = ground.stage(&cluster).await;
            stage.key("web").await;
            ground.promise("one", "one-20300101000000");
            stage.group("web", "secondary", receives).await;
            stage.state("web", "Secondary").await;
            let listens = |receiver: Option<&ReplicationDestination>| {
                receiver.is_some_and(|one| {
                    one.status.as_ref().is_some_and(|status| status.latest_image.is_some())
                })
            };
            cluster.until(&stage.destinations, "one", listens).await;
            // The hub loses its list for a moment: that removes nothing.
            turn(&stage, json!({"volSync": {"rdSpec": []}})).await;
            stage.state("web", "Secondary").await;
            let mut wish = json!({ "metadata": {}, "spec": {} });
            receives(&mut wish);
            stage.merge(&stage.groups, "web", wish).await;
            turn(
                &stage,
                json!({"replicationState": "primary", "action": "Failover", "s3Profiles": ["NoS3"]}),
            )
            .await;
            stage.says("web", "ClusterDataReady", "True", "Restored").await;
        })
        .converges(|scene| {
            let claim = scene.get::<PersistentVolumeClaim>(SPACE, "one").ok_or("no claim")?;
            let image = scene.list::<VolumeSnapshot>().into_iter().next().ok_or("no image")?;
            match claim.note(annotations::RESTORE).is_some()
                && image.label("volsync.backube/do-not-delete") == Some("true")
            {
                true => Ok(()),
                false => Err("not restored".into()),
            }
        })
        .run();
    assert!(points.len() >= 6, "{points:#?}");
}

#[test]
fn a_claim_that_is_received_into_survives_a_death_at_every_effect() {
    story("received into")
        .story(|cluster, ground| async move {
            let stage = ground.stage(&cluster).await;
            stage.configure("volSync:\n  destinationCopyMethod: Direct\n").await;
            stage.key("web").await;
            ground.promise("one", "handle-one");
            stage.volumes.create(&PostParams::default(), &stage.volume_json("one")).await.unwrap();
            stage.group("web", "secondary", receives).await;
            let listens = |receiver: Option<&ReplicationDestination>| {
                receiver.is_some_and(|one| {
                    one.status.as_ref().is_some_and(|status| status.latest_image.is_some())
                })
            };
            cluster.until(&stage.destinations, "one", listens).await;
            stage.bound("one").await;
            turn(
                &stage,
                json!({"replicationState": "primary", "action": "Failover", "s3Profiles": ["NoS3"]}),
            )
            .await;
            stage.says("web", "ClusterDataReady", "True", "Restored").await;
            stage.gone(&stage.destinations, "one").await;
            stage.says("web", "DataProtected", "True", "DataProtected").await;
        })
        .converges(|scene| match ours::<ReplicationSource>(scene).len() {
            1 => Ok(()),
            other => Err(format!("{other} senders")),
        })
        .run();
}

#[test]
fn an_old_primary_that_returns_survives_a_death_at_every_effect() {
    story("return and delete as secondary")
        .expects(Kind::ObjectStore)
        .story(|cluster, ground| async move {
            let stage = ground.stage(&cluster).await;
            stage.claim("one").await;
            stage.group("web", "primary", |_| {}).await;
            stage.says("web", "ClusterDataProtected", "True", "Uploaded").await;
            // After a failover the application is still listed here, and filled from the other side.
            turn(&stage, json!({"replicationState": "secondary", "action": "Failover"})).await;
            stage.state("web", "Secondary").await;
            let demoted = |one: Option<&VolumeReplication>| {
                one.is_some_and(|one| {
                    one.spec.replication_state == ReplicationState::Secondary && one.spec.auto_resync
                })
            };
            cluster.until(&stage.replications, "one", demoted).await;
            stage.end("web").await;
            stage.gone(&stage.groups, "web").await;
        })
        .converges(|scene| {
            let volume = scene.get::<PersistentVolume>("", "app-one").ok_or("no volume")?;
            let records = scene.world.stores.shelf.lock().records.len();
            match (volume.is_retained(), records) {
                (true, 2) => Ok(()),
                other => Err(format!("{other:?}: the replica and the records stay")),
            }
        })
        .run();
}

#[test]
fn a_deletion_in_the_middle_of_a_move_survives_a_death_at_every_effect() {
    story("deleted while it moves")
        .story(|cluster, ground| async move {
            let stage = ground.stage(&cluster).await;
            stage.claim("one").await;
            stage.key("web").await;
            stage.group("web", "primary", by_mover).await;
            stage.says("web", "DataProtected", "True", "DataProtected").await;
            turn(&stage, json!({"prepareForFinalSync": true, "action": "Relocate"})).await;
            stage
                .group_is("web", |group| group.status.as_ref().unwrap().prepare_for_final_sync_complete)
                .await;
            turn(&stage, json!({"prepareForFinalSync": false, "runFinalSync": true})).await;
            stage.delete(&stage.claims, "one").await;
            stage.end("web").await;
            stage.gone(&stage.groups, "web").await;
            stage.gone(&stage.claims, "one").await;
        })
        .converges(|scene| {
            // The claim was its user's to delete; the data is not ours to lose.
            let volume = scene.get::<PersistentVolume>("", "app-one").ok_or("the volume is gone")?;
            match volume.is_retained() {
                true => Ok(()),
                false => Err("the volume may be thrown away".into()),
            }
        })
        .run();
}
