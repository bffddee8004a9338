//! Act: cuts, sends and clears away.

use crate::ground::{Ground, stale};
use crate::jobs::Jobs;
use crate::place::{EPOCH_TAG, Here, Place, claim, epoch_of, find, listed};
use crate::source::decide::{Effect, SourceDecision, decide};
use crate::source::failure::Failure;
use crate::source::send::{Copy, memory};
use crate::source::status;
use crate::source::world::{Cut, FUZZY_TAG, World, cut_name};
use crate::why::Wait;
use crate::words::{Words as _, difference, lineage};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::Patch;
use lifeboat_api::annotations;
use lifeboat_api::conditions::volsync as words;
use lifeboat_api::volsync::{ReplicationSource, ReplicationSourceStatus};
use lifeboat_engine::{Class, Controller, EffectError, ObjectKey, Trouble};
use lifeboat_lvm::{Access, AccessMode, Consistency, Error, Snapshot};
use lifeboat_node::{CopyCare, Purpose};
use lifeboat_stream::{Sent, Source, Trust};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A snapshot of a class without shared blocks may take this share of its origin before it dies, in percent.
const SHORT_LIVED_PERCENT: u64 = 20;
/// And at least this much.
const SHORT_LIVED_LEAST: u64 = 64 << 20;

/// The controller of the senders whose volumes are on this node.
pub struct Senders {
    pub(crate) ground: Ground,
    pub(crate) jobs: Jobs<Sent, Failure>,
}

impl Senders {
    fn current(&self, key: &ObjectKey) -> Result<Arc<ReplicationSource>, EffectError> {
        self.ground.kinds.sources.get(key).ok_or_else(|| stale(format!("ReplicationSource {key} is gone")))
    }

    fn place(&self, source: &ReplicationSource) -> Place {
        let (kinds, disks) = (&self.ground.kinds, &self.ground.disks);
        let name = source.spec.source_pvc.as_deref().unwrap_or_default();
        let claim = claim(kinds, source.space(), name);
        find(kinds, disks, &self.ground.config.node, claim.as_deref())
    }

    fn here(&self, source: &ReplicationSource) -> Result<Box<Here>, EffectError> {
        match self.place(source) {
            Place::Here(here) => Ok(here),
            _ => Err(stale("the volume is not here any more")),
        }
    }

    fn cut_of(&self, source: &ReplicationSource, here: &Here) -> Option<Cut> {
        listed(&self.ground.disks, &here.class, &cut_name(source.uid())).and_then(Cut::of)
    }

    async fn cut(
        &self,
        source: &ReplicationSource,
        token: Option<String>,
        epoch: u64,
    ) -> Result<(), EffectError> {
        let (ground, here) = (&self.ground, self.here(source)?);
        let lvm = ground.disks.shared();
        let tagged = epoch_of(&here.volume);
        if tagged < epoch {
            let tag = |epoch: u64| BTreeSet::from([format!("{EPOCH_TAG}={epoch}")]);
            let (add, remove) = (tag(epoch), tag(tagged));
            let work = lvm.retag(&here.class, &here.uid, &add, &remove);
            ground.disks.change(&here.class, "noting the epoch on the volume", work).await?;
        }
        let care = match &here.volume.access {
            Access::Device(device) if !here.block => ground.mounts.care(device).await.map_err(|error| {
                EffectError::caused(Class::Transient, "looking at the volume's filesystem", error)
            })?,
            _ => CopyCare::Nothing,
        };
        let name = source.spec.source_pvc.as_deref().unwrap_or_default();
        let of = claim(&ground.kinds, source.space(), name).ok_or_else(|| stale("the claim is gone"))?;
        // Before the snapshot begins: what was written until now is in it.
        let cut = ground.clock.now();
        let generation = fresh(source, cut);
        let mut tags = Cut::tags(&generation, cut, epoch, token.as_deref());
        tags.insert(Cut::lineage_tag(lineage(&of)));
        // Directories may be written while they are copied. Until it is known that this one was not, it counts as if it was.
        let unsure = matches!(here.volume.access, Access::Directory(_));
        tags.extend(unsure.then(|| FUZZY_TAG.to_owned()));
        let wanted = Snapshot {
            name: cut_name(source.uid()),
            class: here.class.clone(),
            source: here.uid.clone(),
            mode: if care == CopyCare::Nothing { AccessMode::ReadOnly } else { AccessMode::ReadWrite },
            size: here.volume.size,
            tags,
            short_lived: Some((here.volume.size / 100 * SHORT_LIVED_PERCENT).max(SHORT_LIVED_LEAST)),
        };
        let work = async {
            match care {
                CopyCare::Still { mounted: Some(at) } => {
                    let (lvm, name) = (lvm.clone(), wanted.name.clone());
                    ground.mounts.while_still(&name, at, async move { lvm.snapshot(wanted).await }).await
                }
                CopyCare::Still { mounted: None } | CopyCare::Nothing => lvm.snapshot(wanted).await,
            }
        };
        let taken = ground.disks.change(&here.class, "taking a snapshot of the volume", work).await?;
        if unsure && taken.consistency == Consistency::Crash {
            let (none, tag) = (BTreeSet::new(), BTreeSet::from([FUZZY_TAG.to_owned()]));
            let work = lvm.retag(&here.class, &taken.volume.name, &none, &tag);
            ground.disks.change(&here.class, "noting that the snapshot shows one moment", work).await?;
        }
        Ok(())
    }

    async fn mount(&self, source: &ReplicationSource) -> Result<(), EffectError> {
        let here = self.here(source)?;
        let cut = self.cut_of(source, &here).ok_or_else(|| stale("the snapshot is gone"))?;
        let Access::Device(device) = &cut.volume.access else { return Ok(()) };
        let work = self.ground.mounts.mount(&cut.volume.name, device, Purpose::Backup);
        self.ground.disks.change(&here.class, "mounting the snapshot", work).await
    }

    fn start(&self, source: &Arc<ReplicationSource>) -> Result<(), EffectError> {
        let here = self.here(source)?;
        let cut = self.cut_of(source, &here).ok_or_else(|| stale("the snapshot is gone"))?;
        let ground = &self.ground;
        let copied = Here { volume: cut.volume.clone(), ..*here.clone() };
        let (path, block) = ground.path(&copied, &cut.volume.name)?;
        let content = match block {
            true => Source::Device { path, changed: None },
            false => Source::Tree { path, trust: Trust::Stamps },
        };
        // By the volume and where it goes, so that a sender that is made anew goes on where the last one was.
        let folder = ground.config.state.join("sources").join(&here.uid);
        std::fs::create_dir_all(&folder).map_err(|error| {
            EffectError::caused(Class::Transient, format!("making {}", folder.display()), error)
        })?;
        let generation = cut.generation.clone();
        let copy = Copy {
            client: ground.client.clone(),
            resolve: ground.resolve.clone(),
            source: source.clone(),
            cut,
            content,
            index: folder.join(memory(source)),
            bytes_per_second: ground.config.bytes_per_second,
            timing: ground.config.timing,
        };
        self.jobs.start(source.uid(), generation, Box::pin(copy.run()));
        Ok(())
    }

    async fn remove(&self, uid: &str, class: &str) -> Result<(), EffectError> {
        let name = cut_name(uid);
        if self.jobs.of(uid).is_some_and(|job| job.outcome.is_none()) {
            self.jobs.end(uid).await;
        }
        let work = async {
            self.ground.mounts.unmount(&name).await?;
            match self.ground.disks.lvm().remove(class, &name).await {
                Ok(()) | Err(Error::NoVolume { .. }) => Ok(()),
                Err(error) => Err(error),
            }
        };
        self.ground.disks.change(class, "removing the snapshot that was sent", work).await
    }
}

/// A name that no other state of the volume has, even where the clock stands still.
fn fresh(source: &ReplicationSource, cut: Timestamp) -> String {
    let name = format!("{}-{}", source.uid(), cut.as_nanosecond());
    let last = source.status.as_ref().and_then(|status| status.external.get(words::EXTERNAL_GENERATION));
    match last {
        Some(last) if last.starts_with(&name) => format!("{last}+"),
        _ => name,
    }
}

impl Controller for Senders {
    const NAME: &'static str = "senders";
    type Key = ObjectKey;
    type World = World;
    type Effect = Effect;
    type Why = Wait;
    type Status = ReplicationSourceStatus;

    fn observe(&self, key: &ObjectKey, trouble: Option<&Trouble>) -> Option<World> {
        let kinds = &self.ground.kinds;
        let source = kinds.sources.get(key).filter(|source| source.spec.rsync_tls.is_some())?;
        let place = self.place(&source);
        let cut = match &place {
            Place::Here(here) => self.cut_of(&source, here),
            // Whoever has the volume sees to it.
            Place::Elsewhere(_) => return None,
            _ => None,
        };
        let name = source.spec.source_pvc.as_deref().unwrap_or_default();
        let claim = claim(kinds, source.space(), name);
        Some(World {
            mount: self.ground.mounts.of(&cut_name(source.uid())),
            epochs: self.ground.epochs(&*source),
            orphan: self.ground.is_orphan(&*source),
            held: claim.is_some_and(|claim| claim.note(annotations::USE_COPY_TRIGGER).is_some()),
            job: self.jobs.of(source.uid()),
            room: self.jobs.has_room(),
            rival: kinds.has_rival(),
            trouble: trouble.cloned(),
            place,
            cut,
            source,
        })
    }

    fn decide(world: &World, now: Timestamp) -> SourceDecision {
        decide(world, now)
    }

    async fn act(&self, key: &ObjectKey, effect: Effect) -> Result<(), EffectError> {
        let source = self.current(key)?;
        match effect {
            Effect::List { class } => self.ground.disks.listed(&class).await,
            Effect::Cut { token, epoch } => self.cut(&source, token, epoch).await,
            Effect::Mount => self.mount(&source).await,
            Effect::Start => self.start(&source),
            Effect::Stop => {
                self.jobs.end(source.uid()).await;
                Ok(())
            }
            Effect::Drop => {
                let here = self.here(&source)?;
                self.remove(source.uid(), &here.class).await
            }
        }
    }

    fn shown(world: &World) -> Option<&ReplicationSourceStatus> {
        world.source.status.as_ref()
    }

    async fn show(&self, world: &World, status: ReplicationSourceStatus) -> Result<(), EffectError> {
        let source = &world.source;
        let changes = difference(&source.status, &status)?;
        let patch = Patch::Merge(json!({ "metadata": source.guard(), "status": changes }));
        self.ground.kinds.sources.patch_status(&ObjectKey::of(&**source), &patch).await.map(drop)
    }

    fn subject(world: &World) -> Option<ObjectReference> {
        Some(status::subject(world))
    }
}
