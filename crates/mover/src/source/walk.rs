//! The tree under a directory, in the order that repositories want: names by their bytes.
//!
//! Every directory and file is opened below the root without following a link, so that a volume whose owner swaps a directory for a
//! link while it is read gives away nothing but itself. Other file systems mounted below are left out.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustic_core::repofile::Node;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, statat};
use rustix::io::Errno;

use super::node::{describe, describe_root};
use super::{Length, Opener};
use crate::Error;
use crate::operation::Operation;
use crate::restore::LONGEST_PATH;

/// A directory, and the path under which the snapshot shows it.
pub(crate) struct Files {
    root: Arc<OwnedFd>,
    device: u64,
    path: PathBuf,
    shown: PathBuf,
    operation: Arc<Operation>,
}

impl Files {
    pub(crate) fn open(path: &Path, shown: &Path, operation: Arc<Operation>) -> Result<Self, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(path, flags, Mode::empty())
            .and_then(|root| Ok((rustix::fs::fstat(&root)?.st_dev, root)));
        let (device, root) =
            opened.map_err(|error| Error::Invalid(format!("opening {}: {error}", path.display())))?;
        Ok(Self { root: Arc::new(root), device, path: path.to_owned(), shown: shown.to_owned(), operation })
    }

    fn fault(&self, below: &Path, error: Errno) -> Error {
        let path = self.path.join(below);
        self.operation.fail(Error::Transient(format!("reading {}: {error}", path.display())))
    }

    /// How much there is to read; only a look at the directories.
    pub(crate) fn measure(&self) -> Result<(u64, u64), Error> {
        let (mut bytes, mut files) = (0, 0);
        let mut folders = vec![PathBuf::new()];
        while let Some(below) = folders.pop() {
            self.operation.check()?;
            // What is wrong here is told by the walk that counts.
            let Ok((folder, names)) = list(&self.root, &below) else { continue };
            for name in names {
                let Ok(stat) = statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
                match FileType::from_raw_mode(stat.st_mode) {
                    FileType::Directory if stat.st_dev == self.device => folders.push(below.join(&name)),
                    FileType::Directory => {}
                    FileType::RegularFile => {
                        bytes += u64::try_from(stat.st_size).unwrap_or_default();
                        files += 1;
                    }
                    _ => files += 1,
                }
            }
        }
        Ok((bytes, files))
    }

    /// What the root itself is like.
    pub(crate) fn root(&self) -> Result<Node, Error> {
        let name = self.shown.file_name().unwrap_or(OsStr::new(""));
        describe_root(self.root.as_fd(), name).map_err(|error| self.fault(Path::new(""), error))
    }

    /// The entries of a directory, in order. What has gone meanwhile is left out.
    pub(crate) fn list(&self, below: &Path) -> Result<Vec<Listed>, Error> {
        let (folder, names) = match list(&self.root, below) {
            Err(Errno::NOENT) => return Ok(Vec::new()),
            listed => listed.map_err(|error| self.fault(below, error))?,
        };
        // A mount point stays as the empty directory that it covers.
        let stat = rustix::fs::fstat(&folder).map_err(|error| self.fault(below, error))?;
        if stat.st_dev != self.device {
            return Ok(Vec::new());
        }
        let mut entries = Vec::with_capacity(names.len());
        for name in names {
            self.operation.check()?;
            let described =
                describe(folder.as_fd(), &name).map_err(|error| self.fault(&below.join(&name), error))?;
            entries.extend(described.map(|(node, stat)| Listed { name, node, inode: stat.st_ino }));
        }
        Ok(entries)
    }

    /// How a file is opened when its turn comes.
    pub(crate) fn opener(&self, below: &Path, inode: u64) -> Opener {
        let what = self.path.join(below).display().to_string();
        let (root, below, told) = (self.root.clone(), below.to_owned(), what.clone());
        let open = move || {
            let fault = |error: Errno| Error::Transient(format!("opening {told}: {error}"));
            // Without blocking: a pipe that took the file's place would make us wait for ever.
            let file =
                beneath(&root, &below, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY).map_err(fault)?;
            let stat = rustix::fs::fstat(&file).map_err(fault)?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_ino != inode {
                return Err(Error::Transient(format!("{told} was replaced while it was backed up")));
            }
            let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Sequential);
            Ok(File::from(file))
        };
        Opener { open: Box::new(open), length: Length::Open, what, operation: self.operation.clone() }
    }
}

/// One entry of a directory.
pub(crate) struct Listed {
    pub(crate) name: OsString,
    pub(crate) node: Node,
    pub(crate) inode: u64,
}

/// Opens something below a directory without following any link.
fn beneath(root: &OwnedFd, below: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    // What is never given back is not taken either.
    if below.as_os_str().len() > LONGEST_PATH {
        return Err(Errno::NAMETOOLONG);
    }
    lifeboat_beneath::open(root.as_fd(), below.as_os_str().as_bytes(), flags)
}

fn list(root: &OwnedFd, below: &Path) -> Result<(OwnedFd, Vec<OsString>), Errno> {
    let folder = beneath(root, below, OFlags::RDONLY | OFlags::DIRECTORY)?;
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(&folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    names.sort_unstable();
    Ok((folder, names))
}
