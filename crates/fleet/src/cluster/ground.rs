//! What the agent's controllers share: their cluster, what it has and what is seen of it, and who they are.

use super::kinds::{Kinds, Target};
use super::sight::{Seen, Sight};
use crate::allowed::Allowed;
use lifeboat_api::cluster::ManagedCluster;
use lifeboat_api::conditions::fleet as words;
use lifeboat_engine::{Clock, ObjectKey, Objects};
use std::sync::Arc;

/// The namespace whose uid is the cluster's identity.
const IDENTITY: &str = "kube-system";

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
}

impl Ground {
    /// The object whose uid is the cluster's identity.
    pub fn identity() -> Target {
        Target::namespace(IDENTITY)
    }

    /// The cluster's identity, once it was seen.
    pub fn id(&self) -> Option<String> {
        match self.sight.get(&Self::identity()) {
            Seen::Present(namespace) => namespace.metadata.uid.clone(),
            _ => None,
        }
    }

    /// The hub's word for this cluster.
    pub fn cluster(&self) -> Option<Arc<ManagedCluster>> {
        self.clusters.get(&ObjectKey::cluster_wide(self.name.clone()))
    }

    /// The identity of another cluster that the hub knows by our name.
    pub fn impostor(&self) -> Option<String> {
        let ours = self.id()?;
        claimed_id(&*self.cluster()?).filter(|claimed| *claimed != ours)
    }
}

/// The identity that a ManagedCluster claims.
pub fn claimed_id(cluster: &ManagedCluster) -> Option<String> {
    let claims = cluster.status.iter().flat_map(|status| &status.cluster_claims);
    let id = claims.into_iter().find(|claim| claim.name.as_deref() == Some(words::CLAIM_ID));
    id.and_then(|claim| claim.value.clone()).filter(|id| !id.is_empty())
}
