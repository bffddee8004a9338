//! `lifeboat provisioner`: volumes for claims, snapshots, restores and the stores of backups, for a whole cluster. Of several, one works
//! and the others stand by.

use crate::cluster::Target;
use crate::process::{Lead, block_on, client};
use lifeboat_engine::{Clock, Settings};
use lifeboat_mover::Rustic;
use lifeboat_node::central::{self, Central, DRIVER, Snapshots};
use std::sync::Arc;

/// Options of `lifeboat provisioner`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// Name that StorageClasses and VolumeSnapshotClasses call us by.
    #[arg(long, value_name = "NAME", default_value = DRIVER)]
    driver: String,
    /// Namespace of the lease, and of a SnapshotBackupStorage that a snapshot class names without one.
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE", default_value = "lifeboat-system")]
    namespace: String,
    /// Which part of snapshots is done here.
    #[arg(long, value_enum, default_value_t = Part::All)]
    snapshots: Part,
    /// Start at once, without a lease: no other provisioner may run.
    #[arg(long)]
    alone: bool,
}

/// Which part of snapshots is done here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// All of it: the cluster has no snapshot controller.
    All,
    /// What a driver's sidecar does: the cluster has a snapshot controller.
    Contents,
    /// Nothing.
    None,
}

/// Serves the cluster until Ctrl-C or SIGTERM.
pub fn run(args: &Args) -> anyhow::Result<()> {
    block_on(serve(args))
}

async fn serve(args: &Args) -> anyhow::Result<()> {
    let client = client(&args.target).await?;
    let snapshots = match args.snapshots {
        Part::All => Snapshots::Here,
        Part::Contents => Snapshots::ContentsOnly,
        Part::None => Snapshots::Elsewhere,
    };
    let central = Central {
        driver: args.driver.clone(),
        namespace: args.namespace.clone(),
        snapshots,
        mover: Arc::new(Rustic::new()),
    };
    let engine = central::engine(client.clone(), Clock::system(), Settings::default(), &central);
    let lead = Lead {
        client,
        namespace: args.namespace.clone(),
        name: "lifeboat-provisioner",
        alone: args.alone,
        metrics: engine.metrics(),
    };
    lead.run(|stop| engine.run(stop.cancelled_owned())).await
}
