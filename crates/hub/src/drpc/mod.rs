//! The controller of DRPlacementControl: on which of two clusters an application runs, and how it gets there.
//!
//! ```text
//!   DRPlacementControl ─┐                      ┌─▶ commission: who is primary, at which epoch (on the DRPlacementControl itself)
//!   Placement, Policy  ─┼▶ World ─▶ decide ────┼─▶ works: the group of each cluster, with its role and that epoch
//!   works, views       ─┘             │        └─▶ placement decision: where the application runs
//!                                     └─▶ status, with everything that is waited for
//! ```
//!
//! Every change of role is first written down as a [`commission`]: a number that only grows, the cluster that is primary at it, and the
//! action it follows from. Only then does a work carry it. Whatever was under way when a process died can be told from the commission, the works and
//! the views. `decide` has one file for each flow; nothing in it waits for the failed cluster or its store.
//!
//! Woken by DRPlacementControls, by works and views that name them, by their placements and decisions, and by the policies and clusters that
//! they depend on.

pub mod commission;
pub mod decide;
pub mod drill;
mod effects;
pub mod fleet_key;
pub mod glance;
pub mod group;
mod look;
pub mod plan;
pub mod run;
pub mod status;
pub mod stores;
pub mod why;
pub mod world;

pub use plan::plan;
pub use run::{Hub, Kinds, Setup, kinds, serve};
