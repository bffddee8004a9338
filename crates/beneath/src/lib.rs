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
///
/// # Errors
/// When it is not there, or a link stands in its way.
pub fn open(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
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
///
/// # Errors
/// When the directory is not there, or a link stands in its way.
pub fn parent<'a>(root: BorrowedFd<'_>, path: &'a [u8]) -> Result<(OwnedFd, &'a OsStr), Errno> {
    let (folder, name) = split(path);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    Ok((open(root, folder, flags)?, OsStr::from_bytes(name)))
}

/// A path's directory and name.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
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
pub fn through(folder: BorrowedFd<'_>, name: &OsStr) -> PathBuf {
    let mut path = String::new();
    // Writing to a string does not fail.
    let _ = write!(path, "/proc/self/fd/{}", folder.as_raw_fd());
    Path::new(&path).join(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn folder(path: &Path) -> OwnedFd {
        rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap()
    }

    #[test]
    fn nothing_leads_out() {
        let temp = tempfile::tempdir().unwrap();
        let inside = temp.path().join("inside");
        fs::create_dir_all(inside.join("a/b")).unwrap();
        fs::write(temp.path().join("secret"), "s").unwrap();
        fs::write(inside.join("a/b/file"), "f").unwrap();
        std::os::unix::fs::symlink("../secret", inside.join("up")).unwrap();
        std::os::unix::fs::symlink("a", inside.join("along")).unwrap();
        let root = folder(&inside);
        let opens = |path: &str| open(root.as_fd(), path.as_bytes(), OFlags::RDONLY).map(drop);
        assert_eq!(opens("a/b/file"), Ok(()));
        assert_eq!(opens(""), Ok(()), "the directory itself");
        for path in ["../secret", "a/../../secret", "/etc/hostname", "up", "along/b/file"] {
            assert!(opens(path).is_err(), "{path}");
        }
        let (folder, name) = parent(root.as_fd(), b"a/b/file").unwrap();
        assert_eq!(fs::read_to_string(through(folder.as_fd(), name)).unwrap(), "f");
    }

    #[test]
    fn paths_longer_than_the_system_takes_are_opened_too() {
        let temp = tempfile::tempdir().unwrap();
        let (name, root) = ("n".repeat(200), folder(temp.path()));
        let mut path = Vec::new();
        for _ in 0..30 {
            let at = open(root.as_fd(), &path, OFlags::PATH | OFlags::DIRECTORY).unwrap();
            rustix::fs::mkdirat(&at, &name, Mode::from(0o700)).unwrap();
            path.extend_from_slice(if path.is_empty() { b"" } else { b"/" });
            path.extend_from_slice(name.as_bytes());
        }
        assert!(path.len() > 6000);
        open(root.as_fd(), &path, OFlags::RDONLY | OFlags::DIRECTORY).unwrap();
    }
}
