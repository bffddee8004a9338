//! `lifeboat up`: embedded clusters, each with its own data, authority and address, the controllers that a bare API server
//! lacks, and one kubeconfig for all of them.

mod storage;

use anyhow::{Context as _, bail};
use lifeboat_apiserver::auth::TokenKey;
use lifeboat_apiserver::serve::{Authority, Context, Credential, Front, kubeconfig, write_private};
use lifeboat_apiserver::{ApiServer, Config, Sources, User};
use lifeboat_binder::Neighbours;
use lifeboat_engine::{Clock, Settings};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Options of `lifeboat up`.
#[derive(clap::Args)]
pub struct Args {
    /// Names of the clusters to start.
    #[arg(long, value_delimiter = ',', default_value = "hub,east,west")]
    clusters: Vec<String>,
    /// Where to keep the clusters; without it everything is gone when the command ends.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where to write the kubeconfig; DIR/kubeconfig when not given.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Start plain Kubernetes API servers: neither Lifeboat's definitions nor its controllers.
    #[arg(long)]
    bare: bool,
    /// Leave these controllers out, for clusters where others do their work.
    #[arg(long, value_name = "CONTROLLER", value_delimiter = ',')]
    without: Vec<Part>,
    /// Address of the first cluster; the others take the ports after it. Port 0 picks free ones.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

/// A controller that runs in every cluster unless it is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Binds claims to volumes and keeps what is in use from being deleted.
    Binder,
    /// Makes volumes, snapshots and backups on one node, whose disks are a folder.
    Storage,
}

impl Args {
    fn runs(&self, part: Part) -> bool {
        !self.bare && !self.without.contains(&part)
    }
}

struct Cluster {
    name: String,
    authority: Authority,
    admin: Credential,
    server: ApiServer,
    front: Front,
}

/// Starts the clusters and waits for Ctrl-C.
pub fn run(args: Args) -> anyhow::Result<()> {
    check_names(&args.clusters)?;
    let ephemeral = match &args.data {
        Some(_) => None,
        None => Some(
            tempfile::Builder::new().prefix("lifeboat-").tempdir().context("making a temporary folder")?,
        ),
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting the runtime")?;
    runtime.block_on(serve(&args, ephemeral.as_ref().map(tempfile::TempDir::path)))
}

fn check_names(names: &[String]) -> anyhow::Result<()> {
    let mut seen = std::collections::BTreeSet::new();
    for name in names {
        let plain = !name.is_empty()
            && name.len() <= 63
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            && !name.starts_with('-')
            && !name.ends_with('-');
        if !plain {
            bail!(
                "{name:?} is no cluster name: use up to 63 lower-case letters, digits and hyphens, such as `east`"
            );
        }
        if !seen.insert(name) {
            bail!("cluster {name:?} is named twice");
        }
    }
    Ok(())
}

async fn serve(args: &Args, scratch: Option<&Path>) -> anyhow::Result<()> {
    let definitions = if args.bare { Vec::new() } else { definitions()? };
    let mut clusters = Vec::new();
    for (i, name) in args.clusters.iter().enumerate() {
        let mut address = args.listen;
        if address.port() != 0 {
            let port = usize::from(address.port()) + i;
            address.set_port(u16::try_from(port).context("too many clusters for the ports after --listen")?);
        }
        let folder = args.data.as_ref().map(|data| data.join(name));
        clusters.push(
            start(name, folder.as_deref(), address, &definitions)
                .await
                .with_context(|| format!("starting cluster {name}"))?,
        );
    }
    let home = args.data.as_deref().or(scratch).context("invariant: there is a folder for the kubeconfig")?;
    let path = args.kubeconfig.clone().unwrap_or_else(|| home.join("kubeconfig"));
    let contexts: Vec<Context<'_>> = clusters
        .iter()
        .map(|cluster| Context {
            name: &cluster.name,
            address: cluster.front.address(),
            authority: cluster.authority.certificate(),
            credential: &cluster.admin,
        })
        .collect();
    let yaml = serde_saphyr::to_string(&kubeconfig(&contexts)).context("writing the kubeconfig")?;
    write_private(&path, yaml.as_bytes())?;
    announce(&clusters, &path, args.data.as_deref())?;

    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut fronts = tokio::task::JoinSet::new();
    let mut controls = tokio::task::JoinSet::new();
    for cluster in clusters {
        controls.spawn(cluster.server.control());
        if args.runs(Part::Binder) {
            controls.spawn(bind(&cluster.server));
        }
        if args.runs(Part::Storage) {
            controls.spawn(store(&cluster.server, cluster.name.clone(), home.join(&cluster.name)));
        }
        let mut stopped = stopped.clone();
        fronts.spawn(cluster.front.run(async move {
            // An error means that the sender is gone, which is a stop as well.
            let _ = stopped.wait_for(|stop| *stop).await;
        }));
    }
    interrupted().await?;
    // Whoever read the first lines may be gone by now.
    let _ = say("stopping");
    stop.send_replace(true);
    while fronts.join_next().await.is_some() {}
    controls.shutdown().await;
    Ok(())
}

/// The binder of an embedded cluster. It can be dropped at any moment: what it left half done, the next one completes.
fn bind(server: &ApiServer) -> impl Future<Output = ()> + Send + use<> {
    let client = kube::Client::new(server.service_as(User::admin()), "default");
    let engine = lifeboat_binder::engine(client, Clock::system(), Settings::default(), Neighbours::Here);
    engine.run(std::future::pending())
}

/// Node storage of an embedded cluster. A cluster without it still serves, and says why.
fn store(server: &ApiServer, name: String, folder: PathBuf) -> impl Future<Output = ()> + Send + use<> {
    let client = kube::Client::new(server.service_as(User::admin()), "default");
    async move {
        if let Err(error) = storage::run(client, name.clone(), &folder).await {
            // Whoever read the first lines may be gone by now.
            let _ = say(&format!("  {name} has no storage: {error:#}"));
        }
    }
}

async fn interrupted() -> anyhow::Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .context("waiting for SIGTERM")?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result.context("waiting for Ctrl-C"),
        _ = terminate.recv() => Ok(()),
    }
}

async fn start(
    name: &str,
    folder: Option<&Path>,
    address: SocketAddr,
    definitions: &[serde_json::Value],
) -> anyhow::Result<Cluster> {
    let authority = match folder {
        Some(folder) => Authority::load(&folder.join("pki"))?,
        None => Authority::generate()?,
    };
    let token_key = folder.map(|folder| token_key(&folder.join("pki").join("tokens.key"))).transpose()?;
    let server = ApiServer::new(Config {
        data: folder.map(|folder| folder.join("store")),
        sources: Sources::system(),
        token_key,
        root_ca: authority.certificate().to_owned(),
        ..Config::default()
    })?;
    server.install(definitions).context("installing Lifeboat's definitions")?;
    let admin = authority.client(&User::admin())?;
    let front = Front::listen(server.clone(), &authority, address).await?;
    Ok(Cluster { name: name.to_owned(), authority, admin, server, front })
}

fn definitions() -> anyhow::Result<Vec<serde_json::Value>> {
    let values: Result<_, _> = lifeboat_api::crds_json().map(serde_json::from_str).collect();
    values.context("reading Lifeboat's definitions")
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

fn say(line: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{line}").context("writing to the terminal")
}

fn announce(clusters: &[Cluster], kubeconfig: &Path, data: Option<&Path>) -> anyhow::Result<()> {
    say("")?;
    for cluster in clusters {
        say(&format!("  {:<12} https://{}", cluster.name, cluster.front.address()))?;
    }
    say("")?;
    say(&format!("  export KUBECONFIG={}", kubeconfig.display()))?;
    for cluster in clusters {
        say(&format!("  kubectl --context {} get namespaces", cluster.name))?;
    }
    say("")?;
    say(&match data {
        Some(data) => format!("  data is kept in {}; Ctrl-C stops the clusters", data.display()),
        None => {
            "  nothing is kept: Ctrl-C stops the clusters and removes them (--data DIR keeps them)".to_owned()
        }
    })
}
