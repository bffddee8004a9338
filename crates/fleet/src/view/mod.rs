//! ManagedClusterViews: one object of the cluster, copied to the hub whenever it changes.
//!
//! Woken by its view, by the object and by the cluster's kinds. Nothing is polled: `updateIntervalSeconds` is read by nobody.

pub mod decide;
mod effects;

pub(crate) use effects::Views;
