//! A whole fleet: a hub with all of its controllers, two clusters with the real agent and the real protector, three API servers, and stores in folders.
//! Everybody acts with the rights of his manifest.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{Api, Patch, PatchParams, PostParams};
use lifeboat_api::cluster::{ManagedCluster, Placement, PlacementDecision};
use lifeboat_api::ramen::{DRCluster, DRPlacementControl, DRPolicy, VolumeReplicationGroup};
use lifeboat_api::work::ManifestWork;
use lifeboat_apiserver::User;
use lifeboat_engine::{Clock, Settings};
use lifeboat_fleet::{Agent, AgentSettings, Allowed, access, agent};
use lifeboat_hub::cluster::check::Buckets;
use lifeboat_hub::{cluster, drpc, policy};
use lifeboat_protect::ledger::Ledger;
use lifeboat_protect::run::{kinds, protector};
use lifeboat_protect::stores::Stores;
use lifeboat_protect::view::Setup;
use lifeboat_testbed::{Cluster, NotYet, Task};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// Where the configuration and the keys are, on every cluster.
const SYSTEM: &str = "ramen-system";

/// Runs all controllers of a hub.
pub async fn run_hub(client: kube::Client, clock: Clock) {
    let setup = drpc::Setup::usual(client.clone(), SYSTEM);
    let found = drpc::kinds(&client).await.unwrap();
    let mut hub = drpc::serve(client, clock.clone(), Settings::default(), found, setup);
    let shared = hub.shared();
    let engine = hub.engine();
    let setup = cluster::Setup { namespace: SYSTEM.to_owned(), only: None };
    let watched = cluster::Watched::beside(engine, setup, shared);
    let stores = cluster::controller(engine, &watched, Arc::new(Buckets));
    policy::controller(engine, &watched);
    lifeboat_fleet::hub::join(engine, clock);
    tokio::select! {
        () = hub.run(std::future::pending()) => {}
        () = stores.run() => {}
    }
}

/// One managed cluster.
pub struct Site {
    pub name: &'static str,
    pub cluster: Cluster,
    /// What its protector sees of stores.
    pub ledger: Arc<dyn Ledger>,
    tasks: Vec<Task>,
}

impl Site {
    pub fn new(name: &'static str, cluster: Cluster) -> Self {
        let ledger = Arc::new(Stores::new(cluster.clock()));
        Self { name, cluster, ledger, tasks: Vec::new() }
    }

    /// Its agent, between these clients, and its protector.
    pub async fn start(&mut self, above: kube::Client, below: kube::Client) {
        let clock = self.cluster.clock();
        let made = agent(Agent {
            hub: above,
            cluster: below,
            name: self.name.to_owned(),
            clock: clock.clone(),
            settings: AgentSettings::default(),
            allowed: Allowed::default(),
        });
        self.tasks.push(Task::spawn(made.run(std::future::pending())));
        let client = self.cluster.account("protector").await;
        let setup = Setup { namespace: SYSTEM.into(), cluster: format!("id-{}", self.name), only: None };
        let known = kinds(&client).await.unwrap();
        let made = protector(client, clock, Settings::default(), known, self.ledger.clone(), setup);
        self.tasks.push(Task::spawn(made.run(std::future::pending())));
    }

    /// Everything on it stops; what it holds stays.
    pub fn die(&mut self) {
        self.tasks.clear();
    }

    pub async fn group(&self) -> Option<VolumeReplicationGroup> {
        let groups: Api<VolumeReplicationGroup> = Api::namespaced(self.cluster.client(), "shop");
        groups.get_opt("web").await.unwrap()
    }
}

/// The client that the agent of a cluster has on the hub.
pub async fn agent_on(hub: &Cluster, name: &str) -> kube::Client {
    hub.client_as(&User::new(&access::user(name), &[&access::group(name)])).await
}

async fn apply<K>(api: &Api<K>, object: Value)
where
    K: kube::Resource + serde::de::DeserializeOwned + Clone + std::fmt::Debug,
{
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    api.patch(&name, &PatchParams::apply("test").force(), &Patch::Apply(object)).await.unwrap();
}

/// Kinds, namespaces, stores and clusters; nobody works yet.
pub async fn furnish(hub: &Cluster, sites: [&Site; 2], folder: &Path) {
    for cluster in [hub, &sites[0].cluster, &sites[1].cluster] {
        cluster.install(&lifeboat_api::crds()).await;
    }
    let client = hub.client();
    let spaces: Api<Namespace> = Api::all(client.clone());
    for name in ["shop", SYSTEM] {
        apply(&spaces, json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }))
            .await;
    }
    let secrets: Api<Secret> = Api::namespaced(client.clone(), SYSTEM);
    let mut profiles = Vec::new();
    for site in sites {
        let name = site.name;
        std::fs::create_dir_all(folder.join(name)).unwrap();
        apply(
            &secrets,
            json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": { "name": format!("keys-{name}") },
                "stringData": { "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key" },
            }),
        )
        .await;
        profiles.push(json!({
            "s3ProfileName": name, "s3Bucket": name, "s3SecretRef": { "name": format!("keys-{name}") },
            "s3CompatibleEndpoint": format!("file://{}", folder.display()),
        }));
    }
    let config = json!({ "ramenControllerType": "dr-hub", "s3StoreProfiles": profiles }).to_string();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), SYSTEM);
    apply(
        &maps,
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "ramen-hub-operator-config" },
            "data": { "ramen_manager_config.yaml": config },
        }),
    )
    .await;
    let managed: Api<ManagedCluster> = Api::all(client);
    for site in sites {
        let cluster = json!({
            "metadata": { "name": site.name }, "spec": { "hubAcceptsClient": true, "leaseDurationSeconds": 5 },
        });
        managed.create(&PostParams::default(), &serde_json::from_value(cluster).unwrap()).await.unwrap();
    }
}

/// What a user has on the hub: clusters, a policy and an application.
pub struct Person {
    hub: Cluster,
    pub drpcs: Api<DRPlacementControl>,
    pub clusters: Api<DRCluster>,
    pub policies: Api<DRPolicy>,
}

impl Person {
    pub fn of(hub: &Cluster) -> Self {
        let client = hub.client();
        Self {
            hub: hub.clone(),
            drpcs: Api::namespaced(client.clone(), "shop"),
            clusters: Api::all(client.clone()),
            policies: Api::all(client),
        }
    }

    /// Two clusters and a policy; waits until it can be used.
    pub async fn pair(&self) {
        for name in ["east", "west"] {
            let one =
                json!({ "metadata": { "name": name }, "spec": { "s3ProfileName": name, "region": "r" } });
            self.clusters
                .create(&PostParams::default(), &serde_json::from_value(one).unwrap())
                .await
                .unwrap();
        }
        let both = json!({
            "metadata": { "name": "both" }, "spec": { "schedulingInterval": "1m", "drClusters": ["east", "west"] },
        });
        self.policies.create(&PostParams::default(), &serde_json::from_value(both).unwrap()).await.unwrap();
        for name in ["east", "west"] {
            self.cluster_says(name, "True", "").await;
        }
        self.policy_says("True", "").await;
    }

    /// Waits until a DRCluster is validated or not, with these words in its message.
    pub async fn cluster_says(&self, name: &str, status: &str, words: &str) {
        self.hub
            .eventually(&format!("DRCluster {name} {status} {words}"), || async {
                let shown = self.clusters.get(name).await?.status.unwrap_or_default().conditions;
                heard(&shown, status, words)
            })
            .await;
    }

    /// The same of the policy.
    pub async fn policy_says(&self, status: &str, words: &str) {
        self.hub
            .eventually(&format!("the policy {status} {words}"), || async {
                let shown = self.policies.get("both").await?.status.unwrap_or_default().conditions;
                heard(&shown, status, words)
            })
            .await;
    }

    /// An application that is left to us, on east.
    pub async fn protect(&self) {
        let placements: Api<Placement> = Api::namespaced(self.hub.client(), "shop");
        let placement = json!({
            "metadata": {
                "name": "web",
                "annotations": { "cluster.open-cluster-management.io/experimental-scheduling-disable": "true" },
            },
            "spec": { "numberOfClusters": 1 },
        });
        placements.create(&PostParams::default(), &serde_json::from_value(placement).unwrap()).await.unwrap();
        let drpc = json!({
            // It has no PVCs, and says so.
            "metadata": { "name": "web", "annotations": { "ramendr.openshift.io/without-claims": "true" } },
            "spec": {
                "placementRef": { "name": "web" }, "drPolicyRef": { "name": "both" },
                "pvcSelector": { "matchLabels": { "app": "web" } }, "preferredCluster": "east",
            },
        });
        self.drpcs.create(&PostParams::default(), &serde_json::from_value(drpc).unwrap()).await.unwrap();
    }

    pub async fn ask(&self, spec: Value) {
        self.drpcs
            .patch("web", &PatchParams::default(), &Patch::Merge(json!({ "spec": spec })))
            .await
            .unwrap();
    }

    /// Waits until phase and progression are these.
    pub async fn is(&self, phase: &str, progression: &str) {
        self.hub
            .eventually(&format!("{phase}/{progression}"), || async {
                let status = self.drpcs.get("web").await?.status.unwrap_or_default();
                let shown = (
                    status.phase.as_ref().map_or("", |phase| phase.as_str()).to_owned(),
                    status.progression.as_ref().map_or("", |step| step.as_str()).to_owned(),
                );
                match shown == (phase.to_owned(), progression.to_owned()) {
                    true => Ok(()),
                    false => Err(NotYet(format!("{shown:?} {:#?}", status.blockers))),
                }
            })
            .await;
    }

    /// Waits until all of the application is said to be protected.
    pub async fn is_safe(&self) {
        self.hub
            .eventually("Protected", || async {
                let shown = self.drpcs.get("web").await?.status.unwrap_or_default().conditions;
                match shown.iter().find(|one| one.type_ == "Protected") {
                    Some(one) if one.status == "True" => Ok(()),
                    other => Err(NotYet(format!("{other:?}"))),
                }
            })
            .await;
    }

    /// Where the application is placed; where it is only kept stands in brackets.
    pub async fn placed(&self) -> Vec<String> {
        let decisions: Api<PlacementDecision> = Api::namespaced(self.hub.client(), "shop");
        let all = decisions.list(&Default::default()).await.unwrap();
        let all = all.items.into_iter().filter_map(|one| one.status).flat_map(|status| status.decisions);
        let shown = |reason: &str, name: String| if reason.is_empty() { name } else { format!("({name})") };
        all.map(|one| shown(&one.reason, one.cluster_name)).collect()
    }

    /// Waits until nothing of the application's protection is left on the hub.
    pub async fn gone(&self) {
        self.hub
            .eventually("nothing is left", || async {
                let works: Api<ManifestWork> = Api::all(self.hub.client());
                let left = works.list(&Default::default()).await?.items;
                let left: Vec<String> = left
                    .into_iter()
                    .filter_map(|work| work.metadata.name)
                    .filter(|name| name.starts_with("web-"))
                    .collect();
                match (self.drpcs.get_opt("web").await?, left.is_empty()) {
                    (None, true) => Ok(()),
                    (drpc, _) => Err(NotYet(format!("{left:?} {:?}", drpc.map(|drpc| drpc.status)))),
                }
            })
            .await;
    }
}

fn heard(
    shown: &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition],
    status: &str,
    words: &str,
) -> Result<(), NotYet> {
    match shown.iter().find(|one| one.type_ == "Validated") {
        Some(one) if one.status == status && one.message.contains(words) => Ok(()),
        other => Err(NotYet(format!("{other:?}"))),
    }
}
