//! Where backups are kept: what a SnapshotBackupStorage opens, whether it can really be used, and the removal of backups that nobody
//! needs any more, which needs no node.

mod repository;

pub use repository::{Rates, StoreError, keys, plain, repository, secret_name};
