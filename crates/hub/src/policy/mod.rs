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

use lifeboat_api::Interval;
use lifeboat_api::ramen::{DRPolicy, PeerClasses};

/// Whether a policy's clusters share synchronous storage, so that a failed one must be fenced. Before its clusters have told what they have in common, a
/// policy without an interval is one for such storage.
pub fn is_metro(policy: &DRPolicy) -> bool {
    let status = policy.status.as_ref();
    let has = |classes: Option<&PeerClasses>| classes.is_some_and(|classes| !classes.peer_classes.is_empty());
    let sync = has(status.and_then(|status| status.sync.as_ref()));
    let copied = has(status.and_then(|status| status.async_.as_ref()));
    let unscheduled = Interval::parse(&policy.spec.scheduling_interval) == Ok(None);
    sync || (!copied && unscheduled)
}
