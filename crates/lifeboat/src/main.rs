//! The `lifeboat` binary: subcommands only; every rule lives in the crates below.

mod binder;
mod crds;
mod up;

use clap::{Parser, Subcommand};

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
    /// Print the custom resource definitions as YAML.
    Crds(crds::Args),
}

fn main() -> std::process::ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into()),
        )
        .with_writer(std::io::stderr)
        .init();
    let result = match Cli::parse().command {
        Command::Up(args) => up::run(args),
        Command::Binder(args) => binder::run(&args),
        Command::Crds(args) => crds::run(&args),
    };
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            std::process::ExitCode::FAILURE
        }
    }
}

#[allow(clippy::print_stderr, reason = "errors of a command go to the person who ran it")]
fn report(error: &anyhow::Error) {
    eprintln!("error: {error}");
    for cause in error.chain().skip(1) {
        eprintln!("  because: {cause}");
    }
}
