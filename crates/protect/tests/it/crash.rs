//! A death at every effect, of the API server's writes and of the stores', with what must hold looked at after every single write.

use crate::ledger::Shelves;
use crate::scene::{Scene as Stage, furnish, run_binder, run_protector};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::{Api, PostParams};
use lifeboat_api::ramen::{VolumeReplicationGroup, VrgState};
use lifeboat_api::replication::{ReplicationState, State, VolumeReplication};
use lifeboat_api::{annotations, finalizers};
use lifeboat_protect::words::{VolumeWords as _, Words as _};
use lifeboat_testbed::{Cluster, CrashStory, Kind, Process, Scene, Task};
use parking_lot::Mutex;
use serde_json::json;
use std::sync::Arc;

const SPACE: &str = "app";

#[derive(Clone, Default)]
struct Ground {
    stores: Shelves,
    tasks: Arc<Mutex<Vec<Task>>>,
}

impl Ground {
    /// The namespace with all that a group needs, a binder and played drivers, which outlive every death.
    async fn stage(&self, cluster: &Cluster) -> Stage {
        let namespaces: Api<Namespace> = Api::all(cluster.client());
        let named = kube::api::ObjectMeta { name: Some(SPACE.into()), ..Default::default() };
        namespaces
            .create(&PostParams::default(), &Namespace { metadata: named, ..Default::default() })
            .await
            .unwrap();
        furnish(cluster, SPACE).await;
        let stage = Stage::over(cluster, SPACE, self.stores.clone());
        let mut tasks = self.tasks.lock();
        tasks.push(Task::spawn(run_binder(cluster.client(), cluster.clock())));
        tasks.push(Task::spawn(stage.player.clone().run()));
        drop(tasks);
        stage
    }
}

async fn run(process: Process<Ground>) {
    let ledger = Shelves { points: Some(process.points), ..process.world.stores.clone() };
    run_protector(process.client, process.clock, SPACE.into(), Arc::new(ledger)).await;
}

fn claims(scene: &Scene<'_, Ground>) -> Vec<PersistentVolumeClaim> {
    scene.list::<PersistentVolumeClaim>().into_iter().filter(|claim| claim.space() == SPACE).collect()
}

fn volume_of(scene: &Scene<'_, Ground>, claim: &PersistentVolumeClaim) -> Option<PersistentVolume> {
    scene.get::<PersistentVolume>("", claim.spec.as_ref()?.volume_name.as_deref()?)
}

/// S10: nothing of ours ever owns a claim.
fn nobody_owns_claims(scene: &Scene<'_, Ground>) -> Result<(), String> {
    match claims(scene)
        .iter()
        .find(|claim| claim.metadata.owner_references.as_ref().is_some_and(|all| !all.is_empty()))
    {
        Some(claim) => Err(format!("{} has an owner", claim.name())),
        None => Ok(()),
    }
}

/// S11: what is marked as protected is kept, and a volume of ours is never marked without being kept.
fn protected_is_retained(scene: &Scene<'_, Ground>) -> Result<(), String> {
    for claim in claims(scene).iter().filter(|claim| claim.note(annotations::VR_PROTECTED).is_some()) {
        let going = scene.get::<VolumeReplicationGroup>(SPACE, "web").is_none_or(|group| group.is_going());
        let volume = volume_of(scene, claim).ok_or("no volume")?;
        // The undo gives the policy back before it takes the mark off the claim.
        if !volume.is_retained() && !going && !claim.is_going() && claim.label("app") == Some("web") {
            return Err(format!("{} is protected and its volume is not kept", claim.name()));
        }
    }
    for volume in scene.list::<PersistentVolume>() {
        let marked = volume.note(annotations::VR_RETAINED).is_some()
            || volume.note(annotations::VOLSYNC_RETAINED).is_some();
        if marked && !volume.is_retained() {
            return Err(format!("{} is marked and not kept", volume.name()));
        }
    }
    Ok(())
}

/// S12: who says that all is recorded has it in every store, at its epoch.
fn recorded_is_recorded(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let Some(group) = scene.get::<VolumeReplicationGroup>(SPACE, "web") else { return Ok(()) };
    let status = group.status.clone().unwrap_or_default();
    let said = status.conditions.iter().find(|one| one.type_ == "ClusterDataProtected");
    let says = said.is_some_and(|one| {
        one.status == "True" && one.reason != "Unused" && one.observed_generation == group.metadata.generation
    });
    if !says || group.is_going() {
        return Ok(());
    }
    for store in ["east", "west"] {
        let record =
            scene.world.stores.record(store, SPACE, "web").ok_or(format!("{store} has no record"))?;
        if Some(record.epoch) != status.primary_epoch {
            return Err(format!(
                "{store} has epoch {} and the group {:?}",
                record.epoch, status.primary_epoch
            ));
        }
        for entry in status.protected_pvcs.iter().filter(|entry| !entry.protected_by_vol_sync) {
            if !record.claims.iter().any(|claim| Some(claim.name()) == entry.name.as_deref()) {
                return Err(format!("{store} has no record of {:?}", entry.name));
            }
        }
    }
    Ok(())
}

/// S13: who says that he is primary has volumes that are.
fn primary_is_primary(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let Some(group) = scene.get::<VolumeReplicationGroup>(SPACE, "web") else { return Ok(()) };
    let status = group.status.clone().unwrap_or_default();
    let current = status.observed_generation == group.metadata.generation && !group.is_going();
    if status.state != Some(VrgState::Primary) || !current {
        return Ok(());
    }
    for entry in status.protected_pvcs.iter().filter(|entry| !entry.protected_by_vol_sync) {
        let name = entry.name.as_deref().unwrap_or_default();
        let claim = scene.get::<PersistentVolumeClaim>(SPACE, name);
        if claim.is_none_or(|claim| claim.is_going() || claim.label("app") != Some("web")) {
            continue;
        }
        let replication =
            scene.get::<VolumeReplication>(SPACE, name).ok_or(format!("{name} has no replication"))?;
        if replication.status.as_ref().and_then(|status| status.state.clone()) != Some(State::Primary) {
            return Err(format!("{name} is not primary"));
        }
    }
    Ok(())
}

/// S24: who is gone has left nothing on others, and no record if he went as primary.
fn gone_without_a_trace(scene: &Scene<'_, Ground>) -> Result<(), String> {
    if scene.get::<VolumeReplicationGroup>(SPACE, "web").is_some() {
        return Ok(());
    }
    let held = |claim: &&PersistentVolumeClaim| {
        claim.has_finalizer(finalizers::PVC_VR) || claim.has_finalizer(finalizers::PVC_VOLSYNC)
    };
    if let Some(claim) = claims(scene).iter().find(held) {
        return Err(format!("{} is held by nobody", claim.name()));
    }
    match scene.list::<VolumeReplication>().first() {
        Some(left) => Err(format!("the replication {} is left", left.name())),
        None => Ok(()),
    }
}

/// S29, S31: only a group that asks for it is demoted, and only while nobody uses the claim.
fn demoted_at_rest(scene: &Scene<'_, Ground>) -> Result<(), String> {
    let Some(group) = scene.get::<VolumeReplicationGroup>(SPACE, "web") else { return Ok(()) };
    for replication in scene.list::<VolumeReplication>() {
        if replication.spec.replication_state != ReplicationState::Secondary {
            continue;
        }
        if scene.list::<Pod>().iter().any(|pod| pod.space() == SPACE) {
            return Err(format!("{} was demoted while it is in use", replication.name()));
        }
        if group.metadata.generation == Some(1) {
            return Err(format!("{} was demoted and nobody asked", replication.name()));
        }
    }
    Ok(())
}

/// The kinds that these stories touch: a telling installs them anew.
fn needed()
-> Vec<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition> {
    let kinds = [
        "VolumeReplicationGroup",
        "VolumeReplication",
        "VolumeReplicationClass",
        "VolumeGroupReplicationClass",
        "ReplicationSource",
        "ReplicationDestination",
    ];
    let mut all = lifeboat_api::crds();
    all.retain(|one| kinds.contains(&one.spec.names.kind.as_str()));
    all
}

fn story(name: &str) -> CrashStory<Ground> {
    CrashStory::with(name, Ground::default)
        .install(needed())
        .account("protector")
        .controller(run)
        .expects(Kind::Api)
        .quiet_for(std::time::Duration::from_secs(20))
        .invariant("S10 nobody owns claims", nobody_owns_claims)
        .invariant("S11 protected is retained", protected_is_retained)
        .invariant("S12 recorded is recorded", recorded_is_recorded)
        .invariant("S13 primary is primary", primary_is_primary)
        .invariant("S24 gone without a trace", gone_without_a_trace)
        .invariant("S29 S31 demoted at rest", demoted_at_rest)
        .ends_may_differ()
}

#[tokio::test(start_paused = true)]
async fn a_primarys_life_survives_a_death_at_every_effect() {
    let points = story("primary")
        .expects(Kind::ObjectStore)
        .story(|cluster, ground| async move {
            let stage = ground.stage(&cluster).await;
            stage.claim("one").await;
            stage.group("web", "primary", |_| {}).await;
            stage.says("web", "ClusterDataProtected", "True", "Uploaded").await;
            stage.state("web", "Primary").await;
            stage.delete(&stage.groups, "web").await;
            stage.gone(&stage.groups, "web").await;
        })
        .converges(|scene| {
            let volume = scene.list::<PersistentVolume>().into_iter().next().ok_or("no volume")?;
            if volume.policy() != "Delete" || volume.note(annotations::VR_RETAINED).is_some() {
                return Err(format!("{} was not given back", volume.name()));
            }
            match scene.world.stores.shelf.lock().records.is_empty() {
                true => Ok(()),
                false => Err("records are left".into()),
            }
        })
        .run()
        .await;
    assert!(points.len() >= 12, "{points:#?}");
}

#[tokio::test(start_paused = true)]
async fn going_and_coming_back_survives_a_death_at_every_effect() {
    let points = story("there and back")
        .expects(Kind::ObjectStore)
        .story(|cluster, ground| async move {
            let stage = ground.stage(&cluster).await;
            stage.claim("one").await;
            stage.group("web", "primary", |_| {}).await;
            stage.says("web", "ClusterDataProtected", "True", "Uploaded").await;
            stage.pod("app", &["one"]).await;
            stage
                .merge(
                    &stage.groups,
                    "web",
                    json!({"spec": {"replicationState": "secondary", "action": "Relocate"}}),
                )
                .await;
            stage.delete(&stage.claims, "one").await;
            stage.unpod("app").await;
            stage.gone(&stage.claims, "one").await;
            stage.state("web", "Secondary").await;
            stage.merge(&stage.groups, "web", json!({"spec": {"replicationState": "primary"}})).await;
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
        .run()
        .await;
    assert!(points.len() >= 20, "{points:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_last_copy_survives_a_death_at_every_effect() {
    story("last copy")
        .story(|cluster, ground| async move {
            let stage = ground.stage(&cluster).await;
            stage.claim("one").await;
            stage.key("web").await;
            stage
                .group("web", "primary", |group| {
                    group["metadata"]["annotations"] =
                        json!({ "drplacementcontrol.ramendr.openshift.io/use-volsync-for-pvc-protection": "true" });
                })
                .await;
            stage.says("web", "DataProtected", "True", "DataProtected").await;
            stage.merge(&stage.groups, "web", json!({"spec": {"runFinalSync": true, "action": "Relocate"}})).await;
            stage.delete(&stage.claims, "one").await;
            stage.group_is("web", |group| group.status.as_ref().unwrap().final_sync_complete).await;
            stage
                .merge(&stage.groups, "web", json!({"spec": {"replicationState": "secondary", "runFinalSync": false}}))
                .await;
            stage.gone(&stage.claims, "one").await;
        })
        .converges(|scene| {
            let volume = scene.list::<PersistentVolume>().into_iter().next().ok_or("the volume is gone")?;
            let sources = scene.list::<lifeboat_api::volsync::ReplicationSource>();
            match (volume.is_retained(), sources.is_empty()) {
                (true, true) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .run()
        .await;
}
