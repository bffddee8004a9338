//! Running programs: announced, streamed, and with errors that name the command.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};

/// Root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("invariant: xtask lies in the repository")
}

/// Cargo's output folder.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// A cargo command at the root, with the toolchain that runs this task.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(args);
    // Cargo told this task about its package. Told on, it would make build scripts that look at such variables run
    // again, and with them everything that stands on their crates.
    for (name, _) in std::env::vars_os() {
        let told =
            name.to_str().is_some_and(|name| TOLD_BY_CARGO.iter().any(|prefix| name.starts_with(prefix)));
        if told {
            command.env_remove(name);
        }
    }
    command
}

const TOLD_BY_CARGO: [&str; 5] =
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_NAME", "CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE"];

/// Runs a command with its output shown; fails when it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    announce(command);
    let status = command.status().with_context(|| format!("starting {}", shown(command)))?;
    finish(command, status)
}

/// Runs a command and gives what it wrote to standard output; errors are shown.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let output =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("starting {}", shown(command)))?;
    finish(command, output.status)?;
    String::from_utf8(output.stdout).with_context(|| format!("reading the output of {}", shown(command)))
}

/// Runs a command, shows each line of its standard output and hands it to `line`; the status is left to the caller.
pub(crate) fn stream(command: &mut Command, mut line: impl FnMut(&str)) -> Result<ExitStatus> {
    announce(command);
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("starting {}", shown(command)))?;
    let output = child.stdout.take().expect("invariant: standard output is piped");
    for text in BufReader::new(output).split(b'\n') {
        let text = text.with_context(|| format!("reading the output of {}", shown(command)))?;
        let text = String::from_utf8_lossy(&text);
        println!("{text}");
        line(&text);
    }
    child.wait().with_context(|| format!("waiting for {}", shown(command)))
}

fn announce(command: &Command) {
    eprintln!("$ {}", shown(command));
}

/// A command as people would type it, cut where it gets long.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words: Vec<_> =
        std::iter::once(program).chain(command.get_args()).map(|word| word.to_string_lossy()).collect();
    let line = words.join(" ");
    let start: String = line.chars().take(200).collect();
    if start.len() < line.len() { start + " ..." } else { line }
}

fn finish(command: &Command, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("`{}` failed with {status}", shown(command));
    }
    Ok(())
}
