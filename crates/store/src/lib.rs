//! An object store: a bucket behind the S3 protocol, or a directory.
//!
//! Names objects by keys with slashes, reads and writes them whole or in ranges, and writes on condition that a key is not
//! taken yet. Retries what is worth a retry and keeps to deadlines, so that callers see an error only when it is theirs to handle.
//! What the objects mean is left to others.

mod bucket;
mod directory;
mod error;
mod key;
mod objects;
mod opened;
mod place;
mod throttle;

pub use bucket::{Bucket, Patience};
pub use directory::Directory;
pub use error::Error;
pub use objects::Objects;
pub use opened::Opened;
pub use place::{S3Store, Secret, Store, certificates};
pub use throttle::Throttle;

/// An object in a listing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its key, without the store's prefix.
    pub key: String,
    /// Its length in bytes.
    pub size: u64,
}
