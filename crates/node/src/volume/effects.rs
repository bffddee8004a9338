//! Act: carries out what was decided about a LogicalVolume, on the disks, in the store and on the object.

use crate::disks::Look;
use crate::lease::HELD_FOR;
use crate::mounts::{CopyCare, Fence, Purpose};
use crate::volume::decide::{VolumeDecision, VolumeEffect, backup_tag, decide, mode};
use crate::volume::move_bytes::{self, Move};
use crate::volume::run::end;
use crate::volume::status::{VolumeWhy, reference};
use crate::volume::view::{Copying, Refused, Unmountable, Volumes};
use crate::volume::words::VolumeWords;
use crate::volume::world::{Home, World, staging_name};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::Patch;
use lifeboat_api::annotations::{self, parameters};
use lifeboat_api::topolvm::{LogicalVolume, LogicalVolumeStatus, SnapshotOperation};
use lifeboat_api::{finalizers, labels};
use lifeboat_engine::conditions::whole_seconds;
use lifeboat_engine::{Class, Controller, EffectError, ObjectKey, Trouble, difference};
use lifeboat_lvm::{Access, Create, Error, Snapshot};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Says on a staging device that its filesystem is ours and not what an earlier owner left.
const FORMATTED_TAG: &str = "lifeboat.formatted";
/// A short-lived snapshot may take this share of its origin before it dies, in percent.
const SHORT_LIVED_PERCENT: u64 = 20;
/// And at least this much.
const SHORT_LIVED_LEAST: u64 = 64 << 20;
/// How long a change of the disks is waited for, its turn included.
const DISKS_WITHIN: Duration = Duration::from_mins(10);

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
        stored_in: Option<String>,
    ) -> Result<(), EffectError> {
        let mut metadata = precondition(volume);
        let known = volume.metadata.finalizers.iter().flatten().cloned();
        metadata["finalizers"] = json!(known.chain(add).collect::<Vec<_>>());
        metadata["labels"] = json!({ labels::CREATED_BY: labels::CREATED_BY_TOPOLVM });
        let barrier = barrier.map(|handle| (annotations::SNAPSHOT_RESTORE_REQUIRED, handle));
        let stored_in = stored_in.map(|storage| (annotations::STORED_IN, storage));
        let notes: BTreeMap<&str, String> = barrier.into_iter().chain(stored_in).collect();
        if !notes.is_empty() {
            metadata["annotations"] = json!(notes);
        }
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        self.volumes.patch(&ObjectKey::of(volume), &patch).await.map(drop)
    }

    /// Nothing of the volume is left: asked of the disks once more, since with the finalizer goes the last who knows of it. Its class may name
    /// other disks than when it was made; another class that has it is where it is removed.
    async fn must_be_gone(&self, volume: &LogicalVolume) -> Result<(), EffectError> {
        let (uid, class) = (volume.uid(), volume.class());
        let name = volume.metadata.name.as_deref().unwrap_or_default();
        self.disks.listed(class).await?;
        let (published, staging) = self.on_disk(volume);
        if published.is_some() || staging.is_some() {
            return Err(EffectError::new(
                Class::Stale,
                format!("the volume of LogicalVolume {name} is still there"),
            ));
        }
        if self.removed.lock().contains(uid) || volume.is_cleaned() || !volume.is_made() {
            return Ok(());
        }
        let failed =
            |error| EffectError::caused(Class::Transient, format!("looking for LogicalVolume {name}"), error);
        let staging = staging_name(uid);
        let elsewhere = self.disks.elsewhere(class, &[uid, &staging]).await.map_err(failed)?;
        for (other, found) in &elsewhere {
            tracing::warn!(
                volume = name,
                class,
                other,
                found,
                "the volume is in another device class than it asks for; it is removed there"
            );
            match self.disks.lvm().remove(other, found).await {
                Ok(()) | Err(Error::NoVolume { .. }) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        match self.home(volume) {
            // Other classes were served when that was decided.
            Home::Unserved(storage) if elsewhere.is_empty() && !volume.is_abandoned() => {
                let why = format!(
                    "the volume of LogicalVolume {name} was made in {storage}, which no device class names"
                );
                Err(EffectError::new(Class::Stale, why))
            }
            _ => Ok(()),
        }
    }

    async fn release(&self, volume: &LogicalVolume) -> Result<(), EffectError> {
        self.must_be_gone(volume).await?;
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
            // In one turn: between two, every other volume of the node would be made first.
            if publish { lvm.create_as(wanted, uid).await } else { lvm.create(wanted).await.map(drop) }
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
        self.change(volume, "removing the volume", work).await?;
        self.removed.lock().insert(volume.uid().to_owned());
        Ok(())
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
            let mounted = self.mounts.mount(volume.uid(), device, purpose).await;
            if let Err(error) = &mounted
                && !error.is_transient()
            {
                let after = volume.snapshot().and_then(|snapshot| snapshot.completion_time.clone());
                let found = Unmountable { after, why: error.to_string() };
                self.unmountable.lock().insert(volume.uid().to_owned(), found);
            }
            mounted?;
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
        let fence = self.fence(volume)?;
        let (progress, seen) = tokio::sync::watch::channel(lifeboat_mover::Progress::default());
        let (leases, uid) = (self.leases.clone(), volume.uid().to_owned());
        let work = async move {
            tokio::select! {
                biased;
                () = leases.lost(&uid) => Err(lifeboat_mover::Error::Transient(format!(
                    "the record of this operation could not be renewed for {} s, so another process may take it over; it was stopped",
                    HELD_FOR.as_secs()
                ))),
                moved = work.run(progress) => moved,
            }
        };
        let mut until = seen.clone();
        #[expect(
            clippy::disallowed_methods,
            reason = "the fence stands until the last thread of the job has ended"
        )]
        tokio::spawn(async move {
            while until.changed().await.is_ok() {}
            drop(fence);
        });
        self.jobs.start(volume.uid(), Copying { operation, progress: seen }, Box::pin(work));
        Ok(())
    }

    /// Nobody else on this node writes the volume as long as this lives.
    fn fence(&self, volume: &LogicalVolume) -> Result<Fence, EffectError> {
        self.mounts.fence(volume.uid()).map_err(|error| {
            let name = volume.metadata.name.as_deref().unwrap_or_default();
            EffectError::caused(
                Class::Transient,
                format!("writing the volume of LogicalVolume {name}"),
                error,
            )
        })
    }

    /// Gives the restored volume its real name, unless another process may have begun to fill it anew.
    async fn publish(&self, volume: &LogicalVolume) -> Result<(), EffectError> {
        let (uid, class) = (volume.uid(), volume.class());
        if !self.leases.is_held(uid) {
            // The pass after the next heartbeat does it.
            self.renew(volume).await?;
        }
        let _fence = self.fence(volume)?;
        let staging = staging_name(uid);
        let work = self.disks.lvm().rename(class, &staging, uid);
        self.change(volume, "publishing the restored volume", work).await
    }

    /// Says that this process is still at it; refused where the record was changed by another.
    async fn renew(&self, volume: &LogicalVolume) -> Result<(), EffectError> {
        let began = Instant::now();
        let metadata = precondition(volume);
        let status = json!({ "snapshot": { "heartbeatTime": Time(whole_seconds(self.clock.now())) } });
        let patch = Patch::Merge(json!({ "metadata": metadata, "status": status }));
        self.volumes.patch_status(&ObjectKey::of(volume), &patch).await?;
        self.leases.renew(volume.uid(), began);
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
            VolumeEffect::Claim { finalizers, barrier, stored_in } => {
                self.claim(&volume, finalizers, barrier, stored_in).await
            }
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
            VolumeEffect::Reserve if self.jobs.reserve(uid) => Ok(()),
            VolumeEffect::Reserve => Err(EffectError::new(Class::Stale, "another was quicker")),
            VolumeEffect::Stop => {
                end(&self.jobs, uid).await;
                Ok(())
            }
            VolumeEffect::Publish => self.publish(&volume).await,
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
        let began = Instant::now();
        self.volumes.patch_status(&key, &patch).await?;
        let beats = |status: &LogicalVolumeStatus| status.snapshot.as_ref()?.heartbeat_time.clone();
        if beats(&status).is_some() && beats(&status) != beats(&before) {
            self.leases.renew(world.volume.uid(), began);
        }
        Ok(())
    }

    fn subject(world: &World) -> Option<ObjectReference> {
        Some(reference(world))
    }

    /// The disks have their own pace: a volume group that is slow, or a filesystem of many terabytes, is waited for. What was begun goes
    /// on when the wait ends, and the next try waits for it.
    fn effect_within(effect: &VolumeEffect, usual: Duration) -> Duration {
        match effect {
            VolumeEffect::Claim { .. } | VolumeEffect::Reserve | VolumeEffect::Start { .. } => usual,
            _ => usual.max(DISKS_WITHIN),
        }
    }

    fn forget(&self, key: &ObjectKey) {
        self.refused.lock().remove(key);
        let is_there = |uid: &String| self.by_uid.first(uid).is_some();
        self.removed.lock().retain(is_there);
        self.unmountable.lock().retain(|uid, _| is_there(uid));
        self.leases.keep(is_there);
        self.gone.notify_one();
    }
}
