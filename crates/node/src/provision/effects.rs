//! Act: the controllers of provisioning as the engine runs them. What cannot be undone is done after a look at the server, not at
//! the cache.

use crate::provision::decide::claim::{self, ClaimDecision, ClaimEffect};
use crate::provision::decide::expand::{self, ExpandDecision, ExpandEffect, showing};
use crate::provision::decide::leftover::{self, LogicalDecision, LogicalEffect};
use crate::provision::decide::reclaim::{self, VolumeDecision, VolumeEffect};
use crate::provision::status::{ClaimWhy, ExpandWhy, LogicalWhy, VolumeWhy};
use crate::provision::words::{
    UNPUBLISHED, annotation, claim_of, csi_of, device_class, name, phase_of, quantity, reference, storage,
    uid, wanted_size,
};
use crate::provision::world::{ClaimWorld, ExpandWorld, LogicalWorld, Office, VolumeWorld};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ObjectReference, PersistentVolumeClaimStatus};
use kube::api::Patch;
use lifeboat_api::annotations;
use lifeboat_engine::{Class, Clock, Controller, EffectError, Level, ObjectKey, Trouble};
use serde_json::json;

fn stale(what: impl Into<String>) -> EffectError {
    EffectError::new(Class::Stale, what)
}

impl Office {
    /// Whether a claim of this uid is there, as the server knows it.
    async fn claim_exists(&self, key: &ObjectKey, of: &str) -> Result<bool, EffectError> {
        Ok(self.kinds.claims.read(key).await?.is_some_and(|claim| uid(&*claim) == of))
    }
}

/// The controller of claims that ask for a volume.
pub struct Claims {
    /// What all share.
    pub office: Office,
    /// When failures happen.
    pub clock: Clock,
}

impl Controller for Claims {
    const NAME: &'static str = "provision";
    type Key = ObjectKey;
    type World = ClaimWorld;
    type Effect = ClaimEffect;
    type Why = ClaimWhy;
    type Status = ();

    fn observe(&self, key: &ObjectKey, _: Option<&Trouble>) -> Option<ClaimWorld> {
        self.office.claim(key)
    }

    fn decide(world: &ClaimWorld, now: Timestamp) -> ClaimDecision {
        claim::decide(world, now)
    }

    async fn act(&self, key: &ObjectKey, effect: ClaimEffect) -> Result<(), EffectError> {
        let office = &self.office;
        let tell = |level, reason: &str, note: &str| {
            if let Some(claim) = office.kinds.claims.get(key) {
                office.kinds.recorder.record(reference(&*claim), level, reason, note);
            }
        };
        match effect {
            ClaimEffect::Make(logical) => {
                let node = &logical.spec.node_name;
                let (class, size) = (device_class(&logical), wanted_size(&logical));
                let known = office.kinds.nodes.get(&ObjectKey::cluster_wide(node.clone()));
                let known = known.ok_or_else(|| stale(format!("node {node} is gone")))?;
                let now = self.clock.now();
                // Between the decision and this moment others of this process may have been promised the same bytes.
                let fits = |held| {
                    let room = office.room_holding(known, held);
                    room.free(class, now).is_some_and(|free| free >= size)
                };
                let hold = office.desk.promise(name(&*logical), (node, class), size, fits);
                let _hold =
                    hold.ok_or_else(|| stale(format!("the room on node {node} is just being taken")))?;
                office.kinds.logical.create(&logical).await.map(drop)
            }
            ClaimEffect::Discard { volume, code, message } => {
                office.kinds.logical.delete(&volume).await?;
                office.desk.fail(key, code, &message, &volume.spec.node_name, self.clock.now());
                let note = format!(
                    "failed to provision volume on node {}: {message} (code {code})",
                    volume.spec.node_name
                );
                tell(Level::Warning, "ProvisioningFailed", &note);
                Ok(())
            }
            ClaimEffect::Reschedule { claim, because } => {
                office.kinds.claims.replace(&claim).await?;
                let note = format!(
                    "failed to provision volume: {because}; the scheduler is asked to choose another node"
                );
                tell(Level::Warning, "ProvisioningFailed", &note);
                Ok(())
            }
            ClaimEffect::Publish(volume) => {
                office.kinds.volumes.create(&volume).await?;
                office.desk.forget(key);
                tell(
                    Level::Normal,
                    "ProvisioningSucceeded",
                    &format!("Successfully provisioned volume {}", name(&*volume)),
                );
                Ok(())
            }
        }
    }

    fn shown(_: &ClaimWorld) -> Option<&()> {
        None
    }

    async fn show(&self, _: &ClaimWorld, (): ()) -> Result<(), EffectError> {
        Ok(())
    }

    fn subject(world: &ClaimWorld) -> Option<ObjectReference> {
        Some(reference(&*world.claim))
    }

    fn forget(&self, key: &ObjectKey) {
        self.office.desk.forget(key);
    }
}

/// The controller of LogicalVolumes that are not published.
pub struct Leftovers(pub Office);

impl Controller for Leftovers {
    const NAME: &'static str = "leftovers";
    type Key = ObjectKey;
    type World = LogicalWorld;
    type Effect = LogicalEffect;
    type Why = LogicalWhy;
    type Status = ();

    fn observe(&self, key: &ObjectKey, _: Option<&Trouble>) -> Option<LogicalWorld> {
        self.0.logical(key)
    }

    fn decide(world: &LogicalWorld, _: Timestamp) -> LogicalDecision {
        leftover::decide(world)
    }

    async fn act(&self, key: &ObjectKey, effect: LogicalEffect) -> Result<(), EffectError> {
        let kinds = &self.0.kinds;
        match effect {
            LogicalEffect::Seal(logical) => {
                let patch = json!({"metadata": {"uid": uid(&*logical), "annotations": {UNPUBLISHED: null}}});
                kinds.logical.patch(key, &Patch::Merge(patch)).await.map(drop)
            }
            LogicalEffect::Remove { volume, claim } => {
                if kinds.volumes.read(key).await?.is_some() {
                    return Err(stale(format!("volume {key} is published")));
                }
                let of = annotation(&volume.metadata, UNPUBLISHED).unwrap_or_default();
                let waits = kinds.claims.read(&claim).await?.is_some_and(|claim| {
                    let bound = crate::provision::words::volume_of(&claim);
                    uid(&*claim) == of && (bound.is_empty() || bound == key.name)
                });
                if waits {
                    return Err(stale(format!("claim {claim} still wants volume {key}")));
                }
                kinds.logical.delete(&volume).await
            }
        }
    }

    fn shown(_: &LogicalWorld) -> Option<&()> {
        None
    }

    async fn show(&self, _: &LogicalWorld, (): ()) -> Result<(), EffectError> {
        Ok(())
    }
}

/// The controller of volumes.
pub struct Volumes(pub Office);

impl Controller for Volumes {
    const NAME: &'static str = "reclaim";
    type Key = ObjectKey;
    type World = VolumeWorld;
    type Effect = VolumeEffect;
    type Why = VolumeWhy;
    type Status = ();

    fn observe(&self, key: &ObjectKey, _: Option<&Trouble>) -> Option<VolumeWorld> {
        self.0.volume(key)
    }

    fn decide(world: &VolumeWorld, _: Timestamp) -> VolumeDecision {
        reclaim::decide(world)
    }

    async fn act(&self, key: &ObjectKey, effect: VolumeEffect) -> Result<(), EffectError> {
        let kinds = &self.0.kinds;
        match effect {
            VolumeEffect::Hold(volume) | VolumeEffect::Release(volume) => {
                kinds.volumes.replace(&volume).await.map(drop)
            }
            VolumeEffect::DeleteStorage { logical, volume } => {
                let now = kinds.volumes.read(key).await?;
                let same = now.is_some_and(|now| {
                    now.metadata.resource_version == volume.metadata.resource_version
                        && phase_of(&now) == phase_of(&volume)
                });
                if !same {
                    return Err(stale(format!("volume {key} has changed")));
                }
                if let Some((claim, of)) = claim_of(&volume)
                    && self.0.claim_exists(&claim, of).await?
                {
                    return Err(stale(format!("claim {claim} still has volume {key}")));
                }
                kinds.logical.delete(&logical).await
            }
            VolumeEffect::Delete(volume) => {
                let left = kinds.logical.read(key).await?;
                let handle = csi_of(&volume).map(|(_, handle)| handle);
                if left.is_some_and(|logical| Some(uid(&*logical)) == handle) {
                    return Err(stale(format!("the storage of volume {key} is still there")));
                }
                kinds.volumes.delete(&volume).await
            }
        }
    }

    fn shown(_: &VolumeWorld) -> Option<&()> {
        None
    }

    async fn show(&self, _: &VolumeWorld, (): ()) -> Result<(), EffectError> {
        Ok(())
    }

    fn subject(world: &VolumeWorld) -> Option<ObjectReference> {
        Some(reference(&*world.volume))
    }
}

/// The controller of claims that grow.
pub struct Growth {
    /// What all share.
    pub office: Office,
    /// When room is looked at.
    pub clock: Clock,
}

impl Controller for Growth {
    const NAME: &'static str = "expand";
    type Key = ObjectKey;
    type World = ExpandWorld;
    type Effect = ExpandEffect;
    type Why = ExpandWhy;
    type Status = PersistentVolumeClaimStatus;

    fn observe(&self, key: &ObjectKey, _: Option<&Trouble>) -> Option<ExpandWorld> {
        self.office.expand(key)
    }

    fn decide(world: &ExpandWorld, now: Timestamp) -> ExpandDecision {
        expand::decide(world, now)
    }

    async fn act(&self, _: &ObjectKey, effect: ExpandEffect) -> Result<(), EffectError> {
        let office = &self.office;
        match effect {
            ExpandEffect::Grow { volume, uid, place: (node, class), from, to, at } => {
                let known = office.kinds.nodes.get(&ObjectKey::cluster_wide(node.clone()));
                let known = known.ok_or_else(|| stale(format!("node {node} is gone")))?;
                let now = self.clock.now();
                let fits = |held| {
                    let room = office.room_holding(known, held);
                    room.free(&class, now).is_some_and(|free| free >= to - from)
                };
                let hold = office.desk.promise(&volume, (&node, &class), to - from, fits);
                let _hold =
                    hold.ok_or_else(|| stale(format!("the room on node {node} is just being taken")))?;
                let patch = json!({
                    "metadata": {"uid": uid, "annotations": {annotations::RESIZE_REQUESTED_AT: at}},
                    "spec": {"size": quantity(to)},
                });
                office
                    .kinds
                    .logical
                    .patch(&ObjectKey::cluster_wide(volume), &Patch::Merge(patch))
                    .await
                    .map(drop)
            }
            ExpandEffect::ShowSize(volume) => office.kinds.volumes.replace(&volume).await.map(drop),
        }
    }

    fn shown(world: &ExpandWorld) -> Option<&PersistentVolumeClaimStatus> {
        world.claim.status.as_ref()
    }

    async fn show(
        &self,
        world: &ExpandWorld,
        status: PersistentVolumeClaimStatus,
    ) -> Result<(), EffectError> {
        let before = storage(world.claim.status.as_ref().and_then(|status| status.capacity.as_ref()));
        let grown = storage(status.capacity.as_ref()) > before;
        self.office.kinds.claims.replace_status(&showing(&world.claim, status)).await?;
        if grown {
            let recorder = &self.office.kinds.recorder;
            recorder.record(
                reference(&*world.claim),
                Level::Normal,
                "VolumeResizeSuccessful",
                "Resize volume succeeded",
            );
        }
        Ok(())
    }

    fn subject(world: &ExpandWorld) -> Option<ObjectReference> {
        Some(reference(&*world.claim))
    }
}
