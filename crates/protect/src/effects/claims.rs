//! What is written on claims and volumes. Only what is ours: finalizers, labels and annotations of the group, the reclaim policy with a mark.

use super::stale;
use crate::decide::plan::Path;
use crate::decide::records::volume_mark;
use crate::decide::undo::OLD_OWNERS;
use crate::restored::is_of_an_image;
use crate::view::Groups;
use crate::words::{ClaimWords as _, OwnedWords as _, VolumeWords as _, Words as _, owner_labels};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::Patch;
use lifeboat_api::{annotations, finalizers, labels};
use lifeboat_engine::{EffectError, ObjectKey};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The mark on a volume whose policy we changed.
fn marker(path: Path) -> &'static str {
    match path {
        Path::Copied => annotations::VOLSYNC_RETAINED,
        Path::Replicated | Path::Shared => annotations::VR_RETAINED,
    }
}

/// The precondition of what is written on a volume for its claim: by now it may have been released, or bound to another claim of the same name.
fn still_bound(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Result<(), EffectError> {
    if volume.claim_uid() == claim.uid() {
        return Ok(());
    }
    Err(stale(format!("the volume {} is not bound to {} any more", volume.name(), claim.name())))
}

impl Groups {
    pub(crate) fn claim(
        &self,
        group: &ObjectKey,
        name: &str,
    ) -> Result<Arc<PersistentVolumeClaim>, EffectError> {
        let key = ObjectKey::new(group.namespace.clone(), name);
        self.watched.claims.get(&key).ok_or_else(|| stale(format!("PersistentVolumeClaim {key} is gone")))
    }

    fn volume(&self, name: &str) -> Result<Arc<PersistentVolume>, EffectError> {
        let key = ObjectKey::cluster_wide(name);
        self.watched.volumes.get(&key).ok_or_else(|| stale(format!("PersistentVolume {name} is gone")))
    }

    async fn patch_claim(
        &self,
        claim: &PersistentVolumeClaim,
        change: impl FnOnce(&mut Value),
    ) -> Result<Arc<PersistentVolumeClaim>, EffectError> {
        let mut metadata = claim.guard();
        change(&mut metadata);
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        self.watched.claims.patch(&ObjectKey::of(claim), &patch).await
    }

    async fn patch_volume(&self, volume: &PersistentVolume, mut patch: Value) -> Result<(), EffectError> {
        let mut metadata = volume.guard();
        if let Some(notes) = patch.get("annotations").cloned() {
            metadata["annotations"] = notes;
            patch.as_object_mut().map(|patch| patch.remove("annotations"));
        }
        patch["metadata"] = metadata;
        self.watched.volumes.patch(&ObjectKey::of(volume), &Patch::Merge(patch)).await.map(drop)
    }

    pub(super) async fn protect(&self, group: &ObjectKey, name: &str, path: Path) -> Result<(), EffectError> {
        let claim = self.claim(group, name)?;
        if claim.owner().is_some_and(|owner| owner != *group) {
            return Err(stale(format!("the claim {name} has come to belong to another group")));
        }
        let ours = if path == Path::Copied { finalizers::PVC_VOLSYNC } else { finalizers::PVC_VR };
        let mut names: Vec<String> = claim.metadata.finalizers.clone().unwrap_or_default();
        if !claim.has_finalizer(ours) {
            // The API server refuses a new finalizer on what is being deleted.
            if claim.is_going() {
                return Err(stale(format!("the claim {name} is being deleted")));
            }
            names.push(ours.to_owned());
        }
        let owners: Vec<_> = claim.metadata.owner_references.iter().flatten().collect();
        let kept: Vec<_> = owners.iter().filter(|owner| !OLD_OWNERS.contains(&owner.kind.as_str())).collect();
        let (lighter, owners) = (kept.len() < owners.len(), json!(kept));
        let held = claim.note(annotations::OCM_DO_NOT_DELETE).is_some();
        self.patch_claim(&claim, |metadata| {
            metadata["finalizers"] = json!(names);
            metadata["labels"] = json!(owner_labels(group));
            if lighter {
                metadata["ownerReferences"] = owners;
            }
            if held {
                metadata["annotations"] = json!({ annotations::OCM_DO_NOT_DELETE: null });
            }
        })
        .await
        .map(drop)
    }

    pub(super) async fn retain(
        &self,
        group: &ObjectKey,
        claim: &str,
        volume: &str,
        path: Path,
    ) -> Result<(), EffectError> {
        let (claim, volume) = (self.claim(group, claim)?, self.volume(volume)?);
        still_bound(&volume, &claim)?;
        if volume.is_retained() {
            return Ok(());
        }
        // Policy and mark in one write: neither is ever there without the other.
        let patch = json!({
            "annotations": { marker(path): annotations::RETAINED_VALUE },
            "spec": { "persistentVolumeReclaimPolicy": "Retain" },
        });
        self.patch_volume(&volume, patch).await
    }

    pub(super) async fn unretain(
        &self,
        group: &ObjectKey,
        claim: &str,
        volume: &str,
        path: Path,
    ) -> Result<(), EffectError> {
        let claim = self.claim(group, claim)?;
        let key = ObjectKey::cluster_wide(volume);
        let volume = self
            .watched
            .volumes
            .read(&key)
            .await?
            .ok_or_else(|| stale(format!("the volume {key} is gone")))?;
        if volume.note(marker(path)).is_none() {
            return Ok(());
        }
        // A claim that goes with its namespace was not given up by anybody: its volume is the data.
        let space = ObjectKey::cluster_wide(group.namespace.clone());
        if self.watched.namespaces.read(&space).await?.is_none_or(|space| space.is_going()) {
            return Err(stale(format!("the namespace {space} is being deleted")));
        }
        still_bound(&volume, &claim)?;
        let patch = json!({
            "annotations": { marker(path): null, annotations::VR_ARCHIVED: null, annotations::HELD_AT_EPOCH: null },
            "spec": { "persistentVolumeReclaimPolicy": "Delete" },
        });
        self.patch_volume(&volume, patch).await
    }

    /// The volume is kept, and says which group left it and at which epoch, in one write.
    pub(super) async fn orphan(
        &self,
        group: &ObjectKey,
        claim: &str,
        volume: &str,
        epoch: i64,
    ) -> Result<(), EffectError> {
        let (claim, volume) = (self.claim(group, claim)?, self.volume(volume)?);
        still_bound(&volume, &claim)?;
        let mut notes = json!({
            annotations::ORPHANED_FROM: group.to_string(),
            annotations::EPOCH: epoch.to_string(),
        });
        if !volume.is_retained() {
            let copied = claim.has_finalizer(finalizers::PVC_VOLSYNC);
            let path = if copied { Path::Copied } else { Path::Replicated };
            notes[marker(path)] = json!(annotations::RETAINED_VALUE);
        }
        let patch = json!({
            "annotations": notes,
            "spec": { "persistentVolumeReclaimPolicy": "Retain" },
        });
        self.patch_volume(&volume, patch).await
    }

    pub(super) async fn unorphan(
        &self,
        group: &ObjectKey,
        claim: &str,
        volume: &str,
    ) -> Result<(), EffectError> {
        let (claim, volume) = (self.claim(group, claim)?, self.volume(volume)?);
        still_bound(&volume, &claim)?;
        let notes = json!({ annotations::ORPHANED_FROM: null, annotations::EPOCH: null });
        self.patch_volume(&volume, json!({ "annotations": notes })).await
    }

    pub(super) async fn mark(&self, group: &ObjectKey, name: &str) -> Result<(), EffectError> {
        let claim = self.claim(group, name)?;
        let note = json!({ annotations::VR_PROTECTED: annotations::VR_PROTECTED_VALUE });
        self.patch_claim(&claim, |metadata| metadata["annotations"] = note).await.map(drop)
    }

    pub(super) async fn archive(&self, group: &ObjectKey, name: &str, mark: &str) -> Result<(), EffectError> {
        let claim = self.claim(group, name)?;
        let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.clone()).unwrap_or_default();
        let volume = self.volume(&volume)?;
        let wanted = volume_mark(&volume);
        if volume.note(annotations::VR_ARCHIVED) != Some(wanted.as_str()) {
            self.patch_volume(&volume, json!({ "annotations": { annotations::VR_ARCHIVED: wanted } }))
                .await?;
        }
        let note = json!({ annotations::VR_ARCHIVED: mark });
        self.patch_claim(&claim, |metadata| metadata["annotations"] = note).await.map(drop)
    }

    pub(super) async fn note_handle(&self, volume: &str, handle: &str) -> Result<(), EffectError> {
        let volume = self.volume(volume)?;
        let patch = json!({ "annotations": { annotations::DESTINATION_VOLUME_HANDLE: handle } });
        self.patch_volume(&volume, patch).await
    }

    pub(super) async fn hold_copies(
        &self,
        group: &ObjectKey,
        name: &str,
        hold: bool,
    ) -> Result<(), EffectError> {
        let claim = self.claim(group, name)?;
        let word = hold.then_some(annotations::STOPPED_BY_RAMEN);
        let note = json!({ annotations::USE_COPY_TRIGGER: word });
        self.patch_claim(&claim, |metadata| metadata["annotations"] = note).await.map(drop)
    }

    pub(super) async fn note_claim(
        &self,
        group: &ObjectKey,
        name: &str,
        notes: &BTreeMap<String, String>,
    ) -> Result<(), EffectError> {
        let claim = self.claim(group, name)?;
        // The volume outlives the claim, and tells then what it holds.
        if let Some(volume) = claim.volume_name() {
            let volume = self.volume(volume)?;
            if volume.claim_uid() == claim.uid() {
                self.patch_volume(&volume, json!({ "annotations": notes })).await?;
            }
        }
        self.patch_claim(&claim, |metadata| metadata["annotations"] = json!(notes)).await.map(drop)
    }

    /// The volume first: while the claim has the note, its deletion gives no data up.
    pub(super) async fn stays(&self, group: &ObjectKey, name: &str) -> Result<(), EffectError> {
        let claim = self.claim(group, name)?;
        let notes = json!({ annotations::TAKEN_OFF: null });
        if let Some(volume) = claim.volume_name() {
            let volume = self.volume(volume)?;
            still_bound(&volume, &claim)?;
            self.patch_volume(&volume, json!({ "annotations": notes })).await?;
        }
        self.patch_claim(&claim, |metadata| metadata["annotations"] = notes).await.map(drop)
    }

    /// Deletes a claim that was made from an image, where nobody uses it and its volume is kept.
    pub(super) async fn discard(&self, group: &ObjectKey, name: &str) -> Result<(), EffectError> {
        self.still_unused(group, name).await?;
        let key = ObjectKey::new(group.namespace.clone(), name);
        let Some(claim) = self.watched.claims.read(&key).await? else { return Ok(()) };
        let volume = claim.volume_name().map(ObjectKey::cluster_wide);
        let kept = match &volume {
            Some(volume) => {
                self.watched.volumes.read(volume).await?.is_none_or(|volume| volume.is_retained())
            }
            None => true,
        };
        if !kept || !is_of_an_image(&claim) || claim.owner().is_some_and(|owner| owner != *group) {
            return Err(stale(format!("the claim {name} is not one to delete any more")));
        }
        match claim.is_going() {
            true => Ok(()),
            false => self.watched.claims.delete(&claim).await,
        }
    }

    /// Annotations, labels and finalizers that are ours, in one write: what is half undone does not exist.
    pub(super) async fn unprotect(&self, group: &ObjectKey, name: &str) -> Result<(), EffectError> {
        let key = ObjectKey::new(group.namespace.clone(), name);
        let Some(claim) = self.watched.claims.read(&key).await? else { return Ok(()) };
        if claim.owner().is_some_and(|owner| owner != *group) {
            return Err(stale(format!("the claim {name} has come to belong to another group")));
        }
        let mut names: Vec<String> = claim.metadata.finalizers.clone().unwrap_or_default();
        names.retain(|name| name != finalizers::PVC_VR && name != finalizers::PVC_VOLSYNC);
        let held = claim.note(annotations::USE_COPY_TRIGGER) == Some(annotations::STOPPED_BY_RAMEN);
        let owners: Vec<_> = claim.metadata.owner_references.iter().flatten().collect();
        let kept: Vec<_> = owners.iter().filter(|owner| !OLD_OWNERS.contains(&owner.kind.as_str())).collect();
        let (lighter, owners) = (kept.len() < owners.len(), json!(kept));
        let left = self
            .patch_claim(&claim, |metadata| {
                metadata["finalizers"] = json!(names);
                if lighter {
                    metadata["ownerReferences"] = owners;
                }
                metadata["labels"] = json!({
                    labels::OWNER_NAME: null,
                    labels::OWNER_NAMESPACE_NAME: null,
                    labels::VRG_OWNER: null,
                    labels::VRG_OWNER_NAMESPACE: null,
                });
                let mut notes = json!({
                    annotations::VR_PROTECTED: null,
                    annotations::VR_ARCHIVED: null,
                    annotations::RESTORE: null,
                    annotations::HELD_AT_EPOCH: null,
                    annotations::OCM_DO_NOT_DELETE: null,
                });
                if held {
                    notes[annotations::USE_COPY_TRIGGER] = Value::Null;
                }
                metadata["annotations"] = notes;
            })
            .await?;
        if left.is_going() {
            // The last finalizer takes the claim with it.
            self.watched.claims.read(&key).await?;
        }
        Ok(())
    }

    pub(super) async fn unclaim(
        &self,
        group: &ObjectKey,
        claim: &str,
        volume: &str,
    ) -> Result<(), EffectError> {
        let key = ObjectKey::cluster_wide(volume);
        let volume = self
            .watched
            .volumes
            .read(&key)
            .await?
            .ok_or_else(|| stale(format!("the volume {key} is gone")))?;
        let of = ObjectKey::new(group.namespace.clone(), claim);
        let there = self.watched.claims.read(&of).await?;
        let bound = there.is_some_and(|there| there.uid() == volume.claim_uid());
        if bound || volume.claim_key() != Some(of) {
            return Err(stale(format!("the volume {} is bound", volume.name())));
        }
        let patch = json!({ "spec": { "claimRef": { "uid": null, "resourceVersion": null } } });
        self.patch_volume(&volume, patch).await
    }
}
