//! Two clusters whose stores are folders that both see, and a mover between them that carries what volumes really hold: a word on the volume stands
//! for its bytes, goes into the image, and from there into the volume that is made of it.

use crate::ledger::Shelves;
use crate::scene::{Scene, note, run_binder};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume, PersistentVolumeClaim};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use lifeboat_api::annotations;
use lifeboat_api::snapshot::VolumeSnapshot;
use lifeboat_api::volsync::{ReplicationDestination, ReplicationSource};
use lifeboat_engine::Settings;
use lifeboat_protect::run::{kinds, protector};
use lifeboat_protect::settings::{CONFIG_KEY, CONFIG_MAP};
use lifeboat_protect::stores::Stores;
use lifeboat_protect::view::Setup;
use lifeboat_testbed::fixtures::With as _;
use lifeboat_testbed::{Cluster, NotYet, Task};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What a volume or an image holds.
pub const CONTENT: &str = "example.com/content";

/// How the mover behaves.
#[derive(Debug, Clone, Default)]
pub struct Manner {
    /// Images that are made stay as they are, not ready.
    pub unready: bool,
    /// Nothing crosses between the clusters.
    pub parted: bool,
}

/// A copy on its way: its image, the word that it was asked for with, and what it holds.
#[derive(Debug, Clone)]
struct Copy {
    image: String,
    word: Option<String>,
    generation: u32,
    content: String,
    lineage: String,
}

#[derive(Default)]
struct Carried {
    copies: u32,
    under_way: BTreeMap<(usize, String), Copy>,
    sent: BTreeMap<(usize, String), (Option<String>, String)>,
}

/// Two clusters.
pub struct Pair {
    pub sides: Arc<[Scene; 2]>,
    pub manner: Arc<Mutex<Manner>>,
    epoch: Mutex<i64>,
    _tasks: Vec<Task>,
}

/// A cluster whose stores are two folders that both clusters see.
pub async fn side(name: &'static str, folder: &str, played: bool) -> (Scene, Vec<Task>) {
    let cluster = Cluster::embedded();
    cluster.install(&lifeboat_api::crds()).await;
    let mark = cluster.namespace("walk").await;
    crate::scene::furnish(&cluster, &mark).await;
    let scene = Scene::over(&cluster, &mark, Shelves::default());
    let profile = |store: &str| {
        format!(
            "- s3ProfileName: {store}\n  s3Bucket: {store}\n  s3CompatibleEndpoint: file://{folder}\n  s3SecretRef: {{ name: s3 }}\n"
        )
    };
    let text = format!("s3StoreProfiles:\n{}{}", profile("east"), profile("west"));
    let configs: Api<ConfigMap> = Api::namespaced(cluster.client(), &mark);
    scene.merge(&configs, CONFIG_MAP, json!({"data": {CONFIG_KEY: text}})).await;
    let (client, clock) = (cluster.client(), cluster.clock());
    let ledger = Arc::new(Stores::new(clock.clone()));
    let setup = Setup { namespace: mark.clone(), cluster: name.to_owned(), only: None };
    let kinds = kinds(&client).await.unwrap();
    let protector = protector(client.clone(), clock.clone(), Settings::default(), kinds, ledger, setup);
    let mut tasks =
        vec![Task::spawn(run_binder(client, clock)), Task::spawn(protector.run(std::future::pending()))];
    if played {
        tasks.push(Task::spawn(scene.player.clone().run()));
    }
    (scene, tasks)
}

fn received(mark: &str) -> Value {
    json!({ "rdSpec": [{ "protectedPVC": { "name": "one", "namespace": mark, "protectedByVolSync": true,
        "storageClassName": mark, "labels": { "app": "web" }, "accessModes": ["ReadWriteOnce"],
        "resources": { "requests": { "storage": "1Gi" } } } }] })
}

impl Pair {
    /// An application with the claim `one` on the first cluster, copied to the second.
    pub async fn deployed(folder: &str) -> Self {
        let (east, mut tasks) = side("east", folder, false).await;
        let (west, more) = side("west", folder, false).await;
        tasks.extend(more);
        let sides = Arc::new([east, west]);
        let manner = Arc::new(Mutex::new(Manner::default()));
        tasks.push(Task::spawn(carry(sides.clone(), manner.clone())));
        let pair = Self { sides, manner, epoch: Mutex::new(1), _tasks: tasks };
        let by_mover = |group: &mut Value| {
            group["metadata"]["annotations"] =
                json!({ annotations::USE_VOLSYNC: "true", annotations::EPOCH: "1" });
        };
        for side in pair.sides.iter() {
            side.key("web").await;
        }
        let (east, west) = (&pair.sides[0], &pair.sides[1]);
        east.claim("one").await;
        pair.write(0, "first").await;
        east.group("web", "primary", by_mover).await;
        let mark = west.mark.clone();
        west.group("web", "secondary", |group| {
            by_mover(group);
            group["spec"]["volSync"] = received(&mark);
        })
        .await;
        east.says("web", "DataProtected", "True", "DataProtected").await;
        pair
    }

    /// The volume of the claim on a side.
    pub async fn volume(&self, side: usize) -> Option<PersistentVolume> {
        let scene = &self.sides[side];
        let claim = scene.claims.get_opt("one").await.unwrap()?;
        scene.volumes.get_opt(&claim.spec?.volume_name?).await.unwrap()
    }

    /// The application writes.
    pub async fn write(&self, side: usize, content: &str) {
        let volume = self.volume(side).await.unwrap();
        let name = volume.metadata.name.unwrap();
        let note = json!({ "metadata": { "annotations": { CONTENT: content } } });
        self.sides[side].merge(&self.sides[side].volumes, &name, note).await;
    }

    /// Waits until what was written is at the other side.
    pub async fn copied(&self, to: usize, content: &str) {
        let scene = &self.sides[to];
        let look = || async {
            let receiver = scene.destinations.get_opt("one").await?.ok_or("no receiver")?;
            let image = receiver.status.and_then(|status| status.latest_image).ok_or("no image")?;
            let image = scene.images.get_opt(&image.name).await?.ok_or("the image is gone")?;
            match note(&image, CONTENT) {
                Some(holds) if holds == content => Ok(()),
                other => Err(NotYet(format!("{other:?}"))),
            }
        };
        scene.cluster.eventually("a copy at the other side", look).await;
    }

    /// The next epoch, as a hub gives it.
    pub fn next_epoch(&self) -> String {
        let mut epoch = self.epoch.lock();
        *epoch += 1;
        epoch.to_string()
    }

    /// Changes the group on a side, as a hub does.
    pub async fn tell(&self, side: usize, epoch: &str, spec: Value) {
        let scene = &self.sides[side];
        let change = json!({ "metadata": { "annotations": { annotations::EPOCH: epoch } }, "spec": spec });
        scene.merge(&scene.groups, "web", change).await;
    }

    /// Makes a side secondary, and takes the application off it.
    pub async fn withdraw(&self, side: usize, epoch: &str, action: &str) {
        let scene = &self.sides[side];
        let volsync = received(&scene.mark);
        let spec = json!({ "replicationState": "secondary", "action": action, "volSync": volsync,
            "prepareForFinalSync": null, "runFinalSync": null });
        self.tell(side, epoch, spec).await;
        if scene
            .claims
            .get_opt("one")
            .await
            .unwrap()
            .is_some_and(|claim| claim.metadata.deletion_timestamp.is_none())
        {
            scene.delete(&scene.claims, "one").await;
        }
    }

    /// Waits until a side has the application's data, and says what it is.
    pub async fn taken_over(&self, side: usize) -> String {
        let scene = &self.sides[side];
        scene.says("web", "ClusterDataReady", "True", "Restored").await;
        scene.bound("one").await;
        scene.state("web", "Primary").await;
        // What was received is taken over: a hub names it no more.
        scene.merge(&scene.groups, "web", json!({ "spec": { "volSync": null } })).await;
        scene.says("web", "ClusterDataProtected", "True", "DataProtected").await;
        note(&self.volume(side).await.unwrap(), CONTENT).unwrap_or_default()
    }

    /// Fails the application over; what it finds there is told.
    pub async fn failover(&self, from: usize, to: usize) -> String {
        let epoch = self.next_epoch();
        self.withdraw(from, &epoch, "Failover").await;
        self.tell(to, &epoch, json!({ "replicationState": "primary", "action": "Failover" })).await;
        let found = self.taken_over(to).await;
        self.sides[from].gone(&self.sides[from].claims, "one").await;
        self.sides[from].state("web", "Secondary").await;
        found
    }

    /// Asks for the last copy, and waits until it is complete.
    pub async fn last_copy(&self, from: usize) {
        let scene = &self.sides[from];
        let epoch = self.epoch.lock().to_string();
        self.tell(from, &epoch, json!({ "action": "Relocate", "prepareForFinalSync": true })).await;
        scene.group_is("web", |group| group.status.as_ref().unwrap().prepare_for_final_sync_complete).await;
        self.tell(from, &epoch, json!({ "prepareForFinalSync": false, "runFinalSync": true })).await;
        scene.delete(&scene.claims, "one").await;
        scene.group_is("web", |group| group.status.as_ref().unwrap().final_sync_complete).await;
    }

    /// Relocates the application; what it finds there is told.
    pub async fn relocate(&self, from: usize, to: usize) -> String {
        self.last_copy(from).await;
        let epoch = self.next_epoch();
        self.withdraw(from, &epoch, "Relocate").await;
        self.sides[from].state("web", "Secondary").await;
        self.tell(to, &epoch, json!({ "replicationState": "primary", "action": "Relocate" })).await;
        let found = self.taken_over(to).await;
        self.sides[from].gone(&self.sides[from].claims, "one").await;
        found
    }
}

async fn carry(sides: Arc<[Scene; 2]>, manner: Arc<Mutex<Manner>>) {
    let mut carried = Carried::default();
    loop {
        let behaves = manner.lock().clone();
        for (at, scene) in sides.iter().enumerate() {
            provision(scene).await;
            receive(scene, at, &sides[1 - at], &behaves, &mut carried).await;
            if !behaves.parted {
                send(scene, at, &sides[1 - at], &mut carried).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn merge(patch: Value) -> Patch<Value> {
    Patch::Merge(patch)
}

/// Volumes for claims that are to be filled from an image.
async fn provision(scene: &Scene) {
    let Ok(all) = scene.claims.list(&ListParams::default()).await else { return };
    for claim in all.items {
        let spec = claim.spec.clone().unwrap_or_default();
        let (Some(source), None) = (spec.data_source, spec.volume_name) else { continue };
        let Ok(Some(image)) = scene.images.get_opt(&source.name).await else { continue };
        if image.status.as_ref().and_then(|status| status.ready_to_use) != Some(true) {
            continue;
        }
        let uid = claim.metadata.uid.clone().unwrap();
        let volume = scene.volume_json(claim.metadata.name.as_deref().unwrap()).with(|volume| {
            volume.metadata.name = Some(format!("pvc-{uid}"));
            volume.metadata.annotations =
                Some([(CONTENT.to_owned(), note(&image, CONTENT).unwrap_or_default())].into());
            let spec = volume.spec.as_mut().unwrap();
            spec.csi.as_mut().unwrap().volume_handle = format!("handle-{uid}");
            spec.claim_ref.as_mut().unwrap().uid = Some(uid);
        });
        let _ = scene.volumes.create(&PostParams::default(), &volume).await;
    }
}

/// Makes images ready, and names those of whole copies.
async fn receive(scene: &Scene, at: usize, from: &Scene, behaves: &Manner, carried: &mut Carried) {
    let Ok(images) = scene.images.list(&ListParams::default()).await else { return };
    let ready =
        |image: &VolumeSnapshot| image.status.as_ref().and_then(|status| status.ready_to_use) == Some(true);
    for image in images.items.iter().filter(|image| !ready(image) && !behaves.unready) {
        let name = image.metadata.name.as_deref().unwrap();
        let status = json!({"status": { "readyToUse": true, "restoreSize": "1Gi", "boundVolumeSnapshotContentName": "c" }});
        let _ = scene.images.patch_status(name, &PatchParams::default(), &merge(status)).await;
    }
    let Ok(receivers) = scene.destinations.list(&ListParams::default()).await else { return };
    for receiver in receivers.items {
        let name = receiver.metadata.name.clone().unwrap();
        if receiver.status.is_none() {
            let status = json!({"status": { "rsyncTLS": { "address": "10.0.0.1" } }});
            let _ = scene.destinations.patch_status(&name, &PatchParams::default(), &merge(status)).await;
        }
        let Some(copy) = carried.under_way.get(&(at, name.clone())).cloned() else { continue };
        if !images
            .items
            .iter()
            .any(|image| image.metadata.name.as_deref() == Some(&copy.image) && ready(image))
        {
            continue;
        }
        let status = json!({"status": {
            "latestImage": { "apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": copy.image },
            "lastSyncTime": cut(copy.generation),
            "external": { "executor": "lifeboat", "generation": copy.generation.to_string(), "cut": cut(copy.generation),
                "lineage": copy.lineage, "unpublished": null, "unpublishedCut": null },
        }});
        let _ = scene.destinations.patch_status(&name, &PatchParams::default(), &merge(status)).await;
        let told = json!({"status": { "lastSyncTime": cut(copy.generation), "lastSyncDuration": "0s", "lastManualSync": copy.word,
            "external": { "executor": "lifeboat", "echo": copy.word },
            "conditions": [{ "type": "Synchronizing", "status": "False", "reason": "WaitingForSchedule", "message": "",
                "lastTransitionTime": cut(copy.generation) }] }});
        let _ = from.sources.patch_status(&name, &PatchParams::default(), &merge(told)).await;
        carried.under_way.remove(&(at, name.clone()));
        carried.sent.insert((1 - at, name), (copy.word, copy.content));
    }
}

/// When a copy was cut.
pub fn cut(generation: u32) -> String {
    format!("2029-12-31T23:{:02}:00Z", generation % 60)
}

/// Cuts what is due, and makes an image of it at the other side.
async fn send(scene: &Scene, at: usize, to: &Scene, carried: &mut Carried) {
    let Ok(sources) = scene.sources.list(&ListParams::default()).await else { return };
    for source in sources.items {
        let Some((name, word, content, lineage)) = due(scene, at, &source, carried).await else { continue };
        let there: Option<ReplicationDestination> = to.destinations.get_opt(&name).await.unwrap_or_default();
        let Some(there) = there.filter(|one| one.metadata.deletion_timestamp.is_none() && !one.spec.paused)
        else {
            continue;
        };
        if there.status.is_none() || carried.under_way.contains_key(&(1 - at, name.clone())) {
            continue;
        }
        carried.copies += 1;
        let generation = carried.copies;
        let image = format!("{name}-{generation}");
        let made: VolumeSnapshot = serde_json::from_value(json!({
            "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
            "metadata": { "name": image, "namespace": to.mark,
                "labels": { lifeboat_api::labels::RECEIVER_UID: there.metadata.uid }, "annotations": { CONTENT: content, annotations::RECEIVER: name,
                annotations::IMAGE_CUT: cut(generation), annotations::IMAGE_GENERATION: generation.to_string(),
                annotations::LINEAGE: lineage } },
            "spec": { "source": { "persistentVolumeClaimName": name } },
        }))
        .unwrap();
        if to.images.create(&PostParams::default(), &made).await.is_err() {
            continue;
        }
        let status = json!({"status": { "external": { "unpublished": generation.to_string(), "unpublishedCut": cut(generation) } }});
        let _ = to.destinations.patch_status(&name, &PatchParams::default(), &merge(status)).await;
        carried.under_way.insert((1 - at, name), Copy { image, word, generation, content, lineage });
    }
}

/// What a sender has to copy now: its claim, the word that asks for it, what the volume holds and descends from.
async fn due(
    scene: &Scene,
    at: usize,
    source: &ReplicationSource,
    carried: &Carried,
) -> Option<(String, Option<String>, String, String)> {
    let name = source.metadata.name.clone()?;
    let word = source.spec.trigger.as_ref().and_then(|trigger| trigger.manual.clone());
    if source.metadata.deletion_timestamp.is_some()
        || word.as_deref().is_some_and(|word| word.starts_with("PREPARE"))
    {
        return None;
    }
    let claim: PersistentVolumeClaim = scene.claims.get_opt(&name).await.ok()??;
    let lineage = note(&claim, annotations::LINEAGE).or(claim.metadata.uid.clone())?;
    let volume = scene.volumes.get_opt(claim.spec?.volume_name.as_deref()?).await.ok()??;
    let content = note(&volume, CONTENT)?;
    let done = source.status.as_ref().is_some_and(|status| status.last_sync_time.is_some());
    let sent = carried.sent.get(&(at, name.clone()));
    let same = done && sent == Some(&(word.clone(), content.clone()));
    (!same).then_some((name, word, content, lineage))
}
