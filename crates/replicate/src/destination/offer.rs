//! Makes the service of a receiver and where it leads, or corrects what is there.

use super::decide::Effect;
use super::effects::Receivers;
use super::make;
use crate::ground::stale;
use crate::words::Words as _;
use kube::api::Patch;
use lifeboat_api::volsync::ReplicationDestination;
use lifeboat_engine::{Class, Controller as _, EffectError, ObjectKey};
use serde_json::json;

impl Receivers {
    /// Makes the service or where it leads, or corrects what is there.
    pub(super) async fn offer(
        &self,
        key: &ObjectKey,
        receiver: &ReplicationDestination,
        what: &Effect,
    ) -> Result<(), EffectError> {
        let world = self.observe(key, None).ok_or_else(|| stale("the receiver is gone"))?;
        let kinds = &self.ground.kinds;
        let bad = |error| EffectError::caused(Class::BadInput, "writing an object down", error);
        if *what == Effect::Serve {
            let wanted = make::receiver_service(&world, receiver);
            let Some(has) = &world.service else { return kinds.services.create(&wanted).await.map(drop) };
            let mut patch =
                json!({ "metadata": has.guard(), "spec": serde_json::to_value(&wanted.spec).map_err(bad)? });
            patch["metadata"]["ownerReferences"] = json!(wanted.metadata.owner_references);
            return kinds.services.patch(&ObjectKey::of(&**has), &Patch::Merge(patch)).await.map(drop);
        }
        let wanted = make::slice(&world, receiver);
        match &world.slice {
            None => kinds.slices.create(&wanted).await.map(drop),
            // What kind of address it holds cannot be changed.
            Some(has) if has.address_type != wanted.address_type => kinds.slices.delete(has).await,
            Some(has) => {
                let mut patch = serde_json::to_value(&wanted).map_err(bad)?;
                patch["metadata"] = has.guard();
                patch["metadata"]["ownerReferences"] = json!(wanted.metadata.owner_references);
                kinds.slices.patch(&ObjectKey::of(&**has), &Patch::Merge(patch)).await.map(drop)
            }
        }
    }
}
