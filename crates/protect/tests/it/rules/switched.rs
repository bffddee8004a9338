//! A claim whose way of protection changes: one way at a time, and never both in a record or a restore.

use super::{claim, now, seen, world};
use k8s_openapi::api::core::v1::PersistentVolume;
use lifeboat_api::finalizers;
use lifeboat_protect::decide::plan::{Path, Plan};
use lifeboat_protect::decide::records::record;
use lifeboat_protect::decide::restore::restore;
use lifeboat_protect::decide::undo::protect;
use lifeboat_protect::ledger::{Reading, Record};
use lifeboat_protect::world::Claim;
use serde_json::{Value, json};
use std::sync::Arc;

const OWNED: [(&str, &str); 2] =
    [("ramendr.openshift.io/owner-name", "web"), ("ramendr.openshift.io/owner-namespace-name", "app")];

fn volume() -> PersistentVolume {
    let claim = json!({ "name": "one", "namespace": "app", "uid": "c" });
    let csi = json!({ "driver": "d", "volumeHandle": "only-there" });
    serde_json::from_value(json!({
        "metadata": { "name": "v" },
        "spec": { "claimRef": claim, "csi": csi, "persistentVolumeReclaimPolicy": "Retain", "capacity": { "storage": "1Gi" } },
    }))
    .unwrap()
}

fn held(finalizers: &[&str], more: impl FnOnce(&mut Value)) -> Claim {
    let claim = claim(|claim| {
        claim["metadata"]["finalizers"] = json!(finalizers);
        claim["metadata"]["annotations"]["volumereplicationgroups.ramendr.openshift.io/vr-protected"] =
            json!("protected");
        for (key, value) in OWNED {
            claim["metadata"]["labels"][key] = json!(value);
        }
        more(claim);
    });
    Claim { volume: Some(Arc::new(volume())), ..seen(claim) }
}

#[test]
fn the_old_way_ends_before_the_new_one_begins() {
    let check = |rule: &str, finalizers: &[&str], path: Path, expected: &str| {
        let (world, mut plan) = (world(|_| {}), Plan::default());
        let claim = held(finalizers, |claim| {
            if rule.ends_with("while it is deleted") {
                claim["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
            }
        });
        protect(&world, now(), &mut plan, &claim, path);
        let told: Vec<String> = plan.effects.iter().map(lifeboat_engine::variant).collect();
        assert_eq!(told.join(", "), expected, "{rule}");
    };
    check("replicated, and now to be copied", &[finalizers::PVC_VR], Path::Copied, "Unprotect");
    check("copied, and now to be replicated", &[finalizers::PVC_VOLSYNC], Path::Replicated, "Unprotect");
    check("copied as wanted", &[finalizers::PVC_VOLSYNC], Path::Copied, "");
    check("replicated as wanted", &[finalizers::PVC_VR], Path::Replicated, "");
    check("not protected yet", &[], Path::Copied, "Protect");
    let both = [finalizers::PVC_VR, finalizers::PVC_VOLSYNC];
    check("the old way is kept while it is deleted", &both, Path::Copied, "");
}

#[test]
fn what_a_mover_copies_is_not_in_the_record() {
    let check = |rule: &str, finalizers: &[&str], expected: usize| {
        let mut world = world(|_| {});
        world.claims = vec![held(finalizers, |_| {})];
        let record = record(&world);
        assert_eq!((record.claims.len(), record.volumes.len()), (expected, expected), "{rule}");
    };
    check("replicated", &[finalizers::PVC_VR], 1);
    check("copied", &[finalizers::PVC_VOLSYNC], 0);
    check("both, while it changes over", &[finalizers::PVC_VR, finalizers::PVC_VOLSYNC], 0);
}

#[test]
fn what_was_received_is_not_restored_from_a_record_as_well() {
    let check = |rule: &str, received: bool, expected: &str| {
        let mut world = world(|group| {
            group["status"] = json!({ "epoch": 1, "primaryEpoch": 1 });
            if received {
                group["spec"]["volSync"] = json!({ "rdSpec": [{ "protectedPVC": { "name": "one" } }] });
            }
        });
        let record =
            Record { epoch: 1, volumes: vec![volume()], claims: vec![claim(|_| {})], ..Record::default() };
        let reading = Reading { epoch: 1, newest: Some(record), ..Reading::default() };
        world.read.answer = Some(("u/3/east".into(), reading, now()));
        let mut plan = Plan::default();
        restore(&world, now(), &mut plan);
        let told: Vec<String> = plan.effects.iter().map(lifeboat_engine::variant).collect();
        assert_eq!(told.join(", "), expected, "{rule}");
    };
    check("recorded only", false, "MakeVolume");
    // The receiver is missing here, which is a wait; a volume that only the other cluster has is no way out of it.
    check("received", true, "");
}
