//! The cluster's membership in the fleet: its ManagedCluster on the hub, and the lease by which the hub knows that it is there.
//!
//! `Membership` is woken by the ManagedCluster and by the cluster's own identity; `Heartbeat` by the lease and by time. The lease is
//! renewed only after the agent has read from its own cluster: a hub that sees it knows that everything it sees through this
//! agent is current.

pub mod decide;
mod effects;

pub(crate) use effects::{Heartbeat, Membership};
