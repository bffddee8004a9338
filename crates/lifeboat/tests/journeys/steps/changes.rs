//! What people change about an application between its moves: its scale, its PVCs, the Secret of its movers.

use super::{Journey, Outcome};
use crate::disks::CLUSTERS;
use crate::fleet::{NAME, PATIENCE, SPACE, claim, delete};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Secret};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use lifeboat_api::snapshot::VolumeSnapshotClass;
use std::time::{Duration, Instant};

impl Journey {
    /// Waits until something is so.
    pub(super) async fn until<F: Future<Output = bool>>(what: &str, is: impl Fn() -> F) -> Outcome {
        let began = Instant::now();
        while !is().await {
            if began.elapsed() > PATIENCE {
                return Err(format!("stuck: {what}"));
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Ok(())
    }

    pub(super) async fn scale(&mut self) -> Outcome {
        self.fleet.replicas = 0;
        self.fleet.change().await;
        let pods: Api<Pod> = Api::namespaced(self.fleet.client(self.here).await, SPACE);
        Self::until("the pods of an application that was scaled to zero do not end", || async {
            pods.list(&ListParams::default()).await.expect("listed").items.is_empty()
        })
        .await?;
        self.restart_floor().await;
        // Nobody has to look at an application that does nothing because it was told to.
        self.fleet.ready().await?;
        self.fleet.replicas = 1;
        self.fleet.change().await;
        Ok(())
    }

    pub(super) async fn grow(&mut self) -> Outcome {
        self.restart_floor().await;
        self.fleet.mebibytes += 32;
        self.fleet.change().await;
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.fleet.client(self.here).await, SPACE);
        let wanted = format!("{}Mi", self.fleet.mebibytes);
        for claim in self.claims() {
            Self::until(&format!("PVC {claim} does not grow to {wanted}"), || async {
                let now = claims.get_opt(&claim).await.expect("read").and_then(|claim| claim.status);
                now.and_then(|status| status.capacity?.remove("storage")).is_some_and(|size| size.0 == wanted)
            })
            .await?;
        }
        Ok(())
    }

    pub(super) async fn add_claim(&mut self) -> Outcome {
        self.restart_floor().await;
        if self.fleet.claims < 3 {
            self.fleet.claims += 1;
            self.fleet.change().await;
        }
        Ok(())
    }

    pub(super) async fn remove_claim(&mut self) -> Outcome {
        self.restart_floor().await;
        if self.fleet.claims < 2 {
            return Ok(());
        }
        self.fleet.claims -= 1;
        let gone = claim(self.fleet.claims);
        self.fleet.change().await;
        // Who takes a PVC out of an application's source and deletes it wants it gone.
        self.floor.remove(&gone);
        self.copied.remove(&gone);
        // Its pods go with the source; a PVC has data, and is left to people.
        let client = self.fleet.client(self.here).await;
        delete::<PersistentVolumeClaim>(&client, &gone).await;
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(client, SPACE);
        Self::until(&format!("PVC {gone} does not go"), || async {
            claims.get_opt(&gone).await.expect("read").is_none()
        })
        .await
    }

    pub(super) async fn delete_mover_secret(&mut self) -> Outcome {
        self.restart_floor().await;
        for cluster in CLUSTERS {
            delete::<Secret>(&self.fleet.client(cluster).await, &format!("{NAME}-vs-secret")).await;
        }
        Ok(())
    }

    /// Copies need them; what is complete stays usable meanwhile, and copies go on once they are there again.
    pub(super) async fn delete_snapshot_classes(&mut self) -> Outcome {
        self.restart_floor().await;
        let mut kept = Vec::new();
        for cluster in CLUSTERS {
            let classes: Api<VolumeSnapshotClass> = Api::all(self.fleet.client(cluster).await);
            for mut class in classes.list(&ListParams::default()).await.expect("listed").items {
                let name = class.metadata.name.clone().expect("a name");
                classes.delete(&name, &DeleteParams::default()).await.expect("deleted");
                class.metadata.resource_version = None;
                class.metadata.uid = None;
                class.metadata.managed_fields = None;
                kept.push((classes.clone(), class));
            }
        }
        // Time for a copy that needs them.
        tokio::time::sleep(Duration::from_secs(8)).await;
        for (classes, class) in kept {
            classes.create(&PostParams::default(), &class).await.expect("made");
        }
        Ok(())
    }
}
