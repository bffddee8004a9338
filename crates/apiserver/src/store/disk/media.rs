//! The few things that a store does with its files. Tests put a disk in their place that loses power.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Result};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The files of one store, by name.
pub trait Media: Send + 'static {
    /// Where a file is, for messages.
    fn path(&self, name: &str) -> PathBuf;
    /// How long a file is; none where there is no such file.
    fn length(&self, name: &str) -> Result<Option<u64>>;
    /// Reads a file from its beginning.
    fn reader(&self, name: &str) -> Result<Box<dyn Read + '_>>;
    /// Writes at a place; makes the file if it is not there.
    fn write_at(&mut self, name: &'static str, offset: u64, bytes: &[u8]) -> Result<()>;
    /// Cuts a file off.
    fn set_len(&mut self, name: &'static str, length: u64) -> Result<()>;
    /// Waits until everything in a file is on the disk.
    fn sync(&mut self, name: &'static str) -> Result<()>;
    /// Gives a file the name of another, which goes.
    fn rename(&mut self, from: &'static str, to: &'static str) -> Result<()>;
    /// Waits until the names are on the disk.
    fn sync_names(&mut self) -> Result<()>;
}

/// Files in a folder.
pub struct Folder {
    path: PathBuf,
    open: BTreeMap<&'static str, File>,
}

impl Folder {
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), open: BTreeMap::new() }
    }

    /// The same open file for every write, so that a failed write-back is told to whoever syncs it.
    fn file(&mut self, name: &'static str) -> Result<&File> {
        if !self.open.contains_key(name) {
            let path = self.path.join(name);
            let file = OpenOptions::new().create(true).truncate(false).write(true).read(true).open(path)?;
            self.open.insert(name, file);
        }
        self.open.get(name).ok_or_else(|| std::io::Error::other("invariant: it was just opened"))
    }
}

impl Media for Folder {
    fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn length(&self, name: &str) -> Result<Option<u64>> {
        match std::fs::metadata(self.path.join(name)) {
            Ok(found) => Ok(Some(found.len())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn reader(&self, name: &str) -> Result<Box<dyn Read + '_>> {
        Ok(Box::new(File::open(self.path.join(name))?))
    }

    fn write_at(&mut self, name: &'static str, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file(name)?.write_all_at(bytes, offset)
    }

    fn set_len(&mut self, name: &'static str, length: u64) -> Result<()> {
        self.file(name)?.set_len(length)
    }

    fn sync(&mut self, name: &'static str) -> Result<()> {
        self.file(name)?.sync_data()
    }

    fn rename(&mut self, from: &'static str, to: &'static str) -> Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))?;
        self.open.remove(from);
        self.open.remove(to);
        Ok(())
    }

    fn sync_names(&mut self) -> Result<()> {
        File::open(&self.path)?.sync_all()
    }
}
