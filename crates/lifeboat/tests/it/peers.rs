//! What Lifeboat writes is what its names promise: every version of every object of a story that really ran, and every record in the
//! stores, decoded strictly by the Go types of VolSync, csi-addons, Open Cluster Management and, where its source is there, Ramen.
//!
//! The story: two applications, one copied by the mover, one on mirrored storage, are deployed, failed over and relocated home.

use crate::process::{Up, client};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::discovery::{Discovery, Scope};
use kube::runtime::{WatchStreamExt as _, watcher};
use lifeboat_api::cluster::Placement;
use lifeboat_api::ramen::ProtectedVolumeReplicationGroupList;
use lifeboat_api::replication::VolumeReplicationClass;
use lifeboat_reference::judge::{Types, judge, ramen_source};
use lifeboat_reference::{Lack, skip, skip_for};
use serde::Deserialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const CLUSTERS: [&str; 3] = ["hub", "east", "west"];
/// The applications, and the storage class of their claims.
const APPLICATIONS: [(&str, &str); 2] = [("ferry", "topolvm-provisioner"), ("buoy", "topolvm-mirrored")];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Verdict {
    ramen_types: bool,
    decoded: BTreeMap<String, usize>,
    faults: BTreeMap<String, String>,
}

/// Where the story's objects and stores are.
struct Told {
    objects: PathBuf,
    stores: Vec<PathBuf>,
}

static STORY: LazyLock<Told> = LazyLock::new(|| {
    // Beside what Cargo keeps, and not in a folder that a killed test would leave behind.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers-story");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(story(&folder));
    let stores = ["east", "west"].map(|name| folder.join("data").join(name).join("objects"));
    Told { objects: folder.join("objects"), stores: stores.into() }
});

fn lifeboat(data: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lifeboat"))
        .args(args)
        .args(["--context", "hub", "--kubeconfig"])
        .arg(data.join("kubeconfig"))
        .output()
        .expect("ran")
}

/// Asks again until the answer is yes.
async fn until(data: &Path, args: &[&str]) {
    let began = Instant::now();
    loop {
        let output = lifeboat(data, args);
        if output.status.success() {
            return;
        }
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(began.elapsed() < Duration::from_secs(180), "{args:?}: {said}");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// Keeps every version of the objects of a kind that it sees.
async fn keep(client: kube::Client, cluster: &'static str, kind: ApiResource, folder: PathBuf) {
    let api: Api<DynamicObject> = Api::all_with(client, &kind);
    let mut seen = watcher(api, watcher::Config::default()).default_backoff().applied_objects().boxed();
    while let Some(event) = seen.next().await {
        // A watch that broke is begun again.
        let Ok(mut object) = event else { continue };
        // A list leaves them out.
        object.types =
            Some(kube::core::TypeMeta { api_version: kind.api_version.clone(), kind: kind.kind.clone() });
        let meta = &object.metadata;
        let words = [&meta.namespace, &meta.name, &meta.resource_version]
            .map(|word| word.clone().unwrap_or_default());
        let file = format!("{cluster} {} {}.json", kind.plural, words.join(" "));
        std::fs::write(folder.join(file), serde_json::to_vec(&object).expect("JSON")).expect("written");
    }
}

/// Begins to keep everything that peers have a type for.
async fn watch(data: &Path, folder: &Path) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for cluster in CLUSTERS {
        let client = client(data, cluster).await;
        let found = Discovery::new(client.clone()).run().await.expect("discovered");
        for group in found.groups() {
            for (kind, abilities) in group.resources_by_stability() {
                let ours = !kind.group.is_empty() && !kind.group.ends_with(".k8s.io")
                    || kind.group.starts_with("snapshot.");
                let ours = ours || kind.kind.starts_with("PersistentVolume") || kind.kind == "ConfigMap";
                if ours
                    && abilities.supports_operation("watch")
                    && matches!(abilities.scope, Scope::Cluster | Scope::Namespaced)
                {
                    tasks.spawn(keep(client.clone(), cluster, kind, folder.to_owned()));
                }
            }
        }
    }
    tasks
}

async fn place(data: &Path, name: &str, class: &str) {
    let hub = client(data, "hub").await;
    let space = json!({"metadata": {"name": name}});
    make(Api::<Namespace>::all(hub.clone()), space).await;
    let placement = json!({
        "metadata": {"name": name, "annotations": {"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"}},
        "spec": {"numberOfClusters": 1},
    });
    make(Api::<Placement>::namespaced(hub.clone(), name), placement).await;
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "logbook", "labels": {"app": name}},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class, "resources": {"requests": {"storage": "16Mi"}}},
    });
    let source = json!({
        "metadata": {"name": name, "labels": {"apps.open-cluster-management.io/manifests-of": name}},
        "data": {"app.yaml": claim.to_string()},
    });
    make(Api::<ConfigMap>::namespaced(hub, name), source).await;
}

async fn make<K>(api: Api<K>, object: serde_json::Value)
where
    K: kube::Resource<DynamicType = ()>
        + serde::de::DeserializeOwned
        + serde::Serialize
        + Clone
        + std::fmt::Debug,
{
    let mut object = object;
    object["apiVersion"] = json!(K::api_version(&()));
    object["kind"] = json!(K::kind(&()));
    api.create(&PostParams::default(), &serde_json::from_value(object).expect("an object"))
        .await
        .expect("made");
}

async fn story(folder: &Path) {
    let (data, objects) = (folder.join("data"), folder.join("objects"));
    std::fs::create_dir_all(&objects).expect("a folder");
    let up = Up::start(&data, &[]);
    let watching = watch(&data, &objects).await;
    // Storage that wants to be told before a failover.
    for cluster in ["east", "west"] {
        let classes: Api<VolumeReplicationClass> = Api::all(client(&data, cluster).await);
        let modes = json!({"metadata": {"labels": {"ramendr.openshift.io/maintenancemodes": "Failover"}}});
        until_made(&classes, "topolvm-mirrored", &modes).await;
    }
    until(&data, &["doctor"]).await;
    for (name, class) in APPLICATIONS {
        place(&data, name, class).await;
        let claims = format!("app={name}");
        until(
            &data,
            &["protect", name, "--policy", "every-minute", "--on", "east", "--claims", &claims, "-n", name],
        )
        .await;
    }
    for (act, to) in [("failover", "west"), ("relocate", "east")] {
        for (name, _) in APPLICATIONS {
            until(&data, &["status", name, "-n", name]).await;
            // Maintenance of the storage begins with the failover, and until then it stands in the way.
            until(&data, &[act, name, "--yes", "--even-if-blocked", "--to", to, "-n", name]).await;
        }
    }
    for (name, _) in APPLICATIONS {
        until(&data, &["status", name, "-n", name]).await;
    }
    list_the_protected(&data).await;
    drop(watching);
    assert_eq!(up.interrupt(), Some(0));
}

/// What Ramen's hub asks a cluster for when it has lost its memory.
async fn list_the_protected(data: &Path) {
    let lists: Api<ProtectedVolumeReplicationGroupList> = Api::all(client(data, "east").await);
    make(lists.clone(), json!({"metadata": {"name": "all"}, "spec": {"s3ProfileName": "east-store"}})).await;
    let began = Instant::now();
    while lists.get("all").await.expect("read").status.is_none_or(|status| status.items.len() < 2) {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing is listed");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn until_made(classes: &Api<VolumeReplicationClass>, name: &str, patch: &serde_json::Value) {
    let began = Instant::now();
    while let Err(error) = classes.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await {
        assert!(began.elapsed() < Duration::from_secs(60), "{error}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn ask(judge: &Path) -> Verdict {
    let output = Command::new(judge).arg(&STORY.objects).args(&STORY.stores).output().expect("ran");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a verdict")
}

/// Fields that only we have: other readers pass over them, and would lose them if they wrote the object.
const OURS: [&str; 7] = [
    "ramendr.openshift.io/v1alpha1/DRClusterConfig: unknown field \"status.storeFailures\"",
    "ramendr.openshift.io/v1alpha1/DRPlacementControl: unknown field \"status.blockers\"",
    "ramendr.openshift.io/v1alpha1/DRPlacementControl: unknown field \"status.epoch\"",
    "ramendr.openshift.io/v1alpha1/DRPlacementControl: unknown field \"status.lastFailover\"",
    "ramendr.openshift.io/v1alpha1/VolumeReplicationGroup: unknown field \"status.blockers\"",
    "ramendr.openshift.io/v1alpha1/VolumeReplicationGroup: unknown field \"status.epoch\"",
    "ramendr.openshift.io/v1alpha1/VolumeReplicationGroup: unknown field \"status.primaryEpoch\"",
];

#[track_caller]
fn check(verdict: &Verdict, kinds: &[&str]) {
    let missing: BTreeSet<_> = kinds.iter().filter(|kind| !verdict.decoded.contains_key(**kind)).collect();
    assert!(missing.is_empty(), "the story has none of {missing:?}: {:#?}", verdict.decoded);
    let faults: BTreeMap<_, _> =
        verdict.faults.iter().filter(|(fault, _)| !OURS.contains(&fault.as_str())).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

fn into() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

#[test]
fn what_bears_the_names_of_volsync_csi_addons_and_ocm_is_theirs() {
    match judge("peers", into(), Types::Public) {
        Err(why) => skip("peers::what_bears_the_names_of_volsync_csi_addons_and_ocm_is_theirs", why),
        Ok(judge) => check(
            &ask(&judge),
            &[
                "volsync.backube/v1alpha1/ReplicationSource",
                "volsync.backube/v1alpha1/ReplicationDestination",
                "replication.storage.openshift.io/v1alpha1/VolumeReplication",
                "replication.storage.openshift.io/v1alpha1/VolumeReplicationClass",
                "snapshot.storage.k8s.io/v1/VolumeSnapshot",
                "snapshot.storage.k8s.io/v1/VolumeSnapshotContent",
                "work.open-cluster-management.io/v1/ManifestWork",
                "work.open-cluster-management.io/v1/AppliedManifestWork",
                "view.open-cluster-management.io/v1beta1/ManagedClusterView",
                "cluster.open-cluster-management.io/v1/ManagedCluster",
                "cluster.open-cluster-management.io/v1beta1/PlacementDecision",
                "v1/PersistentVolume",
                "v1/PersistentVolumeClaim",
                "record of v1/PersistentVolume",
                "record of v1/PersistentVolumeClaim",
            ],
        ),
    }
}

#[test]
fn what_bears_ramens_names_is_ramens() {
    let test = "peers::what_bears_ramens_names_is_ramens";
    if let Err(why) = ramen_source() {
        return skip_for(Lack::Data, test, why);
    }
    match judge("peers", into(), Types::Ramen) {
        Err(why) => skip(test, why),
        Ok(judge) => {
            let verdict = ask(&judge);
            assert!(verdict.ramen_types);
            check(
                &verdict,
                &[
                    "ramendr.openshift.io/v1alpha1/VolumeReplicationGroup",
                    "ramendr.openshift.io/v1alpha1/DRPlacementControl",
                    "ramendr.openshift.io/v1alpha1/DRPolicy",
                    "ramendr.openshift.io/v1alpha1/DRCluster",
                    "ramendr.openshift.io/v1alpha1/DRClusterConfig",
                    "ramendr.openshift.io/v1alpha1/MaintenanceMode",
                    "ramendr.openshift.io/v1alpha1/ProtectedVolumeReplicationGroupList",
                    "record of ramendr.openshift.io/v1alpha1/VolumeReplicationGroup",
                    "RamenConfig",
                ],
            );
        }
    }
}
