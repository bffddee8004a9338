//! Opening what lies below a directory, and nothing else: no link is followed, no path leads up.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

/// Longest path that the system takes at once.
const AT_ONCE: usize = 4000;

/// Opens a path below a directory; an empty one is the directory itself.
pub(crate) fn open(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut rest = path;
    let mut folder: Option<OwnedFd> = None;
    while rest.len() > AT_ONCE {
        let cut = rest[..AT_ONCE].iter().rposition(|byte| *byte == b'/').ok_or(Errno::NAMETOOLONG)?;
        let at = folder.as_ref().map_or(root, AsFd::as_fd);
        folder = Some(resolve(at, &rest[..cut], OFlags::PATH | OFlags::DIRECTORY)?);
        rest = &rest[cut + 1..];
    }
    resolve(folder.as_ref().map_or(root, AsFd::as_fd), rest, flags)
}

/// Opens the directory that an entry is in, and says the entry's name.
pub(crate) fn parent<'a>(root: BorrowedFd<'_>, path: &'a [u8]) -> Result<(OwnedFd, &'a OsStr), Errno> {
    let (folder, name) = split(path);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    Ok((open(root, folder, flags)?, OsStr::from_bytes(name)))
}

/// A path's directory and name.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

fn resolve(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = if path.is_empty() { b"." } else { path };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    loop {
        match openat2(root, OsStr::from_bytes(path), flags, Mode::empty(), resolve) {
            // Something was renamed meanwhile; the system cannot be sure and asks to try again.
            Err(Errno::AGAIN | Errno::INTR) => {}
            other => return other,
        }
    }
}

/// A path to an entry of an open directory, for the few calls that take no open file.
pub(crate) fn through(folder: BorrowedFd<'_>, name: &OsStr) -> PathBuf {
    let mut path = String::new();
    // Writing to a string does not fail.
    let _ = write!(path, "/proc/self/fd/{}", folder.as_raw_fd());
    Path::new(&path).join(name)
}
