//! The controller of DRCluster.

mod addresses;
mod fences;
mod modes;
mod plain;
mod removal;
mod validation;
