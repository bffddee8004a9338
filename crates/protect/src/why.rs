//! What a group waits for.

use lifeboat_engine::{Level, Why};
use serde::Serialize;
use std::fmt;

/// What a group, or one claim of it, waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Wait {
    /// What is asked for does not hold together.
    Invalid(String),
    /// What is asked for is not served.
    Unsupported(String),
    /// The epoch that was given is no number.
    EpochUnreadable(String),
    /// The epoch that was given is lower than one seen before.
    EpochRefused {
        /// What was given.
        given: i64,
        /// The highest seen.
        highest: i64,
    },
    /// A later epoch has written to a store.
    Superseded(i64),
    /// A store has another fleet's records of a group of this name.
    OtherFleet(String),
    /// The stores are being read.
    ReadingStores,
    /// Stores that cannot be read, any of which may have what is looked for.
    StoresUnreachable(String),
    /// No store has a record, though there must have been one.
    NothingRecorded,
    /// An earlier group of this name lost its object and its claims: what shall become of its data is the user's choice.
    Orphaned(String),
    /// The operator's configuration cannot be read.
    Configuration(String),
    /// A store is being written to.
    WritingStore(String),
    /// A store cannot be written to.
    StoreFailed(String),
    /// A claim is not bound.
    NotBound,
    /// Something about the claim's storage class does not fit.
    BadClass(String),
    /// Several groups want the claim.
    Conflict(String),
    /// An object of the name that is needed belongs to somebody else.
    Foreign(String),
    /// The claim is in use.
    InUse(String),
    /// The claim is not being deleted.
    NotDeleted,
    /// The storage has not done yet what it was asked for.
    Storage(String),
    /// The storage refuses.
    StorageRefused(String),
    /// The key that movers share is missing.
    KeyMissing(String),
    /// A mover has not done yet what it was asked for.
    Mover(String),
    /// Something is being restored.
    Restoring(String),
    /// Something cannot be restored.
    CannotRestore(String),
    /// A copy is complete here, and not kept as an image that can be used yet.
    Unpublished(String),
    /// No image is from before the time that a failover shall go back to.
    PointMissing(String),
    /// Something is being removed.
    Removing(String),
    /// Something failed and will be tried again.
    Failed(String),
    /// The newest complete copy of a claim is older than was agreed.
    Late(String),
    /// All is well, and copies are in time; whether the next ones are is looked at when they are due.
    InTime,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(why)
            | Self::Unsupported(why)
            | Self::Orphaned(why)
            | Self::OtherFleet(why)
            | Self::Configuration(why)
            | Self::BadClass(why)
            | Self::Conflict(why)
            | Self::Storage(why)
            | Self::StorageRefused(why)
            | Self::Mover(why)
            | Self::Restoring(why)
            | Self::CannotRestore(why)
            | Self::Unpublished(why)
            | Self::PointMissing(why)
            | Self::Removing(why)
            | Self::Failed(why)
            | Self::WritingStore(why)
            | Self::StoreFailed(why)
            | Self::Late(why)
            | Self::Foreign(why) => f.write_str(why),
            Self::InTime => f.write_str("nothing but the next copies"),
            Self::EpochUnreadable(text) => {
                write!(f, "the epoch {text:?} is no whole number above zero: correct the annotation")
            }
            Self::EpochRefused { given, highest } => write!(
                f,
                "the epoch {given} is lower than {highest}, which was seen before: whoever gave it does not know the latest change of role"
            ),
            Self::Superseded(epoch) => write!(
                f,
                "another cluster became primary at epoch {epoch}: nothing is recorded from here any more, make this one secondary"
            ),
            Self::ReadingStores => f.write_str("the stores are being read"),
            Self::StoresUnreachable(which) => write!(f, "stores cannot be read and may hold the newest record: {which}"),
            Self::NothingRecorded => f.write_str(
                "no store has a record of this group, so its volumes cannot be told: check the stores, or say with the annotation ramendr.openshift.io/first-deployment=true that there never was one",
            ),
            Self::NotBound => f.write_str("PVC not bound yet"),
            Self::InUse(who) => write!(f, "the claim is in use by {who}"),
            Self::NotDeleted => f.write_str("the claim is not being deleted yet; relocation demotes it only then"),
            Self::KeyMissing(name) => write!(f, "the secret {name} with the movers' key does not exist yet"),
        }
    }
}

impl Why for Wait {
    fn reason(&self) -> String {
        match self {
            Self::Invalid(_) => lifeboat_api::conditions::vrg::events::FAILED_VALIDATION.to_owned(),
            other => lifeboat_engine::variant(other),
        }
    }

    fn event(&self) -> Option<Level> {
        match self {
            Self::Invalid(_)
            | Self::Unsupported(_)
            | Self::EpochUnreadable(_)
            | Self::EpochRefused { .. }
            | Self::Superseded(_)
            | Self::OtherFleet(_)
            | Self::StoresUnreachable(_)
            | Self::NothingRecorded
            | Self::Orphaned(_)
            | Self::Configuration(_)
            | Self::StoreFailed(_)
            | Self::Conflict(_)
            | Self::Foreign(_)
            | Self::Late(_)
            | Self::PointMissing(_)
            | Self::CannotRestore(_) => Some(Level::Warning),
            _ => None,
        }
    }
}

impl Wait {
    /// How much it matters when several things are waited for: the most telling one is what the group as a whole says.
    pub fn weight(&self) -> u8 {
        match self {
            Self::Invalid(_)
            | Self::Unsupported(_)
            | Self::EpochUnreadable(_)
            | Self::EpochRefused { .. } => 5,
            Self::Superseded(_)
            | Self::OtherFleet(_)
            | Self::NothingRecorded
            | Self::Orphaned(_)
            | Self::Conflict(_)
            | Self::Foreign(_) => 4,
            Self::CannotRestore(_)
            | Self::PointMissing(_)
            | Self::StorageRefused(_)
            | Self::BadClass(_)
            | Self::StoresUnreachable(_)
            | Self::StoreFailed(_)
            | Self::Configuration(_)
            | Self::Failed(_) => 3,
            Self::InUse(_)
            | Self::NotDeleted
            | Self::KeyMissing(_)
            | Self::Unpublished(_)
            | Self::Late(_) => 2,
            _ => 1,
        }
    }
}
