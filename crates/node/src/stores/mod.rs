//! Where backups are kept: what a SnapshotBackupStorage opens, whether it can really be used, and the removal of backups that nobody
//! needs any more, which needs no node.
//!
//! Three controllers. `storages` (woken by a SnapshotBackupStorage and its Secret, and by a slow clock) tries each store for real and
//! says what came of it. `removals` (woken by a LogicalVolume that is being deleted, by restores from its backup, by its storage and
//! that storage's Secret) removes a backup from its store, and only then lets the LogicalVolume go. `prunes` (woken by those removals and by a
//! slow clock) removes the data that no backup uses any more.

pub mod decide;
mod desk;
mod effects;
mod repository;
mod run;
pub mod status;
pub mod world;

pub use desk::Verdict;
pub use effects::{Stores, place, place_of};
pub use repository::{Rates, StoreError, keys, plain, repository, secret_name};
pub use run::controllers;

/// On a LogicalVolume that is being deleted: set by the administrator; "true" lets it go and leaves its backup in the store, for good.
/// Ours, not known to peers.
pub const ABANDON_BACKUP: &str = lifeboat_api::annotations::ABANDON_BACKUP;
