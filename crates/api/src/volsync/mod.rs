//! `volsync.backube/v1alpha1`: copying a claim's bytes to another place at intervals.

mod destination;
mod mover;
mod source;
mod syncthing;

pub use destination::{
    RcloneDestination, ReplicationDestination, ReplicationDestinationSpec, ReplicationDestinationStatus,
    ResticDestination, RsyncDestination, RsyncDestinationStatus, RsyncTlsDestination,
    RsyncTlsDestinationStatus,
};
pub use mover::{
    CustomCa, DestinationVolumeOptions, External, MoverConfig, MoverStatus, MoverVolume, MoverVolumeSource,
    SourceVolumeOptions, Trigger,
};
pub use source::{
    RcloneSource, ReplicationSource, ReplicationSourceSpec, ReplicationSourceStatus, ResticRetain,
    ResticSource, ResticSourceStatus, RsyncSource, RsyncSourceStatus, RsyncTlsSource, RsyncTlsSourceStatus,
};
pub use syncthing::{Syncthing, SyncthingPeer, SyncthingPeerStatus, SyncthingStatus};

use crate::wire::wire_enum;

/// The API group of these kinds.
pub const GROUP: &str = "volsync.backube";

wire_enum! {
    /// How a stable image of a volume is made.
    closed CopyMethod {
        /// Not at all: the volume itself is used.
        Direct = "Direct",
        /// The former name of Direct.
        None = "None",
        /// By cloning the volume.
        Clone = "Clone",
        /// By a snapshot.
        Snapshot = "Snapshot",
    }
}

wire_enum! {
    /// How the last run of a mover ended.
    open MoverResult {
        /// All was copied.
        Successful = "Successful",
        /// It was not.
        Failed = "Failed",
    }
}
