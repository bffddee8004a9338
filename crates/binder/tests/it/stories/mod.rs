//! What people rely on, on both clusters. The real one is shared, so everything carries the namespace in its name.

mod around;
mod binding;
mod counts;

use crate::things::{ClaimThings, VolumeThings, new_claim, new_volume};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, ListParams, PostParams};
use lifeboat_binder::lean::{PersistentVolume, PersistentVolumeClaim};
use lifeboat_binder::metrics::Metrics;
use lifeboat_binder::words::VolumeWords;
use lifeboat_binder::{Binder, Neighbours};
use lifeboat_engine::{Settings, Waits};
use lifeboat_testbed::fixtures::{self, With};
use lifeboat_testbed::{Cluster, NotYet, Task};

pub struct Scene<'a> {
    pub cluster: &'a Cluster,
    pub namespace: String,
    pub claims: Api<PersistentVolumeClaim>,
    pub volumes: Api<PersistentVolume>,
    pub classes: Api<StorageClass>,
    pub metrics: Metrics,
    pub waits: Waits,
    _binder: Task,
}

/// A namespace, a class of the same name, and the binder at work.
pub async fn scene<'a>(cluster: &'a Cluster, prefix: &str) -> Scene<'a> {
    let namespace = cluster.namespace(prefix).await;
    let account = cluster.account("binder").await;
    let Binder { engine, metrics } =
        lifeboat_binder::binder(account, cluster.clock(), Settings::default(), Neighbours::Here);
    let waits = engine.waits();
    Scene {
        cluster,
        claims: Api::namespaced(cluster.client(), &namespace),
        volumes: Api::all(cluster.client()),
        classes: Api::all(cluster.client()),
        _binder: Task::spawn(async move { engine.run(std::future::pending()).await }),
        metrics,
        waits,
        namespace,
    }
}

impl Scene<'_> {
    pub fn claim(&self, name: &str) -> PersistentVolumeClaim {
        new_claim(&self.namespace, name).of_class(Some(&self.namespace))
    }

    pub fn volume(&self, name: &str) -> PersistentVolume {
        new_volume(&self.named(name)).of_class(Some(&self.namespace)).csi("none.example.io")
    }

    pub fn named(&self, name: &str) -> String {
        format!("{}-{name}", self.namespace)
    }

    pub async fn create_claim(&self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim {
        self.claims.create(&PostParams::default(), &claim).await.unwrap()
    }

    pub async fn create_volume(&self, volume: PersistentVolume) -> PersistentVolume {
        self.volumes.create(&PostParams::default(), &volume).await.unwrap()
    }

    pub async fn create_class(&self, provisioner: &str, mode: &str) {
        let class = fixtures::storage_class(&self.namespace).with(|class| {
            class.provisioner = provisioner.to_owned();
            class.volume_binding_mode = Some(mode.to_owned());
        });
        self.classes.create(&PostParams::default(), &class).await.unwrap();
    }

    pub async fn claim_in(&self, name: &str, phase: &'static str) -> PersistentVolumeClaim {
        let is = move |claim: Option<&PersistentVolumeClaim>| {
            claim.and_then(|claim| claim.status.as_ref()?.phase.as_deref()) == Some(phase)
        };
        self.cluster.until(&self.claims, name, is).await.unwrap()
    }

    pub async fn volume_in(&self, name: &str, phase: &'static str) -> PersistentVolume {
        let is =
            move |volume: Option<&PersistentVolume>| volume.is_some_and(|volume| volume.phase() == phase);
        self.cluster.until(&self.volumes, &self.named(name), is).await.unwrap()
    }

    pub async fn create_growing_class(&self, provisioner: &str) {
        let class = fixtures::storage_class(&self.namespace).with(|class| {
            class.provisioner = provisioner.to_owned();
            class.allow_volume_expansion = Some(true);
        });
        self.classes.create(&PostParams::default(), &class).await.unwrap();
    }

    pub async fn event(&self, reason: &str) -> String {
        self.event_about("PersistentVolumeClaim", reason).await
    }

    pub async fn event_about(&self, kind: &str, reason: &str) -> String {
        let events: Api<Event> = Api::namespaced(self.cluster.client(), &self.namespace);
        self.cluster
            .eventually(reason, || async {
                let all = events.list(&ListParams::default()).await?.items;
                let about = |event: &&Event| {
                    let of = event.regarding.as_ref().and_then(|object| object.kind.as_deref());
                    of == Some(kind) && event.reason.as_deref() == Some(reason)
                };
                let found = all.iter().find(about);
                found.and_then(|event| event.note.clone()).ok_or(NotYet(format!("{all:?}")))
            })
            .await
    }
}
