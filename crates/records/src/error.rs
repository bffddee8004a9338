//! Why records were not read, written or deleted.

use crate::{Epoch, Fault, FleetId, Group, RecordId};

/// Why records were not read, written or deleted. Each names the store it happened in; none holds a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nothing can be kept where there is no store.
    #[error("no object store is given: name at least one profile")]
    NoStores,
    /// The store could not even be opened.
    #[error("store {store} cannot be opened: {why}")]
    Unavailable {
        /// The profile.
        store: String,
        /// What is missing.
        why: String,
    },
    /// The store did not do what it was asked.
    #[error("store {store}: {error}")]
    Store {
        /// The profile.
        store: String,
        /// What it answered.
        #[source]
        error: lifeboat_store::Error,
    },
    /// Somebody with a higher right has written: our word no longer counts.
    #[error(
        "store {store} belongs to {held_by} since epoch {epoch}, we come with epoch {mine}: nothing was written. \
         This cluster is no longer the primary; wait for the hub's word"
    )]
    Refused {
        /// The profile where it was seen.
        store: String,
        /// The cluster that holds it, or what is known of it.
        held_by: String,
        /// The epoch it holds.
        epoch: Epoch,
        /// Ours.
        mine: Epoch,
    },
    /// Another fleet has records of a group of this name there.
    #[error(
        "S3 profile {store} holds records of VRG {group} of another fleet ({}). Nothing was written, read or removed there. Give this fleet a bucket of \
         its own; or, if they are the records of this application because its hub lost its key, put the annotation {}={fleet} on its \
         DRPlacementControl, or on the VRG where there is no hub",
        short(fleet),
        lifeboat_api::annotations::FLEET
    )]
    OtherFleet {
        /// The profile where they were seen.
        store: String,
        /// The group.
        group: Group,
        /// The other fleet.
        fleet: FleetId,
    },
    /// The store knows no conditional writes, and the caller demands them.
    #[error(
        "store {store} ignores conditional writes: two primaries could not be told apart; use another store"
    )]
    Unconditional {
        /// The profile.
        store: String,
    },
    /// An object cannot be used.
    #[error("store {store}: {key}: {fault}")]
    Damaged {
        /// The profile.
        store: String,
        /// The key, with the group's prefix.
        key: String,
        /// What is wrong with it.
        #[source]
        fault: Fault,
    },
    /// The store said that it wrote these, and does not have them.
    #[error("store {store} lost what it said it had written: {}; it will be written again", some(keys))]
    Lost {
        /// The profile.
        store: String,
        /// The keys.
        keys: Vec<String>,
    },
    /// Records of earlier generations are gone, and nobody has given them again.
    #[error(
        "store {store} has lost records that no other store has: {}; write them again or remove them",
        some(keys)
    )]
    Incomplete {
        /// The profile.
        store: String,
        /// The keys.
        keys: Vec<String>,
    },
    /// The store took longer than it may.
    #[error("store {store} took too long: {what}")]
    OutOfTime {
        /// The profile.
        store: String,
        /// What was under way.
        what: String,
    },
    /// Not everything was deleted.
    #[error("store {store} still has {left} objects of the group, such as {example}{}", because(why.as_deref()))]
    Left {
        /// The profile.
        store: String,
        /// How many.
        left: usize,
        /// One of them.
        example: String,
        /// Why, where it is known; without a reason the bound of one pass was reached.
        why: Option<Box<Error>>,
    },
    /// The same record is to be written and to be removed.
    #[error("{0} is to be written and to be removed at once: nothing was done")]
    Contradiction(RecordId),
    /// A name or an object makes no sense.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    /// Whether the same request may succeed later without anybody changing anything.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Store { error, .. } => error.is_transient(),
            Self::OutOfTime { .. } | Self::Lost { .. } => true,
            Self::Left { why, .. } => why.as_ref().is_none_or(|why| why.is_transient()),
            _ => false,
        }
    }
}

/// Enough of a fingerprint to tell two apart.
fn short(fleet: &FleetId) -> String {
    let start: String = fleet.0.chars().take(8).collect();
    if start.len() < fleet.0.len() { format!("{start}…") } else { start }
}

/// A few keys, and how many more.
fn some(keys: &[String]) -> String {
    let shown = keys.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    if keys.len() > 3 { format!("{shown} and {} more", keys.len() - 3) } else { shown }
}

fn because(why: Option<&Error>) -> String {
    why.map_or_else(|| "; go on with the next pass".to_owned(), |why| format!(": {why}"))
}
