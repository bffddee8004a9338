//! What is lost and comes back, as it was or empty.

use super::{Journey, Outcome, other};
use crate::disks;
use crate::fleet::{NAME, PATIENCE, SPACE};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use lifeboat_api::cluster::ManagedCluster;
use serde_json::json;
use std::time::{Duration, Instant};

impl Journey {
    pub(super) async fn lose_cluster(&mut self) -> Outcome {
        let lost = self.here;
        let before = self.held().await;
        self.fleet.site("lose", lost)?;
        self.failover(Some(before)).await?;
        self.fleet.site("revive", lost)
    }

    pub(super) async fn rebuild_cluster(&mut self) -> Outcome {
        let lost = self.here;
        let before = self.held().await;
        self.fleet.site("lose", lost)?;
        self.failover(Some(before)).await?;
        self.replace(lost).await
    }

    pub(super) async fn rebuild_primary(&mut self) -> Outcome {
        let lost = self.here;
        let before = self.held().await;
        self.fleet.site("lose", lost)?;
        self.replace(lost).await?;
        self.failover(Some(before)).await
    }

    pub(super) async fn rebuild_peer(&mut self) -> Outcome {
        self.restart_floor().await;
        self.copied.clear();
        let lost = other(self.here);
        self.fleet.site("lose", lost)?;
        self.replace(lost).await
    }

    /// Puts an empty cluster in the place of one that is lost, and lets it in as status says.
    async fn replace(&self, lost: &'static str) -> Outcome {
        self.fleet.wipe(lost);
        self.fleet.site("revive", lost)?;
        let note = lifeboat_api::annotations::REBUILT_AS;
        let began = Instant::now();
        let id = loop {
            let text = self.fleet.app(&["status"]).text;
            let named = text.split_once(&format!("kubectl annotate managedcluster {lost} {note}="));
            if let Some(id) = named.and_then(|(_, rest)| rest.split_whitespace().next()) {
                break id.to_owned();
            }
            if began.elapsed() > PATIENCE {
                return Err(format!(
                    "`lifeboat status` does not say how a rebuilt cluster is let in:\n{text}"
                ));
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        };
        let clusters: Api<ManagedCluster> = Api::all(self.fleet.client("hub").await);
        let rebuilt = json!({"metadata": {"annotations": {note: id}}});
        clusters.patch(lost, &PatchParams::default(), &Patch::Merge(rebuilt)).await.expect("annotated");
        let began = Instant::now();
        loop {
            let pods: Api<Pod> = Api::namespaced(self.fleet.client(lost).await, SPACE);
            let runs = !pods.list(&ListParams::default()).await.expect("listed").items.is_empty();
            // Where it was placed before, it may begin for a moment until the hub has seen that this is another cluster.
            if runs && (lost != self.here || began.elapsed() > Duration::from_secs(15)) {
                return Err(format!(
                    "STARTED EMPTY: {lost} was rebuilt and runs the application without its data"
                ));
            }
            let planned = self.fleet.run(&["plan", "failover", NAME, "-n", SPACE, "--to", lost]);
            if planned.code == 0 && disks::best(&self.fleet, lost).len() < self.fleet.claims {
                return Err(format!("STATUS LIES: {lost} was rebuilt and has no copy:\n{}", planned.text));
            }
            let done = lost != self.here && self.fleet.app(&["status"]).code == 0;
            if done || began.elapsed() > Duration::from_secs(20) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        Ok(())
    }

    pub(super) async fn lose_hub(&mut self) -> Outcome {
        self.fleet.site("lose", "hub")?;
        tokio::time::sleep(Duration::from_millis(500)).await;
        self.fleet.site("revive", "hub")
    }

    pub(super) async fn rebuild_hub(&mut self) -> Outcome {
        self.restart_floor().await;
        self.fleet.site("lose", "hub")?;
        self.fleet.wipe("hub");
        self.fleet.site("revive", "hub")?;
        self.fleet.until("the new hub is ready", &["doctor"], 0).await?;
        self.fleet.source().await;
        self.fleet.protect(self.here).await
    }
}
