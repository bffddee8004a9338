//! Objects that rows put into a world, and how a decision is told in words.

use super::{claim, seen};
use k8s_openapi::api::core::v1::PersistentVolume;
use lifeboat_engine::{Next, Why as _, variant};
use lifeboat_protect::decide::GroupDecision;
use lifeboat_protect::decide::plan::Plan;
use lifeboat_protect::world::{Claim, World};
use serde_json::{Value, json};
use std::sync::Arc;

pub const VR: &str = "volumereplicationgroups.ramendr.openshift.io/pvc-vr-protection";
pub const VOLSYNC: &str = "volumereplicationgroups.ramendr.openshift.io/pvc-volsync-protection";
pub const PROTECTED: &str = "volumereplicationgroups.ramendr.openshift.io/vr-protected";
pub const RETAINED: &str = "volumereplicationgroups.ramendr.openshift.io/vr-retained";
pub const GOING: &str = "2030-01-01T00:00:00Z";

/// Labels of what the group makes.
pub fn ours() -> Value {
    json!({ "ramendr.openshift.io/owner-name": "web", "ramendr.openshift.io/owner-namespace-name": "app", "app": "web" })
}

/// Labels of another group.
pub fn theirs() -> Value {
    json!({ "ramendr.openshift.io/owner-name": "other", "ramendr.openshift.io/owner-namespace-name": "app" })
}

pub fn volume(change: impl FnOnce(&mut Value)) -> PersistentVolume {
    let mut volume = json!({
        "metadata": { "name": "v", "annotations": { RETAINED: "retained" } },
        "spec": { "claimRef": { "name": "one", "namespace": "app", "uid": "c" }, "csi": { "driver": "d", "volumeHandle": "h" },
            "persistentVolumeReclaimPolicy": "Retain", "capacity": { "storage": "1Gi" } },
    });
    change(&mut volume);
    serde_json::from_value(volume).unwrap()
}

/// The claim `one`, protected by its storage, with a volume that we keep.
pub fn protected(change: impl FnOnce(&mut Value)) -> Claim {
    let claim = claim(|claim| {
        claim["metadata"]["finalizers"] = json!([VR]);
        claim["metadata"]["labels"] = ours();
        claim["metadata"]["annotations"][PROTECTED] = json!("protected");
        change(claim);
    });
    Claim { volume: Some(Arc::new(volume(|_| {}))), ..seen(claim) }
}

fn put<K: serde::de::DeserializeOwned>(object: Value, change: impl FnOnce(&mut Value)) -> Arc<K> {
    let mut object = object;
    change(&mut object);
    Arc::new(serde_json::from_value(object).unwrap())
}

/// A VolumeReplication of `one` that has reached its role.
pub fn replication(world: &mut World, role: &str, change: impl FnOnce(&mut Value)) {
    let state = if role == "primary" { "Primary" } else { "Secondary" };
    let said = |type_: &str, status: &str| {
        json!({ "type": type_, "status": status, "observedGeneration": 2, "reason": "R", "message": "m",
            "lastTransitionTime": GOING })
    };
    let one = json!({
        "metadata": { "name": "one", "namespace": "app", "generation": 2, "labels": ours() },
        "spec": { "volumeReplicationClass": "five", "replicationState": role, "autoResync": false,
            "dataSource": { "kind": "PersistentVolumeClaim", "name": "one" } },
        "status": { "state": state, "observedGeneration": 2, "conditions": [
            said("Completed", "True"), said("Degraded", "False"), said("Resyncing", "False")] },
    });
    world.replications.insert("one".into(), put(one, change));
}

pub fn source(world: &mut World, change: impl FnOnce(&mut Value)) {
    let one = json!({ "metadata": { "name": "one", "namespace": "app", "labels": ours() }, "spec": { "sourcePVC": "one" } });
    world.sources.insert("one".into(), put(one, change));
}

pub fn receiver(world: &mut World, name: &str, change: impl FnOnce(&mut Value)) {
    let one = json!({ "metadata": { "name": name, "namespace": "app", "labels": ours(), "annotations": {} }, "spec": {},
        "status": { "rsyncTLS": { "address": "10.0.0.1" } } });
    world.destinations.insert(name.into(), put(one, change));
}

/// An image that we keep for a claim.
pub fn image(world: &mut World, name: &str, of: &str, made: &str, change: impl FnOnce(&mut Value)) {
    let mut labels = ours();
    labels["volsync.backube/do-not-delete"] = json!("true");
    let one = json!({
        "metadata": { "name": name, "namespace": "app", "labels": labels, "creationTimestamp": made,
            "annotations": { lifeboat_api::annotations::IMAGE_OF: of } },
        "spec": { "source": {} }, "status": { "readyToUse": true, "restoreSize": "1Gi" },
    });
    world.images.insert(name.into(), put(one, change));
}

/// What a plan comes to: its effects, or what is waited for.
pub fn planned(plan: &Plan) -> String {
    let effects: Vec<String> = plan.effects.iter().map(variant).collect();
    let waits: Vec<String> = plan.waits.iter().map(|(why, _)| why.reason()).collect();
    match effects.is_empty() {
        true => waits.join(", "),
        false => effects.join(", "),
    }
}

/// What is decided: effects, a wait, or nothing.
pub fn decided(decision: &GroupDecision) -> String {
    match &decision.next {
        Next::Do(effects) => effects.iter().map(variant).collect::<Vec<_>>().join(", "),
        Next::Wait { why, .. } => why.reason(),
        Next::Settled => "settled".to_owned(),
    }
}
