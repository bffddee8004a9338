//! An object of each kind survives decoding and encoding unchanged.
//!
//! The samples are whole objects with nearly every field set; all are accepted by an API server that has
//! our CRDs, under strict field validation.

use crate::yaml;
use lifeboat_api::{
    apps, cluster, csiaddons, multicluster, ramen, replication, snapshot, topolvm, view, volsync, work,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

fn check<K: DeserializeOwned + Serialize>(sample: &str) {
    let sent = yaml(sample);
    let object: K = serde_json::from_value(sent.clone()).unwrap();
    let returned = serde_json::to_value(&object).unwrap();
    assert_eq!(returned, sent);
}

macro_rules! kinds {
    ($($test:ident: $kind:ty = $file:literal,)+) => {
        $(
            #[test]
            fn $test() {
                check::<$kind>(include_str!(concat!("samples/", $file, ".yaml")));
            }
        )+

        #[test]
        fn every_kind_has_a_sample() {
            let samples = [$($file),+];
            assert_eq!(samples.len(), lifeboat_api::crds().len());
        }
    };
}

kinds! {
    placement_rule: apps::PlacementRule = "placementrule",
    managed_cluster: cluster::ManagedCluster = "managedcluster",
    placement: cluster::Placement = "placement",
    placement_decision: cluster::PlacementDecision = "placementdecision",
    network_fence: csiaddons::NetworkFence = "networkfence",
    network_fence_class: csiaddons::NetworkFenceClass = "networkfenceclass",
    service_export: multicluster::ServiceExport = "serviceexport",
    drcluster: ramen::DRCluster = "drcluster",
    drclusterconfig: ramen::DRClusterConfig = "drclusterconfig",
    drpc: ramen::DRPlacementControl = "drplacementcontrol",
    drpolicy: ramen::DRPolicy = "drpolicy",
    maintenance_mode: ramen::MaintenanceMode = "maintenancemode",
    protected_list: ramen::ProtectedVolumeReplicationGroupList = "protectedvolumereplicationgrouplist",
    replication_group_destination: ramen::ReplicationGroupDestination = "replicationgroupdestination",
    replication_group_source: ramen::ReplicationGroupSource = "replicationgroupsource",
    vrg: ramen::VolumeReplicationGroup = "volumereplicationgroup",
    vgr: replication::VolumeGroupReplication = "volumegroupreplication",
    vgr_class: replication::VolumeGroupReplicationClass = "volumegroupreplicationclass",
    vgr_content: replication::VolumeGroupReplicationContent = "volumegroupreplicationcontent",
    vr: replication::VolumeReplication = "volumereplication",
    vr_class: replication::VolumeReplicationClass = "volumereplicationclass",
    volume_snapshot: snapshot::VolumeSnapshot = "volumesnapshot",
    volume_snapshot_class: snapshot::VolumeSnapshotClass = "volumesnapshotclass",
    volume_snapshot_content: snapshot::VolumeSnapshotContent = "volumesnapshotcontent",
    logical_volume: topolvm::LogicalVolume = "logicalvolume",
    logical_volume_legacy: topolvm::legacy::LogicalVolume = "logicalvolume-legacy",
    backup_storage: topolvm::SnapshotBackupStorage = "snapshotbackupstorage",
    managed_cluster_view: view::ManagedClusterView = "managedclusterview",
    replication_destination: volsync::ReplicationDestination = "replicationdestination",
    replication_source: volsync::ReplicationSource = "replicationsource",
    applied_manifest_work: work::AppliedManifestWork = "appliedmanifestwork",
    manifest_work: work::ManifestWork = "manifestwork",
}

#[test]
fn a_legacy_volume_becomes_one_of_today() {
    let old: topolvm::legacy::LogicalVolume =
        serde_json::from_value(yaml(include_str!("samples/logicalvolume-legacy.yaml"))).unwrap();
    let spec = old.spec.0.clone();
    let new = topolvm::LogicalVolume::from(old);
    assert_eq!(new.spec, spec);
    assert_eq!(new.metadata.name.as_deref(), Some("pvc-5d2c"));
}
