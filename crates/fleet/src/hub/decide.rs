//! Every rule of the hub's part: who is let in, what they are given, and who is silent.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use lifeboat_api::cluster::{ManagedCluster, ManagedClusterStatus};
use lifeboat_api::conditions::fleet as words;
use lifeboat_api::labels;
use lifeboat_engine::conditions::{Conditions, Holds, find};
use lifeboat_engine::{Decision, Level};
use std::fmt;
use std::sync::Arc;

/// The world of one managed cluster.
#[derive(Debug, Clone)]
pub struct World {
    /// The cluster.
    pub cluster: Arc<ManagedCluster>,
    /// The namespace of its name.
    pub namespace: Option<Arc<Namespace>>,
    /// Its lease.
    pub lease: Option<Arc<Lease>>,
    /// When this process saw the lease renewed, if it did.
    pub renewal_seen: Option<Timestamp>,
    /// Whether its agent has exactly the rights that it should have, has others or has none.
    pub rights: Rights,
}

/// What the agent of a cluster may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum Rights {
    /// What it should.
    AsMeant,
    /// Something else.
    Otherwise,
    /// Nothing.
    None,
}

/// What can be done about a cluster.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub enum Effect {
    /// Make the cluster's namespace.
    MakeNamespace,
    /// Say on the namespace that it is the cluster's.
    LabelNamespace,
    /// Make the lease, for the agent to renew.
    MakeLease,
    /// Give the agent its rights, and no others.
    Grant,
    /// Take the agent's rights away.
    Revoke,
}

/// What a cluster can wait for.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub enum Why {
    /// Somebody has to let it in.
    NotAccepted,
    /// Its name is that of a namespace of the hub's own.
    NameTaken(String),
    /// Its namespace is being deleted.
    NamespaceGoing,
    /// Its agent has not been heard of yet.
    NeverHeard,
    /// Its lease is fresh until then.
    Heard,
    /// Its lease has run out.
    Silent,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAccepted => {
                f.write_str("nobody has let the cluster in; set spec.hubAcceptsClient to true")
            }
            Self::NameTaken(name) => {
                write!(
                    f,
                    "a cluster cannot be called {name}: its agent would get rights in that namespace of the hub"
                )
            }
            Self::NamespaceGoing => f.write_str("the cluster's namespace is being deleted"),
            Self::NeverHeard => {
                f.write_str("the cluster's agent has not been heard of yet; see whether it runs")
            }
            Self::Heard => f.write_str("the cluster's lease is fresh"),
            Self::Silent => {
                f.write_str("the cluster's lease has run out; see whether its agent runs and reaches the hub")
            }
        }
    }
}

impl lifeboat_engine::Why for Why {
    fn event(&self) -> Option<Level> {
        matches!(self, Self::NameTaken(_) | Self::Silent).then_some(Level::Warning)
    }
}

type Decided = Decision<Effect, Why, ManagedClusterStatus>;

/// Decides about one cluster.
pub fn decide(world: &World, now: Timestamp) -> Decided {
    let cluster = &world.cluster;
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let set = Conditions { generation: cluster.metadata.generation, now };
    let mut status = cluster.status.clone().unwrap_or_default();
    if cluster.metadata.deletion_timestamp.is_some() {
        return match world.rights {
            Rights::None => Decision::settled(),
            _ => Decision::act([Effect::Revoke]),
        };
    }
    if is_the_hubs_own(name) {
        return Decision::wait(Why::NameTaken(name.to_owned()));
    }
    if !cluster.spec.hub_accepts_client {
        if find(&status.conditions, words::TYPE_HUB_ACCEPTED).is_some() {
            let (reason, message) = (words::REASON_DENIED, "Denied by hub cluster admin");
            set.set(&mut status.conditions, words::TYPE_HUB_ACCEPTED, Holds::False, reason, message);
        }
        return match world.rights {
            Rights::None => Decision::wait(Why::NotAccepted).showing(status),
            _ => Decision::act([Effect::Revoke]).showing(status),
        };
    }
    if let Some(next) = provide(world, name) {
        return next;
    }
    let (reason, message) = (words::REASON_ACCEPTED, "Accepted by hub cluster admin");
    set.set(&mut status.conditions, words::TYPE_HUB_ACCEPTED, Holds::True, reason, message);
    available(world, status, set)
}

fn provide(world: &World, name: &str) -> Option<Decided> {
    let Some(namespace) = &world.namespace else { return Some(Decision::act([Effect::MakeNamespace])) };
    if namespace.metadata.deletion_timestamp.is_some() {
        return Some(Decision::wait(Why::NamespaceGoing));
    }
    let label = namespace.metadata.labels.as_ref().and_then(|all| all.get(labels::CLUSTER_NAME));
    if label.map(String::as_str) != Some(name) {
        return Some(Decision::act([Effect::LabelNamespace]));
    }
    let lease = world.lease.is_none().then_some(Effect::MakeLease);
    let rights = (world.rights != Rights::AsMeant).then_some(Effect::Grant);
    let effects: Vec<Effect> = lease.into_iter().chain(rights).collect();
    (!effects.is_empty()).then(|| Decision::act(effects))
}

/// Whether the lease is fresh, and what is told of it.
fn available(world: &World, mut status: ManagedClusterStatus, set: Conditions) -> Decided {
    let type_ = words::TYPE_CLUSTER_AVAILABLE;
    let lease = world.lease.as_ref().and_then(|lease| lease.spec.as_ref());
    let Some(renewed) = lease.and_then(|spec| spec.renew_time.as_ref()) else {
        return Decision::wait(Why::NeverHeard).showing(status);
    };
    let grace = grace(&world.cluster);
    let heard = world.renewal_seen.unwrap_or_else(|| renewed.0.min(set.now));
    let ends = heard + grace;
    if set.now >= ends {
        let message = "Registration agent stopped updating its lease.";
        set.set(&mut status.conditions, type_, Holds::Unknown, words::REASON_LEASE_STOPPED, message);
        return Decision::wait(Why::Silent).showing(status);
    }
    let message = "Managed cluster is available";
    // An agent of OCM's says more about it, such as that its API server is ill; only its silence is contradicted.
    let ill = find(&status.conditions, type_).is_some_and(|known| known.status == "False");
    if !ill {
        set.set(&mut status.conditions, type_, Holds::True, words::REASON_CLUSTER_AVAILABLE, message);
    }
    Decision::wait_until(Why::Heard, ends).showing(status)
}

/// How long a cluster may be silent.
pub fn grace(cluster: &ManagedCluster) -> SignedDuration {
    let seconds = cluster.spec.lease_duration_seconds.filter(|seconds| *seconds > 0);
    let seconds = i64::from(seconds.unwrap_or(words::DEFAULT_LEASE_SECONDS));
    SignedDuration::from_secs(seconds * i64::from(words::LEASE_DURATIONS))
}

/// Names of namespaces in which an agent must never have rights.
fn is_the_hubs_own(name: &str) -> bool {
    matches!(name, "default" | "ramen-system" | "ramen-ops" | "lifeboat-system")
        || name.starts_with("kube-")
        || name.starts_with("openshift-")
        || name.starts_with("open-cluster-management")
}
