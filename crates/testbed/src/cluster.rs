//! A cluster for one test: embedded in this process, or a real kube-apiserver that the tests of a binary share. Tests keep apart by
//! namespace ([`Cluster::namespace`]).

use crate::real::{self, RealCluster};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::wait;
use lifeboat_apiserver::fault::Faults;
use lifeboat_apiserver::serve::{Authority, Context, Front, kubeconfig};
use lifeboat_apiserver::{ApiServer, Config, Sources, User};
use lifeboat_engine::Clock;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// How long a test waits for something that should come: virtual time on an embedded cluster, real time on a real one. In an emulated
/// machine everything takes longer.
static PATIENCE: LazyLock<Duration> = LazyLock::new(|| {
    let emulated = std::env::var_os("LIFEBOAT_IN_VM").is_some();
    Duration::from_secs(if emulated { 240 } else { 60 })
});
/// How often a condition that no watch tells of is tried.
const STEP: Duration = Duration::from_millis(50);

/// A future of its own that ends when this is dropped.
#[derive(Debug)]
pub struct Task(tokio::task::JoinHandle<()>);

impl Task {
    /// Starts a future.
    pub fn spawn(future: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(future))
    }

    /// Waits until it has ended by itself.
    ///
    /// # Panics
    /// When it panicked.
    pub async fn ended(mut self) {
        (&mut self.0).await.expect("a task of the test must not panic");
    }

    /// Waits until it has ended by itself; says how it panicked, if it did.
    pub(crate) async fn join(&mut self) -> Result<(), String> {
        (&mut self.0).await.map_err(|error| error.to_string())
    }

    /// Whether it has ended by itself.
    pub fn is_over(&self) -> bool {
        self.0.is_finished()
    }

    /// Kills it and waits until it is gone; says how it panicked, if it had.
    pub async fn kill(mut self) -> Result<(), String> {
        self.0.abort();
        match (&mut self.0).await {
            Err(error) if error.is_panic() => Err(error.to_string()),
            _ => Ok(()),
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Why something has not come yet; [`Cluster::eventually`] tells the last one when it gives up.
#[derive(Debug)]
pub struct NotYet(pub String);

impl<E: std::fmt::Display> From<E> for NotYet {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

enum Backing {
    Embedded { server: ApiServer, _control: Task, served: Mutex<Option<Served>> },
    Real(&'static RealCluster),
}

/// The embedded cluster as `kubectl` reaches it.
struct Served {
    _task: Task,
    folder: tempfile::TempDir,
}

/// A cluster for one test; clones are the same cluster.
#[derive(Clone)]
pub struct Cluster {
    backing: Arc<Backing>,
    client: kube::Client,
    clock: Clock,
    namespaces: Arc<Mutex<u32>>,
}

impl Cluster {
    /// A cluster in this process, alone with this test. Its time starts at a fixed date and follows tokio's clock.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn embedded() -> Self {
        let start: Timestamp = "2030-01-01T00:00:00Z".parse().expect("invariant: a date");
        let sources = Sources::simulated(start, 7);
        let now = sources.now.clone();
        let server = ApiServer::new(Config { sources, ..Config::default() })
            .expect("invariant: a server in memory can be set up");
        let control = Task::spawn(server.control());
        let client = kube::Client::new(server.service_as(User::admin()), "default");
        Self {
            backing: Arc::new(Backing::Embedded { server, _control: control, served: Mutex::default() }),
            client,
            clock: Clock::from_fn(move || now()),
            namespaces: Arc::default(),
        }
    }

    /// The real cluster of this test binary; `None`, and the test reported as skipped, where its programs are not built.
    ///
    /// # Panics
    /// When the programs are there but the cluster does not work.
    pub async fn real(test: &str) -> Option<Self> {
        Some(Self::of_real(real::shared(test)?).await)
    }

    /// Another real cluster, which this test has to itself: for tests of several clusters.
    ///
    /// # Panics
    /// When the programs are there but the cluster does not work.
    pub async fn another_real(test: &str) -> Option<Self> {
        Some(Self::of_real(real::another(test)?).await)
    }

    async fn of_real(cluster: &'static RealCluster) -> Self {
        let client = cluster.client().await.expect("a running cluster gives a client");
        Self {
            backing: Arc::new(Backing::Real(cluster)),
            client,
            clock: Clock::system(),
            namespaces: Arc::default(),
        }
    }

    /// A client with an administrator's rights.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// A client whose requests and events pass through `faults`.
    ///
    /// # Panics
    /// On a real cluster, where nobody can play faults.
    pub fn client_with(&self, faults: Arc<dyn Faults>) -> kube::Client {
        self.client_with_as(faults, User::admin())
    }

    pub(crate) fn client_with_as(&self, faults: Arc<dyn Faults>, user: User) -> kube::Client {
        kube::Client::new(self.server().service_as(user).with_faults(faults), "default")
    }

    /// A client with the rights of a user.
    ///
    /// # Panics
    /// When a real cluster gives no client.
    pub async fn client_as(&self, user: &User) -> kube::Client {
        match &*self.backing {
            Backing::Embedded { server, .. } => kube::Client::new(server.service_as(user.clone()), "default"),
            Backing::Real(cluster) => {
                cluster.client_as(Some(user)).await.expect("a running cluster gives a client")
            }
        }
    }

    pub(crate) async fn ensure_namespace(&self, name: &str) {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let api: Api<Namespace> = Api::all(self.client());
        let made = api.create(&PostParams::default(), &Namespace { metadata, ..Namespace::default() }).await;
        match made {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => panic!("making namespace {name}: {error}"),
        }
    }

    /// The same cluster, where [`Cluster::client`] gives this client.
    #[must_use]
    pub fn through(&self, client: kube::Client) -> Self {
        Self { client, ..self.clone() }
    }

    /// The clock that the cluster stamps objects by.
    pub fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// Whether this is the embedded one.
    pub fn is_embedded(&self) -> bool {
        matches!(*self.backing, Backing::Embedded { .. })
    }

    /// The server behind an embedded cluster.
    ///
    /// # Panics
    /// On a real cluster.
    pub fn server(&self) -> &ApiServer {
        match &*self.backing {
            Backing::Embedded { server, .. } => server,
            Backing::Real(_) => panic!("only an embedded cluster has its server in this process"),
        }
    }

    /// A kubeconfig of an administrator, for `kubectl` and other programs. The embedded cluster listens on loopback from the first
    /// call on; that needs a runtime whose time is not paused.
    ///
    /// # Panics
    /// When the embedded cluster cannot listen.
    pub async fn kubeconfig(&self) -> PathBuf {
        let (server, served) = match &*self.backing {
            Backing::Real(cluster) => return cluster.kubeconfig().to_owned(),
            Backing::Embedded { server, served, .. } => (server, served),
        };
        let path = |served: &Served| served.folder.path().join("kubeconfig");
        if let Some(served) = &*served.lock() {
            return path(served);
        }
        let authority = Authority::generate().expect("a new authority");
        let loopback = "127.0.0.1:0".parse().expect("invariant: an address");
        let front = Front::listen(server.clone(), &authority, loopback).await.expect("a port on loopback");
        let credential = authority.client(&User::admin()).expect("a client certificate");
        let config = kubeconfig(&[Context {
            name: "embedded",
            address: front.address(),
            authority: authority.certificate(),
            credential: &credential,
        }]);
        let folder = tempfile::tempdir().expect("a folder for the kubeconfig");
        let made = Served { _task: Task::spawn(front.run(std::future::pending())), folder };
        std::fs::write(path(&made), config.to_string()).expect("the kubeconfig is written");
        path(served.lock().insert(made))
    }

    /// Installs definitions and waits until their kinds are served.
    ///
    /// # Panics
    /// When a definition is refused or not served in time.
    pub async fn install(&self, definitions: &[CustomResourceDefinition]) {
        let api: Api<CustomResourceDefinition> = Api::all(self.client());
        let params = PatchParams::apply("lifeboat-testbed").force();
        for definition in definitions {
            let name = definition.metadata.name.clone().unwrap_or_default();
            api.patch(&name, &params, &Patch::Apply(definition))
                .await
                .unwrap_or_else(|error| panic!("installing {name}: {error}"));
            let established =
                wait::await_condition(api.clone(), &name, wait::conditions::is_crd_established());
            tokio::time::timeout(*PATIENCE, established)
                .await
                .unwrap_or_else(|_| panic!("{name} is not established in time"))
                .unwrap_or_else(|error| panic!("waiting for {name}: {error}"));
        }
    }

    /// A new namespace, whose name starts with `prefix`.
    ///
    /// # Panics
    /// When it cannot be made.
    pub async fn namespace(&self, prefix: &str) -> String {
        let number = {
            let mut count = self.namespaces.lock();
            *count += 1;
            *count
        };
        // A real cluster is shared with other tests, so there the server completes the name.
        let metadata = match self.is_embedded() {
            true => ObjectMeta { name: Some(format!("{prefix}-{number}")), ..ObjectMeta::default() },
            false => ObjectMeta { generate_name: Some(format!("{prefix}-")), ..ObjectMeta::default() },
        };
        let api: Api<Namespace> = Api::all(self.client());
        let made = api.create(&PostParams::default(), &Namespace { metadata, ..Namespace::default() }).await;
        made.expect("a namespace is made").metadata.name.unwrap_or_default()
    }

    /// Waits until `look` finds what it looks for, and gives that.
    ///
    /// # Panics
    /// When it does not come within a minute, with what the last look said.
    pub async fn eventually<T, F>(&self, what: &str, mut look: impl FnMut() -> F) -> T
    where
        F: Future<Output = Result<T, NotYet>>,
    {
        let deadline = tokio::time::Instant::now() + *PATIENCE;
        loop {
            match look().await {
                Ok(found) => return found,
                Err(NotYet(why)) if tokio::time::Instant::now() >= deadline => {
                    panic!("{what} did not come within {} s: {why}", PATIENCE.as_secs())
                }
                Err(NotYet(_)) => tokio::time::sleep(STEP).await,
            }
        }
    }

    /// Waits, by a watch, until an object is as `wanted`, and gives it; it may be wanted gone.
    ///
    /// # Panics
    /// When that does not come within a minute.
    pub async fn until<K>(&self, api: &Api<K>, name: &str, wanted: impl Fn(Option<&K>) -> bool) -> Option<K>
    where
        K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
    {
        let waiting = wait::await_condition(api.clone(), name, |object: Option<&K>| wanted(object));
        match tokio::time::timeout(*PATIENCE, waiting).await {
            Ok(found) => found.unwrap_or_else(|error| panic!("waiting for {name}: {error}")),
            Err(_) => {
                let now = api.get_opt(name).await;
                panic!("{name} did not become as wanted within {} s; it is {now:#?}", PATIENCE.as_secs())
            }
        }
    }
}
