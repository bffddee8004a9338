//! Plays those who move bytes: a storage driver behind VolumeReplications, and a mover behind senders and receivers.

use k8s_openapi::api::core::v1::TypedLocalObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use lifeboat_api::replication::{ReplicationState, VolumeReplication};
use lifeboat_api::snapshot::VolumeSnapshot;
use lifeboat_api::volsync::{ReplicationDestination, ReplicationSource};
use lifeboat_engine::Clock;
use parking_lot::Mutex;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone, Default)]
pub struct Behaviour {
    /// Claims whose replication the storage refuses.
    pub refuses: BTreeSet<String>,
    /// Does nothing.
    pub dead: bool,
    /// A peer's mover: no echo.
    pub foreign: bool,
    /// What the volumes are called at the peer.
    pub handles: bool,
}

#[derive(Clone)]
pub struct Player {
    client: kube::Client,
    clock: Clock,
    space: String,
    behaviour: Arc<Mutex<Behaviour>>,
}

impl Player {
    pub fn new(client: kube::Client, clock: Clock, space: &str) -> Self {
        Self { client, clock, space: space.to_owned(), behaviour: Arc::default() }
    }

    pub fn behave(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.behaviour.lock());
    }

    pub async fn run(self) {
        loop {
            let behaviour = self.behaviour.lock().clone();
            if !behaviour.dead {
                self.replicate(&behaviour).await;
                self.copy(&behaviour).await;
                self.receive().await;
            }
            tokio::time::sleep(Duration::from_millis(700)).await;
        }
    }

    fn said(&self, type_: &str, status: bool, reason: &str, generation: Option<i64>) -> Condition {
        Condition {
            type_: type_.to_owned(),
            status: if status { "True" } else { "False" }.to_owned(),
            reason: reason.to_owned(),
            message: format!("{reason} says the driver"),
            observed_generation: generation,
            last_transition_time: Time(self.clock.now()),
        }
    }

    async fn replicate(&self, behaviour: &Behaviour) {
        let api: Api<VolumeReplication> = Api::namespaced(self.client.clone(), &self.space);
        let Ok(all) = api.list(&ListParams::default()).await else { return };
        for one in all.items {
            let name = one.metadata.name.clone().unwrap_or_default();
            let generation = one.metadata.generation;
            let done = one.status.as_ref().and_then(|status| status.observed_generation);
            if done == generation && !behaviour.handles {
                continue;
            }
            let primary = one.spec.replication_state == ReplicationState::Primary;
            let mut status = json!({
                "state": if primary { "Primary" } else { "Secondary" },
                "observedGeneration": generation,
                "lastSyncTime": "2029-12-31T23:50:00Z",
                "lastSyncDuration": "20s",
                "lastSyncBytes": 4096,
                "conditions": [
                    self.said("Completed", true, if primary { "Promoted" } else { "Demoted" }, generation),
                    self.said("Degraded", false, "Healthy", generation),
                    self.said("Resyncing", false, "NotResyncing", generation),
                ],
            });
            if behaviour.refuses.contains(&name) {
                status["conditions"] =
                    json!([self.said("Validated", false, "PrerequisiteNotMet", generation)]);
                status["state"] = json!("Unknown");
            }
            if behaviour.handles {
                let handle = one.status.as_ref().and_then(|status| status.destination_volume_id.clone());
                if handle.is_some() && done == generation {
                    continue;
                }
                status["destinationVolumeID"] = json!(format!("far-{name}"));
            }
            let _ = api
                .patch_status(&name, &PatchParams::default(), &Patch::Merge(json!({"status": status})))
                .await;
        }
    }

    async fn copy(&self, behaviour: &Behaviour) {
        let api: Api<ReplicationSource> = Api::namespaced(self.client.clone(), &self.space);
        let Ok(all) = api.list(&ListParams::default()).await else { return };
        for one in all.items {
            let name = one.metadata.name.clone().unwrap_or_default();
            let status = one.status.clone().unwrap_or_default();
            let manual = one.spec.trigger.as_ref().and_then(|trigger| trigger.manual.clone());
            if status.last_sync_time.is_some() && status.last_manual_sync == manual {
                continue;
            }
            let mut said = json!({
                "lastSyncTime": "2029-12-31T23:59:00Z", "lastSyncDuration": "60s", "lastManualSync": manual,
                "conditions": [self.said("Synchronizing", false, "WaitingForSchedule", None)],
            });
            if !behaviour.foreign {
                said["external"] = json!({ "executor": "lifeboat", "echo": manual });
            }
            let _ = api
                .patch_status(&name, &PatchParams::default(), &Patch::Merge(json!({"status": said})))
                .await;
        }
    }

    async fn receive(&self) {
        let api: Api<ReplicationDestination> = Api::namespaced(self.client.clone(), &self.space);
        let Ok(all) = api.list(&ListParams::default()).await else { return };
        for one in all.items {
            let name = one.metadata.name.clone().unwrap_or_default();
            let notes = one.metadata.annotations.clone().unwrap_or_default();
            let back = notes.get(lifeboat_api::annotations::ROLL_BACK_TO);
            if back.is_some() && notes.get(lifeboat_api::annotations::ROLLED_BACK_TO) != back {
                let note =
                    json!({"metadata": {"annotations": {lifeboat_api::annotations::ROLLED_BACK_TO: back}}});
                let _ = api.patch(&name, &PatchParams::default(), &Patch::Merge(note)).await;
            }
            if one.status.as_ref().is_some_and(|status| status.latest_image.is_some()) {
                continue;
            }
            let image = format!("{name}-20300101000000");
            self.image(&image, &name).await;
            let latest = TypedLocalObjectReference {
                api_group: Some("snapshot.storage.k8s.io".into()),
                kind: "VolumeSnapshot".into(),
                name: image,
            };
            let status = json!({"status": {
                "rsyncTLS": { "address": format!("10.0.0.1-{name}") }, "latestImage": latest, "lastSyncTime": "2029-12-31T23:59:00Z",
            }});
            let _ = api.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await;
        }
    }

    pub async fn image(&self, image: &str, claim: &str) {
        let snapshots: Api<VolumeSnapshot> = Api::namespaced(self.client.clone(), &self.space);
        let made: VolumeSnapshot = serde_json::from_value(json!({
            "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
            "metadata": { "name": image, "namespace": self.space },
            "spec": { "source": { "persistentVolumeClaimName": claim } },
        }))
        .unwrap();
        let _ = snapshots.create(&PostParams::default(), &made).await;
        let ready = json!({"status": { "readyToUse": true, "restoreSize": "2Gi", "boundVolumeSnapshotContentName": "c" }});
        let _ = snapshots.patch_status(image, &PatchParams::default(), &Patch::Merge(ready)).await;
    }
}
