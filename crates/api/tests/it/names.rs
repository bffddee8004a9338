//! Keys and words outside of fields: well formed, and as the seeds of this project spell them.

use lifeboat_api::{annotations, conditions, finalizers, labels};
use std::collections::BTreeMap;

/// The text of the source, so that a constant cannot be forgotten here.
fn constants(source: &str) -> BTreeMap<String, String> {
    let joined = source.replace("=\n    \"", "= \"");
    joined
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub const ")?.split_once(": &str = "))
        .map(|(name, value)| (name.to_owned(), value.trim_matches([';', '"']).to_owned()))
        .collect()
}

#[test]
fn keys_are_valid_keys() {
    let sources = [
        include_str!("../../src/annotations.rs"),
        include_str!("../../src/labels.rs"),
        include_str!("../../src/finalizers.rs"),
    ];
    for (name, value) in sources.into_iter().flat_map(constants) {
        let key = value.trim_end_matches('/');
        let (prefix, short) = key.rsplit_once('/').unwrap_or(("", key));
        assert!((1..=63).contains(&short.len()), "{name} = {value}");
        let legal = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        assert!(short.chars().all(legal), "{name} = {value}");
        assert!(prefix.chars().all(|c| legal(c) && !c.is_ascii_uppercase()), "{name} = {value}");
    }
}

#[test]
fn each_finalizer_is_named_once() {
    let names = constants(include_str!("../../src/finalizers.rs"));
    let mut values: Vec<_> = names.values().collect();
    values.sort();
    values.dedup();
    assert_eq!(values.len(), names.len());
}

#[test]
fn names_are_spelled_as_documented() {
    let check = |found: &str, wanted: &str| assert_eq!(found, wanted);
    check(annotations::DRPC_NAME, "drplacementcontrol.ramendr.openshift.io/drpc-name");
    check(annotations::DRPC_UID, "drplacementcontrol.ramendr.openshift.io/drpc-uid");
    check(annotations::APP_NAMESPACE, "drplacementcontrol.ramendr.openshift.io/app-namespace");
    check(annotations::VR_PROTECTED, "volumereplicationgroups.ramendr.openshift.io/vr-protected");
    check(annotations::VR_ARCHIVED, "volumereplicationgroups.ramendr.openshift.io/vr-archived");
    check(annotations::BIND_COMPLETED, "pv.kubernetes.io/bind-completed");
    check(labels::OCM_BACKUP, "cluster.open-cluster-management.io/backup");
    check(labels::VOLSYNC_DO_NOT_DELETE, "volsync.backube/do-not-delete");
    check(labels::CREATED_BY, "app.kubernetes.io/created-by");
    check(finalizers::DRPC, "drpc.ramendr.openshift.io/finalizer");
    check(finalizers::VRG, "volumereplicationgroups.ramendr.openshift.io/vrg-protection");
    check(finalizers::PVC_VR, "volumereplicationgroups.ramendr.openshift.io/pvc-vr-protection");
    check(finalizers::LOGICAL_VOLUME, "topolvm.io/logicalvolume");
    check(conditions::vrg::TYPE_CLUSTER_DATA_PROTECTED, "ClusterDataProtected");
    check(conditions::drpc::TYPE_PEER_READY, "PeerReady");
    check(conditions::logical_volume::TYPE_BACKUP_STORAGE_FOUND, "SnapshotBackupStorageFound");
}
