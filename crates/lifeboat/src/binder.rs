//! `lifeboat binder`: binds claims to volumes in any cluster. Of several, one works and the others stand by.

use crate::cluster::Target;
use crate::metrics::Page;
use crate::process::{Lead, block_on_one_thread, client};
use anyhow::Context as _;
use lifeboat_binder::{Binder, Neighbours};
use lifeboat_engine::{Clock, Settings};
use prometheus_client::registry::Registry;
use std::io::Write as _;
use std::net::SocketAddr;

/// How a binder runs: it binds as many claims in the same time as an API server on a few cores takes before more of them only wait in
/// line there.
pub fn settings() -> Settings {
    Settings { keys_at_once: 64, ..Settings::default() }
}

/// Options of `lifeboat binder`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// Start at once, without a lease: no other binder may run.
    #[arg(long)]
    alone: bool,
    /// Namespace of the lease.
    #[arg(long, value_name = "NAME", default_value = "kube-system")]
    lease_namespace: String,
    /// Serve /metrics and /healthz here, over plain HTTP, such as 127.0.0.1:10257; port 0 picks a free one.
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Also do what kube-controller-manager's controllers around its binder do, where they do not run: pvc- and
    /// pv-protection, expand and ephemeral-volume.
    #[arg(long, alias = "protection")]
    neighbours: bool,
}

/// Binds until Ctrl-C or SIGTERM.
pub fn run(args: &Args) -> anyhow::Result<()> {
    block_on_one_thread(bind(args))
}

async fn bind(args: &Args) -> anyhow::Result<()> {
    let client = client(&args.target).await?;
    let neighbours = if args.neighbours { Neighbours::Here } else { Neighbours::Elsewhere };
    let binder = lifeboat_binder::binder(client.clone(), Clock::system(), settings(), neighbours);
    let page = page(args.metrics, &binder).await?;
    let engine = binder.engine;
    let lead = Lead {
        client,
        namespace: args.lease_namespace.clone(),
        name: "lifeboat-binder",
        alone: args.alone,
        metrics: engine.metrics(),
    };
    tokio::select! {
        done = lead.run(|stop| engine.run(stop.cancelled_owned())) => done,
        () = page => Ok(()),
    }
}

/// Serves metrics, where that is asked for; never ends by itself.
async fn page(
    address: Option<SocketAddr>,
    binder: &Binder,
) -> anyhow::Result<impl Future<Output = ()> + use<>> {
    let page = match address {
        Some(address) => {
            let mut registry = Registry::default();
            binder.engine.metrics().register(&mut registry);
            binder.metrics.register(&mut registry);
            let page = Page::listen(address, registry).await?;
            writeln!(std::io::stdout(), "  metrics      http://{}/metrics", page.address()?)
                .context("writing to the terminal")?;
            Some(page)
        }
        None => None,
    };
    Ok(async move {
        match page {
            Some(page) => page.serve().await,
            None => std::future::pending().await,
        }
    })
}
