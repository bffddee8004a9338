//! Act: asks the disks and writes to the Node.

use crate::capacity::decide::{self, ClassReading, NodeDecision, NodeEffect, NodeWhy, NodeWorld, Reading};
use crate::capacity::metrics::Gauges;
use crate::provision::words::reference;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, ObjectReference};
use kube::api::Patch;
use lifeboat_engine::{
    Change, Class, Clock, Controller, EffectError, Engine, ObjectKey, Objects, Selection, Settings, Trouble,
    Wiring,
};
use lifeboat_lvm::Lvm;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The name that events and writes carry.
pub const NAME: &str = "lifeboat-capacity";

struct Nodes {
    node: String,
    nodes: Objects<Node>,
    lvm: Arc<dyn Lvm>,
    clock: Clock,
    gauges: Gauges,
    reading: Mutex<Option<Reading>>,
}

impl Controller for Nodes {
    const NAME: &'static str = "capacity";
    type Key = ObjectKey;
    type World = NodeWorld;
    type Effect = NodeEffect;
    type Why = NodeWhy;
    type Status = ();

    fn observe(&self, key: &ObjectKey, _: Option<&Trouble>) -> Option<NodeWorld> {
        let node = self.nodes.get(key).filter(|_| key.name == self.node)?;
        let change = *self.lvm.changes().borrow();
        Some(NodeWorld { node, reading: self.reading.lock().clone(), change })
    }

    fn decide(world: &NodeWorld, now: Timestamp) -> NodeDecision {
        decide::decide(world, now)
    }

    async fn act(&self, key: &ObjectKey, effect: NodeEffect) -> Result<(), EffectError> {
        match effect {
            NodeEffect::Measure => self.measure().await,
            NodeEffect::Publish(patch) => self.nodes.patch(key, &Patch::Merge(patch)).await.map(drop),
        }
    }

    fn shown(_: &NodeWorld) -> Option<&()> {
        None
    }

    async fn show(&self, _: &NodeWorld, (): ()) -> Result<(), EffectError> {
        Ok(())
    }

    fn subject(world: &NodeWorld) -> Option<ObjectReference> {
        Some(reference(&*world.node))
    }
}

impl Nodes {
    async fn measure(&self) -> Result<(), EffectError> {
        // Read first: what changes from here on is asked for again.
        let change = *self.lvm.changes().borrow();
        let failed =
            |error| EffectError::caused(Class::Transient, "listing the device classes of this node", error);
        let mut classes = Vec::new();
        let mut volumes = BTreeSet::new();
        for class in self.lvm.classes().await.map_err(failed)? {
            // Names before figures: a volume that is named is in the figures too.
            if let Ok(found) = self.lvm.volumes(&class.name).await {
                volumes.extend(found.into_iter().map(|volume| volume.name));
            }
            let capacity = self.lvm.capacity(&class.name).await;
            let read = ClassReading { class, capacity };
            self.gauges.set(&self.node, &read);
            classes.push(read);
        }
        let mut reading = self.reading.lock();
        let known = reading.take().map(|before| before.volumes);
        *reading = Some(Reading { change, at: self.clock.now(), classes, volumes, known });
        Ok(())
    }
}

/// Writes the figures of one node, ready to run.
pub struct Reporter {
    engine: Engine,
    wiring: Wiring<ObjectKey>,
    lvm: Arc<dyn Lvm>,
    node: String,
    gauges: Gauges,
}

/// Makes the reporter of a node.
pub fn reporter(
    client: kube::Client,
    clock: Clock,
    settings: Settings,
    lvm: Arc<dyn Lvm>,
    node: &str,
) -> Reporter {
    let mut engine = Engine::new(NAME, client, clock.clone(), settings);
    let nodes = engine.objects::<Node>(Selection::all().fields(format!("metadata.name={node}")));
    let gauges = Gauges::default();
    let controller = Nodes {
        node: node.to_owned(),
        nodes: nodes.clone(),
        lvm: lvm.clone(),
        clock,
        gauges: gauges.clone(),
        reading: Mutex::default(),
    };
    let wiring = engine.controller(controller).woken_by(&nodes, |change: &Change<Node>| [change.key()]);
    Reporter { engine, wiring, lvm, node: node.to_owned(), gauges }
}

impl Reporter {
    /// The figures, to be shown on a page.
    pub fn gauges(&self) -> Gauges {
        self.gauges.clone()
    }

    /// Runs until `stop`.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) {
        let Self { engine, wiring, lvm, node, .. } = self;
        let mut changes = lvm.changes();
        let follow = async {
            while changes.changed().await.is_ok() {
                wiring.wake(ObjectKey::cluster_wide(node.clone()));
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = engine.run(stop) => {}
            () = follow => {}
        }
    }
}
