//! What a cluster waits for, and under which word its condition says so.

use lifeboat_api::conditions::drcluster;
use lifeboat_engine::{Level, Why};
use serde::Serialize;
use std::fmt;

/// What a cluster waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Wait {
    /// The hub's configuration cannot be used.
    NoConfig(String),
    /// Something could not be written.
    Undone {
        /// Which word the condition gives.
        reason: String,
        /// What was tried.
        message: String,
    },
    /// The store cannot be used; it is tried again.
    StoreFails {
        /// Which word the condition gives.
        reason: String,
        /// What happened.
        sentence: String,
    },
    /// The store is being tried for the first time.
    StoreBeingTried(String),
    /// The cluster cannot reach its store, by its own word.
    StoreOutOfReach(String),
    /// The cluster has not joined this hub.
    NotJoined(String),
    /// The cluster has not said who it is.
    Unidentified(String),
    /// The cluster has not applied what was sent.
    NotApplied {
        /// The work.
        work: String,
        /// Whether the cluster is heard of at all.
        silent: Option<String>,
    },
    /// The cluster refuses what was sent.
    Refused {
        /// The work.
        work: String,
        /// Why, in the agent's words.
        why: String,
    },
    /// Addresses that are none.
    BadAddresses(String),
    /// Addresses of nodes that are not configured.
    UnconfiguredAddresses(String),
    /// Nobody is there who could put a fence up.
    NoPeer,
    /// Nobody knows what to fence off.
    NoAddresses,
    /// Nobody knows how to fence.
    NoWayToFence(String),
    /// The peer has to show its ways to fence first.
    PeerUnsurveyed(String),
    /// The peer has not confirmed the fence.
    FenceUnconfirmed(String),
    /// The peer could not put the fence up.
    FenceFailed(String),
    /// A former fence has to go first.
    OldFenceGoing(String),
    /// The field was cleared and the fence stands.
    FenceKept(String),
    /// The peer has not confirmed that the fence is down.
    LiftUnconfirmed(String),
    /// The peer could not take the fence down.
    LiftFailed(String),
    /// What is left of a fence is being removed.
    FenceGoing(String),
    /// Storage is getting ready for a failover.
    ModesPending(Vec<String>),
    /// What an application needs that fails over to here is not known.
    NeedsUnknown(Vec<String>),
    /// Policies name the cluster that is to be deleted.
    InUse(Vec<String>),
    /// What was put on clusters is being taken back.
    TakingBack(Vec<String>),
}

impl Wait {
    /// Which reason the condition Validated gives.
    pub fn condition(&self) -> &str {
        match self {
            Self::NoConfig(_) => drcluster::REASON_CONFIG_MAP_GET_FAILED,
            Self::Undone { reason, .. } | Self::StoreFails { reason, .. } => reason,
            Self::StoreBeingTried(_) => drcluster::REASON_INITIALIZING,
            Self::StoreOutOfReach(_) => drcluster::REASON_S3_CONNECTION_FAILED,
            Self::NotJoined(_) | Self::Unidentified(_) => drcluster::REASON_CONFIG_IN_PROGRESS,
            Self::NotApplied { work, .. } | Self::Refused { work, .. }
                if work == super::manifests::CONFIG_WORK =>
            {
                drcluster::REASON_CONFIG_IN_PROGRESS
            }
            Self::NotApplied { .. } | Self::Refused { .. } => drcluster::REASON_DEPLOY_STATUS_CHECK_FAILED,
            _ => drcluster::REASON_VALIDATION_FAILED,
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoConfig(why) | Self::StoreOutOfReach(why) => f.write_str(why),
            Self::Undone { message, .. } => write!(f, "{message}; it is tried again"),
            Self::StoreFails { sentence, .. } => write!(f, "{sentence}; it is tried again with growing pauses"),
            Self::StoreBeingTried(profile) => write!(f, "the store {profile} is being tried"),
            Self::NotJoined(name) => {
                write!(f, "cluster {name} has not joined this hub: a ManagedCluster of this name must be accepted and joined")
            }
            Self::Unidentified(name) => write!(f, "cluster {name} has not said who it is: its claim id.k8s.io is missing"),
            Self::NotApplied { work, silent: None } => write!(f, "the cluster has not applied {work} yet"),
            Self::NotApplied { work, silent: Some(why) } => write!(f, "{work} waits to be applied: {why}"),
            Self::Refused { work, why } => write!(f, "the cluster cannot apply {work}: {why}"),
            Self::BadAddresses(which) => write!(f, "{which} are no address ranges: write them as 10.0.0.0/24"),
            Self::UnconfiguredAddresses(which) => {
                write!(f, "nodes reach storage from {which}, which spec.cidrs does not have: a fence would not hold them off; add them")
            }
            Self::NoPeer => f.write_str(
                "no policy gives this cluster a peer with the same storage or region, so nobody can fence it: fence it by hand and set ManuallyFenced",
            ),
            Self::NoAddresses => f.write_str("spec.cidrs is empty, so nobody knows what to fence off: add the addresses of the nodes"),
            Self::NoWayToFence(peer) => write!(
                f,
                "cluster {peer} has no NetworkFenceClass for the storage, and the annotations that name driver, secret and storage cluster are not on this DRCluster: add one or the other"
            ),
            Self::PeerUnsurveyed(why) => write!(f, "how to fence is not known yet: {why}"),
            Self::FenceUnconfirmed(why) => write!(f, "the fence is going up: {why}"),
            Self::FenceFailed(why) => write!(f, "the fence could not be put up: {why}"),
            Self::OldFenceGoing(what) => write!(f, "a former fence has to go first: {what}"),
            Self::FenceKept(peer) => write!(
                f,
                "spec.clusterFence was cleared and the fence on {peer} stands: set it to Unfenced to have it taken down"
            ),
            Self::LiftUnconfirmed(why) => write!(f, "the fence is coming down: {why}"),
            Self::LiftFailed(why) => write!(f, "the fence could not be taken down: {why}"),
            Self::FenceGoing(what) => write!(f, "what is left of the fence is being removed: {what}"),
            Self::ModesPending(which) => write!(f, "storage is getting ready for a failover: {}", which.join(", ")),
            Self::NeedsUnknown(which) => {
                write!(f, "what {} need of the storage is not known: their groups have not been seen", which.join(", "))
            }
            Self::InUse(by) => write!(f, "named by the policies {}: delete those first", by.join(", ")),
            Self::TakingBack(which) => write!(f, "waiting until the cluster has taken back {}", which.join(", ")),
        }
    }
}

impl Why for Wait {
    fn event(&self) -> Option<Level> {
        match self {
            Self::StoreFails { .. }
            | Self::Refused { .. }
            | Self::FenceFailed(_)
            | Self::LiftFailed(_)
            | Self::InUse(_) => Some(Level::Warning),
            _ => None,
        }
    }
}
