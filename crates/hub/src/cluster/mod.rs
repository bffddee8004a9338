//! The controller of DRCluster: whether a cluster can be used, its fence, and the maintenance modes of its storage.
//!
//! Everything that the hub puts on one cluster or looks at there, but for applications, is the business of this room: what its operator is told and
//! the keys to its stores, its DRClusterConfig, the views of its classes, fences that cut *it* off (on its peer) and maintenance modes. One decision
//! is about one cluster, so a broken store or a silent cluster spoils one DRCluster and no other.
//!
//! Woken by DRClusters, ManagedClusters, DRPolicies, DRPlacementControls, the hub's ConfigMap and its Secrets, and by works and views
//! that name the cluster. Stores are tried beside the decisions ([`check`]), so that a dead one holds nothing up. Fences and maintenance modes
//! depend neither on stores nor on surveys of the cluster in question: they are needed most when those fail.

pub mod check;
pub mod decide;
mod effects;
pub mod manifests;
mod run;
pub mod settings;
pub mod survey;
pub mod view;
pub mod why;
pub mod world;

pub(crate) use effects::reference;
pub use run::{Clusters, controller};
pub use view::{Setup, Shared, Watched};
