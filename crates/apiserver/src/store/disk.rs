//! Durability: an append-only log with group commit, and a snapshot when the log has grown.
//!
//! Each record is length, checksum, payload. A crash can only tear the last record: a torn tail was never acknowledged and
//! is cut off; damage anywhere else is reported and nothing is served. Writers hand records over under the store's lock,
//! so the log has the order of the revisions; one thread writes and syncs whatever has gathered, so the
//! more clients write at once, the more writes share one sync.

use super::Event;
use crate::store::EventKind;
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use rustix::fs::FlockOperation;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

const LOG: &str = "log";
const SNAPSHOT: &str = "snapshot";
const MAGIC: &[u8; 8] = b"LBSTORE1";
/// A log smaller than this is never rewritten.
const COMPACT_ABOVE: u64 = 64 << 20;
/// No record is larger: the API refuses bodies far below this.
const MAX_RECORD: usize = 64 << 20;

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
pub struct Opened {
    folder: PathBuf,
    log: File,
    log_bytes: u64,
    lock: File,
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
    mut load: impl FnMut(Record) -> Result<(), &'static str>,
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
    let mut revision = 0;
    let snapshot = folder.join(SNAPSHOT);
    if snapshot.exists() {
        read(&snapshot, Tail::Whole, |record| {
            revision = revision.max(record.revision);
            load(record)
        })?;
    }
    let path = folder.join(LOG);
    let mut log_bytes = 0;
    if path.exists() {
        log_bytes = read(&path, Tail::MayBeTorn, |record| {
            // A crash between a new snapshot and the emptying of the log leaves records that the snapshot has.
            if record.revision > revision {
                revision = record.revision;
                load(record)?;
            }
            Ok(())
        })?;
    }
    let log = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .read(true)
        .open(&path)
        .map_err(io("opening", &path))?;
    if log_bytes == 0 {
        log.set_len(0).map_err(io("emptying", &path))?;
        (&log).write_all(MAGIC).map_err(io("writing", &path))?;
        log_bytes = MAGIC.len() as u64;
    } else {
        log.set_len(log_bytes).map_err(io("cutting the torn tail of", &path))?;
    }
    log.sync_all().map_err(io("syncing", &path))?;
    sync_folder(folder)?;
    Ok(Opened { folder: folder.to_owned(), log, log_bytes, lock, revision })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tail {
    MayBeTorn,
    Whole,
}

/// Reads records until the end; gives the length of the sound part.
fn read(
    path: &Path,
    tail: Tail,
    mut load: impl FnMut(Record) -> Result<(), &'static str>,
) -> Result<u64, DiskError> {
    let file = File::open(path).map_err(io("opening", path))?;
    let size = file.metadata().map_err(io("reading", path))?.len();
    let mut input = BufReader::with_capacity(1 << 20, file);
    let damaged = |offset, what| DiskError::Damaged { path: path.to_owned(), offset, what };
    let mut magic = [0; MAGIC.len()];
    if size < MAGIC.len() as u64 && tail == Tail::MayBeTorn {
        return Ok(0);
    }
    input.read_exact(&mut magic).map_err(io("reading", path))?;
    if &magic != MAGIC {
        return Err(damaged(0, "it does not begin like a store of this program"));
    }
    let mut offset = MAGIC.len() as u64;
    let mut newest = 0;
    while offset < size {
        let left = size - offset;
        let mut head = [0; 8];
        let torn = |what| match tail {
            // Only the last write can be torn: where a sound record follows, something else has happened.
            Tail::MayBeTorn if !sound_record_after(path, offset, newest)? => Ok(offset),
            _ => Err(damaged(offset, what)),
        };
        if left < 8 {
            return torn("a record ends early");
        }
        input.read_exact(&mut head).map_err(io("reading", path))?;
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let sum = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        if length as u64 > left - 8 {
            // A torn length can claim anything; a whole log can not end in one.
            return torn("a record is longer than the file");
        }
        if length > MAX_RECORD {
            return Err(damaged(offset, "a record is longer than any can be"));
        }
        let mut payload = vec![0; length];
        input.read_exact(&mut payload).map_err(io("reading", path))?;
        let end = offset + 8 + length as u64;
        if crc32fast::hash(&payload) != sum {
            if end == size {
                return torn("the checksum of the last record does not match");
            }
            return Err(damaged(offset, "a checksum does not match"));
        }
        let record = decode(&payload).ok_or_else(|| damaged(offset, "a record can not be read"))?;
        newest = newest.max(record.revision);
        load(record).map_err(|what| damaged(offset, what))?;
        offset = end;
    }
    Ok(offset)
}

/// Whether a whole record with a later revision stands anywhere behind an offset.
fn sound_record_after(path: &Path, offset: u64, newest: u64) -> Result<bool, DiskError> {
    let bytes = std::fs::read(path).map_err(io("reading", path))?;
    let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
    let sound = |start: usize| {
        let Some((head, after)) = rest[start..].split_first_chunk::<16>() else { return false };
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let revision = u64::from(number(8)) | u64::from(number(12)) << 32;
        // Cheap checks first: a plausible revision and a length that fits are rare among bytes that are no record.
        let length = number(0) as usize;
        let plausible = revision > newest && revision - newest <= rest.len() as u64 && length >= 8;
        plausible
            && length - 8 <= after.len()
            && crc32fast::hash(&rest[start + 8..start + 8 + length]) == number(4)
    };
    Ok((1..rest.len()).any(sound))
}

fn encode(out: &mut Vec<u8>, event: &Event) {
    let key = &event.entry.key;
    let json = (event.kind != EventKind::Deleted).then_some(&event.entry.json[..]);
    encode_parts(out, event.revision, [&key.collection, &key.namespace, &key.name], json);
}

fn encode_parts(out: &mut Vec<u8>, revision: u64, key: [&str; 3], json: Option<&[u8]>) {
    let start = out.len();
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&revision.to_le_bytes());
    for part in key {
        out.extend_from_slice(&(u32::try_from(part.len()).unwrap_or(u32::MAX)).to_le_bytes());
        out.extend_from_slice(part.as_bytes());
    }
    match json {
        None => out.push(0),
        Some(json) => {
            out.push(1);
            out.extend_from_slice(json);
        }
    }
    let payload = &out[start + 8..];
    let length = u32::try_from(payload.len()).expect("invariant: objects are far below 4 GiB");
    let sum = crc32fast::hash(payload);
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&sum.to_le_bytes());
}

fn decode(payload: &[u8]) -> Option<Record> {
    let (revision, mut rest) = payload.split_first_chunk::<8>()?;
    let mut part = || -> Option<String> {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (text, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        rest = after;
        String::from_utf8(text.to_vec()).ok()
    };
    let (collection, namespace, name) = (part()?, part()?, part()?);
    let json = match rest.split_first()? {
        (0, []) => None,
        (1, json) => Some(Bytes::copy_from_slice(json)),
        _ => return None,
    };
    Some(Record { revision: u64::from_le_bytes(*revision), collection, namespace, name, json })
}

fn sync_folder(folder: &Path) -> Result<(), DiskError> {
    File::open(folder).and_then(|dir| dir.sync_all()).map_err(io("syncing", folder))
}

impl DiskLog {
    /// Starts the writing thread; `done` hears of every revision that has reached the disk, or why none ever will again.
    pub(super) fn start(
        opened: Opened,
        done: impl Fn(Result<u64, Arc<str>>) + Send + 'static,
    ) -> Result<Self, DiskError> {
        let shared = Arc::new(Shared { queue: Mutex::default(), wake: Condvar::new() });
        let folder = opened.folder.clone();
        let thread = {
            let shared = shared.clone();
            std::thread::Builder::new().name("store".into()).spawn(move || write_loop(opened, &shared, &done))
        };
        let writer = thread.map_err(io("starting the writer of", &folder))?;
        Ok(Self { shared, writer: Some(writer) })
    }

    /// Hands a write over; called under the store's lock, so the order is that of the revisions.
    pub(super) fn append(&self, event: &Event) {
        let mut queue = self.shared.queue.lock();
        encode(&mut queue.bytes, event);
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
    let path = opened.folder.join(LOG);
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
            match append(&mut opened, &batch) {
                Ok(()) => done(Ok(newest)),
                Err(error) => {
                    // After a failed sync the kernel may have dropped the pages: nothing later can be trusted.
                    let why = format!(
                        "writing {}: {error}; no write is accepted until the server is restarted",
                        path.display()
                    );
                    done(Err(why.into()));
                    return;
                }
            }
        }
        if stop {
            return;
        }
        if opened.log_bytes > COMPACT_ABOVE
            && let Err(error) = compact(&mut opened)
        {
            tracing::warn!(%error, "the log could not be rewritten; it keeps growing and the next try follows");
        }
    }
}

fn append(opened: &mut Opened, batch: &[u8]) -> std::io::Result<()> {
    use std::os::unix::fs::FileExt;
    opened.log.write_all_at(batch, opened.log_bytes)?;
    opened.log.sync_data()?;
    opened.log_bytes += batch.len() as u64;
    Ok(())
}

/// Writes what is alive to a new snapshot and empties the log. The state is read back from the files themselves, so
/// that a snapshot can only hold what the disk already had.
fn compact(opened: &mut Opened) -> Result<(), DiskError> {
    let folder = opened.folder.clone();
    let (snapshot, log) = (folder.join(SNAPSHOT), folder.join(LOG));
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
    if snapshot.exists() {
        read(&snapshot, Tail::Whole, &mut keep)?;
    }
    read(&log, Tail::Whole, &mut keep)?;
    let fresh = folder.join("snapshot.new");
    let file = File::create(&fresh).map_err(io("creating", &fresh))?;
    let mut output = BufWriter::with_capacity(1 << 20, file);
    output.write_all(MAGIC).map_err(io("writing", &fresh))?;
    let mut bytes = Vec::new();
    for ((collection, namespace, name), (revision, json)) in &alive {
        bytes.clear();
        encode_parts(&mut bytes, *revision, [collection, namespace, name], Some(json));
        output.write_all(&bytes).map_err(io("writing", &fresh))?;
    }
    // The newest revision may have been a removal: keep it, or the counter would go back.
    bytes.clear();
    encode_parts(&mut bytes, newest, ["", "", ""], None);
    output.write_all(&bytes).map_err(io("writing", &fresh))?;
    let file = output.into_inner().map_err(|error| io("writing", &fresh)(error.into_error()))?;
    file.sync_all().map_err(io("syncing", &fresh))?;
    std::fs::rename(&fresh, &snapshot).map_err(io("renaming", &fresh))?;
    sync_folder(&folder)?;
    opened.log.set_len(MAGIC.len() as u64).map_err(io("emptying", &log))?;
    // At once, or a failure to sync would make the next append leave a hole that reads as damage.
    opened.log_bytes = MAGIC.len() as u64;
    opened.log.sync_all().map_err(io("syncing", &log))?;
    // The lock is held as long as the folder is in use; naming it here keeps it from being dropped early.
    let _held = &opened.lock;
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_as_written() {
        let mut bytes = Vec::new();
        encode_parts(&mut bytes, 7, ["pods", "default", "a"], Some(b"{}"));
        encode_parts(&mut bytes, 8, ["pods", "default", "a"], None);
        let first = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
        let record = decode(&bytes[8..8 + first]).expect("whole");
        assert_eq!((record.revision, record.json), (7, Some(Bytes::from_static(b"{}"))));
        assert_eq!(decode(&bytes[8 + first + 8..]).expect("whole").json, None);
    }

    #[test]
    fn arbitrary_bytes_never_decode_into_a_panic() {
        for length in 0..40 {
            let _ = decode(&vec![0xff; length]);
        }
    }

    fn write(opened: &mut Opened, revision: u64, name: &str, json: Option<&[u8]>) {
        let mut bytes = Vec::new();
        encode_parts(&mut bytes, revision, ["things", "", name], json);
        append(opened, &bytes).expect("appended");
    }

    fn contents(folder: &Path) -> (u64, Vec<(u64, String)>) {
        let mut found = std::collections::BTreeMap::new();
        let opened = open(folder, |record| {
            match record.json {
                Some(_) => found.insert(record.name, record.revision),
                None => found.remove(&record.name),
            };
            Ok(())
        });
        let revision = opened.expect("opens").revision;
        (revision, found.into_iter().map(|(name, revision)| (revision, name)).collect())
    }

    #[test]
    fn a_rewritten_log_holds_the_same_even_if_the_rewrite_dies_half_way() {
        let folder = tempfile::tempdir().expect("folder");
        let mut opened = open(folder.path(), |_| Ok(())).expect("opens");
        write(&mut opened, 2, "a", Some(b"{}"));
        write(&mut opened, 3, "b", Some(b"{}"));
        write(&mut opened, 4, "b", None);
        let before = std::fs::read(folder.path().join(LOG)).expect("log");
        compact(&mut opened).expect("compacted");
        drop(opened);
        let wanted = (4, vec![(2, "a".to_owned())]);
        assert_eq!(contents(folder.path()), wanted);
        // Died after the snapshot and before the log was emptied.
        std::fs::write(folder.path().join(LOG), before).expect("log");
        assert_eq!(contents(folder.path()), wanted);
        let mut opened = open(folder.path(), |_| Ok(())).expect("opens");
        write(&mut opened, 5, "c", Some(b"{}"));
        compact(&mut opened).expect("compacted again");
        write(&mut opened, 6, "d", Some(b"{}"));
        drop(opened);
        assert_eq!(contents(folder.path()), (6, vec![(2, "a".into()), (5, "c".into()), (6, "d".into())]));
    }

    #[test]
    fn a_broken_length_in_the_middle_is_damage_and_cuts_nothing() {
        let folder = tempfile::tempdir().expect("folder");
        let mut opened = open(folder.path(), |_| Ok(())).expect("opens");
        for revision in 2..6 {
            write(&mut opened, revision, &format!("m{revision}"), Some(b"{}"));
        }
        drop(opened);
        let log = folder.path().join(LOG);
        let mut bytes = std::fs::read(&log).expect("log");
        bytes[MAGIC.len() + 2] ^= 0x10;
        std::fs::write(&log, &bytes).expect("written");
        let error = open(folder.path(), |_| Ok(())).err().expect("refused");
        assert!(error.to_string().contains("damaged at byte 8"), "{error}");
        assert_eq!(std::fs::read(&log).expect("log"), bytes, "nothing was changed");
    }
}
