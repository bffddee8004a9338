//! The LogicalVolumes of a node: rules as tables, stories on real directories and a real repository, a death at every effect.

mod crash;
pub(crate) mod ground;
mod on_lvm;
mod replay;
mod rules;
mod stories;
