//! `lifeboat protector`: protects applications' volumes on one cluster, with a hub or without. Of several, one works and the others stand by.

use crate::cluster::Target;
use crate::process::{Lead, block_on, client};
use anyhow::Context as _;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::Api;
use lifeboat_api::conditions::fleet::IDENTITY_NAMESPACE;
use lifeboat_engine::{Clock, Metrics, Settings};
use lifeboat_protect::run;
use lifeboat_protect::stores::Stores;
use lifeboat_protect::view::Setup;
use std::sync::Arc;
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
    block_on(protect(args))
}

async fn protect(args: &Args) -> anyhow::Result<()> {
    let client = client(&args.target).await?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let system = namespaces.get(IDENTITY_NAMESPACE).await.context("reading the cluster's identity")?;
    let cluster = system.metadata.uid.unwrap_or_default();
    let setup = Setup { namespace: args.namespace.clone(), cluster, only: args.groups_in.clone() };
    let lead = Lead {
        client: client.clone(),
        namespace: args.namespace.clone(),
        name: "lifeboat-protector",
        alone: args.alone,
        metrics: Metrics::default(),
    };
    lead.run(|stop| serve(client, setup, stop)).await
}

/// Serves until told to stop; anew whenever kinds come or go.
pub async fn serve(client: kube::Client, setup: Setup, stop: CancellationToken) {
    let clock = Clock::system();
    let ledger = Arc::new(Stores::new(clock.clone()));
    run::serve(client, clock, Settings::default(), ledger, setup, stop.cancelled_owned()).await;
}
