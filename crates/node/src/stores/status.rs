//! What people are told about stores and about backups that do not go.

use lifeboat_engine::{Level, Why};
use std::fmt;

/// What a store waits for.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum StorageWhy {
    /// It cannot be used as it is written.
    Unusable(String),
    /// It was tried and did not do.
    Failed(String),
    /// It works, and is tried again some time.
    NextCheck,
}

impl fmt::Display for StorageWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable(why) | Self::Failed(why) => f.write_str(why),
            Self::NextCheck => f.write_str("the store works; it is tried again from time to time"),
        }
    }
}

impl Why for StorageWhy {
    fn reason(&self) -> String {
        let reason = match self {
            Self::Unusable(_) => "StorageUnusable",
            Self::Failed(_) => "StorageCheckFailed",
            Self::NextCheck => "NextCheck",
        };
        reason.to_owned()
    }

    fn event(&self) -> Option<Level> {
        (!matches!(self, Self::NextCheck)).then_some(Level::Warning)
    }
}

/// What the removal of unused data waits for.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum PruneWhy {
    /// It was done, and is done again some time.
    NextRun,
    /// It could not be done.
    Failed(String),
}

impl fmt::Display for PruneWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NextRun => f.write_str("unused data is removed from time to time"),
            Self::Failed(why) => write!(f, "unused data could not be removed and will be tried again: {why}"),
        }
    }
}

impl Why for PruneWhy {
    fn reason(&self) -> String {
        match self {
            Self::NextRun => "NextPrune".to_owned(),
            Self::Failed(_) => "PruneFailed".to_owned(),
        }
    }

    fn event(&self) -> Option<Level> {
        // A store that is in use is nothing that people have to act on.
        None
    }
}

/// What the removal of a backup waits for.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum RemovalWhy {
    /// Volumes are being restored from it.
    BeingRestored(Vec<String>),
    /// Its node is still writing it.
    BackupRunning(String),
    /// The store cannot be reached as things are.
    Blocked(String),
}

impl fmt::Display for RemovalWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeingRestored(volumes) => {
                write!(f, "the backup is still being restored into {}", volumes.join(", "))
            }
            Self::BackupRunning(executor) => write!(f, "the backup is still being written by {executor}"),
            Self::Blocked(why) => write!(
                f,
                "the backup cannot be removed: {why}; put that right, or annotate the LogicalVolume with {}=true to leave the backup in its store for good",
                super::ABANDON_BACKUP
            ),
        }
    }
}

impl Why for RemovalWhy {
    fn reason(&self) -> String {
        let reason = match self {
            Self::BeingRestored(_) => "BackupBeingRestored",
            Self::BackupRunning(_) => "BackupRunning",
            Self::Blocked(_) => "BackupRemovalBlocked",
        };
        reason.to_owned()
    }

    fn event(&self) -> Option<Level> {
        Some(if matches!(self, Self::Blocked(_)) { Level::Warning } else { Level::Normal })
    }
}
