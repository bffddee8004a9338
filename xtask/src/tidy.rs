//! Rules of the repository that clippy cannot see. Each rule is a function from text to faults, so each has its table.
//!
//! `text` holds the rules for single files, `rooms` those for crates and for who may depend on whom.

mod rooms;
mod text;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell;

/// Files longer than this are told; they no longer read in one sitting.
const LONG: usize = 600;
/// Files longer than this are a fault.
const TOO_LONG: usize = 1000;

/// `cargo xtask tidy`.
pub(crate) fn run() -> Result<()> {
    check()?;
    println!("tidy");
    Ok(())
}

/// Checks the whole repository.
pub(crate) fn check() -> Result<()> {
    let files = files()?;
    let mut faults = Vec::new();
    for (path, text) in &files {
        faults.extend(text::faults(path, text).into_iter().map(|fault| format!("{path}{fault}")));
        faults.extend(text::dead_links(path, text, |target| {
            files.contains_key(target) || is_folder(&files, target)
        }));
        let lines = text.lines().count();
        if path.ends_with(".rs") && lines > TOO_LONG {
            faults.push(format!("{path}: {lines} lines; split it along its seams (at most {TOO_LONG})"));
        } else if path.ends_with(".rs") && lines > LONG {
            println!("note: {path} has {lines} lines; above {LONG} a file no longer reads in one sitting");
        }
    }
    faults.extend(rooms::faults(&files)?);
    if !faults.is_empty() {
        bail!("untidy:\n  {}", faults.join("\n  "));
    }
    Ok(())
}

fn is_folder(files: &BTreeMap<String, String>, path: &str) -> bool {
    let prefix = format!("{}/", path.trim_end_matches('/'));
    files.range(prefix.clone()..).next().is_some_and(|(first, _)| first.starts_with(&prefix))
}

/// Every text file that git knows or would add, by its path from the root.
fn files() -> Result<BTreeMap<String, String>> {
    let mut command = Command::new("git");
    command.current_dir(shell::root()).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let list = shell::read(&mut command)?;
    let mut files = BTreeMap::new();
    for path in list.split('\0').filter(|path| !path.is_empty()) {
        let full: PathBuf = shell::root().join(path);
        // A file that is deleted but not yet committed is still listed.
        if !full.is_file() {
            continue;
        }
        let bytes = fs::read(&full).with_context(|| format!("reading {path}"))?;
        // What is no text has no lines to be tidy in.
        if let Ok(text) = String::from_utf8(bytes) {
            files.insert(path.to_owned(), text);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_repository_is_tidy() {
        super::check().unwrap();
    }
}
