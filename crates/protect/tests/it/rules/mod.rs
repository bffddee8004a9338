//! Rules as tables.

mod aging;
mod classifying;
mod furniture;
mod giving_up;
mod images;
mod index;
mod merging;
mod older;
mod orphaned;
mod placing;
mod reading;
mod received;
mod removing;
mod restoring;
mod returning;
mod roles;
mod secondary;
mod sending;
mod switched;
mod telling;
mod waking;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_protect::settings::Config;
use lifeboat_protect::world::{Claim, Kinds, MoverKey, World};
use serde_json::{Value, json};
use std::sync::Arc;

pub fn now() -> Timestamp {
    "2030-01-01T00:00:00Z".parse().unwrap()
}

/// A group with a finalizer and one store, changed as a row wants it.
pub fn group(change: impl FnOnce(&mut Value)) -> VolumeReplicationGroup {
    let mut group = json!({
        "apiVersion": "ramendr.openshift.io/v1alpha1", "kind": "VolumeReplicationGroup",
        "metadata": { "name": "web", "namespace": "app", "uid": "u", "generation": 3, "annotations": {},
            "finalizers": ["volumereplicationgroups.ramendr.openshift.io/vrg-protection"] },
        "spec": { "pvcSelector": { "matchLabels": { "app": "web" } }, "replicationState": "primary",
            "s3Profiles": ["east"], "async": { "schedulingInterval": "5m" } },
        "status": {},
    });
    change(&mut group);
    serde_json::from_value(group).unwrap()
}

/// A world with nothing in it but a group and a store that is known.
pub fn world(change: impl FnOnce(&mut Value)) -> World {
    let map = json!({ "data": { "ramen_manager_config.yaml":
        "s3StoreProfiles:\n- s3ProfileName: east\n  s3Bucket: b\n" } });
    let map = serde_json::from_value(map).unwrap();
    World {
        group: Arc::new(group(change)),
        cluster: "here".into(),
        namespace_is_deleting: false,
        config: Config::of(Some(&map)),
        kinds: Kinds::ALL,
        claims: Vec::new(),
        named: Default::default(),
        volumes: Default::default(),
        classes: Default::default(),
        replication_classes: Vec::new(),
        snapshot_classes: Vec::new(),
        replications: Default::default(),
        sources: Default::default(),
        destinations: Default::default(),
        images: Default::default(),
        exports: Default::default(),
        mover_key: MoverKey::Unknown,
        stores: Default::default(),
        read: Default::default(),
        places: Default::default(),
        mishaps: Default::default(),
        trouble: None,
    }
}

pub fn claim(change: impl FnOnce(&mut Value)) -> PersistentVolumeClaim {
    let mut claim = json!({
        "metadata": { "name": "one", "namespace": "app", "uid": "c", "labels": { "app": "web" }, "annotations": {}, "finalizers": [] },
        "spec": { "storageClassName": "fast", "volumeName": "v", "resources": { "requests": { "storage": "1Gi" } } },
        "status": { "phase": "Bound", "capacity": { "storage": "1Gi" } },
    });
    change(&mut claim);
    serde_json::from_value(claim).unwrap()
}

pub fn seen(claim: PersistentVolumeClaim) -> Claim {
    Claim {
        claim: Arc::new(claim),
        selected: true,
        volume: None,
        users: Vec::new(),
        pods: Vec::new(),
        rivals: Vec::new(),
    }
}
