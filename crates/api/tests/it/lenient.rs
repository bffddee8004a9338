//! Objects that other versions wrote still decode: nothing unknown, missing or null is an error.

use crate::yaml;
use lifeboat_api::ramen::{self, DRState, Progression, ReplicationState};
use lifeboat_api::{
    Duration, apps, cluster, csiaddons, multicluster, replication, snapshot, topolvm, view, volsync, work,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn decode<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

/// What an old peer may have left out, or a newer one added, at the top of any object.
fn check<K: DeserializeOwned>() {
    for object in [
        json!({ "metadata": {}, "spec": {}, "status": {} }),
        json!({ "metadata": {}, "spec": {}, "status": null }),
        json!({ "metadata": {}, "spec": {} }),
        json!({ "metadata": {} }),
        json!({
            "apiVersion": "x/v9", "kind": "X", "extra": 1, "metadata": { "later": true },
            "spec": { "later": { "a": [1] } }, "status": { "later": "x", "conditions": null },
        }),
    ] {
        decode::<K>(object);
    }
}

#[test]
fn every_kind_decodes_with_fields_missing_unknown_or_null() {
    check::<apps::PlacementRule>();
    check::<cluster::ManagedCluster>();
    check::<cluster::Placement>();
    check::<cluster::PlacementDecision>();
    check::<csiaddons::NetworkFence>();
    check::<csiaddons::NetworkFenceClass>();
    check::<multicluster::ServiceExport>();
    check::<ramen::DRCluster>();
    check::<ramen::DRClusterConfig>();
    check::<ramen::DRPlacementControl>();
    check::<ramen::DRPolicy>();
    check::<ramen::MaintenanceMode>();
    check::<ramen::ProtectedVolumeReplicationGroupList>();
    check::<ramen::ReplicationGroupDestination>();
    check::<ramen::ReplicationGroupSource>();
    check::<ramen::VolumeReplicationGroup>();
    check::<replication::VolumeGroupReplication>();
    check::<replication::VolumeGroupReplicationClass>();
    check::<replication::VolumeGroupReplicationContent>();
    check::<replication::VolumeReplication>();
    check::<replication::VolumeReplicationClass>();
    check::<snapshot::VolumeSnapshot>();
    check::<snapshot::VolumeSnapshotClass>();
    check::<snapshot::VolumeSnapshotContent>();
    check::<topolvm::LogicalVolume>();
    check::<topolvm::SnapshotBackupStorage>();
    check::<topolvm::legacy::LogicalVolume>();
    check::<view::ManagedClusterView>();
    check::<volsync::ReplicationDestination>();
    check::<volsync::ReplicationSource>();
    check::<work::AppliedManifestWork>();
    check::<work::ManifestWork>();
}

#[test]
fn a_service_export_needs_no_spec() {
    let export: multicluster::ServiceExport = decode(json!({ "metadata": { "name": "a" } }));
    assert_eq!(export.spec.spec, None);
    let written = serde_json::to_value(&export).unwrap();
    assert_eq!(written.get("spec"), None);
}

#[test]
fn a_group_of_the_first_versions_decodes() {
    let vrg: ramen::VolumeReplicationGroup = decode(yaml(
        "
        apiVersion: ramendr.openshift.io/v1alpha1
        kind: VolumeReplicationGroup
        metadata: { name: app, namespace: app }
        spec:
          pvcSelector: { matchLabels: { app: mysql } }
          volumeReplicationClass: fast
          replicationState: primary
          s3Endpoint: s3.example.com
          s3SecretName: s3
        status:
          state: Primary
          protectedPVCs:
          - name: data
            pvResources: gone
          lastUpdateTime: null
        ",
    ));
    assert_eq!(vrg.spec.replication_state, ReplicationState::Primary);
    assert!(vrg.spec.s3_profiles.is_empty());
    let status = vrg.status.unwrap();
    assert_eq!(status.protected_pvcs[0].name.as_deref(), Some("data"));
    assert_eq!(status.last_update_time, None);
}

#[test]
fn a_volume_with_the_first_snapshot_status_decodes() {
    let lv: topolvm::LogicalVolume = decode(yaml(
        "
        apiVersion: topolvm.io/v1
        kind: LogicalVolume
        metadata: { name: snapshot-1 }
        spec: { name: snapshot-1, nodeName: node-1, size: 1073741824 }
        status:
          volumeID: u
          snapshot:
            operation: Backup
            phase: ''
            startTime: null
            progress: { totalBytes: 10, bytesDone: 4, percentage: 40 }
            paths: [/data]
        ",
    ));
    assert_eq!(lv.spec.size.0, "1073741824");
    let snapshot = lv.status.unwrap().snapshot.unwrap();
    assert_eq!(snapshot.phase.as_str(), "");
    assert_eq!(snapshot.start_time, None);
}

#[test]
fn an_unknown_word_is_kept() {
    let sent = json!({
        "apiVersion": "ramendr.openshift.io/v1alpha1",
        "kind": "DRPlacementControl",
        "metadata": { "name": "shop" },
        "spec": {
            "placementRef": {}, "drPolicyRef": {}, "pvcSelector": {}, "action": "Evacuate",
        },
        "status": {
            "phase": "Evacuating", "progression": "Cleaning Up", "actionDuration": "soon",
        },
    });
    let drpc: ramen::DRPlacementControl = decode(sent.clone());
    let status = drpc.status.clone().unwrap();
    assert_eq!(status.phase, Some(DRState::Other("Evacuating".into())));
    assert_eq!(status.progression, Some(Progression::CleaningUp));
    assert_eq!(status.action_duration, Some(Duration("soon".into())));
    assert_eq!(serde_json::to_value(&drpc).unwrap(), sent);
}

#[test]
fn a_null_list_is_empty() {
    let policy: ramen::DRPolicy =
        decode(json!({ "metadata": {}, "spec": { "schedulingInterval": "5m", "drClusters": null } }));
    assert!(policy.spec.dr_clusters.is_empty());
}
