//! Owners, modes and times of what was applied.

use std::ffi::OsStr;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, Gid, Mode, Timespec, Timestamps, UTIME_OMIT, Uid};
use rustix::io::Errno;

use super::Policy;
use crate::attributes::{self, Attributes};
use crate::index::Meta;

/// Gives an entry what the sender says of it; `linked` says that it is a symbolic link, which has no mode.
pub(super) fn apply(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    meta: &Meta,
    attributes: Option<&Attributes>,
    policy: Policy,
    linked: bool,
) -> Result<(), Errno> {
    // All ones means "leave it" to the system, so it is no owner.
    if meta.uid != u32::MAX && meta.gid != u32::MAX {
        let (uid, gid) = (Uid::from_raw(meta.uid), Gid::from_raw(meta.gid));
        match rustix::fs::chownat(folder, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW) {
            // Who is not root cannot give files away; the demo runs so.
            Err(Errno::PERM) if !rustix::process::geteuid().is_root() => {}
            outcome => outcome?,
        }
    }
    if let Some(wanted) = attributes {
        attributes::replace(folder, name, wanted)?;
    }
    if !linked {
        // After the owner: a change of owner takes the set-id bits away.
        let kept = if policy.set_id { 0o7777 } else { 0o1777 };
        rustix::fs::chmodat(folder, name, Mode::from_raw_mode(meta.mode & kept), AtFlags::empty())?;
    }
    let (seconds, nanos) = meta.modified;
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: seconds, tv_nsec: i64::from(nanos.min(999_999_999)) },
    };
    rustix::fs::utimensat(folder, name, &times, AtFlags::SYMLINK_NOFOLLOW)
}
