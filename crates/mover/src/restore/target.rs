//! The directory that is restored into: everything in it is reached through open directories, one name at a time.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;

use crate::Error;

/// A directory that is restored into.
pub(crate) struct Target {
    root: OwnedFd,
    path: PathBuf,
}

/// A file that is ready to be written.
pub(crate) struct Slot {
    pub(crate) file: File,
    /// Whether it had content before: then every byte has to be written or compared.
    pub(crate) used: bool,
}

impl Target {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|error| Error::Invalid(format!("opening {}: {error}", path.display())))?;
        Ok(Self { root, path: path.to_owned() })
    }

    /// Opens a directory that was made before. No link may have taken the place of any of its parts.
    pub(crate) fn folder(&self, below: &Path) -> Result<OwnedFd, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        lifeboat_beneath::open(self.root.as_fd(), below.as_os_str().as_bytes(), flags)
            .map_err(|error| self.fault("opening", below, error))
    }

    /// Makes a directory, over whatever but a directory is there, and opens it.
    pub(crate) fn make_folder(
        &self,
        folder: BorrowedFd<'_>,
        name: &OsStr,
        below: &Path,
    ) -> Result<OwnedFd, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = match mkdirat(folder, name, Mode::from(0o700)) {
            Err(Errno::EXIST) if kind(folder, name)? != Some(FileType::Directory) => {
                unlinkat(folder, name, AtFlags::empty())
                    .and_then(|()| mkdirat(folder, name, Mode::from(0o700)))
            }
            Err(Errno::EXIST) => Ok(()),
            made => made,
        };
        made.and_then(|()| openat(folder, name, flags, Mode::empty()))
            .map_err(|error| self.fault("making", below, error))
    }

    /// Opens a file for writing. One that is there already is kept, so that a restore can go on.
    pub(crate) fn make_file(
        &self,
        folder: BorrowedFd<'_>,
        name: &OsStr,
        below: &Path,
        linked: bool,
    ) -> Result<Slot, Error> {
        let fault = |error| self.fault("making", below, error);
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            // A file of several names may be one of something that is none of ours: it is not written through.
            Ok(stat)
                if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
                    && (stat.st_nlink == 1 || linked) =>
            {
                let file = File::from(openat(folder, name, flags, Mode::empty()).map_err(fault)?);
                return Ok(Slot { used: stat.st_size > 0, file });
            }
            Ok(_) => self.clear(folder, name, below)?,
            Err(Errno::NOENT) => {}
            Err(error) => return Err(fault(error)),
        }
        let file =
            openat(folder, name, flags | OFlags::CREATE | OFlags::EXCL, Mode::from(0o600)).map_err(fault)?;
        Ok(Slot { file: file.into(), used: false })
    }

    /// Takes away what stands where something else is to be; a directory is never taken away.
    pub(crate) fn clear(&self, folder: BorrowedFd<'_>, name: &OsStr, below: &Path) -> Result<(), Error> {
        match unlinkat(folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(self.fault("replacing", below, error)),
        }
    }

    /// Puts everything that was written on the disk.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        rustix::fs::syncfs(&self.root).map_err(|error| self.fault("syncing", Path::new(""), error))
    }

    /// What a failed call on the target means.
    pub(crate) fn fault(&self, doing: &str, below: &Path, error: Errno) -> Error {
        fault(doing, &self.path.join(below), error)
    }
}

fn kind(folder: BorrowedFd<'_>, name: &OsStr) -> Result<Option<FileType>, Error> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
        Err(_) => Ok(None),
    }
}

/// What a failed call on a path means.
pub(crate) fn fault(doing: &str, path: &Path, error: Errno) -> Error {
    let text = format!("{doing} {}: {error}", path.display());
    match error {
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Error::NoRoom(text),
        Errno::IO | Errno::NOMEM | Errno::MFILE | Errno::NFILE | Errno::AGAIN | Errno::INTR => {
            Error::Transient(text)
        }
        _ => Error::Invalid(text),
    }
}

/// Whether a name is one component: nothing that leads up, down, nowhere or elsewhere.
pub(crate) fn is_plain(name: &OsStr) -> bool {
    let name = name.as_bytes();
    !matches!(name, b"" | b"." | b"..") && name.len() <= 255 && !name.contains(&b'/') && !name.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_not_plain() {
        let check = |name: &[u8], plain| assert_eq!(is_plain(OsStr::from_bytes(name)), plain, "{name:?}");
        check(b"file", true);
        check(b"-rf", true);
        check(b"...", true);
        check(b"a\nb", true);
        check(b"\xff\xfe", true);
        check(b"", false);
        check(b".", false);
        check(b"..", false);
        check(b"/etc", false);
        check(b"a/b", false);
        check(b"../x", false);
        check(b"a\0b", false);
        check(&[b'x'; 256], false);
    }
}
