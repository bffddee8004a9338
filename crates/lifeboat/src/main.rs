//! The `lifeboat` binary: subcommands only; every rule lives in the crates below.

mod agent;
mod backup;
mod binder;
mod cluster;
mod completion;
mod connect;
mod crds;
mod demo;
mod demo_records;
mod doctor;
mod explain;
mod forget;
mod gather;
mod hub;
mod lvmd;
mod metrics;
mod node;
mod plan;
mod process;
mod protect_cmd;
mod protector;
mod provisioner;
mod repair;
mod status;
mod up;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::io::IsTerminal as _;
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
    /// End a cluster of a running `lifeboat up` where it stands, as a site that loses its power.
    Lose(up::control::Args),
    /// Start a lost cluster of `lifeboat up` again, with the disks and the objects it had.
    Revive(up::control::Args),
    /// Lose a cluster and come back: the whole of Lifeboat on this machine, proved by counting records.
    Demo(demo::Args),
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
    /// Decide where applications run: the controllers of a hub.
    Hub(hub::Args),
    /// Protect an application that a placement deploys.
    Protect(protect_cmd::Args),
    /// Say how applications are doing: protected or not, how old the last copy is, ready to fail over or why not.
    Status(status::Args),
    /// Say what a failover or a relocation would do and lose, and what stands in the way.
    Plan(plan::Args),
    /// Start an application on the other cluster from its newest copy.
    Failover(plan::FailoverArgs),
    /// Move an application to the other cluster and lose nothing.
    Relocate(plan::MoveArgs),
    /// Take a failover or a relocation back, as long as its point of no return is not passed.
    Abort(plan::abort::Args),
    /// Say what stands in an application's way and which remedies are safe, and carry one out.
    Repair(repair::Args),
    /// List volumes that are kept on a cluster though no PVC uses them, and give them up.
    Forget(forget::Args),
    /// Look whether everything is there that protection needs.
    Doctor(doctor::Args),
    /// Write what tells how things are into a folder, without secrets.
    Gather(gather::Args),
    /// Say in plain words why something is as it is.
    Explain(explain::Args),
    /// Print the custom resource definitions as YAML.
    Crds(crds::Args),
    /// Print a script that lets a shell complete commands.
    Completion(completion::Args),
    /// Write numbered records into a folder: the application that the demo protects.
    #[command(hide = true)]
    WriteRecords(demo_records::WriteArgs),
    /// Say which of those records are there.
    #[command(hide = true)]
    CheckRecords(demo_records::CheckArgs),
}

fn main() -> ExitCode {
    // A controller keeps many small things for long: in pages of 2 MiB they take half as much memory again. It comes before
    // everything else because pages that are there stay as they are. The API server gains speed by them. A kernel that does not
    // know the word is no reason not to start.
    if std::env::args_os().nth(1).is_some_and(|command| command != "up" && command != "demo") {
        let _ = rustix::thread::disable_transparent_huge_pages(true);
    }
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| {
            // The client's own layer tells every failed connection as an error; whoever asked tells it better.
            "warn,kube_client=off".into()
        }))
        // A file or a pipe gets the words alone.
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_writer(std::io::stderr)
        .init();
    let done = |()| ExitCode::SUCCESS;
    let result = match parse().command {
        Command::Up(args) => up::run(args).map(done),
        Command::Lose(args) => up::control::lose(&args).map(done),
        Command::Revive(args) => up::control::revive(&args).map(done),
        Command::Demo(args) => demo::run(&args),
        Command::Binder(args) => binder::run(&args).map(done),
        Command::Lvmd(args) => lvmd::run(&args).map(done),
        Command::Node(args) => node::run(&args).map(done),
        Command::Backup(args) => backup::run(&args),
        Command::Provisioner(args) => provisioner::run(&args).map(done),
        Command::Protector(args) => protector::run(&args).map(done),
        Command::Agent(args) => agent::run(&args).map(done),
        Command::Hub(args) => hub::run(&args).map(done),
        Command::Protect(args) => protect_cmd::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Failover(args) => plan::failover(&args),
        Command::Relocate(args) => plan::relocate(&args),
        Command::Abort(args) => plan::abort::run(&args),
        Command::Repair(args) => repair::run(&args),
        Command::Forget(args) => forget::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Gather(args) => gather::run(&args),
        Command::Explain(args) => explain::run(args),
        Command::Crds(args) => crds::run(&args).map(done),
        Command::Completion(args) => {
            completion::run(&args, Cli::command());
            Ok(ExitCode::SUCCESS)
        }
        Command::WriteRecords(args) => demo_records::write(&args).map(done),
        Command::CheckRecords(args) => demo_records::tell(&args),
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
    let mut causes = causes(error).into_iter();
    eprintln!("error: {}", causes.next().unwrap_or_default());
    for cause in causes {
        eprintln!("  because: {cause}");
    }
}

/// An error and what is below it; of an API server's refusal its own words, not how the client wraps them.
fn causes(error: &anyhow::Error) -> Vec<String> {
    let mut causes = Vec::new();
    for cause in error.chain() {
        if let Some(kube::Error::Api(status)) = cause.downcast_ref::<kube::Error>() {
            let said = if status.message.is_empty() { &status.reason } else { &status.message };
            causes.push(said.clone());
            break;
        }
        causes.push(cause.to_string());
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_in_the_servers_words() {
        let status = kube::core::Status::failure("drpolicies is forbidden", "Forbidden").with_code(403);
        let error = anyhow::Error::from(kube::Error::Api(status.boxed())).context("reading DRPolicies");
        assert_eq!(causes(&error), ["reading DRPolicies", "drpolicies is forbidden"]);
        let error = anyhow::anyhow!("no route").context("reaching the cluster");
        assert_eq!(causes(&error), ["reaching the cluster", "no route"]);
    }

    #[test]
    fn the_command_line_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_bad_label_is_wrong_usage() {
        let protect = |claims: &str| {
            Cli::command()
                .try_get_matches_from(["lifeboat", "protect", "web", "--policy", "p", "--claims", claims])
        };
        assert!(protect("app=web,tier=db").is_ok());
        for bad in ["app", "app=two words", "app=web,=db"] {
            let code = protect(bad).map_err(|error| error.exit_code());
            assert_eq!(code.err(), Some(2), "{bad}");
        }
    }

    #[test]
    fn every_timeout_is_a_duration() {
        for command in ["failover", "relocate", "abort", "repair"] {
            let parse = |timeout: &str| {
                let args = ["lifeboat", command, "web", "--timeout", timeout];
                Cli::command().try_get_matches_from(args).map_err(|error| error.exit_code())
            };
            for good in ["90s", "5m", "1h30m", "600"] {
                assert!(parse(good).is_ok(), "{command} {good}");
            }
            assert_eq!(parse("soon").err(), Some(2), "{command}");
        }
    }
}
