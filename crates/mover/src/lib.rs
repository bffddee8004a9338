//! Bytes: volumes to a backup repository and back.
//!
//! Knows nothing of Kubernetes. Repositories are in restic's format, so that stock `restic` can list, check and restore them.

mod model;

pub use model::{
    BackedUp, Backup, Content, Error, Limits, Mover, Progress, Repository, Restore, Restored, S3Store,
    Secret, Snapshot, Store, Verified,
};
