//! Runs the embedded API server as its users do: the `lifeboat` binary, over HTTPS, with the kubeconfig it writes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lifeboat_reference::Process;
use tempfile::TempDir;

use crate::shell;

const PATIENCE: Duration = Duration::from_secs(60);

/// How the binary is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    Debug,
    Release,
}

/// A running `lifeboat up`; ended and its data removed on drop.
#[derive(Debug)]
pub(crate) struct Embedded {
    process: Process,
    kubeconfig: PathBuf,
    // Dropped after the process that writes into it.
    _folder: TempDir,
}

impl Embedded {
    /// Builds the binary, starts one durable cluster and waits for its kubeconfig.
    pub(crate) fn start(profile: Profile) -> Result<Self> {
        let program = build(profile)?;
        let folder = tempfile::Builder::new().prefix("lifeboat-up-").tempdir()?;
        let data = folder.path().join("data");
        // What is judged is the API server, as kube-apiserver is beside it: without anything that acts by itself.
        let args = ["up", "--clusters", "hub", "--without", "binder,storage,membership,hub", "--data"]
            .map(str::to_owned);
        let args: Vec<String> = args.into_iter().chain([data.display().to_string()]).collect();
        let mut process = Process::start(&program, &args, &folder.path().join("log"))
            .with_context(|| format!("starting {}", program.display()))?;
        let kubeconfig = data.join("kubeconfig");
        let begin = Instant::now();
        while !kubeconfig.is_file() {
            if process.has_exited() || begin.elapsed() > PATIENCE {
                bail!("lifeboat up wrote no {}; it said:\n{}", kubeconfig.display(), process.log_tail());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(Self { process, kubeconfig, _folder: folder })
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The end of what it logged, for error messages.
    pub(crate) fn log_tail(&self) -> String {
        self.process.log_tail()
    }
}

/// Builds the binary and gives its path; `LIFEBOAT_BINARY` names one that is built already.
pub(crate) fn build(profile: Profile) -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("LIFEBOAT_BINARY") {
        return Ok(PathBuf::from(path));
    }
    let (folder, flags): (_, &[&str]) = match profile {
        // With the features of the whole workspace, as the tests were built: nothing is compiled a second time.
        Profile::Debug => ("debug", &["--workspace"]),
        // As people build it.
        Profile::Release => ("release", &["--release", "-p", "lifeboat"]),
    };
    shell::run(shell::cargo(&["build", "--bin", "lifeboat"]).args(flags))?;
    Ok(shell::target().join(folder).join("lifeboat"))
}

/// Why there is no embedded server to test, if so.
pub(crate) fn lacks() -> Option<String> {
    let help =
        build(Profile::Debug).and_then(|program| shell::read(Command::new(program).args(["up", "--help"])));
    match help {
        Ok(text) if text.contains("--data") => None,
        Ok(_) => Some("this build of lifeboat has no `up --data`".to_owned()),
        // A build that fails is told by whoever runs it next, with the compiler's words.
        Err(_) => None,
    }
}
