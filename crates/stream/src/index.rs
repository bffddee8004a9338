//! What was synced last: every entry of a tree with what tells whether it changed, and the hashes of its blocks.
//!
//! The file holds the hashes first and the entries behind them, so that it is written in one go and the hashes, by far the larger part, are read
//! only where they are needed. It is a memory, not a truth: a lost or damaged one costs a full sync, nothing more.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::blocks::{self, Hash};
use crate::wire::record::{Bytes, Content, MOST_DATA, Special, decode, encode};

/// What is the same on both sides: mode, owner and time of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Meta {
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) modified: (i64, u32),
}

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    Folder,
    File,
    Symlink(Bytes),
    Special(Special),
}

impl Kind {
    /// Whether one can take the other's place without being made anew.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// One entry of a tree. The first is the root, whose path is empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) path: Bytes,
    pub(crate) kind: Kind,
    pub(crate) meta: Meta,
    pub(crate) size: u64,
    /// Number of the file on its own side, how many names it has, and when the system last saw any change of it.
    pub(crate) number: u64,
    pub(crate) names: u32,
    pub(crate) touched: (i64, u32),
    /// Whether an unchanged `touched` proves an unchanged file: not if it was touched just before it was read.
    pub(crate) settled: bool,
    /// Digest of its extended attributes.
    pub(crate) attributes: Hash,
    /// The name under which this file was sent, if it has several and this is another.
    pub(crate) alias: Option<Bytes>,
    /// Size of its blocks, and where their hashes begin.
    pub(crate) block: u32,
    pub(crate) first: u64,
}

impl Entry {
    /// The name that it was sent under.
    pub(crate) fn main(&self) -> &Bytes {
        self.alias.as_ref().unwrap_or(&self.path)
    }

    /// How many blocks it has.
    pub(crate) fn blocks(&self) -> u64 {
        if self.block == 0 { 0 } else { self.size.div_ceil(self.block.into()) }
    }
}

/// Everything but the hashes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Table {
    pub(crate) generation: String,
    /// The secret under which blocks are hashed; stays with the volume, so that nobody can prepare two blocks with one hash.
    pub(crate) secret: [u8; 32],
    pub(crate) device: bool,
    pub(crate) entries: Vec<Entry>,
}

impl Table {
    /// Forgets the numbers that files have on the other side: by chance they are those of other files here.
    pub(crate) fn forget_numbers(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.number = 0);
    }
}

/// An index that was written.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) table: Table,
    hashes: File,
}

const MAGIC: [u8; 8] = *b"LBSIDX01";
const HASH: u64 = size_of::<Hash>() as u64;
/// Offset of the table and its digest.
const FOOT: u64 = 8 + 32;

impl Index {
    /// Reads an index; `None` when there is none that can be used.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let length = file.metadata().ok()?.len();
        let mut magic = [0; 8];
        file.read_exact_at(&mut magic, 0).ok()?;
        let mut foot = [0; FOOT as usize];
        file.read_exact_at(&mut foot, length.checked_sub(FOOT)?).ok()?;
        let (at, digest) = foot.split_at(8);
        let at = u64::from_le_bytes(at.try_into().ok()?);
        let mut bytes = vec![0; usize::try_from(length.checked_sub(FOOT)?.checked_sub(at)?).ok()?];
        file.read_exact_at(&mut bytes, at).ok()?;
        if magic != MAGIC || blake3::hash(&bytes).as_bytes() != digest {
            tracing::warn!(path = %path.display(), "the index of the last sync is damaged and not used");
            return None;
        }
        let (table, _) = decode(&bytes).ok()?;
        Some(Self { table, hashes: file })
    }

    /// Hands out the whole file, piece by piece.
    pub(crate) fn read_all(&self, mut take: impl FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let mut piece = vec![0; MOST_DATA];
        let mut at = 0;
        loop {
            let read = blocks::read_full(&self.hashes, &mut piece, at)?;
            if read == 0 {
                return Ok(());
            }
            take(&piece[..read])?;
            at += read as u64;
        }
    }

    /// The hashes of an entry's blocks.
    pub(crate) fn hashes(&self, entry: &Entry) -> Result<Vec<Hash>, Error> {
        let count = usize::try_from(entry.blocks()).map_err(|_| damaged("too large"))?;
        let mut bytes = vec![0; count * HASH as usize];
        self.hashes.read_exact_at(&mut bytes, MAGIC.len() as u64 + entry.first * HASH).map_err(damaged)?;
        Ok(bytes.chunks_exact(HASH as usize).map(|hash| hash.try_into().unwrap_or_default()).collect())
    }

    /// Digests over all that the index says of the content.
    pub(crate) fn content(&self) -> Result<Content, Error> {
        let (mut data, mut owners) = (blake3::Hasher::new(), blake3::Hasher::new());
        let mut bytes = Vec::new();
        let mains = self.mains();
        for entry in &self.table.entries {
            bytes.clear();
            let file = matches!(entry.kind, Kind::File);
            let size = if file { entry.size } else { 0 };
            // Which of its names a file was sent under does not matter: the first stands for all.
            let (first, holder) = mains.get(entry.main()).copied().unwrap_or((&entry.path, entry));
            encode(&(&entry.path, &entry.kind, entry.meta.mode, entry.meta.modified, size), &mut bytes)?;
            encode(&(&entry.attributes, first), &mut bytes)?;
            data.update(&bytes);
            if file && first == &entry.path {
                data.update(self.hashes(holder)?.as_flattened());
            }
            owners.update(&entry.meta.uid.to_le_bytes()).update(&entry.meta.gid.to_le_bytes());
        }
        Ok(Content { data: *data.finalize().as_bytes(), owners: *owners.finalize().as_bytes() })
    }
}

impl Index {
    /// For each name that others are names of: the first of them all, and the entry that has the hashes.
    fn mains(&self) -> BTreeMap<&Bytes, (&Bytes, &Entry)> {
        let mut mains: BTreeMap<&Bytes, (&Bytes, &Entry)> = BTreeMap::new();
        for entry in &self.table.entries {
            // Entries come in order, so the first that is met is the first.
            let main = mains.entry(entry.main()).or_insert((&entry.path, entry));
            if entry.alias.is_none() {
                main.1 = entry;
            }
        }
        mains
    }
}

fn damaged(why: impl std::fmt::Display) -> Error {
    Error::Source(format!("the index of the last sync cannot be read: {why}; remove it for a full sync"))
}

/// An index that is being written.
pub(crate) struct Writing {
    file: BufWriter<File>,
    path: PathBuf,
    written: u64,
}

impl Writing {
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        let fail = |error| Error::source("writing the index", path, error);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(fail)?;
        }
        // Never into the file of an earlier try: that one may still be the only index of what the receiver has.
        let _ = std::fs::remove_file(path);
        let file = File::options().read(true).write(true).create_new(true).open(path).map_err(fail)?;
        let mut file = BufWriter::with_capacity(256 << 10, file);
        file.write_all(&MAGIC).map_err(fail)?;
        Ok(Self { file, path: path.to_owned(), written: 0 })
    }

    /// Adds the hashes of an entry and says where they begin.
    pub(crate) fn add(&mut self, hashes: &[Hash]) -> Result<u64, Error> {
        let first = self.written;
        self.file
            .write_all(hashes.as_flattened())
            .map_err(|error| Error::source("writing the index", &self.path, error))?;
        self.written += hashes.len() as u64;
        Ok(first)
    }

    /// Adds the table and puts all of it on the disk.
    pub(crate) fn finish(mut self, table: Table) -> Result<Index, Error> {
        let fail = |error| Error::source("writing the index", &self.path, error);
        let mut bytes = Vec::new();
        encode(&table, &mut bytes)?;
        let at = MAGIC.len() as u64 + self.written * HASH;
        let digest = blake3::hash(&bytes);
        self.file.write_all(&bytes).map_err(fail)?;
        self.file.write_all(&at.to_le_bytes()).map_err(fail)?;
        self.file.write_all(digest.as_bytes()).map_err(fail)?;
        let hashes = self.file.into_inner().map_err(|error| fail(error.into_error()))?;
        hashes.sync_data().map_err(fail)?;
        Ok(Index { table, hashes })
    }
}

/// Size of the blocks of a file of this size: small, because whole blocks are sent; larger where hashes would fill memory.
pub(crate) fn block_size(size: u64) -> u32 {
    match size {
        0..=0x4000_0000 => blocks::SMALLEST,
        0x4000_0001..=0x1_0000_0000 => 2 * blocks::SMALLEST,
        _ => 4 * blocks::SMALLEST,
    }
}

/// Paths in the order of a walk: a directory, what is in it, its next sibling.
pub(crate) fn order(one: &[u8], other: &[u8]) -> std::cmp::Ordering {
    one.split(|byte| *byte == b'/').cmp(other.split(|byte| *byte == b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_followed_by_what_is_in_it() {
        let mut paths: Vec<&[u8]> = vec![b"b", b"a!", b"a/x", b"a", b"a/!", b""];
        paths.sort_by(|one, other| order(one, other));
        assert_eq!(paths, [&b""[..], b"a", b"a/!", b"a/x", b"a!", b"b"]);
    }

    #[test]
    fn an_index_is_read_back_and_a_damaged_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index");
        let mut writing = Writing::create(&path).unwrap();
        assert_eq!(writing.add(&[[1; 16], [2; 16]]).unwrap(), 0);
        assert_eq!(writing.add(&[[3; 16]]).unwrap(), 2);
        let entry = Entry {
            path: Bytes(b"f".to_vec()),
            kind: Kind::File,
            meta: Meta { mode: 0o644, uid: 1, gid: 2, modified: (3, 4) },
            size: 10,
            number: 5,
            names: 1,
            touched: (6, 7),
            settled: true,
            attributes: [8; 16],
            alias: None,
            block: 4096,
            first: 2,
        };
        let table = Table { generation: "g".into(), secret: [9; 32], device: false, entries: vec![entry] };
        writing.finish(table.clone()).unwrap();
        let index = Index::open(&path).unwrap();
        assert_eq!(index.table, table);
        assert_eq!(index.hashes(&index.table.entries[0]).unwrap(), [[3; 16]]);
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.len() - 60;
        bytes[at] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(Index::open(&path).is_none());
        std::fs::write(&path, b"short").unwrap();
        assert!(Index::open(&path).is_none());
    }
}
