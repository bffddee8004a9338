//! What a policy waits for.

use lifeboat_api::conditions::drpolicy;
use lifeboat_engine::{Level, Why};
use serde::Serialize;
use std::fmt;

/// What a policy waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Wait {
    /// The hub's configuration cannot be used.
    NoConfig(String),
    /// What it says cannot be meant.
    Invalid(String),
    /// DRClusters that it names do not exist.
    ClustersMissing(Vec<String>),
    /// A cluster's identity is not known.
    ClusterUnidentified(String),
    /// None of its clusters can be used; and what is known of why.
    ClustersUnusable(Vec<String>, Option<String>),
    /// Clusters do not reach stores.
    StoresMissed(String),
    /// Another policy, or the classes themselves, say otherwise.
    Conflict(String),
    /// Networks differ.
    NetworksDiffer(String),
    /// What a cluster has is not known, or not any more.
    Unsurveyed(String),
    /// It is to be deleted and is in use.
    InUse(Vec<String>),
}

impl Wait {
    /// Which reason the condition gives.
    pub fn condition(&self) -> &'static str {
        match self {
            Self::NoConfig(_) => drpolicy::REASON_CONFIG_MAP_GET_FAILED,
            Self::Invalid(_) => drpolicy::REASON_VALIDATION_FAILED,
            Self::ClustersMissing(_) => drpolicy::REASON_DRCLUSTER_NOT_FOUND,
            Self::ClusterUnidentified(_) => drpolicy::REASON_DRCLUSTER_DETAILS_FAILED,
            Self::ClustersUnusable(..) => drpolicy::REASON_DRCLUSTERS_UNAVAILABLE,
            Self::Conflict(_) => drpolicy::REASON_CONFLICT_FOUND,
            Self::NetworksDiffer(_) => drpolicy::REASON_NADS_MISSING,
            Self::Unsurveyed(_) | Self::StoresMissed(_) => drpolicy::REASON_SUCCEEDED,
            Self::InUse(_) => drpolicy::REASON_IN_USE,
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoConfig(why) | Self::Invalid(why) | Self::Conflict(why) | Self::StoresMissed(why) => {
                f.write_str(why)
            }
            Self::ClustersMissing(names) => {
                write!(f, "DRClusters {} do not exist: create them", names.join(", "))
            }
            Self::ClusterUnidentified(name) => {
                write!(f, "cluster {name} has joined and not said who it is: its claim id.k8s.io is missing")
            }
            Self::ClustersUnusable(names, why) => {
                let why = why.as_deref().unwrap_or("their conditions say why");
                write!(f, "none of the DRClusters {} is validated: {why}", names.join(", "))
            }
            Self::NetworksDiffer(missing) => {
                write!(
                    f,
                    "networks are not on both clusters: {missing}; define them there, or remove networkMappingRef"
                )
            }
            Self::Unsurveyed(which) => write!(f, "peer classes are as last known: {which}"),
            Self::InUse(by) => {
                write!(f, "used by the DRPlacementControls {}: delete those first", by.join(", "))
            }
        }
    }
}

impl Why for Wait {
    fn event(&self) -> Option<Level> {
        match self {
            Self::Conflict(_) | Self::Invalid(_) | Self::InUse(_) => Some(Level::Warning),
            _ => None,
        }
    }
}
