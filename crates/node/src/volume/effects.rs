//! Act: carries out what was decided about a LogicalVolume, on the disks, in the store and on the object.

use crate::disks::Look;
use crate::mounts::{CopyCare, Purpose};
use crate::volume::decide::{VolumeDecision, VolumeEffect, backup_tag, decide, mode};
use crate::volume::move_bytes::{self, Move};
use crate::volume::status::{VolumeWhy, reference};
use crate::volume::view::{Copying, Refused, Volumes};
use crate::volume::words::VolumeWords;
use crate::volume::world::{World, staging_name};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::Patch;
use lifeboat_api::annotations::{self, parameters};
use lifeboat_api::topolvm::{LogicalVolume, LogicalVolumeStatus, SnapshotOperation};
use lifeboat_api::{finalizers, labels};
use lifeboat_engine::{Class, Controller, EffectError, ObjectKey, Trouble, difference};
use lifeboat_lvm::{Access, Create, Error, Snapshot};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Says on a staging device that its filesystem is ours and not what an earlier owner left.
const FORMATTED_TAG: &str = "lifeboat.formatted";
/// A short-lived snapshot may take this share of its origin before it dies, in percent.
const SHORT_LIVED_PERCENT: u64 = 20;
/// And at least this much.
const SHORT_LIVED_LEAST: u64 = 64 << 20;

impl Volumes {
    fn current(&self, key: &ObjectKey) -> Result<Arc<LogicalVolume>, EffectError> {
        self.volumes
            .get(key)
            .ok_or_else(|| EffectError::new(Class::Stale, format!("LogicalVolume {key} is gone")))
    }

    /// A change of the disks: what came of it is listed at once, whether it worked or not.
    async fn change<T>(
        &self,
        volume: &LogicalVolume,
        tried: &str,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, EffectError> {
        let name = volume.metadata.name.as_deref().unwrap_or_default();
        let tried = format!("{tried} of LogicalVolume {name}");
        let mut refusal = None;
        let work = async {
            let result = work.await;
            if let Err(error) = &result {
                let taken = matches!(error, Error::Exists { .. } | Error::NoVolume { .. });
                let final_word = !error.is_transient() || matches!(error, Error::NoRoom { .. });
                refusal = (final_word && !taken && !volume.is_made()).then(|| error.clone());
            }
            result
        };
        let changed = self.disks.change(volume.class(), &tried, work).await;
        let Some(error) = refusal else { return changed };
        let refused = Refused {
            uid: volume.uid().to_owned(),
            generation: volume.metadata.generation,
            error: error.clone(),
        };
        self.refused.lock().insert(ObjectKey::of(volume), refused);
        Err(EffectError::caused(Class::Stale, tried, error))
    }

    async fn claim(
        &self,
        volume: &LogicalVolume,
        add: Vec<String>,
        barrier: Option<String>,
    ) -> Result<(), EffectError> {
        let mut metadata = precondition(volume);
        let known = volume.metadata.finalizers.iter().flatten().cloned();
        metadata["finalizers"] = json!(known.chain(add).collect::<Vec<_>>());
        metadata["labels"] = json!({ labels::CREATED_BY: labels::CREATED_BY_TOPOLVM });
        if let Some(barrier) = barrier {
            metadata["annotations"] = json!({ annotations::SNAPSHOT_RESTORE_REQUIRED: barrier });
        }
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        self.volumes.patch(&ObjectKey::of(volume), &patch).await.map(drop)
    }

    async fn release(&self, volume: &LogicalVolume) -> Result<(), EffectError> {
        let mut metadata = precondition(volume);
        let kept =
            volume.metadata.finalizers.iter().flatten().filter(|name| *name != finalizers::LOGICAL_VOLUME);
        metadata["finalizers"] = json!(kept.collect::<Vec<_>>());
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        match self.volumes.patch(&ObjectKey::of(volume), &patch).await {
            // The last finalizer takes the object with it.
            Err(error)
                if error.class == Class::Stale && self.volumes.get(&ObjectKey::of(volume)).is_none() =>
            {
                Ok(())
            }
            done => done.map(drop),
        }
    }

    async fn create(&self, volume: &LogicalVolume, size: u64, publish: bool) -> Result<(), EffectError> {
        let (lvm, class, uid) = (self.disks.lvm(), volume.class(), volume.uid());
        let wanted = Create {
            name: staging_name(uid),
            class: class.to_owned(),
            size,
            tags: tags(volume),
            options: volume.spec.lvcreate_option_class.clone().unwrap_or_default(),
        };
        let work = async {
            lvm.create(wanted).await?;
            if publish { lvm.rename(class, &staging_name(uid), uid).await } else { Ok(()) }
        };
        self.change(volume, "making the volume", work).await
    }

    async fn copy(
        &self,
        volume: &LogicalVolume,
        source: String,
        size: u64,
        read_only: bool,
        short_lived: bool,
    ) -> Result<(), EffectError> {
        let (lvm, class) = (self.disks.lvm(), volume.class());
        let room = (size / 100 * SHORT_LIVED_PERCENT).max(SHORT_LIVED_LEAST);
        let origin = match self.disks.look(class, |found| found.name == source) {
            Look::Listed(found) => found.into_values().next().map(|found| found.access),
            _ => None,
        };
        let care = match origin {
            // Only a copy that serves one backup and goes away after it.
            Some(Access::Device(device)) if short_lived => {
                self.mounts.care(&device).await.map_err(|error| {
                    EffectError::caused(Class::Transient, "looking at the source's filesystem", error)
                })?
            }
            _ => CopyCare::Nothing,
        };
        let wanted = Snapshot {
            name: volume.uid().to_owned(),
            class: class.to_owned(),
            source,
            mode: mode(read_only && care == CopyCare::Nothing),
            size,
            tags: tags(volume),
            short_lived: short_lived.then_some(room),
        };
        let work = async {
            let snapped = match care {
                CopyCare::Still { mounted: Some(at) } => {
                    let lvm = self.disks.shared();
                    self.mounts
                        .while_still(volume.uid(), at, async move { lvm.snapshot(wanted).await })
                        .await?
                }
                CopyCare::Still { mounted: None } | CopyCare::Nothing => lvm.snapshot(wanted).await?,
            };
            let worth = BTreeSet::from([backup_tag(snapped.consistency)]);
            lvm.retag(class, volume.uid(), &worth, &BTreeSet::new()).await
        };
        self.change(volume, "copying the source", work).await
    }

    /// Removes volumes of an object by name; those that are gone already are no error.
    async fn remove(&self, volume: &LogicalVolume, names: &[&str]) -> Result<(), EffectError> {
        let (lvm, class) = (self.disks.lvm(), volume.class());
        let work = async {
            for name in names {
                match lvm.remove(class, name).await {
                    Ok(()) | Err(Error::NoVolume { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        };
        self.change(volume, "removing the volume", work).await
    }

    async fn mount(&self, volume: &LogicalVolume, operation: &SnapshotOperation) -> Result<(), EffectError> {
        let (published, staging) = self.on_disk(volume);
        let restores = *operation == SnapshotOperation::Restore;
        let Some(found) = (if restores { staging } else { published }) else {
            return Err(EffectError::new(Class::Stale, "the volume to mount is gone"));
        };
        let Access::Device(device) = &found.access else { return Ok(()) };
        let make = !found.tags.contains(FORMATTED_TAG);
        let purpose = if restores {
            let filesystem =
                volume.note(parameters::FS_TYPE).filter(|type_| !type_.is_empty()).unwrap_or("ext4");
            Purpose::Restore { filesystem: filesystem.to_owned(), make }
        } else {
            Purpose::Backup
        };
        let (lvm, class) = (self.disks.lvm(), volume.class());
        let work = async {
            self.mounts.mount(volume.uid(), device, purpose).await?;
            if restores && make {
                let formatted = BTreeSet::from([FORMATTED_TAG.to_owned()]);
                lvm.retag(class, &found.name, &formatted, &BTreeSet::new()).await?;
            }
            Ok(())
        };
        self.change(volume, "mounting the volume", work).await
    }

    fn start(&self, volume: &Arc<LogicalVolume>, operation: SnapshotOperation) -> Result<(), EffectError> {
        let gone = |what: &str| EffectError::new(Class::Stale, format!("{what} is gone"));
        let (published, staging) = self.on_disk(volume);
        let found = if operation == SnapshotOperation::Restore { staging } else { published };
        let found = found.ok_or_else(|| gone("the volume"))?;
        let wanted = self.storage_ref(volume).ok_or_else(|| gone("the storage"))?;
        let storage = self
            .storages
            .get(&ObjectKey::new(wanted.namespace, wanted.name))
            .ok_or_else(|| gone("the storage"))?;
        let content = move_bytes::content(&found, self.mounts.of(volume.uid()));
        let work = Move {
            client: self.client.clone(),
            mover: self.mover.clone(),
            storage,
            volume: volume.clone(),
            content,
            snapshot_of: volume.barrier().and_then(Result::ok).map(|handle| handle.volume().to_owned()),
            node: self.node.clone(),
        };
        let (progress, seen) = tokio::sync::watch::channel(lifeboat_mover::Progress::default());
        self.jobs.start(volume.uid(), Copying { operation, progress: seen }, Box::pin(work.run(progress)));
        Ok(())
    }
}

fn precondition(volume: &LogicalVolume) -> Value {
    json!({ "uid": volume.metadata.uid, "resourceVersion": volume.metadata.resource_version })
}

/// Whom a volume belongs to, told by itself: a node whose cluster is lost can still say what it has.
fn tags(volume: &LogicalVolume) -> BTreeSet<String> {
    let claim = volume.note(annotations::CLAIM).map(|claim| format!("lifeboat.claim={claim}"));
    let object = format!("lifeboat.logicalvolume={}", volume.metadata.name.as_deref().unwrap_or_default());
    claim.into_iter().chain([object, format!("lifeboat.uid={}", volume.uid())]).collect()
}

impl Controller for Volumes {
    const NAME: &'static str = "logicalvolumes";
    type Key = ObjectKey;
    type World = World;
    type Effect = VolumeEffect;
    type Why = VolumeWhy;
    type Status = LogicalVolumeStatus;

    fn observe(&self, key: &ObjectKey, trouble: Option<&Trouble>) -> Option<World> {
        self.world(key, trouble)
    }

    fn decide(world: &World, now: Timestamp) -> VolumeDecision {
        decide(world, now)
    }

    async fn act(&self, key: &ObjectKey, effect: VolumeEffect) -> Result<(), EffectError> {
        let volume = self.current(key)?;
        let (uid, class) = (volume.uid(), volume.class());
        match effect {
            VolumeEffect::Claim { finalizers, barrier } => self.claim(&volume, finalizers, barrier).await,
            VolumeEffect::List => self.disks.listed(class).await,
            VolumeEffect::Create { size } => self.create(&volume, size, true).await,
            VolumeEffect::Stage { size } => self.create(&volume, size, false).await,
            VolumeEffect::Copy { source, size, read_only, short_lived } => {
                self.copy(&volume, source, size, read_only, short_lived).await
            }
            VolumeEffect::Grow { size } => {
                let (published, _) = self.on_disk(&volume);
                let name = published.map_or_else(|| staging_name(uid), |found| found.name);
                let work = self.disks.lvm().resize(class, &name, size);
                self.change(&volume, "growing the volume", work).await.map(drop)
            }
            VolumeEffect::Mount { operation } => self.mount(&volume, &operation).await,
            VolumeEffect::Unmount => {
                self.change(&volume, "releasing the mount", self.mounts.unmount(uid)).await
            }
            VolumeEffect::Start { operation } => self.start(&volume, operation),
            VolumeEffect::Stop => {
                self.jobs.end(uid).await;
                Ok(())
            }
            VolumeEffect::Publish => {
                let staging = staging_name(uid);
                let work = self.disks.lvm().rename(class, &staging, uid);
                self.change(&volume, "publishing the restored volume", work).await
            }
            VolumeEffect::DropStaging => self.remove(&volume, &[&staging_name(uid)]).await,
            VolumeEffect::DropLocal => self.remove(&volume, &[uid]).await,
            VolumeEffect::Remove => self.remove(&volume, &[&staging_name(uid), uid]).await,
            VolumeEffect::Release => self.release(&volume).await,
        }
    }

    fn shown(world: &World) -> Option<&LogicalVolumeStatus> {
        world.volume.status.as_ref()
    }

    async fn show(&self, world: &World, status: LogicalVolumeStatus) -> Result<(), EffectError> {
        let before = world.volume.status.clone().unwrap_or_default();
        let key = ObjectKey::of(&*world.volume);
        let changes = difference(&before, &status)?;
        let patch = Patch::Merge(json!({ "metadata": precondition(&world.volume), "status": changes }));
        self.volumes.patch_status(&key, &patch).await.map(drop)
    }

    fn subject(world: &World) -> Option<ObjectReference> {
        Some(reference(world))
    }

    fn forget(&self, key: &ObjectKey) {
        self.refused.lock().remove(key);
        self.gone.notify_one();
    }
}
