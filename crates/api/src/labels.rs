//! Every label key that Lifeboat reads or writes, and the values that have a meaning.
//!
//! Each line says on what the key stands, who sets it, and what it means.

use std::collections::BTreeMap;

// --- What the hub makes ---

/// On everything that DR controllers make: set by them; [`CREATED_BY_RAMEN_VALUE`], or
/// [`CREATED_BY_RAMEN_TRANSITIVE`] on what others make on their behalf.
pub const CREATED_BY_RAMEN: &str = "ramendr.openshift.io/created-by-ramen";
/// Value of [`CREATED_BY_RAMEN`].
pub const CREATED_BY_RAMEN_VALUE: &str = "true";
/// Value of [`CREATED_BY_RAMEN`] on what a mover makes.
pub const CREATED_BY_RAMEN_TRANSITIVE: &str = "transitive";
/// On hub objects: set by the hub; [`OCM_BACKUP_VALUE`] puts them into the hub's own backup.
pub const OCM_BACKUP: &str = "cluster.open-cluster-management.io/backup";
/// Value of [`OCM_BACKUP`].
pub const OCM_BACKUP_VALUE: &str = "ramen";
/// On decisions and key policies: set by the hub; "true" keeps them out of Velero's backups.
pub const EXCLUDE_FROM_BACKUP: &str = "velero.io/exclude-from-backup";
/// On a virtual machine's objects: set by the group; "true" backs up the description, not the disks.
pub const METADATA_BACKUP: &str = "velero.kubevirt.io/metadataBackup";
/// On a PlacementDecision: set by who decides; name of the Placement.
pub const PLACEMENT: &str = "cluster.open-cluster-management.io/placement";
/// On a PlacementDecision: set by who decides; place of its group.
pub const DECISION_GROUP_INDEX: &str = "cluster.open-cluster-management.io/decision-group-index";
/// On a PlacementDecision: set by who decides; name of its group.
pub const DECISION_GROUP_NAME: &str = "cluster.open-cluster-management.io/decision-group-name";
/// On a ConfigMap of the hub: set by the user; name of the Placement whose clusters get the manifests in it. Ours, not known to peers.
pub const MANIFESTS_OF: &str = "apps.open-cluster-management.io/manifests-of";
/// On objects of a fleet: set by the agent; the managed cluster they belong to.
pub const CLUSTER_NAME: &str = "open-cluster-management.io/cluster-name";
/// On cluster roles: set by the hub; "true" adds their rules to what the fleet agent may do.
pub const AGGREGATE_TO_WORK: &str = "open-cluster-management.io/aggregate-to-work";
/// On a ManifestWork: set by the hub; [`APP_NETWORK_FENCE`] on works that carry a fence.
pub const APP: &str = "app";
/// Value of [`APP`] on works that carry a fence.
pub const APP_NETWORK_FENCE: &str = "NF";
/// On a ManifestWork: set by the hub; the recipe that it carries.
pub const RECIPE: &str = "recipe";
/// On groups and DRPlacementControls: set by the hub; those of one value act together.
pub const GLOBAL_VGR: &str = "ramendr.openshift.io/global-vgr";

// --- Classes of storage, labelled by the administrator or the storage's operator ---

/// On storage, snapshot and replication classes: identity of the storage instance.
pub const STORAGE_ID: &str = "ramendr.openshift.io/storageid";
/// On a replication class: identity of the relation; equal on both clusters.
pub const REPLICATION_ID: &str = "ramendr.openshift.io/replicationid";
/// On a group replication class, and on storage classes: identity of the relation for groups.
pub const GROUP_REPLICATION_ID: &str = "ramendr.openshift.io/groupreplicationid";
/// On a group replication class: "true" fails over all volumes of the relation together.
pub const GLOBAL: &str = "ramendr.openshift.io/global";
/// On a storage class: the storage runs replication by itself.
pub const OFFLOADED: &str = "ramendr.openshift.io/offloaded";
/// On storage and replication classes: maintenance modes needed, with commas. On views and works: they
/// carry a MaintenanceMode.
pub const MAINTENANCE_MODES: &str = "ramendr.openshift.io/maintenancemodes";
/// On a network attachment definition: "true" offers the network for disaster recovery.
pub const DR_NETWORK: &str = "ramendr.openshift.io/dr-network";

// --- What a view shows; set by the hub, with an empty value ---

/// On a view: it shows a storage class.
pub const VIEW_STORAGE_CLASS: &str = "ramendr.openshift.io/storageclass";
/// On a view: it shows a network fence class.
pub const VIEW_NETWORK_FENCE_CLASS: &str = "ramendr.openshift.io/networkfenceclass";
/// On a view: it shows a snapshot class.
pub const VIEW_VOLUME_SNAPSHOT_CLASS: &str = "ramendr.openshift.io/volumesnapshotclass";
/// On a view: it shows a group snapshot class.
pub const VIEW_VOLUME_GROUP_SNAPSHOT_CLASS: &str = "ramendr.openshift.io/volumegroupsnapshotclass";
/// On a view: it shows a replication class.
pub const VIEW_VOLUME_REPLICATION_CLASS: &str = "ramendr.openshift.io/volumereplicationclass";
/// On a view: it shows a group replication class.
pub const VIEW_VOLUME_GROUP_REPLICATION_CLASS: &str = "ramendr.openshift.io/volumegroupreplicationclass";

// --- Ownership across namespaces, where owner references cannot reach ---

/// On what belongs to a group: set by the group; its namespace.
pub const OWNER_NAMESPACE_NAME: &str = "ramendr.openshift.io/owner-namespace-name";
/// On what belongs to a group: set by the group; its name.
pub const OWNER_NAME: &str = "ramendr.openshift.io/owner-name";
/// On senders, receivers and images: set by the group; its name.
pub const VRG_OWNER: &str = "volumereplicationgroups-owner";
/// On senders, receivers and images: set by the group; its namespace.
pub const VRG_OWNER_NAMESPACE: &str = "volumereplicationgroups-owner-namespace";

/// Namespace and name of the group that an object's labels name. Whoever writes both pairs writes the same into both; where they differ, the
/// pair that stands on claims too is the one that everybody goes by.
#[must_use]
pub fn group(labels: &BTreeMap<String, String>) -> Option<(&str, &str)> {
    let pair =
        |namespace: &str, name: &str| Some((labels.get(namespace)?.as_str(), labels.get(name)?.as_str()));
    pair(OWNER_NAMESPACE_NAME, OWNER_NAME).or_else(|| pair(VRG_OWNER_NAMESPACE, VRG_OWNER))
}

/// On a VolumeReplication: set by the group; the VolumeGroupReplication it belongs to.
pub const VGR_OWNER: &str = "volumegroupreplication-owner";
/// On a group snapshot: set by the sender of a consistency group; its name.
pub const RGS: &str = "ramendr.openshift.io/rgs";
/// On images: set by the receiver of a consistency group; its name.
pub const RGD: &str = "ramendr.openshift.io/rgd";
/// On claims: set by the group or the user; claims of one value are captured together.
pub const CONSISTENCY_GROUP: &str = "ramendr.openshift.io/consistency-group";
/// On a group snapshot: set by the sender; [`VGS_CURRENT`] or [`VGS_PREVIOUS`].
pub const VGS_STATUS: &str = "ramen.openshift.io/vgs-status";
/// Value of [`VGS_STATUS`]: being sent.
pub const VGS_CURRENT: &str = "current";
/// Value of [`VGS_STATUS`]: sent, and the base of the next difference.
pub const VGS_PREVIOUS: &str = "previous";
/// On snapshots: set by the group; taken to undo a tried failover.
pub const DRY_RUN_SNAPSHOT: &str = "ramendr.openshift.io/dry-run-snapshot";
/// On snapshots: set by the group; name of the group that tries a failover.
pub const DRY_RUN_VRG: &str = "ramendr.openshift.io/dry-run-vrg";
/// On a ConfigMap: set by the group; it rewrites resources while they are restored.
pub const RESOURCE_MODIFIER: &str = "ramendr.openshift.io/resource-modifier";
/// On a virtual machine and what belongs to it: set by the user; what to protect together.
pub const K8S_RESOURCE_SELECTOR: &str = "ramendr.openshift.io/k8s-resource-selector";
/// On a hook's job: set by the group; the hook.
pub const HOOK_NAME: &str = "ramendr.openshift.io/hook-name";
/// On a hook's job: set by the group; the job in the hook.
pub const JOB_NAME: &str = "ramendr.openshift.io/job-name";
/// On ClusterClaims: set by older managed clusters; those with value "ramen" are pruned.
pub const DRCLUSTERCONFIG_OWNER: &str = "drclusterconfigs.ramendr.openshift.io/owner";

// --- Movers ---

/// On images and claims: set by the group or the user; "true" keeps the mover from deleting them.
pub const VOLSYNC_DO_NOT_DELETE: &str = "volsync.backube/do-not-delete";
/// On many objects: set by whoever made them; [`CREATED_BY_VOLSYNC`] on a mover's temporary objects.
pub const CREATED_BY: &str = "app.kubernetes.io/created-by";
/// Value of [`CREATED_BY`] on a mover's temporary objects.
pub const CREATED_BY_VOLSYNC: &str = "volsync";
/// Value of [`CREATED_BY`] on services and images of our own mover.
pub const CREATED_BY_MOVER: &str = "lifeboat-replicate";
/// On images of our own mover: the UID of the receiver that they were made for. Ours, not known to peers.
pub const RECEIVER_UID: &str = "volsync.backube/receiver-uid";
/// Value of [`CREATED_BY`] on LogicalVolumes.
pub const CREATED_BY_TOPOLVM: &str = "topolvm-controller";

// --- LogicalVolume ---

/// On a node, and in CSI topology: set by the node agent; the node's name.
pub const TOPOLOGY_NODE: &str = "topology.topolvm.io/node";
/// On an executor pod: it backs up, restores or deletes a snapshot.
pub const SNAPSHOT_POD: &str = "topolvm.io/snapshot-pod";
/// On an executor pod: the LogicalVolume it works for.
pub const LOGICAL_VOLUME: &str = "topolvm.io/logical-volume";
/// On an executor pod: the operation.
pub const SNAPSHOT_OPERATION: &str = "topolvm.io/snapshot-operation";
/// Value of [`APP`] on executor pods.
pub const APP_SNAPSHOT: &str = "topolvm-snapshot";

// --- CSI snapshots ---

/// On a snapshot content: set by the snapshot controller; the node whose driver serves it.
pub const SNAPSHOT_MANAGED_BY: &str = "snapshot.storage.kubernetes.io/managed-by";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_group_is_named_whichever_pair_stands_there() {
        let check = |pairs: &[(&str, &str)], named: Option<(&str, &str)>| {
            let labels = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            assert_eq!(group(&labels), named, "{pairs:?}");
        };
        let owner = [(OWNER_NAMESPACE_NAME, "shop"), (OWNER_NAME, "db")];
        let mover = [(VRG_OWNER_NAMESPACE, "old"), (VRG_OWNER, "group")];
        check(&owner, Some(("shop", "db")));
        check(&mover, Some(("old", "group")));
        check(&[mover[0], mover[1], owner[0], owner[1]], Some(("shop", "db")));
        check(&[owner[0], mover[1]], None);
        check(&[], None);
    }
}
