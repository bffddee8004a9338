//! Act: calls the peer, cuts and sends, and gives volumes their roles.

use crate::calls::{Line, Parcel};
use crate::copies::{EPOCH_TAG, FUZZY_TAG, Image, Kind, epoch_of, last_tag, passing_tags};
use crate::ground::{Ground, real};
use crate::kinds::claim_key;
use crate::role::decide::{Effect, RoleDecision, decide};
use crate::role::replicate::{MEET, sending};
use crate::role::why::RoleWhy;
use crate::role::world::{Here, Place, World};
use crate::talk::{Ask, Offer};
use crate::words::{Words as _, epochs, group, is_bound, is_secondary, shown, stale, with_finalizer};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ObjectReference, PersistentVolume};
use kube::api::Patch;
use lifeboat_api::annotations::{self, parameters};
use lifeboat_api::finalizers;
use lifeboat_api::replication::{VolumeReplication, VolumeReplicationStatus};
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_engine::{Class, Controller, EffectError, ObjectKey, Trouble};
use lifeboat_lvm::{Access, AccessMode, Consistency, Snapshot};
use lifeboat_node::provision::words::{csi_of, device_class, reference};
use lifeboat_stream::{Source, Trust};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A snapshot of a class without shared blocks may take this share of its origin before it dies, in percent.
const SHORT_LIVED_PERCENT: u64 = 20;
/// And at least this much.
const SHORT_LIVED_LEAST: u64 = 64 << 20;

/// The controller of the VolumeReplications whose volumes are on this node.
pub struct Roles {
    pub(crate) ground: Ground,
}

impl Roles {
    fn current(&self, key: &ObjectKey) -> Result<Arc<VolumeReplication>, EffectError> {
        let found = self.ground.kinds.replications.get(key);
        found.ok_or_else(|| stale(format!("VolumeReplication {key} is gone")))
    }

    fn volume_of(&self, replication: &VolumeReplication) -> Option<Arc<PersistentVolume>> {
        let kinds = &self.ground.kinds;
        let claim = kinds.claims.get(&claim_key(replication)?).filter(|claim| is_bound(claim))?;
        let name = claim.spec.as_ref()?.volume_name.clone().filter(|name| !name.is_empty())?;
        kinds.volumes.get(&ObjectKey::cluster_wide(name))
    }

    /// Where its volume is; nothing where another node has it.
    fn place(&self, replication: &VolumeReplication) -> Option<Place> {
        let kinds = &self.ground.kinds;
        let Some(key) = claim_key(replication) else { return Some(Place::NoClaim) };
        if kinds.claims.get(&key).is_none() {
            return Some(Place::NoClaim);
        }
        let Some(volume) = self.volume_of(replication) else { return Some(Place::Unbound) };
        let found = csi_of(&volume).and_then(|(_, handle)| kinds.by_uid.first(&handle.to_owned()));
        let Some(logical) = found else {
            return Some(Place::Foreign(format!(
                "the volume {} of the claim {} is not on any node's own disks, so it cannot be mirrored: use a storage class of node storage",
                volume.name(),
                key.name
            )));
        };
        if logical.spec.node_name != self.ground.config.node {
            return None;
        }
        let (class, seen) = (device_class(&logical).to_owned(), self.ground.copies(&logical));
        Some(Place::Here(Box::new(Here { volume: logical, class, seen })))
    }

    fn here(&self, replication: &VolumeReplication) -> Result<Here, EffectError> {
        match self.place(replication) {
            Some(Place::Here(here)) => Ok(*here),
            _ => Err(stale("the volume is not here any more")),
        }
    }

    fn line(&self, replication: &VolumeReplication) -> Result<Line, EffectError> {
        let class = ObjectKey::cluster_wide(replication.spec.volume_replication_class.clone());
        let class = self.ground.kinds.classes.get(&class).ok_or_else(|| stale("the class is gone"))?;
        let (client, timing) = (self.ground.client.clone(), self.ground.config.timing);
        Ok(Line { client, parameters: class.spec.parameters.clone(), timing })
    }

    fn offer(&self, replication: &VolumeReplication, here: &Here) -> Result<Offer, EffectError> {
        let live =
            self.ground.seen(&here.volume)?.live.ok_or_else(|| stale("the volume is not live any more"))?;
        let volume = &here.volume;
        let persistent = self.volume_of(replication);
        let mode = persistent.as_ref().and_then(|one| one.spec.as_ref()?.volume_mode.clone());
        let claim = claim_key(replication).map(|key| key.to_string()).unwrap_or_default();
        Ok(Offer {
            theirs: volume.uid().to_owned(),
            yours: volume.note(annotations::MIRROR_PEER).map(str::to_owned),
            name: volume.spec.name.clone(),
            claim,
            mode: mode.unwrap_or_else(|| "Filesystem".to_owned()),
            filesystem: volume.note(parameters::FS_TYPE).map(str::to_owned),
            size: live.size,
            class: here.class.clone(),
            epoch: epoch_of(&live),
            from: self.ground.advertise,
        })
    }

    async fn call(&self, replication: &VolumeReplication, effect: &Effect) -> Result<(), EffectError> {
        let (ground, here) = (&self.ground, self.here(replication)?);
        let line = self.line(replication)?;
        let uid = replication.uid();
        match effect {
            Effect::Ask { of } => {
                let ask = Ask {
                    theirs: here.volume.uid().to_owned(),
                    yours: here.volume.note(annotations::MIRROR_PEER).map(str::to_owned),
                    from: ground.advertise,
                };
                ground.jobs.start(uid, of.to_owned(), Box::pin(line.ask(ask)));
            }
            Effect::Meet => {
                let offer = self.offer(replication, &here)?;
                ground.jobs.start(uid, MEET.to_owned(), Box::pin(line.meet(offer)));
            }
            _ => {
                let offer = self.offer(replication, &here)?;
                let cut = ground.seen(&here.volume)?.cut.ok_or_else(|| stale("the snapshot is gone"))?;
                let content = match &cut.volume.access {
                    Access::Directory(path) => Source::Tree { path: path.clone(), trust: Trust::Stamps },
                    Access::Device(device) => Source::Device { path: real(device), changed: None },
                };
                let index = ground.index(&offer.theirs, offer.yours.as_deref().unwrap_or("unknown"))?;
                let bytes_per_second = ground.config.bytes_per_second;
                let (of, image) = (sending(&cut.image.generation), cut.image);
                let parcel = Parcel { image, content, index, bytes_per_second };
                ground.jobs.start(uid, of, Box::pin(line.send(offer, parcel)));
            }
        }
        Ok(())
    }

    async fn cut(&self, volume: &LogicalVolume, epoch: u64, last: bool) -> Result<(), EffectError> {
        let ground = &self.ground;
        let live = ground.seen(volume)?.live.ok_or_else(|| stale("the volume is not live any more"))?;
        let (class, uid) = (device_class(volume), volume.uid());
        // Before the snapshot begins: what was written until now is in it.
        let cut = ground.clock.now();
        // Directories may be written while they are copied. Until it is known that this one was not, it counts as if it was.
        let fuzzy = matches!(live.access, Access::Directory(_));
        let image = Image { generation: format!("{uid}-{}", cut.as_nanosecond()), cut, epoch, fuzzy };
        let mut tags = image.tags();
        tags.extend(last.then(last_tag));
        let wanted = Snapshot {
            name: Kind::Cut.name(uid),
            class: class.to_owned(),
            source: uid.to_owned(),
            mode: AccessMode::ReadOnly,
            size: live.size,
            tags,
            short_lived: Some((live.size / 100 * SHORT_LIVED_PERCENT).max(SHORT_LIVED_LEAST)),
        };
        let work = ground.disks.lvm().snapshot(wanted);
        let taken = ground.disks.change(class, "taking a snapshot of the volume", work).await?;
        if fuzzy && taken.consistency == Consistency::Crash {
            let (none, tag) = (BTreeSet::new(), BTreeSet::from([FUZZY_TAG.to_owned()]));
            let work = ground.disks.lvm().retag(class, &taken.volume.name, &none, &tag);
            ground.disks.change(class, "noting that the snapshot shows one moment", work).await?;
        }
        Ok(())
    }

    /// Writes annotations of the LogicalVolume, and its finalizer with them.
    async fn mark(&self, volume: &LogicalVolume, notes: serde_json::Value) -> Result<(), EffectError> {
        let mut metadata = with_finalizer(volume, finalizers::MIRROR, true);
        metadata["annotations"] = notes;
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        self.ground.kinds.logical.patch(&ObjectKey::of(volume), &patch).await.map(drop)
    }

    async fn stamp(&self, volume: &LogicalVolume, epoch: u64) -> Result<(), EffectError> {
        let live = self.ground.seen(volume)?.live.ok_or_else(|| stale("the volume is not live any more"))?;
        if epoch_of(&live) > epoch {
            return Err(stale("the volume carries a higher epoch"));
        }
        let tag = BTreeSet::from([format!("{EPOCH_TAG}={epoch}")]);
        self.ground.retag(volume, Kind::Live, tag, passing_tags(&live)).await
    }

    /// What only this side has gets a name of its own and is kept.
    async fn set_aside(&self, volume: &LogicalVolume) -> Result<(), EffectError> {
        let live = self.ground.seen(volume)?.live.ok_or_else(|| stale("the volume is not live any more"))?;
        let cut = self.ground.clock.now();
        let generation = format!("diverged-{}-{}", volume.uid(), cut.as_nanosecond());
        let image = Image { generation, cut, epoch: epoch_of(&live), fuzzy: false };
        self.ground.retag(volume, Kind::Live, image.tags(), passing_tags(&live)).await?;
        self.ground.rename(volume, Kind::Live, Kind::Diverged).await
    }

    async fn retire(&self, volume: &LogicalVolume, image: &Image) -> Result<(), EffectError> {
        let copies = self.ground.seen(volume)?;
        let live = copies.live.ok_or_else(|| stale("the volume is not live any more"))?;
        let cut = copies.cut.filter(|cut| cut.last && cut.image == *image);
        cut.ok_or_else(|| stale("the last copy is gone"))?;
        self.ground.retag(volume, Kind::Live, image.tags(), passing_tags(&live)).await?;
        self.ground.rename(volume, Kind::Live, Kind::Replica).await
    }

    async fn hold(&self, replication: &VolumeReplication, on: bool) -> Result<(), EffectError> {
        let metadata = with_finalizer(replication, finalizers::VOLUME_REPLICATION, on);
        let (objects, key) = (&self.ground.kinds.replications, ObjectKey::of(replication));
        match objects.patch(&key, &Patch::Merge(json!({ "metadata": metadata }))).await {
            // The last finalizer takes the object with it.
            Err(error) if !on && error.class == Class::Stale && objects.get(&key).is_none() => Ok(()),
            done => done.map(drop),
        }
    }

    /// What is done to the volume, one hand at a time.
    async fn handle(&self, replication: &VolumeReplication, effect: Effect) -> Result<(), EffectError> {
        let ground = &self.ground;
        let uid = self.here(replication)?.volume.uid().to_owned();
        let _hand = ground.hold(&uid).await;
        let volume = self.here(replication)?.volume;
        let becomes_primary = matches!(effect, Effect::Open | Effect::Stamp { .. } | Effect::Rename { .. });
        if becomes_primary && !ground.kinds.is_wanted(&uid) {
            return Err(stale("nobody wants the volume to be primary any more"));
        }
        match effect {
            Effect::Pair { peer } => self.mark(&volume, json!({ annotations::MIRROR_PEER: peer })).await,
            Effect::Stamp { epoch } => self.stamp(&volume, epoch).await,
            Effect::Cut { epoch, last } => self.cut(&volume, epoch, last).await,
            Effect::Shut => {
                ground.desk.note(&uid, |memory| memory.promoting = false);
                self.mark(&volume, json!({ annotations::MIRROR_ROLE: annotations::MIRROR_SECONDARY })).await
            }
            Effect::Open => self.mark(&volume, json!({ annotations::MIRROR_ROLE: null })).await,
            Effect::Take => {
                ground.desk.note(&uid, |memory| memory.promoting = true);
                Ok(())
            }
            Effect::Close => {
                ground.close(&uid).await;
                Ok(())
            }
            Effect::Probe => ground.probe(&volume).await,
            Effect::Seal(image) => ground.seal(&volume, &image).await,
            Effect::MakeWay => ground.make_way(&volume).await,
            Effect::Rename { from, to } => ground.rename(&volume, from, to).await,
            Effect::Drop(kinds) => ground.remove(&volume, &kinds).await,
            Effect::SetAside if is_secondary(&volume) => self.set_aside(&volume).await,
            Effect::Retire(image) if is_secondary(&volume) => self.retire(&volume, &image).await,
            _ => Err(stale("the volume changes its role")),
        }
    }
}

impl Controller for Roles {
    const NAME: &'static str = "volumereplications";
    type Key = ObjectKey;
    type World = World;
    type Effect = Effect;
    type Why = RoleWhy;
    type Status = VolumeReplicationStatus;

    fn observe(&self, key: &ObjectKey, trouble: Option<&Trouble>) -> Option<World> {
        let kinds = &self.ground.kinds;
        let replication = kinds.replications.get(key)?;
        let name = ObjectKey::cluster_wide(replication.spec.volume_replication_class.clone());
        let class = kinds.classes.get(&name);
        let ours = match &class {
            Some(class) => kinds.is_ours(class),
            // Nobody says whose it is but the volume itself, and our own finalizer.
            None => {
                let volume = self.volume_of(&replication);
                volume.as_deref().and_then(csi_of).is_some_and(|(driver, _)| driver == kinds.driver)
                    || replication.has_finalizer(finalizers::VOLUME_REPLICATION)
            }
        };
        if !ours {
            return None;
        }
        let place = self.place(&replication)?;
        let memory = match &place {
            Place::Here(here) => self.ground.desk.of(here.volume.uid()),
            _ => crate::desk::Memory::default(),
        };
        let group = group(&*replication).and_then(|key| kinds.groups.get(&key));
        let noted = replication.note(annotations::EPOCH).and_then(|text| text.parse::<u64>().ok());
        let users = claim_key(&replication).map(|claim| kinds.users.get(&claim)).unwrap_or_default();
        let mut users: Vec<String> = users.iter().map(|pod| format!("pod {}", pod.name())).collect();
        users.sort();
        Some(World {
            class,
            place,
            epochs: group.map(|group| epochs(&group)).or(noted.map(|epoch| (epoch, Some(epoch)))),
            users,
            memory,
            job: self.ground.jobs.of(replication.uid()),
            room: self.ground.jobs.has_room(),
            trouble: trouble.cloned(),
            replication,
        })
    }

    fn decide(world: &World, now: Timestamp) -> RoleDecision {
        decide(world, now)
    }

    async fn act(&self, key: &ObjectKey, effect: Effect) -> Result<(), EffectError> {
        let replication = self.current(key)?;
        match effect {
            Effect::List { class } => self.ground.disks.listed(&class).await,
            Effect::Hold => self.hold(&replication, true).await,
            Effect::Release => self.hold(&replication, false).await,
            Effect::Stop => {
                self.ground.jobs.end(replication.uid()).await;
                Ok(())
            }
            effect @ (Effect::Ask { .. } | Effect::Meet | Effect::Send) => {
                self.call(&replication, &effect).await
            }
            effect => self.handle(&replication, effect).await,
        }
    }

    fn shown(world: &World) -> Option<&VolumeReplicationStatus> {
        world.replication.status.as_ref()
    }

    async fn show(&self, world: &World, status: VolumeReplicationStatus) -> Result<(), EffectError> {
        let replication = &world.replication;
        let patch = Patch::Merge(shown(&**replication, replication.status.as_ref(), &status)?);
        self.ground.kinds.replications.patch_status(&ObjectKey::of(&**replication), &patch).await.map(drop)
    }

    fn subject(world: &World) -> Option<ObjectReference> {
        Some(reference(&*world.replication))
    }
}
