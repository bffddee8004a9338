//! `replication.storage.openshift.io/v1alpha1`: replication that the storage itself performs.

mod group;
mod volume;

pub use group::{
    GroupContentSource, GroupSource, PersistentVolumeMapping, VolumeGroupReplication,
    VolumeGroupReplicationClass, VolumeGroupReplicationClassSpec, VolumeGroupReplicationClassStatus,
    VolumeGroupReplicationContent, VolumeGroupReplicationContentSpec, VolumeGroupReplicationContentStatus,
    VolumeGroupReplicationSpec, VolumeGroupReplicationStatus,
};
pub use volume::{
    VolumeReplication, VolumeReplicationClass, VolumeReplicationClassSpec, VolumeReplicationClassStatus,
    VolumeReplicationSpec, VolumeReplicationStatus,
};

use crate::wire::wire_enum;

/// The API group of these kinds.
pub const GROUP: &str = "replication.storage.openshift.io";

wire_enum! {
    /// Role asked of a volume or a group of volumes.
    closed ReplicationState {
        /// Writable; changes flow to the peer.
        Primary = "primary",
        /// Not writable; changes flow in.
        Secondary = "secondary",
        /// As secondary, and local changes are thrown away in favour of the peer's.
        Resync = "resync",
    }
}

wire_enum! {
    /// Role that a volume or a group of volumes has reached.
    open State {
        /// Writable.
        Primary = "Primary",
        /// Not writable.
        Secondary = "Secondary",
        /// Not known.
        Unknown = "Unknown",
    }
}
