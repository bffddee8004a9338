//! One class of directory volumes on disk. Everything here blocks.
//!
//! ```text
//! <path>/lock                     held by the one process that serves the class
//! <path>/volumes/<name>/data/     the files
//! <path>/volumes/<name>/meta.json size, tags, origin, mode
//! <path>/staging/<n>/             being made; gone after a crash
//! <path>/trash/<n>/               being removed; gone after a crash
//! ```
//!
//! A volume appears and disappears by one rename, so a crash at any point leaves the whole volume or something that the next start removes.

mod exchange;

use super::DirectoryClass;
use super::copy::{Copied, Vanished, copy_tree};
use super::gate::Gate;
use super::meta::{Meta, sync_folder};
use crate::mount::is_shown_elsewhere;
use crate::{Access, AccessMode, Capacity, Consistency, Create, Error, Snapshot, Volume};
use parking_lot::Mutex;
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with, statvfs, syncfs};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Sizes are whole blocks, as most filesystems have them.
const BLOCK: u64 = 4096;

/// A class that this process serves.
pub(super) struct Open {
    class: DirectoryClass,
    #[expect(dead_code, reason = "the lock lives as long as the file is open")]
    lock: File,
    state: Mutex<State>,
}

struct State {
    /// `None` where what is kept about the volume cannot be read: it is shown and can be removed, and nothing else.
    volumes: BTreeMap<String, Option<Meta>>,
    /// Bytes promised to volumes that are being made or grown.
    reserved: u64,
    next: u64,
}

impl Open {
    /// Takes the class over and clears what a crash left.
    pub(super) fn take(class: DirectoryClass) -> io::Result<Self> {
        let path = &class.path;
        for folder in ["volumes", "staging", "trash"] {
            fs::create_dir_all(path.join(folder))?;
        }
        let lock = OpenOptions::new().create(true).append(true).open(path.join("lock"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|errno| match errno {
            Errno::WOULDBLOCK => io::Error::other("another process serves this folder; stop it first"),
            errno => errno.into(),
        })?;
        for folder in ["staging", "trash"] {
            for leftover in fs::read_dir(path.join(folder))? {
                fs::remove_dir_all(leftover?.path())?;
            }
        }
        let mut volumes = BTreeMap::new();
        for entry in fs::read_dir(path.join("volumes"))? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let meta = Meta::read(&entry.path())
                .inspect_err(
                    |error| tracing::error!(volume = name, %error, "unreadable description of a volume"),
                )
                .ok();
            volumes.insert(name, meta);
        }
        // Never an id that some snapshot still calls its origin.
        let used = volumes.values().flatten().flat_map(|meta| [Some(meta.id), meta.origin]).flatten().max();
        let next = used.map_or(1, |used| used + 1);
        Ok(Self { class, lock, state: Mutex::new(State { volumes, reserved: 0, next }) })
    }

    pub(super) fn volumes(&self) -> Vec<Volume> {
        let state = self.state.lock();
        state.volumes.iter().map(|(name, meta)| self.show(&state, name, meta.as_ref())).collect()
    }

    pub(super) fn capacity(&self) -> Result<Capacity, Error> {
        self.room(&self.state.lock())
    }

    pub(super) fn create(&self, wanted: &Create) -> Result<Volume, Error> {
        let size = rounded(wanted.size)?;
        let meta = |id| Meta {
            id,
            size,
            tags: wanted.tags.clone(),
            origin: None,
            mode: AccessMode::ReadWrite,
            consistency: Consistency::Crash,
        };
        self.make(&wanted.name, size, meta, |data| {
            fs::create_dir(data)?;
            sync_folder(data)
        })
    }

    pub(super) fn snapshot(&self, wanted: &Snapshot) -> Result<(Volume, Consistency), Error> {
        let source = self.find(&wanted.source)?;
        let size = rounded(wanted.size.max(source.size))?;
        if wanted.size != 0 && wanted.size < source.size {
            return Err(Error::Invalid(format!(
                "a snapshot of {:?} needs at least its {} bytes, {} were asked for",
                wanted.source, source.size, wanted.size
            )));
        }
        let data = self.data(&wanted.source);
        // Held from before the first byte is read until the copy is whole; creating the staging folder needs no gate.
        let (closed, consistency) = match source.mode {
            AccessMode::ReadOnly => (None, source.consistency),
            AccessMode::ReadWrite => self.hold_writers(&data, &wanted.source)?,
        };
        let vanished = match consistency {
            Consistency::Crash => Vanished::Fails,
            Consistency::Fuzzy => Vanished::Skips,
        };
        let meta = |id| Meta {
            id,
            size,
            tags: wanted.tags.clone(),
            origin: Some(source.id),
            mode: wanted.mode,
            consistency,
        };
        let volume = self.make(&wanted.name, size, meta, |to| {
            let Copied { cloned, copied } = copy_tree(&data, to, vanished)?;
            drop(closed);
            tracing::debug!(source = wanted.source, cloned, copied, "copied a directory volume");
            syncfs(File::open(to)?)?;
            Ok(())
        })?;
        Ok((volume, consistency))
    }

    pub(super) fn resize(&self, name: &str, size: u64) -> Result<u64, Error> {
        let mut meta = self.find(name)?;
        let wanted = rounded(size)?;
        if wanted <= meta.size {
            return Ok(meta.size);
        }
        let reserved = self.reserve(wanted - meta.size)?;
        meta.size = wanted;
        self.rewrite(name, meta)?;
        drop(reserved);
        Ok(wanted)
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        self.find(from)?;
        let (old, new) = (self.folder(from), self.folder(to));
        match renameat_with(CWD, &old, CWD, &new, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST | Errno::NOTEMPTY) => return Err(self.exists(to)),
            Err(Errno::BUSY) => {
                return Err(Error::Busy {
                    name: from.to_owned(),
                    detail: "something is mounted on it".to_owned(),
                });
            }
            result => result.map_err(|error| self.failed("renaming", from, &error.into()))?,
        }
        self.sync("volumes").map_err(|error| self.failed("renaming", from, &error))?;
        let mut state = self.state.lock();
        if let Some(meta) = state.volumes.remove(from) {
            state.volumes.insert(to.to_owned(), meta);
        }
        Ok(())
    }

    pub(super) fn retag(
        &self,
        name: &str,
        add: &BTreeSet<String>,
        remove: &BTreeSet<String>,
    ) -> Result<(), Error> {
        let mut meta = self.find(name)?;
        let before = meta.tags.clone();
        meta.tags.retain(|tag| !remove.contains(tag));
        meta.tags.extend(add.iter().cloned());
        if meta.tags == before { Ok(()) } else { self.rewrite(name, meta) }
    }

    pub(super) fn remove(&self, name: &str) -> Result<(), Error> {
        let number = {
            let mut state = self.state.lock();
            if !state.volumes.contains_key(name) {
                return Err(self.missing(name));
            }
            state.take_number()
        };
        // What cannot be looked at (the folder was removed by hand) is not mounted either.
        if self.folder(name).exists()
            && is_shown_elsewhere(&self.folder(name)).map_err(|error| Error::Transient(error.to_string()))?
        {
            let detail = "a mount shows it, or is on it; unmount that first".to_owned();
            return Err(Error::Busy { name: name.to_owned(), detail });
        }
        let trash = self.class.path.join("trash").join(number.to_string());
        match fs::rename(self.folder(name), &trash) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                return Err(Error::Busy {
                    name: name.to_owned(),
                    detail: "something is mounted on it".to_owned(),
                });
            }
            // Somebody removed the folder by hand: then it is gone as asked.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => result.map_err(|error| self.failed("removing", name, &error))?,
        }
        self.state.lock().volumes.remove(name);
        let cleared = self.sync("volumes").and_then(|()| fs::remove_dir_all(&trash));
        match cleared {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(volume = name, %error, "a removed volume is still in the trash; the next start clears it");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Makes a volume in the staging folder and publishes it whole.
    fn make(
        &self,
        name: &str,
        size: u64,
        meta: impl FnOnce(u64) -> Meta,
        fill: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<Volume, Error> {
        if self.state.lock().volumes.contains_key(name) {
            return Err(self.exists(name));
        }
        let reserved = self.reserve(size)?;
        let meta = meta(self.state.lock().take_number());
        let staged = self.class.path.join("staging").join(meta.id.to_string());
        let made = fs::create_dir(&staged).and_then(|()| {
            fill(&staged.join("data"))?;
            meta.write(&staged)?;
            renameat_with(CWD, &staged, CWD, self.folder(name), RenameFlags::NOREPLACE)?;
            self.sync("volumes")
        });
        if let Err(error) = made {
            // The next start clears what cannot be cleared now.
            let _ = fs::remove_dir_all(&staged);
            return Err(match error.kind() {
                io::ErrorKind::AlreadyExists => self.exists(name),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::NoRoom {
                    class: self.class.name.clone(),
                    wanted: size,
                    free: self.capacity().map_or(0, |capacity| capacity.free),
                },
                _ => self.failed("making", name, &error),
            });
        }
        let mut state = self.state.lock();
        state.volumes.insert(name.to_owned(), Some(meta.clone()));
        let volume = self.show(&state, name, Some(&meta));
        drop(state);
        drop(reserved);
        Ok(volume)
    }

    fn hold_writers(
        &self,
        data: &Path,
        name: &str,
    ) -> Result<(Option<super::gate::Closed>, Consistency), Error> {
        let gate = Gate::of(data);
        if !gate.is_declared() {
            return Ok((None, Consistency::Fuzzy));
        }
        let closed = gate
            .close(self.class.patience)
            .map_err(|error| self.failed("holding the writers of", name, &error))?;
        Ok(match closed {
            Some(closed) => (Some(closed), Consistency::Crash),
            None => (None, Consistency::Fuzzy),
        })
    }

    fn rewrite(&self, name: &str, meta: Meta) -> Result<(), Error> {
        meta.write(&self.folder(name)).map_err(|error| self.failed("describing", name, &error))?;
        self.state.lock().volumes.insert(name.to_owned(), Some(meta));
        Ok(())
    }

    fn room(&self, state: &State) -> Result<Capacity, Error> {
        let stat = statvfs(&self.class.path).map_err(|error| {
            self.failed("measuring", &self.class.path.display().to_string(), &error.into())
        })?;
        let whole = stat.f_blocks.saturating_mul(stat.f_frsize);
        let size = self.class.limit.unwrap_or(whole).min(whole);
        let promised: u64 = state.volumes.values().flatten().map(|meta| meta.size).sum();
        // Two limits: what may be promised, and what the disk has. Files of volumes count in both, which errs on the safe side.
        let by_promise = size.saturating_sub(promised);
        let by_disk = stat.f_bavail.saturating_mul(stat.f_frsize);
        let free = by_promise.min(by_disk).saturating_sub(self.class.spare).saturating_sub(state.reserved);
        Ok(Capacity { size, free: free / BLOCK * BLOCK, pool: None })
    }

    fn reserve(&self, size: u64) -> Result<Reserved<'_>, Error> {
        let mut state = self.state.lock();
        let free = self.room(&state)?.free;
        if size > free {
            return Err(Error::NoRoom { class: self.class.name.clone(), wanted: size, free });
        }
        state.reserved += size;
        Ok(Reserved { state: &self.state, size })
    }

    fn find(&self, name: &str) -> Result<Meta, Error> {
        match self.state.lock().volumes.get(name) {
            Some(Some(meta)) => Ok(meta.clone()),
            Some(None) => Err(Error::Invalid(format!(
                "what is kept about volume {name:?} cannot be read: repair {} or remove the volume",
                self.folder(name).join("meta.json").display()
            ))),
            None => Err(self.missing(name)),
        }
    }

    fn show(&self, state: &State, name: &str, meta: Option<&Meta>) -> Volume {
        let origin = meta.and_then(|meta| meta.origin).and_then(|id| {
            let is_it =
                |(_, other): &(&String, &Option<Meta>)| other.as_ref().is_some_and(|other| other.id == id);
            state.volumes.iter().find(is_it).map(|(name, _)| name.clone())
        });
        let mode = meta.map_or(AccessMode::ReadOnly, |meta| meta.mode);
        let attr = match (meta, mode) {
            (None, _) => "-ri-X---X-",
            (_, AccessMode::ReadOnly) => "-ri-a-----",
            (_, AccessMode::ReadWrite) => "-wi-a-----",
        };
        Volume {
            name: name.to_owned(),
            size: meta.map_or(0, |meta| meta.size),
            tags: meta.map(|meta| meta.tags.clone()).unwrap_or_default(),
            access: Access::Directory(self.data(name)),
            origin,
            mode,
            attr: attr.to_owned(),
            device: (0, 0),
        }
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.class.path.join("volumes").join(name)
    }

    fn data(&self, name: &str) -> PathBuf {
        self.folder(name).join("data")
    }

    fn sync(&self, folder: &str) -> io::Result<()> {
        sync_folder(&self.class.path.join(folder))
    }

    fn missing(&self, name: &str) -> Error {
        Error::NoVolume { class: self.class.name.clone(), name: name.to_owned() }
    }

    fn exists(&self, name: &str) -> Error {
        Error::Exists { class: self.class.name.clone(), name: name.to_owned() }
    }

    fn failed(&self, doing: &str, what: &str, error: &io::Error) -> Error {
        Error::Transient(format!("{doing} {what:?} in device class {:?}: {error}", self.class.name))
    }
}

impl State {
    fn take_number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }
}

/// Bytes that nobody else may take; given back when the volume itself counts.
struct Reserved<'a> {
    state: &'a Mutex<State>,
    size: u64,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.state.lock().reserved -= self.size;
    }
}

fn rounded(size: u64) -> Result<u64, Error> {
    let too_much = || Error::Invalid(format!("a size of {size} bytes is more than can be counted"));
    size.max(1).checked_next_multiple_of(BLOCK).ok_or_else(too_much)
}
