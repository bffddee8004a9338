//! Owners, modes, times and extended attributes of what was restored.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

use rustic_core::repofile::Metadata;
use rustix::fs::{AtFlags, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;

use crate::source::go;

/// Gives an open file or directory what the repository says of it.
pub(super) fn apply(file: impl AsFd, metadata: &Metadata) -> Result<(), Errno> {
    let file = file.as_fd();
    if let Some((uid, gid)) = owner(metadata) {
        allowed(rustix::fs::fchown(file, Some(uid), Some(gid)))?;
    }
    attributes(metadata, |name, value| rustix::fs::fsetxattr(file, name, value, XattrFlags::empty()))?;
    // After the owner: a change of owner takes away the bits that let a program run as somebody.
    if let Some(mode) = metadata.mode {
        rustix::fs::fchmod(file, from_go(mode))?;
    }
    match times(metadata) {
        Some(times) => rustix::fs::futimens(file, &times),
        None => Ok(()),
    }
}

/// The same for a link or a special file, which cannot be opened; `linked` says that it is a link, which has no mode.
pub(super) fn apply_at(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    metadata: &Metadata,
    linked: bool,
) -> Result<(), Errno> {
    if let Some((uid, gid)) = owner(metadata) {
        allowed(rustix::fs::chownat(folder, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW))?;
    }
    let mut path = format!("/proc/self/fd/{}/", folder.as_raw_fd()).into_bytes();
    path.extend_from_slice(name.as_bytes());
    let path = OsStr::from_bytes(&path);
    attributes(metadata, |name, value| rustix::fs::lsetxattr(path, name, value, XattrFlags::empty()))?;
    if let Some(mode) = metadata.mode.filter(|_| !linked) {
        rustix::fs::chmodat(folder, name, from_go(mode), AtFlags::empty())?;
    }
    match times(metadata) {
        Some(times) => rustix::fs::utimensat(folder, name, &times, AtFlags::SYMLINK_NOFOLLOW),
        None => Ok(()),
    }
}

/// Gives a file the time it is to have; what tells a finished file from a half-restored one.
pub(super) fn size(file: &File, size: u64) -> Result<(), Errno> {
    rustix::fs::ftruncate(file, size)
}

fn owner(metadata: &Metadata) -> Option<(Uid, Gid)> {
    // All ones means "leave it" to the system, so it is no owner.
    let valid = |id: u32| (id != u32::MAX).then_some(id);
    Some((Uid::from_raw(valid(metadata.uid?)?), Gid::from_raw(valid(metadata.gid?)?)))
}

/// Who is not root cannot give files away; the demo runs so.
fn allowed(outcome: Result<(), Errno>) -> Result<(), Errno> {
    match outcome {
        Err(Errno::PERM) if !rustix::process::geteuid().is_root() => Ok(()),
        outcome => outcome,
    }
}

fn attributes(metadata: &Metadata, set: impl Fn(&str, &[u8]) -> Result<(), Errno>) -> Result<(), Errno> {
    for attribute in &metadata.extended_attributes {
        match set(&attribute.name, attribute.value.as_deref().unwrap_or_default()) {
            // Labels belong to the machine, and not every system lets everybody set every name.
            Err(Errno::PERM | Errno::NOTSUP | Errno::INVAL) if !attribute.name.starts_with("user.") => {
                tracing::debug!(name = attribute.name, "an attribute is not for this system");
            }
            outcome => outcome?,
        }
    }
    Ok(())
}

fn times(metadata: &Metadata) -> Option<Timestamps> {
    let time = |time: jiff::Timestamp| {
        // A moment before 1970 has a negative fraction here and a positive one there.
        let (mut seconds, mut nanoseconds) = (time.as_second(), i64::from(time.subsec_nanosecond()));
        if nanoseconds < 0 {
            seconds -= 1;
            nanoseconds += 1_000_000_000;
        }
        Timespec { tv_sec: seconds, tv_nsec: nanoseconds }
    };
    let modified = metadata.mtime?;
    Some(Timestamps {
        last_access: time(metadata.atime.unwrap_or(modified)),
        last_modification: time(modified),
    })
}

fn from_go(mode: u32) -> Mode {
    let flag = |flag: u32, bit: u32| if mode & flag != 0 { bit } else { 0 };
    let special = flag(go::SETUID, 0o4000) | flag(go::SETGID, 0o2000) | flag(go::STICKY, 0o1000);
    Mode::from_raw_mode((mode & 0o777) | special)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_round_down() {
        let check = |time: &str, seconds, nanoseconds| {
            let metadata = Metadata { mtime: Some(time.parse().unwrap()), ..Metadata::default() };
            let time = times(&metadata).unwrap().last_modification;
            assert_eq!((time.tv_sec, time.tv_nsec), (seconds, nanoseconds));
        };
        check("1970-01-01T00:00:01.5Z", 1, 500_000_000);
        check("1969-12-31T23:59:59.5Z", -1, 500_000_000);
        check("1969-12-31T23:59:58Z", -2, 0);
    }

    #[test]
    fn an_owner_of_all_ones_is_none() {
        let check = |uid, gid, expected: bool| {
            let metadata = Metadata { uid, gid, ..Metadata::default() };
            assert_eq!(owner(&metadata).is_some(), expected, "{uid:?} {gid:?}");
        };
        check(Some(1), Some(2), true);
        check(Some(u32::MAX), Some(2), false);
        check(None, Some(2), false);
    }
}
