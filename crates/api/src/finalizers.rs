//! Every finalizer that Lifeboat puts on, takes off or must not disturb.
//!
//! Each line says on what it stands, who puts it on, and what must happen before it comes off.

/// On a DRPlacementControl and its placement: by the hub; until the application is unprotected.
pub const DRPC: &str = "drpc.ramendr.openshift.io/finalizer";
/// On a DRPolicy: by the hub; until no DRPlacementControl refers to it.
pub const DRPOLICY: &str = "drpolicies.ramendr.openshift.io/ramen";
/// On a DRCluster: by the hub; until no DRPolicy names it and what it put on the cluster is gone.
pub const DRCLUSTER: &str = "drclusters.ramendr.openshift.io/ramen";
/// On a DRClusterConfig: by the managed cluster; until its survey is withdrawn.
pub const DRCLUSTERCONFIG: &str = "drclusterconfigs.ramendr.openshift.io/finalizer";
/// On an object store's secret: by the hub; until no policy carries it to a cluster.
pub const SECRET_POLICY: &str = "drpolicies.ramendr.openshift.io/policy-protection";
/// On an object store's secret: as [`SECRET_POLICY`], for the copy in Velero's format.
pub const SECRET_POLICY_VELERO: &str = "drpolicies.ramendr.openshift.io/policy-protection-velero";

/// On a VolumeReplicationGroup: by its controller; until all of its claims are unprotected.
pub const VRG: &str = "volumereplicationgroups.ramendr.openshift.io/vrg-protection";
/// On a claim: by the group; until its volume's replication by the storage is ended.
pub const PVC_VR: &str = "volumereplicationgroups.ramendr.openshift.io/pvc-vr-protection";
/// On a claim: by the group; until copying it by mover is ended.
pub const PVC_VOLSYNC: &str = "volumereplicationgroups.ramendr.openshift.io/pvc-volsync-protection";

/// On a receiver that writes into an application's claim: by our mover; until nothing writes there any more. Ours, not known to peers.
pub const RECEIVER: &str = "volsync.backube/lifeboat-receiver";
/// On a VolumeReplication: by csi-addons; until replication is disabled at the storage.
pub const VOLUME_REPLICATION: &str = "replication.storage.openshift.io";
/// On a claim: by csi-addons; while a VolumeReplication owns it.
pub const PVC_REPLICATION: &str = "replication.storage.openshift.io/pvc-protection";
/// On a group's claims and content: by csi-addons; while a VolumeGroupReplication owns them.
pub const VGR: &str = "replication.storage.openshift.io/vgr-protection";
/// On a NetworkFence: by csi-addons; until the addresses are let back in.
pub const NETWORK_FENCE: &str = "csiaddons.openshift.io/network-fence";

/// On a ManifestWork: by the fleet agent; until its objects are gone from the managed cluster.
pub const MANIFEST_WORK: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";
/// On a ManagedCluster: by the fleet's hub; until its namespace is cleaned up.
pub const MANAGED_CLUSTER: &str = "cluster.open-cluster-management.io/api-resource-cleanup";

/// On a LogicalVolume: by the node agent; until the LVM volume is gone.
pub const LOGICAL_VOLUME: &str = "topolvm.io/logicalvolume";
/// On a LogicalVolume: by the mirror; until its copies of the peer's data are gone. Ours, not known to peers.
pub const MIRROR: &str = "topolvm.io/mirror";
/// On a node: by the node agent; until its LogicalVolumes are cleaned up.
pub const NODE: &str = "topolvm.io/node";
/// On a claim: by former TopoLVM versions; only ever taken off.
pub const PVC_TOPOLVM: &str = "topolvm.io/pvc";
/// On a claim: as [`PVC_TOPOLVM`], under the group's former name.
pub const PVC_TOPOLVM_LEGACY: &str = "topolvm.cybozu.com/pvc";
/// On a LogicalVolume of the former group: as [`LOGICAL_VOLUME`].
pub const LOGICAL_VOLUME_LEGACY: &str = "topolvm.cybozu.com/logicalvolume";
/// On a LogicalVolume whose data is also in a backup store: that copy is removed first. Ours, not known to peers.
pub const REMOTE_SNAPSHOT: &str = "topolvm.io/snapshot-backup";

/// On a snapshot content: by the snapshot controller; while it is bound.
pub const SNAPSHOT_CONTENT_BOUND: &str =
    "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection";
/// On a VolumeSnapshot: by the snapshot controller; while it is bound.
pub const SNAPSHOT_BOUND: &str = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection";
/// On a VolumeSnapshot: by the snapshot controller; while a volume is being made from it.
pub const SNAPSHOT_AS_SOURCE: &str = "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection";
/// On a claim: by the snapshot controller; while a snapshot of it is being taken.
pub const PVC_AS_SOURCE: &str = "snapshot.storage.kubernetes.io/pvc-as-source-protection";

/// On a claim: by the API server; while a pod uses it.
pub const PVC_PROTECTION: &str = "kubernetes.io/pvc-protection";
/// On a volume: by the API server; while a claim is bound to it.
pub const PV_PROTECTION: &str = "kubernetes.io/pv-protection";
/// On a volume: by the provisioner; until the storage has deleted what is behind it.
pub const EXTERNAL_PROVISIONER: &str = "external-provisioner.volume.kubernetes.io/finalizer";
