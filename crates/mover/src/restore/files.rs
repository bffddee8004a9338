//! Writing a tree of files.
//!
//! Directories are made on the way down; files are gathered in batches, so that blobs that lie near each other are read together, and
//! written by several threads; owners, modes and times of directories come last, since every entry changes them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustic_core::DataId;
use rustic_core::repofile::{Metadata, Node, NodeType};
use rustix::fs::{AtFlags, FileType, Mode};

use super::blobs::{Blobs, Wanted, bytes, in_parallel};
use super::metadata;
use super::target::{Target, fault, is_plain};
use crate::crypto::sha256;
use crate::{Error, Restored};

/// Restores a tree below a directory.
pub(super) fn restore(
    blobs: &Blobs,
    root: &Node,
    path: &Path,
    special_files: bool,
) -> Result<Restored, Error> {
    let target = Target::open(path)?;
    let mut walk = Walk {
        blobs,
        target: &target,
        special_files,
        restored: Restored::default(),
        batch: Batch::default(),
        links: BTreeMap::new(),
        folders: vec![(PathBuf::new(), root.meta.clone())],
    };
    walk.run(root)?;
    walk.flush()?;
    // From the inside out: setting the times of an inner one does not touch those of an outer one, but modes may shut it.
    for (below, metadata) in std::mem::take(&mut walk.folders).into_iter().rev() {
        let folder = target.folder(&below)?;
        metadata::apply(folder, &metadata).map_err(|error| target.fault("finishing", &below, error))?;
    }
    target.sync()?;
    Ok(walk.restored)
}

struct Walk<'a> {
    blobs: &'a Blobs,
    target: &'a Target,
    special_files: bool,
    restored: Restored,
    batch: Batch,
    /// First name of every file of several names, and what it holds.
    links: BTreeMap<(u64, u64), (PathBuf, OsString, Vec<DataId>)>,
    folders: Vec<(PathBuf, Metadata)>,
}

struct Level {
    folder: OwnedFd,
    below: PathBuf,
    nodes: std::vec::IntoIter<Node>,
}

/// Longest path below the target that is restored, and so the longest that is backed up.
pub(crate) const LONGEST_PATH: usize = 4000;

impl Walk<'_> {
    fn run(&mut self, root: &Node) -> Result<(), Error> {
        let mut stack = vec![self.level(root, self.target.folder(Path::new(""))?, PathBuf::new())?];
        while let Some(level) = stack.last_mut() {
            self.blobs.operation().check()?;
            let Some(node) = level.nodes.next() else {
                stack.pop();
                continue;
            };
            let name = node.name().into_owned();
            if !is_plain(&name) {
                tracing::warn!(name = ?name, "a name that would lead out of the target is left out");
                self.restored.left_out += 1;
                continue;
            }
            let below = level.below.join(&name);
            if below.as_os_str().len() > LONGEST_PATH {
                return Err(Error::Invalid("the snapshot holds paths that are too long to restore".into()));
            }
            if node.is_dir() {
                let folder = self.target.make_folder(level.folder.as_fd(), &name, &below)?;
                let inner = self.level(&node, folder, below.clone())?;
                self.folders.push((below, node.meta));
                stack.push(inner);
            } else {
                self.entry(level, node, name, below)?;
            }
        }
        Ok(())
    }

    fn level(&self, node: &Node, folder: OwnedFd, below: PathBuf) -> Result<Level, Error> {
        let tree = node
            .subtree
            .ok_or_else(|| Error::Damaged(format!("the directory {} has no entries", below.display())))?;
        Ok(Level { folder, below, nodes: self.blobs.tree(&tree)?.nodes.into_iter() })
    }

    /// Restores what is no directory.
    fn entry(&mut self, level: &Level, node: Node, name: OsString, below: PathBuf) -> Result<(), Error> {
        let folder = level.folder.as_fd();
        let fault = |error| self.target.fault("restoring", &below, error);
        let kind = match &node.node_type {
            NodeType::File => return self.file(level, node, name, below),
            NodeType::Dir => return Ok(()),
            NodeType::Symlink { .. } => {
                self.target.clear(folder, &name, &below)?;
                let to = node.node_type.to_link();
                if rustix::path::Arg::as_cow_c_str(&to).is_err() || to.as_os_str().is_empty() {
                    self.restored.left_out += 1;
                    return Ok(());
                }
                rustix::fs::symlinkat(to, folder, &name).map_err(fault)?;
                metadata::apply_at(folder, &name, &node.meta, true).map_err(fault)?;
                self.done();
                return Ok(());
            }
            NodeType::Dev { .. } => FileType::BlockDevice,
            NodeType::Chardev { .. } => FileType::CharacterDevice,
            NodeType::Fifo => FileType::Fifo,
            NodeType::Socket => FileType::Socket,
        };
        if !self.special_files {
            self.restored.left_out += 1;
            return Ok(());
        }
        let device = match node.node_type {
            NodeType::Dev { device } | NodeType::Chardev { device } => device,
            _ => 0,
        };
        self.target.clear(folder, &name, &below)?;
        rustix::fs::mknodat(folder, &name, kind, Mode::from(0o600), device).map_err(fault)?;
        metadata::apply_at(folder, &name, &node.meta, false).map_err(fault)?;
        self.done();
        Ok(())
    }

    fn file(&mut self, level: &Level, node: Node, name: OsString, below: PathBuf) -> Result<(), Error> {
        let folder = level.folder.as_fd();
        let content = node.content.unwrap_or_default();
        let linked = node.meta.links > 1 && node.meta.inode != 0;
        if linked {
            let identity = (node.meta.device_id, node.meta.inode);
            if let Some((first_folder, first, held)) = self.links.get(&identity) {
                // Two files that only claim to be one are two files.
                if *held == content {
                    let first_folder = self.target.folder(first_folder)?;
                    self.target.clear(folder, &name, &below)?;
                    rustix::fs::linkat(&first_folder, first, folder, &name, AtFlags::empty())
                        .map_err(|error| self.target.fault("linking", &below, error))?;
                    self.restored.bytes += node.meta.size;
                    self.blobs.operation().advance(node.meta.size);
                    self.done();
                    return Ok(());
                }
            } else {
                self.links.insert(identity, (level.below.clone(), name.clone(), content.clone()));
            }
        }
        let slot = self.target.make_file(folder, &name, &below, linked)?;
        let mut at = 0;
        let mut wanted = Vec::with_capacity(content.len());
        for id in &content {
            let place = self.blobs.find(id)?;
            wanted.push(Wanted { place, id: bytes(id), file: self.batch.files.len(), at });
            at += place.size();
        }
        metadata::size(&slot.file, at).map_err(|error| self.target.fault("sizing", &below, error))?;
        self.restored.bytes += at;
        self.batch.wanted.append(&mut wanted);
        self.batch.files.push(Restoring { file: slot.file, used: slot.used, metadata: node.meta, below });
        self.done();
        if self.batch.is_full() { self.flush() } else { Ok(()) }
    }

    fn done(&mut self) {
        self.restored.files += 1;
        self.blobs.operation().advance_files(1);
    }

    /// Writes what was gathered, reads it back, and finishes the files.
    fn flush(&mut self) -> Result<(), Error> {
        let batch = std::mem::take(&mut self.batch);
        batch.write(self.blobs)?;
        for restoring in &batch.files {
            metadata::apply(&restoring.file, &restoring.metadata)
                .map_err(|error| self.target.fault("finishing", &restoring.below, error))?;
        }
        Ok(())
    }
}

/// A file that is being written.
pub(super) struct Restoring {
    pub(super) file: File,
    pub(super) used: bool,
    pub(super) metadata: Metadata,
    pub(super) below: PathBuf,
}

/// Files that are written together.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) files: Vec<Restoring>,
    pub(super) wanted: Vec<Wanted>,
}

impl Batch {
    fn is_full(&self) -> bool {
        self.files.len() >= 256 || self.wanted.len() >= 8192
    }

    /// Writes the contents and compares what can be read back with the names of the blobs.
    pub(super) fn write(&self, blobs: &Blobs) -> Result<(), Error> {
        let missing = self.missing(blobs)?;
        blobs.fetch(missing, |wanted, content| {
            let restoring = &self.files[wanted.file];
            let sparse = if restoring.used { Holes::Write } else { Holes::Leave };
            write(&restoring.file, wanted.at, content, sparse)
                .map_err(|error| fault("writing", &restoring.below, errno(&error)))
        })?;
        let next = AtomicUsize::new(0);
        let compare = || {
            let mut buffer = Vec::new();
            while let Some(wanted) = self.wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                blobs.operation().check()?;
                if !self.holds(wanted, &mut buffer)? {
                    let below = self.files[wanted.file].below.display();
                    return Err(Error::Damaged(format!(
                        "{below} does not hold what was written at byte {}: the blob or the target is damaged",
                        wanted.at
                    )));
                }
                blobs.operation().advance(wanted.place.size());
            }
            Ok(())
        };
        let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get).min(8);
        in_parallel(threads.min(self.wanted.len().div_ceil(16)), &compare)
            .map_err(|error| blobs.operation().fail(error))
    }

    /// The blobs that are not in place yet: all but what an earlier try has written.
    fn missing(&self, blobs: &Blobs) -> Result<Vec<Wanted>, Error> {
        let mut missing = Vec::with_capacity(self.wanted.len());
        let mut buffer = Vec::new();
        for wanted in &self.wanted {
            blobs.operation().check()?;
            if !self.files[wanted.file].used || !self.holds(wanted, &mut buffer)? {
                missing.push(*wanted);
            }
        }
        Ok(missing)
    }

    fn holds(&self, wanted: &Wanted, buffer: &mut Vec<u8>) -> Result<bool, Error> {
        let restoring = &self.files[wanted.file];
        let size = usize::try_from(wanted.place.size()).unwrap_or(usize::MAX);
        if buffer.len() < size {
            buffer.resize(size, 0);
        }
        match restoring.file.read_exact_at(&mut buffer[..size], wanted.at) {
            Ok(()) => Ok(sha256(&buffer[..size]) == wanted.id),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(fault("reading back", &restoring.below, errno(&error))),
        }
    }
}

/// What to do with zeros.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Holes {
    /// Write them: something else may be there.
    Write,
    /// Leave them out: nothing is there, which reads as zeros.
    Leave,
}

const BLOCK: usize = 4096;

/// Writes some content, in as few calls as its holes allow.
pub(super) fn write(file: &File, at: u64, content: &[u8], holes: Holes) -> std::io::Result<()> {
    if holes == Holes::Write {
        return file.write_all_at(content, at);
    }
    // Blocks are those of the file, wherever the blob begins in it.
    let first = (BLOCK - usize::try_from(at % BLOCK as u64).unwrap_or_default()).min(content.len());
    let mut run: Option<usize> = None;
    let mut start = 0;
    let mut end = first;
    while start < content.len() {
        match (is_zero(&content[start..end]), run) {
            (true, Some(begun)) => {
                file.write_all_at(&content[begun..start], at + begun as u64)?;
                run = None;
            }
            (false, None) => run = Some(start),
            _ => {}
        }
        start = end;
        end = (end + BLOCK).min(content.len());
    }
    match run {
        Some(begun) => file.write_all_at(&content[begun..], at + begun as u64),
        None => Ok(()),
    }
}

fn is_zero(block: &[u8]) -> bool {
    // Mostly the first bytes tell.
    block.iter().take(16).all(|byte| *byte == 0) && block.iter().all(|byte| *byte == 0)
}

pub(super) fn errno(error: &std::io::Error) -> rustix::io::Errno {
    error.raw_os_error().map_or(rustix::io::Errno::IO, rustix::io::Errno::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_left_out_and_the_rest_is_written_where_it_belongs() {
        let check = |at: u64, content: Vec<u8>| {
            let file = tempfile::tempfile().unwrap();
            let end = at + content.len() as u64;
            file.set_len(end).unwrap();
            write(&file, at, &content, Holes::Leave).unwrap();
            let mut read = vec![1; content.len()];
            file.read_exact_at(&mut read, at).unwrap();
            assert!(read == content, "{} bytes at {at}", content.len());
        };
        let mut mixed = vec![0; 5 * BLOCK + 17];
        mixed[0] = 1;
        mixed[2 * BLOCK + 5] = 2;
        mixed[5 * BLOCK + 16] = 3;
        for at in [0, 1, 4095, 4096, 10_000] {
            check(at, mixed.clone());
            check(at, vec![0; 3 * BLOCK]);
            check(at, vec![7; 3 * BLOCK]);
            check(at, vec![7; 1]);
            check(at, Vec::new());
        }
    }
}
