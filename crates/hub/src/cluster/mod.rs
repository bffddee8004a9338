//! The controller of DRCluster: whether a cluster can be used, fences and maintenance modes.
