//! Brings a volume back to an image of it where volumes share blocks, or can be copied: a copy of the image is made beside the volume and
//! takes its name in one step. A death leaves the volume as it was or as the image is, and never something between.

use super::effects::Receivers;
use super::world::back_name;
use crate::ground::stale;
use crate::place::{BACK_TAG, Place as Found, REPLICA_TAG, back_of, listed};
use crate::words::Words as _;
use lifeboat_api::annotations;
use lifeboat_api::volsync::ReplicationDestination;
use lifeboat_engine::{EffectError, ObjectKey};
use lifeboat_lvm::{AccessMode, Error, Snapshot, Volume};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The tags that a volume keeps when it becomes as the image is: all but those about its content. Its epoch is among them.
fn carried(volume: &Volume, image: &str) -> BTreeSet<String> {
    let passing = |tag: &&String| [REPLICA_TAG, BACK_TAG].iter().any(|name| tag.starts_with(name));
    let kept = volume.tags.iter().filter(|tag| !passing(tag)).cloned();
    kept.chain([format!("{BACK_TAG}={image}")]).collect()
}

/// Whether it will not work the next time either, so that differences are copied in place.
fn is_final(error: &Error) -> bool {
    matches!(error, Error::Unsupported(_) | Error::Invalid(_) | Error::NoRoom { .. })
}

impl Receivers {
    fn in_place(&self, receiver: &ReplicationDestination, image: &str, why: &str) {
        tracing::info!(
            receiver = receiver.name(),
            image,
            why,
            "differences to the image are copied in place"
        );
        self.desk.uncloned.lock().insert(ObjectKey::of(receiver), image.to_owned());
    }

    pub(super) async fn clone_image(
        &self,
        receiver: &ReplicationDestination,
        name: &str,
    ) -> Result<(), EffectError> {
        let here = self.here(receiver)?;
        let Some(Found::Here(image)) = self.image(receiver.space(), name, here.block) else {
            return Err(stale("the image is gone"));
        };
        if image.class != here.class {
            self.in_place(receiver, name, "the image is in another device class");
            return Ok(());
        }
        let wanted = Snapshot {
            name: back_name(&here.uid),
            class: here.class.clone(),
            source: image.uid.clone(),
            mode: AccessMode::ReadWrite,
            size: image.volume.size.max(here.volume.size),
            tags: carried(&here.volume, name),
            short_lived: None,
        };
        let done = self.ground.disks.lvm().snapshot(wanted).await;
        if let Some(error) = done.as_ref().err().filter(|error| is_final(error)) {
            self.in_place(receiver, name, &error.to_string());
            return Ok(());
        }
        let work = async { done };
        self.ground.disks.change(&here.class, "copying the image to go back to", work).await.map(drop)
    }

    pub(super) async fn swap(
        &self,
        receiver: &ReplicationDestination,
        image: &str,
    ) -> Result<(), EffectError> {
        let (disks, here) = (&self.ground.disks, self.here(receiver)?);
        let beside = back_name(&here.uid);
        let clone = listed(disks, &here.class, &beside).filter(|clone| back_of(clone) == Some(image));
        let clone = clone.ok_or_else(|| stale("the copy of the image is gone"))?;
        // Whatever the volume was a copy of, it will not be that any more.
        self.distrust(&here.uid, receiver)?;
        let add = carried(&here.volume, image);
        let remove: BTreeSet<String> = clone.tags.difference(&add).cloned().collect();
        let lvm = disks.lvm();
        let exchanged = async {
            if clone.tags != add {
                lvm.retag(&here.class, &beside, &add, &remove).await?;
            }
            // What is set aside must not look like what was made ready.
            if let Some(earlier) = back_of(&here.volume) {
                let earlier = BTreeSet::from([format!("{BACK_TAG}={earlier}")]);
                lvm.retag(&here.class, &here.uid, &BTreeSet::new(), &earlier).await?;
            }
            lvm.exchange(&here.class, &here.uid, &beside).await
        };
        let done = exchanged.await;
        if let Some(error) = done.as_ref().err().filter(|error| is_final(error)) {
            self.in_place(receiver, image, &error.to_string());
            return Ok(());
        }
        disks
            .change(&here.class, "letting the copy of the image take the volume's place", async { done })
            .await
    }

    pub(super) async fn drop_clone(&self, receiver: &ReplicationDestination) -> Result<(), EffectError> {
        // Only beside a volume that is there: never the last copy.
        let here = self.here(receiver)?;
        let work = async {
            match self.ground.disks.lvm().remove(&here.class, &back_name(&here.uid)).await {
                Ok(()) | Err(Error::NoVolume { .. }) => Ok(()),
                Err(error) => Err(error),
            }
        };
        self.ground.disks.change(&here.class, "removing what stands beside the volume", work).await
    }

    pub(super) async fn forget_back(&self, receiver: &ReplicationDestination) -> Result<(), EffectError> {
        let here = self.here(receiver)?;
        if let Some(image) = back_of(&here.volume) {
            let (none, tag) = (BTreeSet::new(), BTreeSet::from([format!("{BACK_TAG}={image}")]));
            let work = self.ground.disks.lvm().retag(&here.class, &here.uid, &none, &tag);
            let tried = "forgetting which image the volume was brought back to";
            self.ground.disks.change(&here.class, tried, work).await?;
        }
        self.desk.uncloned.lock().remove(&ObjectKey::of(receiver));
        match receiver.note(annotations::ROLLED_BACK_TO) {
            Some(_) => {
                let none = json!({ "annotations": { annotations::ROLLED_BACK_TO: Value::Null } });
                self.note(receiver, none).await
            }
            None => Ok(()),
        }
    }
}
