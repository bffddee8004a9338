//! `lifeboat crds`: the definitions to install in a cluster that is not embedded.

use anyhow::Context as _;
use std::io::Write as _;

/// Options of `lifeboat crds`.
#[derive(clap::Args)]
pub struct Args {}

/// Prints the definitions.
pub fn run(_: &Args) -> anyhow::Result<()> {
    std::io::stdout().write_all(lifeboat_api::crds_yaml().as_bytes()).context("writing the definitions")
}
