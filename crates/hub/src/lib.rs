//! Where each application runs: the controllers of DRPlacementControl, DRPolicy and DRCluster.
//!
//! ```text
//!   DRPlacementControl ─▶ drpc ─▶ works (ManifestWork in the namespace of a cluster) ─▶ that cluster
//!                           ▲
//!                           └──── views (ManagedClusterView, with when it was seen) ◀── that cluster
//! ```
//!
//! The hub talks to its own API server and, where its memory is not enough, to object stores. It never talks to a managed
//! cluster: what shall be there goes down as a [`works`], what is there comes up through [`views`].

pub mod cluster;
pub mod drpc;
pub mod policy;
pub mod recall;
pub mod secrets;
pub mod views;
pub mod words;
pub mod works;
