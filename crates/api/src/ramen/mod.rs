//! `ramendr.openshift.io/v1alpha1`: protecting applications and moving them between clusters.
//!
//! Hub kinds: [`DRPlacementControl`], [`DRPolicy`], [`DRCluster`]. Managed-cluster kinds:
//! [`VolumeReplicationGroup`], [`ReplicationGroupSource`], [`ReplicationGroupDestination`],
//! [`DRClusterConfig`], [`MaintenanceMode`], [`ProtectedVolumeReplicationGroupList`].

pub mod config;
mod drcluster;
mod drclusterconfig;
mod drpc;
mod drpolicy;
mod group;
mod maintenance;
mod protected;
mod pvc;
mod static_ip;
mod volsync;
mod vrg;

pub use drcluster::{
    ClusterFence, ClusterMaintenanceMode, DRCluster, DRClusterPhase, DRClusterSpec, DRClusterStatus,
};
pub use drclusterconfig::{
    DRClusterConfig, DRClusterConfigSpec, DRClusterConfigStatus, NetworkAttachment, StorageAccessDetail,
};
pub use drpc::{
    DRPlacementControl, DRPlacementControlSpec, DRPlacementControlStatus, DRState, FailoverLoss,
    PlacementDecisionRef, Progression, VrgConditions, VrgResourceMeta,
};
pub use drpolicy::{DRPolicy, DRPolicySpec, DRPolicyStatus, NetworkPeer, PeerClass, PeerClasses};
pub use group::{
    GroupTrigger, ReplicationGroupDestination, ReplicationGroupDestinationSpec,
    ReplicationGroupDestinationStatus, ReplicationGroupSource, ReplicationGroupSourceSpec,
    ReplicationGroupSourceStatus,
};
pub use maintenance::{MMode, MModeState, MaintenanceMode, MaintenanceModeSpec, MaintenanceModeStatus};
pub use protected::{
    ProtectedVolumeReplicationGroupList, ProtectedVolumeReplicationGroupListSpec,
    ProtectedVolumeReplicationGroupListStatus,
};
pub use pvc::{Identifier, ProtectedPvc, PvcGroup};
pub use static_ip::{
    DiscoveredNetwork, NetworkTranslation, ResourceRef, ResourceStaticIps, ResourceTranslation,
    StaticIpDiscovery, StaticIpTranslation, TargetAddress,
};
pub use volsync::{
    MoverConfig, RsyncTls, VolSyncDestination, VolSyncDestinationInfo, VolSyncSource, VolSyncSpec,
};
pub use vrg::{
    AsyncMode, Blocker, CaptureToRecoverFrom, KubeObjectProtection, KubeObjectProtectionStatus, RecipeRef,
    ReplicationState, SyncMode, VolumeReplicationGroup, VolumeReplicationGroupSpec,
    VolumeReplicationGroupStatus, VrgState,
};

use crate::wire::wire_enum;

/// The API group of these kinds.
pub const GROUP: &str = "ramendr.openshift.io";

/// The `s3Profiles` and `s3ProfileName` entry that means: no object store at all.
pub const NO_S3: &str = "NoS3";

wire_enum! {
    /// What a user asks of a protected application; absent means: deploy on the preferred cluster.
    closed DRAction {
        /// Run on the failover cluster now; what was not yet replicated is lost.
        Failover = "Failover",
        /// Move back to the preferred cluster, losing nothing.
        Relocate = "Relocate",
    }
}
