//! `lifeboat failover`: start an application on the other cluster from its newest copy, whatever became of the first.

use crate::plan::{Manner, Subject, act};
use lifeboat_hub::drpc::commission::Act;
use std::process::ExitCode;

/// Options of `lifeboat failover`.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code: 0 the application runs on the other cluster, 1 the hub could not be reached, 2 wrong usage, \
                        3 it is not done yet, 4 it was not begun, 5 there is no such application."
)]
pub struct Args {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    manner: Manner,
}

/// Shows the plan, asks, does it and follows it.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    act(&args.subject, &args.manner, Act::Failover)
}
