//! Observe: all that a decision about a policy needs.

use crate::cluster::survey::Survey;
use crate::cluster::world::Managed;
use jiff::Timestamp;
use lifeboat_api::ramen::DRPolicy;
use lifeboat_engine::Trouble;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One of the policy's clusters.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Whether its DRCluster is validated; nothing where there is no DRCluster.
    pub validated: Option<bool>,
    /// What the fleet knows about it.
    pub managed: Managed,
    /// What it has to offer.
    pub survey: Survey,
}

/// Another policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Other {
    /// Its name.
    pub name: String,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Its clusters.
    pub clusters: Vec<String>,
    /// Whether its clusters share synchronous storage.
    pub metro: bool,
}

/// The namespace for applications that no placement deployed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpsNamespace {
    /// Its name.
    pub name: String,
    /// Whether the hub has it.
    pub exists: bool,
}

/// All that a decision needs.
#[derive(Debug, Clone)]
pub struct World {
    /// The policy.
    pub policy: Arc<DRPolicy>,
    /// Why the hub's configuration cannot be used, where it cannot.
    pub config: Result<(), String>,
    /// The operations namespace, where one is configured.
    pub ops: Option<OpsNamespace>,
    /// Its clusters by name.
    pub members: BTreeMap<String, Member>,
    /// Other policies that are not being deleted.
    pub others: Vec<Other>,
    /// DRPlacementControls that refer to it.
    pub users: Vec<String>,
    /// The last failure.
    pub trouble: Option<Trouble>,
}
