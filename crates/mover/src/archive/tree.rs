//! Storing a tree of files: directories are read by one thread, files by all.
//!
//! A file that looks as it did in the parent snapshot keeps its blobs and is not read. A directory is stored when all below it is.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};
use rustic_core::repofile::{BlobType, Node, Tree};
use rustic_core::{DataId, Id, IndexedFullStatus, Repository, TreeId};

use super::chunks::Cutter;
use super::packs::{Packer, Packs};
use crate::Error;
use crate::crypto::sha256;
use crate::operation::Operation;
use crate::source::{Files, Listed, Opener};

/// What takes content into a repository.
pub(crate) struct Keeper<'a> {
    pub(crate) engine: &'a Repository<IndexedFullStatus>,
    pub(crate) packs: &'a Packs<'a>,
    pub(crate) cutter: Cutter,
    pub(crate) operation: &'a Arc<Operation>,
    pub(crate) counts: Counts,
    jobs: Jobs,
}

/// What was seen on the way.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) files: AtomicU64,
    pub(crate) folders: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) read: AtomicU64,
}

#[derive(Default)]
struct Jobs {
    waiting: Mutex<VecDeque<Job>>,
    changed: Condvar,
    over: AtomicBool,
}

/// A file to be read.
struct Job {
    opener: Opener,
    slot: Arc<Slot>,
}

/// Where the outcome of reading a file goes.
#[derive(Default)]
struct Slot(Mutex<Option<Result<Stored, Error>>>);

/// A file that is in the repository.
#[derive(Clone)]
pub(crate) struct Stored {
    pub(crate) content: Vec<DataId>,
    pub(crate) bytes: u64,
}

/// Buffers of one thread.
pub(crate) struct Bench {
    buffer: Vec<u8>,
    packer: Packer,
}

impl Bench {
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self { buffer: Vec::new(), packer: Packer::new()? })
    }
}

impl<'a> Keeper<'a> {
    pub(crate) fn new(
        engine: &'a Repository<IndexedFullStatus>,
        packs: &'a Packs<'a>,
        polynomial: u64,
        operation: &'a Arc<Operation>,
    ) -> Self {
        let cutter = Cutter::new(polynomial);
        Self { engine, packs, cutter, operation, counts: Counts::default(), jobs: Jobs::default() }
    }

    /// Stores the tree under a directory.
    pub(crate) fn keep_tree(&self, files: &Files, parent: Option<TreeId>) -> Result<TreeId, Error> {
        let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get).min(16);
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| self.help());
            }
            let kept =
                Bench::new().and_then(|mut bench| self.keep_folder(files, Path::new(""), parent, &mut bench));
            self.jobs.over.store(true, Ordering::Relaxed);
            self.jobs.waiting.lock().clear();
            self.jobs.changed.notify_all();
            kept
        })
    }

    /// Reads files until there are no more.
    fn help(&self) {
        let Ok(mut bench) = Bench::new() else { return };
        loop {
            let job = {
                let mut waiting = self.jobs.waiting.lock();
                loop {
                    if self.jobs.over.load(Ordering::Relaxed) {
                        return;
                    }
                    match waiting.pop_front() {
                        Some(job) => break job,
                        None => self.jobs.changed.wait(&mut waiting),
                    }
                }
            };
            self.run(job, &mut bench);
        }
    }

    fn run(&self, job: Job, bench: &mut Bench) {
        let outcome = self.keep_file(job.opener, bench);
        *job.slot.0.lock() = Some(outcome);
        // Under the lock of the queue, so that nobody misses it between looking and waiting.
        let _waiting = self.jobs.waiting.lock();
        self.jobs.changed.notify_all();
    }

    fn keep_folder(
        &self,
        files: &Files,
        below: &Path,
        parent: Option<TreeId>,
        bench: &mut Bench,
    ) -> Result<TreeId, Error> {
        self.counts.folders.fetch_add(1, Ordering::Relaxed);
        // A parent that cannot be read only costs time.
        let parent = parent.and_then(|tree| self.engine.get_tree(&tree).ok()).unwrap_or_default();
        let before = |node: &Node| {
            let found = parent.nodes.binary_search_by(|known| (*known.name()).cmp(&node.name()));
            found.ok().map(|index| &parent.nodes[index])
        };
        let mut entries: Vec<(Node, Option<Arc<Slot>>)> = Vec::new();
        let mut folders: Vec<(usize, PathBuf, Option<TreeId>)> = Vec::new();
        for Listed { name, mut node, inode } in files.list(below)? {
            let below = below.join(&name);
            let known = before(&node);
            let mut slot = None;
            if node.is_dir() {
                folders.push((entries.len(), below.clone(), known.and_then(|known| known.subtree)));
            } else {
                self.counts.files.fetch_add(1, Ordering::Relaxed);
                self.operation.advance_files(1);
            }
            if node.is_file() {
                match known.filter(|known| same(known, &node)).and_then(|known| self.held(known)) {
                    Some(content) => {
                        self.operation.advance(node.meta.size);
                        self.counts.bytes.fetch_add(node.meta.size, Ordering::Relaxed);
                        node.content = Some(content);
                    }
                    None => {
                        let job = Job { opener: files.opener(&below, inode), slot: Arc::default() };
                        slot = Some(job.slot.clone());
                        self.jobs.waiting.lock().push_back(job);
                        self.jobs.changed.notify_one();
                    }
                }
            }
            entries.push((node, slot));
        }
        drop(parent);
        for (index, below, parent) in folders {
            entries[index].0.subtree = Some(self.keep_folder(files, &below, parent, bench)?);
        }
        let mut nodes = Vec::with_capacity(entries.len());
        for (mut node, slot) in entries {
            if let Some(slot) = slot {
                let stored = self.wait(&slot, bench)?;
                node.content = Some(stored.content);
                // As much as was there when it was read.
                node.meta.size = stored.bytes;
            }
            nodes.push(node);
        }
        self.keep_nodes(nodes, bench)
    }

    /// Waits for a file, and reads others meanwhile.
    fn wait(&self, slot: &Slot, bench: &mut Bench) -> Result<Stored, Error> {
        loop {
            let job = {
                let mut waiting = self.jobs.waiting.lock();
                if let Some(outcome) = slot.0.lock().take() {
                    return outcome;
                }
                match waiting.pop_front() {
                    Some(job) => job,
                    None => {
                        self.jobs.changed.wait(&mut waiting);
                        continue;
                    }
                }
            };
            self.run(job, bench);
        }
    }

    /// The blobs of a file of the parent, if the repository still has all of them.
    fn held(&self, known: &Node) -> Option<Vec<DataId>> {
        let content = known.content.as_ref()?;
        content.iter().all(|id| self.engine.get_index_entry(id).is_ok()).then(|| content.clone())
    }

    /// Reads one file into the repository.
    pub(crate) fn keep_file(&self, opener: Opener, bench: &mut Bench) -> Result<Stored, Error> {
        let mut stored = Stored { content: Vec::new(), bytes: 0 };
        let reader = opener.open()?;
        let Bench { buffer, packer } = bench;
        let failed =
            |error: std::io::Error| self.operation.fail(Error::Transient(format!("reading: {error}")));
        self.cutter.cut(reader, buffer, failed, |chunk| {
            let id = sha256(chunk);
            let named = DataId::from(name(&id));
            if self.packs.claim(id) && self.engine.get_index_entry(&named).is_err() {
                self.packs.add(BlobType::Data, id, chunk, packer)?;
            }
            stored.content.push(named);
            stored.bytes += chunk.len() as u64;
            self.operation.advance(chunk.len() as u64);
            Ok(())
        })?;
        self.counts.bytes.fetch_add(stored.bytes, Ordering::Relaxed);
        self.counts.read.fetch_add(1, Ordering::Relaxed);
        Ok(stored)
    }

    /// Stores the entries of one directory.
    pub(crate) fn keep_nodes(&self, nodes: Vec<Node>, bench: &mut Bench) -> Result<TreeId, Error> {
        let tree = Tree { nodes };
        let (content, id) = tree.serialize().map_err(|error| Error::Invalid(error.to_string()))?;
        let bytes = sha256(&content);
        if self.packs.claim(bytes) && self.engine.get_index_entry(&id).is_err() {
            self.packs.add(BlobType::Tree, bytes, &content, &mut bench.packer)?;
        }
        Ok(id)
    }
}

/// Whether a file is the one that it was: nothing of what changes with every write has changed.
fn same(known: &Node, node: &Node) -> bool {
    let (one, other) = (&known.meta, &node.meta);
    known.is_file()
        && one.size == other.size
        && one.mtime == other.mtime
        && one.ctime == other.ctime
        && one.inode == other.inode
        && one.mtime.is_some()
}

fn name(id: &[u8; 32]) -> Id {
    crate::crypto::hex(id).parse().unwrap_or_default()
}
