//! One change at a time to a volume group, among all processes of this machine that follow the same rule.
//!
//! LVM locks for one command; a change of ours looks, runs one or more commands, and cleans up after a failure. Two processes on one group, such
//! as an old one that is still ending, must not do that at the same time: the second would take the first one's volume for its own leftover.

use super::report::Report;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The right to change a group; ends when it is dropped, or with the process.
pub(super) struct HostLock {
    _file: File,
    /// Whether another process had the right since we had it last: then what we know of the group may be old.
    pub(super) was_away: bool,
}

/// The file that stands for a group. By its UUID: a group can be renamed, and two groups can have one name.
pub(super) fn path(folder: &Path, name: &str, report: &Report) -> PathBuf {
    let id = if report.id.is_empty() { name } else { &report.id };
    folder.join(format!("vg-{id}.lock"))
}

/// Waits for the right. `us` tells this process and group apart from every other.
pub(super) fn take(path: &Path, us: &str) -> std::io::Result<HostLock> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)?;
    let was_away = std::fs::read_to_string(path)? != us;
    if was_away {
        file.set_len(0)?;
        file.write_all_at(us.as_bytes(), 0)?;
    }
    Ok(HostLock { _file: file, was_away })
}
