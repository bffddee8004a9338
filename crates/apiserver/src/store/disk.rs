//! Durability: an append-only log with group commit, and a snapshot when the log has grown.
//!
//! Writers hand records over under the store's lock, so the log has the order of the revisions; one thread writes and syncs whatever
//! has gathered as one batch, so the more clients write at once, the more writes share one sync. `format` says what a crash or a power cut
//! may leave of the files, `media` what is asked of the disk.

mod format;
mod media;
#[cfg(test)]
mod power;
#[cfg(test)]
mod tests;

use super::Event;
use crate::store::EventKind;
use bytes::Bytes;
use format::{BATCHES, RECORDS, Tail, read};
use media::{Folder, Media};
use parking_lot::{Condvar, Mutex};
use rustix::fs::FlockOperation;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

const LOG: &str = "log";
const SNAPSHOT: &str = "snapshot";
const NEW_SNAPSHOT: &str = "snapshot.new";
const NEW_LOG: &str = "log.new";
/// A log smaller than this is never rewritten.
const COMPACT_ABOVE: u64 = 64 << 20;
/// A snapshot is written in pieces of about this size.
const PIECE: usize = 1 << 20;

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The folder or a file in it could not be used.
    #[error("{action} {path}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Another process has the folder.
    #[error("{path} is in use by another process: stop it first, or choose another --data folder")]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// Bytes in the middle of a file are not what was written.
    #[error(
        "{path} is damaged at byte {offset}: {what}. Nothing was changed; restore the folder from a copy, or move it away to start empty"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
}

fn io<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(std::io::Error) -> DiskError + 'a {
    move |source| DiskError::Io { action, path: path.to_owned(), source }
}

/// One stored write; no JSON means that the object was removed.
#[derive(Debug, PartialEq, Eq)]
pub struct Record {
    pub(super) revision: u64,
    pub(super) collection: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) json: Option<Bytes>,
}

/// A folder that has been read and is ready to be written to.
pub struct Opened<M: Media = Folder> {
    media: M,
    log_bytes: u64,
    /// Held as long as the folder is in use.
    _lock: Option<File>,
    pub(super) revision: u64,
}

/// The writing side of a store on disk.
pub struct DiskLog {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Default)]
struct Queue {
    bytes: Vec<u8>,
    newest: u64,
    stop: bool,
}

/// Reads a folder, giving each record to `load` in the order of writing; makes it if it is not there.
pub fn open(
    folder: &Path,
    load: impl FnMut(Record) -> Result<(), &'static str>,
) -> Result<Opened, DiskError> {
    std::fs::create_dir_all(folder).map_err(io("creating", folder))?;
    let lock_path = folder.join("lock");
    let lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&lock_path)
        .map_err(io("opening", &lock_path))?;
    rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| DiskError::InUse { path: folder.to_owned() })?;
    open_on(Folder::new(folder), Some(lock), load)
}

fn open_on<M: Media>(
    mut media: M,
    lock: Option<File>,
    mut load: impl FnMut(Record) -> Result<(), &'static str>,
) -> Result<Opened<M>, DiskError> {
    let mut revision = 0;
    if is_there(&media, SNAPSHOT)? {
        read(&media, SNAPSHOT, Tail::Whole, |record| {
            revision = revision.max(record.revision);
            load(record)
        })?;
    }
    let path = media.path(LOG);
    let mut sound = None;
    if is_there(&media, LOG)? {
        let found = read(&media, LOG, Tail::MayBeTorn, |record| {
            // A crash between a new snapshot and the emptying of the log leaves records that the snapshot has.
            if record.revision > revision {
                revision = record.revision;
                load(record)?;
            }
            Ok(())
        })?;
        sound = Some(found).filter(|found| found.length > 0);
    }
    let Some(found) = sound else {
        begin_log(&mut media)?;
        let log_bytes = BATCHES.len() as u64;
        return Ok(Opened { media, log_bytes, _lock: lock, revision });
    };
    media.set_len(LOG, found.length).map_err(io("cutting the torn tail of", &path))?;
    media.sync(LOG).map_err(io("syncing", &path))?;
    media.sync_names().map_err(io("syncing", &path))?;
    let mut opened = Opened { media, log_bytes: found.length, _lock: lock, revision };
    if !found.batches {
        // A log of the first version: what it holds goes to the snapshot, and a new one begins.
        write_snapshot(&mut opened.media)?;
        begin_log(&mut opened.media)?;
        opened.log_bytes = BATCHES.len() as u64;
    }
    Ok(opened)
}

fn is_there(media: &impl Media, name: &str) -> Result<bool, DiskError> {
    Ok(media.length(name).map_err(io("reading", &media.path(name)))?.is_some())
}

/// Puts an empty log in the place of the one that is there. It is whole before it has the name.
fn begin_log(media: &mut impl Media) -> Result<(), DiskError> {
    let path = media.path(NEW_LOG);
    media.set_len(NEW_LOG, 0).map_err(io("emptying", &path))?;
    media.write_at(NEW_LOG, 0, BATCHES).map_err(io("writing", &path))?;
    media.sync(NEW_LOG).map_err(io("syncing", &path))?;
    media.rename(NEW_LOG, LOG).map_err(io("renaming", &path))?;
    media.sync_names().map_err(io("syncing", &path))
}

impl DiskLog {
    /// Starts the writing thread; `done` hears of every revision that has reached the disk, or why none ever will again.
    pub(super) fn start(
        opened: Opened,
        done: impl Fn(Result<u64, Arc<str>>) + Send + 'static,
    ) -> Result<Self, DiskError> {
        let shared = Arc::new(Shared { queue: Mutex::default(), wake: Condvar::new() });
        let log = opened.media.path(LOG);
        let thread = {
            let shared = shared.clone();
            std::thread::Builder::new().name("store".into()).spawn(move || write_loop(opened, &shared, &done))
        };
        let writer = thread.map_err(io("starting the writer of", &log))?;
        Ok(Self { shared, writer: Some(writer) })
    }

    /// Hands a write over; called under the store's lock, so the order is that of the revisions.
    pub(super) fn append(&self, event: &Event) {
        let mut queue = self.shared.queue.lock();
        let key = &event.entry.key;
        let json = (event.kind != EventKind::Deleted).then_some(&event.entry.json[..]);
        format::push(&mut queue.bytes, event.revision, [&key.collection, &key.namespace, &key.name], json);
        queue.newest = event.revision;
        drop(queue);
        self.shared.wake.notify_one();
    }
}

impl Drop for DiskLog {
    fn drop(&mut self) {
        self.shared.queue.lock().stop = true;
        self.shared.wake.notify_one();
        if let Some(writer) = self.writer.take() {
            // A panic of the writer has been reported to everybody who waited; there is nobody left to tell.
            let _ = writer.join();
        }
    }
}

fn write_loop(mut opened: Opened, shared: &Shared, done: &impl Fn(Result<u64, Arc<str>>)) {
    // After a failed sync the kernel may have dropped the pages: nothing later can be trusted.
    let give_up = |error: &DiskError| {
        let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
        let why = format!("{error}{cause}; no write is accepted until the server is restarted");
        done(Err(why.into()));
    };
    let mut batch = Vec::new();
    loop {
        let (newest, stop) = {
            let mut queue = shared.queue.lock();
            while queue.bytes.is_empty() && !queue.stop {
                shared.wake.wait(&mut queue);
            }
            batch.clear();
            std::mem::swap(&mut batch, &mut queue.bytes);
            (queue.newest, queue.stop)
        };
        if !batch.is_empty() {
            match append(&mut opened, &mut batch, newest) {
                Ok(()) => done(Ok(newest)),
                Err(error) => return give_up(&error),
            }
        }
        if stop {
            return;
        }
        if opened.log_bytes > COMPACT_ABOVE {
            match write_snapshot(&mut opened.media) {
                // Whether the old log or the new one is there after a crash is not known any more where this fails.
                Ok(()) => match begin_log(&mut opened.media) {
                    Ok(()) => opened.log_bytes = BATCHES.len() as u64,
                    Err(error) => return give_up(&error),
                },
                Err(error) => {
                    tracing::warn!(%error, "the log could not be rewritten; it keeps growing and the next try follows");
                }
            }
        }
    }
}

/// Hands a batch to the disk, and waits until the disk has it. One batch at a time: that is why only the last can be torn.
fn append<M: Media>(opened: &mut Opened<M>, batch: &mut [u8], newest: u64) -> Result<(), DiskError> {
    format::close(batch, newest);
    let path = opened.media.path(LOG);
    opened.media.write_at(LOG, opened.log_bytes, batch).map_err(io("writing", &path))?;
    opened.media.sync(LOG).map_err(io("syncing", &path))?;
    opened.log_bytes += batch.len() as u64;
    Ok(())
}

/// Writes what is alive to a new snapshot. The state is read back from the files themselves, so that a snapshot can only hold
/// what the disk already had.
fn write_snapshot(media: &mut impl Media) -> Result<(), DiskError> {
    let mut alive = std::collections::BTreeMap::new();
    let mut newest = 0;
    let mut keep = |record: Record| {
        newest = newest.max(record.revision);
        let key = (record.collection, record.namespace, record.name);
        match record.json {
            Some(json) => alive.insert(key, (record.revision, json)),
            None => alive.remove(&key),
        };
        Ok(())
    };
    if is_there(media, SNAPSHOT)? {
        read(media, SNAPSHOT, Tail::Whole, &mut keep)?;
    }
    read(media, LOG, Tail::Whole, &mut keep)?;
    let path = media.path(NEW_SNAPSHOT);
    media.set_len(NEW_SNAPSHOT, 0).map_err(io("creating", &path))?;
    let mut written = 0;
    let mut bytes = RECORDS.to_vec();
    let mut flush = |media: &mut dyn Media, bytes: &mut Vec<u8>| {
        media.write_at(NEW_SNAPSHOT, written, bytes).map_err(io("writing", &path))?;
        written += bytes.len() as u64;
        bytes.clear();
        Ok(())
    };
    for ((collection, namespace, name), (revision, json)) in &alive {
        format::alone(&mut bytes, *revision, [collection, namespace, name], Some(json));
        if bytes.len() >= PIECE {
            flush(media, &mut bytes)?;
        }
    }
    // The newest revision may have been a removal: keep it, or the counter would go back.
    format::alone(&mut bytes, newest, ["", "", ""], None);
    flush(media, &mut bytes)?;
    media.sync(NEW_SNAPSHOT).map_err(io("syncing", &path))?;
    media.rename(NEW_SNAPSHOT, SNAPSHOT).map_err(io("renaming", &path))?;
    media.sync_names().map_err(io("syncing", &path))
}
