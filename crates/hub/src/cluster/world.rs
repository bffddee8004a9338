//! All that a decision about a cluster needs, as plain facts.

use super::check::CheckState;
use super::settings::Config;
use super::survey::Survey;
use crate::views::Reach;
use crate::words::Words as _;
use lifeboat_api::ramen::DRCluster;
use lifeboat_api::view::ManagedClusterView;
use lifeboat_api::work::ManifestWork;
use lifeboat_engine::{ObjectKey, Trouble};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the fleet knows about a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Managed {
    /// Whether it has joined.
    pub joined: bool,
    /// Who it says it is.
    pub id: Option<String>,
    /// Whether it is heard of.
    pub reach: Reach,
}

/// Whose agent carries things to a cluster, as far as its views tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    /// It has not answered yet.
    Unknown,
    /// One of ours, which says when it saw what it shows.
    Ours,
    /// OCM's, which needs roles for our kinds.
    Others,
}

/// A policy that names the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// Whether it is being deleted.
    pub going: bool,
    /// Its clusters.
    pub clusters: Vec<String>,
    /// How often data is copied.
    pub interval: String,
    /// Whether its clusters share synchronous storage.
    pub metro: bool,
}

/// A cluster that shares a policy with this one.
#[derive(Debug, Clone, PartialEq)]
pub struct Peer {
    /// Its region.
    pub region: Option<String>,
    /// The store of its records.
    pub profile: String,
    /// Whether it has joined.
    pub joined: bool,
    /// What it has to offer.
    pub survey: Survey,
}

/// A storage that must be prepared for a failover.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Mode {
    /// The CSI driver.
    pub provisioner: String,
    /// The replication identity.
    pub target: String,
}

/// What failovers to the cluster need of its storage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Storage that has to be prepared.
    pub modes: BTreeSet<Mode>,
    /// Applications on their way here of which nobody knows what they need.
    pub unknown: Vec<String>,
}

/// Everything.
#[derive(Clone)]
pub struct World {
    /// The cluster.
    pub cluster: Arc<DRCluster>,
    /// The hub's configuration, or why it cannot be used.
    pub config: Result<Arc<Config>, String>,
    /// What the fleet knows about it.
    pub managed: Managed,
    /// Whose agent it has.
    pub agent: Agent,
    /// Policies that name it, the oldest first.
    pub policies: Vec<Policy>,
    /// Clusters that share a policy with it, by name.
    pub peers: BTreeMap<String, Peer>,
    /// Whether clusters that it has works on are heard of.
    pub reaches: BTreeMap<String, Reach>,
    /// Versions of the secrets of stores, by the store's name; nothing where the secret does not exist.
    pub secrets: BTreeMap<String, Option<String>>,
    /// Works that name the cluster. Those that carry secrets are here without what they carry.
    pub works: BTreeMap<ObjectKey, Arc<ManifestWork>>,
    /// Views that name the cluster.
    pub views: BTreeMap<ObjectKey, Arc<ManagedClusterView>>,
    /// What it has to offer.
    pub survey: Survey,
    /// What is known about its store.
    pub check: CheckState,
    /// What failovers to it need.
    pub needs: Needs,
    /// The last failure.
    pub trouble: Option<Trouble>,
}

impl World {
    /// Its name.
    pub fn name(&self) -> &str {
        self.cluster.name()
    }

    /// Why a cluster is not heard of; nothing where it is.
    pub fn silence(&self, cluster: &str) -> Option<String> {
        match self.reaches.get(cluster) {
            Some(Reach::Fresh) => None,
            Some(Reach::Silent(why)) => Some(why.clone()),
            None => Some(format!("cluster {cluster} is not known")),
        }
    }

    /// Stores that applications on this cluster write to: its own, and those of clusters it shares a policy with.
    pub fn stores(&self) -> BTreeSet<String> {
        let going = |name: &String| {
            !self.policies.iter().any(|policy| !policy.going && policy.clusters.contains(name))
        };
        let peers = self.peers.iter().filter(|(name, _)| !going(name)).map(|(_, peer)| peer.profile.clone());
        let own = self.cluster.spec.s3_profile_name.clone();
        peers.chain([own]).filter(|name| name != lifeboat_api::ramen::NO_S3).collect()
    }
}
