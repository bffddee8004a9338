//! The controller of DRPolicy: which clusters protect each other, and what they have in common.
//!
//! A policy writes nothing but its own finalizer, label and status: what it needs on clusters is sent and looked at by [`crate::cluster`]. It is
//! woken by itself and other policies, DRClusters, ManagedClusters, the hub's ConfigMap, views of surveys and classes, and
//! DRPlacementControls that come and go.

pub mod decide;
pub mod peers;
mod run;
pub mod why;
pub mod world;

pub use run::controller;
