//! What people delete or make by mistake.

use super::{Journey, Outcome, other};
use crate::disks::{self, CLUSTERS};
use crate::fleet::{NAME, PATIENCE, SPACE, Way, claim, delete};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_api::snapshot::VolumeSnapshotClass;
use lifeboat_api::volsync::ReplicationDestination;
use serde_json::json;
use std::time::{Duration, Instant};

impl Journey {
    pub(super) async fn delete_vrg(&mut self) -> Outcome {
        self.restart_floor().await;
        let client = self.fleet.client(self.here).await;
        let groups: Api<VolumeReplicationGroup> = Api::namespaced(client.clone(), SPACE);
        let uid = groups.get(NAME).await.expect("a VRG").metadata.uid;
        delete::<VolumeReplicationGroup>(&client, NAME).await;
        let began = Instant::now();
        loop {
            let now = groups.get_opt(NAME).await.expect("read");
            if now.is_some_and(|now| now.metadata.uid != uid) {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                return Err("the VRG that was deleted did not come back".to_owned());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Deletes the namespace and waits until it is gone. What was written there must be kept.
    async fn delete_namespace(&mut self) -> Outcome {
        let client = self.fleet.client(self.here).await;
        let spaces: Api<Namespace> = Api::all(client);
        let uid = spaces.get(SPACE).await.expect("a namespace").metadata.uid;
        self.restart_floor().await;
        spaces.delete(SPACE, &DeleteParams::default()).await.expect("deleted");
        let began = Instant::now();
        loop {
            let now = spaces.get_opt(SPACE).await.expect("read");
            if now.is_none_or(|now| now.metadata.uid != uid) {
                break;
            }
            if began.elapsed() > PATIENCE {
                return Err("the namespace that was deleted does not finish".to_owned());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        // Everything that makes things worse by itself has had its time.
        tokio::time::sleep(Duration::from_secs(10)).await;
        self.nothing_is_gone()
    }

    /// Status names the accident and what to do.
    fn told(&self, remedy: &str) -> Outcome {
        let ran = self.fleet.app(&["status"]);
        match ran.code != 0 && ran.text.contains(remedy) {
            true => Ok(()),
            false => Err(format!(
                "`lifeboat status` gives {} and does not name `{remedy}`:\n{}",
                ran.code, ran.text
            )),
        }
    }

    pub(super) async fn delete_namespace_then_failover(&mut self) -> Outcome {
        let (source, left) = (self.held().await, self.here);
        self.delete_namespace().await?;
        self.told("lifeboat failover")?;
        let kept = self.floor.clone();
        self.failover(Some(source)).await?;
        // The old volume is kept until somebody gives it up.
        for (claim, record) in kept {
            if !disks::is_somewhere(&self.fleet, &record) {
                return Err(format!("DATA LOST: no disk has {record:?} of PVC {claim} any more"));
            }
        }
        match self.fleet.way {
            Way::Mirrored => self.forget(left).await,
            Way::Copied | Way::Direct => Ok(()),
        }
    }

    /// A mirror cannot write where the old volume is kept: status says so, and the person gives it up.
    async fn forget(&self, left: &str) -> Outcome {
        let began = Instant::now();
        while self.told("lifeboat forget").is_err() {
            // Nothing is in the way where the mirror has a volume of its own there.
            if self.fleet.app(&["status"]).code == 0 {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                return self.told("lifeboat forget");
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let ran = self.fleet.run_at(left, &["forget", "--of", &format!("{SPACE}/{NAME}"), "--yes"]);
        match ran.code {
            0 => Ok(()),
            code => Err(format!("`lifeboat forget` gives {code}:\n{}", ran.text)),
        }
    }

    pub(super) async fn delete_namespace_then_restore(&mut self) -> Outcome {
        let source = self.held().await;
        self.delete_namespace().await?;
        self.told("--restore-here")?;
        let ran = self.fleet.app(&["repair", "--restore-here", "--yes", "--timeout", "100"]);
        if ran.code != 0 {
            return Err(format!("`lifeboat repair --restore-here` gives {}:\n{}", ran.code, ran.text));
        }
        self.runs(self.here).await?;
        for (claim, before) in source {
            let held = disks::bound(&self.fleet, self.here, &claim).await.unwrap_or_default();
            if !held.found.is_whole() || before.found.last.as_ref().is_some_and(|last| !held.has(last)) {
                return Err(format!(
                    "DATA LOST: PVC {claim} came back with record {}, it had {}",
                    held.found.last_number(),
                    before.found.last_number()
                ));
            }
        }
        Ok(())
    }

    /// A PVC is deleted, and its application's source makes it again: empty.
    async fn replace_claim(&mut self) -> Outcome {
        let gone = claim(0);
        let client = self.fleet.client(self.here).await;
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), SPACE);
        let uid = claims.get(&gone).await.expect("a PVC").metadata.uid;
        self.fleet.replicas = 0;
        self.fleet.change().await;
        delete::<PersistentVolumeClaim>(&client, &gone).await;
        Self::until(&format!("PVC {gone} does not go"), || async {
            claims.get_opt(&gone).await.expect("read").is_none_or(|now| now.metadata.uid != uid)
        })
        .await?;
        self.restart_floor().await;
        match self.copied.get(&gone) {
            Some(copy) => drop(self.floor.insert(gone, copy.clone())),
            None => drop(self.floor.remove(&gone)),
        }
        self.fleet.replicas = 1;
        self.fleet.change().await;
        self.runs(self.here).await?;
        // Everything that makes things worse by itself has had its time.
        tokio::time::sleep(Duration::from_secs(10)).await;
        self.nothing_is_gone()
    }

    pub(super) async fn delete_claim_then_failover(&mut self) -> Outcome {
        self.replace_claim().await?;
        match self.fleet.way {
            // The storage mirrors the new volume too, beside the replica of the old one.
            Way::Mirrored => drop(self.copied.remove(&claim(0))),
            Way::Copied | Way::Direct => self.told(&claim(0))?,
        }
        self.failover(None).await
    }

    pub(super) async fn delete_claim_then_accept(&mut self) -> Outcome {
        self.replace_claim().await?;
        if self.fleet.way == Way::Mirrored {
            self.copied.remove(&claim(0));
            return Ok(());
        }
        let began = Instant::now();
        let remedy = loop {
            let text = self.fleet.app(&["status"]).text;
            let command = text
                .lines()
                .flat_map(|line| line.split('`'))
                .find(|part| part.starts_with("kubectl annotate "));
            if let Some(command) = command {
                break command.to_owned();
            }
            if began.elapsed() > PATIENCE {
                return Err(format!("`lifeboat status` does not say how a new PVC is accepted:\n{text}"));
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        };
        self.annotate(&remedy).await
    }

    /// Runs `kubectl annotate replicationdestination NAME -n NAMESPACE --overwrite KEY=VALUE` on the other cluster.
    async fn annotate(&mut self, remedy: &str) -> Outcome {
        let words: Vec<&str> = remedy.split_whitespace().collect();
        let ["kubectl", "annotate", "replicationdestination", name, "-n", SPACE, "--overwrite", note] =
            words[..]
        else {
            return Err(format!("no such command: `{remedy}`"));
        };
        let (key, value) = note.split_once('=').ok_or_else(|| format!("no annotation: `{remedy}`"))?;
        let receivers: Api<ReplicationDestination> =
            Api::namespaced(self.fleet.client(other(self.here)).await, SPACE);
        let patch = json!({"metadata": {"annotations": {key: value}}});
        let patched = receivers.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.map_err(|error| format!("`{remedy}`: {error}"))?;
        // What was copied of the PVC that was replaced is kept aside, and is no copy of this one.
        self.copied.remove(name);
        Ok(())
    }

    pub(super) async fn broken_snapshot_class(&mut self) -> Outcome {
        for cluster in CLUSTERS {
            let class = json!({
                "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass",
                "metadata": {"name": "a-backup"}, "driver": "topolvm.io", "deletionPolicy": "Delete",
                "parameters": {
                    "topolvm.io/snapshot-mode": "online",
                    "topolvm.io/snapshot-storage-name": "nowhere",
                },
            });
            let classes: Api<VolumeSnapshotClass> = Api::all(self.fleet.client(cluster).await);
            let class: VolumeSnapshotClass = serde_json::from_value(class).expect("a class");
            match classes.create(&PostParams::default(), &class).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(format!("making a VolumeSnapshotClass: {error}")),
            }
        }
        // The next copy meets it.
        let since =
            self.fleet.drpc().await.and_then(|drpc| drpc.status).unwrap_or_default().last_group_sync_time;
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(75) {
            let now =
                self.fleet.drpc().await.and_then(|drpc| drpc.status).unwrap_or_default().last_group_sync_time;
            if now.as_ref().map(|time| time.0) > since.as_ref().map(|time| time.0) {
                return self.failover(None).await;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        Err("no copy was made within 75 s".to_owned())
    }

    pub(super) async fn delete_pod(&mut self) -> Outcome {
        let pods: Api<Pod> = Api::namespaced(self.fleet.client(self.here).await, SPACE);
        let all = pods.list(&ListParams::default()).await.expect("listed").items;
        for pod in all {
            let name = pod.metadata.name.expect("a name");
            let _ = pods.delete(&name, &DeleteParams::default()).await;
        }
        self.restart_floor().await;
        Ok(())
    }
}
