//! Puts both halves of the mover on an engine, with what runs beside it.

use crate::destination::Receivers;
use crate::destination::world::{Desk, id, key_of};
use crate::ground::{Config, Ground, Parts};
use crate::jobs::Jobs;
use crate::kinds::Kinds;
use crate::memory::Memory;
use crate::source::Senders;
use crate::source::world::CUT_PREFIX;
use crate::sweep::Sweeper;
use crate::words::Words as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_api::snapshot::{VolumeSnapshot, VolumeSnapshotContent};
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_api::volsync::{ReplicationDestination, ReplicationSource};
use lifeboat_engine::{Change, Clock, Engine, ObjectKey, Settings, Wiring};
use lifeboat_lvm::ClassKind;
use lifeboat_node::provision::words::claim_of;
use lifeboat_node::{Disks, Mounts};
use lifeboat_stream::{Destinations, Error, Event, Receiver};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

/// The name that events and writes carry.
pub const NAME: &str = "lifeboat-replicate";

/// How often it is looked whether kinds have come.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(30);

/// The mover of a node, ready to run.
pub struct Agent {
    client: kube::Client,
    clock: Clock,
    settings: Settings,
    parts: Parts,
    config: Arc<Config>,
    receiver: Receiver,
    destinations: Destinations,
    told: mpsc::UnboundedReceiver<Event>,
    listens: SocketAddr,
    advertise: SocketAddr,
}

/// Makes the mover of a node: it listens from now on, and works once it is run.
///
/// # Errors
/// When the address cannot be listened on.
pub async fn controller(
    client: kube::Client,
    clock: Clock,
    settings: Settings,
    parts: Parts,
    config: Config,
) -> Result<Agent, Error> {
    let (receiver, destinations, told) = Receiver::bind(config.listen, config.timing).await?;
    let listens = receiver.address()?;
    let mut advertise = config.advertise;
    if advertise.port() == 0 {
        advertise.set_port(listens.port());
    }
    let config = Arc::new(config);
    Ok(Agent { client, clock, settings, parts, config, receiver, destinations, told, listens, advertise })
}

impl Agent {
    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listens
    }

    /// Runs until told to stop.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) {
        let mut stop = Box::pin(stop);
        tokio::select! {
            () = &mut stop => return,
            () = served(&self.client, &NEEDED) => {}
        }
        let mut engine = Engine::new(NAME, self.client.clone(), self.clock.clone(), self.settings);
        let mut for_groups = Engine::new(NAME, self.client.clone(), self.clock.clone(), self.settings);
        let kinds = Kinds::watch(&mut engine, &mut for_groups, &self.config.node);
        let asked = self.client.clone();
        let following = async move {
            served(&asked, &[lifeboat_api::ramen::GROUP]).await;
            for_groups.run(std::future::pending()).await;
        };
        let disks = Disks::new(self.parts.lvm.clone());
        let mounts = Mounts::new(self.parts.filesystems.clone(), self.config.state.join("mounts"));
        if let Err(error) = mounts.learn().await {
            tracing::warn!(%error, "what an earlier process left mounted is not known");
        }
        let classes = self.parts.lvm.classes().await.unwrap_or_default();
        let thick = classes.iter().filter(|class| class.kind == ClassKind::Thick);
        let thick = thick.flat_map(|class| [Some(class.name.clone()), class.default.then(String::new)]);
        let ground = Ground {
            thick: thick.flatten().collect(),
            classes: classes.into_iter().map(|class| class.name).collect(),
            client: self.client,
            clock: self.clock.clone(),
            config: self.config.clone(),
            kinds: kinds.clone(),
            disks: disks.clone(),
            mounts,
            resolve: self.parts.resolve,
        };
        let (sends, sender) = Jobs::new(self.config.jobs_at_once, self.clock.clone());
        let (backs, backer) = Jobs::new(usize::MAX, self.clock.clone());
        let (desk, memory) = (Desk::default(), Memory::load(self.config.state.join("destinations")));
        let senders = engine.controller(Senders { ground: ground.clone(), jobs: sends.clone() });
        let keyring = Keyring { ground: ground.clone(), destinations: self.destinations.clone() };
        let receivers = engine.controller(Receivers {
            ground: ground.clone(),
            destinations: self.destinations,
            desk: desk.clone(),
            memory: memory.clone(),
            jobs: backs,
            advertise: self.advertise,
        });
        let touched = desk.touched.clone();
        // Before anybody is woken by it. A pod that is over before anybody looks at it was there all the same.
        kinds.pods.listen(move |change: &Change<Pod>| {
            touched.lock().extend(change.versions().flat_map(|pod| claims_of_pod(pod)));
        });
        let senders = wake_senders(senders, &kinds);
        let receivers = wake_receivers(receivers, &kinds);
        let gone = Arc::new(Notify::new());
        let sweeper = Sweeper { ground, jobs: sends, memory, listed: engine.listed(), gone: gone.clone() };
        let (one, other) = (gone.clone(), gone.clone());
        kinds.sources.listen(move |change: &Change<ReplicationSource>| {
            if change.new.is_none() {
                one.notify_one();
            }
        });
        let third = gone.clone();
        kinds.destinations.listen(move |change: &Change<ReplicationDestination>| {
            if change.new.is_none() {
                third.notify_one();
            }
        });
        kinds.logical.listen(move |change: &Change<LogicalVolume>| {
            if change.new.is_none() {
                other.notify_one();
            }
        });
        let on_disk = |name: &str| wake_by_volume(&kinds, &senders, &receivers, name);
        tokio::select! {
            () = engine.run(stop) => {}
            () = self.receiver.run() => {}
            () = following => {}
            () = hear(self.told, &desk, &receivers, &self.clock, &keyring) => {}
            () = disks.follow(on_disk, || {}) => {}
            () = sender.run(|_| wake_jobs(&kinds, &senders)) => {}
            () = backer.run(|uid| wake_backs(&kinds, &receivers, uid)) => {}
            () = sweeper.run() => {}
        }
    }
}

/// Groups of kinds without which nothing can be done.
const NEEDED: [&str; 3] =
    [lifeboat_api::volsync::GROUP, lifeboat_api::topolvm::GROUP, lifeboat_api::snapshot::GROUP];

/// Waits until the cluster serves all of these.
async fn served(client: &kube::Client, needed: &[&str]) {
    loop {
        if let Ok(known) = client.list_api_groups().await
            && needed.iter().all(|group| known.groups.iter().any(|found| found.name == *group))
        {
            return;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// How often the keys of all receivers are read again at most.
const KEYS_EVERY: Duration = Duration::from_secs(5);

/// The keys that receivers were registered with. Secrets cannot be watched without the right to read them all, so they are read again when somebody
/// comes with a key that is not known.
struct Keyring {
    ground: Ground,
    destinations: Destinations,
}

impl Keyring {
    /// Receivers whose secret has another key by now.
    async fn changed(&self, desk: &Desk) -> Vec<ObjectKey> {
        let expected: Vec<ObjectKey> = desk.expected.lock().keys().cloned().collect();
        let mut changed = Vec::new();
        for key in expected {
            let receiver = self.ground.kinds.destinations.get(&key);
            let secret = receiver.and_then(|one| one.spec.rsync_tls.as_ref()?.key_secret.clone());
            let Some(secret) = secret else { continue };
            // One that cannot be read has no other key that could be used.
            let now = crate::secret::key(&self.ground.client, &key.namespace, &secret).await;
            if now.is_ok_and(|now| !self.destinations.has_key(&id(&key), &now)) {
                changed.push(key);
            }
        }
        changed
    }
}

/// Takes down what the stream tells, and wakes who is concerned.
async fn hear(
    mut told: mpsc::UnboundedReceiver<Event>,
    desk: &Desk,
    receivers: &Wiring<ObjectKey>,
    clock: &Clock,
    keyring: &Keyring,
) {
    let mut looked: Option<tokio::time::Instant> = None;
    while let Some(event) = told.recv().await {
        let id = match &event {
            Event::Stranger { .. } => {
                if looked.is_none_or(|looked| looked.elapsed() >= KEYS_EVERY) {
                    looked = Some(tokio::time::Instant::now());
                    for key in keyring.changed(desk).await {
                        desk.expected.lock().remove(&key);
                        receivers.wake(key);
                    }
                }
                continue;
            }
            Event::Started { destination, .. }
            | Event::Progress { destination, .. }
            | Event::Refused { destination, .. }
            | Event::Failed { destination, .. } => destination.clone(),
            Event::Completed(completed) => completed.destination.clone(),
        };
        let Some(key) = key_of(&id) else { continue };
        {
            let mut all = desk.received.lock();
            let received = all.entry(key.clone()).or_default();
            match event {
                Event::Completed(completed) => received.completed = Some(completed),
                Event::Refused { peer, refusal, .. } => received.refused = Some((clock.now(), peer, refusal)),
                Event::Failed { error, .. } => received.failed = Some(error),
                Event::Started { .. } | Event::Progress { .. } | Event::Stranger { .. } => continue,
            }
        }
        receivers.wake(key);
    }
    std::future::pending::<()>().await;
}

fn keys<K: kube::Resource>(objects: &[Arc<K>]) -> Vec<ObjectKey> {
    objects.iter().map(|object| ObjectKey::of(&**object)).collect()
}

/// A copy has ended: its sender looks, and whoever waits for its turn.
fn wake_jobs(kinds: &Kinds, senders: &Wiring<ObjectKey>) {
    kinds.sources.all().iter().for_each(|source| senders.wake(ObjectKey::of(&**source)));
}

fn wake_backs(kinds: &Kinds, receivers: &Wiring<ObjectKey>, uid: &str) {
    let all = kinds.destinations.all();
    all.iter().filter(|one| one.uid() == uid).for_each(|one| receivers.wake(ObjectKey::of(&**one)));
}

/// Something about a volume has changed on the disks.
fn wake_by_volume(kinds: &Kinds, senders: &Wiring<ObjectKey>, receivers: &Wiring<ObjectKey>, name: &str) {
    if let Some(uid) = name.strip_prefix(CUT_PREFIX) {
        let all = kinds.sources.all();
        all.iter().filter(|one| one.uid() == uid).for_each(|one| senders.wake(ObjectKey::of(&**one)));
    }
    let claims = claims_of(kinds, name);
    claims.iter().flat_map(|claim| keys(&kinds.sending.get(claim))).for_each(|key| senders.wake(key));
    claims.iter().flat_map(|claim| keys(&kinds.receiving.get(claim))).for_each(|key| receivers.wake(key));
}

/// The claims whose volume has this id.
fn claims_of(kinds: &Kinds, handle: &str) -> Vec<ObjectKey> {
    let logical = kinds.by_handle.first(&handle.to_owned());
    let volume = logical.and_then(|logical| kinds.volumes.get(&ObjectKey::cluster_wide(logical.name())));
    volume.and_then(|volume| claim_of(&volume).map(|(key, _)| key)).into_iter().collect()
}

/// The claims that a pod names.
fn claims_of_pod(pod: &Pod) -> Vec<ObjectKey> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let claims = volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref());
    claims.map(|source| ObjectKey::new(pod.space(), source.claim_name.clone())).collect()
}

fn wake_senders(wiring: Wiring<ObjectKey>, kinds: &Kinds) -> Wiring<ObjectKey> {
    let (by_claim, by_volume, by_logical, by_group) =
        (kinds.sending.clone(), kinds.sending.clone(), kinds.clone(), kinds.sources_of.clone());
    let all = kinds.sources.clone();
    wiring
        .woken_by(&kinds.sources, |change: &Change<ReplicationSource>| [change.key()])
        .woken_by(&kinds.claims, move |change: &Change<PersistentVolumeClaim>| {
            keys(&by_claim.get(&change.key()))
        })
        .woken_by(&kinds.volumes, move |change: &Change<PersistentVolume>| {
            let claims = change.versions().filter_map(|volume| claim_of(volume).map(|(key, _)| key));
            claims.flat_map(|claim| keys(&by_volume.get(&claim))).collect::<BTreeSet<_>>()
        })
        .woken_by(&kinds.logical, move |change: &Change<LogicalVolume>| {
            let claims = claims_of(&by_logical, change.latest().uid());
            claims.iter().flat_map(|claim| keys(&by_logical.sending.get(claim))).collect::<Vec<_>>()
        })
        .woken_by(&kinds.groups, move |change: &Change<VolumeReplicationGroup>| {
            keys(&by_group.get(&change.key()))
        })
        .woken_by(&kinds.rivals, move |_: &Change<Deployment>| keys(&all.all()))
}

fn wake_receivers(wiring: Wiring<ObjectKey>, kinds: &Kinds) -> Wiring<ObjectKey> {
    let (by_claim, by_volume, by_logical, by_group) =
        (kinds.receiving.clone(), kinds.receiving.clone(), kinds.clone(), kinds.destinations_of.clone());
    let (all, back, content, by_pod) = (
        kinds.destinations.clone(),
        kinds.destinations.clone(),
        kinds.destinations.clone(),
        kinds.receiving.clone(),
    );
    let owner = |owners: Option<&Vec<k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference>>,
                 space: &str| {
        owners
            .into_iter()
            .flatten()
            .map(|owner| ObjectKey::new(space, owner.name.clone()))
            .collect::<Vec<_>>()
    };
    wiring
        .woken_by(&kinds.destinations, |change: &Change<ReplicationDestination>| [change.key()])
        .woken_by(&kinds.claims, move |change: &Change<PersistentVolumeClaim>| {
            keys(&by_claim.get(&change.key()))
        })
        .woken_by(&kinds.volumes, move |change: &Change<PersistentVolume>| {
            let claims = change.versions().filter_map(|volume| claim_of(volume).map(|(key, _)| key));
            claims.flat_map(|claim| keys(&by_volume.get(&claim))).collect::<BTreeSet<_>>()
        })
        .woken_by(&kinds.logical, move |change: &Change<LogicalVolume>| {
            let claims = claims_of(&by_logical, change.latest().uid());
            claims.iter().flat_map(|claim| keys(&by_logical.receiving.get(claim))).collect::<Vec<_>>()
        })
        .woken_by(&kinds.groups, move |change: &Change<VolumeReplicationGroup>| {
            keys(&by_group.get(&change.key()))
        })
        .woken_by(&kinds.snapshots, move |change: &Change<VolumeSnapshot>| {
            let image = change.latest();
            let named = image.note(lifeboat_api::annotations::RECEIVER);
            let named = named.map(|name| ObjectKey::new(image.space(), name));
            named.into_iter().chain(waiting_for(&back, image.space(), image.name())).collect::<BTreeSet<_>>()
        })
        .woken_by(&kinds.contents, move |change: &Change<VolumeSnapshotContent>| {
            let of = &change.latest().spec.volume_snapshot_ref;
            let (space, name) =
                (of.namespace.clone().unwrap_or_default(), of.name.clone().unwrap_or_default());
            waiting_for(&content, &space, &name)
        })
        .woken_by(&kinds.services, move |change: &Change<Service>| {
            owner(change.latest().metadata.owner_references.as_ref(), change.latest().space())
        })
        .woken_by(&kinds.slices, move |change: &Change<EndpointSlice>| {
            owner(change.latest().metadata.owner_references.as_ref(), change.latest().space())
        })
        .woken_by(&kinds.pods, move |change: &Change<Pod>| {
            let claims = claims_of_pod(change.latest());
            claims.iter().flat_map(|claim| keys(&by_pod.get(claim))).collect::<Vec<_>>()
        })
        .woken_by(&kinds.rivals, move |_: &Change<Deployment>| keys(&all.all()))
}

/// Receivers that shall be brought back to an image.
fn waiting_for(
    all: &lifeboat_engine::Objects<ReplicationDestination>,
    space: &str,
    image: &str,
) -> Vec<ObjectKey> {
    let asked =
        |one: &&Arc<ReplicationDestination>| one.note(lifeboat_api::annotations::ROLL_BACK_TO) == Some(image);
    all.in_namespace(space).iter().filter(asked).map(|one| ObjectKey::of(&**one)).collect()
}
