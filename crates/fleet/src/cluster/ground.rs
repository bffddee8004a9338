//! What the agent's controllers share: their cluster, what it has and what is seen of it, and who they are.

use super::kinds::{Kinds, Target};
use super::sight::{Seen, Sight};
use crate::allowed::Allowed;
use lifeboat_api::cluster::ManagedCluster;
use lifeboat_api::conditions::fleet::IDENTITY_NAMESPACE;
use lifeboat_engine::{Clock, ObjectKey, Objects};
use parking_lot::Mutex;
use std::sync::Arc;

/// What the agent's controllers share.
#[derive(Clone)]
pub struct Ground {
    /// Name of the cluster, which is that of its namespace on the hub.
    pub name: String,
    /// A client of the cluster.
    pub client: kube::Client,
    /// Its kinds.
    pub kinds: Arc<Kinds>,
    /// What is seen of it.
    pub sight: Arc<Sight>,
    /// What may be carried.
    pub allowed: Arc<Allowed>,
    /// The clock.
    pub clock: Clock,
    /// The hub's ManagedCluster of this cluster.
    pub clusters: Objects<ManagedCluster>,
    /// The cluster's identity as it was last seen: it stays what it is while the cluster cannot be reached.
    pub seen_id: Arc<Mutex<Option<String>>>,
}

/// Whether the cluster is the one that the hub means by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is, or the hub means none yet.
    Meant,
    /// It is not known yet who it is.
    Unknown,
    /// The hub means the cluster with this identity.
    Other(String),
}

impl Ground {
    /// The object whose uid is the cluster's identity.
    pub fn identity() -> Target {
        Target::namespace(IDENTITY_NAMESPACE)
    }

    /// The cluster's identity, once it was seen.
    pub fn id(&self) -> Option<String> {
        let mut known = self.seen_id.lock();
        if let Seen::Present(namespace) = self.sight.get(&Self::identity()) {
            known.clone_from(&namespace.metadata.uid);
        }
        known.clone()
    }

    /// The hub's word for this cluster.
    pub fn cluster(&self) -> Option<Arc<ManagedCluster>> {
        self.clusters.get(&ObjectKey::cluster_wide(self.name.clone()))
    }

    /// Whether this is the cluster that the hub means.
    pub fn standing(&self) -> Standing {
        let claimed = self.cluster().and_then(|cluster| cluster.id().map(str::to_owned));
        match (claimed, self.id()) {
            (None, _) => Standing::Meant,
            (Some(_), None) => Standing::Unknown,
            (Some(claimed), Some(ours)) if claimed == ours => Standing::Meant,
            (Some(claimed), Some(_)) => Standing::Other(claimed),
        }
    }
}
