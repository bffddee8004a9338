//! A claim that snapshots are taken of: it does not go before they are taken.

use crate::provision::words::{drop_finalizer, has_finalizer};
use crate::snapshots::status::SourceWhy;
use crate::snapshots::world::SourceWorld;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use lifeboat_api::finalizers::PVC_AS_SOURCE;
use lifeboat_engine::Decision;

/// What can be done about such a claim.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum SourceEffect {
    /// Lets it go.
    Release(Box<PersistentVolumeClaim>),
}

/// What is decided about such a claim.
pub type SourceDecision = Decision<SourceEffect, SourceWhy, ()>;

/// Every rule about claims that snapshots are taken of.
pub fn decide(world: &SourceWorld) -> SourceDecision {
    if !has_finalizer(&world.claim.metadata, PVC_AS_SOURCE) {
        return Decision::settled();
    }
    if !world.unfinished.is_empty() {
        return Decision::wait(SourceWhy::Unfinished(world.unfinished.clone()));
    }
    let mut claim = (*world.claim).clone();
    drop_finalizer(&mut claim.metadata, PVC_AS_SOURCE);
    Decision::act([SourceEffect::Release(Box::new(claim))])
}
