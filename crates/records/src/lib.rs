//! The object store: what is written there about a protected application, with epochs and manifests.
//!
//! A group's records (its volumes, claims and the group itself) lie under Ramen's keys in Ramen's format, so that either side can
//! restore what the other wrote. Beside them, below `lifeboat/`, lie what Ramen lacks: contents by checksum, a manifest for each
//! generation that names everything that belongs together, and claims and tombstones by which a lower epoch is refused.
//!
//! [`Stores`] reads, writes and deletes over several stores at once; [`restored`] turns stored volumes and claims into
//! what is created on the peer. The rules are in `decide`, without I/O. Which answer is good enough — an empty store, one that is
//! out of reach — is left to the caller, and so is everything about controllers.

mod codec;
mod decide;
mod error;
mod key;
mod manifest;
mod record;
pub mod restored;
mod stores;

pub use codec::{Digest, Fault};
pub use decide::ramen::Flaw;
pub use error::Error;
pub use key::{Group, RecordId};
pub use manifest::{ClusterId, Epoch, FleetId, Generation, Listed, Manifest, Orphan};
pub use record::{Body, Record, Records, claims, group, volumes};
pub use stores::{
    Check, Cleared, Conditions, Deletion, Found, Held, Kept, Profile, Reached, Search, Seen, Settings,
    Stores, Told, Writing, Written,
};
