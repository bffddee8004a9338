//! Observes the membership and carries out what was decided about it.

use super::decide::{self, Effect, Pulse, Why, World};
use crate::cluster::ground::Ground;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Resource as _;
use kube::api::ObjectMeta;
use lifeboat_api::cluster::{ManagedCluster, ManagedClusterSpec, ManagedClusterStatus};
use lifeboat_api::conditions::fleet as words;
use lifeboat_engine::{Class, Controller, Decision, EffectError, ObjectKey, Objects, Trouble};
use std::time::Duration;

/// The controller of the ManagedCluster.
pub(crate) struct Membership {
    pub ground: Ground,
    /// How often the lease shall be renewed, for a ManagedCluster that the agent registers itself.
    pub lease_seconds: i32,
}

fn world(ground: &Ground) -> World {
    World { name: ground.name.clone(), cluster: ground.cluster(), id: ground.id() }
}

impl Controller for Membership {
    const NAME: &'static str = "membership";
    type Key = ObjectKey;
    type World = World;
    type Effect = Effect;
    type Why = Why;
    type Status = ManagedClusterStatus;

    fn observe(&self, _key: &ObjectKey, _trouble: Option<&Trouble>) -> Option<World> {
        Some(world(&self.ground))
    }

    fn decide(world: &World, now: Timestamp) -> Decision<Effect, Why, ManagedClusterStatus> {
        decide::membership(world, now)
    }

    async fn act(&self, key: &ObjectKey, _register: Effect) -> Result<(), EffectError> {
        let metadata = ObjectMeta { name: Some(key.name.clone()), ..ObjectMeta::default() };
        let spec = ManagedClusterSpec {
            lease_duration_seconds: Some(self.lease_seconds),
            ..ManagedClusterSpec::default()
        };
        self.ground.clusters.create(&ManagedCluster { metadata, spec, status: None }).await.map(drop)
    }

    fn shown(world: &World) -> Option<&ManagedClusterStatus> {
        world.cluster.as_ref().and_then(|cluster| cluster.status.as_ref())
    }

    async fn show(&self, world: &World, status: ManagedClusterStatus) -> Result<(), EffectError> {
        let Some(cluster) = &world.cluster else { return Ok(()) };
        let shown = ManagedCluster { status: Some(status), ..(**cluster).clone() };
        self.ground.clusters.replace_status(&shown).await.map(drop)
    }

    fn subject(world: &World) -> Option<ObjectReference> {
        // Events about an object of no namespace go to the default one, which is not this agent's to write to.
        let mut subject = world.cluster.as_ref()?.object_ref(&());
        subject.namespace = Some(world.name.clone());
        Some(subject)
    }
}

/// The controller of the lease.
pub(crate) struct Heartbeat {
    pub ground: Ground,
    pub leases: Objects<Lease>,
    /// How long the cluster may take to answer before it counts as out of reach.
    pub answer_within: Duration,
}

impl Controller for Heartbeat {
    const NAME: &'static str = "heartbeat";
    type Key = ObjectKey;
    type World = Pulse;
    type Effect = Effect;
    type Why = Why;
    type Status = ();

    fn observe(&self, key: &ObjectKey, _trouble: Option<&Trouble>) -> Option<Pulse> {
        Some(Pulse { world: world(&self.ground), lease: self.leases.get(key) })
    }

    fn decide(pulse: &Pulse, now: Timestamp) -> Decision<Effect, Why, ()> {
        decide::heartbeat(pulse, now)
    }

    async fn act(&self, key: &ObjectKey, _renew: Effect) -> Result<(), EffectError> {
        let identity = Ground::identity();
        let tried = || "reading from the cluster before its lease is renewed".to_owned();
        let api = identity.api(&self.ground.client);
        let read = tokio::time::timeout(self.answer_within, api.get(&identity.name)).await;
        let read = read.map_err(|_| EffectError::new(Class::Transient, tried()))?;
        // Whatever the answer was, without the object in it the cluster does not work.
        let read = read.map_err(|error| EffectError::caused(Class::Transient, tried(), error))?;
        if read.metadata.uid != self.ground.id() {
            let other = format!("{}: another cluster answers than before", tried());
            return Err(EffectError::new(Class::Transient, other));
        }
        let gone = || EffectError::new(Class::Stale, format!("the lease {key} is gone"));
        let mut lease = (*self.leases.get(key).ok_or_else(gone)?).clone();
        let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
        spec.holder_identity.get_or_insert_with(|| words::CLUSTER_LEASE.to_owned());
        spec.renew_time = Some(MicroTime(self.ground.clock.now()));
        self.leases.replace(&lease).await.map(drop)
    }

    fn shown(_pulse: &Pulse) -> Option<&()> {
        None
    }

    async fn show(&self, _pulse: &Pulse, (): ()) -> Result<(), EffectError> {
        Ok(())
    }
}
