//! Observe: what decisions about snapshots, their contents and their sources need.

use crate::provision::desk::Failure;
use crate::snapshots::desk::Sighting;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use lifeboat_api::snapshot::{VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent};
use lifeboat_api::topolvm::LogicalVolume;
use lifeboat_engine::{ObjectKey, Trouble};
use std::sync::Arc;

/// What a decision about a VolumeSnapshot needs.
#[derive(Debug, Clone)]
pub struct SnapshotWorld {
    /// Our name.
    pub driver: String,
    /// The VolumeSnapshot.
    pub snapshot: Arc<VolumeSnapshot>,
    /// The content that it names, or that has its name.
    pub content: Option<Arc<VolumeSnapshotContent>>,
    /// The class that it names.
    pub class: Option<Arc<VolumeSnapshotClass>>,
    /// Classes of our driver that are marked as default.
    pub defaults: Vec<Arc<VolumeSnapshotClass>>,
    /// The claim to take a snapshot of.
    pub claim: Option<Arc<PersistentVolumeClaim>>,
    /// The volume of that claim.
    pub volume: Option<Arc<PersistentVolume>>,
    /// Claims without a volume that are to be filled from it.
    pub fills: Vec<String>,
    /// What failed last.
    pub trouble: Option<Trouble>,
}

/// What a decision about a content needs.
#[derive(Debug, Clone)]
pub struct ContentWorld {
    /// Our name.
    pub driver: String,
    /// Where stores are that a class does not say the namespace of.
    pub namespace: String,
    /// Whether nobody else guards contents.
    pub guards: bool,
    /// The content.
    pub content: Arc<VolumeSnapshotContent>,
    /// The VolumeSnapshot of the name it is bound to.
    pub snapshot: Option<Arc<VolumeSnapshot>>,
    /// Its class.
    pub class: Option<Arc<VolumeSnapshotClass>>,
    /// The LogicalVolume to take a snapshot of.
    pub source: Option<Arc<LogicalVolume>>,
    /// The claim whose volume that is, as its PersistentVolume says.
    pub claim: Option<ObjectKey>,
    /// The LogicalVolume of the snapshot.
    pub logical: Option<Arc<LogicalVolume>>,
    /// LogicalVolumes that are still being filled from the snapshot.
    pub copies: Vec<String>,
    /// What a store has of a snapshot that was not taken here.
    pub sighting: Option<Sighting>,
    /// Whether its backup, of a snapshot that was not taken here, has been removed.
    pub forgotten: bool,
    /// Why its LogicalVolume could not be made.
    pub failure: Option<Failure>,
    /// What failed last.
    pub trouble: Option<Trouble>,
}

/// What a decision about a claim that snapshots are taken of needs.
#[derive(Debug, Clone)]
pub struct SourceWorld {
    /// The claim.
    pub claim: Arc<PersistentVolumeClaim>,
    /// Names of VolumeSnapshots of it that are not taken yet.
    pub unfinished: Vec<String>,
}
