//! `lifeboat node`: the volumes of one node, made, grown, backed up, restored and removed; and the room that is left, told to the
//! scheduler.

use crate::cluster::Target;
use crate::process::{block_on, client, identity, signals};
use anyhow::{Context as _, bail};
use lifeboat_engine::{Clock, Settings};
use lifeboat_lvm::{Config as Classes, Lvm, Program, Remote, Storage};
use lifeboat_mover::Rustic;
use lifeboat_node::LocalFilesystems;
use lifeboat_node::central::DRIVER;
use lifeboat_node::volume::{Config, Parts, agent};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often the storage in this process is looked after.
const TEND_EVERY: Duration = Duration::from_secs(30);

/// Options of `lifeboat node`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// The node whose disks these are.
    #[arg(long, value_name = "NAME", env = "NODE_NAME")]
    node_name: String,
    /// Use the lvmd that serves this socket.
    #[arg(long, value_name = "PATH", default_value = lifeboat_lvm::DEFAULT_SOCKET, conflicts_with = "embed_lvmd")]
    lvmd_socket: PathBuf,
    /// Do lvmd's work in this process, with this configuration.
    #[arg(long, value_name = "FILE")]
    embed_lvmd: Option<PathBuf>,
    /// Namespace of a SnapshotBackupStorage that a snapshot class names without one.
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE", default_value = "lifeboat-system")]
    namespace: String,
    /// Folder for the mounts that backups and restores need; whatever is mounted below it is ours.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/lifeboat/mounts")]
    mounts: PathBuf,
    /// Backups and restores at once.
    #[arg(long, value_name = "COUNT", default_value_t = 2)]
    jobs: usize,
    /// Carry out ReplicationSources and ReplicationDestinations, in the place of VolSync: listen here for copies, such as 0.0.0.0:8000.
    #[arg(long, value_name = "ADDRESS")]
    mover_listen: Option<SocketAddr>,
    /// Mirror volumes behind VolumeReplication: listen here for the peer's mirror, such as 0.0.0.0:9500.
    #[arg(long, value_name = "ADDRESS")]
    mirror_listen: Option<SocketAddr>,
    /// Address by which other clusters reach this node; needed with --mover-listen and --mirror-listen where these name no address.
    #[arg(long, value_name = "IP", env = "NODE_IP")]
    advertise: Option<IpAddr>,
    /// Name that StorageClasses and VolumeReplicationClasses call us by.
    #[arg(long, value_name = "NAME", default_value = DRIVER)]
    driver: String,
    /// Folder for what the mover and the mirror must remember.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/lifeboat/state")]
    state: PathBuf,
}

impl Args {
    /// Where others reach what listens here.
    fn reached(&self, listens: SocketAddr) -> anyhow::Result<SocketAddr> {
        match self.advertise {
            Some(address) => Ok((address, listens.port()).into()),
            None if listens.ip().is_unspecified() => {
                bail!(
                    "{listens} is every address of this node: say with --advertise which one other clusters reach it by"
                )
            }
            None => Ok(listens),
        }
    }
}

/// Serves the node until Ctrl-C or SIGTERM.
pub fn run(args: &Args) -> anyhow::Result<()> {
    block_on(serve(args))
}

async fn serve(args: &Args) -> anyhow::Result<()> {
    if args.jobs == 0 {
        bail!("--jobs must be at least 1: with none, no backup would ever begin");
    }
    let client = client(&args.target).await?;
    let embedded = args.embed_lvmd.as_deref().map(open).transpose()?;
    let lvm: Arc<dyn Lvm> = match &embedded {
        Some(storage) => storage.clone(),
        None => Arc::new(Remote::new(&args.lvmd_socket)),
    };
    let parts = Parts {
        lvm: lvm.clone(),
        mover: Arc::new(Rustic::new()),
        filesystems: Arc::new(LocalFilesystems::new()),
    };
    let config = Config {
        node: args.node_name.clone(),
        process: identity(),
        namespace: args.namespace.clone(),
        jobs_at_once: args.jobs,
        mounts: args.mounts.clone(),
    };
    let (clock, settings) = (Clock::system(), Settings::default());
    let reporter =
        lifeboat_node::capacity::reporter(client.clone(), clock.clone(), settings, lvm, &args.node_name);
    let mover = mover(args, &client, &parts).await?;
    let mirror = mirror(args, &client, &parts).await?;
    let agent = agent(client, clock, settings, parts, config);
    let stop = CancellationToken::new();
    let signals = signals(stop.clone())?;
    let tend = async {
        let Some(storage) = &embedded else { return std::future::pending().await };
        loop {
            storage.tend().await;
            tokio::time::sleep(TEND_EVERY).await;
        }
    };
    let until = || stop.clone().cancelled_owned();
    let copies = async {
        if let Some(mover) = mover {
            mover.run(until()).await;
        }
    };
    let mirrors = async {
        if let Some(mirror) = mirror {
            mirror.run(until()).await;
        }
    };
    let work = async {
        tokio::join!(agent.run(until()), reporter.run(until()), copies, mirrors);
    };
    tokio::select! {
        () = work => Ok(()),
        () = signals => Ok(()),
        () = tend => Ok(()),
    }
}

async fn mover(
    args: &Args,
    client: &kube::Client,
    parts: &Parts,
) -> anyhow::Result<Option<lifeboat_replicate::Agent>> {
    let Some(listen) = args.mover_listen else { return Ok(None) };
    let state = args.state.join("mover");
    let config = lifeboat_replicate::Config::new(&args.node_name, listen, args.reached(listen)?, state);
    let parts = lifeboat_replicate::Parts {
        lvm: parts.lvm.clone(),
        filesystems: parts.filesystems.clone(),
        resolve: Arc::new(lifeboat_replicate::Dns),
    };
    let agent =
        lifeboat_replicate::controller(client.clone(), Clock::system(), Settings::default(), parts, config);
    Ok(Some(agent.await.with_context(|| format!("listening for copies on {listen}"))?))
}

async fn mirror(
    args: &Args,
    client: &kube::Client,
    parts: &Parts,
) -> anyhow::Result<Option<lifeboat_mirror::Mirror>> {
    let Some(listen) = args.mirror_listen else { return Ok(None) };
    let (advertise, state) = (args.reached(listen)?, args.state.join("mirror"));
    let config = lifeboat_mirror::Config::new(&args.node_name, &args.driver, listen, advertise, state);
    let parts = lifeboat_mirror::Parts { lvm: parts.lvm.clone() };
    let mirror =
        lifeboat_mirror::controller(client.clone(), Clock::system(), Settings::default(), parts, config);
    Ok(Some(mirror.await.with_context(|| format!("listening for the peer's mirror on {listen}"))?))
}

fn open(file: &std::path::Path) -> anyhow::Result<Arc<Storage>> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("reading the configuration {}", file.display()))?;
    let classes = Classes::read(&text).with_context(|| format!("in {}", file.display()))?;
    let program = Arc::new(Program { prefix: classes.prefix.clone() });
    Ok(Arc::new(Storage::open(classes, program).context("opening the device classes")?))
}
