//! The controller of DRPolicy.
