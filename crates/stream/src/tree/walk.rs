//! Walks a tree and notes what the system says of every entry. Contents are not read here.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, StatxFlags, openat, readlinkat, statx};
use rustix::io::Errno;

use crate::Error;
use crate::blocks::ZERO;
use crate::index::{Entry, Kind, Meta};
use crate::wire::record::{Bytes, LONGEST_PATH, Special};

/// Names at the root that are not part of the data: what a filesystem makes itself, and what a target puts aside during a sync.
pub(crate) const OWN_NAMES: [&[u8]; 2] = [b"lost+found", crate::apply::STASH];

/// Deepest nesting of directories; each level holds one open file.
const DEEPEST: usize = 1000;

/// Opens the root of a tree.
pub(crate) fn open_root(path: &Path) -> Result<OwnedFd, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|error| Error::source("opening", path, error))
}

/// Lists a whole tree in order, root first. Any entry that cannot be seen fails the walk: half a tree is no tree.
pub(crate) fn walk(
    root: BorrowedFd<'_>,
    now: (i64, u32),
    check: &dyn Fn() -> Result<(), Error>,
) -> Result<Vec<Entry>, Error> {
    let mut walk = Walk { entries: Vec::new(), path: Vec::new(), device: (0, 0), now, check };
    let (entry, device) = walk.look(root, b"")?;
    walk.device = device;
    walk.entries.push(entry);
    walk.folder(root, 0)?;
    Ok(walk.entries)
}

struct Walk<'a> {
    entries: Vec<Entry>,
    path: Vec<u8>,
    device: (u32, u32),
    now: (i64, u32),
    check: &'a dyn Fn() -> Result<(), Error>,
}

impl Walk<'_> {
    fn folder(&mut self, folder: BorrowedFd<'_>, depth: usize) -> Result<(), Error> {
        (self.check)()?;
        let mut names = Vec::new();
        for entry in Dir::read_from(folder).map_err(|error| self.fault("listing", error))? {
            let entry = entry.map_err(|error| self.fault("listing", error))?;
            let name = entry.file_name().to_bytes();
            let own = depth == 0 && OWN_NAMES.contains(&name);
            if !own && !matches!(name, b"." | b"..") {
                names.push(name.to_vec());
            }
        }
        names.sort_unstable();
        let length = self.path.len();
        for name in names {
            if length > 0 {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(&name);
            self.entry(folder, &name, depth)?;
            self.path.truncate(length);
        }
        Ok(())
    }

    fn entry(&mut self, folder: BorrowedFd<'_>, name: &[u8], depth: usize) -> Result<(), Error> {
        if self.path.len() > LONGEST_PATH || depth >= DEEPEST {
            return Err(self.fault("following", Errno::NAMETOOLONG));
        }
        let (entry, device) = self.look(folder, name)?;
        let inside = matches!(entry.kind, Kind::Folder) && device == self.device;
        self.entries.push(entry);
        if !inside {
            // Another filesystem that is mounted here is none of this volume.
            return Ok(());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let inner = openat(folder, std::ffi::OsStr::from_bytes(name), flags, Mode::empty())
            .map_err(|error| self.fault("opening", error))?;
        self.folder(inner.as_fd(), depth + 1)
    }

    fn look(&self, folder: BorrowedFd<'_>, name: &[u8]) -> Result<(Entry, (u32, u32)), Error> {
        let name = std::ffi::OsStr::from_bytes(name);
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
        let stat = statx(folder, name, flags, StatxFlags::BASIC_STATS)
            .map_err(|error| self.fault("looking at", error))?;
        let mode = u32::from(stat.stx_mode);
        let device = || rustix::fs::makedev(stat.stx_rdev_major, stat.stx_rdev_minor);
        let kind = match FileType::from_raw_mode(mode) {
            FileType::Directory => Kind::Folder,
            FileType::RegularFile => Kind::File,
            FileType::Symlink => {
                let target = readlinkat(folder, name, Vec::new())
                    .map_err(|error| self.fault("reading the link", error))?;
                Kind::Symlink(Bytes(target.into_bytes()))
            }
            FileType::Fifo => Kind::Special(Special::Pipe),
            FileType::Socket => Kind::Special(Special::Socket),
            FileType::CharacterDevice => Kind::Special(Special::Character(device())),
            FileType::BlockDevice => Kind::Special(Special::Block(device())),
            _ => return Err(self.fault("understanding", Errno::NOTSUP)),
        };
        let touched = (stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec);
        let folder = matches!(kind, Kind::Folder);
        let entry = Entry {
            path: Bytes(self.path.clone()),
            kind,
            meta: Meta {
                mode: mode & 0o7777,
                uid: stat.stx_uid,
                gid: stat.stx_gid,
                modified: (stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
            },
            size: if folder { 0 } else { stat.stx_size },
            number: stat.stx_ino,
            names: if folder { 1 } else { stat.stx_nlink },
            touched,
            settled: is_settled(touched, self.now),
            attributes: ZERO,
            alias: None,
            block: 0,
            first: 0,
        };
        Ok((entry, (stat.stx_dev_major, stat.stx_dev_minor)))
    }

    fn fault(&self, doing: &str, error: Errno) -> Error {
        Error::source(doing, Path::new(std::ffi::OsStr::from_bytes(&self.path)), error)
    }
}

/// Whether a later change would show: the clock that stamps files ticks in steps, so a change right after the last may carry its time.
fn is_settled(touched: (i64, u32), now: (i64, u32)) -> bool {
    let nanos = |time: (i64, u32)| i128::from(time.0) * 1_000_000_000 + i128::from(time.1);
    nanos(now) - nanos(touched) > 100_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_touched_just_now_is_not_settled() {
        let check = |touched, now, settled| assert_eq!(is_settled(touched, now), settled);
        check((10, 0), (10, 50_000_000), false);
        check((10, 0), (11, 0), true);
        check((10, 999_999_999), (11, 0), false);
        check((12, 0), (11, 0), false);
    }
}
