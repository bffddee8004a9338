//! `lifeboat up` as a person uses it: an application placed, protected, looked at and moved from the command line; a pod that is really a
//! process.

use crate::process::{Up, client};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use lifeboat_api::cluster::Placement;
use lifeboat_api::ramen::DRPlacementControl;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

const SPACE: &str = "shop";

fn lifeboat(data: &Path, context: &str, args: &[&str]) -> Output {
    std::process::Command::new(env!("CARGO_BIN_EXE_lifeboat"))
        .args(args)
        .args(["--context", context, "--kubeconfig"])
        .arg(data.join("kubeconfig"))
        .output()
        .expect("ran")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Asks again until the exit code is the one that is wanted.
async fn until(data: &Path, context: &str, args: &[&str], wanted: i32) -> Output {
    let began = Instant::now();
    loop {
        let output = lifeboat(data, context, args);
        if output.status.code() == Some(wanted) {
            return output;
        }
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "{args:?} gave {:?}: {}",
            output.status,
            text(&output)
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn make<K>(api: Api<K>, object: Value)
where
    K: kube::Resource + serde::de::DeserializeOwned + serde::Serialize + Clone + std::fmt::Debug,
{
    let object: K = serde_json::from_value(object).expect("an object");
    api.create(&PostParams::default(), &object).await.expect("made");
}

async fn running(pods: &Api<Pod>, but: Option<&str>) -> Pod {
    let began = Instant::now();
    loop {
        let all = pods.list(&ListParams::default()).await.expect("listed").items;
        let runs = |pod: &&Pod| {
            let status = pod.status.as_ref();
            let phase = status.and_then(|status| status.phase.as_deref());
            phase == Some("Running")
                && pod.metadata.deletion_timestamp.is_none()
                && pod.metadata.uid.as_deref() != but
        };
        if let Some(pod) = all.iter().find(runs) {
            return pod.clone();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{all:#?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Processes of this machine that belong to a pod of a fleet kept in a folder.
fn processes(data: &Path, pod: &str) -> usize {
    let marks = [format!("LIFEBOAT_POD={SPACE}/{pod}"), data.display().to_string()];
    let carries = |entry: std::fs::DirEntry| {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let environment = String::from_utf8_lossy(&environment).into_owned();
        marks.iter().all(|mark| environment.contains(mark.as_str()))
    };
    std::fs::read_dir("/proc").expect("a list").flatten().map(carries).filter(|one| *one).count()
}

const MANIFESTS: &str = r#"
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: records, labels: {app: web}}
spec: {accessModes: [ReadWriteOnce], storageClassName: topolvm-provisioner, resources: {requests: {storage: 16Mi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: lifeboat
        command: [lifeboat, write-records, "--folder=records", --while-watched]
        volumeMounts: [{name: records, mountPath: /records}]
      volumes: [{name: records, persistentVolumeClaim: {claimName: records}}]
"#;

async fn place(data: &Path) {
    let hub = client(data, "hub").await;
    make::<Namespace>(Api::all(hub.clone()), json!({"metadata": {"name": SPACE}})).await;
    let placement = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": "web", "annotations": {"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"}},
        "spec": {"numberOfClusters": 1},
    });
    make::<Placement>(Api::namespaced(hub.clone(), SPACE), placement).await;
    let source = json!({
        "metadata": {"name": "web", "labels": {"apps.open-cluster-management.io/manifests-of": "web"}},
        "data": {"app.yaml": MANIFESTS},
    });
    make::<ConfigMap>(Api::namespaced(hub, SPACE), source).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_is_protected_and_moved_from_the_command_line() {
    let data = tempfile::tempdir().expect("folder");
    let folder = data.path();
    let up = Up::start(folder, &[]);
    until(folder, "hub", &["doctor"], 0).await;
    assert_eq!(
        lifeboat(folder, "hub", &["status", "web"]).status.code(),
        Some(5),
        "there is no application yet"
    );
    place(folder).await;
    let space = ["-n", SPACE];
    let no_policy = lifeboat(folder, "hub", &["protect", "web", "--policy", "none", "-n", SPACE]);
    assert_eq!(no_policy.status.code(), Some(5), "{}", text(&no_policy));
    let elsewhere = lifeboat(
        folder,
        "hub",
        &["protect", "web", "--policy", "every-minute", "--on", "north", "-n", SPACE],
    );
    assert_eq!(elsewhere.status.code(), Some(2), "{}", text(&elsewhere));
    // A wrong context must not look like a hub on which all is well.
    for args in
        [&["status"][..], &["status", "web"], &["plan", "failover", "web"], &["explain", "app", "web"]]
    {
        let astray = lifeboat(folder, "east", args);
        assert_eq!(astray.status.code(), Some(5), "{args:?}: {}", text(&astray));
        assert!(text(&astray).contains("not the hub"), "{args:?}: {}", text(&astray));
    }
    let astray = lifeboat(folder, "east", &["doctor"]);
    assert_eq!(astray.status.code(), Some(3), "{}", text(&astray));
    assert!(text(&astray).contains("not the hub"), "{}", text(&astray));
    let protect =
        ["protect", "web", "--policy", "every-minute", "--on", "east", "--claims", "app=web", "-n", SPACE];
    let made = lifeboat(folder, "hub", &protect);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made));
    let drpcs: Api<DRPlacementControl> = Api::namespaced(client(folder, "hub").await, SPACE);
    let writers = drpcs.get("web").await.expect("a DRPlacementControl").metadata.managed_fields;
    let named = |one: &ManagedFieldsEntry| one.manager.as_deref() == Some("lifeboat");
    assert!(writers.as_ref().is_some_and(|all| all.iter().any(named)), "{writers:?}");
    let again = lifeboat(folder, "hub", &protect);
    assert!(again.status.success() && text(&again).contains("already"), "{}", text(&again));
    let elsewhere = protect.map(|arg| if arg == "east" { "west" } else { arg });
    let elsewhere = lifeboat(folder, "hub", &elsewhere);
    assert_eq!(elsewhere.status.code(), Some(4), "{}", text(&elsewhere));
    assert!(text(&elsewhere).contains("lifeboat relocate web"), "{}", text(&elsewhere));

    // Not protected yet is another code than protected.
    let fine = until(folder, "hub", &["status", "web"], 0).await;
    assert!(text(&fine).contains("shop/web") && text(&fine).contains("east"), "{}", text(&fine));
    until(folder, "east", &["status", "vrg", "web", "-n", SPACE], 0).await;

    // A pod is a process: deleting it ends the one and starts another.
    let pods: Api<Pod> = Api::namespaced(client(folder, "east").await, SPACE);
    let first = running(&pods, None).await;
    let name = first.metadata.name.clone().expect("a name");
    assert_eq!(processes(folder, &name), 1);
    pods.delete(&name, &DeleteParams::default()).await.expect("deleted");
    let second = running(&pods, first.metadata.uid.as_deref()).await;
    let began = Instant::now();
    while processes(folder, &name) > usize::from(second.metadata.name == first.metadata.name) {
        assert!(began.elapsed() < Duration::from_secs(30), "the process of a deleted pod still runs");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    let plan = until(folder, "hub", &["plan", "failover", "web", "-n", SPACE, "-o", "json"], 0).await;
    let plan: Value = serde_json::from_slice(&plan.stdout).expect("JSON");
    assert_eq!((&plan["from"], &plan["to"]), (&json!("east"), &json!("west")), "{plan:#}");
    for command in [&["plan", "failover"][..], &["failover"], &["relocate"]] {
        let args = [command, &["web", "--to", "mars", "-n", SPACE]].concat();
        let nowhere = lifeboat(folder, "hub", &args);
        assert_eq!(nowhere.status.code(), Some(2), "{args:?}: {}", text(&nowhere));
        assert!(text(&nowhere).contains("those are east and west"), "{args:?}: {}", text(&nowhere));
    }
    let told = lifeboat(folder, "hub", &["explain", "app", "web", "-n", SPACE, "-o", "json"]);
    let told: Value = serde_json::from_slice(&told.stdout).expect("JSON");
    assert_eq!((&told["application"], &told["primary"]), (&json!("shop/web"), &json!("east")), "{told:#}");
    let unasked = lifeboat(folder, "hub", &[&["failover", "web"][..], &space[..]].concat());
    assert_eq!(
        unasked.status.code(),
        Some(1),
        "without --yes and a terminal nothing is done: {}",
        text(&unasked)
    );
    let moved = lifeboat(folder, "hub", &["relocate", "web", "--yes", "--to", "west", "-n", SPACE]);
    assert_eq!(moved.status.code(), Some(0), "{}", text(&moved));
    assert!(text(&moved).contains("nothing is lost") && text(&moved).contains("done in"), "{}", text(&moved));
    running(&Api::namespaced(client(folder, "west").await, SPACE), None).await;

    let gathered = folder.join("gathered");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_lifeboat"))
        .args(["gather", "--contexts", "hub,east,west", "--kubeconfig"])
        .arg(folder.join("kubeconfig"))
        .arg("--into")
        .arg(&gathered)
        .output()
        .expect("ran");
    assert!(output.status.success(), "{}", text(&output));
    let works =
        std::fs::read_to_string(gathered.join("hub/manifestworks.work.open-cluster-management.io.yaml"));
    let works = works.expect("works");
    assert!(works.contains("left out") && !works.contains("psk.txt"), "no secret is gathered");
    let maps = std::fs::read_to_string(gathered.join("hub/configmaps.yaml")).expect("ConfigMaps");
    assert!(maps.contains("ramen-hub-operator-config") && !maps.contains("write-records"), "only ours");
    assert_eq!(up.interrupt(), Some(0));
}

#[test]
fn shells_are_served() {
    for shell in ["bash", "zsh", "fish"] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_lifeboat"))
            .args(["completion", shell])
            .output()
            .expect("ran");
        let script = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && script.contains("failover"), "{shell}");
        assert!(!script.contains("_arguments -C write-records"), "hidden commands are not offered");
    }
}
