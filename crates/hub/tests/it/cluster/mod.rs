//! The controller of DRCluster.

mod addresses;
mod crash;
mod fences;
mod keys;
mod modes;
mod plain;
pub mod player;
mod removal;
pub mod scene;
mod stories;
mod validation;
