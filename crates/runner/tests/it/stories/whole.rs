//! A whole embedded cluster: binder, node storage, runner, and a real process on a volume that waited for its pod.

use super::machine::setup;
use crate::things::{deployment, plain_deployment};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, DeleteParams, PostParams};
use lifeboat_binder::Neighbours;
use lifeboat_engine::Settings;
use lifeboat_lvm::{Directories, DirectoryClass};
use lifeboat_mover::Rustic;
use lifeboat_node::LocalFilesystems;
use lifeboat_node::central::{self, Central, DRIVER, Snapshots};
use lifeboat_node::volume::{Config, Parts, agent};
use lifeboat_runner::{LocalMachine, Setup, runner};
use lifeboat_testbed::fixtures::{self, With};
use lifeboat_testbed::{Cluster, NotYet, Task};
use std::path::Path;
use std::sync::Arc;

struct Floor {
    cluster: Cluster,
    disks: Arc<Directories>,
    _storage: Task,
}

impl Floor {
    async fn new(home: &Path) -> Self {
        let cluster = Cluster::embedded();
        cluster.install(&lifeboat_api::crds()).await;
        let class = DirectoryClass::new("dir", home.join("disks")).default_class();
        let disks = Arc::new(Directories::new(vec![class]).unwrap());
        let params = PostParams::default();
        Api::all(cluster.client()).create(&params, &fixtures::node("node")).await.unwrap();
        let class = fixtures::storage_class("wait").with(|class| {
            class.provisioner = DRIVER.to_owned();
            class.volume_binding_mode = Some("WaitForFirstConsumer".to_owned());
        });
        Api::<StorageClass>::all(cluster.client()).create(&params, &class).await.unwrap();
        let storage = Task::spawn(storage(cluster.clone(), disks.clone(), home.join("mounts")));
        Self { cluster, disks, _storage: storage }
    }

    fn runner(&self, home: &Path) -> Task {
        let machine = LocalMachine::open(setup(home), self.cluster.clock()).unwrap();
        let setup = Setup { node: "node".to_owned(), machine: Arc::new(machine), disks: self.disks.clone() };
        let runner = runner(self.cluster.client(), self.cluster.clock(), Settings::default(), setup);
        Task::spawn(runner.run(std::future::pending()))
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.cluster.client(), "default")
    }

    async fn running(&self, restarts: i32, but: Option<&Pod>) -> Pod {
        let but = but.and_then(|pod| pod.metadata.uid.clone());
        self.cluster
            .eventually("a running pod", || async {
                let all = self.pods().list(&Default::default()).await?.items;
                let runs = |pod: &Pod| {
                    let status = pod.status.clone().unwrap_or_default();
                    let one = status.container_statuses.unwrap_or_default().into_iter().next();
                    status.phase.as_deref() == Some("Running")
                        && pod.metadata.deletion_timestamp.is_none()
                        && pod.metadata.uid != but
                        && one.is_some_and(|one| one.restart_count >= restarts && one.ready)
                };
                all.iter().find(|pod| runs(pod)).cloned().ok_or_else(|| {
                    NotYet(
                        serde_json::to_string(
                            &all.iter()
                                .map(|pod| (&pod.spec.as_ref().unwrap().node_name, &pod.status))
                                .collect::<Vec<_>>(),
                        )
                        .unwrap(),
                    )
                })
            })
            .await
    }
}

async fn storage(cluster: Cluster, disks: Arc<Directories>, mounts: std::path::PathBuf) {
    let (client, clock, settings) = (cluster.client(), cluster.clock(), Settings::default());
    let mover = Arc::new(Rustic::new());
    let parts =
        Parts { lvm: disks.clone(), mover: mover.clone(), filesystems: Arc::new(LocalFilesystems::new()) };
    let config = Config {
        node: "node".to_owned(),
        process: "test".to_owned(),
        namespace: "default".to_owned(),
        jobs_at_once: 1,
        mounts,
    };
    let central = Central {
        driver: DRIVER.to_owned(),
        namespace: "default".to_owned(),
        snapshots: Snapshots::Here,
        mover,
    };
    let forever = std::future::pending::<()>;
    let reporter =
        lifeboat_node::capacity::reporter(client.clone(), clock.clone(), settings, disks.clone(), "node");
    let binder = lifeboat_binder::engine(client.clone(), clock.clone(), settings, Neighbours::Here);
    let engine = central::engine(client.clone(), clock.clone(), settings, &central);
    let agent = agent(client, clock, settings, parts, config);
    tokio::join!(agent.run(forever()), reporter.run(forever()), engine.run(forever()), binder.run(forever()));
}

/// What is in a file of the volume of claim `data`.
async fn file(floor: &Floor, name: &str) -> Option<String> {
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(floor.cluster.client(), "default");
    let volume = claims.get("data").await.ok()?.spec?.volume_name?;
    let volumes: Api<k8s_openapi::api::core::v1::PersistentVolume> = Api::all(floor.cluster.client());
    let handle = volumes.get(&volume).await.ok()?.spec?.csi?.volume_handle;
    let all = lifeboat_lvm::Lvm::volumes(&*floor.disks, "").await.ok()?;
    let found = all.into_iter().find(|one| one.name == handle)?;
    let lifeboat_lvm::Access::Directory(folder) = found.access else { return None };
    std::fs::read_to_string(folder.join(name)).ok()
}

#[tokio::test]
async fn a_pod_writes_to_a_volume_that_waited_for_it_and_is_replaced_when_deleted() {
    let home = tempfile::tempdir().unwrap();
    let floor = Floor::new(home.path()).await;
    let runner = floor.runner(home.path());
    let params = PostParams::default();
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(floor.cluster.client(), "default");
    let claim = fixtures::claim("default", "data").with(|claim| {
        claim.spec.as_mut().unwrap().storage_class_name = Some("wait".to_owned());
    });
    claims.create(&params, &claim).await.unwrap();
    let deployments: Api<Deployment> = Api::namespaced(floor.cluster.client(), "default");
    let script = "echo $HOSTNAME >> data/names; exec sleep 600";
    deployments.create(&params, &deployment("web", 1, &["sh", "-c", script])).await.unwrap();
    let first = floor.running(0, None).await;
    let selected = claims.get("data").await.unwrap().metadata.annotations.unwrap();
    assert_eq!(selected["volume.kubernetes.io/selected-node"], "node");
    let names = floor
        .cluster
        .eventually("the first line", || async {
            file(&floor, "names").await.filter(|text| text.ends_with('\n')).ok_or(NotYet(String::new()))
        })
        .await;
    assert_eq!(names.trim(), first.metadata.name.as_deref().unwrap());

    floor.pods().delete(first.metadata.name.as_deref().unwrap(), &DeleteParams::default()).await.unwrap();
    let second = floor.running(0, Some(&first)).await;
    let is_gone = |pod: Option<&Pod>| pod.is_none();
    floor.cluster.until(&floor.pods(), first.metadata.name.as_deref().unwrap(), is_gone).await;

    // The runner dies, and with it, for this test, its processes; the next one starts the pod's container again.
    runner.kill().await.unwrap();
    let _runner = floor.runner(home.path());
    let third = floor.running(1, None).await;
    assert_eq!(third.metadata.uid, second.metadata.uid);

    deployments.delete("web", &DeleteParams::background()).await.unwrap();
    floor.cluster.until(&floor.pods(), second.metadata.name.as_deref().unwrap(), is_gone).await;
    let names = file(&floor, "names").await.unwrap();
    assert_eq!(names.lines().count(), 3, "{names}");
}

#[tokio::test]
async fn a_container_that_ends_is_started_again_after_a_pause() {
    let home = tempfile::tempdir().unwrap();
    let floor = Floor::new(home.path()).await;
    let _runner = floor.runner(home.path());
    let deployments: Api<Deployment> = Api::namespaced(floor.cluster.client(), "default");
    let script = "test -e again || { touch again; exit 7; }; exec sleep 600";
    let web = plain_deployment("web", 1, &["sh", "-c", script]);
    deployments.create(&PostParams::default(), &web).await.unwrap();
    let pod = floor.running(1, None).await;
    let status = pod.status.unwrap().container_statuses.unwrap().remove(0);
    assert_eq!(status.last_state.unwrap().terminated.unwrap().exit_code, 7);
    let is_available = |web: Option<&Deployment>| {
        web.and_then(|web| web.status.as_ref()).is_some_and(|status| status.available_replicas == Some(1))
    };
    floor.cluster.until(&deployments, "web", is_available).await;
}
