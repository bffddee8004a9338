//! Puts the controllers on an engine, says what wakes them, and runs the door, the stream and the calls beside them. Kinds that the cluster
//! lacks are not watched; when one comes or goes, everything is set up anew.

use crate::copies::uid_of;
use crate::desk::Desk;
use crate::door::{Connections, Door};
use crate::fence::Fences;
use crate::ground::{Config, Ground, Parts, Prober};
use crate::kinds::{Kinds, Present};
use crate::maintenance::Modes;
use crate::reception::Reception;
use crate::replica::Replicas;
use crate::role::Roles;
use crate::words::{Words as _, claims_of};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use lifeboat_api::csiaddons::{NetworkFence, NetworkFenceClass};
use lifeboat_api::ramen::{MaintenanceMode, VolumeReplicationGroup};
use lifeboat_api::replication::{VolumeReplication, VolumeReplicationClass};
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_engine::{Change, Clock, Engine, ObjectKey, Objects, Settings, Wiring};
use lifeboat_node::Disks;
use lifeboat_node::provision::words::{claim_of, csi_of};
use lifeboat_replicate::jobs::Jobs;
use lifeboat_stream::{Destinations, Error, Event, Receiver, Refusal};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// The name that events and writes carry.
pub const NAME: &str = "lifeboat-mirror";
/// How often it is looked whether kinds have come or gone.
const KINDS_EVERY: Duration = Duration::from_secs(30);

/// The mirror of a node, ready to run.
pub struct Mirror {
    client: kube::Client,
    clock: Clock,
    settings: Settings,
    parts: Parts,
    config: Arc<Config>,
    listener: TcpListener,
    listens: SocketAddr,
    receiver: Receiver,
    inner: SocketAddr,
    destinations: Destinations,
    told: mpsc::UnboundedReceiver<Event>,
    prober: Prober,
}

/// Makes the mirror of a node: it listens from now on, and works once it is run.
///
/// # Errors
/// When the address cannot be listened on.
pub async fn controller(
    client: kube::Client,
    clock: Clock,
    settings: Settings,
    parts: Parts,
    config: Config,
) -> Result<Mirror, Error> {
    let invalid = |error: std::io::Error| Error::Invalid(format!("listening on {}: {error}", config.listen));
    let listener = TcpListener::bind(config.listen).await.map_err(invalid)?;
    let listens = listener.local_addr().map_err(invalid)?;
    let behind = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let (receiver, destinations, told) = Receiver::bind(behind, config.timing).await?;
    let inner = receiver.address()?;
    // Never run: nobody is ever let in there.
    let (_, probes, answers) = Receiver::bind(behind, config.timing).await?;
    let prober = Prober::new(probes, answers);
    let config = Arc::new(config);
    Ok(Mirror {
        client,
        clock,
        settings,
        parts,
        config,
        listener,
        listens,
        receiver,
        inner,
        destinations,
        told,
        prober,
    })
}

impl Mirror {
    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listens
    }

    /// Runs until told to stop.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) {
        let mut stop = Box::pin(stop);
        let Self { client, clock, settings, parts, config, listener, listens, receiver, inner, .. } = self;
        let (destinations, mut told, prober) = (self.destinations, self.told, self.prober);
        let mut advertise = config.advertise;
        if advertise.port() == 0 {
            advertise.set_port(listens.port());
        }
        let (desk, disks) = (Desk::default(), Disks::new(parts.lvm));
        let receiving = receiver.run();
        tokio::pin!(receiving);
        loop {
            let present = tokio::select! {
                () = &mut stop => return,
                present = look(&client) => present,
            };
            let mut engine = Engine::new(NAME, client.clone(), clock.clone(), settings);
            let kinds = Kinds::watch(&mut engine, &client, NAME, &config.driver, present);
            let (jobs, worker) = Jobs::new(config.jobs_at_once, clock.clone());
            let ground = Ground::new(
                client.clone(),
                clock.clone(),
                config.clone(),
                advertise,
                kinds.clone(),
                disks.clone(),
                desk.clone(),
                destinations.clone(),
                prober.clone(),
                jobs,
            );
            let connections = Connections::default();
            let bells = ring(&mut engine, &ground, &connections);
            let reception = Reception { ground: ground.clone(), wake: bells.replica() };
            let keys = Arc::default();
            let door = Door { ground, reception, connections: connections.clone(), inner, keys };
            tokio::select! {
                biased;
                () = listen(&mut told, &desk, &bells) => {}
                () = worker.run(|uid| bells.called(uid)) => {}
                () = disks.follow(|name| bells.volume(uid_of(name)), || {}) => {}
                () = watch(&desk, &connections, &bells) => {}
                () = &mut receiving => {}
                () = door.run(&listener) => {}
                () = engine.run(&mut stop) => return,
                () = changed(&client, present) => {}
            }
        }
    }
}

/// Which kinds the cluster has, as soon as it can be asked.
async fn look(client: &kube::Client) -> Present {
    loop {
        match Present::look(client).await {
            Ok(present) => return present,
            Err(error) => tracing::warn!(%error, "which kinds the cluster has could not be asked"),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Returns when the cluster has other kinds than these.
async fn changed(client: &kube::Client, known: Present) {
    loop {
        tokio::time::sleep(KINDS_EVERY).await;
        // A server that cannot be asked has not changed.
        if Present::look(client).await.is_ok_and(|now| now != known) {
            return;
        }
    }
}

/// Notes what the stream tells.
async fn listen(told: &mut mpsc::UnboundedReceiver<Event>, desk: &Desk, bells: &Bells) {
    while let Some(event) = told.recv().await {
        match event {
            Event::Completed(done) => {
                let uid = done.destination.clone();
                desk.note(&uid, |memory| memory.completed = Some(done));
                bells.volume(&uid);
            }
            Event::Refused { destination, refusal, .. } => {
                tracing::info!(volume = destination, %refusal, "bytes were refused");
                if matches!(refusal, Refusal::Spoiled(_) | Refusal::Unfit(_)) {
                    desk.note(&destination, |memory| {
                        memory.spoiled =
                            memory.expected.as_ref().map(|expected| expected.incarnation.clone());
                    });
                    bells.volume(&destination);
                }
            }
            Event::Failed { destination, error } => {
                tracing::info!(volume = destination, error, "a reception was cut off");
            }
            Event::Started { .. } | Event::Progress { .. } | Event::Stranger { .. } => {}
        }
    }
    std::future::pending::<()>().await;
}

/// Wakes whoever waits for connections to end or receptions to close.
async fn watch(desk: &Desk, connections: &Connections, bells: &Bells) {
    let (mut desk, mut connections) = (desk.changes(), connections.changes());
    loop {
        tokio::select! {
            Ok(()) = desk.changed() => {}
            Ok(()) = connections.changed() => {}
            else => std::future::pending::<()>().await,
        }
        bells.halts();
    }
}

/// Wakes the controllers for reasons that no watch tells of.
#[derive(Clone)]
struct Bells {
    kinds: Kinds,
    roles: Wiring<ObjectKey>,
    replicas: Wiring<ObjectKey>,
    modes: Wiring<ObjectKey>,
    fences: Wiring<ObjectKey>,
}

impl Bells {
    fn replica(&self) -> Arc<dyn Fn(ObjectKey) + Send + Sync> {
        let replicas = self.replicas.clone();
        Arc::new(move |key| replicas.wake(key))
    }

    /// Something happened to a volume.
    fn volume(&self, uid: &str) {
        if let Some(volume) = self.kinds.by_uid.first(&uid.to_owned()) {
            self.replicas.wake(ObjectKey::of(&*volume));
        }
        self.kinds.replications_of(uid).into_iter().for_each(|key| self.roles.wake(key));
    }

    /// A call has ended; whoever waits for a turn looks again.
    fn called(&self, _: &str) {
        self.kinds.replications.all().iter().for_each(|one| self.roles.wake(ObjectKey::of(&**one)));
    }

    fn halts(&self) {
        self.kinds.modes.all().iter().for_each(|mode| self.modes.wake(ObjectKey::of(&**mode)));
        self.kinds.fences.all().iter().for_each(|fence| self.fences.wake(ObjectKey::of(&**fence)));
    }
}

fn ring(engine: &mut Engine, ground: &Ground, connections: &Connections) -> Bells {
    let kinds = ground.kinds.clone();
    let roles = wake_roles(engine.controller(Roles { ground: ground.clone() }), &kinds);
    let replicas = engine.controller(Replicas { ground: ground.clone() });
    let replicas = wake_replicas(replicas, &kinds, &ground.desk);
    let modes = engine.controller(Modes { ground: ground.clone() });
    let modes = modes.woken_by(&kinds.modes, |change: &Change<MaintenanceMode>| [change.key()]);
    let waking = {
        let (kinds, replicas) = (kinds.clone(), replicas.clone());
        move |uid: &str| {
            if let Some(volume) = kinds.by_uid.first(&uid.to_owned()) {
                replicas.wake(ObjectKey::of(&*volume));
            }
        }
    };
    let fences = Fences { ground: ground.clone(), connections: connections.clone(), wake: Arc::new(waking) };
    let all = kinds.fences.clone();
    let fences = engine
        .controller(fences)
        .woken_by(&kinds.fences, |change: &Change<NetworkFence>| [change.key()])
        .woken_by(&kinds.fence_classes, move |_: &Change<NetworkFenceClass>| keys(&all));
    let look_again = connections.clone();
    kinds.fences.listen(move |_| look_again.look_again());
    Bells { kinds, roles, replicas, modes, fences }
}

fn keys<K>(objects: &Objects<K>) -> Vec<ObjectKey>
where
    K: kube::Resource<DynamicType = ()>
        + serde::Serialize
        + serde::de::DeserializeOwned
        + Clone
        + Send
        + Sync
        + 'static,
{
    objects.all().iter().map(|one| ObjectKey::of(&**one)).collect()
}

fn wake_roles(roles: Wiring<ObjectKey>, kinds: &Kinds) -> Wiring<ObjectKey> {
    let by_claim = {
        let kinds = kinds.clone();
        move |claim: &ObjectKey| -> Vec<ObjectKey> {
            kinds.by_claim.get(claim).iter().map(|one| ObjectKey::of(&**one)).collect()
        }
    };
    let (of_volume, of_pod) = (by_claim.clone(), by_claim.clone());
    let (all, of_group, of_logical) = (kinds.replications.clone(), kinds.of_group.clone(), kinds.clone());
    roles
        .woken_by(&kinds.replications, |change: &Change<VolumeReplication>| [change.key()])
        .woken_by(&kinds.classes, move |_: &Change<VolumeReplicationClass>| keys(&all))
        .woken_by(&kinds.groups, move |change: &Change<VolumeReplicationGroup>| {
            of_group.get(&change.key()).iter().map(|one| ObjectKey::of(&**one)).collect::<Vec<_>>()
        })
        .woken_by(&kinds.claims, move |change: &Change<PersistentVolumeClaim>| by_claim(&change.key()))
        .woken_by(&kinds.volumes, move |change: &Change<PersistentVolume>| {
            let claims = change.versions().filter_map(|volume| Some(claim_of(volume)?.0));
            claims.flat_map(|claim| of_volume(&claim)).collect::<Vec<_>>()
        })
        .woken_by(&kinds.logical, move |change: &Change<LogicalVolume>| {
            of_logical.replications_of(change.latest().uid())
        })
        .woken_by(&kinds.pods, move |change: &Change<Pod>| {
            let claims = change.versions().flat_map(|pod| claims_of(pod)).collect::<Vec<_>>();
            claims.iter().flat_map(&of_pod).collect::<Vec<_>>()
        })
}

fn wake_replicas(replicas: Wiring<ObjectKey>, kinds: &Kinds, desk: &Desk) -> Wiring<ObjectKey> {
    let (of_replication, of_volume) = (kinds.clone(), kinds.by_uid.clone());
    let halted = {
        let (desk, by_uid) = (desk.clone(), kinds.by_uid.clone());
        move || -> Vec<ObjectKey> {
            let known = desk.known();
            known.iter().filter_map(|uid| by_uid.first(uid)).map(|one| ObjectKey::of(&*one)).collect()
        }
    };
    let of_fence = halted.clone();
    replicas
        .woken_by(&kinds.logical, |change: &Change<LogicalVolume>| [change.key()])
        .woken_by(&kinds.replications, move |change: &Change<VolumeReplication>| {
            of_replication.logical_of(change.latest())
        })
        .woken_by(&kinds.volumes, move |change: &Change<PersistentVolume>| {
            let handles = change.versions().filter_map(|volume| Some(csi_of(volume)?.1.to_owned()));
            handles
                .filter_map(|uid| of_volume.first(&uid))
                .map(|one| ObjectKey::of(&*one))
                .collect::<Vec<_>>()
        })
        .woken_by(&kinds.modes, move |_: &Change<MaintenanceMode>| halted())
        .woken_by(&kinds.fences, move |_: &Change<NetworkFence>| of_fence())
}
