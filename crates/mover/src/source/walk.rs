//! The tree under a directory, in the order that repositories want: names by their bytes, each directory before its content.
//!
//! Every directory and file is opened below the root without following a link, so that a volume whose owner swaps a directory for a
//! link while it is read gives away nothing but itself. Other file systems mounted below are left out.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustic_core::{ReadSource, ReadSourceEntry, RusticResult};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, openat2, statat};
use rustix::io::Errno;

use super::node::{describe, describe_root};
use super::{Length, Opener};
use crate::Error;
use crate::operation::{Operation, carry};

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

    fn walk(&self) -> Walk {
        let files = Self {
            root: self.root.clone(),
            device: self.device,
            path: self.path.clone(),
            shown: self.shown.clone(),
            operation: self.operation.clone(),
        };
        Walk { files, stack: Vec::new(), begun: false }
    }

    fn fault(&self, below: &Path, error: Errno) -> Error {
        let path = self.path.join(below);
        self.operation.fail(Error::Transient(format!("reading {}: {error}", path.display())))
    }

    /// How much there is to read; only a look at the directories.
    fn measure(&self) -> Result<(u64, u64), Error> {
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
}

impl ReadSource for Files {
    type Open = Opener;
    type Iter = Walk;

    fn size(&self) -> RusticResult<Option<u64>> {
        let (bytes, files) = self.measure().map_err(carry)?;
        self.operation.expect(bytes, files);
        Ok(Some(bytes))
    }

    fn entries(&self) -> Walk {
        self.walk()
    }
}

/// One directory that is being read.
struct Level {
    folder: OwnedFd,
    below: PathBuf,
    names: std::vec::IntoIter<OsString>,
}

/// Goes through the tree.
pub(crate) struct Walk {
    files: Files,
    stack: Vec<Level>,
    begun: bool,
}

impl Iterator for Walk {
    type Item = RusticResult<ReadSourceEntry<Opener>>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.files.operation.check() {
            // The iterator has to end; the fault is kept where the snapshot would be written.
            return if std::mem::take(&mut self.stack).is_empty() && self.begun {
                None
            } else {
                self.begun = true;
                Some(Err(carry(error)))
            };
        }
        if !self.begun {
            self.begun = true;
            return Some(self.begin().map_err(|error| carry(self.files.fault(Path::new(""), error))));
        }
        loop {
            let level = self.stack.last_mut()?;
            let Some(name) = level.names.next() else {
                self.stack.pop();
                continue;
            };
            let below = level.below.join(&name);
            match self.enter(&name, &below) {
                Ok(Some(entry)) => return Some(Ok(entry)),
                Ok(None) => {}
                Err(error) => return Some(Err(carry(self.files.fault(&below, error)))),
            }
        }
    }
}

impl Walk {
    fn begin(&mut self) -> Result<ReadSourceEntry<Opener>, Errno> {
        let name = self.files.shown.file_name().unwrap_or(OsStr::new(""));
        let node = describe_root(self.files.root.as_fd(), name)?;
        let (folder, names) = list(&self.files.root, Path::new(""))?;
        self.stack.push(Level { folder, below: PathBuf::new(), names: names.into_iter() });
        Ok(ReadSourceEntry { path: self.files.shown.clone(), node, open: None })
    }

    /// Describes one entry and goes into it if it is a directory.
    fn enter(&mut self, name: &OsStr, below: &Path) -> Result<Option<ReadSourceEntry<Opener>>, Errno> {
        let Some(level) = self.stack.last() else { return Ok(None) };
        let Some((node, stat)) = describe(level.folder.as_fd(), name)? else { return Ok(None) };
        let path = self.files.shown.join(below);
        if node.is_dir() {
            let (folder, names) = match list(&self.files.root, below) {
                Err(Errno::NOENT) => return Ok(None),
                // A mount point stays as the empty directory that it covers.
                Ok((folder, _)) if stat.st_dev != self.files.device => (folder, Vec::new()),
                listed => listed?,
            };
            self.stack.push(Level { folder, below: below.to_owned(), names: names.into_iter() });
            return Ok(Some(ReadSourceEntry { path, node, open: None }));
        }
        self.files.operation.advance_files(1);
        let open = node.is_file().then(|| self.opener(below, stat.st_ino));
        Ok(Some(ReadSourceEntry { path, node, open }))
    }

    fn opener(&self, below: &Path, inode: u64) -> Opener {
        let what = self.files.path.join(below).display().to_string();
        let (root, below, told) = (self.files.root.clone(), below.to_owned(), what.clone());
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
        Opener { open: Box::new(open), length: Length::Open, what, operation: self.files.operation.clone() }
    }
}

/// Opens something below a directory without following any link.
fn beneath(root: &OwnedFd, below: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(root, below, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty(), resolve)
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
