//! The controller of DRPlacementControl.
