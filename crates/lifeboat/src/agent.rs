//! `lifeboat agent`: carries a hub's works to one managed cluster and what is seen there back. Of several, one works and the others stand by.

use crate::cluster::Target;
use crate::process::{Lead, block_on, client};
use anyhow::{Context as _, bail};
use kube::config::{KubeConfigOptions, Kubeconfig};
use lifeboat_engine::{Clock, Metrics};
use lifeboat_fleet::{Agent, AgentSettings, Allowed};
use std::path::PathBuf;

/// Options of `lifeboat agent`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// Kubeconfig of the hub.
    #[arg(long, value_name = "FILE", env = "HUB_KUBECONFIG")]
    hub_kubeconfig: PathBuf,
    /// Context of the hub's kubeconfig; the current one when not given.
    #[arg(long, value_name = "NAME")]
    hub_context: Option<String>,
    /// Name of the cluster, which is that of its namespace on the hub.
    #[arg(long, value_name = "NAME", env = "CLUSTER_NAME")]
    name: String,
    /// Start at once, without a lease on the cluster: no other agent of it may run.
    #[arg(long)]
    alone: bool,
    /// Namespace of that lease.
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE", default_value = "lifeboat-system")]
    namespace: String,
    /// Carry manifests of this kind too, written as Kind.group; may be given several times, and `*` is every kind.
    #[arg(long, value_name = "KIND")]
    allow: Vec<String>,
    /// Carry what Ramen's hub operator sends, too.
    #[arg(long)]
    allow_ramen: bool,
    /// Let views show secrets.
    #[arg(long)]
    secrets_in_views: bool,
    /// How often the hub's lease shall be renewed, for a cluster that the hub does not know yet.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    lease_seconds: u16,
    /// The first part of the name of every record on the cluster; OCM's agent uses the SHA-256 of the hub's address.
    #[arg(long, value_name = "TEXT")]
    hub_hash: Option<String>,
}

/// Carries until Ctrl-C or SIGTERM.
pub fn run(args: &Args) -> anyhow::Result<()> {
    block_on(carry(args))
}

async fn carry(args: &Args) -> anyhow::Result<()> {
    if args.lease_seconds == 0 {
        bail!("--lease-seconds must be at least 1: the hub would take the cluster for silent");
    }
    let cluster = client(&args.target).await?;
    let read = Kubeconfig::read_from(&args.hub_kubeconfig)
        .with_context(|| format!("reading {}", args.hub_kubeconfig.display()))?;
    let options = KubeConfigOptions { context: args.hub_context.clone(), ..KubeConfigOptions::default() };
    let config =
        kube::Config::from_custom_kubeconfig(read, &options).await.context("reading the hub's kubeconfig")?;
    // The hub may be out of reach now: the agent waits for it.
    let hub = crate::connect::plain(config).context("making a client of the hub")?;
    let lead = Lead {
        client: cluster.clone(),
        namespace: args.namespace.clone(),
        name: "lifeboat-agent",
        alone: args.alone,
        metrics: Metrics::default(),
    };
    let agent = Agent {
        hub,
        cluster,
        name: args.name.clone(),
        clock: Clock::system(),
        settings: AgentSettings {
            lease_seconds: args.lease_seconds.into(),
            hub_hash: args.hub_hash.clone(),
            ..AgentSettings::default()
        },
        allowed: allowed(args),
    };
    lead.run(|stop| lifeboat_fleet::agent(agent).run(stop.cancelled_owned())).await
}

fn allowed(args: &Args) -> Allowed {
    let mut allowed = Allowed::default().and(args.allow.iter().map(String::as_str));
    if args.allow_ramen {
        allowed = allowed.for_ramen();
    }
    if args.secrets_in_views {
        allowed = allowed.secrets_in_views();
    }
    allowed
}
