//! Node storage of an embedded cluster: one node, whose disks are a folder, with classes for it; the mover, the mirror and the
//! runner, which work on the same disks.

use super::fleet::{MirrorPair, Part, Surroundings};
use super::hubside::NAMESPACE;
use anyhow::Context as _;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Namespace, Node, Secret};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use lifeboat_api::annotations::parameters;
use lifeboat_api::replication::VolumeReplicationClass;
use lifeboat_api::snapshot::VolumeSnapshotClass;
use lifeboat_api::{annotations, labels};
use lifeboat_engine::{Clock, Settings};
use lifeboat_lvm::{Directories, DirectoryClass, Lvm};
use lifeboat_mover::Rustic;
use lifeboat_node::LocalFilesystems;
use lifeboat_node::central::{self, Central, DRIVER, Snapshots};
use lifeboat_node::volume::{Config, Parts, agent};
use lifeboat_runner::{LocalMachine, LocalSetup};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

/// Name of the storage class, as TopoLVM's charts have it.
pub const CLASS: &str = "topolvm-provisioner";
/// Name of the class whose volumes the storage itself mirrors.
pub const MIRRORED: &str = "topolvm-mirrored";

/// Everything that works on a cluster's disks.
pub async fn parts(
    client: &kube::Client,
    around: &Surroundings,
) -> anyhow::Result<Vec<BoxFuture<'static, ()>>> {
    let node = format!("{}-node", around.name);
    let disks = around.home.join("disks");
    std::fs::create_dir_all(&disks).with_context(|| format!("making {}", disks.display()))?;
    let lvm: Arc<dyn Lvm> = Arc::new(
        Directories::new(vec![DirectoryClass::new("dir", disks).default_class()])
            .context("opening the disks")?,
    );
    offer(client, &around.name, &node).await?;
    let mut parts = node_parts(client, &around.home, &node, &lvm);
    if around.runs(Part::Mover) {
        parts.push(mover(client, around, &node, &lvm).await?);
    }
    if around.runs(Part::Mirror)
        && let Some(pair) = &around.mirror
    {
        parts.push(mirror(client, around, pair, &node, &lvm).await?);
    }
    if around.runs(Part::Runner) {
        parts.push(runner(client, &around.home, &node, &lvm)?);
    }
    Ok(parts)
}

fn node_parts(
    client: &kube::Client,
    home: &Path,
    node: &str,
    lvm: &Arc<dyn Lvm>,
) -> Vec<BoxFuture<'static, ()>> {
    let (clock, settings, mover) = (Clock::system(), Settings::default(), Arc::new(Rustic::new()));
    let parts =
        Parts { lvm: lvm.clone(), mover: mover.clone(), filesystems: Arc::new(LocalFilesystems::new()) };
    let config = Config {
        node: node.to_owned(),
        process: crate::process::identity(),
        namespace: "default".to_owned(),
        jobs_at_once: 2,
        mounts: home.join("mounts"),
    };
    let central = Central {
        driver: DRIVER.to_owned(),
        namespace: "default".to_owned(),
        snapshots: Snapshots::Here,
        mover,
    };
    let reporter =
        lifeboat_node::capacity::reporter(client.clone(), clock.clone(), settings, lvm.clone(), node);
    let engine = central::engine(client.clone(), clock.clone(), settings, &central);
    let agent = agent(client.clone(), clock, settings, parts, config);
    vec![
        Box::pin(agent.run(std::future::pending())),
        Box::pin(reporter.run(std::future::pending())),
        Box::pin(engine.run(std::future::pending())),
    ]
}

async fn mover(
    client: &kube::Client,
    around: &Surroundings,
    node: &str,
    lvm: &Arc<dyn Lvm>,
) -> anyhow::Result<BoxFuture<'static, ()>> {
    let mut clients = vec![client.clone()];
    for peer in &around.peers {
        clients.push(peer.client().await?);
    }
    let loopback: SocketAddr = ([127, 0, 0, 1], 0).into();
    let config = lifeboat_replicate::Config::new(node, loopback, loopback, around.home.join("mover"));
    let parts = lifeboat_replicate::Parts {
        lvm: lvm.clone(),
        filesystems: Arc::new(LocalFilesystems::new()),
        resolve: Arc::new(lifeboat_replicate::Clusters { clients, home: Some(client.clone()) }),
    };
    let agent =
        lifeboat_replicate::controller(client.clone(), Clock::system(), Settings::default(), parts, config);
    let agent = agent.await.context("listening for senders")?;
    Ok(Box::pin(agent.run(std::future::pending())))
}

async fn mirror(
    client: &kube::Client,
    around: &Surroundings,
    pair: &MirrorPair,
    node: &str,
    lvm: &Arc<dyn Lvm>,
) -> anyhow::Result<BoxFuture<'static, ()>> {
    offer_mirror(client, &around.name, pair, &around.interval).await?;
    let config =
        lifeboat_mirror::Config::new(node, DRIVER, pair.listen, pair.listen, around.home.join("mirror"));
    let parts = lifeboat_mirror::Parts { lvm: lvm.clone() };
    let mirror =
        lifeboat_mirror::controller(client.clone(), Clock::system(), Settings::default(), parts, config);
    let mirror = mirror.await.context("listening for the peer's mirror")?;
    Ok(Box::pin(mirror.run(std::future::pending())))
}

/// A class for mirrored volumes, and what leads to the peer; said anew each time, for addresses change.
async fn offer_mirror(
    client: &kube::Client,
    cluster: &str,
    pair: &MirrorPair,
    interval: &str,
) -> anyhow::Result<()> {
    ensure::<Namespace>(client, json!({"metadata": {"name": NAMESPACE}})).await?;
    let storage = format!("{cluster}-mirrored");
    // Ramen's cluster operator wants the relation on both kinds of class.
    let class = json!({
        "metadata": {
            "name": MIRRORED,
            "labels": {labels::STORAGE_ID: storage, labels::REPLICATION_ID: pair.relation},
        },
        "provisioner": DRIVER, "volumeBindingMode": "Immediate", "allowVolumeExpansion": true,
    });
    ensure::<StorageClass>(client, class).await?;
    let apply = PatchParams::apply("lifeboat-up").force();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mirror-key", "namespace": NAMESPACE},
        "stringData": {"psk.txt": pair.key, "peers": pair.peer.to_string()},
    });
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    secrets.patch("mirror-key", &apply, &Patch::Apply(secret)).await.context("writing the mirrors' key")?;
    let class = json!({
        "apiVersion": "replication.storage.openshift.io/v1alpha1", "kind": "VolumeReplicationClass",
        "metadata": {
            "name": MIRRORED,
            "labels": {labels::STORAGE_ID: storage, labels::REPLICATION_ID: pair.relation},
        },
        "spec": {
            "provisioner": DRIVER,
            "parameters": {
                parameters::SCHEDULING_INTERVAL: interval,
                parameters::REPLICATION_SECRET_NAME: "mirror-key",
                parameters::REPLICATION_SECRET_NAMESPACE: NAMESPACE,
            },
        },
    });
    let classes: Api<VolumeReplicationClass> = Api::all(client.clone());
    classes.patch(MIRRORED, &apply, &Patch::Apply(class)).await.context("writing the mirrors' class")?;
    Ok(())
}

fn runner(
    client: &kube::Client,
    home: &Path,
    node: &str,
    lvm: &Arc<dyn Lvm>,
) -> anyhow::Result<BoxFuture<'static, ()>> {
    let clock = Clock::system();
    let setup = LocalSetup::below(home).context("finding this program")?;
    let machine = LocalMachine::open(setup, clock.clone()).context("preparing to run pods")?;
    let setup =
        lifeboat_runner::Setup { node: node.to_owned(), machine: Arc::new(machine), disks: lvm.clone() };
    let runner = lifeboat_runner::runner(client.clone(), clock, Settings::default(), setup);
    Ok(Box::pin(runner.run(std::future::pending())))
}

/// The objects that a user needs to begin with. What is there already is left as it is.
async fn offer(client: &kube::Client, cluster: &str, node: &str) -> anyhow::Result<()> {
    let hostname = json!({"kubernetes.io/hostname": node});
    ensure::<Node>(client, json!({"metadata": {"name": node, "labels": hostname}})).await?;
    // Each cluster has disks of its own, and says so to whoever wants to know what clusters share.
    let storage = json!({labels::STORAGE_ID: format!("{cluster}-disks")});
    let default = json!({annotations::IS_DEFAULT_STORAGE_CLASS: "true"});
    let class = json!({
        "metadata": {"name": CLASS, "annotations": default, "labels": storage},
        // A receiver's claim has no pod that would be its first consumer.
        "provisioner": DRIVER, "volumeBindingMode": "Immediate", "allowVolumeExpansion": true,
    });
    ensure::<StorageClass>(client, class).await?;
    let default = json!({annotations::IS_DEFAULT_SNAPSHOT_CLASS: "true"});
    let class = json!({
        "metadata": {"name": CLASS, "annotations": default, "labels": storage},
        "driver": DRIVER, "deletionPolicy": "Delete",
    });
    ensure::<VolumeSnapshotClass>(client, class).await
}

/// Makes an object that belongs to the whole cluster, unless it is there.
pub async fn ensure<K>(client: &kube::Client, object: serde_json::Value) -> anyhow::Result<()>
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
