//! Observe: what a decision about one VolumeReplication needs.

use crate::calls::Word;
use crate::copies::{Copies, Seen};
use crate::desk::Memory;
use crate::failure::Failure;
use lifeboat_api::replication::{VolumeReplication, VolumeReplicationClass};
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_engine::Trouble;
use lifeboat_replicate::jobs::JobView;
use std::sync::Arc;

/// All that a decision about a VolumeReplication needs.
#[derive(Debug, Clone)]
pub struct World {
    /// The VolumeReplication.
    pub replication: Arc<VolumeReplication>,
    /// Its class, one of ours.
    pub class: Option<Arc<VolumeReplicationClass>>,
    /// Where its volume is.
    pub place: Place,
    /// The group's epochs, where there is a group: the highest it knows, and the one at which it is primary here.
    pub epochs: Option<(u64, Option<u64>)>,
    /// Pods that use the claim.
    pub users: Vec<String>,
    /// What is remembered of the volume as a secondary.
    pub memory: Memory,
    /// What this process does about it.
    pub job: Option<JobView<Word, Failure>>,
    /// Whether this process may begin another copy.
    pub room: bool,
    /// What failed last.
    pub trouble: Option<Trouble>,
}

/// Where the volume of a VolumeReplication is.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// There is no such claim.
    NoClaim,
    /// It has no volume yet.
    Unbound,
    /// Its volume is none of node storage.
    Foreign(String),
    /// On this node.
    Here(Box<Here>),
}

/// A volume of this node.
#[derive(Debug, Clone, PartialEq)]
pub struct Here {
    /// Its object.
    pub volume: Arc<LogicalVolume>,
    /// Its device class.
    pub class: String,
    /// Its copies.
    pub seen: Seen,
}

impl World {
    /// Whether a call is under way.
    #[must_use]
    pub fn is_calling(&self) -> bool {
        self.job.as_ref().is_some_and(|job| job.outcome.is_none())
    }

    /// The last call, if it was about this.
    #[must_use]
    pub fn call(&self, of: &str) -> Option<&JobView<Word, Failure>> {
        self.job.as_ref().filter(|job| job.of == of)
    }

    /// The volume and its copies, where both can be seen.
    #[must_use]
    pub fn here(&self) -> Option<(&Here, &Copies)> {
        match &self.place {
            Place::Here(here) => match &here.seen {
                Seen::Listed(copies) => Some((here, copies)),
                _ => None,
            },
            _ => None,
        }
    }
}
