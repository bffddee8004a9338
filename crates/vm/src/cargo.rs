//! A read-only disk with the caller's programs.
//!
//! A test binary with debug information may have hundreds of megabytes. On a disk it is read as far as it is used, where
//! the first filesystem would have to hold it in memory as a whole.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Error;
use crate::kit::Kit;

/// Makes an image of an ext4 filesystem with these files; each gets the name beside it.
pub(crate) fn make(kit: &Kit, folder: &Path, files: &[(PathBuf, String)]) -> Result<PathBuf, Error> {
    let stage = folder.join("stage");
    fs::create_dir(&stage).map_err(Error::file("making", &stage))?;
    let mut bytes = 0;
    for (from, name) in files {
        let to = stage.join(name);
        // A second name costs nothing; on another filesystem it takes a copy.
        if fs::hard_link(from, &to).is_err() {
            fs::copy(from, &to).map_err(Error::file("copying", from))?;
        }
        bytes += fs::metadata(&to).map_err(Error::file("reading", &to))?.len();
    }
    let image = folder.join("cargo");
    let program = kit.program("mke2fs")?;
    let output = Command::new(&program)
        .args([
            "-q",
            "-F",
            "-t",
            "ext4",
            "-b",
            "4096",
            "-m",
            "0",
            "-N",
            "64",
            "-O",
            "^has_journal,^resize_inode",
            "-d",
        ])
        .arg(&stage)
        .arg(&image)
        // In KiB: the files, a little for each block of extents, and room for the filesystem itself.
        .arg(format!("{}k", bytes / 1024 + bytes / 1024 / 50 + 8 * 1024))
        .stdin(Stdio::null())
        .output()
        .map_err(|source| Error::Start { program: program.display().to_string(), source })?;
    if !output.status.success() {
        let output = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Error::Tool {
            program: "mke2fs".to_owned(),
            doing: "making the disk of programs",
            output,
        });
    }
    fs::remove_dir_all(&stage).map_err(Error::file("removing", &stage))?;
    Ok(image)
}
