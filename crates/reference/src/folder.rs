//! Folders for what a test starts, named after the process that they belong to.
//!
//! A folder goes with what was started. Where that is never dropped (a test binary keeps it in a `static`, or is killed), the
//! next start sweeps up: folders of processes that are gone.

use std::fs;
use std::io;
use std::path::Path;

use tempfile::TempDir;

/// Makes a new folder of this process for something of this kind, and removes those of processes that are gone.
///
/// # Errors
/// When it cannot be made.
pub fn make(parent: &Path, kind: &str) -> io::Result<TempDir> {
    sweep(parent, kind);
    tempfile::Builder::new().prefix(&format!("lifeboat-{kind}-{}-", std::process::id())).tempdir_in(parent)
}

fn sweep(parent: &Path, kind: &str) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let owner = entry.file_name().to_str().and_then(|name| owner(name, kind));
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            // Someone else may sweep at the same time, or own the folder: then it is theirs to remove.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The process that a folder of this name belongs to.
fn owner(name: &str, kind: &str) -> Option<u32> {
    let rest = name.strip_prefix("lifeboat-")?.strip_prefix(kind)?.strip_prefix('-')?;
    rest.split_once('-')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_the_gone_are_swept() {
        let parent = tempfile::tempdir().unwrap();
        let mine = make(parent.path(), "vm").unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let gone = child.id();
        child.wait().unwrap();
        let theirs = parent.path().join(format!("lifeboat-vm-{gone}-abc"));
        let kept = [format!("lifeboat-reference-{gone}-abc"), "something-else".to_owned()];
        let kept = kept.map(|name| parent.path().join(name));
        for folder in kept.iter().chain([&theirs]) {
            fs::create_dir(folder).unwrap();
        }
        let another = make(parent.path(), "vm").unwrap();
        assert!(mine.path().exists() && another.path().exists() && kept.iter().all(|folder| folder.exists()));
        assert!(!theirs.exists());
    }

    #[test]
    fn owners_are_read_from_names() {
        let check = |name, expected| assert_eq!(owner(name, "vm"), expected, "{name}");
        check("lifeboat-vm-12-xyz", Some(12));
        check("lifeboat-vm-xyz", None);
        check("lifeboat-reference-12-xyz", None);
    }
}
