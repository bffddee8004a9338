//! `lifeboat completion`: what a shell needs to complete our commands.

use clap_complete::Shell;

/// Options of `lifeboat completion`.
#[derive(clap::Args)]
pub struct Args {
    /// The shell.
    shell: Shell,
}

/// Prints the script.
pub fn run(args: &Args, mut command: clap::Command) {
    clap_complete::generate(args.shell, &mut command, "lifeboat", &mut std::io::stdout());
}
