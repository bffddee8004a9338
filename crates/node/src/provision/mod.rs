//! Volumes for claims of our class, without any other provisioner: made where there is room, grown, and removed by their policy.
//!
//! Four controllers share one desk. `provision` (woken by a claim, its class, what it is filled from, the objects of its name and,
//! while it waits, every node) finds a place and makes a LogicalVolume and a PersistentVolume. `leftovers` (woken by a LogicalVolume, its
//! claim and its PersistentVolume) notes what is published and removes what no claim wants any more. `reclaim` (woken by a volume,
//! its claim and its storage) deletes storage before its volume. `expand` (woken by a bound claim and what is behind it) lets it grow.
//!
//! Binding is the binder's business. A node that is being deleted keeps its LogicalVolumes: nothing is deleted by omission.

pub mod decide;
pub mod desk;
mod effects;
pub mod make;
mod run;
pub mod status;
pub mod words;
pub mod world;

pub use run::controllers;
