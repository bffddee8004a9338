//! Where each application runs: DRPlacementControl, DRPolicy, DRCluster.
