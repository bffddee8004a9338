//! `lifeboat protector`: protects applications' volumes on one cluster, with a hub or without. Of several, one works and the others stand by.

use crate::cluster::Target;
use crate::process::{identity, signals};
use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::Api;
use lifeboat_engine::lease::LeaseConfig;
use lifeboat_engine::{Clock, Election, Metrics, Outcome, Settings};
use lifeboat_protect::run::{kinds, kinds_changed, protector};
use lifeboat_protect::stores::Stores;
use lifeboat_protect::view::Setup;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Options of `lifeboat protector`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// Start at once, without a lease: no other protector may run.
    #[arg(long)]
    alone: bool,
    /// Namespace of the configuration (ConfigMap ramen-dr-cluster-operator-config), of the stores' secrets and of the lease.
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE", default_value = "ramen-system")]
    namespace: String,
    /// Only serve groups of this namespace.
    #[arg(long, value_name = "NAME")]
    groups_in: Option<String>,
}

/// Protects until Ctrl-C or SIGTERM.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting the runtime")?;
    runtime.block_on(protect(args))
}

async fn protect(args: &Args) -> anyhow::Result<()> {
    let config = args.target.config().await?;
    let client = kube::Client::try_from(config).context("making a client of the cluster")?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let system = namespaces.get("kube-system").await.context("reading the cluster's identity")?;
    let cluster = system.metadata.uid.unwrap_or_default();
    let setup = Setup { namespace: args.namespace.clone(), cluster, only: args.groups_in.clone() };
    let stop = CancellationToken::new();
    let signals = signals(stop.clone())?;
    let work = async {
        if args.alone {
            serve(client.clone(), setup.clone(), stop.clone()).await;
            return Ok(());
        }
        let election = Election {
            client: client.clone(),
            namespace: args.namespace.clone(),
            name: "lifeboat-protector".to_owned(),
            me: identity(),
            config: LeaseConfig::default(),
            clock: Clock::system(),
            metrics: Metrics::default(),
        };
        match election.run(stop.clone(), |stop| serve(client.clone(), setup.clone(), stop)).await {
            Outcome::Lost => bail!("the lease {}/{} was lost", election.namespace, election.name),
            Outcome::NeverLed | Outcome::Finished => Ok(()),
        }
    };
    tokio::select! {
        done = work => done,
        () = signals => Ok(()),
    }
}

/// Serves until told to stop; anew whenever kinds come or go.
async fn serve(client: kube::Client, setup: Setup, stop: CancellationToken) {
    let clock = Clock::system();
    let ledger = Arc::new(Stores::new(clock.clone()));
    while !stop.is_cancelled() {
        let Ok(known) = kinds(&client).await else {
            tokio::time::sleep(Duration::from_secs(2)).await;
            continue;
        };
        let protector = protector(
            client.clone(),
            clock.clone(),
            Settings::default(),
            known,
            ledger.clone(),
            setup.clone(),
        );
        let until = stop.clone();
        let asked = client.clone();
        protector
            .run(async move {
                tokio::select! {
                    () = until.cancelled() => {}
                    () = kinds_changed(&asked, known) => {}
                }
            })
            .await;
    }
}
