//! Folders for the disks and logs of a machine, named after the process that they belong to.
//!
//! A folder goes with its machine. Where that is never dropped (a test binary keeps it in a `static`, or is killed), the
//! next boot sweeps up: folders of processes that are gone.

use std::path::Path;
use std::{env, fs};

use tempfile::TempDir;

use crate::Error;

const PREFIX: &str = "lifeboat-vm-";

/// Makes a new folder of this process, and removes those of processes that are gone.
pub(crate) fn make() -> Result<TempDir, Error> {
    let parent = env::temp_dir();
    sweep(&parent);
    tempfile::Builder::new()
        .prefix(&format!("{PREFIX}{}-", std::process::id()))
        .tempdir_in(&parent)
        .map_err(Error::file("making a folder in", &parent))
}

fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let gone =
            name.to_str().and_then(owner).is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists());
        if gone {
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
    fn owners_are_read_from_names() {
        let check = |name, expected| assert_eq!(owner(name), expected, "{name}");
        check("lifeboat-vm-12-xyz", Some(12));
        check("lifeboat-vm-xyz", None);
        check("lifeboat-reference-12-xyz", None);
    }

    #[test]
    fn only_folders_of_the_gone_are_swept() {
        let parent = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let gone = parent.path().join(format!("{PREFIX}{}-a", child.id()));
        child.wait().unwrap();
        let mine = parent.path().join(format!("{PREFIX}{}-a", std::process::id()));
        for folder in [&gone, &mine] {
            fs::create_dir(folder).unwrap();
        }
        sweep(parent.path());
        assert!(mine.exists());
        assert!(!gone.exists());
    }
}
