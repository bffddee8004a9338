//! The controller of DRCluster.
