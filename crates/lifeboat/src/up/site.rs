//! One embedded cluster in threads of its own: an API server, its front, and whatever is at work there. It can be stopped in order, and
//! killed as a machine that loses its power: then everything in it ends where it stands.

use anyhow::{Context as _, anyhow};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::config::{KubeConfigOptions, Kubeconfig};
use lifeboat_apiserver::auth::TokenKey;
use lifeboat_apiserver::serve::{Authority, Context, Credential, Front, kubeconfig, write_private};
use lifeboat_apiserver::{ApiServer, Config, Sources, User};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// What is at work in a cluster, given a client of it; ends when it is dropped.
pub type Work = Box<dyn FnOnce(kube::Client) -> BoxFuture<'static, ()> + Send>;

/// How a cluster is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Halt {
    No,
    InOrder,
    AtOnce,
}

/// How another cluster, or kubectl, gets in.
#[derive(Clone)]
pub struct Door {
    config: Kubeconfig,
}

impl Door {
    fn new(config: serde_json::Value) -> anyhow::Result<Self> {
        let config = serde_json::from_value(config).context("invariant: a kubeconfig")?;
        Ok(Self { config })
    }

    /// A client; the cluster may be down now.
    pub async fn client(&self) -> anyhow::Result<kube::Client> {
        let config =
            kube::Config::from_custom_kubeconfig(self.config.clone(), &KubeConfigOptions::default()).await;
        let config = config.context("reading a kubeconfig of our own")?;
        crate::connect::plain(config).context("making a client")
    }
}

struct Running {
    halt: watch::Sender<Halt>,
    thread: std::thread::JoinHandle<()>,
}

/// A cluster, running or not.
pub struct Site {
    /// Its name.
    pub name: String,
    store: Option<PathBuf>,
    authority: Arc<Authority>,
    admin: Credential,
    token_key: Option<Vec<u8>>,
    address: SocketAddr,
    running: Option<Running>,
}

impl Site {
    /// A cluster that does not run yet; with a folder it is kept there.
    pub fn new(name: &str, folder: Option<&Path>, address: SocketAddr) -> anyhow::Result<Self> {
        let authority = match folder {
            Some(folder) => Authority::load(&folder.join("pki"))?,
            None => Authority::generate()?,
        };
        let token_key = folder.map(|folder| token_key(&folder.join("pki").join("tokens.key"))).transpose()?;
        let admin = authority.client(&User::admin())?;
        Ok(Self {
            name: name.to_owned(),
            store: folder.map(|folder| folder.join("store")),
            authority: Arc::new(authority),
            admin,
            token_key,
            address,
            running: None,
        })
    }

    /// Starts the API server; whoever waits for `work` is given it when the fleet is ready for it.
    pub fn start(&mut self, definitions: &[serde_json::Value]) -> anyhow::Result<oneshot::Sender<Work>> {
        let (halt, halted) = watch::channel(Halt::No);
        let (ready, heard) = mpsc::channel();
        let (give, work) = oneshot::channel();
        let life = Life {
            config: Config {
                data: self.store.clone(),
                sources: Sources::system(),
                token_key: self.token_key.clone(),
                root_ca: self.authority.certificate().to_owned(),
                ..Config::default()
            },
            authority: self.authority.clone(),
            address: self.address,
            definitions: definitions.to_vec(),
        };
        let thread = std::thread::Builder::new()
            .name(self.name.clone())
            .spawn(move || life.live(&ready, work, halted))
            .context("starting a thread")?;
        let address = heard.recv().unwrap_or_else(|_| Err(anyhow!("it ended before it was ready")));
        // From now on it is this address: others know it.
        self.address = address.with_context(|| format!("starting cluster {}", self.name))?;
        self.running = Some(Running { halt, thread });
        Ok(give)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its entry in a kubeconfig.
    pub fn context(&self) -> Context<'_> {
        Context {
            name: &self.name,
            address: self.address,
            authority: self.authority.certificate(),
            credential: &self.admin,
        }
    }

    /// A door for administrators.
    pub fn door(&self) -> anyhow::Result<Door> {
        Door::new(kubeconfig(&[self.context()]))
    }

    /// A door for one user.
    pub fn door_for(&self, user: &User) -> anyhow::Result<Door> {
        let credential = self.authority.client(user)?;
        Door::new(kubeconfig(&[Context { credential: &credential, ..self.context() }]))
    }

    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Ends it in order.
    pub fn stop(&mut self) {
        self.halt(Halt::InOrder);
    }

    /// Ends it where it stands, with all that runs in it.
    pub fn kill(&mut self) {
        self.halt(Halt::AtOnce);
    }

    fn halt(&mut self, how: Halt) {
        let Some(running) = self.running.take() else { return };
        running.halt.send_replace(how);
        // A thread that panicked has ended as well.
        let _ = running.thread.join();
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Tokens must stay good over a restart, so their key is kept beside the data.
fn token_key(path: &Path) -> anyhow::Result<Vec<u8>> {
    if path.exists() {
        return std::fs::read(path).with_context(|| format!("reading {}", path.display()));
    }
    let key = TokenKey::generate()?;
    write_private(path, &key)?;
    Ok(key)
}

/// One life of a cluster.
struct Life {
    config: Config,
    authority: Arc<Authority>,
    address: SocketAddr,
    definitions: Vec<serde_json::Value>,
}

impl Life {
    fn live(
        self,
        ready: &mpsc::Sender<anyhow::Result<SocketAddr>>,
        work: oneshot::Receiver<Work>,
        halted: watch::Receiver<Halt>,
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = match runtime.context("starting a runtime") {
            Ok(runtime) => runtime,
            Err(error) => return drop(ready.send(Err(error))),
        };
        runtime.block_on(async {
            match self.serve(work, halted, ready).await {
                Ok(()) => {}
                // Nobody hears it where the cluster had been ready; then it ended in order.
                Err(error) => drop(ready.send(Err(error))),
            }
        });
        // What blocks a thread, such as a copy under way, is given a moment and then left behind.
        runtime.shutdown_timeout(Duration::from_secs(5));
    }

    async fn serve(
        self,
        work: oneshot::Receiver<Work>,
        halted: watch::Receiver<Halt>,
        ready: &mpsc::Sender<anyhow::Result<SocketAddr>>,
    ) -> anyhow::Result<()> {
        let server = ApiServer::new(self.config)?;
        server.install(&self.definitions).context("installing Lifeboat's definitions")?;
        let front = Front::listen(server.clone(), &self.authority, self.address).await?;
        // Whoever started this waits for the answer.
        let _ = ready.send(Ok(front.address()));
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(server.control());
        let client =
            kube::Client::new(tower::service_fn(beside(server.service_as(User::admin()))), "default");
        drop(server);
        tasks.spawn(async move {
            if let Ok(work) = work.await {
                work(client).await;
            }
            std::future::pending::<()>().await;
        });
        let (mut in_order, mut at_once) = (halted.clone(), halted);
        let mut fronts = tokio::task::JoinSet::new();
        fronts.spawn(front.run(async move {
            // An error means that the sender is gone, which is an end as well.
            let _ = in_order.wait_for(|halt| *halt == Halt::InOrder).await;
        }));
        tokio::select! {
            _ = at_once.wait_for(|halt| *halt == Halt::AtOnce) => {}
            _ = fronts.join_next() => {}
        }
        fronts.shutdown().await;
        tasks.shutdown().await;
        Ok(())
    }
}

/// A server whose requests run on any thread, like those from outside: a controller is one future, and would do the server's work on
/// its own thread.
fn beside<S, R>(service: S) -> impl Fn(R) -> BoxFuture<'static, Result<S::Response, tower::BoxError>> + Clone
where
    S: tower::Service<R, Future: Send + 'static> + Clone,
    S::Response: Send + 'static,
    S::Error: Into<tower::BoxError> + Send + 'static,
{
    move |request| {
        #[expect(
            clippy::disallowed_methods,
            reason = "a request is the server's, whose runtime ends with it"
        )]
        let answer = tokio::spawn(service.clone().call(request));
        async move { answer.await?.map_err(Into::into) }.boxed()
    }
}
