//! Every rule about membership and its lease.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use lifeboat_api::annotations;
use lifeboat_api::cluster::{ClusterClaim, ManagedCluster, ManagedClusterStatus};
use lifeboat_api::conditions::fleet as words;
use lifeboat_engine::conditions::{Conditions, Holds};
use lifeboat_engine::{Decision, Level};
use std::fmt;
use std::sync::Arc;

/// The world of a membership.
#[derive(Debug, Clone)]
pub struct World {
    /// Name of the cluster.
    pub name: String,
    /// The hub's word for it.
    pub cluster: Option<Arc<ManagedCluster>>,
    /// Its identity, once it was seen.
    pub id: Option<String>,
}

/// The world of a lease.
#[derive(Debug, Clone)]
pub struct Pulse {
    /// The membership.
    pub world: World,
    /// The lease.
    pub lease: Option<Arc<Lease>>,
}

/// What can be done about a membership.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub enum Effect {
    /// Ask the hub to let the cluster in.
    Register,
    /// Read from the cluster, then renew the lease.
    Renew,
}

/// What a membership can wait for.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub enum Why {
    /// The hub has not let the cluster in.
    NotAccepted(String),
    /// The hub has not made the lease.
    NoLease(String),
    /// The cluster's identity has not been seen yet.
    IdentityUnknown,
    /// The hub's ManagedCluster of this name is another cluster.
    OtherCluster {
        /// The name.
        name: String,
        /// Identity of the cluster that the hub knows.
        known: String,
        /// Identity of this one.
        ours: String,
    },
    /// The hub's record does not say yet which cluster this is.
    NotOnRecord,
    /// The lease is fresh.
    Renewed,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAccepted(name) => {
                write!(
                    f,
                    "the hub has not let {name} in; set spec.hubAcceptsClient of its ManagedCluster to true"
                )
            }
            Self::NoLease(name) => write!(
                f,
                "the hub has made no lease {} in namespace {name}; its fleet controller does once {name} is let in",
                words::CLUSTER_LEASE
            ),
            Self::IdentityUnknown => f.write_str("the cluster's namespace kube-system cannot be seen"),
            Self::OtherCluster { name, known, ours } => write!(
                f,
                "another cluster ({ours}) asks to join as {name}, which the hub knows as {known}. If {name} was rebuilt, run on the hub: kubectl annotate managedcluster {name} {}={ours} --overwrite. If not, give the other cluster a name of its own",
                annotations::REBUILT_AS
            ),
            Self::NotOnRecord => write!(
                f,
                "the hub's ManagedCluster does not show the claim {} yet; it is written first",
                words::CLAIM_ID
            ),
            Self::Renewed => f.write_str("the lease is fresh"),
        }
    }
}

impl lifeboat_engine::Why for Why {
    fn event(&self) -> Option<Level> {
        matches!(self, Self::OtherCluster { .. }).then_some(Level::Warning)
    }
}

/// Decides about the ManagedCluster.
pub fn membership(world: &World, now: Timestamp) -> Decision<Effect, Why, ManagedClusterStatus> {
    let Some(cluster) = &world.cluster else { return Decision::act([Effect::Register]) };
    match obstacle(world, cluster) {
        // Events are forgotten, and people look at the ManagedCluster.
        Some(why @ Why::OtherCluster { .. }) => {
            let mut status = cluster.status.clone().unwrap_or_default();
            let set = Conditions { generation: cluster.metadata.generation, now };
            let (type_, reason) = (words::TYPE_SAME_CLUSTER, words::REASON_OTHER_CLUSTER);
            set.set(&mut status.conditions, type_, Holds::False, reason, why.to_string());
            Decision::wait(why).showing(status)
        }
        Some(why) => Decision::wait(why),
        None => Decision::settled().showing(status(world, cluster, now)),
    }
}

fn obstacle(world: &World, cluster: &ManagedCluster) -> Option<Why> {
    let Some(id) = &world.id else { return Some(Why::IdentityUnknown) };
    if let Some(known) = cluster.id().filter(|known| known != id && !is_rebuilt(cluster, id)) {
        return Some(Why::OtherCluster {
            name: world.name.clone(),
            known: known.to_owned(),
            ours: id.clone(),
        });
    }
    let accepted = cluster.spec.hub_accepts_client && cluster.metadata.deletion_timestamp.is_none();
    (!accepted).then(|| Why::NotAccepted(world.name.clone()))
}

/// Whether a person said that this cluster was built in the place of the one that the hub knows.
fn is_rebuilt(cluster: &ManagedCluster, id: &str) -> bool {
    let notes = cluster.metadata.annotations.as_ref();
    notes.and_then(|notes| notes.get(annotations::REBUILT_AS)).is_some_and(|said| said.trim() == id)
}

fn status(world: &World, cluster: &ManagedCluster, now: Timestamp) -> ManagedClusterStatus {
    let mut status = cluster.status.clone().unwrap_or_default();
    let id = world.id.clone().unwrap_or_default();
    for (name, value) in [(words::CLAIM_ID, id), (words::CLAIM_NAME, world.name.clone())] {
        match status.cluster_claims.iter_mut().find(|claim| claim.name.as_deref() == Some(name)) {
            Some(known) => known.value = Some(value),
            None => {
                status.cluster_claims.push(ClusterClaim { name: Some(name.to_owned()), value: Some(value) });
            }
        }
    }
    let set = Conditions { generation: cluster.metadata.generation, now };
    let (type_, reason) = (words::TYPE_JOINED, words::REASON_JOINED);
    set.set(&mut status.conditions, type_, Holds::True, reason, "Managed cluster joined");
    if cluster.id().is_some_and(|known| Some(known) != world.id.as_deref()) {
        // Anew each time: its time tells which copies were made to the former one.
        status.conditions.retain(|one| one.type_ != words::TYPE_SAME_CLUSTER);
        let (type_, reason) = (words::TYPE_SAME_CLUSTER, words::REASON_REBUILT);
        let message =
            "built in the place of the cluster that had this name; what was copied to that one is not here";
        set.set(&mut status.conditions, type_, Holds::True, reason, message);
    }
    status
}

/// How often the lease is renewed.
pub fn every(cluster: &ManagedCluster) -> SignedDuration {
    let seconds = cluster.spec.lease_duration_seconds.filter(|seconds| *seconds > 0);
    SignedDuration::from_secs(seconds.unwrap_or(words::DEFAULT_LEASE_SECONDS).into())
}

/// Decides about the lease.
pub fn heartbeat(pulse: &Pulse, now: Timestamp) -> Decision<Effect, Why, ()> {
    let world = &pulse.world;
    let Some(cluster) = &world.cluster else {
        return Decision::wait(Why::NotAccepted(world.name.clone()));
    };
    if let Some(why) = obstacle(world, cluster) {
        return Decision::wait(why);
    }
    // Else the hub would call a cluster available without knowing which one it is.
    if cluster.id() != world.id.as_deref() {
        return Decision::wait(Why::NotOnRecord);
    }
    let Some(lease) = &pulse.lease else { return Decision::wait(Why::NoLease(world.name.clone())) };
    let every = every(cluster);
    let renewed = lease.spec.as_ref().and_then(|spec| spec.renew_time.as_ref()).map(|time| time.0);
    match renewed {
        // A time that has not come yet is from before somebody set the clock back.
        Some(renewed) if renewed <= now && now < renewed + every => {
            Decision::wait_until(Why::Renewed, renewed + every)
        }
        _ => Decision::act([Effect::Renew]),
    }
}
