//! Entries of a tree on the target, reached through open directories.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FallocateFlags, FileType, Mode, OFlags, fallocate, linkat, mkdirat, mknodat, openat,
    renameat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::{Policy, STASH, is_open, meta};
use crate::attributes::Attributes;
use crate::error::errno;
use crate::index::Meta;
use crate::tree::walk::OWN_NAMES;
use crate::wire::record::{From, Special};
use crate::{Error, blocks};
use lifeboat_beneath as beneath;

/// A directory that is applied to.
pub(super) struct Tree {
    root: OwnedFd,
    path: PathBuf,
    policy: Policy,
    open: Open,
    folder: Option<(Vec<u8>, OwnedFd)>,
}

/// What is open.
pub(super) enum Open {
    Nothing,
    File {
        file: File,
        block: u32,
        path: Vec<u8>,
    },
    Folder {
        path: Vec<u8>,
    },
    Other {
        path: Vec<u8>,
        linked: bool,
    },
    /// Something that is not made here.
    Skipped,
}

impl Tree {
    pub(super) fn open(path: &Path, policy: Policy) -> Result<Self, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|error| Error::target("opening", path, error))?;
        Ok(Self { root, path: path.to_owned(), policy, open: Open::Nothing, folder: None })
    }

    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    pub(super) fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.names()?.iter().all(|name| name.as_slice() == b"lost+found"))
    }

    pub(super) fn clear(&mut self) -> Result<(), Error> {
        for name in self.names()?.iter().filter(|name| name.as_slice() != b"lost+found") {
            self.delete(name)?;
        }
        Ok(())
    }

    fn names(&self) -> Result<Vec<Vec<u8>>, Error> {
        names(self.root.as_fd()).map_err(|error| self.fault("listing", b"", error))
    }

    pub(super) fn sync(&self) -> Result<(), Error> {
        rustix::fs::syncfs(&self.root).map_err(|error| self.fault("syncing", b"", error))
    }

    pub(super) fn block(&self) -> Result<u32, Error> {
        is_open(&self.open).map(|(_, block)| block)
    }

    pub(super) fn stash(&mut self, path: &[u8], slot: u32) -> Result<(), Error> {
        let root = self.path.clone();
        let fault = |error| fault(&root, "putting aside", path, error);
        match mkdirat(&self.root, OsStr::from_bytes(STASH), Mode::from(0o700)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(fault(error)),
        }
        let stash =
            beneath::open(self.root.as_fd(), STASH, OFlags::PATH | OFlags::DIRECTORY).map_err(fault)?;
        let slot = slot.to_string();
        // Before a restart; its directory may be gone since.
        if kind(stash.as_fd(), OsStr::new(&slot)).map_err(fault)?.is_some() {
            return Ok(());
        }
        let (folder, name) = self.writable_parent(path)?;
        if kind(folder.as_fd(), name).map_err(fault)? != Some(FileType::RegularFile) {
            return Err(lacking(path));
        }
        renameat(folder, name, stash, slot.as_str()).map_err(fault)
    }

    /// Removes everything that was put aside, where there is anything.
    pub(super) fn drop_stash(&mut self) -> Result<(), Error> {
        let there = kind(self.root.as_fd(), OsStr::from_bytes(STASH));
        match there.map_err(|error| self.fault("looking for", STASH, error))? {
            Some(_) => self.delete(STASH),
            None => Ok(()),
        }
    }

    pub(super) fn delete(&mut self, path: &[u8]) -> Result<(), Error> {
        self.folder = None;
        let (folder, name) = match beneath::parent(self.root.as_fd(), path) {
            Err(Errno::NOENT) => return Ok(()),
            parent => parent.map_err(|error| self.fault("removing", path, error))?,
        };
        make_writable(folder.as_fd());
        remove(folder.as_fd(), name, 0).map_err(|error| self.fault("removing", path, error))
    }

    pub(super) fn make(&mut self, path: &[u8]) -> Result<(), Error> {
        let (folder, name) = self.writable_parent(path)?;
        let fault = |error| fault(&self.path, "making", path, error);
        match mkdirat(&folder, name, Mode::from(0o700)) {
            Err(Errno::EXIST) if kind(folder.as_fd(), name).map_err(fault)? == Some(FileType::Directory) => {
                Ok(())
            }
            Err(Errno::EXIST) => unlinkat(&folder, name, AtFlags::empty())
                .and_then(|()| mkdirat(&folder, name, Mode::from(0o700)))
                .map_err(fault),
            made => made.map_err(fault),
        }
    }

    pub(super) fn folder(&mut self, path: &[u8]) -> Result<(), Error> {
        if path.is_empty() {
            // Before the root gets its time, which this changes.
            match unlinkat(&self.root, OsStr::from_bytes(STASH), AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(Errno::NOTEMPTY | Errno::EXIST) => {
                    return Err(Error::Damaged("a file was put aside and not asked for again".to_owned()));
                }
                Err(error) => return Err(self.fault("removing", STASH, error)),
            }
        } else {
            let (folder, name) = self.parent(path)?;
            if kind(folder, name).map_err(|error| fault(Path::new(""), "opening", path, error))?
                != Some(FileType::Directory)
            {
                return Err(lacking(path));
            }
        }
        self.open = Open::Folder { path: path.to_vec() };
        Ok(())
    }

    pub(super) fn file(&mut self, path: &[u8], from: From, block: u32) -> Result<(), Error> {
        if !blocks::is_size(block) {
            return Err(Error::Protocol(format!("a block of {block} bytes")));
        }
        if let From::Slot(slot) = from {
            self.unstash(path, slot)?;
        }
        let file = match from {
            From::Nothing => self.create(path)?,
            From::Base | From::Slot(_) => self.existing(path)?,
        };
        self.open = Open::File { file, block, path: path.to_vec() };
        Ok(())
    }

    fn unstash(&mut self, path: &[u8], slot: u32) -> Result<(), Error> {
        let (folder, name) = self.writable_parent(path)?;
        let fault = |error| fault(&self.path, "moving to", path, error);
        let stash = match beneath::open(self.root.as_fd(), STASH, OFlags::PATH | OFlags::DIRECTORY) {
            // Moved before a restart.
            Err(Errno::NOENT) => return Ok(()),
            stash => stash.map_err(fault)?,
        };
        match renameat(stash, slot.to_string().as_str(), folder, name) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(fault(error)),
        }
    }

    fn create(&mut self, path: &[u8]) -> Result<File, Error> {
        let root = self.path.clone();
        let fault = |error| fault(&root, "making", path, error);
        let (folder, name) = self.parent(path)?;
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::CREATE | OFlags::EXCL;
        let made = match openat(folder, name, flags, Mode::from(0o600)) {
            Err(Errno::EXIST) => {
                unlinkat(folder, name, AtFlags::empty()).map_err(fault)?;
                openat(folder, name, flags, Mode::from(0o600))
            }
            Err(Errno::ACCESS) => {
                make_writable(folder);
                match unlinkat(folder, name, AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT) => openat(folder, name, flags, Mode::from(0o600)),
                    Err(error) => Err(error),
                }
            }
            made => made,
        };
        made.map(File::from).map_err(fault)
    }

    fn existing(&mut self, path: &[u8]) -> Result<File, Error> {
        let root = self.path.clone();
        let fault = |error| fault(&root, "opening", path, error);
        let (folder, name) = self.parent(path)?;
        if kind(folder, name).map_err(fault)? != Some(FileType::RegularFile) {
            return Err(lacking(path));
        }
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let opened = match openat(folder, name, flags, Mode::empty()) {
            Err(Errno::ACCESS) => {
                // A file that its owner may not write: its mode is set again when it is closed.
                rustix::fs::chmodat(folder, name, Mode::from(0o600), AtFlags::empty()).map_err(fault)?;
                openat(folder, name, flags, Mode::empty())
            }
            opened => opened,
        };
        opened.map(File::from).map_err(fault)
    }

    pub(super) fn symlink(&mut self, path: &[u8], target: &[u8]) -> Result<(), Error> {
        if target.is_empty() || target.contains(&0) {
            return Err(Error::Protocol("a link to nowhere".to_owned()));
        }
        let (folder, name) = self.vacant(path)?;
        symlinkat(OsStr::from_bytes(target), folder, name)
            .map_err(|error| self.fault("making", path, error))?;
        self.open = Open::Other { path: path.to_vec(), linked: true };
        Ok(())
    }

    /// Whether it was made.
    pub(super) fn special(&mut self, path: &[u8], special: Special) -> Result<bool, Error> {
        let (kind, device) = match special {
            Special::Pipe => (FileType::Fifo, 0),
            Special::Socket => (FileType::Socket, 0),
            Special::Character(device) => (FileType::CharacterDevice, device),
            Special::Block(device) => (FileType::BlockDevice, device),
        };
        let is_device = matches!(kind, FileType::CharacterDevice | FileType::BlockDevice);
        if is_device && !self.policy.devices {
            self.open = Open::Skipped;
            return Ok(false);
        }
        let (folder, name) = self.vacant(path)?;
        mknodat(folder, name, kind, Mode::from(0o600), device)
            .map_err(|error| self.fault("making", path, error))?;
        self.open = Open::Other { path: path.to_vec(), linked: false };
        Ok(true)
    }

    pub(super) fn link(&mut self, path: &[u8], to: &[u8]) -> Result<(), Error> {
        self.open = Open::Nothing;
        let (from, main) =
            beneath::parent(self.root.as_fd(), to).map_err(|error| self.fault("linking", to, error))?;
        let look = |folder: BorrowedFd<'_>, name: &OsStr| statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
        let stat = look(from.as_fd(), main).map_err(|_| lacking(to))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(lacking(to));
        }
        let (folder, name) = self.writable_parent(path)?;
        if look(folder.as_fd(), name)
            .is_ok_and(|there| there.st_ino == stat.st_ino && there.st_dev == stat.st_dev)
        {
            return Ok(());
        }
        let (folder, name) = self.vacant(path)?;
        linkat(from, main, folder, name, AtFlags::empty()).map_err(|error| self.fault("linking", path, error))
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let (file, _) = is_open(&self.open)?;
        file.write_all_at(bytes, offset)
            .map_err(|error| self.fault("writing", self.open_path(), errno(&error)))
    }

    pub(super) fn zero(&mut self, offset: u64, length: u64) -> Result<(), Error> {
        let (file, _) = is_open(&self.open)?;
        let size = file.metadata().map_or(0, |meta| meta.len());
        let end = offset.checked_add(length).ok_or(Error::Protocol("a hole without end".to_owned()))?;
        // What lies behind the end is zero anyway once the file is as long.
        let length = end.min(size).saturating_sub(offset);
        punch(file, offset, length).map_err(|error| self.fault("clearing", self.open_path(), error))
    }

    pub(super) fn close(
        &mut self,
        size: u64,
        meta: &Meta,
        attributes: Option<&Attributes>,
    ) -> Result<(), Error> {
        let open = std::mem::replace(&mut self.open, Open::Nothing);
        let (path, linked) = match open {
            Open::Nothing => return Err(Error::Protocol("nothing is open".to_owned())),
            Open::Skipped => return Ok(()),
            Open::File { file, path, .. } => {
                let there = file.metadata().map_or(0, |meta| meta.len());
                if there != size {
                    file.set_len(size).map_err(|error| self.fault("cutting", &path, errno(&error)))?;
                }
                (path, false)
            }
            Open::Folder { path } => (path, false),
            Open::Other { path, linked } => (path, linked),
        };
        let policy = self.policy;
        let root = self.path.clone();
        let (folder, name) =
            if path.is_empty() { (self.root.as_fd(), OsStr::new(".")) } else { self.parent(&path)? };
        meta::apply(folder, name, meta, attributes, policy, linked)
            .map_err(|error| fault(&root, "finishing", &path, error))
    }

    /// The directory that an entry is in, kept open for the next.
    fn parent<'a>(&mut self, path: &'a [u8]) -> Result<(BorrowedFd<'_>, &'a OsStr), Error> {
        let (folder, name) = beneath::split(path);
        if self.folder.as_ref().is_none_or(|(open, _)| open != folder) {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let opened = beneath::open(self.root.as_fd(), folder, flags)
                .map_err(|error| self.fault("opening", folder, error))?;
            self.folder = Some((folder.to_vec(), opened));
        }
        let folder = self.folder.as_ref().map_or(self.root.as_fd(), |(_, folder)| folder.as_fd());
        Ok((folder, OsStr::from_bytes(name)))
    }

    fn writable_parent<'a>(&mut self, path: &'a [u8]) -> Result<(OwnedFd, &'a OsStr), Error> {
        self.folder = None;
        let (folder, name) =
            beneath::parent(self.root.as_fd(), path).map_err(|error| self.fault("opening", path, error))?;
        make_writable(folder.as_fd());
        Ok((folder, name))
    }

    /// The same, with nothing at the entry's place.
    fn vacant<'a>(&mut self, path: &'a [u8]) -> Result<(OwnedFd, &'a OsStr), Error> {
        let (folder, name) = self.writable_parent(path)?;
        match unlinkat(&folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok((folder, name)),
            Err(error) => Err(self.fault("replacing", path, error)),
        }
    }

    fn open_path(&self) -> &[u8] {
        match &self.open {
            Open::File { path, .. } => path,
            _ => b"",
        }
    }

    fn fault(&self, doing: &str, below: &[u8], error: Errno) -> Error {
        fault(&self.path, doing, below, error)
    }
}

fn fault(root: &Path, doing: &str, below: &[u8], error: Errno) -> Error {
    Error::target(doing, &root.join(OsStr::from_bytes(below)), error)
}

fn lacking(path: &[u8]) -> Error {
    Error::Damaged(format!("the copy of the last generation lacks {}", path.escape_ascii()))
}

/// Makes bytes zero, as a hole where that can be.
pub(super) fn punch(file: &File, mut offset: u64, mut length: u64) -> Result<(), Errno> {
    if length == 0 {
        return Ok(());
    }
    match fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, length) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {}
        done => return done,
    }
    let zeroes = vec![0; 1 << 20];
    while length > 0 {
        let step = length.min(zeroes.len() as u64);
        file.write_all_at(&zeroes[..step as usize], offset).map_err(|error| errno(&error))?;
        offset += step;
        length -= step;
    }
    Ok(())
}

fn kind(folder: BorrowedFd<'_>, name: &OsStr) -> Result<Option<FileType>, Errno> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

fn names(folder: BorrowedFd<'_>) -> Result<Vec<Vec<u8>>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            names.push(name.to_vec());
        }
    }
    Ok(names)
}

/// Removes an entry with all that is in it, as far down as directories can be held open.
fn remove(folder: BorrowedFd<'_>, name: &OsStr, depth: usize) -> Result<(), Errno> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) if depth < 1100 => {}
        Err(error) => return Err(error),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let inner = match openat(folder, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            rustix::fs::chmodat(folder, name, Mode::from(0o700), AtFlags::empty())?;
            openat(folder, name, flags, Mode::empty())?
        }
        opened => opened?,
    };
    make_writable(inner.as_fd());
    for name in names(inner.as_fd())? {
        remove(inner.as_fd(), OsStr::from_bytes(&name), depth + 1)?;
    }
    match unlinkat(folder, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Lets a directory's owner change it, who may not be root. Its mode is set again when the sync closes it.
fn make_writable(folder: BorrowedFd<'_>) {
    if rustix::process::geteuid().is_root() {
        return;
    }
    if let Ok(stat) = rustix::fs::fstat(folder)
        && stat.st_mode & 0o700 != 0o700
    {
        // If it fails, so does what comes next, with a better word for it.
        let _ = rustix::fs::fchmod(folder, Mode::from_raw_mode((stat.st_mode & 0o7777) | 0o700));
    }
}

const _: () = assert!(OWN_NAMES.len() == 2);
