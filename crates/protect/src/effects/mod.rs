//! Act: carries out what was decided about a group. Every write names the object by uid and version; what cannot be undone follows a read from
//! the server itself. What goes wrong with one claim is noted and delays no other.

mod claims;
mod movers;
mod stores;
mod usage;

pub(crate) use stores::store;
pub(crate) use usage::Usages;

use crate::decide::{Effect, GroupDecision, decide};
use crate::status::reference;
use crate::view::Groups;
use crate::why::Wait;
use crate::words::Words as _;
use crate::world::World;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::Patch;
use lifeboat_api::conditions::vrg::{REASON_PROGRESSING, TYPE_CLUSTER_DATA_READY, events};
use lifeboat_api::finalizers;
use lifeboat_api::ramen::{VolumeReplicationGroup, VolumeReplicationGroupStatus, VrgState};
use lifeboat_engine::conditions::{Conditions, Holds};
use lifeboat_engine::{Class, Controller, EffectError, Level, ObjectKey, Trouble, difference, variant};
use serde_json::json;
use std::sync::Arc;

/// The world was not as it was when this was decided.
pub(crate) fn stale(what: impl Into<String>) -> EffectError {
    EffectError::new(Class::Stale, what)
}

impl Groups {
    pub(crate) fn group(&self, key: &ObjectKey) -> Result<Arc<VolumeReplicationGroup>, EffectError> {
        self.watched.groups.get(key).ok_or_else(|| stale(format!("VolumeReplicationGroup {key} is gone")))
    }

    async fn finalizer(&self, key: &ObjectKey, on: bool) -> Result<(), EffectError> {
        let group = self.group(key)?;
        if on == group.has_finalizer(finalizers::VRG) {
            return Ok(());
        }
        let mut names: Vec<String> = group.metadata.finalizers.clone().unwrap_or_default();
        names.retain(|name| name != finalizers::VRG);
        if on {
            names.push(finalizers::VRG.to_owned());
        }
        let mut metadata = group.guard();
        metadata["finalizers"] = json!(names);
        let left = self.watched.groups.patch(key, &Patch::Merge(json!({ "metadata": metadata }))).await?;
        if left.is_going() && left.metadata.finalizers.as_ref().is_none_or(Vec::is_empty) {
            let told = reference(&left);
            self.recorder.record(
                told,
                Level::Normal,
                events::DELETE_SUCCESS,
                "the group is gone; its claims are as before",
            );
            self.watched.groups.read(key).await?;
        }
        Ok(())
    }

    async fn note_epoch(&self, key: &ObjectKey, seen: i64, primary: Option<i64>) -> Result<(), EffectError> {
        let group = self.group(key)?;
        let known = group.status.as_ref().and_then(|status| status.epoch).unwrap_or(0);
        let mut patch = json!({
            "metadata": group.guard(),
            "status": { "epoch": known.max(seen), "primaryEpoch": primary },
        });
        if primary.is_none()
            && let Some(status) = &group.status
        {
            // What was restored for a role that is over says nothing about the next one.
            let mut conditions = status.conditions.clone();
            let over = Conditions { generation: group.metadata.generation, now: self.clock.now() };
            let why = "the group is not primary any more";
            over.set(&mut conditions, TYPE_CLUSTER_DATA_READY, Holds::Unknown, REASON_PROGRESSING, why);
            patch["status"]["conditions"] = json!(conditions);
        }
        self.watched.groups.patch_status(key, &Patch::Merge(patch)).await.map(drop)
    }

    async fn perform(&self, key: &ObjectKey, effect: Effect) -> Result<(), EffectError> {
        match effect {
            Effect::Adopt => self.finalizer(key, true).await,
            Effect::Release => self.finalizer(key, false).await,
            Effect::TakeEpoch(epoch) => self.note_epoch(key, epoch, Some(epoch)).await,
            Effect::YieldEpoch(seen) => self.note_epoch(key, seen, None).await,
            Effect::ReadStores { question } => self.read_stores(key, question).await,
            Effect::FindKey => self.keys.find(key).await,
            Effect::Keep { stores, verify } => self.keep(key, stores, verify).await,
            Effect::Erase { store, epoch } => self.erase(key, &store, epoch).await,
            Effect::MarkOrphan { store, epoch, volumes } => {
                self.mark_orphan(key, &store, epoch, volumes).await
            }
            Effect::Orphan { claim, volume, epoch } => self.orphan(key, &claim, &volume, epoch).await,
            Effect::Unorphan { claim, volume } => self.unorphan(key, &claim, &volume).await,
            Effect::Protect { claim, path } => self.protect(key, &claim, path).await,
            Effect::Retain { claim, volume, path } => self.retain(key, &claim, &volume, path).await,
            Effect::Mark { claim } => self.mark(key, &claim).await,
            Effect::Archive { claim, mark } => self.archive(key, &claim, &mark).await,
            Effect::NoteHandle { volume, handle, .. } => self.note_handle(&volume, &handle).await,
            Effect::Unretain { claim, volume, path } => self.unretain(key, &claim, &volume, path).await,
            Effect::Unprotect { claim } => self.unprotect(key, &claim).await,
            Effect::Unclaim { claim, volume } => self.unclaim(key, &claim, &volume).await,
            Effect::MakeClaim { claim } => self.watched.claims.create(&claim).await.map(drop),
            Effect::MakeVolume { volume, .. } => self.watched.volumes.create(&volume).await.map(drop),
            Effect::HoldCopies { claim, hold } => self.hold_copies(key, &claim, hold).await,
            Effect::Replicate { claim, class, role, auto_resync } => {
                self.replicate(key, &claim, class, role, auto_resync).await
            }
            Effect::TakeOver { claim } => self.take_over(key, &claim).await,
            Effect::EndReplication { claim } => self.end_replication(key, &claim).await,
            Effect::Send { claim, spec, last } => self.send(key, &claim, *spec, last).await,
            Effect::StopSending { claim } => self.stop_sending(key, &claim).await,
            Effect::Receive { claim, spec, roll_back_to } => {
                self.receive(key, &claim, *spec, roll_back_to).await
            }
            Effect::StopReceiving { claim } => self.stop_receiving(key, &claim).await,
            Effect::Export { claim, service } => self.export(key, &claim, &service).await,
            Effect::KeepImage { claim, image } => self.keep_image(key, &claim, &image).await,
            Effect::DropImage { image, .. } => self.drop_image(key, &image).await,
            Effect::Note { claim, notes } => self.note_claim(key, &claim, &notes).await,
            Effect::Stays { claim } => self.stays(key, &claim).await,
            Effect::Discard { claim } => self.discard(key, &claim).await,
            Effect::SetAside { image, .. } => self.set_aside(key, &image).await,
        }
    }
}

/// The claim that an effect is for: what fails for it is its own business.
fn subject_of(effect: &Effect) -> Option<String> {
    match effect {
        Effect::Protect { claim, .. }
        | Effect::Retain { claim, .. }
        | Effect::Mark { claim }
        | Effect::Archive { claim, .. }
        | Effect::NoteHandle { claim, .. }
        | Effect::Replicate { claim, .. }
        | Effect::TakeOver { claim }
        | Effect::EndReplication { claim }
        | Effect::Unretain { claim, .. }
        | Effect::Unprotect { claim }
        | Effect::Orphan { claim, .. }
        | Effect::Unorphan { claim, .. }
        | Effect::Unclaim { claim, .. }
        | Effect::Send { claim, .. }
        | Effect::HoldCopies { claim, .. }
        | Effect::StopSending { claim }
        | Effect::Receive { claim, .. }
        | Effect::StopReceiving { claim }
        | Effect::Export { claim, .. }
        | Effect::KeepImage { claim, .. }
        | Effect::DropImage { claim, .. }
        | Effect::Note { claim, .. }
        | Effect::Stays { claim }
        | Effect::Discard { claim }
        | Effect::SetAside { claim, .. }
        | Effect::MakeVolume { claim, .. } => Some(claim.clone()),
        Effect::MakeClaim { claim } => Some(claim.name().to_owned()),
        _ => None,
    }
}

impl Controller for Groups {
    const NAME: &'static str = "volumereplicationgroups";
    type Key = ObjectKey;
    type World = World;
    type Effect = Effect;
    type Why = Wait;
    type Status = VolumeReplicationGroupStatus;

    fn observe(&self, key: &ObjectKey, trouble: Option<&Trouble>) -> Option<World> {
        self.usages.forget(key);
        self.world(key, trouble)
    }

    fn decide(world: &World, now: Timestamp) -> GroupDecision {
        decide(world, now)
    }

    async fn act(&self, key: &ObjectKey, effect: Effect) -> Result<(), EffectError> {
        let (subject, name) = (subject_of(&effect), variant(&effect));
        let result = self.perform(key, effect).await;
        let Some(subject) = subject else { return result };
        match result {
            Ok(()) => {
                self.mishaps.worked(key, &subject);
                Ok(())
            }
            Err(error) if error.class == Class::Stale => Err(error),
            Err(error) => {
                tracing::warn!(group = %key, claim = subject, effect = name, error = error.sentence(), "failed for one claim");
                self.mishaps.failed(key, &subject, error.class, error.sentence(), self.clock.now());
                Ok(())
            }
        }
    }

    fn shown(world: &World) -> Option<&VolumeReplicationGroupStatus> {
        world.group.status.as_ref()
    }

    async fn show(&self, world: &World, status: VolumeReplicationGroupStatus) -> Result<(), EffectError> {
        let shown = world.group.status.clone().unwrap_or_default();
        let patch = json!({ "metadata": world.group.guard(), "status": difference(&shown, &status)? });
        self.watched.groups.patch_status(&world.key(), &Patch::Merge(patch)).await?;
        if status.state != shown.state {
            let told = |reason: &str, note: &str| {
                self.recorder.record(reference(&world.group), Level::Normal, reason, note);
            };
            match status.state {
                Some(VrgState::Primary) => told(events::PRIMARY_SUCCESS, "Primary Success"),
                Some(VrgState::Secondary) => told(events::SECONDARY_SUCCESS, "Secondary Success"),
                _ => {}
            }
        }
        Ok(())
    }

    fn subject(world: &World) -> Option<ObjectReference> {
        Some(reference(&world.group))
    }

    fn forget(&self, key: &ObjectKey) {
        self.desk.books().forget(key);
        self.mishaps.forget(key);
        self.keys.forget(key);
        self.usages.forget(key);
    }
}
