//! The test programs of the workspace: built by cargo, then run two at a time. Half of them wait for servers, disks and an
//! emulated machine for most of their time; run one after the other they leave the processors idle.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::shell;

/// How many run at once.
const AT_ONCE: usize = 2;

/// Crates whose programs take longest; begun first, so that no processor waits for them at the end.
const LONGEST: [&str; 4] = ["node", "replicate", "lvm", "mirror"];

/// A program of tests.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// The folder of its crate, where it runs.
    folder: PathBuf,
    target: String,
    path: PathBuf,
}

/// How a program ended.
pub(crate) struct Ended {
    /// What it is called.
    pub name: String,
    /// What it printed.
    pub output: String,
    /// Its exit status.
    pub status: ExitStatus,
    /// How long it ran.
    pub took: Duration,
}

/// Builds all of them.
pub(crate) fn build() -> Result<Vec<Program>> {
    let mut command = shell::cargo(&["test", "--workspace", "--no-run", "--locked"]);
    command.arg("--message-format=json-render-diagnostics");
    let told = shell::read(&mut command)?;
    let mut programs =
        told.lines().filter_map(|line| program(line).transpose()).collect::<Result<Vec<_>>>()?;
    programs.sort_by_key(|program| {
        let place = LONGEST.iter().position(|name| program.folder.ends_with(name));
        place.unwrap_or(LONGEST.len())
    });
    Ok(programs)
}

/// The test program that a message of cargo's is about, if it is about one.
fn program(message: &str) -> Result<Option<Program>> {
    #[derive(Deserialize)]
    struct Message {
        manifest_path: Option<PathBuf>,
        target: Option<Target>,
        profile: Option<Profile>,
        executable: Option<PathBuf>,
    }
    #[derive(Deserialize)]
    struct Target {
        name: String,
    }
    #[derive(Deserialize)]
    struct Profile {
        test: bool,
    }
    let message: Message =
        serde_json::from_str(message).with_context(|| format!("a message of cargo's: {message}"))?;
    let (Some(manifest), Some(target), Some(path)) =
        (message.manifest_path, message.target, message.executable)
    else {
        return Ok(None);
    };
    if !message.profile.is_some_and(|profile| profile.test) {
        return Ok(None);
    }
    let folder = manifest.parent().context("a manifest lies in a folder")?.to_owned();
    Ok(Some(Program { folder, target: target.name, path }))
}

impl Program {
    /// The crate, and what of it this tests: `it` where that is its outside.
    fn name(&self) -> String {
        let folder = self.folder.file_name().unwrap_or_default().to_string_lossy();
        format!("{folder}-{}", self.target)
    }

    fn run(&self, logs: &Path, (variable, value): (&str, &Path)) -> Result<Ended> {
        let name = self.name();
        let log = logs.join(format!("{name}.log"));
        let file = File::create(&log).with_context(|| format!("making {}", log.display()))?;
        let same = file.try_clone().with_context(|| format!("opening {} twice", log.display()))?;
        let mut command = Command::new(&self.path);
        command
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env(variable, value)
            .stdout(file)
            .stderr(same);
        eprintln!("  begun: {name}, prints to {}", log.display());
        let begin = Instant::now();
        let status = command.status().with_context(|| format!("starting {}", self.path.display()))?;
        let output = std::fs::read(&log).with_context(|| format!("reading {}", log.display()))?;
        let output = String::from_utf8_lossy(&output).into_owned();
        Ok(Ended { name, output, status, took: begin.elapsed() })
    }
}

/// Runs them with a variable set, and hands over each as it ends; what one prints is in a file under `logs` until then.
pub(crate) fn run(
    programs: Vec<Program>,
    logs: &Path,
    env: (&str, &Path),
    mut ended: impl FnMut(Ended),
) -> Result<()> {
    std::fs::create_dir_all(logs).with_context(|| format!("making {}", logs.display()))?;
    let queue = Mutex::new(VecDeque::from(programs));
    let (send, receive) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            let (queue, send) = (&queue, send.clone());
            scope.spawn(move || {
                loop {
                    let next = queue.lock().expect("invariant: nobody panics with the queue").pop_front();
                    let Some(program) = next else { break };
                    let _ = send.send(program.run(logs, env));
                }
            });
        }
        drop(send);
        receive.iter().try_for_each(|outcome| outcome.map(&mut ended))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn test_programs_are_found_among_what_cargo_says() {
        let built = |test: bool, executable: Option<&str>| {
            let message = json!({
                "reason": "compiler-artifact", "manifest_path": "/w/crates/node/Cargo.toml",
                "target": {"name": "it", "kind": ["test"]}, "profile": {"test": test}, "executable": executable,
            });
            program(&message.to_string()).unwrap()
        };
        let found = built(true, Some("/t/it-1")).unwrap();
        assert_eq!((found.name().as_str(), found.path.to_str()), ("node-it", Some("/t/it-1")));
        assert_eq!(built(false, Some("/t/lifeboat")), None, "a program, not of tests");
        assert_eq!(built(true, None), None, "a library");
        assert_eq!(program(r#"{"reason": "build-finished", "success": true}"#).unwrap(), None);
        assert!(program("warning: text").is_err());
    }

    #[test]
    fn every_program_runs_and_is_handed_over() {
        let folder = tempfile::tempdir().unwrap();
        let programs = ["true", "false", "true"].map(|target| Program {
            folder: folder.path().to_owned(),
            target: target.to_owned(),
            path: target.into(),
        });
        let mut all = Vec::new();
        run(programs.into(), &folder.path().join("logs"), ("A", folder.path()), |ended| {
            all.push(ended.status.success());
        })
        .unwrap();
        all.sort_unstable();
        assert_eq!(all, [false, true, true]);
    }
}
