//! The controller of DRPlacementControl: rules as tables, stories with played clusters, a death at every write.

mod crash;
mod fleet;
mod holds;
mod kinds;
mod rules;
mod spoke;
mod stories;
mod walk;
