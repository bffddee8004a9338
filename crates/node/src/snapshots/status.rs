//! What people are told about snapshots.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lifeboat_api::snapshot::VolumeSnapshotError;
use lifeboat_engine::conditions::whole_seconds;
use lifeboat_engine::{Level, Why};
use std::fmt;

/// What a VolumeSnapshot waits for.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum SnapshotWhy {
    /// It cannot be taken as things are.
    Failed(String),
    /// It is being taken.
    Taking(String),
    /// Claims are being filled from it.
    InUse(Vec<String>),
    /// Its content is being deleted.
    ContentGoing(String),
}

impl fmt::Display for SnapshotWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) => f.write_str(why),
            Self::Taking(snapshot) => {
                write!(f, "Waiting for a snapshot {snapshot} to be created by the CSI driver.")
            }
            Self::InUse(claims) => {
                write!(f, "Snapshot is being used to restore a PVC: {}", claims.join(", "))
            }
            Self::ContentGoing(content) => write!(f, "its content {content} is being deleted"),
        }
    }
}

impl Why for SnapshotWhy {
    fn reason(&self) -> String {
        let reason = match self {
            Self::Failed(_) => "SnapshotContentCreationFailed",
            Self::Taking(_) => "CreatingSnapshot",
            Self::InUse(_) => "SnapshotDeletePending",
            Self::ContentGoing(_) => "ContentGoing",
        };
        reason.to_owned()
    }

    fn event(&self) -> Option<Level> {
        match self {
            Self::Failed(_) | Self::InUse(_) => Some(Level::Warning),
            Self::Taking(_) => Some(Level::Normal),
            Self::ContentGoing(_) => None,
        }
    }
}

/// What a content waits for.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum ContentWhy {
    /// It cannot be taken, or found, as things are.
    Failed(String),
    /// Its node takes the snapshot.
    Taking(String),
    /// Its node backs the snapshot up.
    BackingUp(String),
    /// Its VolumeSnapshot still needs it.
    Bound(String),
    /// Volumes are being filled from it.
    BeingCopied(Vec<String>),
    /// Its LogicalVolume is being deleted.
    LogicalGoing(String),
}

impl fmt::Display for ContentWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) => f.write_str(why),
            Self::Taking(node) => write!(f, "node {node} takes the snapshot"),
            Self::BackingUp(node) => write!(f, "node {node} backs the snapshot up"),
            Self::Bound(snapshot) => write!(f, "its VolumeSnapshot {snapshot} still exists"),
            Self::BeingCopied(volumes) => {
                write!(f, "volumes are still being filled from it: {}", volumes.join(", "))
            }
            Self::LogicalGoing(volume) => write!(f, "its LogicalVolume {volume} is being deleted"),
        }
    }
}

impl Why for ContentWhy {
    fn reason(&self) -> String {
        let reason = match self {
            Self::Failed(_) => "SnapshotCreationFailed",
            Self::Taking(_) => "TakingSnapshot",
            Self::BackingUp(_) => "BackingUp",
            Self::Bound(_) => "Bound",
            Self::BeingCopied(_) => "SnapshotDeletePending",
            Self::LogicalGoing(_) => "LogicalGoing",
        };
        reason.to_owned()
    }

    fn event(&self) -> Option<Level> {
        match self {
            Self::Failed(_) => Some(Level::Warning),
            Self::BeingCopied(_) => Some(Level::Normal),
            _ => None,
        }
    }
}

/// What a claim that snapshots are taken of waits for.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum SourceWhy {
    /// These are not taken yet.
    Unfinished(Vec<String>),
}

impl fmt::Display for SourceWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Unfinished(snapshots) = self;
        write!(f, "snapshots of it are being taken: {}", snapshots.join(", "))
    }
}

impl Why for SourceWhy {}

/// An error as shown: one that says the same keeps its time.
pub fn error(shown: Option<&VolumeSnapshotError>, message: &str, now: Timestamp) -> VolumeSnapshotError {
    match shown.filter(|shown| shown.message.as_deref() == Some(message)) {
        Some(same) => same.clone(),
        None => {
            VolumeSnapshotError { time: Some(Time(whole_seconds(now))), message: Some(message.to_owned()) }
        }
    }
}
