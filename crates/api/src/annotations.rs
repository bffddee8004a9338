//! Every annotation key that Lifeboat reads or writes, and the values that have a meaning.
//!
//! Each line says on what the key stands, who sets it, and what it means. "Hub" is the controller of
//! DRPlacementControl, DRPolicy and DRCluster; "group" that of VolumeReplicationGroup.

// --- Back references of what the hub makes ---

/// On placements, works and views: set by the hub; name of the DRPlacementControl they belong to.
pub const DRPC_NAME: &str = "drplacementcontrol.ramendr.openshift.io/drpc-name";
/// On placements, works and views: set by the hub; namespace of that DRPlacementControl.
pub const DRPC_NAMESPACE: &str = "drplacementcontrol.ramendr.openshift.io/drpc-namespace";
/// On a group: set by the hub; UID of the DRPlacementControl, by which a new hub adopts the group.
pub const DRPC_UID: &str = "drplacementcontrol.ramendr.openshift.io/drpc-uid";
/// On works and views: set by the hub; name of the DRCluster they belong to.
pub const DRCLUSTER_NAME: &str = "drcluster.ramendr.openshift.io/drcluster-name";
/// On works that carry secrets: set by the hub; which versions of which secrets they carry, so that a change is noticed without reading them.
/// Ours, not known to peers.
pub const CARRIED_VERSIONS: &str = "ramendr.openshift.io/carried-versions";
/// On views of classes: set by the hub; name of the cluster whose policies a change concerns.
pub const DRPOLICY: &str = "drpolicy.ramendr.openshift.io";

// --- DRPlacementControl ---

/// On a DRPlacementControl: set by the user; namespace of the application on the managed clusters.
pub const APP_NAMESPACE: &str = "drplacementcontrol.ramendr.openshift.io/app-namespace";
/// On a DRPlacementControl: set by the hub; cluster that the application was last placed on.
pub const LAST_APP_DEPLOYMENT_CLUSTER: &str =
    "drplacementcontrol.ramendr.openshift.io/last-app-deployment-cluster";
/// On a DRPlacementControl: set by the hub; identity of that cluster then. One that was rebuilt under its name since has none of the application's volumes.
/// Ours, not known to peers.
pub const LAST_APP_DEPLOYMENT_CLUSTER_ID: &str =
    "drplacementcontrol.ramendr.openshift.io/last-app-deployment-cluster-id";
/// On a DRPlacementControl: set by the hub; action by which the application was last placed.
pub const LAST_ACTION: &str = "drplacementcontrol.ramendr.openshift.io/last-action";
/// On a DRPlacementControl: set by the hub; JSON with the number of failovers and relocations.
pub const DR_ACTION_COUNT: &str = "drplacementcontrol.ramendr.openshift.io/dr-action-count";
/// On a DRPlacementControl and its group: set by the hub; "true" while a failover is only tried.
pub const TEST_FAILOVER_DRY_RUN: &str = "drplacementcontrol.ramendr.openshift.io/test-failover-dryrun";
/// On a DRPlacementControl: reserved for the name of a network mapping; the policy's field is used.
pub const NETWORK_MAPPING: &str = "drplacementcontrol.ramendr.openshift.io/network-mapping";
/// On a group: set by the hub; cluster that the group was written for, needed when read from a store.
pub const DESTINATION_CLUSTER: &str = "drplacementcontrol.ramendr.openshift.io/destination-cluster";
/// On a DRPlacementControl: set by the user, copied to the group; "true" turns consistency groups on.
pub const IS_CG_ENABLED: &str = "drplacementcontrol.ramendr.openshift.io/is-cg-enabled";
/// On a DRPlacementControl: set by the user, copied to the group; "false" says that names of services
/// do not reach across clusters.
pub const IS_SUBMARINER_ENABLED: &str = "drplacementcontrol.ramendr.openshift.io/is-submariner-enabled";
/// On a DRPlacementControl: set by the user, copied to the group; "true" copies every claim by mover.
pub const USE_VOLSYNC: &str = "drplacementcontrol.ramendr.openshift.io/use-volsync-for-pvc-protection";
/// On a DRPlacementControl: set by the user, copied to the group; "true" copies only what differs
/// between two snapshots.
pub const ENABLE_DIFF: &str = "drplacementcontrol.ramendr.openshift.io/enable-diff";
/// On a DRPlacementControl and its group: set by older hubs; keeps claims when the group is deleted.
/// Read only: claims are kept anyway.
pub const DO_NOT_DELETE_PVC: &str = "drplacementcontrol.ramendr.openshift.io/do-not-delete-pvc";
/// On a DRPlacementControl and its groups: set by the hub; a whole number that grows with every change of role. A lower one than was
/// seen is refused. Ours, not known to peers.
pub const EPOCH: &str = "ramendr.openshift.io/epoch";
/// On a DRPlacementControl and its groups: set by the hub; the cluster that is primary at the epoch. Ours, not known to peers.
pub const EPOCH_HOLDER: &str = "ramendr.openshift.io/epoch-holder";
/// On a DRPlacementControl and its groups: set by the hub; Deploy, Failover or Relocate: what the epoch was given out for. Ours, not
/// known to peers.
pub const EPOCH_ACTION: &str = "ramendr.openshift.io/epoch-action";
/// On a group: set by the hub or the user, and on a DRPlacementControl by the user; "true" says that the application was never deployed before, so that
/// stores without a record, or out of reach, hide nothing. Ours, not known to peers.
pub const FIRST_DEPLOYMENT: &str = "ramendr.openshift.io/first-deployment";
/// On a group that is being deleted: set by the user; names of stores, with commas, whose records may be left behind. Ours, not
/// known to peers.
pub const ABANDON_STORES: &str = "ramendr.openshift.io/abandon-stores";

/// On a ManagedCluster: set by the user; identity of the cluster that was built in the place of the one that the hub knows by this name. Ours, not known
/// to peers.
pub const REBUILT_AS: &str = "ramendr.openshift.io/rebuilt-as";

/// On a group: set by the hub before it deletes the group's work, or by the user before they delete the group; "true" says that the deletion ends the
/// protection. A group that is deleted without it is orphaned: its volumes and records are kept. Ours, not known to peers.
pub const END_PROTECTION: &str = "ramendr.openshift.io/end-protection";
/// On a volume: set by the group; namespace and name of the group, with a slash, that was deleted without [`END_PROTECTION`] and left the volume
/// behind. Ours, not known to peers.
pub const ORPHANED_FROM: &str = "ramendr.openshift.io/orphaned-from";
/// On a DRPlacementControl: set by the user, copied to the group; the epoch at which volumes that an orphaned group left on the same cluster shall
/// be used again. At any other epoch it means nothing. The hub takes it back once they are. Ours, not known to peers.
pub const RESTORE_ORPHANS: &str = "ramendr.openshift.io/restore-orphans";
/// On a DRPlacementControl: set by the user, copied to the group; a time (RFC 3339): a failover restores each claim's newest image that was cut at or
/// before it. Ours, not known to peers.
pub const TO_POINT: &str = "ramendr.openshift.io/to-point";
/// On a group: set by the hub; fingerprint of the hub's key. Records of another fleet are refused. On a DRPlacementControl: set by the user, where the
/// hub lost its key; the fleet that the application's records are of. Ours, not known to peers.
pub const FLEET: &str = "ramendr.openshift.io/fleet";
/// On a DRPlacementControl: set by the hub; the generation whose relocation it called off before the point of no return, a colon, and why. It is not
/// tried again before the generation changes. Ours, not known to peers.
pub const CALLED_OFF: &str = "ramendr.openshift.io/called-off";
/// On a DRPlacementControl: set by the user; how long the final sync of a relocation may take, with the application stopped, before the relocation is
/// called off: a number and s, m, h or d. Ours, not known to peers.
pub const FINAL_SYNC_WITHIN: &str = "ramendr.openshift.io/final-sync-within";
/// On a DRPlacementControl: set by the user; "true" says that the application has no claims, so that there is nothing to copy. Ours, not known to
/// peers.
pub const WITHOUT_CLAIMS: &str = "ramendr.openshift.io/without-claims";

// --- DRCluster: input for a fence without a class ---

/// On a DRCluster: set by the user; name of the storage secret to fence with.
pub const STORAGE_SECRET_NAME: &str = "drcluster.ramendr.openshift.io/storage-secret-name";
/// On a DRCluster: set by the user; namespace of that secret.
pub const STORAGE_SECRET_NAMESPACE: &str = "drcluster.ramendr.openshift.io/storage-secret-namespace";
/// On a DRCluster: set by the user; the storage's cluster id to fence with.
pub const STORAGE_CLUSTER_ID: &str = "drcluster.ramendr.openshift.io/storage-clusterid";
/// On a DRCluster: set by the user; the CSI driver to fence with.
pub const STORAGE_DRIVER: &str = "drcluster.ramendr.openshift.io/storage-driver";
/// On a NetworkFenceClass: set by the administrator; storage identities it can fence, with commas.
pub const STORAGE_ID: &str = "ramendr.openshift.io/storageid";

// --- Claims and volumes of a group ---

/// On a claim: set by the group; [`VR_PROTECTED_VALUE`] once its volume's retention is in place.
pub const VR_PROTECTED: &str = "volumereplicationgroups.ramendr.openshift.io/vr-protected";
/// Value of [`VR_PROTECTED`].
pub const VR_PROTECTED_VALUE: &str = "protected";
/// On a claim and its volume: set by the group; which version of the object is in the store.
pub const VR_ARCHIVED: &str = "volumereplicationgroups.ramendr.openshift.io/vr-archived";
/// How a value of [`VR_ARCHIVED`] on a volume begins; a dash and the group's generation follow.
pub const VR_ARCHIVED_V1: &str = "archiveV1";
/// On a volume: set by the group; [`RETAINED_VALUE`] where the group changed its reclaim policy to
/// Retain, so that only what was done is undone.
pub const VR_RETAINED: &str = "volumereplicationgroups.ramendr.openshift.io/vr-retained";
/// On a volume: as [`VR_RETAINED`], for volumes that are copied by mover.
pub const VOLSYNC_RETAINED: &str = "volumereplicationgroups.ramendr.openshift.io/volsync-retained";
/// Value of [`VR_RETAINED`] and [`VOLSYNC_RETAINED`].
pub const RETAINED_VALUE: &str = "retained";
/// On a claim and its volume: set by the group; [`RESTORE_VALUE`] where it restored the object.
pub const RESTORE: &str = "volumereplicationgroups.ramendr.openshift.io/ramen-restore";
/// Value of [`RESTORE`].
pub const RESTORE_VALUE: &str = "True";
/// On a claim and its volume: set by the group before a relocation stops the application; what the claim is, so that it is made again with its volume where
/// the relocation does not happen. Ours, not known to peers.
pub const TAKEN_OFF: &str = "volumereplicationgroups.ramendr.openshift.io/taken-off";
/// On a claim that a mover copies: set by the group; the epoch at which the group was last primary with it here. Data of an older epoch than the
/// newest primary's is not the newest. Ours, not known to peers.
pub const HELD_AT_EPOCH: &str = "volumereplicationgroups.ramendr.openshift.io/held-at-epoch";
/// On a claim: set by the group; keys of the annotations that it manages on the claim.
pub const MANAGED_ANNOTATION_KEYS: &str = "ramendr.openshift.io/managed-annotation-keys";
/// On a volume: set by the group; the volume's handle at the peer.
pub const DESTINATION_VOLUME_HANDLE: &str = "ramendr.openshift.io/destination-volume-handle";
/// On a group content: set by the group; the volume group's handle at the peer.
pub const DESTINATION_VOLUME_GROUP_HANDLE: &str = "ramendr.openshift.io/destination-volume-group-handle";
/// On a claim: set by the group; the consistency group label it had, kept for a restore.
pub const CONSISTENCY_GROUP: &str = "ramendr.openshift.io/consistency-group";
/// On an application's resource: set by older groups; keeps the fleet agent from deleting it.
/// Read only.
pub const OCM_DO_NOT_DELETE: &str = "apps.open-cluster-management.io/do-not-delete";

/// Prefixes of annotations that are not carried over when a claim is restored elsewhere.
pub const NOT_CARRIED_OVER: &[&str] = &[
    "pv.kubernetes.io",
    "volume.kubernetes.io",
    "replication.storage.openshift.io",
    "volumereplicationgroups.ramendr.openshift.io",
    "volsync.backube",
];

// --- Senders, receivers and their images ---

/// On senders, receivers and group snapshots: set by the group; its own name.
pub const OWNER_NAME: &str = "ramendr.openshift.io/owner-name";
/// On senders, receivers and group snapshots: set by the group; its own namespace.
pub const OWNER_NAMESPACE: &str = "ramendr.openshift.io/owner-namespace";
/// On a ReplicationGroupSource: set by the group; it is about to be deleted.
pub const MARKED_FOR_DELETION: &str = "ramendr.io/marked-for-deletion";
/// On a snapshot: set by the receiver of a consistency group; keep this image.
pub const RGD_DO_NOT_DELETE: &str = "rgd.ramendr.openshift.io/do-not-delete";
/// On a Velero backup: set by the group; the group's generation at the time of the capture.
pub const VRG_GENERATION: &str = "ramendr.openshift.io/vrg-generation";
/// On a receiver: set by the group; the image that its claim shall be brought back to before it is used. Ours, not known to peers.
pub const ROLL_BACK_TO: &str = "ramendr.openshift.io/roll-back-to";
/// On a receiver: set by the mover; the image that its claim was brought back to. Ours, not known to peers.
pub const ROLLED_BACK_TO: &str = "ramendr.openshift.io/rolled-back-to";
/// On images of our own mover: set by it; the name of the receiver that they were made for. Ours, not known to peers.
pub const RECEIVER: &str = "volsync.backube/receiver";
/// On a sender: set by the user; "true" says that its volume may have been emptied on purpose. Ours, not known to peers.
pub const MAY_BE_EMPTY: &str = "ramendr.openshift.io/may-be-empty";
/// On an image: set by the group; the claim that it is an image of. Ours, not known to peers.
pub const IMAGE_OF: &str = "ramendr.openshift.io/image-of";
/// On an image of our own mover: set by it; when its content was cut, by the sender's clock. On a claim that was restored from an image: set by the
/// group, from the image. Ours, not known to peers.
pub const IMAGE_CUT: &str = "ramendr.openshift.io/image-cut";
/// On an image of our own mover: set by it; the copy it is an image of, by a name that no other has. Ours, not known to peers.
pub const IMAGE_GENERATION: &str = "ramendr.openshift.io/image-generation";
/// On an image of our own mover: set by it; the epoch of that copy. Ours, not known to peers.
pub const IMAGE_EPOCH: &str = "ramendr.openshift.io/image-epoch";
/// On a claim: set by the group where it restores one, and on images by our own mover; which volume the data descends from. A claim without it is
/// the beginning of a lineage, named by its own UID. Ours, not known to peers.
pub const LINEAGE: &str = "ramendr.openshift.io/lineage";
/// On a receiver: set by the user; the lineage that may take the place of what was received so far. Ours, not known to peers.
pub const ACCEPT_LINEAGE: &str = "ramendr.openshift.io/accept-lineage";
/// On a workload: set by a scale hook; how many replicas it had before.
pub const SCALE_HOOK_REPLICAS: &str = "ramendr.io/scale-hook-replicas-count";
/// On a virtual machine: set by its owner; its static addresses.
pub const VM_STATIC_IP: &str = "network.kubevirt.io/addresses";

/// On a claim: set by the user; copies wait for a new value of [`COPY_TRIGGER`].
pub const USE_COPY_TRIGGER: &str = "volsync.backube/use-copy-trigger";
/// Value of [`USE_COPY_TRIGGER`] by which a group stops new snapshots.
pub const STOPPED_BY_RAMEN: &str = "stopped-by-ramen";
/// On a claim: set by the user; a new value asks for the next copy.
pub const COPY_TRIGGER: &str = "volsync.backube/copy-trigger";
/// On a claim: set by the sender; the last value that was served.
pub const LATEST_COPY_TRIGGER: &str = "volsync.backube/latest-copy-trigger";
/// On a claim: set by the sender; how far the copy for the trigger is.
pub const LATEST_COPY_STATUS: &str = "volsync.backube/latest-copy-status";
/// On a claim: set by the sender; since when it waits for a trigger.
pub const LATEST_COPY_TRIGGER_WAITING_SINCE: &str = "volsync.backube/latest-copy-trigger-waiting-since";
/// On a namespace: set by the administrator; "true" lets movers run privileged in it.
pub const PRIVILEGED_MOVERS: &str = "volsync.backube/privileged-movers";
/// On a receiver's temporary claim: set by the receiver; name of the image being made of it.
pub const SNAPSHOT_NAME: &str = "volsync.backube/snapname";

// --- Replication by the storage ---

/// On a claim: set by csi-addons; name of the one VolumeReplication that may own it.
pub const VOLUME_REPLICATION_NAME: &str = "replication.storage.openshift.io/volume-replication-name";
/// On a claim: set by csi-addons; name of the one VolumeGroupReplication that may own it.
pub const VOLUME_GROUP_REPLICATION_NAME: &str =
    "replication.storage.openshift.io/volume-group-replication-name";
/// On a VolumeGroupReplication: set by csi-addons; name of its content.
pub const VOLUME_GROUP_REPLICATION_CONTENT_NAME: &str =
    "replication.storage.openshift.io/volume-group-replication-content-name";
/// On a replication class: set by the administrator; "true" breaks a tie between classes.
pub const IS_DEFAULT_REPLICATION_CLASS: &str = "replication.storage.openshift.io/is-default-class";

// --- Open Cluster Management ---

/// On a Placement: set by the user; "true" leaves the decision to the hub.
pub const SCHEDULING_DISABLE: &str = "cluster.open-cluster-management.io/experimental-scheduling-disable";
/// On a policy that carries a secret: set by the hub; the secret's resource version.
pub const POLICY_TRIGGER_UPDATE: &str = "policy.open-cluster-management.io/trigger-update";
/// On a ManifestWork: set by clients of the work API; hash of its configuration.
pub const CONFIG_SPEC_HASH: &str = "open-cluster-management.io/config-spec-hash";
/// On an applied object: set by the agent; hash of the manifest it came from.
pub const OBJECT_HASH: &str = "open-cluster-management.io/object-hash";
/// On an object that the agent made: set by it with the object; uid of the record it is kept in. Ours, not known to peers.
pub const MADE_BY_RECORD: &str = "open-cluster-management.io/made-by-record";

/// On a view: set by a hub that wants to know when the agent saw what the view shows, as the condition `Observed`. Without it a view has one condition
/// only, because Ramen's hub takes a second one for a fault. Ours, not known to peers.
pub const TELL_OBSERVED: &str = "view.open-cluster-management.io/tell-observed";

/// On what was deployed from a ConfigMap of the hub: set by the subscription; uid of the deployment's own record on the cluster. Ours, not
/// known to peers.
pub const DEPLOYED_BY: &str = "apps.open-cluster-management.io/deployed-by";
/// On what was deployed from a ConfigMap of the hub: set by the subscription; hash of the manifest. Ours, not known to peers.
pub const MANIFEST_HASH: &str = "apps.open-cluster-management.io/manifest-hash";
/// On the record of a deployment: set by the subscription; namespace and name of the ConfigMap on the hub. Ours, not known to peers.
pub const DEPLOYED_FROM: &str = "apps.open-cluster-management.io/deployed-from";

// --- LogicalVolume ---

/// On a LogicalVolume: set by the CSI controller; a new value asks for another try to grow it.
pub const RESIZE_REQUESTED_AT: &str = "topolvm.io/resize-requested-at";
/// On a LogicalVolume: set when its node is gone; nobody must add the finalizer again.
pub const PENDING_DELETION: &str = "topolvm.io/pendingdeletion";
/// On a pod: set by the CSI controller; wakes the kubelet to grow the file system.
pub const LAST_RESIZEFS_REQUESTED_AT: &str = "topolvm.io/last-resizefs-requested-at";
/// On a LogicalVolume: its data must be restored from a backup before use.
pub const SNAPSHOT_RESTORE_REQUIRED: &str = "topolvm.io/snapshot-restore-required";
/// On a LogicalVolume whose backup or restore failed: a time after its end asks for another try. Ours, not known to peers.
pub const SNAPSHOT_RETRY_REQUESTED_AT: &str = "topolvm.io/snapshot-retry-requested-at";
/// On a LogicalVolume: Block or Filesystem, as its claim says. Ours, not known to peers.
pub const VOLUME_MODE: &str = "topolvm.io/volume-mode";
/// On a LogicalVolume: namespace and name of the claim whose bytes it holds. Ours, not known to peers.
pub const CLAIM: &str = "topolvm.io/claim";
/// On a LogicalVolume made for a claim, until its PersistentVolume exists: only while it is there may the volume be removed as a leftover.
/// Ours, not known to peers.
pub const UNPUBLISHED_FOR_CLAIM: &str = "topolvm.io/unpublished-for-claim";
/// On a Node: the LogicalVolumes that its report of free room already counts. Ours, not known to peers.
pub const CAPACITY_COUNTED: &str = "topolvm.io/capacity-counted";
/// On a Node: its device classes that are directories, whose volumes need no filesystem to be grown. Ours, not known to peers.
pub const DIRECTORY_CLASSES: &str = "topolvm.io/directory-classes";
/// On a Node: the name of its default device class. Ours, not known to peers.
pub const DEFAULT_DEVICE_CLASS_NAME: &str = "topolvm.io/default-device-class";
/// On a LogicalVolume being deleted, `true`: its backup is given up where it is, because its store cannot be reached any more. Ours, not
/// known to peers.
pub const ABANDON_BACKUP: &str = "topolvm.io/abandon-backup";
/// On a LogicalVolume: set by its node before the volume is made; the volume group, `GROUP/POOL` or folder that has the volume, whatever its device
/// class names since. Ours, not known to peers.
pub const STORED_IN: &str = "topolvm.io/stored-in";
/// On a LogicalVolume being deleted, `true`: its volume is given up where it is, because no device class of its node names what has it any
/// more. Ours, not known to peers.
pub const ABANDON_VOLUME: &str = "topolvm.io/abandon-volume";
/// On a LogicalVolume: set by the mirror; [`MIRROR_SECONDARY`] while its bytes come from a peer and nobody may use it. Ours, not known to
/// peers.
pub const MIRROR_ROLE: &str = "topolvm.io/mirror-role";
/// Value of [`MIRROR_ROLE`].
pub const MIRROR_SECONDARY: &str = "secondary";
/// On a LogicalVolume: set by the mirror; the id of the volume at the peer cluster that it is mirrored with. Ours, not known to peers.
pub const MIRROR_PEER: &str = "topolvm.io/mirror-peer";
/// On a VolumeReplication: set by the user; "true" makes the volume primary though the peer says that it must not be. Ours, not known to
/// peers.
pub const FORCE_PROMOTE: &str = "topolvm.io/force-promote";
/// On nodes and pods: prefix of free or requested bytes by device class.
pub const CAPACITY_PREFIX: &str = "capacity.topolvm.io/";
/// After [`CAPACITY_PREFIX`]: stands for the default device class.
pub const DEFAULT_DEVICE_CLASS: &str = "00default";
/// On an executor pod: the LogicalVolume that the snapshot was taken of.
pub const SNAPSHOT_SOURCE: &str = "topolvm.io/snapshot-source";
/// On an executor pod and in storage class parameters: the device class.
pub const DEVICE_CLASS: &str = "topolvm.io/device-class";
/// On an executor pod: version of the pod's layout.
pub const SNAPSHOT_VERSION: &str = "topolvm.io/snapshot-version";

/// Keys of StorageClass and VolumeSnapshotClass parameters, which live beside the annotations.
pub mod parameters {
    /// In a storage class: named set of lvcreate options.
    pub const LVCREATE_OPTION_CLASS: &str = "topolvm.io/lvcreate-option-class";
    /// In a snapshot class: [`SNAPSHOT_MODE_ONLINE`] backs each snapshot up; else it stays local.
    pub const SNAPSHOT_MODE: &str = "topolvm.io/snapshot-mode";
    /// Value of [`SNAPSHOT_MODE`].
    pub const SNAPSHOT_MODE_ONLINE: &str = "online";
    /// In a snapshot class: name of the SnapshotBackupStorage.
    pub const SNAPSHOT_STORAGE_NAME: &str = "topolvm.io/snapshot-storage-name";
    /// In a snapshot class: namespace of the SnapshotBackupStorage.
    pub const SNAPSHOT_STORAGE_NAMESPACE: &str = "topolvm.io/snapshot-storage-namespace";
    /// In a replication class: how often the storage replicates; matched with the policy's interval.
    pub const SCHEDULING_INTERVAL: &str = "schedulingInterval";
    /// In a replication class: name of the secret with the key that both clusters share.
    pub const REPLICATION_SECRET_NAME: &str = "replication.storage.openshift.io/replication-secret-name";
    /// In a replication class: namespace of that secret.
    pub const REPLICATION_SECRET_NAMESPACE: &str =
        "replication.storage.openshift.io/replication-secret-namespace";
    /// In a replication class of node storage: addresses of the mirrors of the peer cluster, with commas. Ours, not known to peers.
    pub const MIRROR_PEERS: &str = "topolvm.io/mirror-peers";
    /// In a replication class of node storage: how often changes are really sent, where that is more often than the policy's interval asks
    /// for. Ours, not known to peers.
    pub const MIRROR_EVERY: &str = "topolvm.io/mirror-every";
    /// In a storage class: file system to make.
    pub const FS_TYPE: &str = "csi.storage.k8s.io/fstype";
}

// --- CSI snapshots ---

/// On a snapshot class: set by the administrator; "true" makes it the default of its driver.
pub const IS_DEFAULT_SNAPSHOT_CLASS: &str = "snapshot.storage.kubernetes.io/is-default-class";
/// On a snapshot content: set when its VolumeSnapshot is being deleted.
pub const SNAPSHOT_BEING_DELETED: &str = "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted";
/// On a snapshot content: set while the storage may be taking the snapshot.
pub const SNAPSHOT_BEING_CREATED: &str = "snapshot.storage.kubernetes.io/volumesnapshot-being-created";
/// On a snapshot content: name of the secret to delete the snapshot with.
pub const SNAPSHOT_DELETION_SECRET_NAME: &str = "snapshot.storage.kubernetes.io/deletion-secret-name";
/// On a snapshot content: namespace of that secret.
pub const SNAPSHOT_DELETION_SECRET_NAMESPACE: &str =
    "snapshot.storage.kubernetes.io/deletion-secret-namespace";

// --- Claims and volumes, as Kubernetes marks them ---

/// On a claim: set by the binder; the binding is complete.
pub const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// On claims and volumes: set by the binder where it, not the user, made the binding.
pub const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// On a volume: set by the provisioner; its name.
pub const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// On claims and volumes: set by the binder; the CSI driver that took over from an in-tree plugin.
pub const MIGRATED_TO: &str = "pv.kubernetes.io/migrated-to";
/// On a claim: set by the binder; who should provision a volume for it.
pub const STORAGE_PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
/// On a claim: the former name of [`STORAGE_PROVISIONER`], set along with it.
pub const BETA_STORAGE_PROVISIONER: &str = "volume.beta.kubernetes.io/storage-provisioner";
/// On a claim: set by the scheduler; the node that its first pod will run on.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// On a claim: set by the binder; who should grow its volume.
pub const STORAGE_RESIZER: &str = "volume.kubernetes.io/storage-resizer";
/// On claims and volumes: the storage class, as old objects name it.
pub const BETA_STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// On a storage class: set by the administrator; "true" makes it the default.
pub const IS_DEFAULT_STORAGE_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
