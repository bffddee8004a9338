//! The controller of DRPlacementControl: where an application runs, and how it gets there.
