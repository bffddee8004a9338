//! `cluster.open-cluster-management.io`: the clusters of a fleet, and which of them run what.

mod decision;
mod managed_cluster;
mod placement;

pub use decision::{ClusterDecision, PlacementDecision, PlacementDecisionBody, PlacementDecisionStatus};
pub use managed_cluster::{
    ClientConfig, ClusterClaim, ManagedCluster, ManagedClusterSpec, ManagedClusterStatus,
    ManagedClusterVersion, ManagedNamespace, Taint,
};
pub use placement::{
    AddOnScore, CelSelector, ClaimSelector, ClusterPredicate, ClusterSelector, DecisionGroup,
    DecisionGroupStatus, DecisionStrategy, GroupClusterSelector, GroupStrategy, Placement, PlacementSpec,
    PlacementStatus, PrioritizerConfig, PrioritizerPolicy, ScoreCoordinate, ScoreCoordinateType, SortBy,
    SpreadConstraint, SpreadPolicy, Toleration, TopologyKeyType, UnsatisfiableAction,
};

use crate::wire::wire_enum;

/// The API group of these kinds.
pub const GROUP: &str = "cluster.open-cluster-management.io";

wire_enum! {
    /// What a taint does to placements that do not tolerate it.
    closed TaintEffect {
        /// The cluster is not chosen, and given up where it was.
        NoSelect = "NoSelect",
        /// The cluster is chosen only where nothing else is left.
        PreferNoSelect = "PreferNoSelect",
        /// The cluster is not newly chosen.
        NoSelectIfNew = "NoSelectIfNew",
    }
}
