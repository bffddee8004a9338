//! Folders for the data of a control plane, named after the process that they belong to.
//!
//! A folder goes with its control plane. Where that is never dropped (a test binary keeps it in a `static`, or is killed),
//! the next start sweeps up: folders of processes that are gone.

use std::fs;
use std::io;
use std::path::Path;

use tempfile::TempDir;

const PREFIX: &str = "lifeboat-reference-";

/// Makes a new folder of this process.
pub(crate) fn make(parent: &Path) -> io::Result<TempDir> {
    tempfile::Builder::new().prefix(&format!("{PREFIX}{}-", std::process::id())).tempdir_in(parent)
}

/// Removes the folders of processes that are gone.
pub(crate) fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let abandoned =
            name.to_str().and_then(owner).is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists());
        if abandoned {
            // Someone else may sweep at the same time, or own the folder: then it is theirs to remove.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The process that a folder of this name belongs to.
fn owner(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_the_gone_are_swept() {
        let parent = tempfile::tempdir().unwrap();
        let mine = make(parent.path()).unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let gone = child.id();
        child.wait().unwrap();
        let theirs = parent.path().join(format!("{PREFIX}{gone}-abc"));
        let other = parent.path().join("something-else");
        fs::create_dir(&theirs).unwrap();
        fs::create_dir(&other).unwrap();
        sweep(parent.path());
        assert!(mine.path().exists());
        assert!(other.exists());
        assert!(!theirs.exists());
    }

    #[test]
    fn owners_are_read_from_names() {
        let check = |name, expected| assert_eq!(owner(name), expected, "{name}");
        check("lifeboat-reference-12-xyz", Some(12));
        check("lifeboat-reference-xyz", None);
        check("lifeboat-up-12-xyz", None);
    }
}
