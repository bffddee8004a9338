//! The `lifeboat` binary: subcommands only; every rule lives in the crates below.

mod agent;
mod backup;
mod binder;
mod cluster;
mod crds;
mod explain;
mod lvmd;
mod metrics;
mod node;
mod process;
mod protector;
mod provisioner;
mod up;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::process::ExitCode;

/// The API server makes and drops many small values; this allocator does it in half the time of the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Keeps stateful Kubernetes applications alive when a disk, a node, a cluster or a site is lost.
#[derive(Parser)]
#[command(name = "lifeboat", version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start embedded clusters on this machine and leave them running for kubectl.
    Up(up::Args),
    /// Bind claims to volumes in a cluster, in the place of kube-controller-manager's own binder.
    Binder(binder::Args),
    /// Serve node storage to TopoLVM's clients and to our own, on a unix socket.
    Lvmd(lvmd::Args),
    /// Look after the volumes of one node: make, grow, back up, restore and remove them.
    Node(node::Args),
    /// Look at backup repositories by hand.
    Backup(backup::Args),
    /// Make volumes for claims, snapshots and restores, and look after the stores of backups.
    Provisioner(provisioner::Args),
    /// Protect applications' volumes on a cluster: VolumeReplicationGroups, their records and their replication.
    Protector(protector::Args),
    /// Carry a hub's works to a managed cluster, and what is seen there back to the hub.
    Agent(agent::Args),
    /// Say in plain words why something is as it is.
    Explain(explain::Args),
    /// Print the custom resource definitions as YAML.
    Crds(crds::Args),
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into()),
        )
        .with_writer(std::io::stderr)
        .init();
    let done = |()| ExitCode::SUCCESS;
    let result = match parse().command {
        Command::Up(args) => up::run(args).map(done),
        Command::Binder(args) => binder::run(&args).map(done),
        Command::Lvmd(args) => lvmd::run(&args).map(done),
        Command::Node(args) => node::run(&args).map(done),
        Command::Backup(args) => backup::run(&args),
        Command::Provisioner(args) => provisioner::run(&args).map(done),
        Command::Protector(args) => protector::run(&args).map(done),
        Command::Agent(args) => agent::run(&args).map(done),
        Command::Explain(args) => explain::run(args),
        Command::Crds(args) => crds::run(&args).map(done),
    };
    result.unwrap_or_else(|error| {
        report(&error);
        ExitCode::FAILURE
    })
}

/// Under the name `kubectl-lifeboat`, a link to the same file, kubectl runs it as `kubectl lifeboat`.
fn parse() -> Cli {
    let mut command = Cli::command();
    let program = std::env::args_os().next().unwrap_or_default();
    if std::path::Path::new(&program).file_name().is_some_and(|name| name == "kubectl-lifeboat") {
        command = command.bin_name("kubectl lifeboat");
    }
    Cli::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit())
}

#[allow(clippy::print_stderr, reason = "errors of a command go to the person who ran it")]
fn report(error: &anyhow::Error) {
    eprintln!("error: {error}");
    for cause in error.chain().skip(1) {
        eprintln!("  because: {cause}");
    }
}
