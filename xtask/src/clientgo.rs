//! Runs the client-go program of `tools/clientgo`: what Go controllers do, against either server.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use lifeboat_reference::Binaries;

use crate::conformance::{self, Server};
use crate::{shell, tools};

/// Options of `cargo xtask client-go`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which server to try.
    #[arg(long, value_enum, default_value_t = Server::Embedded)]
    pub(crate) on: Server,
}

/// Why it cannot run here, if so.
pub(crate) fn lacks() -> Option<String> {
    let binaries = Binaries::in_cache();
    let servers = binaries.kube_apiserver().and_then(|_| binaries.etcd()).and_then(|_| binaries.kubectl());
    servers
        .err()
        .map(|missing| missing.to_string())
        .or_else(|| tools::check_go().err().map(|why| format!("{why:#}")))
}

/// Builds it and runs it against a server of this kind.
pub(crate) fn run(on: Server) -> Result<()> {
    let program = build()?;
    let server = conformance::start(on)?;
    shell::run(Command::new(program).arg("--kubeconfig").arg(server.kubeconfig()))
        .with_context(|| format!("the server's last words:\n{}", server.log_tail()))
}

/// Its source changes with the repository, so it lies in the target folder and Go decides what to build again.
fn build() -> Result<PathBuf> {
    let program = shell::target().join("go").join("clientgo");
    let mut command = tools::go(&tools::module_folder("clientgo"));
    shell::run(command.args(["build", "-o"]).arg(&program).arg(".")).context("building tools/clientgo")?;
    Ok(program)
}
