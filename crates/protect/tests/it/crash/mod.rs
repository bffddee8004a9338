//! A death at every effect, of the API server's writes and of the stores', with what must hold looked at after every single write. One story for
//! each flow: primary, secondary, failover, relocation, deletion.

mod flows;
mod history;
mod holds;
mod orphaned;

use crate::ledger::Shelves;
use crate::scene::{Scene as Stage, furnish, run_binder, run_protector};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Resource;
use kube::api::{Api, PostParams};
use lifeboat_api::ramen::VolumeReplicationGroup;
use lifeboat_engine::ObjectKey;
use lifeboat_protect::words::{OwnedWords as _, Words as _};
use lifeboat_testbed::{Cluster, CrashStory, Kind, Process, Scene, Task};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const SPACE: &str = "app";

/// What a story has beside its cluster.
#[derive(Clone, Default)]
pub struct Ground {
    stores: Shelves,
    tasks: Arc<Mutex<Vec<Task>>>,
    memory: Arc<Mutex<history::Memory>>,
    /// What a restore must bring back: claims, and the handle or image that each is made of.
    promised: Arc<Mutex<BTreeMap<String, String>>>,
    /// Claims that their user deletes together with the group.
    given_up: Arc<Mutex<BTreeSet<String>>>,
    /// Handles that only an older record has.
    old: Arc<Mutex<BTreeSet<String>>>,
}

impl Ground {
    /// The namespace with all that a group needs, a binder and played drivers, which outlive every death.
    async fn stage(&self, cluster: &Cluster) -> Stage {
        let namespaces: Api<Namespace> = Api::all(cluster.client());
        let named = kube::api::ObjectMeta { name: Some(SPACE.into()), ..Default::default() };
        namespaces
            .create(&PostParams::default(), &Namespace { metadata: named, ..Default::default() })
            .await
            .unwrap();
        furnish(cluster, SPACE).await;
        let stage = Stage::over(cluster, SPACE, self.stores.clone());
        let mut tasks = self.tasks.lock();
        tasks.push(Task::spawn(run_binder(cluster.client(), cluster.clock())));
        tasks.push(Task::spawn(stage.player.clone().run()));
        drop(tasks);
        stage
    }

    fn promise(&self, claim: &str, what: &str) {
        self.promised.lock().insert(claim.to_owned(), what.to_owned());
    }
}

async fn run(process: Process<Ground>) {
    let ledger = Shelves { points: Some(process.points), ..process.world.stores.clone() };
    run_protector(process.client, process.clock, SPACE.into(), Arc::new(ledger)).await;
}

fn group(scene: &Scene<'_, Ground>) -> Option<VolumeReplicationGroup> {
    scene.get::<VolumeReplicationGroup>(SPACE, "web")
}

/// Objects that carry the labels of the group.
fn ours<K: Resource<DynamicType = ()> + DeserializeOwned>(scene: &Scene<'_, Ground>) -> Vec<K> {
    let owner = ObjectKey::new(SPACE, "web");
    scene.list::<K>().into_iter().filter(|one| one.is_owned_by(&owner)).collect()
}

fn claims(scene: &Scene<'_, Ground>) -> Vec<PersistentVolumeClaim> {
    scene.list::<PersistentVolumeClaim>().into_iter().filter(|claim| claim.space() == SPACE).collect()
}

fn volume_of(scene: &Scene<'_, Ground>, claim: &PersistentVolumeClaim) -> Option<PersistentVolume> {
    scene.get::<PersistentVolume>("", claim.spec.as_ref()?.volume_name.as_deref()?)
}

/// The kinds that these stories touch: a telling installs them anew.
fn needed() -> Vec<CustomResourceDefinition> {
    let kinds = [
        "VolumeReplicationGroup",
        "VolumeReplication",
        "VolumeReplicationClass",
        "ReplicationSource",
        "ReplicationDestination",
        "VolumeSnapshot",
        "VolumeSnapshotClass",
        "LogicalVolume",
    ];
    let mut all = lifeboat_api::crds();
    all.retain(|one| kinds.contains(&one.spec.names.kind.as_str()));
    all
}

fn story(name: &str) -> CrashStory<Ground> {
    let story = CrashStory::with(name, Ground::default)
        .install(needed())
        .account("protector")
        .controller(run)
        .expects(Kind::Api)
        .quiet_for(std::time::Duration::from_secs(20))
        .ends_may_differ();
    history::all(holds::all(story))
}
