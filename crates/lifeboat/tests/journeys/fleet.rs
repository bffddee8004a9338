//! A fleet of `lifeboat up`, used through its command line and kubeconfig as a person does.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Namespace of the application, on the hub and on its clusters.
pub const SPACE: &str = "shop";
/// Name of the application.
pub const NAME: &str = "web";
/// How often the application is copied: as often as it can be, because a journey waits for a copy after each step.
const INTERVAL: &str = "5s";
/// Name of the policy with that interval.
const POLICY: &str = "every-5s";
/// How long anything may take before a journey counts as stuck.
pub const PATIENCE: Duration = Duration::from_secs(100);

/// The way an application's volumes are replicated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Copied by the mover, kept as snapshots.
    Copied,
    /// Copied by the mover straight into the PVC of the other side.
    Direct,
    /// Mirrored by the storage.
    Mirrored,
}

impl Way {
    fn class(self) -> &'static str {
        match self {
            Self::Copied | Self::Direct => "topolvm-provisioner",
            Self::Mirrored => "topolvm-mirrored",
        }
    }
}

/// What a command of the CLI came to.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code.
    pub code: i32,
    /// Everything it printed.
    pub text: String,
}

/// A running fleet with one application.
pub struct Fleet {
    child: Child,
    folder: tempfile::TempDir,
    /// How the application is replicated.
    pub way: Way,
    /// How many PVCs the application has.
    pub claims: usize,
    /// How many MiB each PVC asks for.
    pub mebibytes: usize,
    /// How many pods each PVC has.
    pub replicas: usize,
}

fn program() -> PathBuf {
    std::env::var_os("LIFEBOAT_BIN").map_or_else(|| env!("CARGO_BIN_EXE_lifeboat").into(), PathBuf::from)
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // Ended already, as a rule.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Fleet {
    /// Starts it, with the application placed and protected on east, and a first copy made.
    pub async fn start(way: Way, claims: usize) -> Result<Self, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let errors = std::fs::File::create(folder.path().join("errors")).expect("a file");
        let mut child = Command::new(program())
            .arg("up")
            .arg("--data")
            .arg(folder.path())
            .args(["--interval", INTERVAL])
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .expect("lifeboat starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let ready = lines.any(|line| line.expect("text").contains("Ctrl-C"));
        assert!(ready, "lifeboat up ended early");
        std::thread::spawn(move || lines.for_each(drop));
        let fleet = Self { child, folder, way, claims, mebibytes: 64, replicas: 1 };
        fleet.until("the fleet is ready", &["doctor"], 0).await?;
        fleet.source().await;
        fleet.protect("east").await?;
        fleet.ready().await?;
        Ok(fleet)
    }

    /// The folder of the fleet.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The folder of a cluster.
    pub fn home(&self, cluster: &str) -> PathBuf {
        self.folder.path().join(cluster)
    }

    /// Empties a cluster that is lost, as a machine is that was bought in its place: no objects, no volumes, no records. Only its name and its
    /// certificates are as they were.
    pub fn wipe(&self, cluster: &str) {
        for entry in std::fs::read_dir(self.home(cluster)).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && path.file_name().is_some_and(|name| name != "pki") {
                std::fs::remove_dir_all(&path).expect("removed");
            }
        }
    }

    /// A client of a cluster.
    pub async fn client(&self, cluster: &str) -> kube::Client {
        let kubeconfig = Kubeconfig::read_from(self.folder.path().join("kubeconfig")).expect("a kubeconfig");
        let options = KubeConfigOptions { context: Some(cluster.to_owned()), ..Default::default() };
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a context");
        kube::Client::try_from(config).expect("a client")
    }

    /// Runs a command of the CLI at the hub.
    pub fn run(&self, args: &[&str]) -> Ran {
        self.run_at("hub", args)
    }

    /// Runs a command of the CLI at a cluster.
    pub fn run_at(&self, cluster: &str, args: &[&str]) -> Ran {
        let output = Command::new(program())
            .args(args)
            .args(["--context", cluster, "--kubeconfig"])
            .arg(self.folder.path().join("kubeconfig"))
            .stdin(Stdio::null())
            .output()
            .expect("ran");
        let text =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        Ran { code: output.status.code().unwrap_or(-1), text }
    }

    /// Runs a command about the application.
    pub fn app(&self, args: &[&str]) -> Ran {
        let (command, rest) = args.split_first().expect("a command");
        self.run(&[&[*command, NAME, "-n", SPACE], rest].concat())
    }

    /// Kills or revives a cluster.
    pub fn site(&self, command: &str, cluster: &str) -> Result<(), String> {
        let output = Command::new(program())
            .args([command, cluster, "--data"])
            .arg(self.folder.path())
            .output()
            .expect("ran");
        match output.status.success() {
            true => Ok(()),
            false => {
                Err(format!("lifeboat {command} {cluster}: {}", String::from_utf8_lossy(&output.stderr)))
            }
        }
    }

    /// Asks again until the exit code is the one that is wanted.
    pub async fn until(&self, what: &str, args: &[&str], wanted: i32) -> Result<Ran, String> {
        let began = Instant::now();
        loop {
            let ran = self.run(args);
            if ran.code == wanted {
                return Ok(ran);
            }
            if began.elapsed() > PATIENCE {
                return Err(format!(
                    "stuck: {what}: `lifeboat {}` gives {}:\n{}",
                    args.join(" "),
                    ran.code,
                    ran.text
                ));
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Waits until the application is protected and could fail over.
    pub async fn ready(&self) -> Result<(), String> {
        self.until("the application is protected and ready to fail over", &["status", NAME, "-n", SPACE], 0)
            .await
            .map(drop)
    }

    /// What the hub shows about the application.
    pub async fn drpc(&self) -> Option<lifeboat_api::ramen::DRPlacementControl> {
        Api::namespaced(self.client("hub").await, SPACE).get_opt(NAME).await.expect("read")
    }

    /// Protects the application at east.
    pub async fn protect(&self, on: &str) -> Result<(), String> {
        let args = ["protect", NAME, "--policy", POLICY, "--on", on, "--claims", "app=web", "-n", SPACE];
        self.until("protecting the application", &args, 0).await.map(drop)
    }

    /// What people keep in Git and bring to a hub: how it copies, and the application.
    pub async fn source(&self) {
        if self.way == Way::Direct {
            self.copy_directly().await;
        }
        self.place().await;
    }

    async fn copy_directly(&self) {
        let maps: Api<ConfigMap> = Api::namespaced(self.client("hub").await, "ramen-system");
        let name = "ramen-hub-operator-config";
        let map = maps.get(name).await.expect("the hub's configuration");
        let text = map.data.unwrap_or_default().remove("ramen_manager_config.yaml").expect("a configuration");
        let mut config: Value = serde_json::from_str(&text).expect("JSON");
        config["volSync"] = json!({"destinationCopyMethod": "Direct"});
        let patch = json!({"data": {"ramen_manager_config.yaml": config.to_string()}});
        let patch = kube::api::Patch::Merge(&patch);
        maps.patch(name, &kube::api::PatchParams::default(), &patch).await.expect("changed");
    }

    async fn place(&self) {
        let hub = self.client("hub").await;
        let space = json!({"metadata": {"name": SPACE}});
        let spaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(hub.clone());
        spaces
            .create(&PostParams::default(), &serde_json::from_value(space).expect("a namespace"))
            .await
            .expect("made");
        let placement = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": {"name": NAME, "annotations": {"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"}},
            "spec": {"numberOfClusters": 1},
        });
        make::<lifeboat_api::cluster::Placement>(&hub, placement).await;
        let source = json!({
            "metadata": {"name": NAME, "labels": {"apps.open-cluster-management.io/manifests-of": NAME}},
            "data": self.manifests(),
        });
        make::<ConfigMap>(&hub, source).await;
    }

    fn manifests(&self) -> Value {
        let all: Vec<String> = (0..self.claims).map(|number| manifests(self, number)).collect();
        json!({"app.yaml": all.join("---\n")})
    }

    /// Changes the application as its fields say now, where people change it: in its source.
    pub async fn change(&self) {
        let sources: Api<ConfigMap> = Api::namespaced(self.client("hub").await, SPACE);
        let patch = kube::api::Patch::Merge(json!({"data": self.manifests()}));
        sources.patch(NAME, &kube::api::PatchParams::default(), &patch).await.expect("changed");
    }
}

/// Name of a PVC of the application.
pub fn claim(number: usize) -> String {
    format!("data{number}")
}

fn manifests(fleet: &Fleet, number: usize) -> String {
    let name = claim(number);
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "labels": {"app": NAME}},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": fleet.way.class(),
            "resources": {"requests": {"storage": format!("{}Mi", fleet.mebibytes)}},
        },
    });
    let command = [
        "lifeboat",
        "write-records",
        "--folder=$(LIFEBOAT_VOLUME_DATA)",
        "--every=50",
        &format!("--writer=$(NODE)/{name}"),
        "--while-watched",
    ];
    let node = json!({"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}});
    let labels = json!({"app": NAME, "part": name});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": format!("writer-{name}")},
        "spec": {
            "replicas": fleet.replicas, "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "terminationGracePeriodSeconds": 5,
                    "containers": [{
                        "name": "main", "image": "lifeboat", "command": command, "env": [node],
                        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    }],
                    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}],
                },
            },
        },
    });
    format!("{claim}\n---\n{deployment}\n")
}

/// Makes an object in the application's namespace.
pub async fn make<K>(client: &kube::Client, object: Value)
where
    K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned,
{
    let object: K = serde_json::from_value(object).expect("an object");
    Api::namespaced(client.clone(), SPACE).create(&PostParams::default(), &object).await.expect("made");
}

/// Deletes an object of the application's namespace; whether it was there.
pub async fn delete<K>(client: &kube::Client, name: &str) -> bool
where
    K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), SPACE);
    match api.delete(name, &DeleteParams::default()).await {
        Ok(_) => true,
        Err(kube::Error::Api(status)) if status.code == 404 => false,
        Err(error) => panic!("deleting {name}: {error}"),
    }
}

/// The volumes below a cluster's folder.
pub fn volumes(home: &Path) -> PathBuf {
    home.join("disks").join("volumes")
}
