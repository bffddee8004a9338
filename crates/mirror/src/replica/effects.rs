//! Act: prepares copies, lets bytes in, publishes what is whole.

use crate::copies::{Filling, Image, Kind, passing_tags};
use crate::desk::Expected;
use crate::ground::{Ground, place};
use crate::halt;
use crate::replica::decide::{Effect, ReplicaDecision, ReplicaWhy, World, decide};
use crate::words::{Words as _, is_secondary, stale, with_finalizer};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::Patch;
use lifeboat_api::finalizers;
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_engine::{Class, Controller, EffectError, ObjectKey, Trouble};
use lifeboat_lvm::{AccessMode, ClassKind, Create, Snapshot};
use lifeboat_node::provision::words::{device_class, quantity, reference, wanted_size};
use lifeboat_stream::{Destination, Policy};
use serde_json::json;

/// The controller of the secondaries of this node.
pub struct Replicas {
    pub(crate) ground: Ground,
}

impl Ground {
    /// Whether the volumes of a class cannot share blocks, so that copies are reused rather than made.
    async fn is_thick(&self, class: &str) -> Result<bool, EffectError> {
        let classes = self.disks.lvm().classes().await.map_err(|error| {
            EffectError::caused(Class::Transient, "asking what the device classes are", error)
        })?;
        let found = classes.iter().find(|one| one.name == class || class.is_empty() && one.default);
        Ok(found.is_some_and(|one| one.kind == ClassKind::Thick))
    }

    /// Finds out whether the copy that is being filled is whole.
    pub(crate) async fn probe(&self, logical: &LogicalVolume) -> Result<(), EffectError> {
        let uid = logical.uid();
        let filling = self.seen(logical)?.filling.ok_or_else(|| stale("nothing is being filled"))?;
        let (incarnation, at) = (filling.incarnation.clone(), place(&filling.volume.access));
        let done = self.prober.probe(uid, &incarnation, at, self.reception(uid)).await;
        let done = done.map_err(|error| {
            EffectError::caused(Class::Transient, "reading how far an earlier reception came", error)
        })?;
        self.desk.note(uid, |memory| {
            memory.probed = Some(incarnation);
            memory.completed = done.or(memory.completed.take());
        });
        Ok(())
    }

    /// Notes on the copy that is being filled that it is whole.
    pub(crate) async fn seal(&self, logical: &LogicalVolume, image: &Image) -> Result<(), EffectError> {
        let filling = self.seen(logical)?.filling.ok_or_else(|| stale("nothing is being filled"))?;
        // Nothing may write to it from now on.
        self.close(logical.uid()).await;
        self.retag(logical, Kind::Filling, image.tags(), passing_tags(&filling.volume)).await?;
        self.desk.note(logical.uid(), |memory| memory.completed = None);
        Ok(())
    }

    /// Makes way for a whole copy.
    pub(crate) async fn make_way(&self, logical: &LogicalVolume) -> Result<(), EffectError> {
        let copies = self.seen(logical)?;
        if copies.filling.is_none_or(|filling| filling.complete.is_none()) {
            return Err(stale("nothing whole is there to take the place of the replica"));
        }
        if !self.is_thick(device_class(logical)).await? {
            return self.remove(logical, &[Kind::Replica]).await;
        }
        if copies.spare.is_some() {
            self.remove(logical, &[Kind::Spare]).await?;
        }
        self.rename(logical, Kind::Replica, Kind::Spare).await
    }
}

impl Replicas {
    async fn hold(&self, volume: &LogicalVolume, on: bool) -> Result<(), EffectError> {
        let patch = Patch::Merge(json!({ "metadata": with_finalizer(volume, finalizers::MIRROR, on) }));
        let objects = &self.ground.kinds.logical;
        match objects.patch(&ObjectKey::of(volume), &patch).await {
            // The last finalizer takes the object with it.
            Err(error)
                if !on && error.class == Class::Stale && objects.get(&ObjectKey::of(volume)).is_none() =>
            {
                Ok(())
            }
            done => done.map(drop),
        }
    }

    async fn grow(&self, volume: &LogicalVolume, size: u64) -> Result<(), EffectError> {
        let (ground, class) = (&self.ground, device_class(volume));
        if ground.seen(volume)?.filling.is_some() {
            let name = Kind::Filling.name(volume.uid());
            let work = ground.disks.lvm().resize(class, &name, size);
            ground.disks.change(class, &format!("growing {name}"), work).await?;
        }
        if size <= wanted_size(volume) {
            return Ok(());
        }
        let patch = json!({ "metadata": volume.guard(), "spec": { "size": quantity(size) } });
        ground.kinds.logical.patch(&ObjectKey::of(volume), &Patch::Merge(patch)).await.map(drop)
    }

    async fn prepare(&self, volume: &LogicalVolume) -> Result<(), EffectError> {
        let ground = &self.ground;
        let (class, uid, size) = (device_class(volume), volume.uid(), wanted_size(volume));
        let copies = ground.seen(volume)?;
        let incarnation = format!("{uid}-{}", ground.clock.now().as_nanosecond());
        let name = Kind::Filling.name(uid);
        let thick = ground.is_thick(class).await?;
        let lvm = ground.disks.lvm();
        if let Some(spare) = &copies.spare {
            if !thick {
                return ground.remove(volume, &[Kind::Spare]).await;
            }
            let base = Image::of(spare).map(|image| image.generation);
            let tags = Filling::tags(base.as_deref(), &incarnation);
            ground.retag(volume, Kind::Spare, tags, passing_tags(spare)).await?;
            return ground.rename(volume, Kind::Spare, Kind::Filling).await;
        }
        let from = copies.replica.as_ref().map(|(_, volume)| (Kind::Replica, volume));
        let from =
            from.or(copies.diverged.as_ref().map(|volume| (Kind::Diverged, volume))).filter(|_| !thick);
        let Some((kind, source)) = from else {
            let create = Create {
                name: name.clone(),
                class: class.to_owned(),
                size,
                tags: Filling::tags(None, &incarnation),
                options: volume.spec.lvcreate_option_class.clone().unwrap_or_default(),
            };
            return ground.disks.change(class, &format!("making {name}"), lvm.create(create)).await.map(drop);
        };
        let base = Image::of(source).map(|image| image.generation);
        let snapshot = Snapshot {
            name: name.clone(),
            class: class.to_owned(),
            source: kind.name(uid),
            mode: AccessMode::ReadWrite,
            size: size.max(source.size),
            tags: Filling::tags(base.as_deref(), &incarnation),
            short_lived: None,
        };
        ground.disks.change(class, &format!("making {name}"), lvm.snapshot(snapshot)).await.map(drop)
    }

    fn register(&self, volume: &LogicalVolume) -> Result<(), EffectError> {
        let (ground, uid) = (&self.ground, volume.uid());
        let offer = ground.desk.of(uid).offer.ok_or_else(|| stale("the offer is gone"))?;
        let filling = ground.seen(volume)?.filling.ok_or_else(|| stale("nothing is there to be filled"))?;
        let destination = Destination {
            id: uid.to_owned(),
            key: offer.key.stream.clone(),
            epoch: offer.epoch,
            place: place(&filling.volume.access),
            base: filling.base.clone(),
            incarnation: filling.incarnation.clone(),
            state: ground.reception(uid),
            policy: Policy::default(),
            checkpoint: ground.config.checkpoint,
            terms: lifeboat_stream::Terms::default(),
        };
        let done = ground.destinations.register(destination);
        done.map_err(|error| {
            EffectError::caused(Class::Transient, format!("expecting bytes for {uid}"), error)
        })?;
        let expected = Expected { incarnation: filling.incarnation, epoch: offer.epoch };
        ground.desk.note(uid, |memory| memory.expected = Some(expected));
        Ok(())
    }
}

impl Controller for Replicas {
    const NAME: &'static str = "replicas";
    type Key = ObjectKey;
    type World = World;
    type Effect = Effect;
    type Why = ReplicaWhy;
    type Status = ();

    fn observe(&self, key: &ObjectKey, trouble: Option<&Trouble>) -> Option<World> {
        let ground = &self.ground;
        let volume = ground.kinds.logical.get(key).filter(|one| one.spec.node_name == ground.config.node)?;
        let memory = ground.desk.of(volume.uid());
        Some(World {
            seen: ground.copies(&volume),
            promoting: ground.is_promoting(volume.uid()),
            halted: memory.offer.as_ref().and_then(|offer| halt::halted(&ground.kinds, offer)),
            trouble: trouble.cloned(),
            memory,
            volume,
        })
    }

    fn decide(world: &World, _: Timestamp) -> ReplicaDecision {
        decide(world)
    }

    async fn act(&self, key: &ObjectKey, effect: Effect) -> Result<(), EffectError> {
        let ground = &self.ground;
        let _hand = ground.hold(ground.logical(key)?.uid()).await;
        let volume = ground.logical(key)?;
        let receives = matches!(
            effect,
            Effect::Publish | Effect::MakeWay | Effect::Prepare | Effect::Register | Effect::Grow { .. }
        );
        // Whoever makes it primary has the last word on its copies.
        if receives && (!is_secondary(&volume) || volume.is_going() || ground.is_promoting(volume.uid())) {
            return Err(stale("the volume changes its role"));
        }
        match effect {
            Effect::List => ground.disks.listed(device_class(&volume)).await,
            Effect::Hold => self.hold(&volume, true).await,
            Effect::Probe => ground.probe(&volume).await,
            Effect::Seal(image) => ground.seal(&volume, &image).await,
            Effect::MakeWay => ground.make_way(&volume).await,
            Effect::Publish => ground.rename(&volume, Kind::Filling, Kind::Replica).await,
            Effect::Drop(kinds) => ground.remove(&volume, &kinds).await,
            Effect::Grow { size } => self.grow(&volume, size).await,
            Effect::Prepare => self.prepare(&volume).await,
            Effect::Register => self.register(&volume),
            Effect::Close => {
                ground.close(volume.uid()).await;
                Ok(())
            }
            Effect::Release => {
                // What was remembered of it is of no use to anybody.
                let _ = std::fs::remove_dir_all(ground.reception(volume.uid()));
                ground.desk.forget(volume.uid());
                self.hold(&volume, false).await
            }
        }
    }

    fn shown(_: &World) -> Option<&()> {
        None
    }

    async fn show(&self, _: &World, (): ()) -> Result<(), EffectError> {
        Ok(())
    }

    fn subject(world: &World) -> Option<ObjectReference> {
        Some(reference(&*world.volume))
    }
}
