//! A death at every write, over each of the ways that end in writes.

use crate::things::{ClaimThings, VolumeThings, new_claim, new_volume, with_scratch};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lifeboat_binder::Neighbours;
use lifeboat_binder::lean::{PersistentVolume, PersistentVolumeClaim};
use lifeboat_binder::words::{
    ClaimWords, PROVISIONED_BY, STORAGE_PROVISIONER, STORAGE_RESIZER, VolumeWords, annotation,
};
use lifeboat_engine::Settings;
use lifeboat_testbed::fixtures::{self, With};
use lifeboat_testbed::{Cluster, CrashStory, Kind, Process, Scene};
use serde_json::json;

async fn run(process: Process<()>) {
    lifeboat_binder::engine(process.client, process.clock, Settings::default(), Neighbours::Here)
        .run(std::future::pending())
        .await;
}

fn volume(name: &str) -> PersistentVolume {
    new_volume(name).csi("none.example.io")
}

fn claims(cluster: &Cluster) -> Api<PersistentVolumeClaim> {
    Api::namespaced(cluster.client(), "default")
}

fn phase(claim: &PersistentVolumeClaim) -> &str {
    claim.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

async fn create(cluster: &Cluster, volume: PersistentVolume) {
    Api::all(cluster.client()).create(&PostParams::default(), &volume).await.unwrap();
}

async fn claim(cluster: &Cluster, claim: PersistentVolumeClaim) -> PersistentVolumeClaim {
    claims(cluster).create(&PostParams::default(), &claim).await.unwrap()
}

async fn bound(cluster: &Cluster, name: &str) {
    let is = |claim: Option<&PersistentVolumeClaim>| claim.is_some_and(|claim| phase(claim) == "Bound");
    cluster.until(&claims(cluster), name, is).await;
}

async fn delete(cluster: &Cluster, name: &str) {
    claims(cluster).delete(name, &DeleteParams::default()).await.unwrap();
}

/// No two claims are bound to one volume, and who says that it is bound has a volume that says so too.
fn bound_is_mutual(scene: &Scene<'_, ()>) -> Result<(), String> {
    let volumes: Vec<PersistentVolume> = scene.list();
    for claim in scene.list::<PersistentVolumeClaim>().iter().filter(|claim| phase(claim) == "Bound") {
        let volume = volumes.iter().find(|volume| volume.name() == claim.volume_name());
        let uid = volume.and_then(|volume| volume.claim_ref()?.uid.as_deref());
        if uid != Some(claim.uid()) {
            return Err(format!("{} is bound to {}, which has {uid:?}", claim.key(), claim.volume_name()));
        }
    }
    Ok(())
}

fn ends(
    expected: &'static [(&'static str, &'static str)],
) -> impl Fn(&Scene<'_, ()>) -> Result<(), String> + Send + Sync {
    move |scene| {
        let mut phases: Vec<(String, String)> = Vec::new();
        for claim in scene.list::<PersistentVolumeClaim>() {
            phases.push((claim.metadata.name.clone().unwrap_or_default(), phase(&claim).to_owned()));
        }
        for volume in scene.list::<PersistentVolume>() {
            phases.push((volume.name().to_owned(), volume.phase().to_owned()));
        }
        let phases: Vec<(&str, &str)> = phases.iter().map(|(name, phase)| (&**name, &**phase)).collect();
        if phases == expected { Ok(()) } else { Err(format!("{phases:?}")) }
    }
}

fn story(name: &str) -> CrashStory<()> {
    CrashStory::new(name)
        .account("binder")
        .controller(run)
        .expects(Kind::Api)
        .invariant("bound is mutual", bound_is_mutual)
}

#[test]
fn binding_survives_a_death_at_every_write() {
    let points = story("bind")
        .story(|cluster, ()| async move {
            create(&cluster, volume("v1").sized("1Gi")).await;
            create(&cluster, volume("v2").sized("2Gi")).await;
            claim(&cluster, new_claim("default", "a").sized("2Gi")).await;
            bound(&cluster, "a").await;
            claim(&cluster, new_claim("default", "b")).await;
            bound(&cluster, "b").await;
        })
        .converges(ends(&[("a", "Bound"), ("b", "Bound"), ("v1", "Bound"), ("v2", "Bound")]))
        .run();
    assert!(points.len() >= 8, "{points:#?}");
}

#[test]
fn binding_what_is_reserved_survives_a_death_at_every_write() {
    let points = story("prebound")
        .story(|cluster, ()| async move {
            let mut reserved = volume("v1").for_claim("a", "");
            reserved.spec.as_mut().unwrap().claim_ref.as_mut().unwrap().namespace = Some("default".into());
            create(&cluster, reserved).await;
            create(&cluster, volume("v2").sized("3Gi")).await;
            claim(&cluster, new_claim("default", "b").naming("v2")).await;
            claim(&cluster, new_claim("default", "a")).await;
            bound(&cluster, "a").await;
            bound(&cluster, "b").await;
        })
        .converges(ends(&[("a", "Bound"), ("b", "Bound"), ("v1", "Bound"), ("v2", "Bound")]))
        .run();
    assert!(points.len() >= 8, "{points:#?}");
}

#[test]
fn releasing_and_taking_again_survives_a_death_at_every_write() {
    let points = story("release")
        .story(|cluster, ()| async move {
            create(&cluster, volume("v1")).await;
            create(&cluster, new_volume("v2").sized("5Gi").policy("Delete")).await;
            claim(&cluster, new_claim("default", "a")).await;
            claim(&cluster, new_claim("default", "b").sized("5Gi")).await;
            bound(&cluster, "a").await;
            bound(&cluster, "b").await;
            delete(&cluster, "a").await;
            delete(&cluster, "b").await;
            let volumes: Api<PersistentVolume> = Api::all(cluster.client());
            let released =
                |volume: Option<&PersistentVolume>| volume.is_some_and(|volume| volume.phase() == "Released");
            cluster.until(&volumes, "v1", released).await;
            let free = Patch::Merge(json!({"spec": {"claimRef": null}}));
            volumes.patch("v1", &PatchParams::default(), &free).await.unwrap();
            claim(&cluster, new_claim("default", "c")).await;
        })
        .converges(ends(&[("c", "Bound"), ("v1", "Bound"), ("v2", "Failed")]))
        .run();
    assert!(points.len() >= 14, "{points:#?}");
}

#[test]
fn provisioning_survives_a_death_at_every_write() {
    let points = story("provision")
        .story(|cluster, ()| async move {
            let class: StorageClass =
                fixtures::storage_class("fast").with(|class| class.provisioner = "made.example.io".into());
            Api::all(cluster.client()).create(&PostParams::default(), &class).await.unwrap();
            let made = claim(&cluster, new_claim("default", "a")).await;
            let asked = |claim: Option<&PersistentVolumeClaim>| {
                claim.is_some_and(|claim| annotation(&claim.metadata, STORAGE_PROVISIONER).is_some())
            };
            cluster.until(&claims(&cluster), "a", asked).await;
            let mut volume = volume("v1").for_claim("a", made.uid()).policy("Delete");
            volume = volume.noted(PROVISIONED_BY, "made.example.io");
            volume.spec.as_mut().unwrap().claim_ref.as_mut().unwrap().namespace = Some("default".into());
            create(&cluster, volume).await;
            bound(&cluster, "a").await;
            delete(&cluster, "a").await;
        })
        .converges(ends(&[("v1", "Released")]))
        .run();
    assert!(points.len() >= 5, "{points:#?}");
}

#[test]
fn growing_survives_a_death_at_every_write() {
    let named = |scene: &Scene<'_, ()>| {
        let claims = scene.list::<PersistentVolumeClaim>();
        let resizer = claims.first().and_then(|claim| annotation(&claim.metadata, STORAGE_RESIZER));
        if resizer == Some("pd.csi.storage.gke.io") { Ok(()) } else { Err(format!("{claims:?}")) }
    };
    let points = story("grow")
        .story(|cluster, ()| async move {
            let class: StorageClass =
                fixtures::storage_class("fast").with(|class| class.allow_volume_expansion = Some(true));
            Api::all(cluster.client()).create(&PostParams::default(), &class).await.unwrap();
            let disk = new_volume("v1").stored("gcePersistentDisk", &json!({"pdName": "disk"}));
            create(&cluster, disk).await;
            claim(&cluster, new_claim("default", "a")).await;
            bound(&cluster, "a").await;
            let more = Patch::Merge(json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}}));
            claims(&cluster).patch("a", &PatchParams::default(), &more).await.unwrap();
        })
        .converges(ends(&[("a", "Bound"), ("v1", "Bound")]))
        .converges(named)
        .run();
    assert!(points.len() >= 5, "{points:#?}");
}

#[test]
fn making_a_claim_for_a_pod_survives_a_death_at_every_write() {
    let points = story("scratch")
        .story(|cluster, ()| async move {
            create(&cluster, volume("v1")).await;
            let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client(), "default");
            cluster.until(&accounts, "default", |account| account.is_some()).await;
            let pod = with_scratch(fixtures::pod("default", "p", &[]), &new_claim("default", "template"));
            Api::namespaced(cluster.client(), "default").create(&PostParams::default(), &pod).await.unwrap();
        })
        .converges(ends(&[("p-scratch", "Bound"), ("v1", "Bound")]))
        .run();
    assert!(points.len() >= 5, "{points:#?}");
}
