//! A LogicalVolume that was made for a claim and is not published yet: it becomes published with its PersistentVolume, or goes with its
//! claim. What was published once goes only by its PersistentVolume: a claim's data is never taken for a leftover.

use crate::provision::status::LogicalWhy;
use crate::provision::words::{UNPUBLISHED, annotation, csi_of, is_going, name, uid, volume_of};
use crate::provision::world::LogicalWorld;
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_engine::{Decision, ObjectKey};

/// What can be done about such a LogicalVolume.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum LogicalEffect {
    /// Notes that it is published.
    Seal(Box<LogicalVolume>),
    /// Removes it, after a look at the server that neither its claim nor a PersistentVolume is there.
    Remove {
        /// The LogicalVolume.
        volume: Box<LogicalVolume>,
        /// Where its claim was.
        #[serde(serialize_with = "as_text")]
        claim: ObjectKey,
    },
}

fn as_text<S: serde::Serializer>(key: &ObjectKey, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(key)
}

/// What is decided about such a LogicalVolume.
pub type LogicalDecision = Decision<LogicalEffect, LogicalWhy, ()>;

/// Every rule about LogicalVolumes that are not published.
pub fn decide(world: &LogicalWorld) -> LogicalDecision {
    let logical = &*world.logical;
    let (Some(for_claim), Some(key)) = (annotation(&logical.metadata, UNPUBLISHED), world.claim_key.clone())
    else {
        return Decision::settled();
    };
    if is_going(&logical.metadata) {
        return Decision::settled();
    }
    if let Some(volume) = world.volume.as_deref() {
        // A stranger of the same name publishes nothing; the claim says so.
        return match csi_of(volume) {
            Some((_, handle)) if handle == uid(logical) => {
                Decision::act([LogicalEffect::Seal(Box::new(logical.clone()))])
            }
            _ => Decision::settled(),
        };
    }
    match world.claim.as_deref().filter(|claim| uid(*claim) == for_claim) {
        Some(claim) if volume_of(claim).is_empty() || volume_of(claim) == name(logical) => {
            Decision::settled()
        }
        // The claim is gone, is a namesake, or has taken another volume.
        _ => Decision::act([LogicalEffect::Remove { volume: Box::new(logical.clone()), claim: key }]),
    }
}
