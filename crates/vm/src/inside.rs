//! What tests do to disks once they are in the machine, as an application would.

use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a program to its end and gives what it printed.
///
/// # Panics
/// When it fails.
pub fn run(argv: &[&str]) -> String {
    let output = Command::new(argv[0]).args(&argv[1..]).output();
    let output = output.unwrap_or_else(|error| panic!("{argv:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{argv:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Makes a volume group with a thin pool on a disk, and gives lvmd's configuration of the classes `thick` and `thin` on it.
///
/// # Panics
/// When that fails.
pub fn volume_group(group: &str, disk: &str, pool_size: &str) -> String {
    run(&["vgcreate", group, disk]);
    run(&["lvcreate", "-y", "-T", "-L", pool_size, "--poolmetadatasize", "8m", &format!("{group}/pool")]);
    format!(
        "lvm-command-prefix: [lvm]\n\
         lvm-config: activation/udev_sync=0 activation/udev_rules=0\n\
         device-classes:\n\
         - {{name: thick, volume-group: {group}, spare-gb: 0, default: true}}\n\
         - {{name: thin, volume-group: {group}, type: thin, thin-pool: {{name: pool, overprovision-ratio: 8}}}}\n"
    )
}

/// Overwrites a part in the middle of a file or device, for good.
///
/// # Panics
/// When that fails.
pub fn scribble(path: &Path, at: u64, bytes: &[u8]) {
    let write = || {
        let mut file = fs::OpenOptions::new().write(true).open(path)?;
        file.seek(SeekFrom::Start(at))?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
}

/// A mounted filesystem, where it is mounted; released when it goes.
pub struct Mounted(PathBuf);

impl Mounted {
    /// Mounts a device.
    ///
    /// # Panics
    /// When that fails.
    pub fn at(device: &Path, place: &str) -> Self {
        let device = device.display().to_string();
        run(&["mkdir", "-p", place]);
        // Copies of an XFS have its identity.
        let xfs = run(&["blkid", "-p", "-s", "TYPE", "-o", "value", &device]).trim() == "xfs";
        run(&["mount", "-o", if xfs { "nouuid" } else { "rw" }, &device, place]);
        Self(place.into())
    }

    /// Makes a filesystem on a device and mounts it.
    ///
    /// # Panics
    /// When that fails.
    pub fn fresh(device: &Path, filesystem: &str, place: &str) -> Self {
        run(&[&format!("mkfs.{filesystem}"), "-q", &device.display().to_string()]);
        Self::at(device, place)
    }
}

impl Deref for Mounted {
    type Target = Path;
    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        run(&["umount", &self.0.display().to_string()]);
    }
}
