//! What the stories are told with: a fleet of clusters, and the objects of a hub.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ObjectMeta, PostParams};
use lifeboat_api::cluster::{ManagedCluster, ManagedClusterSpec};
use lifeboat_api::view::{ManagedClusterView, ManagedClusterViewSpec, ViewScope};
use lifeboat_api::work::{ManifestWork, ManifestWorkSpec, Workload};
use lifeboat_apiserver::User;
use lifeboat_engine::Settings;
use lifeboat_engine::conditions::find;
use lifeboat_fleet::{Agent, AgentSettings, Allowed, access, agent, availability};
use lifeboat_testbed::{Cluster, Task};
use serde_json::{Value, json};

/// Definitions that the stories need, on every cluster.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    let wanted = [
        "ManagedCluster",
        "ManagedClusterView",
        "ManifestWork",
        "AppliedManifestWork",
        "VolumeReplicationGroup",
    ];
    let mut crds = lifeboat_api::crds();
    crds.retain(|crd| wanted.contains(&crd.spec.names.kind.as_str()));
    crds
}

/// An agent for `name` between two clients, until dropped.
pub fn serve(hub: kube::Client, cluster: &Cluster, client: kube::Client, name: &str) -> Task {
    serve_by(cluster.clock(), hub, client, name)
}

/// The same by any clock.
pub fn serve_by(clock: lifeboat_engine::Clock, hub: kube::Client, client: kube::Client, name: &str) -> Task {
    serve_with(AgentSettings::default(), clock, hub, client, name)
}

/// The same with settings of its own.
pub fn serve_with(
    settings: AgentSettings,
    clock: lifeboat_engine::Clock,
    hub: kube::Client,
    client: kube::Client,
    name: &str,
) -> Task {
    let made = agent(Agent {
        hub,
        cluster: client,
        name: name.to_owned(),
        clock,
        settings,
        allowed: Allowed::default(),
    });
    Task::spawn(made.run(std::future::pending()))
}

/// The hub's own part with the rights of its manifest, until dropped.
pub fn hub(hub: &Cluster) -> Task {
    let hub = hub.clone();
    Task::spawn(async move {
        let engine = availability(hub.account("hub").await, hub.clock(), Settings::default());
        engine.run(std::future::pending()).await;
    })
}

/// The client that the agent of a cluster has on the hub, with the rights that the hub gives it.
pub async fn agent_on(hub: &Cluster, name: &str) -> kube::Client {
    hub.client_as(&User::new(&access::user(name), &[&access::group(name)])).await
}

/// A cluster that was let in.
pub fn accepted(name: &str) -> ManagedCluster {
    ManagedCluster {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: ManagedClusterSpec {
            hub_accepts_client: true,
            lease_duration_seconds: Some(10),
            ..ManagedClusterSpec::default()
        },
        status: None,
    }
}

/// A work that wants these objects.
pub fn work(cluster: &str, name: &str, manifests: &[Value]) -> ManifestWork {
    let manifests =
        manifests.iter().cloned().map(k8s_openapi::apimachinery::pkg::runtime::RawExtension).collect();
    ManifestWork {
        metadata: within(cluster, name),
        spec: ManifestWorkSpec { workload: Some(Workload { manifests }), ..ManifestWorkSpec::default() },
        status: None,
    }
}

/// A view of one object.
pub fn view(cluster: &str, name: &str, scope: ViewScope) -> ManagedClusterView {
    let spec = ManagedClusterViewSpec { scope: Some(scope) };
    let mut metadata = within(cluster, name);
    let asks = (lifeboat_api::annotations::TELL_OBSERVED.to_owned(), "true".to_owned());
    metadata.annotations.get_or_insert_default().extend([asks]);
    ManagedClusterView { metadata, spec, status: None }
}

/// The scope of a group.
pub fn group_scope(namespace: &str, name: &str) -> ViewScope {
    ViewScope {
        api_group: Some("ramendr.openshift.io".to_owned()),
        kind: Some("VolumeReplicationGroup".to_owned()),
        version: Some("v1alpha1".to_owned()),
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        ..ViewScope::default()
    }
}

/// A namespace, as a manifest.
pub fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

/// A group, as a manifest.
pub fn group(namespace: &str, name: &str, state: &str) -> Value {
    json!({
        "apiVersion": "ramendr.openshift.io/v1alpha1",
        "kind": "VolumeReplicationGroup",
        "metadata": { "name": name, "namespace": namespace },
        "spec": { "pvcSelector": {}, "replicationState": state, "s3Profiles": ["store"],
                  "async": { "schedulingInterval": "1m" } },
    })
}

/// A config map, as a manifest.
pub fn config_map(namespace: &str, name: &str, value: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": namespace },
            "data": { "key": value } })
}

/// Metadata of a namespaced object.
pub fn within(namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), namespace: Some(namespace.to_owned()), ..ObjectMeta::default() }
}

/// Makes an object.
pub async fn make<K>(api: &Api<K>, object: &K) -> K
where
    K: kube::Resource + Clone + serde::Serialize + serde::de::DeserializeOwned + std::fmt::Debug,
{
    api.create(&PostParams::default(), object).await.unwrap()
}

/// Status, reason and message of a condition of a work.
pub fn said(work: &ManifestWork, type_: &str) -> Option<(String, String)> {
    let conditions = &work.status.as_ref()?.conditions;
    find(conditions, type_).map(|condition| (condition.status.clone(), condition.reason.clone()))
}

/// Whether a work is applied and its objects are there, at its generation.
pub fn is_done(work: Option<&ManifestWork>) -> bool {
    let Some(work) = work else { return false };
    let conditions = work.status.iter().flat_map(|status| &status.conditions);
    let at_generation = conditions.filter(|condition| {
        condition.status == "True" && condition.observed_generation == work.metadata.generation
    });
    at_generation.filter(|condition| matches!(condition.type_.as_str(), "Applied" | "Available")).count() == 2
}

/// A cluster that is its own hub: everything of a story in one place, on an embedded or a real API server.
pub struct Own {
    /// Its name, which is that of its namespace as a hub.
    pub name: String,
    /// A namespace for applications.
    pub app: String,
    cluster: Cluster,
    _tasks: Vec<Task>,
}

impl Own {
    /// Lets a cluster into itself and starts its agent.
    pub async fn new(cluster: &Cluster) -> Self {
        cluster.install(&definitions()).await;
        let name = cluster.namespace("east").await;
        let app = cluster.namespace("shop").await;
        make(&Api::all(cluster.client()), &accepted(&name)).await;
        // Below it has all rights: some stories carry and show kinds that no manifest knows.
        let tasks =
            vec![hub(cluster), serve(agent_on(cluster, &name).await, cluster, cluster.client(), &name)];
        Self { name, app, cluster: cluster.clone(), _tasks: tasks }
    }

    /// Its works.
    pub fn works(&self) -> Api<ManifestWork> {
        Api::namespaced(self.cluster.client(), &self.name)
    }

    /// Its views.
    pub fn views(&self) -> Api<ManagedClusterView> {
        Api::namespaced(self.cluster.client(), &self.name)
    }

    /// Objects of the application's namespace.
    pub fn of<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.cluster.client(), &self.app)
    }

    /// A work that wants these objects.
    pub fn work(&self, name: &str, manifests: &[Value]) -> ManifestWork {
        work(&self.name, name, manifests)
    }

    /// Makes a work and waits until it is done.
    pub async fn done(&self, work: &ManifestWork) -> ManifestWork {
        make(&self.works(), work).await;
        self.until_done(work.metadata.name.as_deref().unwrap()).await
    }

    /// Waits until a work is done at its generation.
    pub async fn until_done(&self, name: &str) -> ManifestWork {
        self.cluster.until(&self.works(), name, is_done).await.unwrap()
    }

    /// Changes what a work wants.
    pub async fn wants(&self, name: &str, manifests: &[Value]) {
        self.change(name, json!({ "spec": { "workload": { "manifests": manifests } } })).await;
    }

    /// Changes a work.
    pub async fn change(&self, name: &str, patch: Value) {
        let patch = kube::api::Patch::Merge(patch);
        self.works().patch(name, &Default::default(), &patch).await.unwrap();
    }

    /// Deletes a work and waits until it is gone.
    pub async fn delete(&self, name: &str) {
        self.works().delete(name, &Default::default()).await.unwrap();
        self.cluster.until(&self.works(), name, |work| work.is_none()).await;
    }

    /// Waits until an object of the application's namespace is as wanted.
    pub async fn until<K>(&self, name: &str, wanted: impl Fn(Option<&K>) -> bool) -> Option<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + serde::de::DeserializeOwned
            + std::fmt::Debug
            + Send
            + 'static,
    {
        self.cluster.until(&self.of::<K>(), name, wanted).await
    }
}
