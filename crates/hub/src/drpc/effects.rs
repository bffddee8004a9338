//! Act: carries out what was decided about a DRPlacementControl. Every write names its object by identity and version; a change of role or a
//! deletion follows a read from the server itself, of the object and of the commission that it follows from.

mod owning;
mod placing;
mod releasing;

use crate::drpc::commission::{Commission, epoch_on};
use crate::drpc::decide::{DrpcDecision, Effect, decide};
use crate::drpc::group;
use crate::drpc::look::Drpcs;
use crate::drpc::status::reference;
use crate::drpc::why::Wait;
use crate::drpc::world::World;
use crate::words::{Words as _, difference};
use crate::{secrets, views, works};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::Patch;
use lifeboat_api::annotations;
use lifeboat_api::conditions::drpc::events;
use lifeboat_api::ramen::{
    DRPlacementControl, DRPlacementControlStatus, DRState, ReplicationState, VolumeReplicationGroup,
};
use lifeboat_engine::{Class, Controller, EffectError, Level, ObjectKey, Trouble};
use serde_json::{Value, json};
use std::sync::Arc;

/// The world was not as it was when this was decided.
fn stale(what: impl Into<String>) -> EffectError {
    EffectError::new(Class::Stale, what)
}

impl Drpcs {
    fn known(&self, key: &ObjectKey) -> Result<World, EffectError> {
        self.world(key, None).ok_or_else(|| stale(format!("DRPlacementControl {key} is gone")))
    }

    /// The object as the server has it; refused where it is another one than was decided about.
    async fn live(&self, key: &ObjectKey) -> Result<Arc<DRPlacementControl>, EffectError> {
        let uid = self.known(key)?.drpc.uid().to_owned();
        let live = self.watched.drpcs.read(key).await?;
        live.filter(|live| live.uid() == uid)
            .ok_or_else(|| stale(format!("DRPlacementControl {key} is another one now")))
    }

    async fn commission(
        &self,
        key: &ObjectKey,
        given: &Commission,
        after: i64,
        asked: i64,
    ) -> Result<(), EffectError> {
        // Written over this very version or not at all, so what the server has need not be read first.
        let known = self.known(key)?.drpc;
        if known.generation() != asked {
            return Err(stale(format!("DRPlacementControl {key} asks for something else by now")));
        }
        let on_record = epoch_on(&*known);
        if on_record != after || given.epoch < on_record {
            return Err(stale(format!("DRPlacementControl {key} is at epoch {on_record}, not {after}")));
        }
        if Commission::on(&*known).as_ref() == Some(given) {
            return Ok(());
        }
        let mut metadata = known.guard();
        metadata["annotations"] = json!(given.notes());
        self.watched.drpcs.patch(key, &Patch::Merge(json!({ "metadata": metadata }))).await.map(drop)
    }

    async fn put_group(
        &self,
        key: &ObjectKey,
        cluster: &str,
        role: &ReplicationState,
        over: Option<String>,
        group: &VolumeReplicationGroup,
    ) -> Result<(), EffectError> {
        let world = self.known(key)?;
        let wanted = group::work(&world, cluster, group);
        let place = ObjectKey::of(&wanted);
        let site = world.site(cluster);
        let meant = site.and_then(|site| site.intent.as_ref()).map(|intent| &intent.spec.replication_state);
        if meant != Some(role) {
            let live = self.live(key).await?;
            if Commission::on(&*live) != Commission::on(group) {
                return Err(stale(format!("DRPlacementControl {key} has given out another epoch since")));
            }
        }
        // The work is made where there is none, or changed in this version: whoever was quicker is told so by the server.
        let known = self.watched.works.get(&place).and_then(|work| work.metadata.resource_version.clone());
        if known != over {
            return Err(stale(format!("ManifestWork {place} has changed since")));
        }
        works::put(&self.watched.works, &wanted).await
    }

    async fn read_stores(&self, key: &ObjectKey) -> Result<(), EffectError> {
        let world = self.known(key)?;
        let mut profiles = group::profiles(&world);
        profiles.retain(|name| name != lifeboat_api::ramen::NO_S3);
        let fleet = world.fleet_of_groups();
        let reading = self.ledger.read(&profiles, &world.group_key(), fleet.as_deref()).await;
        self.readings.lock().insert(key.clone(), (reading, self.watched.clock.now()));
        Ok(())
    }

    async fn note_placed(
        &self,
        key: &ObjectKey,
        cluster: &str,
        id: Option<String>,
        action: &str,
    ) -> Result<(), EffectError> {
        let drpc = self.known(key)?.drpc;
        let mut metadata = drpc.guard();
        metadata["annotations"] = json!({
            annotations::LAST_APP_DEPLOYMENT_CLUSTER: cluster,
            annotations::LAST_APP_DEPLOYMENT_CLUSTER_ID: id,
            annotations::LAST_ACTION: action,
        });
        self.watched.drpcs.patch(key, &Patch::Merge(json!({ "metadata": metadata }))).await.map(drop)
    }

    async fn annotate(&self, key: &ObjectKey, name: &str, value: Value) -> Result<(), EffectError> {
        let mut metadata = self.known(key)?.drpc.guard();
        metadata["annotations"] = json!({ name: value });
        self.watched.drpcs.patch(key, &Patch::Merge(json!({ "metadata": metadata }))).await.map(drop)
    }

    async fn perform(&self, key: &ObjectKey, effect: Effect) -> Result<(), EffectError> {
        match effect {
            Effect::Own => self.own(key).await,
            Effect::OwnPlacement => self.own_placement(key).await,
            Effect::Watch { cluster } => {
                views::ask(&self.watched.views, &group::view(&self.known(key)?, &cluster)).await
            }
            Effect::LearnFleet => {
                let now = self.watched.clock.now();
                self.watched.fleet.learn(&self.client, &self.courier.chance, now).await;
                Ok(())
            }
            Effect::ReadStores => self.read_stores(key).await,
            Effect::Commission { commission, after, asked } => {
                self.commission(key, &commission, after, asked).await
            }
            Effect::PutSpace { cluster } => {
                works::put(&self.watched.works, &group::space_work(&self.known(key)?, &cluster)).await
            }
            Effect::PutGroup { cluster, role, over, group } => {
                self.put_group(key, &cluster, &role, over, &group).await
            }
            Effect::Adopt { cluster, group } => {
                let wanted = group::work(&self.known(key)?, &cluster, &group);
                // Made only where there is none: whatever is there says more than what was seen.
                self.watched.works.create(&wanted).await.map(drop)
            }
            Effect::ShareKey { clusters } => {
                let world = self.known(key)?;
                secrets::psk(&self.courier, &world.drpc, world.space(), &clusters).await
            }
            Effect::Place { chosen } => self.place(key, &chosen).await,
            Effect::NotePlaced { cluster, id, act } => {
                let action = act.action().map_or(String::new(), |action| action.as_str().to_owned());
                self.note_placed(key, &cluster, id, &action).await
            }
            Effect::EndProtection { cluster, over, group } => {
                self.end_protection(key, &cluster, over, &group).await
            }
            Effect::TakeBackGroup { cluster, over } => self.take_back_group(key, &cluster, over).await,
            Effect::ForgetPoint => self.annotate(key, annotations::TO_POINT, Value::Null).await,
            Effect::ForgetRestore => self.annotate(key, annotations::RESTORE_ORPHANS, Value::Null).await,
            Effect::CallOff { why } => self.annotate(key, annotations::CALLED_OFF, json!(why)).await,
            Effect::TakeBackRest { cluster } => self.take_back_rest(key, &cluster).await,
            Effect::ReleasePlacement => self.release_placement(key).await,
            Effect::Release => self.release(key).await,
        }
    }
}

/// What is told when a phase begins.
fn event(phase: &DRState) -> Option<(Level, &'static str, &'static str)> {
    match phase {
        DRState::Deploying => Some((Level::Normal, events::DEPLOYING, "the application is being deployed")),
        DRState::Deployed => Some((Level::Normal, events::DEPLOY_SUCCESS, "the application is deployed")),
        DRState::FailingOver => {
            Some((Level::Warning, events::FAILING_OVER, "the application is failing over"))
        }
        DRState::FailedOver => {
            Some((Level::Normal, events::FAILOVER_SUCCESS, "the application has failed over"))
        }
        DRState::Relocating => {
            Some((Level::Normal, events::RELOCATING, "the application is being relocated"))
        }
        DRState::Relocated => {
            Some((Level::Normal, events::RELOCATION_SUCCESS, "the application is relocated"))
        }
        _ => None,
    }
}

impl Controller for Drpcs {
    const NAME: &'static str = "drplacementcontrols";
    type Key = ObjectKey;
    type World = World;
    type Effect = Effect;
    type Why = Wait;
    type Status = DRPlacementControlStatus;

    fn observe(&self, key: &ObjectKey, trouble: Option<&Trouble>) -> Option<World> {
        self.world(key, trouble)
    }

    fn decide(world: &World, now: Timestamp) -> DrpcDecision {
        decide(world, now)
    }

    async fn act(&self, key: &ObjectKey, effect: Effect) -> Result<(), EffectError> {
        self.perform(key, effect).await
    }

    fn shown(world: &World) -> Option<&DRPlacementControlStatus> {
        world.drpc.status.as_ref()
    }

    async fn show(&self, world: &World, status: DRPlacementControlStatus) -> Result<(), EffectError> {
        let shown = world.shown();
        let patch = json!({ "metadata": world.drpc.guard(), "status": difference(&shown, &status)? });
        self.watched.drpcs.patch_status(&world.key(), &Patch::Merge(patch)).await?;
        if status.phase != shown.phase
            && let Some((level, reason, note)) = status.phase.as_ref().and_then(event)
        {
            self.recorder.record(reference(&world.drpc), level, reason, note);
        }
        Ok(())
    }

    fn subject(world: &World) -> Option<ObjectReference> {
        Some(reference(&world.drpc))
    }

    fn forget(&self, key: &ObjectKey) {
        self.readings.lock().remove(key);
    }
}
