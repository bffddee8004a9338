//! Node storage of an embedded cluster: one node, whose disks are a folder, with a storage class and a snapshot class for it.

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::Api;
use kube::api::PostParams;
use lifeboat_api::annotations;
use lifeboat_api::snapshot::VolumeSnapshotClass;
use lifeboat_engine::{Clock, Settings};
use lifeboat_lvm::{Directories, DirectoryClass, Lvm};
use lifeboat_mover::Rustic;
use lifeboat_node::LocalFilesystems;
use lifeboat_node::central::{self, Central, DRIVER, Snapshots};
use lifeboat_node::volume::{Config, Parts, agent};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// Name of the storage class, as TopoLVM's charts have it.
const CLASS: &str = "topolvm-provisioner";

/// Storage for a cluster, in a folder of its own. Runs until it is dropped.
pub async fn run(client: kube::Client, cluster: String, folder: &Path) -> anyhow::Result<()> {
    let node = format!("{cluster}-node");
    let disks = folder.join("disks");
    std::fs::create_dir_all(&disks).with_context(|| format!("making {}", disks.display()))?;
    let lvm: Arc<dyn Lvm> = Arc::new(
        Directories::new(vec![DirectoryClass::new("dir", disks).default_class()])
            .context("opening the disks")?,
    );
    offer(&client, &node).await?;
    let (clock, settings, mover) = (Clock::system(), Settings::default(), Arc::new(Rustic::new()));
    let parts =
        Parts { lvm: lvm.clone(), mover: mover.clone(), filesystems: Arc::new(LocalFilesystems::new()) };
    let config = Config {
        node: node.clone(),
        process: crate::process::identity(),
        namespace: "default".to_owned(),
        jobs_at_once: 2,
        mounts: folder.join("mounts"),
    };
    let central = Central {
        driver: DRIVER.to_owned(),
        namespace: "default".to_owned(),
        snapshots: Snapshots::Here,
        mover,
    };
    let reporter = lifeboat_node::capacity::reporter(client.clone(), clock.clone(), settings, lvm, &node);
    let engine = central::engine(client.clone(), clock.clone(), settings, &central);
    let agent = agent(client, clock, settings, parts, config);
    let forever = std::future::pending::<()>;
    tokio::join!(agent.run(forever()), reporter.run(forever()), engine.run(forever()));
    Ok(())
}

/// The objects that a user needs to begin with. What is there already is left as it is.
async fn offer(client: &kube::Client, node: &str) -> anyhow::Result<()> {
    let hostname = json!({"kubernetes.io/hostname": node});
    ensure::<Node>(client, json!({"metadata": {"name": node, "labels": hostname}})).await?;
    let default = json!({annotations::IS_DEFAULT_STORAGE_CLASS: "true"});
    let class = json!({
        "metadata": {"name": CLASS, "annotations": default},
        // Nobody schedules pods here, so nobody would ever be the first consumer.
        "provisioner": DRIVER, "volumeBindingMode": "Immediate", "allowVolumeExpansion": true,
    });
    ensure::<StorageClass>(client, class).await?;
    let default = json!({annotations::IS_DEFAULT_SNAPSHOT_CLASS: "true"});
    let class = json!({
        "metadata": {"name": CLASS, "annotations": default}, "driver": DRIVER, "deletionPolicy": "Delete",
    });
    ensure::<VolumeSnapshotClass>(client, class).await
}

async fn ensure<K>(client: &kube::Client, object: serde_json::Value) -> anyhow::Result<()>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned,
{
    let object: K = serde_json::from_value(object).context("invariant: the object is one of its kind")?;
    match Api::<K>::all(client.clone()).create(&PostParams::default(), &object).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error).with_context(|| format!("making a {}", K::kind(&()))),
    }
}
