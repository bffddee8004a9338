//! Ramen's word: Kubernetes' own Go types read what we wrote, and we restore what Go wrote.
//!
//! The judge is `tools/ramen`. Where LIFEBOAT_RAMEN_SOURCE names a checkout of Ramen, it has Ramen's own types in it. And what a running
//! Ramen wrote is kept in `fixtures`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use lifeboat_api::replication::{VolumeGroupReplication, VolumeGroupReplicationContent};
use lifeboat_records::{Body, Check, Flaw, Found, Group, Record, Records, Writing, restored};
use lifeboat_reference::judge::{self, Types, ramen_source};
use serde::Deserialize;
use serde_json::json;

use crate::crash::{die_after, revive};
use crate::fixture::{all, by_manifest, folder, group, group_record, one, pairs, told, writing};

#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
struct Report {
    ramen_types: bool,
    records: BTreeMap<String, usize>,
}

/// The judge, built once, or why it cannot be had; with Ramen's types where its source is there.
fn judge() -> Result<&'static Path, String> {
    static JUDGE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let judge = JUDGE.get_or_init(|| {
        let types = ramen_source().map_or(Types::Public, |_| Types::Ramen);
        judge::judge("ramen", Path::new(env!("CARGO_TARGET_TMPDIR")), types)
    });
    judge.as_deref().map_err(Clone::clone)
}

fn ask(judge: &Path, arguments: &[&str]) -> Result<Report, String> {
    let output = Command::new(judge).args(arguments).output().unwrap();
    if output.status.success() {
        return Ok(serde_json::from_slice(&output.stdout).unwrap());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

macro_rules! judge_or_skip {
    ($test:literal) => {
        match judge() {
            Ok(judge) => judge,
            Err(why) => return lifeboat_reference::skip(concat!("ramen::", $test), why),
        }
    };
}

/// A volume and its claim with every field that records are about.
fn rich() -> Vec<Record> {
    let volume = json!({
        "metadata": {
            "name": "pv-rich", "uid": "u", "labels": {"a": "b"}, "creationTimestamp": "2026-01-02T03:04:05Z",
            "finalizers": ["kubernetes.io/pv-protection"],
            "annotations": {"ramendr.openshift.io/destination-volume-handle": "h2", "odd": "<&>\u{2028}"},
        },
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
            "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "fast", "mountOptions": ["noatime"],
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "shop", "name": "rich", "uid": "c"},
            "csi": {
                "driver": "d", "volumeHandle": "h", "fsType": "ext4", "readOnly": false,
                "volumeAttributes": {"clusterID": "east"},
                "nodeStageSecretRef": {"name": "s", "namespace": "n"},
                "controllerPublishSecretRef": {"name": "s", "namespace": "n"},
            },
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "topology.topolvm.io/node", "operator": "In", "values": ["node-1"]}]}]}},
        },
        "status": {"phase": "Bound", "lastPhaseTransitionTime": "2026-01-02T03:04:05Z"},
    });
    let claim = json!({
        "metadata": {"name": "rich", "namespace": "shop", "uid": "c", "labels": {"app": "shop"}},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "pv-rich",
            "storageClassName": "fast", "volumeMode": "Filesystem",
            "dataSourceRef": {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"},
        },
        "status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}},
    });
    let condition = json!({"type": "DataReady", "status": "True", "reason": "Ready", "message": "m",
        "lastTransitionTime": "2026-01-02T03:04:05Z", "observedGeneration": 2});
    let protected = json!({
        "namespace": "shop", "name": "rich", "protectedByVolSync": true, "storageClassName": "fast",
        "csiProvisioner": "d", "storageID": {"id": "s", "modes": ["Failover"]}, "replicationID": {"id": "r"},
        "labels": {"app": "shop"}, "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
        "resources": {"requests": {"storage": "1Gi"}}, "conditions": [condition],
        "lastSyncTime": "2026-01-02T03:04:05Z", "lastSyncDuration": "1m30s", "lastSyncBytes": 5,
    });
    let group = json!({
        "metadata": {"name": "orders", "namespace": "shop", "generation": 2, "uid": "g",
            "annotations": {"drplacementcontrol.ramendr.openshift.io/drpc-uid": "x"}},
        "spec": {
            "pvcSelector": {"matchLabels": {"app": "shop"}}, "replicationState": "primary", "s3Profiles": ["east"],
            "async": {"schedulingInterval": "5m", "replicationClassSelector": {}, "volumeSnapshotClassSelector": {},
                "peerClasses": [{"storageClassName": "fast", "clusterIDs": ["1", "2"], "storageID": ["a", "b"]}]},
            "volSync": {"rdSpec": [{"protectedPVC": protected}], "rsSpec": [{"protectedPVC": protected,
                "rsyncTLS": {"address": "a"}}]},
            "prepareForFinalSync": true, "runFinalSync": true, "action": "Relocate", "protectedNamespaces": ["shop"],
            "kubeObjectProtection": {"captureInterval": "5m0s", "recipeRef": {"namespace": "shop", "name": "r"},
                "recipeParameters": {"k": ["v"]}, "kubeObjectSelector": {"matchLabels": {"app": "shop"}}},
        },
        "status": {
            "state": "Primary", "protectedPVCs": [protected], "conditions": [condition], "observedGeneration": 2,
            "lastUpdateTime": "2026-01-02T03:04:05Z", "lastGroupSyncTime": "2026-01-02T03:04:05Z",
            "lastGroupSyncDuration": "2s", "lastGroupSyncBytes": 7, "pvcgroups": [{"grouped": ["a"]}],
            "finalSyncComplete": true, "prepareForFinalSyncComplete": true,
            "rdInfo": [{"protectedPVC": protected, "rsyncTLS": {"address": "a"}}],
            "kubeObjectProtection": {"captureToRecoverFrom": {"number": 1, "startTime": "2026-01-02T03:04:05Z",
                "endTime": "2026-01-02T03:05:05Z", "startGeneration": 1}},
            "epoch": 7, "primaryEpoch": 7, "blockers": [{"reason": "R", "message": "m"}],
        },
    });
    vec![
        Record::volume(&serde_json::from_value(volume).unwrap()).unwrap(),
        Record::claim(&serde_json::from_value(claim).unwrap()).unwrap(),
        Record::group(&serde_json::from_value(group).unwrap()).unwrap(),
    ]
}

#[tokio::test]
async fn go_decodes_strictly_what_we_write_and_we_read_what_it_makes_of_it() {
    let judge = judge_or_skip!("go_decodes_strictly_what_we_write_and_we_read_what_it_makes_of_it");
    let place = tempfile::tempdir().unwrap();
    let (ours, theirs) = (place.path().join("ours"), place.path().join("theirs"));
    let stores = folder(&ours);
    let change = Writing {
        check: Check::ReadBack,
        ..writing(1, "east", [rich(), pairs(&["a", "b"], "1Gi")].concat())
    };
    all(&stores.write(&change).await.unwrap());
    let arguments = ["rewrite", ours.to_str().unwrap(), "shop", "orders", theirs.to_str().unwrap()];
    let report = ask(judge, &arguments).unwrap();
    let expected =
        [("v1.PersistentVolume", 3), ("v1.PersistentVolumeClaim", 3), ("v1alpha1.VolumeReplicationGroup", 1)];
    assert_eq!(report.records, expected.map(|(kind, count)| (kind.to_owned(), count)).into());

    let written = stores.newest(&group()).await;
    let again = folder(&theirs).newest(&group()).await;
    let Found::Ramen { records, .. } = &again.found else { panic!("{again:?}") };
    let (written, _, _) = by_manifest(&written);
    assert_eq!(written.keys().collect::<Vec<_>>(), records.keys().collect::<Vec<_>>());
    for (id, record) in written {
        let (ours, theirs) = (objects(record), objects(&records[id]));
        assert_eq!(ours, theirs, "{id}");
    }
}

/// An object without the empty parts that Go writes for fields that nobody set.
fn objects(record: &Record) -> serde_json::Value {
    let value = match record.body() {
        Body::Group(object) => serde_json::to_value(object),
        Body::Volume(object) => serde_json::to_value(object),
        Body::Claim(object) => serde_json::to_value(object),
        Body::VolumeGroupContent(object) => serde_json::to_value(object),
        Body::VolumeGroup(object) => serde_json::to_value(object),
    };
    bare(value.unwrap())
}

fn bare(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value::{Array, Object};
    match value {
        Object(map) => {
            let parts = map.into_iter().map(|(key, value)| (key, bare(value)));
            let set = |value: &serde_json::Value| match value {
                Object(map) => !map.is_empty(),
                Array(list) => !list.is_empty(),
                serde_json::Value::Bool(set) => *set,
                serde_json::Value::String(text) => !text.is_empty(),
                other => !other.is_null(),
            };
            Object(parts.filter(|(_, value)| set(value)).collect())
        }
        Array(list) => Array(list.into_iter().map(bare).collect()),
        other => other,
    }
}

#[tokio::test]
async fn we_restore_what_go_wrote() {
    let judge = judge_or_skip!("we_restore_what_go_wrote");
    let place = tempfile::tempdir().unwrap();
    ask(judge, &["write", place.path().to_str().unwrap(), "shop", "orders"]).unwrap();
    let stores = folder(place.path());
    let search = stores.newest(&group()).await;
    let Found::Ramen { records, .. } = &search.found else { panic!("{search:?}") };
    assert!(search.damage.is_empty() && search.flaws.is_empty());
    assert_eq!(told(records), ["claim-0=1536Mi", "claim-1=1537Mi", "claim-2=1538Mi"]);
    check_restored(records);
    let group_found = lifeboat_records::group(records).unwrap();
    assert_eq!(group_found.spec.s3_profiles, ["east", "west"]);
    assert!(group_found.status.as_ref().unwrap().last_update_time.is_some());

    // Taken over, and Go still reads it: the claim under its older key lies under the newer one now.
    all(&stores.write(&writing(1, "west", vec![])).await.unwrap());
    let report = ask(judge, &["check", place.path().to_str().unwrap(), "shop", "orders"]).unwrap();
    assert_eq!(report.records["v1.PersistentVolumeClaim"], 3);
    assert!(!place.path().join("shop/orders/v1.PersistentVolumeClaim/claim-2").exists());
    check_restored(by_manifest(&stores.newest(&group()).await).0);
}

fn check_restored(records: &Records) {
    for volume in lifeboat_records::volumes(records) {
        let volume = restored::volume(volume.clone(), None, restored::Sharing::Copied);
        assert_eq!(volume.metadata.annotations.as_ref().unwrap()[lifeboat_api::annotations::RESTORE], "True");
        let spec = volume.spec.unwrap();
        let claim = spec.claim_ref.unwrap();
        assert_eq!((claim.uid, claim.resource_version), (None, None));
        let handle = format!("handle-at-the-peer-{}", claim.name.unwrap());
        assert_eq!(spec.csi.unwrap().volume_handle, handle);
        assert_eq!(spec.storage_class_name.as_deref(), Some("fast <&> \u{2028} odd"));
        assert!(volume.metadata.finalizers.is_none() && volume.metadata.uid.is_none());
    }
    for claim in lifeboat_records::claims(records) {
        let claim = restored::claim(claim.clone());
        let notes = claim.metadata.annotations.unwrap();
        assert_eq!(notes.keys().filter(|key| key.contains("bind-completed")).count(), 0);
        assert_eq!(notes["user"], "note");
    }
}

/// The store that a running Ramen wrote (see `fixtures/ramen/README.md`), in a folder that may be written to.
fn written_by_ramen() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/ramen");
    let volume = "buoy/buoy/v1.PersistentVolume/pvc-79db5d1b-da2a-4d43-8518-42f886c6688c";
    for key in [
        volume,
        "buoy/buoy/v1.PersistentVolumeClaim/buoy/logbook",
        "buoy/buoy/v1alpha1.VolumeReplicationGroup/a",
    ] {
        let path = place.path().join(key);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::copy(kept.join(key), path).unwrap();
    }
    place
}

#[tokio::test]
async fn we_restore_what_a_running_ramen_wrote() {
    let place = written_by_ramen();
    let stores = folder(place.path());
    let buoy = Group::new("buoy", "buoy").unwrap();
    let search = stores.newest(&buoy).await;
    let Found::Ramen { records, .. } = &search.found else { panic!("{search:?}") };
    assert!(search.damage.is_empty() && search.flaws.is_empty(), "{search:?}");
    let check = |records: &Records| {
        let volumes: Vec<_> = lifeboat_records::volumes(records).collect();
        let claims: Vec<_> = lifeboat_records::claims(records).collect();
        assert_eq!((volumes.len(), claims.len()), (1, 1));
        let volume = restored::volume(volumes[0].clone(), None, restored::Sharing::Copied);
        let spec = volume.spec.unwrap();
        // The volume of the peer, which the storage had told of, and a claim without its old identity.
        assert_eq!(spec.csi.unwrap().volume_handle, "8e1fd1f6-f401-49e0-8427-18429511af5d");
        assert_eq!(spec.persistent_volume_reclaim_policy.as_deref(), Some("Retain"));
        let bound = spec.claim_ref.unwrap();
        assert_eq!((bound.name.as_deref(), bound.uid, bound.resource_version), (Some("logbook"), None, None));
        let claim = restored::claim(claims[0].clone());
        assert_eq!(claim.metadata.labels.unwrap()["app"], "buoy");
        assert!(claim.metadata.uid.is_none() && claim.metadata.finalizers.is_none());
        assert_eq!(claim.spec.unwrap().storage_class_name.as_deref(), Some("topolvm-mirrored"));
    };
    check(records);
    let group = lifeboat_records::group(records).unwrap();
    assert_eq!(group.spec.s3_profiles, ["east-store", "west-store"]);
    let status = group.status.as_ref().unwrap();
    assert!(status.last_update_time.is_some() && status.epoch.is_none());
    // The next primary is ours: its first manifest adopts them.
    let taken = Writing { group: buoy.clone(), ..writing(1, "east", vec![]) };
    all(&stores.write(&taken).await.unwrap());
    check(by_manifest(&stores.newest(&buoy).await).0);
}

#[tokio::test]
async fn the_judge_does_find_fault() {
    let judge = judge_or_skip!("the_judge_does_find_fault");
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("shop/orders/v1.PersistentVolume");
    std::fs::create_dir_all(&folder).unwrap();
    for text in [r#"{"spec":{"unheardOf":1}}"#, r#"{"spec":{"storageClassName":7}}"#, "[]"] {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut encoder, text.as_bytes()).unwrap();
        std::fs::write(folder.join("pv"), encoder.finish().unwrap()).unwrap();
        assert!(ask(judge, &["check", place.path().to_str().unwrap(), "shop", "orders"]).is_err(), "{text}");
    }
}

#[test]
fn the_storages_groups_have_records_too() {
    let content: VolumeGroupReplicationContent =
        serde_json::from_value(json!({"metadata": {"name": "c"}, "spec": {}})).unwrap();
    let replication: VolumeGroupReplication =
        serde_json::from_value(json!({"metadata": {"name": "g", "namespace": "shop"}, "spec": {}})).unwrap();
    let keys = [
        Record::volume_group_content(&content).unwrap().id().to_string(),
        Record::volume_group(&replication).unwrap().id().to_string(),
    ];
    assert_eq!(keys, ["v1alpha1.VolumeGroupReplicationContent/c", "v1alpha1.VolumeGroupReplication/shop/g"]);
    assert!(Record::volume(&PersistentVolume::default()).is_err());
    assert!(Record::claim(&PersistentVolumeClaim::default()).is_err());
}

/// A group that was updated then, with these claims.
fn with(time: &str, names: &[&str]) -> Vec<Record> {
    [vec![group_record(time)], pairs(names, "1Gi")].concat()
}

const RAMENS: [&str; 3] = [
    "shop/orders/v1.PersistentVolume",
    "shop/orders/v1.PersistentVolumeClaim/shop",
    "shop/orders/v1alpha1.VolumeReplicationGroup",
];

/// What lies under Ramen's keys in a folder, packed as Go packs it.
fn as_go_packs(from: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = |kind: &&str| std::fs::read_dir(from.join(kind)).unwrap().map(|file| file.unwrap().path());
    let files = RAMENS.iter().flat_map(files).filter(|path| path.is_file());
    files
        .map(|path| {
            let packed = std::fs::read(&path).unwrap();
            let mut text = flate2::read::GzDecoder::new(&packed[..]);
            let mut again = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::copy(&mut text, &mut again).unwrap();
            (path.strip_prefix(from).unwrap().to_str().unwrap().to_owned(), again.finish().unwrap())
        })
        .collect()
}

/// Writes as Ramen would what lies under its keys elsewhere, and takes away what does not lie there.
fn as_ramen_would(from: &Path, to: &Path) {
    for kind in RAMENS {
        std::fs::remove_dir_all(to.join(kind)).unwrap();
        std::fs::create_dir(to.join(kind)).unwrap();
    }
    for (key, packed) in as_go_packs(from) {
        std::fs::write(to.join(key), packed).unwrap();
    }
}

#[tokio::test]
async fn what_ramen_wrote_after_our_newest_manifest_is_restored_and_taken_over() {
    let place = tempfile::tempdir().unwrap();
    let (ours, theirs) = (place.path().join("ours"), place.path().join("theirs"));
    let stores = folder(&ours);
    all(&stores.write(&writing(1, "east", with("2026-01-02T03:04:05Z", &["a", "b"]))).await.unwrap());
    assert_eq!(told(by_manifest(&stores.newest(&group()).await).0), ["a=1Gi", "b=1Gi"]);
    // Ramen's operator is primary, on a cluster whose clock is behind: a claim comes, another goes.
    all(&folder(&theirs).write(&writing(1, "x", with("2026-01-01T00:00:00Z", &["a", "c"]))).await.unwrap());
    as_ramen_would(&theirs, &ours);
    let search = stores.newest(&group()).await;
    let Found::Ramen { records, .. } = &search.found else { panic!("{search:?}") };
    assert_eq!(told(records), ["a=1Gi", "c=1Gi"]);
    assert!(search.damage.is_empty() && search.flaws.is_empty(), "{search:?}");

    all(&stores.write(&writing(2, "west", vec![])).await.unwrap());
    assert_eq!(
        told(by_manifest(&stores.newest(&group()).await).0),
        ["a=1Gi", "c=1Gi"],
        "b does not come back"
    );
}

#[tokio::test]
async fn a_crash_at_any_put_of_a_takeover_from_ramen_loses_nothing_and_brings_nothing_back() {
    let theirs = tempfile::tempdir().unwrap();
    let under_ramen = writing(1, "x", with("2026-01-01T00:00:00Z", &["a", "c"]));
    all(&folder(theirs.path()).write(&under_ramen).await.unwrap());
    // Who takes over records itself before it has restored anything.
    let change = || writing(2, "west", vec![group_record("2026-01-04T00:00:00Z")]);
    for count in 0..40 {
        let (server, stores) = one().await;
        all(&stores.write(&writing(1, "east", with("2026-01-02T03:04:05Z", &["a", "b"]))).await.unwrap());
        {
            let objects = &mut server.state.lock().unwrap().objects;
            objects.retain(|key, _| key.contains("/lifeboat/"));
            let written = as_go_packs(theirs.path()).into_iter();
            objects.extend(written.map(|(key, packed)| (key, packed.into())));
        }
        die_after(&server, "PUT", count);
        let written = stores.write(&change()).await.unwrap();
        revive(&server);
        let search = stores.newest(&group()).await;
        let (Found::Ramen { records, .. } | Found::Manifest { records, .. }) = &search.found else {
            panic!("{count}: {search:?}")
        };
        assert_eq!(told(records), ["a=1Gi", "c=1Gi"], "{count}");
        all(&stores.write(&change()).await.unwrap());
        let search = stores.newest(&group()).await;
        assert_eq!(told(by_manifest(&search).0), ["a=1Gi", "c=1Gi"], "{count}");
        if written.everywhere() {
            return;
        }
    }
    panic!("more writes than this test thought");
}

#[tokio::test]
async fn a_set_of_ramens_that_is_not_whole_does_not_replace_a_manifest() {
    let place = tempfile::tempdir().unwrap();
    let (ours, theirs) = (place.path().join("ours"), place.path().join("theirs"));
    let stores = folder(&ours);
    all(&stores.write(&writing(1, "east", with("2026-01-02T03:04:05Z", &["a"]))).await.unwrap());
    all(&folder(&theirs).write(&writing(1, "x", with("2026-01-03T00:00:00Z", &["a", "c"]))).await.unwrap());
    as_ramen_would(&theirs, &ours);
    std::fs::remove_file(ours.join("shop/orders/v1.PersistentVolumeClaim/shop/c")).unwrap();
    let search = stores.newest(&group()).await;
    assert_eq!(told(by_manifest(&search).0), ["a=1Gi"]);
    assert!(matches!(search.flaws[..], [(_, Flaw::Count { volumes: 2, claims: 1 })]), "{:?}", search.flaws);
}

#[tokio::test]
async fn an_old_version_that_we_packed_ourselves_does_not_replace_a_manifest() {
    let place = tempfile::tempdir().unwrap();
    let (ours, theirs) = (place.path().join("ours"), place.path().join("theirs"));
    let stores = folder(&ours);
    all(&stores.write(&writing(2, "east", with("2026-01-02T03:04:05Z", &["a", "b"]))).await.unwrap());
    all(&folder(&theirs).write(&writing(1, "west", with("2026-01-01T00:00:00Z", &["a"]))).await.unwrap());
    let key = "shop/orders/v1alpha1.VolumeReplicationGroup/a";
    std::fs::copy(theirs.join(key), ours.join(key)).unwrap();
    assert_eq!(told(by_manifest(&stores.newest(&group()).await).0), ["a=1Gi", "b=1Gi"]);
}
