//! Puts the controllers of one cluster's workloads on an engine and says what wakes them.

use crate::deploy::{Deployments, controller_uid, deployment_of};
use crate::machine::Machine;
use crate::pods::Pods;
use crate::schedule::Scheduler;
use crate::words::{bound_to, claim_keys, node_of};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use lifeboat_engine::{Change, Clock, Engine, Index, ObjectKey, Objects, Selection, Settings, Wiring};
use lifeboat_lvm::Lvm;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The name that events and writes carry.
pub const NAME: &str = "lifeboat-runner";

/// What the runner of a cluster is given.
#[derive(Clone)]
pub struct Setup {
    /// The cluster's one node.
    pub node: String,
    /// What runs the processes.
    pub machine: Arc<dyn Machine>,
    /// Where the volumes are.
    pub disks: Arc<dyn Lvm>,
}

/// Everything that runs workloads on one cluster, ready to run.
pub struct Runner {
    engine: Engine,
    pods: Wiring<ObjectKey>,
    known: Objects<Pod>,
    setup: Setup,
}

/// The runner of a cluster.
pub fn runner(client: kube::Client, clock: Clock, settings: Settings, setup: Setup) -> Runner {
    let mut engine = Engine::new(NAME, client.clone(), clock, settings);
    let deployments = engine.objects::<Deployment>(Selection::all());
    let pods = engine.objects::<Pod>(Selection::all());
    let claims = engine.objects::<PersistentVolumeClaim>(Selection::all());
    let volumes = engine.objects::<PersistentVolume>(Selection::all());
    let classes = engine.objects::<StorageClass>(Selection::all());
    let nodes = engine.objects::<Node>(Selection::all());
    let by_claim = pods.index(claim_keys);

    let deployer = Deployments {
        deployments: deployments.clone(),
        pods: pods.clone(),
        by_controller: pods.index(controller_uid),
    };
    engine
        .controller(deployer)
        .woken_by(&deployments, |change: &Change<Deployment>| [change.key()])
        .woken_by(&pods, |change: &Change<Pod>| {
            change.versions().filter_map(|pod| deployment_of(pod)).collect::<BTreeSet<_>>()
        });

    let scheduler = Scheduler {
        pods: pods.clone(),
        claims: claims.clone(),
        volumes: volumes.clone(),
        classes,
        nodes: nodes.clone(),
        node: setup.node.clone(),
        client: client.clone(),
    };
    let waiting = pods.clone();
    let wiring = engine.controller(scheduler).woken_by(&nodes, move |_: &Change<Node>| {
        let pods = waiting.all();
        pods.iter().filter(|pod| node_of(pod).is_none()).map(|pod| ObjectKey::of(&**pod)).collect::<Vec<_>>()
    });
    by_storage(wiring, &pods, &claims, &volumes, &by_claim);

    let runs = Pods {
        pods: pods.clone(),
        claims: claims.clone(),
        volumes: volumes.clone(),
        node: setup.node.clone(),
        machine: setup.machine.clone(),
        disks: setup.disks.clone(),
        client,
    };
    let wiring = by_storage(engine.controller(runs), &pods, &claims, &volumes, &by_claim);
    Runner { engine, pods: wiring, known: pods, setup }
}

/// A pod is woken by itself, by its claims and by their volumes.
fn by_storage(
    wiring: Wiring<ObjectKey>,
    pods: &Objects<Pod>,
    claims: &Objects<PersistentVolumeClaim>,
    volumes: &Objects<PersistentVolume>,
    by_claim: &Index<ObjectKey, Pod>,
) -> Wiring<ObjectKey> {
    let (of_claim, of_volume) = (by_claim.clone(), by_claim.clone());
    let users = |found: Vec<Arc<Pod>>| found.iter().map(|pod| ObjectKey::of(&**pod)).collect::<Vec<_>>();
    let known = claims.clone();
    wiring
        .woken_by(pods, |change: &Change<Pod>| [change.key()])
        .woken_by(claims, move |change: &Change<PersistentVolumeClaim>| users(of_claim.get(&change.key())))
        .woken_by(volumes, move |change: &Change<PersistentVolume>| {
            let claim = change.latest().spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
            let key = claim.map(|claim| {
                ObjectKey::new(
                    claim.namespace.clone().unwrap_or_default(),
                    claim.name.clone().unwrap_or_default(),
                )
            });
            let bound = key.filter(|key| known.get(key).is_some_and(|claim| bound_to(&claim).is_some()));
            bound.map(|key| users(of_volume.get(&key))).unwrap_or_default()
        })
}

impl Runner {
    /// The engine, so that more controllers can be put on it.
    pub fn engine(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// Runs until told to stop. What runs then goes on until its machine is dropped.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) {
        let Self { engine, pods, known, setup } = self;
        let mut changes = setup.machine.changes();
        let listen = async {
            loop {
                // Who waits for a volume hears of its user's end, too.
                for key in setup.machine.pods() {
                    pods.wake(key);
                }
                for pod in known.all().iter().filter(|pod| node_of(pod) == Some(setup.node.as_str())) {
                    pods.wake(ObjectKey::of(&**pod));
                }
                if changes.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        tokio::select! {
            biased;
            () = listen => {}
            () = engine.run(stop) => {}
        }
    }
}
