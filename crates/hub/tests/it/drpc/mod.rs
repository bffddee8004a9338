//! The controller of DRPlacementControl: rules as tables, stories with played clusters, a death at every write.

mod accidents;
mod crash;
mod fleet;
mod kinds;
mod law;
mod rules;
mod spoke;
mod stories;
mod walk;
mod witness;
