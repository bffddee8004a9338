//! Act: makes what a receiver needs, tells the stream what to expect, and keeps what arrived.

use super::decide::{Effect, ReceiverDecision, decide, is_direct, is_triggered, lineage_of};
use super::make;
use super::world::{Desk, Expected, World, back_name, id, mount_name};
use crate::ground::{Ground, stale};
use crate::jobs::Jobs;
use crate::kinds::claim_of_receiver;
use crate::memory::{Memory, Staging, is_empty};
use crate::place::{BACK_TAG, EPOCH_TAG, FORMATTED_TAG, Here, Place, REPLICA_TAG, epoch_of, find, listed};
use crate::resolve::short;
use crate::source::failure::Failure;
use crate::why::Wait;
use crate::words::{Words as _, difference, uses};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::Patch;
use lifeboat_api::volsync::{ReplicationDestination, ReplicationDestinationStatus, service_name};
use lifeboat_api::{annotations, finalizers, labels};
use lifeboat_engine::{Class, Controller, EffectError, ObjectKey, Trouble};
use lifeboat_lvm::Access;
use lifeboat_node::Purpose;
use lifeboat_stream::{Destination, Destinations, Place as Into_, Policy, Terms};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How long a sender is kept on the line until its copy is published; after that it asks again.
const ON_THE_LINE: Duration = Duration::from_secs(10);

/// Images that are kept where volumes share blocks, or folders their files.
const POINTS: usize = 3;

/// The controller of the receivers whose volumes are on this node.
pub struct Receivers {
    pub(crate) ground: Ground,
    pub(crate) destinations: Destinations,
    pub(crate) desk: Desk,
    pub(crate) memory: Memory,
    pub(crate) jobs: Jobs<(), Failure>,
    pub(crate) advertise: SocketAddr,
}

fn failed(tried: String, error: impl std::error::Error + Send + Sync + 'static) -> EffectError {
    EffectError::caused(Class::Transient, tried, error)
}

impl Receivers {
    fn current(&self, key: &ObjectKey) -> Result<Arc<ReplicationDestination>, EffectError> {
        let found = self.ground.kinds.destinations.get(key);
        found.ok_or_else(|| stale(format!("ReplicationDestination {key} is gone")))
    }

    fn place(&self, receiver: &ReplicationDestination) -> Place {
        let Ground { kinds, disks, config, .. } = &self.ground;
        let claim = kinds.claims.get(&claim_of_receiver(receiver));
        find(kinds, disks, &config.node, claim.as_deref())
    }

    pub(super) fn here(&self, receiver: &ReplicationDestination) -> Result<Box<Here>, EffectError> {
        match self.place(receiver) {
            Place::Here(here) => Ok(here),
            _ => Err(stale("the volume is not here any more")),
        }
    }

    /// Whether another node has taken a receiver whose volume is not made yet, or this one could not hold it.
    fn is_for_another(&self, receiver: &ReplicationDestination, place: &Place) -> bool {
        let claim = self.ground.kinds.claims.get(&claim_of_receiver(receiver));
        let chosen = claim.as_deref().and_then(|claim| claim.note(annotations::SELECTED_NODE));
        let tls = receiver.spec.rsync_tls.as_ref();
        let asked = claim.as_deref().and_then(|claim| claim.spec.as_ref()?.storage_class_name.as_deref());
        let class = asked.or(tls.and_then(|tls| tls.volume.storage_class_name.as_deref()));
        match (place, chosen) {
            (Place::Unbound, Some(node)) => node != self.ground.config.node,
            (Place::NoClaim | Place::Unbound, None) => !self.ground.serves(class),
            _ => false,
        }
    }

    async fn mount(&self, receiver: &ReplicationDestination) -> Result<(), EffectError> {
        let here = self.here(receiver)?;
        let Access::Device(device) = &here.volume.access else { return Ok(()) };
        let ground = &self.ground;
        let name = mount_name(&here.uid);
        let (own, noted) = (!is_direct(receiver), here.volume.tags.contains(FORMATTED_TAG));
        let filesystem = here.filesystem.clone();
        // A claim that we did not make may hold what its owner wrote: only one that holds nothing at all gets a filesystem.
        let purpose = match own {
            true => Purpose::Restore { filesystem, make: !noted },
            false => Purpose::Receive { filesystem },
        };
        let work = async {
            if ground.mounts.of(&name).is_none() {
                ground.mounts.mount(&name, device, purpose).await?;
            }
            if own && !noted {
                let tag = BTreeSet::from([FORMATTED_TAG.to_owned()]);
                ground.disks.lvm().retag(&here.class, &here.uid, &tag, &BTreeSet::new()).await?;
            }
            Ok(())
        };
        ground.disks.change(&here.class, "mounting the volume to receive into", work).await
    }

    pub(super) fn remember(&self, volume: &str, staging: Staging) -> Result<(), EffectError> {
        let tried = || format!("noting what the volume {volume} is a copy of");
        self.memory.remember(volume, staging).map_err(|error| failed(tried(), error))
    }

    fn begin(&self, receiver: &ReplicationDestination) -> Result<(), EffectError> {
        let here = self.here(receiver)?;
        let (path, block) = self.ground.path(&here, &mount_name(&here.uid))?;
        let empty = !block
            && is_empty(&path).map_err(|error| failed(format!("looking into {}", path.display()), error))?;
        let unknown = Staging::unknown(1, receiver.uid());
        self.remember(&here.uid, if empty { Staging { base: None, ..unknown } } else { unknown })
    }

    /// Notes on disk that nobody can tell what a volume holds.
    pub(super) fn distrust(
        &self,
        volume: &str,
        receiver: &ReplicationDestination,
    ) -> Result<(), EffectError> {
        let count = self.memory.of(volume).map_or(0, |staging| staging.count) + 1;
        let lineage = self.memory.of(volume).and_then(|staging| staging.lineage);
        self.remember(volume, Staging { lineage, ..Staging::unknown(count, receiver.uid()) })
    }

    async fn renew(&self, key: &ObjectKey, receiver: &ReplicationDestination) -> Result<(), EffectError> {
        let expected = self.desk.expected.lock().get(key).map(|expected| expected.volume.clone());
        let volume = match (self.here(receiver), expected) {
            (Ok(here), _) => here.uid,
            (Err(_), Some(volume)) => volume,
            (Err(error), None) => return Err(error),
        };
        // Nothing may write while the volume becomes another.
        self.forget_expected(key).await;
        let claim = claim_of_receiver(receiver);
        let touched = self.desk.touched.lock().remove(&claim);
        if let Err(error) = self.distrust(&volume, receiver) {
            if touched {
                self.desk.touched.lock().insert(claim);
            }
            return Err(error);
        }
        if let Some(received) = self.desk.received.lock().get_mut(key) {
            received.refused = None;
        }
        Ok(())
    }

    async fn forget_expected(&self, key: &ObjectKey) {
        self.destinations.remove(&id(key)).await;
        self.desk.expected.lock().remove(key);
    }

    async fn listen(
        &self,
        key: &ObjectKey,
        receiver: &ReplicationDestination,
        epoch: u64,
    ) -> Result<(), EffectError> {
        let here = self.here(receiver)?;
        let staging = self.memory.of(&here.uid).ok_or_else(|| stale("nothing is known of the volume"))?;
        let secret = receiver.spec.rsync_tls.as_ref().and_then(|tls| tls.key_secret.clone());
        let shared =
            crate::secret::key(&self.ground.client, receiver.space(), &secret.unwrap_or_default()).await;
        let shared = shared.map_err(|failure| EffectError::new(Class::Transient, failure.message))?;
        let (path, block) = self.ground.path(&here, &mount_name(&here.uid))?;
        let world = self.observe(key, None).ok_or_else(|| stale("the receiver is gone"))?;
        let lineage = lineage_of(&world, receiver);
        let destination = Destination {
            id: id(key),
            key: shared,
            epoch,
            place: if block { Into_::Device(path) } else { Into_::Tree(path) },
            base: staging.base.clone(),
            incarnation: staging.incarnation(),
            state: self.memory.journal(&here.uid),
            policy: Policy::default(),
            checkpoint: self.ground.config.checkpoint,
            terms: Terms {
                // One copy serves a trigger, and nobody listens any more after it: its sender could not ask again.
                publishes: (!is_triggered(receiver)).then_some(ON_THE_LINE),
                lineage: lineage.held.clone(),
                accepts: lineage.accepted.clone(),
            },
        };
        self.forget_expected(key).await;
        if !staging.is_known() {
            // Whatever was written until now is compared.
            self.desk.touched.lock().remove(&claim_of_receiver(receiver));
        }
        let tried = || format!("expecting copies for {key}");
        self.destinations.register(destination).map_err(|error| failed(tried(), error))?;
        let called = ObjectKey::new(key.namespace.clone(), short(&key.name));
        if called != *key {
            self.destinations.alias(&id(key), &id(&called));
        }
        let incarnation = staging.incarnation();
        let expected = Expected { volume: here.uid.clone(), incarnation, epoch, lineage };
        self.desk.expected.lock().insert(key.clone(), expected);
        Ok(())
    }

    async fn hush(&self, key: &ObjectKey) -> Result<(), EffectError> {
        let volume = self.desk.expected.lock().get(key).map(|expected| expected.volume.clone());
        self.forget_expected(key).await;
        let receiver = self.ground.kinds.destinations.get(key);
        if let Some(receiver) = &receiver {
            // Nobody writes to the volume any more when this returns.
            self.jobs.end(receiver.uid()).await;
        }
        let here = receiver.as_deref().and_then(|receiver| match self.place(receiver) {
            Place::Here(here) => Some(here.uid),
            _ => None,
        });
        for volume in volume.into_iter().chain(here).collect::<BTreeSet<_>>() {
            for name in [mount_name(&volume), back_name(&volume)] {
                let released = self.ground.mounts.unmount(&name).await;
                released.map_err(|error| failed("releasing the volume".to_owned(), error))?;
            }
        }
        Ok(())
    }

    async fn advance(&self, key: &ObjectKey, receiver: &ReplicationDestination) -> Result<(), EffectError> {
        let here = self.here(receiver)?;
        let completed = self.desk.received.lock().get(key).and_then(|received| received.completed.clone());
        let completed = completed.or_else(|| self.memory.left(&here.uid));
        let completed = completed.ok_or_else(|| stale("nothing has arrived"))?;
        let before = &here.volume.tags;
        let old = |tag: &&String| [EPOCH_TAG, REPLICA_TAG, BACK_TAG].iter().any(|name| tag.starts_with(name));
        let epoch = completed.epoch.max(epoch_of(&here.volume));
        let tags = [format!("{EPOCH_TAG}={epoch}"), format!("{REPLICA_TAG}={}", completed.generation)];
        let add: BTreeSet<String> = tags.into_iter().collect();
        let remove: BTreeSet<String> =
            before.iter().filter(old).filter(|tag| !add.contains(*tag)).cloned().collect();
        let work = self.ground.disks.lvm().retag(&here.class, &here.uid, &add, &remove);
        self.ground.disks.change(&here.class, "noting what the volume is a copy of", work).await?;
        let count = self.memory.of(&here.uid).map_or(0, |staging| staging.count) + 1;
        let lineage = completed.lineage.or_else(|| self.memory.of(&here.uid)?.lineage);
        let (base, receiver) = (Some(completed.generation), Some(receiver.uid().to_owned()));
        self.remember(&here.uid, Staging { count, base, receiver, epoch: Some(epoch), lineage })?;
        // From now on the sender may count on it.
        self.destinations.published(&id(key), &completed.incarnation).await;
        self.desk.received.lock().remove(key);
        Ok(())
    }

    pub(super) async fn note(
        &self,
        receiver: &ReplicationDestination,
        metadata: Value,
    ) -> Result<(), EffectError> {
        let mut whole = receiver.guard();
        if let (Value::Object(whole), Value::Object(more)) = (&mut whole, metadata) {
            whole.extend(more);
        }
        let patch = Patch::Merge(json!({ "metadata": whole }));
        let key = ObjectKey::of(receiver);
        match self.ground.kinds.destinations.patch(&key, &patch).await {
            // The last finalizer takes the object with it.
            Err(error)
                if error.class == Class::Stale && self.ground.kinds.destinations.get(&key).is_none() =>
            {
                Ok(())
            }
            done => done.map(drop),
        }
    }
}

impl Controller for Receivers {
    const NAME: &'static str = "receivers";
    type Key = ObjectKey;
    type World = World;
    type Effect = Effect;
    type Why = Wait;
    type Status = ReplicationDestinationStatus;

    fn observe(&self, key: &ObjectKey, trouble: Option<&Trouble>) -> Option<World> {
        let kinds = &self.ground.kinds;
        let receiver = kinds.destinations.get(key).filter(|receiver| receiver.spec.rsync_tls.is_some());
        let place = receiver.as_deref().map_or(Place::NoClaim, |receiver| self.place(receiver));
        if matches!(place, Place::Elsewhere(_))
            || receiver.as_deref().is_some_and(|one| self.is_for_another(one, &place))
        {
            return None;
        }
        let images = kinds.images_of.get(key);
        let expected = self.desk.expected.lock().get(key).cloned();
        if receiver.is_none() && images.is_empty() && expected.is_none() {
            return None;
        }
        let claim = receiver.as_deref().and_then(|receiver| kinds.claims.get(&claim_of_receiver(receiver)));
        let pods = || kinds.pods.in_namespace(&key.namespace);
        let users = claim.iter().flat_map(|claim| {
            let using = pods().into_iter().filter(|pod| uses(pod, claim.name()));
            using.map(|pod| format!("pod {}", pod.name())).collect::<Vec<_>>()
        });
        let (volume, block) = match &place {
            Place::Here(here) => (Some(here.uid.clone()), here.block),
            _ => (expected.as_ref().map(|expected| expected.volume.clone()), false),
        };
        let clone = match &place {
            Place::Here(here) => listed(&self.ground.disks, &here.class, &back_name(&here.uid)),
            _ => None,
        };
        let mounted = |name: fn(&str) -> String| {
            volume.as_deref().is_some_and(|volume| self.ground.mounts.of(&name(volume)).is_some())
        };
        let asked = receiver.as_deref().and_then(|receiver| receiver.note(annotations::ROLL_BACK_TO));
        let service_key = ObjectKey::new(key.namespace.clone(), service_name(&key.name));
        Some(World {
            key: key.clone(),
            advertise: self.advertise,
            users: users.collect(),
            back: asked.and_then(|image| self.image(&key.namespace, image, block)),
            clone,
            uncloned: asked.is_some_and(|image| {
                self.desk.uncloned.lock().get(key).is_some_and(|uncloned| uncloned == image)
            }),
            service: kinds.services.get(&service_key),
            slice: kinds.slices.get(&service_key),
            epoch: receiver
                .as_deref()
                .and_then(|receiver| self.ground.epochs(receiver))
                .map_or(0, |(seen, _)| seen),
            touched: receiver
                .as_deref()
                .is_some_and(|one| self.desk.touched.lock().contains(&claim_of_receiver(one))),
            orphan: receiver.as_deref().is_some_and(|receiver| self.ground.is_orphan(receiver)),
            staging: volume.as_deref().and_then(|volume| self.memory.of(volume)),
            received: {
                let mut received = self.desk.received.lock().get(key).cloned().unwrap_or_default();
                let left = || volume.as_deref().and_then(|volume| self.memory.left(volume));
                received.completed = received.completed.or_else(left);
                received
            },
            keeps: match &place {
                Place::Here(here) if self.ground.thick.contains(&here.class) => 1,
                _ => POINTS,
            },
            mounts: (mounted(mount_name), mounted(back_name)),
            job: receiver.as_deref().and_then(|receiver| self.jobs.of(receiver.uid())),
            rival: kinds.has_rival(),
            trouble: trouble.cloned(),
            claim,
            place,
            images,
            expected,
            receiver,
        })
    }

    fn decide(world: &World, now: Timestamp) -> ReceiverDecision {
        decide(world, now)
    }

    async fn act(&self, key: &ObjectKey, effect: Effect) -> Result<(), EffectError> {
        let kinds = &self.ground.kinds;
        match effect {
            Effect::Hush => return self.hush(key).await,
            Effect::DropImage { name } => {
                let image = kinds.snapshots.get(&ObjectKey::new(key.namespace.clone(), name));
                return match image {
                    Some(image) => kinds.snapshots.delete(&image).await,
                    None => Ok(()),
                };
            }
            _ => {}
        }
        let receiver = self.current(key)?;
        match effect {
            Effect::List { class } => self.ground.disks.listed(&class).await,
            Effect::MakeClaim => {
                let made = make::claim(&receiver, &self.ground.config.node);
                kinds.claims.create(&made).await.map(drop)
            }
            Effect::SelectNode | Effect::Grow => {
                let claim = kinds.claims.get(&claim_of_receiver(&receiver));
                let claim = claim.ok_or_else(|| stale("the claim is gone"))?;
                let mut patch = json!({ "metadata": claim.guard() });
                if effect == Effect::SelectNode {
                    patch["metadata"]["annotations"] =
                        json!({ annotations::SELECTED_NODE: self.ground.config.node });
                } else {
                    let size = receiver.spec.rsync_tls.as_ref().and_then(|tls| tls.volume.capacity.clone());
                    patch["spec"] = json!({ "resources": { "requests": { "storage": size } } });
                }
                kinds.claims.patch(&ObjectKey::of(&*claim), &Patch::Merge(patch)).await.map(drop)
            }
            Effect::Guard => {
                let known = receiver.metadata.finalizers.iter().flatten().map(String::as_str);
                let all: Vec<&str> = known.chain([finalizers::RECEIVER]).collect();
                self.note(&receiver, json!({ "finalizers": all })).await
            }
            Effect::Release => {
                let known = receiver.metadata.finalizers.iter().flatten();
                let kept: Vec<&String> = known.filter(|name| *name != finalizers::RECEIVER).collect();
                self.note(&receiver, json!({ "finalizers": kept })).await
            }
            Effect::Mount => self.mount(&receiver).await,
            Effect::Begin => self.begin(&receiver),
            Effect::Renew => self.renew(key, &receiver).await,
            Effect::Listen { epoch } => self.listen(key, &receiver, epoch).await,
            Effect::Serve | Effect::Lead => self.offer(key, &receiver, &effect).await,
            Effect::Image { name } => {
                let world = self.observe(key, None).ok_or_else(|| stale("the receiver is gone"))?;
                let completed =
                    world.received.completed.filter(|done| make::image_name(&receiver, done) == name);
                let completed = completed.ok_or_else(|| stale("nothing has arrived"))?;
                kinds.snapshots.create(&make::image(&receiver, name, &completed)).await.map(drop)
            }
            Effect::KeepAside { name } => {
                let image = kinds.snapshots.get(&ObjectKey::new(key.namespace.clone(), name));
                let image = image.ok_or_else(|| stale("the image is gone"))?;
                let mut metadata = image.guard();
                metadata["labels"] = json!({ labels::VOLSYNC_DO_NOT_DELETE: "true" });
                let patch = Patch::Merge(json!({ "metadata": metadata }));
                kinds.snapshots.patch(&ObjectKey::of(&*image), &patch).await.map(drop)
            }
            Effect::Advance => self.advance(key, &receiver).await,
            Effect::Clone { image } => self.clone_image(&receiver, &image).await,
            Effect::Swap { image } => self.swap(&receiver, &image).await,
            Effect::DropClone => self.drop_clone(&receiver).await,
            Effect::Forget => self.forget_back(&receiver).await,
            Effect::MountBack => self.mount_back(&receiver).await,
            Effect::StartBack => self.start_back(&receiver).await,
            Effect::Answer { image } => {
                self.note(&receiver, json!({ "annotations": { annotations::ROLLED_BACK_TO: image } })).await
            }
            Effect::Hush | Effect::DropImage { .. } => Ok(()),
        }
    }

    fn shown(world: &World) -> Option<&ReplicationDestinationStatus> {
        world.receiver.as_ref()?.status.as_ref()
    }

    async fn show(&self, world: &World, status: ReplicationDestinationStatus) -> Result<(), EffectError> {
        let Some(receiver) = &world.receiver else { return Ok(()) };
        let changes = difference(&receiver.status, &status)?;
        let patch = Patch::Merge(json!({ "metadata": receiver.guard(), "status": changes }));
        self.ground.kinds.destinations.patch_status(&world.key, &patch).await.map(drop)
    }

    fn subject(world: &World) -> Option<ObjectReference> {
        world.receiver.as_ref().map(|receiver| lifeboat_node::provision::words::reference(&**receiver))
    }
}
