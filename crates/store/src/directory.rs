//! Objects as files below a directory.
//!
//! A write goes to a temporary file, is synced and then takes its name in one step, so that a reader or a crash never meets half an
//! object. Blocking: callers that must not block wrap it.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use rustix::io::Errno;

use crate::{Entry, Error, key};

/// Objects as files below a directory.
#[derive(Clone, Debug)]
pub struct Directory {
    root: PathBuf,
}

/// Folder for files that have not got their name yet.
const UNNAMED: &str = ".unnamed";

impl Directory {
    /// The objects below a directory, which need not be there yet.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Reads an object.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is none.
    pub fn get(&self, key: &str) -> Result<Bytes, Error> {
        let mut file = self.open(key)?;
        let size = file.metadata().map_or(0, |metadata| metadata.len());
        let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        file.read_to_end(&mut content).map_err(|error| self.fault("reading", key, &error))?;
        Ok(content.into())
    }

    /// Reads an object of at most this length.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is none, [`Error::TooLong`] where it is longer.
    pub fn get_within(&self, key: &str, longest: u64) -> Result<Bytes, Error> {
        let mut content = Vec::new();
        let file = self.open(key)?;
        // One more than is wanted tells that there is more.
        let read = file.take(longest.saturating_add(1)).read_to_end(&mut content);
        read.map_err(|error| self.fault("reading", key, &error))?;
        if content.len() as u64 > longest {
            return Err(Error::TooLong { store: self.name(), key: key.to_owned() });
        }
        Ok(content.into())
    }

    /// Reads a part of an object; all of it must be there.
    ///
    /// # Errors
    /// [`Error::NotFound`] where there is none, [`Error::TooShort`] where it is too short.
    pub fn get_range(&self, key: &str, offset: u64, length: usize) -> Result<Bytes, Error> {
        let file = self.open(key)?;
        // Zeroed pages come free from the allocator for lengths that matter.
        let mut content = vec![0; length];
        file.read_exact_at(&mut content, offset).map_err(|error| self.fault("reading", key, &error))?;
        Ok(content.into())
    }

    /// How long an object is; none where there is none.
    ///
    /// # Errors
    /// What the file system answers.
    pub fn size(&self, key: &str) -> Result<Option<u64>, Error> {
        match fs::metadata(self.path(key)?) {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.fault("looking at", key, &error)),
        }
    }

    /// Writes an object, over one that may be there.
    ///
    /// # Errors
    /// What the file system answers.
    pub fn put(&self, key: &str, parts: &[Bytes]) -> Result<(), Error> {
        self.write(key, parts, |unnamed, path| fs::rename(unnamed, path))
    }

    /// Writes an object if the key is free.
    ///
    /// # Errors
    /// [`Error::Exists`] where somebody else was first.
    pub fn put_if_absent(&self, key: &str, parts: &[Bytes]) -> Result<(), Error> {
        self.write(key, parts, |unnamed, path| {
            // A link, unlike a rename, refuses a name that is taken.
            fs::hard_link(unnamed, path)?;
            fs::remove_file(unnamed)
        })
    }

    /// The objects whose key is a prefix's continuation, in order of their keys. A directory that is not there holds none.
    ///
    /// # Errors
    /// What the file system answers.
    pub fn list(&self, prefix: &str) -> Result<Vec<Entry>, Error> {
        let mut found = Vec::new();
        // Only the folders that can hold such keys are walked.
        let folder = prefix.rsplit_once('/').map_or("", |(folder, _)| folder);
        if !folder.is_empty() {
            key::check(folder)?;
        }
        self.walk(folder, prefix, &mut found)?;
        found.sort_unstable();
        Ok(found)
    }

    /// Removes an object; one that is gone already is no error.
    ///
    /// # Errors
    /// What the file system answers.
    pub fn delete(&self, key: &str) -> Result<(), Error> {
        match fs::remove_file(self.path(key)?) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.fault("removing", key, &error)),
            _ => Ok(()),
        }
    }

    fn walk(&self, folder: &str, prefix: &str, found: &mut Vec<Entry>) -> Result<(), Error> {
        let path = if folder.is_empty() { self.root.clone() } else { self.root.join(folder) };
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(self.fault("listing", folder, &error)),
        };
        for entry in entries {
            let entry = entry.map_err(|error| self.fault("listing", folder, &error))?;
            // A name that is no text cannot be one of ours.
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name == UNNAMED {
                continue;
            }
            let key = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            // Gone between the listing and the look is gone.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                let below = format!("{key}/");
                if below.starts_with(prefix) || prefix.starts_with(&below) {
                    self.walk(&key, prefix, found)?;
                }
            } else if metadata.is_file() && key.starts_with(prefix) {
                found.push(Entry { key, size: metadata.len() });
            }
        }
        Ok(())
    }

    fn write(
        &self,
        key: &str,
        parts: &[Bytes],
        name: impl FnOnce(&Path, &Path) -> io::Result<()>,
    ) -> Result<(), Error> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let path = self.path(key)?;
        let folder = path.parent().unwrap_or(&self.root);
        let unnamed_folder = self.root.join(UNNAMED);
        let serial = NEXT.fetch_add(1, Ordering::Relaxed);
        let unnamed =
            unnamed_folder.join(format!("{}-{serial}-{}", std::process::id(), key.replace('/', "-")));
        let result = make_folder(folder).and_then(|()| make_folder(&unnamed_folder)).and_then(|()| {
            let mut options = fs::OpenOptions::new();
            let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&unnamed)?;
            parts.iter().try_for_each(|part| file.write_all(part))?;
            file.sync_all()?;
            name(&unnamed, &path)?;
            File::open(folder)?.sync_all()
        });
        result.map_err(|error| {
            // Best effort: what stays is never listed.
            let _ = fs::remove_file(&unnamed);
            if error.kind() == io::ErrorKind::AlreadyExists {
                return Error::Exists { store: self.name(), key: key.to_owned() };
            }
            self.fault("writing", key, &error)
        })
    }

    fn open(&self, key: &str) -> Result<File, Error> {
        File::open(self.path(key)?).map_err(|error| self.fault("opening", key, &error))
    }

    fn path(&self, key: &str) -> Result<PathBuf, Error> {
        key::check(key)?;
        Ok(self.root.join(key))
    }

    fn name(&self) -> String {
        self.root.display().to_string()
    }

    fn fault(&self, doing: &str, key: &str, error: &io::Error) -> Error {
        let store = self.name();
        let detail = format!("{doing} {key}: {error}");
        match error.kind() {
            io::ErrorKind::NotFound => Error::NotFound { store, key: key.to_owned() },
            io::ErrorKind::UnexpectedEof => Error::TooShort { store, key: key.to_owned() },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Error::Denied { store, detail }
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::Full { store, detail },
            io::ErrorKind::NotADirectory => Error::NoStore { store },
            io::ErrorKind::TimedOut | io::ErrorKind::StaleNetworkFileHandle => {
                Error::Unreachable { store, detail }
            }
            _ if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
                Error::Unreachable { store, detail }
            }
            _ => Error::Strange { store, detail },
        }
    }
}

/// Makes a folder and those above it, each synced into the one above.
fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(above) = folder.parent() {
        make_folder(above)?;
        match fs::create_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        File::open(if above.as_os_str().is_empty() { Path::new(".") } else { above })?.sync_all()?;
    }
    Ok(())
}
