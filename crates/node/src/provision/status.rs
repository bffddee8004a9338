//! What people are told: why a claim has no volume yet, why a volume does not go, and why one does not grow.

use crate::provision::decide::place::NoPlace;
use lifeboat_engine::{Level, Why};
use std::fmt;

/// What a claim waits for.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum ClaimWhy {
    /// Its class does not exist.
    ClassMissing(String),
    /// The scheduler chooses a node first.
    FirstConsumer,
    /// It cannot be served as it is written.
    Refused(String),
    /// What it is filled from is not ready.
    SourceNotReady(String),
    /// Somebody else fills claims with such a source.
    Populator(String),
    /// No node can have it.
    NoPlace {
        /// The device class; empty for the default one.
        device: String,
        /// Bytes needed.
        size: u64,
        /// What was found.
        found: NoPlace,
    },
    /// Its node makes the volume.
    Making {
        /// The claim.
        claim: String,
        /// The node.
        node: String,
    },
    /// The node that was to make it does not exist any more, and may have begun.
    NodeGone(String),
    /// A failed volume is being removed.
    Discarding(String),
    /// It failed, and is tried again after a pause.
    Failed {
        /// gRPC code.
        code: i32,
        /// What was said.
        message: String,
    },
    /// Something else has the name that its volume must have.
    NameTaken(String),
}

impl fmt::Display for ClaimWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClassMissing(class) => write!(f, "StorageClass {class:?} does not exist"),
            Self::FirstConsumer => f.write_str("waiting for first consumer to be created before binding"),
            Self::Refused(why) => write!(f, "failed to provision volume: {why}"),
            Self::SourceNotReady(what) => write!(f, "the data source is not ready: {what}"),
            Self::Populator(kind) => write!(f, "a volume populator for {kind} fills this claim"),
            Self::NoPlace { device, size, found } => {
                let class = if device.is_empty() {
                    "the default device class".to_owned()
                } else {
                    format!("device class {device:?}")
                };
                match found {
                    NoPlace::NoNode => {
                        write!(f, "no node that the StorageClass allows reports room in {class}")
                    }
                    NoPlace::NoRoom { best, free } => write!(
                        f,
                        "not enough room in {class}: {size} bytes are needed, node {best} has most with {free} that are not promised"
                    ),
                }
            }
            Self::Making { claim, .. } => {
                write!(f, "External provisioner is provisioning volume for claim {claim:?}")
            }
            Self::NodeGone(node) => write!(
                f,
                "node {node} does not exist any more and may have begun to make the volume: delete its LogicalVolume's finalizer once the disk is gone"
            ),
            Self::Discarding(volume) => {
                write!(f, "LogicalVolume {volume}, which could not be made, is being removed")
            }
            Self::Failed { code, message } => {
                write!(f, "failed to provision volume: {message} (code {code})")
            }
            Self::NameTaken(what) => {
                write!(f, "{what} has the name that the volume of this claim must have: rename or delete it")
            }
        }
    }
}

impl Why for ClaimWhy {
    fn reason(&self) -> String {
        let reason = match self {
            Self::Making { .. } => "Provisioning",
            Self::FirstConsumer => "WaitForFirstConsumer",
            Self::Populator(_) => "Populator",
            Self::Discarding(_) => "Discarding",
            Self::NameTaken(_) => "VolumeNameTaken",
            _ => "ProvisioningFailed",
        };
        reason.to_owned()
    }

    fn event(&self) -> Option<Level> {
        match self {
            // The binder tells of the first; nobody has to do anything about the others.
            Self::FirstConsumer | Self::Populator(_) | Self::Discarding(_) => None,
            // Told when the volume was discarded.
            Self::Failed { .. } => None,
            Self::Making { .. } => Some(Level::Normal),
            _ => Some(Level::Warning),
        }
    }
}

/// What a LogicalVolume that is not published waits for: nothing so far.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum LogicalWhy {}

impl fmt::Display for LogicalWhy {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl Why for LogicalWhy {}

/// What a volume waits for before it goes.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum VolumeWhy {
    /// Its claim is still there.
    ClaimExists(String),
    /// Others are being filled from it.
    BeingCopied(Vec<String>),
    /// Its node removes the storage.
    StorageGoing {
        /// The node.
        node: String,
        /// The LogicalVolume.
        volume: String,
    },
}

impl fmt::Display for VolumeWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClaimExists(claim) => write!(f, "its claim {claim} still exists"),
            Self::BeingCopied(copies) => write!(f, "its data is still being copied to {}", copies.join(", ")),
            Self::StorageGoing { node, volume } => {
                write!(f, "node {node} removes the storage of LogicalVolume {volume}")
            }
        }
    }
}

impl Why for VolumeWhy {
    fn event(&self) -> Option<Level> {
        matches!(self, Self::BeingCopied(_)).then_some(Level::Normal)
    }
}

/// What a claim that asks for more waits for.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum ExpandWhy {
    /// Its class does not allow growth.
    NotAllowed,
    /// There is no storage that could grow.
    StorageMissing(String),
    /// The node has not enough room.
    NoRoom {
        /// The node.
        node: String,
        /// Bytes needed.
        more: u64,
        /// Bytes that are not promised.
        free: u64,
    },
    /// The node could not.
    Failed(String),
    /// The node grows it.
    Growing {
        /// The LogicalVolume.
        volume: String,
        /// The node.
        node: String,
    },
    /// The filesystem is grown where it is mounted.
    Files(String),
}

impl fmt::Display for ExpandWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAllowed => {
                f.write_str("the StorageClass does not allow volumes to grow: set allowVolumeExpansion")
            }
            Self::StorageMissing(volume) => write!(f, "volume {volume} has no LogicalVolume that could grow"),
            Self::NoRoom { node, more, free } => {
                write!(f, "{more} bytes more are needed, node {node} has {free} that are not promised")
            }
            Self::Failed(message) => write!(f, "the node could not grow the volume: {message}"),
            Self::Growing { volume, .. } => write!(f, "External resizer is resizing volume {volume}"),
            Self::Files(volume) => write!(f, "Require file system resize of volume {volume} on node"),
        }
    }
}

impl Why for ExpandWhy {
    fn reason(&self) -> String {
        let reason = match self {
            Self::Growing { .. } => "Resizing",
            Self::Files(_) => "FileSystemResizeRequired",
            _ => "VolumeResizeFailed",
        };
        reason.to_owned()
    }

    fn event(&self) -> Option<Level> {
        Some(match self {
            Self::Growing { .. } | Self::Files(_) => Level::Normal,
            _ => Level::Warning,
        })
    }
}
