//! `lifeboat hub`: the controllers of a hub. Of several, one works and the others stand by.

use crate::cluster::Target;
use crate::process::{Lead, block_on, client};
use anyhow::Context as _;
use lifeboat_engine::{Clock, Metrics, Settings};
use lifeboat_hub::{cluster, drpc, policy};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Options of `lifeboat hub`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// Start at once, without a lease: no other hub may run.
    #[arg(long)]
    alone: bool,
    /// Namespace of the configuration (ConfigMap ramen-hub-operator-config), of the stores' secrets and of the lease.
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE", default_value = "ramen-system")]
    namespace: String,
    /// Leave membership (leases, namespaces and rights of clusters) to Open Cluster Management's own controllers.
    #[arg(long, conflicts_with = "membership_only")]
    membership_elsewhere: bool,
    /// Do nothing but membership: another operator, such as Ramen's, decides where applications run.
    #[arg(long)]
    membership_only: bool,
}

/// Works until Ctrl-C or SIGTERM.
pub fn run(args: &Args) -> anyhow::Result<()> {
    block_on(async {
        let client = client(&args.target).await?;
        let lead = Lead {
            client: client.clone(),
            namespace: args.namespace.clone(),
            name: "lifeboat-hub",
            alone: args.alone,
            metrics: Metrics::default(),
        };
        if args.membership_only {
            let engine = lifeboat_fleet::availability(client, Clock::system(), Settings::default());
            return lead.run(|stop| engine.run(stop.cancelled_owned())).await;
        }
        drpc::kinds(&client).await.context("reading the hub's kinds")?;
        let membership = if args.membership_elsewhere { Membership::Elsewhere } else { Membership::Here };
        lead.run(|stop| serve(client, args.namespace.clone(), membership, stop)).await
    })
}

/// Who lets clusters in and says which are silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// This hub.
    Here,
    /// Open Cluster Management's own controllers.
    Elsewhere,
}

/// Serves until told to stop.
pub async fn serve(client: kube::Client, namespace: String, membership: Membership, stop: CancellationToken) {
    let clock = Clock::system();
    let kinds = loop {
        match drpc::kinds(&client).await {
            Ok(kinds) => break kinds,
            Err(_) if stop.is_cancelled() => return,
            Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
        }
    };
    let setup = drpc::Setup::usual(client.clone(), &namespace);
    let mut hub = drpc::serve(client, clock.clone(), Settings::default(), kinds, setup);
    // Works and views are most of what a hub reads: all of its controllers look at the same ones.
    let shared = hub.shared();
    let engine = hub.engine();
    let watched = cluster::Watched::beside(engine, cluster::Setup { namespace, only: None }, shared);
    let stores = cluster::controller(engine, &watched, Arc::new(cluster::check::Buckets));
    policy::controller(engine, &watched);
    if membership == Membership::Here {
        lifeboat_fleet::hub::join(engine, clock);
    }
    tokio::select! {
        () = hub.run(stop.cancelled()) => {}
        () = stores.run() => {}
    }
}
