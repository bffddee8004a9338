//! Copies a tree: by reflink where the filesystem can, else by copying what is not a hole. Keeps modes, owners, times,
//! extended attributes, hard links, symlinks and special files.
//!
//! The source may belong to somebody hostile who swaps folders for symlinks while it is read, so nothing is opened by path:
//! every step goes from an open folder to a name in it and follows no link. Whether anybody writes meanwhile is left to the [gate](super::gate).

use super::xattr;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, SeekFrom, Stat, Timespec, Timestamps, Uid, chownat,
    copy_file_range, fchmod, fchown, fstat, ftruncate, ioctl_ficlone, linkat, mkdirat, mknodat, openat,
    readlinkat, seek, statat, symlinkat, utimensat,
};
use rustix::io::{Errno, Result, pread, pwrite};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};

/// Deepest nesting of folders: each level keeps two files open.
const DEEPEST: usize = 400;

/// What to do when a file is gone between its listing and its opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vanished {
    /// Writers are held, so that cannot be right.
    Fails,
    /// Somebody may be writing: the file belongs to a later moment.
    Skips,
}

/// How the bytes got there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Copied {
    /// Files that share their blocks with the source.
    pub(crate) cloned: u64,
    /// Files whose bytes were copied.
    pub(crate) copied: u64,
}

/// Copies the tree `from` to the folder `to`, which must not exist yet.
pub(crate) fn copy_tree(from: &Path, to: &Path, vanished: Vanished) -> Result<Copied> {
    let source = openat(CWD, from, FOLDER, Mode::empty())?;
    mkdirat(CWD, to, Mode::RWXU)?;
    let target = openat(CWD, to, FOLDER, Mode::empty())?;
    let mut walk = Walk {
        root: target.as_fd(),
        vanished,
        clones: true,
        links: BTreeMap::new(),
        at: PathBuf::new(),
        copied: Copied::default(),
    };
    walk.folder(&source, &target, DEEPEST)?;
    let stat = fstat(&source)?;
    keep(&target, &source, &stat)?;
    keep_times(CWD, &path_name(to)?, &stat)?;
    Ok(walk.copied)
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

struct Walk<'a> {
    root: BorrowedFd<'a>,
    vanished: Vanished,
    /// Whether the filesystem has not refused to share blocks so far.
    clones: bool,
    /// Where the first name of a file with several names went.
    links: BTreeMap<(u64, u64), PathBuf>,
    /// The folder being copied, from the root.
    at: PathBuf,
    copied: Copied,
}

impl Walk<'_> {
    fn folder(&mut self, source: &OwnedFd, target: &OwnedFd, depth: usize) -> Result<()> {
        if depth == 0 {
            return Err(Errno::NAMETOOLONG);
        }
        for entry in Dir::read_from(source)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            match self.entry(source, target, name, depth) {
                Err(Errno::NOENT) if self.vanished == Vanished::Skips => {}
                result => result?,
            }
        }
        Ok(())
    }

    fn entry(&mut self, source: &OwnedFd, target: &OwnedFd, name: &CStr, depth: usize) -> Result<()> {
        let stat = statat(source, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let inner = openat(source, name, FOLDER, Mode::empty())?;
                mkdirat(target, name, Mode::RWXU)?;
                let made = openat(target, name, FOLDER, Mode::empty())?;
                self.at.push(text(name));
                let done = self.folder(&inner, &made, depth - 1);
                self.at.pop();
                done?;
                let stat = fstat(&inner)?;
                keep(&made, &inner, &stat)?;
                keep_times(target, name, &stat)
            }
            FileType::RegularFile => self.file(source, target, name, &stat),
            FileType::Symlink => {
                let aim = readlinkat(source, name, Vec::new())?;
                symlinkat(&aim, target, name)?;
                self.other(source, target, name, &stat)
            }
            kind => {
                mknodat(target, name, kind, Mode::from_raw_mode(stat.st_mode), stat.st_rdev)?;
                self.other(source, target, name, &stat)?;
                let mode = Mode::from_raw_mode(stat.st_mode);
                rustix::fs::chmodat(target, name, mode, AtFlags::empty())
            }
        }
    }

    /// What cannot be opened: links and special files.
    fn other(&mut self, source: &OwnedFd, target: &OwnedFd, name: &CStr, stat: &Stat) -> Result<()> {
        if needs_owner(&statat(target, name, AtFlags::SYMLINK_NOFOLLOW)?, stat) {
            let (uid, gid) = owner(stat);
            chownat(target, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        xattr::copy_unopened(source, target, name)?;
        keep_times(target, name, stat)
    }

    fn file(&mut self, source: &OwnedFd, target: &OwnedFd, name: &CStr, seen: &Stat) -> Result<()> {
        if seen.st_nlink > 1
            && let Some(first) = self.links.get(&(seen.st_dev, seen.st_ino))
        {
            return linkat(self.root, first, target, name, AtFlags::empty());
        }
        // Not blocking: if a pipe took the file's place meanwhile, opening it must not hang.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let from = openat(source, name, flags, Mode::empty())?;
        let stat = fstat(&from)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Errno::NOENT);
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let to = openat(target, name, flags, Mode::RUSR | Mode::WUSR)?;
        self.bytes(&from, &to, u64::try_from(stat.st_size).unwrap_or(0))?;
        keep(&to, &from, &stat)?;
        keep_times(target, name, &stat)?;
        if stat.st_nlink > 1 {
            self.links.insert((stat.st_dev, stat.st_ino), self.at.join(text(name)));
        }
        Ok(())
    }

    fn bytes(&mut self, from: &OwnedFd, to: &OwnedFd, size: u64) -> Result<()> {
        if self.clones && size > 0 {
            match ioctl_ficlone(to, from) {
                Ok(()) => {
                    self.copied.cloned += 1;
                    return Ok(());
                }
                Err(Errno::OPNOTSUPP | Errno::XDEV | Errno::INVAL | Errno::NOTTY | Errno::NOSYS) => {
                    self.clones = false;
                }
                Err(error) => return Err(error),
            }
        }
        self.copied.copied += 1;
        copy_data(from, to, size)
    }
}

/// Copies what is not a hole.
fn copy_data(from: &OwnedFd, to: &OwnedFd, size: u64) -> Result<()> {
    ftruncate(to, size)?;
    let mut at = 0;
    while at < size {
        let start = match seek(from, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error),
        };
        let end = seek(from, SeekFrom::Hole(start))?.min(size);
        if start >= end {
            break;
        }
        copy_range(from, to, start, end)?;
        at = end;
    }
    Ok(())
}

fn copy_range(from: &OwnedFd, to: &OwnedFd, start: u64, end: u64) -> Result<()> {
    let (mut source, mut target) = (start, start);
    let mut buffer = Vec::new();
    while source < end {
        let left = usize::try_from(end - source).unwrap_or(usize::MAX).min(1 << 30);
        if buffer.is_empty() {
            match copy_file_range(from, Some(&mut source), to, Some(&mut target), left) {
                Ok(0) => break,
                Ok(_) => continue,
                Err(Errno::XDEV | Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => {
                    buffer = vec![0; 1 << 18];
                }
                Err(error) => return Err(error),
            }
        }
        let room = left.min(buffer.len());
        let got = pread(from, &mut buffer[..room], source)?;
        if got == 0 {
            break;
        }
        let mut put = 0;
        while put < got {
            put += pwrite(to, &buffer[put..got], source + put as u64)?;
        }
        source += got as u64;
    }
    Ok(())
}

/// Owner before mode and attributes: a change of owner clears set-id bits and capabilities.
fn keep(to: &OwnedFd, from: &OwnedFd, stat: &Stat) -> Result<()> {
    if needs_owner(&fstat(to)?, stat) {
        let (uid, gid) = owner(stat);
        fchown(to, Some(uid), Some(gid))?;
    }
    xattr::copy_opened(from, to)?;
    fchmod(to, Mode::from_raw_mode(stat.st_mode))
}

fn needs_owner(made: &Stat, wanted: &Stat) -> bool {
    (made.st_uid, made.st_gid) != (wanted.st_uid, wanted.st_gid)
}

fn owner(stat: &Stat) -> (Uid, Gid) {
    (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid))
}

#[expect(
    clippy::unnecessary_cast,
    clippy::cast_possible_wrap,
    reason = "the widths of these fields differ between machines"
)]
fn keep_times<Fd: AsFd>(folder: Fd, name: &CStr, stat: &Stat) -> Result<()> {
    let times = Timestamps {
        last_access: Timespec { tv_sec: stat.st_atime as i64, tv_nsec: stat.st_atime_nsec as _ },
        last_modification: Timespec { tv_sec: stat.st_mtime as i64, tv_nsec: stat.st_mtime_nsec as _ },
    };
    utimensat(folder, name, &times, AtFlags::SYMLINK_NOFOLLOW)
}

fn text(name: &CStr) -> &std::ffi::OsStr {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(name.to_bytes())
}

fn path_name(path: &Path) -> Result<CString> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)
}
