//! Bytes: volumes to a backup repository and back.
//!
//! Knows nothing of Kubernetes. Repositories are in restic's format, so that stock `restic` can list, check and restore them.
//! [`Rustic`] is the mover for real volumes. It trusts neither the volume nor the repository: a backup that could not read
//! everything leaves no snapshot, and a restore writes below its target whatever the repository says.

mod archive;
mod backend;
mod crypto;
mod locks;
mod model;
mod objects;
mod operation;
mod repository;
mod restore;
mod rustic;
mod source;

pub use lifeboat_store::{Patience, S3Store, Secret, Store};
pub use model::{
    BackedUp, Backup, Content, Error, Limits, Mover, Progress, Repository, Restore, Restored, Snapshot,
    Verified,
};
pub use rustic::Rustic;
